// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers for disks that a trace only names.

use blklab_trace::{Actions, TraceHeader};
use blklab_types::Dev;

/// Disks with numbers of their own; further ones share the last.
const DISKS_MAX: usize = 4096;

/// The disks of a trace, and what its format records.
#[derive(Debug)]
pub(crate) struct Disks {
    pub(crate) header: TraceHeader,
}

impl Disks {
    /// None yet. The trace has events of these kinds.
    pub(crate) fn new(recorded: Actions) -> Disks {
        Disks {
            header: TraceHeader {
                recorded,
                ..TraceHeader::default()
            },
        }
    }

    /// The device of this name. Those of SCSI disks are fixed
    /// (Documentation/admin-guide/devices.txt); others are numbered from `0,1`
    /// on, which no disk has.
    pub(crate) fn named(&mut self, name: &[u8]) -> Dev {
        let devices = &mut self.header.devices;
        if let Some((dev, _)) = devices.iter().rev().find(|d| d.1.as_bytes() == name) {
            return *dev;
        }
        let made_up = devices.iter().filter(|(dev, _)| dev.major == 0).count();
        let dev = scsi_disk(name).unwrap_or(Dev {
            major: 0,
            minor: (made_up + 1).min(DISKS_MAX) as u16,
        });
        if devices.len() < DISKS_MAX {
            let name = String::from_utf8_lossy(name).into_owned();
            devices.push((dev, name));
        }
        dev
    }
}

/// `sda` to `sdp` and their partitions.
pub(crate) fn scsi_disk(name: &[u8]) -> Option<Dev> {
    let [b's', b'd', letter @ b'a'..=b'p', partition @ ..] = name else {
        return None;
    };
    let partition = match partition {
        [] => 0,
        digits => crate::text::decimal(digits).filter(|n| (1..16).contains(n))?,
    };
    Some(Dev {
        major: 8,
        minor: u16::from(letter - b'a') * 16 + partition as u16,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_disks() {
        let mut disks = Disks::new(Actions::ALL);
        let mut number = |name: &str| {
            let dev = disks.named(name.as_bytes());
            (dev.major, dev.minor)
        };
        assert_eq!(
            (number("sda"), number("sdb2"), number("sdp")),
            ((8, 0), (8, 18), (8, 240))
        );
        assert_eq!(
            (number("nvme0n1"), number("vda"), number("nvme0n1")),
            ((0, 1), (0, 2), (0, 1))
        );
        assert_eq!(number("sdaa"), (0, 3));
    }
}
