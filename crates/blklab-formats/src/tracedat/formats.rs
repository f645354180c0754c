// SPDX-License-Identifier: MIT OR Apache-2.0
//! The formats of events, as the kernel describes them
//! (`events/SYSTEM/EVENT/format` of tracefs).

use crate::store::Order;

/// Where a field lies in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) offset: usize,
    pub(super) size: usize,
}

impl Field {
    /// Its bytes.
    pub(super) fn bytes(self, data: &[u8]) -> Option<&[u8]> {
        data.get(self.offset..self.offset.checked_add(self.size)?)
    }
}

/// An event of another part of the kernel: all its fields, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KernelFormat {
    pub(super) id: u16,
    pub(super) name: String,
    fields: Vec<Named>,
}

/// A field with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    name: String,
    field: Field,
    is_signed: bool,
    /// Whether its place in the record has that of its content: an offset in the lower, a
    /// length in the upper 16 bits; and whether that counts from behind the field
    /// (`__data_loc`, `__rel_loc`).
    located: Option<bool>,
}

impl KernelFormat {
    /// None if the text is no format.
    pub(super) fn parse(text: &str) -> Option<KernelFormat> {
        let mut format = KernelFormat::default();
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("name:") {
                name.trim().clone_into(&mut format.name);
            } else if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().ok()?;
            } else if let Some(rest) = line.strip_prefix("field:") {
                format.fields.extend(named(rest));
            }
        }
        (!format.name.is_empty() && format.id > 0).then_some(format)
    }

    /// A number of a record, its sign extended.
    pub(super) fn number(&self, order: Order, data: &[u8], name: &str) -> Option<u64> {
        let named = self.named(name)?;
        if named.located.is_some() {
            return None;
        }
        let n = order.number(named.field.bytes(data)?)?;
        let unused = 64 - 8 * named.field.size as u32;
        Some(if named.is_signed {
            ((n << unused) as i64 >> unused) as u64
        } else {
            n
        })
    }

    /// The content of an array.
    pub(super) fn content<'d>(&self, order: Order, data: &'d [u8], name: &str) -> Option<&'d [u8]> {
        let named = self.named(name)?;
        let bytes = named.field.bytes(data)?;
        let Some(is_relative) = named.located else {
            return Some(bytes);
        };
        let place = order.u32(bytes)?;
        let from = if is_relative {
            named.field.offset + named.field.size
        } else {
            0
        };
        let start = from.checked_add((place & 0xffff) as usize)?;
        data.get(start..start.checked_add((place >> 16) as usize)?)
    }

    /// Where a field lies.
    pub(super) fn field(&self, name: &str) -> Option<Field> {
        Some(self.named(name)?.field)
    }

    fn named(&self, name: &str) -> Option<&Named> {
        self.fields.iter().find(|f| f.name == name)
    }
}

/// As [`EventFormat::field`], with whatever name.
fn named(text: &str) -> Option<Named> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next()?;
    let mut field = Field { offset: 0, size: 0 };
    let mut is_signed = false;
    for part in parts {
        if let Some(offset) = part.strip_prefix("offset:") {
            field.offset = offset.parse().ok()?;
        } else if let Some(size) = part.strip_prefix("size:") {
            field.size = size.parse().ok()?;
        } else if let Some(signed) = part.strip_prefix("signed:") {
            is_signed = signed == "1";
        }
    }
    let located = match declaration.split(' ').next()? {
        "__data_loc" => Some(false),
        "__rel_loc" => Some(true),
        _ => None,
    };
    // `char name[32]`, `__data_loc unsigned char[] cmnd`.
    let last = declaration.rsplit([' ', '*']).next()?;
    let name = last.split('[').next()?.to_owned();
    Some(Named {
        name,
        field,
        is_signed,
        located,
    })
}

/// An event of the block layer: the fields that matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EventFormat {
    pub(super) id: u16,
    pub(super) name: String,
    pub(super) pid: Option<Field>,
    pub(super) dev: Option<Field>,
    pub(super) sector: Option<Field>,
    pub(super) nr_sector: Option<Field>,
    pub(super) bytes: Option<Field>,
    pub(super) rwbs: Option<Field>,
    pub(super) error: Option<Field>,
    pub(super) old_dev: Option<Field>,
    pub(super) old_sector: Option<Field>,
    pub(super) new_sector: Option<Field>,
    pub(super) nr_rq: Option<Field>,
    pub(super) comm: Option<Field>,
}

impl EventFormat {
    /// None if the text is no format.
    pub(super) fn parse(text: &str) -> Option<EventFormat> {
        let mut format = EventFormat::default();
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("name:") {
                format.name = name.trim().to_owned();
            } else if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().ok()?;
            } else if let Some(rest) = line.strip_prefix("field:") {
                format.field(rest);
            }
        }
        (!format.name.is_empty() && format.id > 0).then_some(format)
    }

    /// `char rwbs[8]; offset:34; size:8; signed:0;`, with tabs between.
    fn field(&mut self, text: &str) -> Option<()> {
        let mut parts = text.split(';').map(str::trim);
        let declaration = parts.next()?;
        let mut field = Field { offset: 0, size: 0 };
        for part in parts {
            if let Some(offset) = part.strip_prefix("offset:") {
                field.offset = offset.parse().ok()?;
            } else if let Some(size) = part.strip_prefix("size:") {
                field.size = size.parse().ok()?;
            }
        }
        let name = declaration.split('[').next()?;
        let name = name.rsplit([' ', '*']).next()?;
        let place = match name {
            "common_pid" => &mut self.pid,
            "dev" => &mut self.dev,
            "sector" => &mut self.sector,
            "nr_sector" | "nr_sectors" => &mut self.nr_sector,
            "bytes" => &mut self.bytes,
            "rwbs" => &mut self.rwbs,
            "error" | "errors" => &mut self.error,
            "old_dev" => &mut self.old_dev,
            "old_sector" => &mut self.old_sector,
            "new_sector" => &mut self.new_sector,
            "nr_rq" => &mut self.nr_rq,
            "comm" => &mut self.comm,
            _ => return None,
        };
        *place = Some(field);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_format() {
        let text = "name: block_split\nID: 1123\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
            \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
            \tfield:char rwbs[8];\toffset:32;\tsize:8;\tsigned:0;\n\
            print fmt: \"%d\"\n";
        let format = EventFormat::parse(text).expect("a format");
        assert_eq!((format.id, &*format.name), (1123, "block_split"));
        assert_eq!(format.dev, Some(Field { offset: 8, size: 4 }));
        assert_eq!(
            format.rwbs,
            Some(Field {
                offset: 32,
                size: 8
            })
        );
        assert_eq!((format.sector, EventFormat::parse("name: x")), (None, None));
    }
}
