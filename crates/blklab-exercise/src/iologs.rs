// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs of I/Os of any content: refused with a line, or entries on files that
//! are open, with lengths and offsets that the kernel could take.

use crate::Target;
use crate::check::fingerprint;
use crate::corpus::{Seed, samples};
use blklab_fio::replay::{Act, text};
use blklab_fio::settings::ReplayOptions;

pub(crate) const TARGET: Target = Target {
    name: "iolog",
    feed,
    samples: logs,
};

fn logs() -> Vec<Seed> {
    samples(&["testdata/fio/replay", "testdata/rows"], &[".iolog"])
}

fn feed(data: &[u8]) -> Option<u64> {
    let mut options = ReplayOptions::default();
    let mut log = data;
    if let [flags, scale, rest @ ..] = data
        && !(b' '..=b'~').contains(flags)
    {
        log = rest;
        options.scale = u32::from(*scale);
        options.align = 1 << (flags >> 4 & 7) << 9;
        options.time_scale = 1 + u32::from(*scale);
        options.no_stall = flags & 1 != 0;
        options.redirect = (flags & 2 != 0).then(|| "/dev/sda".to_owned());
    }
    let Ok(replay) = text::read(&mut &log[..], "fuzz.log", &options) else {
        return None;
    };
    let mut open = vec![false; replay.files.len()];
    let mut bytes = 0_u64;
    for entry in replay.entries() {
        match entry.act {
            Act::Add | Act::Until { .. } => {}
            Act::Open { file } => assert!(!std::mem::replace(&mut open[file as usize], true)),
            Act::Close { file } => assert!(std::mem::take(&mut open[file as usize])),
            Act::Io {
                op,
                file,
                offset,
                length,
            } => {
                assert!(open[file as usize]);
                assert!(
                    offset
                        .checked_add(length)
                        .is_some_and(|end| end <= i64::MAX as u64)
                );
                if op.dir().is_some() {
                    assert!(offset + length <= replay.files[file as usize].end_bytes);
                    bytes = bytes.saturating_add(length);
                }
            }
        }
    }
    assert_eq!(bytes, replay.bytes);
    let entries: Vec<_> = replay.entries().collect();
    Some(fingerprint(&entries))
}
