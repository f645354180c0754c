// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of a queue that experiments write and models read.

/// When the driver looks at the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fetch {
    /// It takes the next request from the scheduler first and then finds the
    /// device full: SCSI, libata, cciss. One request more than the queue
    /// depth has left the scheduler.
    #[default]
    PeekThenCheck,
    /// It looks only when the device has room: the older IDE driver.
    CheckThenPeek,
}

/// Limits of a control group on what it and the groups below do in a second
/// (`io.max`); none: no limit. The kernel refuses 0, which counts as 1 here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoMax {
    /// `rbps`, in bytes per second.
    pub read_bytes_per_s: Option<u64>,
    /// `wbps`, in bytes per second.
    pub write_bytes_per_s: Option<u64>,
    /// `riops`, in I/Os per second.
    pub read_ios_per_s: Option<u64>,
    /// `wiops`, in I/Os per second.
    pub write_ios_per_s: Option<u64>,
}

/// What a queue can discard in one request (`max_discard_sectors` and
/// `discard_granularity` of the kernel's `struct queue_limits`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscardLimits {
    /// Most sectors of a request.
    pub max_sectors: u32,
    /// What the device can discard is a multiple of so many sectors, and begins at
    /// one. At least 1.
    pub granularity_sectors: u32,
}

impl DiscardLimits {
    /// As much as a request can have, sector by sector.
    pub const ANY: DiscardLimits = DiscardLimits {
        max_sectors: u32::MAX,
        granularity_sectors: 1,
    };

    /// The largest request that is a multiple of the granularity.
    pub fn aligned_max_sectors(self) -> u32 {
        self.max_sectors - self.max_sectors % self.granularity_sectors
    }

    /// Sectors of the front part of a discard that is too long for a request, if
    /// it is: what is left begins at a multiple of the granularity
    /// (`bio_split_discard`, block/blk-merge.c of 6.1; before 4.3
    /// `blkdev_issue_discard`, block/blk-lib.c of 3.6).
    pub fn front_sectors(self, sector: u64, nr_sectors: u64) -> Option<u32> {
        let most = self.aligned_max_sectors();
        if most == 0 || nr_sectors <= u64::from(most) {
            return None;
        }
        let beyond = (sector + u64::from(most)) % u64::from(self.granularity_sectors);
        let beyond = u32::try_from(beyond).unwrap_or(0);
        Some(if most > beyond { most - beyond } else { most })
    }
}

#[cfg(test)]
mod tests {
    use super::DiscardLimits;

    #[test]
    fn what_is_left_of_a_discard_begins_at_the_granularity() {
        let limits = DiscardLimits {
            max_sectors: 2050,
            granularity_sectors: 8,
        };
        assert_eq!(limits.aligned_max_sectors(), 2048);
        assert_eq!(limits.front_sectors(0, 2048), None);
        assert_eq!(limits.front_sectors(8, 5114), Some(2048));
        assert_eq!(limits.front_sectors(2, 5120), Some(2046));
        assert_eq!(DiscardLimits::ANY.front_sectors(3, 1 << 32), Some(u32::MAX));
    }
}
