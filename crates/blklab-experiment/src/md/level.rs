// SPDX-License-Identifier: MIT OR Apache-2.0
//! Levels of md: how members make one device.

use blklab_types::no_such;

/// A level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MdLevel {
    /// One member behind the other.
    Linear,
    /// Chunk after chunk on one member after the other.
    Raid0,
    /// The same on every member.
    Raid1,
    /// Chunks with their parity on the last member.
    Raid4,
    /// Chunks with parity that goes round the members.
    Raid5,
    /// The same with two kinds of parity.
    Raid6,
    /// Chunks that several members have.
    Raid10,
}

/// Where the parity of RAID 5 and 6 lies, as mdadm calls it.
const PARITY: [&str; 4] = [
    "left-asymmetric",
    "right-asymmetric",
    "left-symmetric",
    "right-symmetric",
];

/// Where the copies of RAID 10 lie: side by side, far apart, or one stripe on; and how
/// many there are.
const COPIES: [&str; 6] = ["n2", "n3", "f2", "f3", "o2", "o3"];

impl MdLevel {
    /// All of them.
    const ALL: [MdLevel; 7] = [
        MdLevel::Linear,
        MdLevel::Raid0,
        MdLevel::Raid1,
        MdLevel::Raid4,
        MdLevel::Raid5,
        MdLevel::Raid6,
        MdLevel::Raid10,
    ];

    /// The level of a name.
    ///
    /// # Errors
    /// What is wrong, if there is none.
    pub(super) fn parse(name: &str) -> Result<MdLevel, String> {
        let names = MdLevel::ALL.map(MdLevel::name);
        let found = MdLevel::ALL.into_iter().find(|level| level.name() == name);
        found.ok_or_else(|| no_such("level", name, &names))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            MdLevel::Linear => "linear",
            MdLevel::Raid0 => "raid0",
            MdLevel::Raid1 => "raid1",
            MdLevel::Raid4 => "raid4",
            MdLevel::Raid5 => "raid5",
            MdLevel::Raid6 => "raid6",
            MdLevel::Raid10 => "raid10",
        }
    }

    /// Members that it has at least.
    pub(super) fn members_min(self) -> u32 {
        match self {
            MdLevel::Raid4 | MdLevel::Raid5 => 3,
            MdLevel::Raid6 => 4,
            _ => 2,
        }
    }

    /// Whether it goes round the members in chunks.
    pub(super) fn has_chunks(self) -> bool {
        !matches!(self, MdLevel::Linear | MdLevel::Raid1)
    }

    /// Whether it can lose a member.
    pub fn is_redundant(self) -> bool {
        !matches!(self, MdLevel::Linear | MdLevel::Raid0)
    }

    /// Members of a stripe that hold parity.
    fn nr_parity(self) -> u32 {
        match self {
            MdLevel::Raid4 | MdLevel::Raid5 => 1,
            MdLevel::Raid6 => 2,
            _ => 0,
        }
    }

    /// A layout by its name.
    ///
    /// # Errors
    /// What is wrong, if the level has none of that name.
    pub(super) fn layout(self, name: &str, members: u32) -> Result<&'static str, String> {
        let all: &[&'static str] = match self {
            MdLevel::Raid5 | MdLevel::Raid6 => &PARITY,
            MdLevel::Raid10 => &COPIES,
            _ => return Err(format!("{} has one layout", self.name())),
        };
        let found = all.iter().find(|l| **l == name);
        let found = found.ok_or_else(|| no_such("layout", name, all))?;
        match copies(found) {
            Some((copies, _)) if copies > u64::from(members) => Err(format!(
                "layout={found}: {members} members cannot hold {copies} copies"
            )),
            _ => Ok(found),
        }
    }

    /// Sectors of an array whose members have `whole` sectors in whole chunks.
    pub(super) fn sectors(self, members: u32, whole: u64, chunk: u64, layout: Option<&str>) -> u64 {
        let members = u64::from(members);
        match self {
            MdLevel::Linear | MdLevel::Raid0 => whole.saturating_mul(members),
            MdLevel::Raid1 => whole,
            MdLevel::Raid4 | MdLevel::Raid5 | MdLevel::Raid6 => {
                whole.saturating_mul(members - u64::from(self.nr_parity()))
            }
            MdLevel::Raid10 => {
                let (copies, are_near) = layout.and_then(copies).unwrap_or((2, true));
                let chunks = whole / chunk;
                let all = if are_near {
                    chunks.saturating_mul(members) / copies
                } else {
                    (chunks / copies).saturating_mul(members)
                };
                all.saturating_mul(chunk)
            }
        }
    }
}

/// How many copies a layout of RAID 10 has, and whether they lie side by side.
fn copies(layout: &str) -> Option<(u64, bool)> {
    let (kind, number) = layout.split_at_checked(1)?;
    let number = number.parse().ok()?;
    COPIES.contains(&layout).then_some((number, kind == "n"))
}

#[cfg(test)]
mod tests {
    use crate::{MdOptions, MdSpec};

    /// As mdadm and Linux 6.12 make them of disks of 1 GiB.
    #[test]
    fn capacity_of_each_level() {
        for (text, sectors) in [
            ("linear:2", 4_194_048),
            ("raid0:3", 6_291_072),
            ("raid1:2", 2_097_024),
            ("raid4:3", 4_194_048),
            ("raid5:3", 4_194_048),
            ("raid6:4", 4_194_048),
            ("raid10:4", 4_194_048),
        ] {
            let md = MdSpec::parse(&[text]).expect(text);
            assert_eq!(md.capacity_sectors(1 << 21), sectors, "{text}");
        }
    }

    #[test]
    fn layouts_are_those_of_the_level() {
        let with = |level: &str, layout: &str| {
            let options = MdOptions {
                layout: Some(layout.to_owned()),
                ..MdOptions::default()
            };
            MdSpec::new(level, 4, &options)
        };
        assert!(with("raid5", "left-asymmetric").is_ok());
        assert!(with("raid10", "f2").is_ok());
        for (level, layout) in [("raid5", "f2"), ("raid10", "f"), ("raid0", "n2")] {
            assert!(with(level, layout).is_err(), "{level} {layout}");
        }
    }
}
