// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers for disks that a trace only names.

use blklab_trace::{Actions, TraceHeader};
use blklab_types::Dev;
use std::collections::HashMap;

/// Disks with numbers of their own; further ones share the last.
const DISKS_MAX: usize = 4096;

/// The disks of a trace, and what its format records.
#[derive(Debug)]
pub(crate) struct Disks {
    pub(crate) header: TraceHeader,
    /// Those of the header, by name.
    known: HashMap<Vec<u8>, Dev>,
    /// Disks with numbers that no disk has.
    nr_made_up: usize,
}

impl Disks {
    /// None yet. The trace has events of these kinds.
    pub(crate) fn new(recorded: Actions) -> Disks {
        Disks {
            header: TraceHeader {
                recorded,
                ..TraceHeader::default()
            },
            known: HashMap::new(),
            nr_made_up: 0,
        }
    }

    /// The device of this name. Those of SCSI disks are fixed
    /// (Documentation/admin-guide/devices.txt); others are numbered from `0,1`
    /// on, which no disk has.
    pub(crate) fn named(&mut self, name: &[u8]) -> Dev {
        if let Some(dev) = self.known.get(name) {
            return *dev;
        }
        let dev = scsi_disk(name).unwrap_or(Dev {
            major: 0,
            minor: (self.nr_made_up + 1).min(DISKS_MAX) as u16,
        });
        if self.known.len() < DISKS_MAX {
            self.known.insert(name.to_vec(), dev);
            self.nr_made_up += usize::from(dev.major == 0);
            let name = String::from_utf8_lossy(name).into_owned();
            self.header.devices.push((dev, name));
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
