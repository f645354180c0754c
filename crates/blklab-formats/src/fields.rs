// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields of an event by name, in whatever form the event is: binary records of the
//! kernel and of LTTng, and texts of both.

use blklab_types::Dev;

/// The fields of one event.
pub(crate) trait Fields {
    /// A whole number; what is negative has its sign extended.
    fn number(&self, name: &str) -> Option<u64>;

    /// A text, or the word that stands for a number.
    fn text(&self, name: &str) -> Option<&[u8]> {
        let _ = name;
        None
    }

    /// A field with the errno of a completion, of either sign; the inner option is
    /// none if it is no errno.
    fn error(&self, name: &str) -> Option<Option<u16>> {
        let code = self.number(name)? as i64;
        Some(u16::try_from(code.unsigned_abs()).ok())
    }

    /// A device, in binary in the kernel's own numbers.
    fn device(&self, name: &str) -> Option<Dev> {
        Some(device(self.number(name)?))
    }

    /// The bytes of an array of numbers; of a text, those that it shows in hexadecimal
    /// digits, as far as `to` has room. How many there are.
    fn bytes(&self, name: &str, to: &mut [u8]) -> usize {
        let _ = (name, to);
        0
    }

    /// All of an event in text.
    fn line(&self) -> Option<&[u8]> {
        None
    }
}

/// A device by the kernel's own number: major above 20 bits of minor.
pub(crate) fn device(number: u64) -> Dev {
    Dev {
        major: (number >> 20 & 0xfff) as u16,
        minor: number as u16,
    }
}
