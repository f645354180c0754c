// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wire format of protocol buffers: fields with a number, each a number or bytes
//! (protobuf.dev, "Encoding").

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A varint, or a number of fixed length.
    Number(u64),
    /// A text, a message, or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(super) fn number(self) -> Option<u64> {
        match self {
            Value::Number(n) => Some(n),
            Value::Bytes(_) => None,
        }
    }

    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Value::Number(_) => None,
            Value::Bytes(bytes) => Some(bytes),
        }
    }
}

/// What is not as the wire format has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damaged;

/// The fields of a message, in order; the last is [`Damaged`] if the rest makes no sense.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a>(pub(super) &'a [u8]);

impl<'a> Message<'a> {
    /// The last value of a field, which is the one that counts.
    pub(super) fn field(self, wanted: u32) -> Option<Value<'a>> {
        let fields = self.map_while(Result::ok);
        fields.filter(|(n, _)| *n == wanted).last().map(|(_, v)| v)
    }

    /// All values of a field that are bytes.
    pub(super) fn bytes_of(self, wanted: u32) -> impl Iterator<Item = &'a [u8]> {
        let fields = self.map_while(Result::ok);
        fields
            .filter(move |(n, _)| *n == wanted)
            .filter_map(|(_, v)| v.bytes())
    }

    /// Whether all of it is fields.
    pub(super) fn is_whole(mut self) -> bool {
        Iterator::all(&mut self, |field| field.is_ok())
    }

    fn next_field(&mut self) -> Option<(u32, Value<'a>)> {
        let (key, rest) = varint(self.0)?;
        let number = u32::try_from(key >> 3).ok().filter(|n| *n > 0)?;
        let (value, rest) = match key & 7 {
            0 => {
                let (n, rest) = varint(rest)?;
                (Value::Number(n), rest)
            }
            1 => {
                let (bytes, rest) = rest.split_first_chunk()?;
                (Value::Number(u64::from_le_bytes(*bytes)), rest)
            }
            2 => {
                let (len, rest) = varint(rest)?;
                let (bytes, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
                (Value::Bytes(bytes), rest)
            }
            5 => {
                let (bytes, rest) = rest.split_first_chunk()?;
                (Value::Number(u32::from_le_bytes(*bytes).into()), rest)
            }
            _ => return None,
        };
        self.0 = rest;
        Some((number, value))
    }
}

impl<'a> Iterator for Message<'a> {
    type Item = Result<(u32, Value<'a>), Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.next_field().ok_or(Damaged);
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

/// Bytes of a varint, at most.
pub(super) const VARINT_BYTES: usize = 10;

/// A number in groups of seven bits, the lowest first, and what is behind it.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut n = 0_u64;
    for (place, byte) in bytes.iter().take(VARINT_BYTES).enumerate() {
        n |= u64::from(byte & 0x7f).checked_shl(7 * place as u32)?;
        if byte & 0x80 == 0 {
            return Some((n, &bytes[place + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_kind() {
        let bytes = [
            0x08, 0x96, 0x01, // field 1: 150
            0x12, 0x02, b'h', b'i', // field 2: text
            0x1d, 1, 0, 0, 0, // field 3: fixed, 4 bytes
            0x21, 2, 0, 0, 0, 0, 0, 0, 0, // field 4: fixed, 8 bytes
            0x08, 0x07, // field 1 again
        ];
        let message = Message(&bytes);
        assert_eq!(message.field(1), Some(Value::Number(7)));
        assert_eq!(message.field(2), Some(Value::Bytes(b"hi")));
        assert_eq!(message.field(3), Some(Value::Number(1)));
        assert_eq!(message.field(4), Some(Value::Number(2)));
        assert_eq!(message.field(5), None);
        assert!(message.is_whole());
    }

    #[test]
    fn what_makes_no_sense_ends_a_message() {
        for damaged in [
            &b"\x12\x7fab"[..],
            b"\x0b",
            b"\x00\x01",
            b"\x08\xff",
            b"\x1d\x01",
        ] {
            assert!(!Message(damaged).is_whole(), "{damaged:?}");
        }
        let minus_one = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(varint(&minus_one), Some((u64::MAX, &[][..])));
        assert_eq!(varint(&[0x80; 12]), None);
    }
}
