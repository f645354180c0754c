// SPDX-License-Identifier: MIT OR Apache-2.0
//! Short names of long texts: the same text has the same on every machine.

use std::fmt;

/// Fowler, Noll and Vo's hash (FNV-1a) of 64 bits; not meant against an adversary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Default for Key {
    fn default() -> Key {
        Key(0xcbf2_9ce4_8422_2325)
    }
}

impl Key {
    /// Takes a text in, and where it ends.
    pub(crate) fn add(&mut self, text: &[u8]) {
        let len = (text.len() as u64).to_le_bytes();
        for byte in text.iter().chain(&len) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn where_a_text_ends_matters() {
        let key_of = |texts: &[&str]| {
            let mut key = Key::default();
            texts.iter().for_each(|t| key.add(t.as_bytes()));
            key.to_string()
        };
        assert_eq!(key_of(&["ab", "c"]).len(), 16);
        assert_ne!(key_of(&["ab", "c"]), key_of(&["a", "bc"]));
        assert_eq!(key_of(&["ab", "c"]), key_of(&["ab", "c"]));
    }
}
