// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values out of the bits of a packet.

use super::types::{Int, Reference, Scope, Symbol, Type, TypeId, Types};
use std::ops::Range;

/// Parts of one event: damaged lengths promise more.
const PARTS_MAX: u32 = 1 << 20;

/// What an event has under a name.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) name: Symbol,
    /// A number, of which the sign is extended; 0 for a text.
    pub(super) number: u64,
    /// Where the bytes of a text are in the packet.
    pub(super) text: Range<usize>,
    /// The enumeration that it is of.
    of: TypeId,
}

/// What was read of a packet and an event, part by part.
#[derive(Debug, Default)]
pub(super) struct Values {
    all: Vec<Value>,
    /// Where each part begins.
    starts: [usize; Scope::COUNT],
    scope: usize,
}

impl Values {
    /// Begins a part; those behind it are forgotten.
    pub(super) fn begin(&mut self, scope: Scope) {
        let scope = scope as usize;
        if scope <= self.scope {
            self.all.truncate(self.starts[scope]);
        } else {
            self.starts[self.scope + 1..=scope].fill(self.all.len());
        }
        self.scope = scope;
    }

    /// What a part has, in its order.
    pub(super) fn within(&self, scope: Scope) -> &[Value] {
        let scope = scope as usize;
        if scope > self.scope {
            return &[];
        }
        let end = match scope {
            _ if scope == self.scope => self.all.len(),
            _ => self.starts[scope + 1],
        };
        &self.all[self.starts[scope]..end]
    }

    /// The last value of a name in a part.
    pub(super) fn number(&self, scope: Scope, name: Symbol) -> Option<u64> {
        let found = self.within(scope).iter().rev().find(|v| v.name == name);
        found.map(|v| v.number)
    }

    fn referred(&self, to: Reference) -> Option<&Value> {
        let among = to.scope.map_or(&self.all[..], |scope| self.within(scope));
        among.iter().rev().find(|v| v.name == to.name)
    }
}

/// A place in a packet.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    pub(super) types: &'a Types,
    pub(super) data: &'a [u8],
    /// In bits, from the beginning of the packet.
    pub(super) at: u64,
    /// Where the content ends, in bits.
    pub(super) end: u64,
    /// The order of bytes of numbers that name none.
    pub(super) big_endian: bool,
    /// What the clock shows, in its ticks.
    pub(super) clock: u64,
    /// Parts of the event that were read.
    pub(super) nr_parts: u32,
}

impl Cursor<'_> {
    /// Reads a value and all that is in it; none if the packet does not have it.
    pub(super) fn read(&mut self, name: Symbol, id: TypeId, to: &mut Values) -> Option<()> {
        self.nr_parts += 1;
        if self.nr_parts > PARTS_MAX {
            return None;
        }
        let types = self.types;
        match types.get(id) {
            Type::Int(int) => self.int(name, *int, id, to),
            Type::Enum(int, _) => self.int(name, *int, id, to),
            Type::Float { size, align } => {
                self.align(*align)?;
                self.skip((*size).into())
            }
            Type::String => self.string(name, id, to),
            Type::Struct { fields, align } => {
                self.align(*align)?;
                fields
                    .iter()
                    .try_for_each(|(name, id)| self.read(*name, *id, to))
            }
            Type::Variant { tag, options } => {
                let tag = to.referred(*tag)?;
                let Type::Enum(int, labels) = types.get(tag.of) else {
                    return None;
                };
                let number = if int.signed {
                    i128::from(tag.number as i64)
                } else {
                    tag.number.into()
                };
                let mut fitting = labels.iter().filter(|l| (l.1..=l.2).contains(&number));
                let chosen = fitting.find_map(|l| options.iter().find(|o| o.0 == l.0));
                let (name, id) = *chosen?;
                self.read(name, id, to)
            }
            Type::Array { element, len } => self.elements(name, *element, *len, to),
            Type::Sequence { element, len } => {
                let len = to.referred(*len)?.number;
                self.elements(name, *element, len, to)
            }
        }
    }

    fn align(&mut self, bits: u32) -> Option<()> {
        let at = self.at.checked_next_multiple_of(bits.into())?;
        self.at = Some(at).filter(|at| *at <= self.end)?;
        Some(())
    }

    fn skip(&mut self, bits: u64) -> Option<()> {
        let at = self.at.checked_add(bits)?;
        self.at = Some(at).filter(|at| *at <= self.end)?;
        Some(())
    }

    fn int(&mut self, name: Symbol, int: Int, of: TypeId, to: &mut Values) -> Option<()> {
        self.align(int.align)?;
        let from = self.at;
        self.skip(int.size.into())?;
        let big_endian = int.big_endian.unwrap_or(self.big_endian);
        let mut number = bits(self.data, from, int.size, big_endian)?;
        if int.is_clock {
            number = self.tick(number, int.size);
        } else if int.signed && int.size < 64 {
            let unused = 64 - int.size;
            number = ((number << unused) as i64 >> unused) as u64;
        }
        to.all.push(Value {
            name,
            number,
            text: 0..0,
            of,
        });
        Some(())
    }

    /// The clock goes on to where its lowest bits are these.
    fn tick(&mut self, low: u64, size: u32) -> u64 {
        if size == 64 {
            self.clock = low;
        } else {
            let mask = (1 << size) - 1;
            let wrapped = u64::from(low < self.clock & mask) << size;
            self.clock = (self.clock & !mask).wrapping_add(wrapped) | low;
        }
        self.clock
    }

    fn string(&mut self, name: Symbol, of: TypeId, to: &mut Values) -> Option<()> {
        self.align(8)?;
        let (start, end) = ((self.at / 8) as usize, (self.end / 8) as usize);
        let len = self.data.get(start..end)?.iter().position(|b| *b == 0)?;
        self.skip((len as u64 + 1) * 8)?;
        to.all.push(Value {
            name,
            number: 0,
            text: start..start + len,
            of,
        });
        Some(())
    }

    fn elements(&mut self, name: Symbol, id: TypeId, len: u64, to: &mut Values) -> Option<()> {
        self.align(self.types.align(id))?;
        if let Type::Int(int) = self.types.get(id)
            && int.size.is_multiple_of(int.align)
        {
            // Nothing lies between them, so they need not be looked at.
            let start = (self.at / 8) as usize;
            self.skip(len.checked_mul(int.size.into())?)?;
            if int.is_text && int.size == 8 {
                to.all.push(Value {
                    name,
                    number: 0,
                    text: start..(self.at / 8) as usize,
                    of: id,
                });
            }
            return Some(());
        }
        let nr_values = to.all.len();
        for _ in 0..len {
            self.read(name, id, to)?;
            // Only what a type inside refers to counts, and that only in its element.
            to.all.truncate(nr_values);
        }
        Some(())
    }
}

/// `size` bits from bit `from` on: from the lowest of each byte on in little endian, from
/// the highest on in big endian.
fn bits(data: &[u8], from: u64, size: u32, big_endian: bool) -> Option<u64> {
    let (first, shift) = ((from / 8) as usize, (from % 8) as u32);
    let nr_bytes = (shift + size).div_ceil(8) as usize;
    let bytes = data.get(first..first.checked_add(nr_bytes)?)?;
    if big_endian {
        let all = bytes.iter().fold(0_u128, |n, b| n << 8 | u128::from(*b));
        let behind = nr_bytes as u32 * 8 - shift - size;
        return Some((all >> behind & mask(size)) as u64);
    }
    let all = bytes
        .iter()
        .rev()
        .fold(0_u128, |n, b| n << 8 | u128::from(*b));
    Some((all >> shift & mask(size)) as u64)
}

fn mask(size: u32) -> u128 {
    (1 << size) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_either_order() {
        let data = [0xe5, 0x01, 0x80];
        assert_eq!(bits(&data, 0, 5, false), Some(5));
        assert_eq!(bits(&data, 5, 5, false), Some(0xf));
        assert_eq!(bits(&data, 0, 5, true), Some(0x1c));
        assert_eq!(bits(&data, 5, 5, true), Some(0b10100));
        assert_eq!(bits(&data, 0, 24, true), Some(0xe5_0180));
        assert_eq!(bits(&data, 17, 8, true), None);
    }

    #[test]
    fn parts_are_forgotten_when_one_in_front_begins() {
        let mut values = Values::default();
        let push = |values: &mut Values, name| {
            values.all.push(Value {
                name,
                number: 0,
                text: 0..0,
                of: 0,
            });
        };
        values.begin(Scope::PacketHeader);
        push(&mut values, 1);
        values.begin(Scope::PacketContext);
        push(&mut values, 2);
        for _ in 0..2 {
            values.begin(Scope::EventHeader);
            push(&mut values, 3);
            values.begin(Scope::Fields);
            push(&mut values, 4);
            push(&mut values, 5);
            let len = |scope| values.within(scope).len();
            let lens = [
                Scope::PacketContext,
                Scope::EventHeader,
                Scope::EventContext,
            ];
            assert_eq!(lens.map(len), [1, 1, 0]);
            assert_eq!(len(Scope::Fields), 2);
        }
        values.begin(Scope::PacketHeader);
        assert_eq!(
            (values.all.len(), values.within(Scope::Fields).len()),
            (0, 0)
        );
    }
}
