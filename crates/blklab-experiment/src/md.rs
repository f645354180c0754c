// SPDX-License-Identifier: MIT OR Apache-2.0
//! An array of equal disks in place of one: level, members, chunks.

use crate::Experiment;
use blklab_kernel::KernelVersion;
use blklab_types::{Error, no_such};
use blklab_types::{Level, MEMBERS_MAX, Stripes, shown};
use std::fmt;

/// The last release whose md is modelled: later ones have barriers on every
/// level (2.6.33), then flushes, then task plugs.
const LAST: KernelVersion = KernelVersion::v2_6(32);

/// The release whose md is modelled; the others have its rules.
const READ: KernelVersion = KernelVersion::v2_6(28);

/// Levels by name.
const LEVELS: [&str; 2] = ["raid0", "raid1"];

/// An md array of disks like the experiment's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MdSpec {
    /// Level, with the length of its chunks.
    pub level: Level,
    /// Number of members.
    pub members: u32,
}

impl MdSpec {
    /// Length of a chunk where nothing is said.
    pub const CHUNK_KB: u32 = 64;

    /// An array by the name of its level.
    ///
    /// # Errors
    /// If there is no such level, or the numbers are out of range.
    pub fn new(level: &str, members: u32, chunk_kb: Option<u32>) -> Result<MdSpec, Error> {
        if !(2..=MEMBERS_MAX).contains(&members) {
            return Err(Error::new(format!(
                "md: members={members}: expected a number from 2 to {MEMBERS_MAX}"
            ))
            .about("md.members"));
        }
        let kb = chunk_kb.unwrap_or(MdSpec::CHUNK_KB);
        if !kb.is_power_of_two() || !(4..=65_536).contains(&kb) {
            return Err(Error::new(format!(
                "md: chunk_kb={kb}: expected a power of 2 from 4 to 65536"
            ))
            .about("md.chunk_kb"));
        }
        let level = match level {
            "raid0" => Level::Raid0(Stripes::new(2 * kb)),
            "raid1" => Level::Raid1,
            other => {
                let what = format!("md: {}", no_such("level", other, &LEVELS));
                return Err(Error::new(what).about("md.level"));
            }
        };
        Ok(MdSpec { level, members })
    }

    /// Reads `LEVEL:MEMBERS` and then, each a word, `chunk_kb=N`.
    ///
    /// # Errors
    /// If it is not written like that.
    pub fn parse(words: &[&str]) -> Result<MdSpec, Error> {
        let bad = |what: String| {
            Err(Error::new(format!(
                "{what}; write raid1:2, or raid0:2,chunk_kb=64"
            )))
        };
        let Some((first, rest)) = words.split_first() else {
            return bad("no level".to_owned());
        };
        let Some((level, members)) = first.split_once(':') else {
            return bad(format!("'{}' is not LEVEL:MEMBERS", shown(first)));
        };
        let Ok(members) = members.parse() else {
            return bad(format!("'{}' is not a number of members", shown(members)));
        };
        let mut chunk_kb = None;
        for word in rest {
            match word.split_once('=').map(|(k, v)| (k, v.parse())) {
                Some(("chunk_kb", Ok(kb))) => chunk_kb = Some(kb),
                _ => return bad(format!("'{}' is not chunk_kb=NUMBER", shown(word))),
            }
        }
        MdSpec::new(level, members, chunk_kb)
    }

    /// Name of the level.
    pub fn level_name(&self) -> &'static str {
        match self.level {
            Level::Raid0(_) => "raid0",
            Level::Raid1 => "raid1",
        }
    }

    /// Length of a chunk in KiB; none where there are no chunks.
    pub fn chunk_kb(&self) -> Option<u32> {
        match self.level {
            Level::Raid0(stripes) => Some(stripes.chunk_sectors() / 2),
            Level::Raid1 => None,
        }
    }
}

/// As [`MdSpec::parse`] reads it.
impl fmt::Display for MdSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level_name(), self.members)?;
        match self.chunk_kb() {
            Some(kb) => write!(f, ",chunk_kb={kb}"),
            None => Ok(()),
        }
    }
}

impl Experiment {
    /// End of what tasks use: of the partition, or of an array on partitions,
    /// on disks of that size.
    pub fn capacity_sectors(&self, disk_sectors: Option<u64>) -> Option<u64> {
        let start = u64::from(self.queue.partition_start.unwrap_or(0));
        let length = self.queue.partition_sectors.map(u64::from);
        let end = match (length.map(|n| start + n), disk_sectors) {
            (Some(end), Some(disk)) => Some(end.min(disk)),
            (end, disk) => end.or(disk),
        };
        match &self.md {
            None => end,
            Some(md) => {
                let member = end?.saturating_sub(start);
                Some(md.level.capacity_sectors(md.members, member))
            }
        }
    }

    /// A partition lies on its disk.
    pub(crate) fn check_partition(&self, disk_sectors: Option<u64>) -> Result<(), Error> {
        let start = u64::from(self.queue.partition_start.unwrap_or(0));
        let length = self.queue.partition_sectors.map_or(1, u64::from);
        match disk_sectors {
            Some(disk) if start + length > disk => Err(Error::new(format!(
                "a partition from sector {start} on with {length} sectors does not fit the disk, \
                 which has {disk}"
            ))
            .about("queue")),
            _ => Ok(()),
        }
    }

    /// Largest readahead window of a disk whose queue has one of so many bytes unless
    /// told otherwise. A RAID 0 reads at least two stripes (`raid0_run`,
    /// drivers/md/raid0.c, 2.6.28).
    pub fn read_ahead_bytes(&self, of_queue: u64) -> u64 {
        match (self.queue.read_ahead_kb, &self.md) {
            (Some(kb), _) => u64::from(kb) << 10,
            (None, None) => of_queue,
            (None, Some(md)) => {
                let chunk_bytes = u64::from(md.chunk_kb().unwrap_or(0)) << 10;
                of_queue.max(2 * u64::from(md.members) * chunk_bytes)
            }
        }
    }

    /// Refuses an array that the kernel or its disks cannot have.
    pub(crate) fn check_md(&self, disk_sectors: Option<u64>) -> Result<(), Error> {
        let Some(md) = &self.md else { return Ok(()) };
        if self.kernel.series() > LAST {
            return Err(Error::new(format!(
                "md is modelled up to kernel {LAST}, not for {}",
                self.kernel
            ))
            .about("md"));
        }
        if self.capacity_sectors(disk_sectors) == Some(0) {
            return Err(Error::new(format!(
                "md: no room for {md} on disks of {} sectors",
                disk_sectors.unwrap_or(0)
            ))
            .about("md"));
        }
        Ok(())
    }

    /// What a reader should know about the array of a result.
    pub(crate) fn md_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.md.is_some() && self.kernel.series() != READ {
            notes.push(format!(
                "md of kernel {} is modelled as that of {READ}",
                self.kernel
            ));
        }
        notes
    }
}
