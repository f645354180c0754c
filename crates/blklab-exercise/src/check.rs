// SPDX-License-Identifier: MIT OR Apache-2.0
//! What several targets ask of what they get.

use std::fmt::{Debug, Display, Write as _};

/// What is refused is said in one line.
pub(crate) fn one_line(refused: &dyn Display) {
    let told = refused.to_string();
    assert!(told.lines().count() <= 1, "one line: {told}");
}

/// Stands for what was read: 64 bits of FNV-1a over its debug form.
pub(crate) fn fingerprint(read: &dyn Debug) -> u64 {
    struct Fnv(u64);
    impl std::fmt::Write for Fnv {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            for byte in text.bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
            Ok(())
        }
    }
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    // Hashing takes everything.
    let _ = write!(hash, "{read:?}");
    blklab_types::split_mix64(hash.0)
}
