// SPDX-License-Identifier: MIT OR Apache-2.0
//! An array of equal disks in place of one: level, members, chunks.

mod level;

pub use level::MdLevel;

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

/// Keys behind the level and the number of members.
const KEYS: [&str; 3] = ["chunk_kb", "layout", "bitmap"];

/// Bitmaps of regions that are being written, by which a kernel finds what to repair
/// after a crash. The first is what holds where nothing is said.
const BITMAPS: [&str; 2] = ["none", "internal"];

/// An md array of disks like the experiment's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MdSpec {
    /// How its members make one device.
    pub level: MdLevel,
    /// Number of members.
    pub members: u32,
    /// Length of a chunk in KiB; none where there are no chunks.
    chunk_kb: Option<u32>,
    /// Where parity or copies lie, if not where the level has them by itself.
    layout: Option<&'static str>,
    bitmap: &'static str,
}

/// What may be said of an array beside its level and members. `None` is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MdOptions {
    /// Length of a chunk in KiB.
    pub chunk_kb: Option<u32>,
    /// Where parity or copies lie.
    pub layout: Option<String>,
    /// `internal` or `none`.
    pub bitmap: Option<String>,
}

impl MdSpec {
    /// Length of a chunk where nothing is said.
    pub const CHUNK_KB: u32 = 64;

    /// An array by the name of its level.
    ///
    /// # Errors
    /// If there is no such level, or the numbers are out of range.
    pub fn new(level: &str, members: u32, options: &MdOptions) -> Result<MdSpec, Error> {
        let refused = |what: String, key: &str| Error::new(format!("md: {what}")).about(key);
        let level = MdLevel::parse(level).map_err(|what| refused(what, "md.level"))?;
        let members_min = level.members_min();
        if !(members_min..=MEMBERS_MAX).contains(&members) {
            let what = format!(
                "members={members}: {} takes a number from {members_min} to {MEMBERS_MAX}",
                level.name()
            );
            return Err(refused(what, "md.members"));
        }
        let kb = options.chunk_kb.unwrap_or(MdSpec::CHUNK_KB);
        if !kb.is_power_of_two() || !(4..=65_536).contains(&kb) {
            let what = format!("chunk_kb={kb}: expected a power of 2 from 4 to 65536");
            return Err(refused(what, "md.chunk_kb"));
        }
        let layout = options.layout.as_deref();
        let layout = layout.map(|l| level.layout(l, members)).transpose();
        let layout = layout.map_err(|what| refused(what, "md.layout"))?;
        let bitmap = options.bitmap.as_deref().unwrap_or(BITMAPS[0]);
        let Some(&bitmap) = BITMAPS.iter().find(|b| **b == bitmap) else {
            return Err(refused(no_such("bitmap", bitmap, &BITMAPS), "md.bitmap"));
        };
        if bitmap != BITMAPS[0] && !level.is_redundant() {
            let what = format!("{} has no bitmap, since it repairs nothing", level.name());
            return Err(refused(what, "md.bitmap"));
        }
        Ok(MdSpec {
            level,
            members,
            chunk_kb: level.has_chunks().then_some(kb),
            layout,
            bitmap,
        })
    }

    /// Reads `LEVEL:MEMBERS` and then, each a word, `KEY=VALUE`.
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
        let mut options = MdOptions::default();
        for word in rest {
            match word.split_once('=') {
                Some(("chunk_kb", value)) => match value.parse() {
                    Ok(kb) => options.chunk_kb = Some(kb),
                    Err(_) => return bad(format!("'{}' is not chunk_kb=NUMBER", shown(word))),
                },
                Some(("layout", value)) => options.layout = Some(value.to_owned()),
                Some(("bitmap", value)) => options.bitmap = Some(value.to_owned()),
                Some((key, _)) => return bad(no_such("key of an array", key, &KEYS)),
                None => return bad(format!("'{}' is not KEY=VALUE", shown(word))),
            }
        }
        MdSpec::new(level, members, &options)
    }

    /// Name of the level.
    pub fn level_name(&self) -> &'static str {
        self.level.name()
    }

    /// Length of a chunk in KiB; none where there are no chunks.
    pub fn chunk_kb(&self) -> Option<u32> {
        self.chunk_kb
    }

    /// Where parity or copies lie, if that was said.
    pub fn layout(&self) -> Option<&'static str> {
        self.layout
    }

    /// `none`, or where its bitmap is.
    pub fn bitmap(&self) -> &'static str {
        self.bitmap
    }

    /// How its members make one device, where that is modelled.
    pub fn modelled(&self) -> Option<Level> {
        let is_plain = self.layout.is_none() && self.bitmap == BITMAPS[0];
        match (self.level, self.chunk_kb) {
            _ if !is_plain => None,
            (MdLevel::Raid0, Some(kb)) => Some(Level::Raid0(Stripes::new(2 * kb))),
            (MdLevel::Raid1, _) => Some(Level::Raid1),
            _ => None,
        }
    }

    /// Sectors of the array on members of that size, with superblocks of version 0.90.
    pub fn capacity_sectors(&self, member_sectors: u64) -> u64 {
        let usable = Level::Raid1.capacity_sectors(self.members, member_sectors);
        let chunk = u64::from(self.chunk_kb.unwrap_or(0)) * 2;
        let whole = usable.checked_div(chunk).map_or(usable, |n| n * chunk);
        self.level
            .sectors(self.members, whole, chunk.max(1), self.layout)
    }
}

/// As [`MdSpec::parse`] reads it.
impl fmt::Display for MdSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level_name(), self.members)?;
        if let Some(kb) = self.chunk_kb {
            write!(f, ",chunk_kb={kb}")?;
        }
        if let Some(layout) = self.layout {
            write!(f, ",layout={layout}")?;
        }
        match self.bitmap {
            "none" => Ok(()),
            bitmap => write!(f, ",bitmap={bitmap}"),
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
                Some(md.capacity_sectors(member))
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
        if md.modelled().is_none() {
            return Err(Error::not_modelled(format!(
                "{md} is not modelled; raid0 and raid1 are, and the target kernel has it"
            ))
            .about("md"));
        }
        if self.kernel.series() > LAST {
            return Err(Error::new(format!(
                "md is modelled up to kernel {LAST}, not for {}; the target kernel has it",
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
        let is_modelled = self.kernel.series() <= LAST;
        if self.md.is_some() && is_modelled && self.kernel.series() != READ {
            notes.push(format!(
                "md of kernel {} is modelled as that of {READ}",
                self.kernel
            ));
        }
        notes
    }
}
