// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of variable length: seven bits a byte, lowest first, the top bit
//! set in all bytes but the last. Differences are wrapped to 64 bits and
//! folded, so that small negative ones stay short.

/// Longest encoding of a number.
pub(super) const BYTES_MAX: usize = 10;

/// Writes `n` at `at` and returns the place behind it. The caller leaves
/// [`BYTES_MAX`] bytes of room.
#[inline]
pub(super) fn put(buf: &mut [u8], at: usize, mut n: u64) -> usize {
    let mut at = at;
    while n >= 0x80 {
        buf[at] = n as u8 | 0x80;
        n >>= 7;
        at += 1;
    }
    buf[at] = n as u8;
    at + 1
}

/// Folds a difference: 0, -1, 1, -2, … become 0, 1, 2, 3, ….
#[inline]
pub(super) fn fold(difference: u64) -> u64 {
    let signed = difference as i64;
    (signed << 1 ^ signed >> 63) as u64
}

/// The inverse of [`fold`].
#[inline]
pub(super) fn unfold(n: u64) -> u64 {
    n >> 1 ^ (n & 1).wrapping_neg()
}

/// What is left of a slice; every method is `None` when it is too short.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A number; `None` also for one that does not fit 64 bits.
    #[inline]
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut n = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            n |= bits << shift;
            if byte < 0x80 {
                return Some(n);
            }
        }
        None
    }

    pub(super) fn slice(&mut self, len: usize) -> Option<&'a [u8]> {
        let (slice, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for n in [
            0,
            1,
            127,
            128,
            16_383,
            16_384,
            u64::from(u32::MAX),
            u64::MAX - 1,
            u64::MAX,
        ] {
            let mut buf = [0; BYTES_MAX];
            let len = put(&mut buf, 0, n);
            let mut bytes = Bytes(&buf[..len]);
            assert_eq!(bytes.number(), Some(n));
            assert!(bytes.0.is_empty());
            assert_eq!(unfold(fold(n)), n);
        }
        assert_eq!(fold(u64::MAX), 1, "a difference of -1");
    }

    #[test]
    fn too_long_or_cut() {
        assert_eq!(Bytes(&[0x80; 11]).number(), None);
        assert_eq!(Bytes(&[0x80]).number(), None);
        let mut beyond = [0xff; 10];
        beyond[9] = 2;
        assert_eq!(Bytes(&beyond).number(), None);
    }
}
