// SPDX-License-Identifier: MIT OR Apache-2.0
//! How disks make an md array: levels, and which member has a sector.
//!
//! Source: drivers/md/{raid0,md}.c, 2.6.28. Members are of one size, so a RAID 0
//! has one zone.

use crate::Bio;

/// Most members of an array: as many disks as one major number has.
pub const MEMBERS_MAX: u32 = 16;

/// Space that a version 0.90 superblock keeps free, and to which it rounds.
const SUPERBLOCK_SECTORS: u64 = 128;

/// How the members make one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Chunk after chunk on one member after the other.
    Raid0(Stripes),
    /// The same on every member.
    Raid1,
}

impl Level {
    /// Sectors of an array on members of that size with superblocks of
    /// version 0.90.
    pub fn capacity_sectors(self, nr_members: u32, member_sectors: u64) -> u64 {
        let rounded = member_sectors / SUPERBLOCK_SECTORS * SUPERBLOCK_SECTORS;
        let usable = rounded.saturating_sub(SUPERBLOCK_SECTORS);
        match self {
            Level::Raid0(stripes) => stripes.whole(usable).saturating_mul(u64::from(nr_members)),
            Level::Raid1 => usable,
        }
    }
}

/// Chunks of one length that go round the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripes {
    chunk_sectors: u32,
}

impl Stripes {
    /// Chunks of that length, at least 1 sector.
    pub fn new(chunk_sectors: u32) -> Stripes {
        Stripes {
            chunk_sectors: chunk_sectors.max(1),
        }
    }

    /// Length of a chunk.
    pub fn chunk_sectors(self) -> u32 {
        self.chunk_sectors
    }

    /// The part of a member that whole chunks fill.
    pub fn whole(self, member_sectors: u64) -> u64 {
        let chunk = u64::from(self.chunk_sectors);
        member_sectors / chunk * chunk
    }

    /// Member and sector on it.
    pub fn place(self, sector: u64, nr_members: u32) -> (u32, u64) {
        let (chunk, n) = (u64::from(self.chunk_sectors), u64::from(nr_members));
        let (number, offset) = (sector / chunk, sector % chunk);
        ((number % n) as u32, number / n * chunk + offset)
    }

    /// Chunks that a bio touches; 1 if it is empty.
    pub fn nr_pieces(self, bio: &Bio) -> u32 {
        let chunk = u64::from(self.chunk_sectors);
        let last = bio.end().saturating_sub(1).max(bio.sector);
        u32::try_from(last / chunk - bio.sector / chunk + 1).unwrap_or(u32::MAX)
    }

    /// The part of a bio that lies in its first chunk, and the rest.
    pub fn cut(self, bio: Bio) -> (Bio, Option<Bio>) {
        let chunk = u64::from(self.chunk_sectors);
        let room = (chunk - bio.sector % chunk) as u32;
        if bio.nr_sectors <= room {
            return (bio, None);
        }
        let part = |sector, nr_sectors: u32| {
            // In proportion: a piece of contiguous memory stays one.
            let share = u64::from(bio.segments) * u64::from(nr_sectors);
            let segments = share.div_ceil(u64::from(bio.nr_sectors)).max(1);
            Bio {
                sector,
                nr_sectors,
                segments: u16::try_from(segments).unwrap_or(u16::MAX),
                ..bio
            }
        };
        let rest = part(bio.sector + u64::from(room), bio.nr_sectors - room);
        (part(bio.sector, room), Some(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_go_round() {
        let s = Stripes::new(128);
        let places = [
            (0, (0, 0)),
            (127, (0, 127)),
            (128, (1, 0)),
            (255, (1, 127)),
            (256, (2, 0)),
            (384, (0, 128)),
            (1000, (1, 128 * 2 + 104)),
        ];
        for (sector, place) in places {
            assert_eq!(s.place(sector, 3), place, "sector {sector}");
        }
    }

    #[test]
    fn a_bio_is_cut_at_each_chunk() {
        let s = Stripes::new(128);
        let mut rest = Some(Bio {
            sector: 120,
            nr_sectors: 256,
            segments: 32,
            ..Bio::default()
        });
        assert_eq!(rest.as_ref().map(|b| s.nr_pieces(b)), Some(3));
        let mut pieces = Vec::new();
        while let Some(bio) = rest {
            let (piece, after) = s.cut(bio);
            pieces.push((piece.sector, piece.nr_sectors, piece.segments));
            rest = after;
        }
        assert_eq!(pieces, [(120, 8, 1), (128, 128, 16), (256, 120, 15)]);
    }

    #[test]
    fn what_lies_in_a_chunk_or_is_empty_is_one_piece() {
        let s = Stripes::new(128);
        for (sector, nr_sectors) in [(0, 128), (128, 8), (200, 56), (128, 0), (0, 0)] {
            let bio = Bio {
                sector,
                nr_sectors,
                ..Bio::default()
            };
            assert_eq!(s.nr_pieces(&bio), 1, "{sector}+{nr_sectors}");
            assert_eq!(s.cut(bio), (bio, None));
        }
    }
}
