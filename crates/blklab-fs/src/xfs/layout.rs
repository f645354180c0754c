// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where things lie on an XFS volume: allocation groups of equal size, each
//! with its headers in front, and the log in the middle one (mkfs.xfs, 2008).
//!
//! Blocks are numbered from the beginning of the volume.

use super::options::XfsOptions;
use blklab_types::PAGE_SECTORS;
use std::ops::Range;

/// Blocks at the beginning of a group that are never given out: headers (4
/// sectors of the first), the roots of the three B+trees, and the reserve of
/// free blocks for these trees.
pub(super) const HEADER_BLOCKS: u64 = 8;
/// The log begins behind the roots.
const LOG_OFFSET: u64 = 4;
/// Most blocks of a group: 1 TiB.
const MAX_AG_BLOCKS: u64 = 1 << 28;
/// Groups that mkfs makes of a disk that is no array.
const DEFAULT_AG_COUNT: u64 = 4;
/// Least blocks of a group, 16 MiB.
const MIN_AG_BLOCKS: u64 = 4096;

/// A volume's geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) start_sector: u64,
    pub(super) blocks: u64,
    pub(super) ag_blocks: u64,
    pub(super) ag_count: u64,
    pub(super) log_start: u64,
    pub(super) log_blocks: u64,
}

/// Blocks of the log if none are asked for: a 2048th of the volume, between 10
/// and 128 MiB.
pub fn default_log_blocks(blocks: u64) -> u64 {
    (blocks / 2048).clamp(2560, 32_768)
}

impl Geometry {
    /// The geometry of a volume on these sectors.
    ///
    /// # Errors
    /// A volume that is too small for its groups or its log.
    pub(super) fn new(sectors: Range<u64>, o: &XfsOptions) -> Result<Geometry, String> {
        let blocks = sectors.end.saturating_sub(sectors.start) / PAGE_SECTORS;
        let least = blocks.div_ceil(MAX_AG_BLOCKS);
        let ag_count = match o.ag_count {
            Some(n) => u64::from(n).max(least),
            None => least.max(DEFAULT_AG_COUNT.min(blocks / MIN_AG_BLOCKS)),
        };
        let ag_blocks = blocks.div_ceil(ag_count.max(1));
        let log_blocks = o.log_blocks.unwrap_or_else(|| default_log_blocks(blocks));
        let last = blocks.saturating_sub(ag_blocks * ag_count.saturating_sub(1));
        if ag_count == 0 || ag_blocks < MIN_AG_BLOCKS || last < 64 {
            return Err(format!(
                "a volume of {blocks} blocks cannot have {ag_count} allocation groups of at least \
                 {MIN_AG_BLOCKS} blocks"
            ));
        }
        let log_ag = ag_count / 2;
        let room = (blocks - log_ag * ag_blocks).min(ag_blocks);
        if log_blocks + 2 * HEADER_BLOCKS > room {
            return Err(format!(
                "a log of {log_blocks} blocks does not fit an allocation group of {room} blocks"
            ));
        }
        if log_blocks * 4096 < 4 * u64::from(o.log_buffers) * u64::from(o.log_buffer_bytes) {
            return Err(format!(
                "a log of {log_blocks} blocks is too small for {} buffers of {} bytes: it must \
                 hold them four times",
                o.log_buffers, o.log_buffer_bytes
            ));
        }
        Ok(Geometry {
            start_sector: sectors.start,
            blocks,
            ag_blocks,
            ag_count,
            log_start: log_ag * ag_blocks + LOG_OFFSET,
            log_blocks,
        })
    }

    /// Blocks of a group.
    pub(super) fn blocks_of(&self, ag: u64) -> u64 {
        (self.blocks - ag * self.ag_blocks).min(self.ag_blocks)
    }

    /// The blocks of a group that may be given out.
    pub(super) fn free_at_first(&self, ag: u64) -> Range<u64> {
        let start = ag * self.ag_blocks;
        let end = start + self.blocks_of(ag);
        let log_end = self.log_start + self.log_blocks;
        if (start..end).contains(&self.log_start) {
            return log_end + LOG_OFFSET..end;
        }
        start + HEADER_BLOCKS..end
    }

    /// The group of a block.
    pub(super) fn ag_of(&self, block: u64) -> u64 {
        block / self.ag_blocks
    }

    /// The disk's sector where a block begins.
    pub(super) fn sector(&self, block: u64) -> u64 {
        self.start_sector + block * PAGE_SECTORS
    }

    /// The block of a disk's sector.
    pub(super) fn block(&self, sector: u64) -> u64 {
        (sector - self.start_sector) / PAGE_SECTORS
    }

    /// Sectors of the log.
    pub(super) fn log_sectors(&self) -> u64 {
        self.log_blocks * PAGE_SECTORS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xfs::XfsFeatures;
    use blklab_kernel::KernelVersion;

    #[test]
    fn the_volume_of_2008_has_four_groups_and_its_log_in_the_third() {
        let o = XfsOptions::new(XfsFeatures::of(KernelVersion::v2_6(26)));
        let sectors = 20_012_072_960 / 512;
        let g = Geometry::new(63..63 + sectors, &o).unwrap();
        assert_eq!(
            (g.ag_count, g.ag_blocks, g.blocks),
            (4, 1_221_440, 4_885_760)
        );
        assert_eq!((g.log_start, g.log_blocks), (2 * 1_221_440 + 4, 2560));
        assert_eq!(g.free_at_first(2).start, 2 * 1_221_440 + 4 + 2560 + 4);
        assert_eq!(g.sector(1), 63 + 8);
        assert_eq!(g.block(g.sector(77)), 77);
    }

    #[test]
    fn volumes_that_cannot_be_are_refused() {
        let mut o = XfsOptions::new(XfsFeatures::of(KernelVersion::v2_6(26)));
        assert!(Geometry::new(0..1000, &o).is_err());
        o.ag_count = Some(1000);
        assert!(Geometry::new(0..1 << 20, &o).is_err());
        o.ag_count = None;
        o.log_blocks = Some(512);
        o.log_buffer_bytes = 256 << 10;
        assert!(Geometry::new(0..1 << 25, &o).is_err());
    }
}
