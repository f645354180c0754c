// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers for random operations: the same in every run.

/// A state that is not 0 (xorshift).
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}
