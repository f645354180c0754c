// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checksum of chunks: CRC-32 as in Ethernet, zip and PNG (polynomial
//! 0x04c11db7 reflected, start and end inverted), eight bytes at a time.

/// `TABLES[k][b]`: what byte `b` contributes when `k` bytes follow it.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[k - 1][byte];
            tables[k][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

/// The checksum of `bytes`, continued from that of what came before (0 at the
/// start).
pub(super) fn crc32(before: u32, bytes: &[u8]) -> u32 {
    let mut crc = !before;
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        let word = u64::from_le_bytes(*eight) ^ u64::from(crc);
        crc = 0;
        for (k, byte) in word.to_le_bytes().into_iter().enumerate() {
            crc ^= TABLES[7 - k][usize::from(byte)];
        }
    }
    for byte in rest {
        crc = crc >> 8 ^ TABLES[0][usize::from(crc as u8 ^ byte)];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(crc32(0, b""), 0);
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        let text = b"The quick brown fox jumps over the lazy dog";
        assert_eq!(crc32(0, text), 0x414f_a339);
        assert_eq!(crc32(crc32(0, &text[..11]), &text[11..]), 0x414f_a339);
    }
}
