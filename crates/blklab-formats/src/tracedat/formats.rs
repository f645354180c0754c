// SPDX-License-Identifier: MIT OR Apache-2.0
//! The formats of events, as the kernel describes them
//! (`events/SYSTEM/EVENT/format` of tracefs).

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
