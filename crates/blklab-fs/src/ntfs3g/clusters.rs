// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which clusters are taken, and where the volume's own data lie (mkntfs and
//! ntfs-3g of 2008, from their documents and from what they write; their
//! source was not read).
//!
//! ```text
//! boot │ MFT, its zone: an eighth │ log │ MFT bitmap │ volume bitmap │ data …
//! ```
//!
//! A cluster is 4 KiB. Data are taken from a cursor behind the volume's own
//! ones on, in a row; when they reach the end, from the start of that region
//! again, and from the MFT's zone last.

use blklab_types::{PAGE_BYTES, PAGE_SECTORS};
use std::ops::Range;

/// Clusters in front of the MFT.
const BOOT_CLUSTERS: u64 = 4;
/// Bytes of a record of the MFT.
pub(super) const RECORD_BYTES: u64 = 1024;
/// Records in a cluster.
pub(super) const RECORDS: u64 = PAGE_BYTES / RECORD_BYTES;
/// Records that belong to the volume.
pub(super) const OWN_RECORDS: u64 = 64;
/// Bits in a cluster of a bitmap.
const CLUSTER_BITS: u64 = PAGE_BYTES * 8;
/// Largest log.
const LOG_CLUSTERS: u64 = (64 << 20) / PAGE_BYTES;
/// Smallest volume.
const LEAST_CLUSTERS: u64 = 4096;

/// The clusters of a volume.
#[derive(Clone, Debug)]
pub(super) struct Clusters {
    taken: Vec<u64>,
    count: u64,
    free: u64,
    /// Where the search for data begins.
    cursor: u64,
    mft_bitmap: u64,
    bitmap: u64,
    data: u64,
    zone_end: u64,
    /// The clusters of the MFT.
    mft: Vec<u64>,
}

impl Clusters {
    /// An empty volume of so many sectors.
    ///
    /// # Errors
    /// If it is too small.
    pub(super) fn new(sectors: u64) -> Result<Clusters, String> {
        let count = sectors / PAGE_SECTORS;
        if count < LEAST_CLUSTERS {
            return Err(format!(
                "ntfs-3g needs a volume of at least {} MiB, this one has {}",
                LEAST_CLUSTERS / 256,
                count / 256
            ));
        }
        let zone_end = count / 8;
        let mft_bitmap = zone_end + (count / 100).clamp(256, LOG_CLUSTERS);
        // A record for every cluster is more than there can be.
        let bitmap = mft_bitmap + count.div_ceil(CLUSTER_BITS);
        let data = bitmap + count.div_ceil(CLUSTER_BITS);
        let mut c = Clusters {
            taken: vec![0; count.div_ceil(64) as usize],
            count,
            free: count,
            cursor: data,
            mft_bitmap,
            bitmap,
            data,
            zone_end,
            mft: Vec::new(),
        };
        c.set(0..BOOT_CLUSTERS);
        c.set(zone_end..data);
        while c.mft.len() as u64 * RECORDS < OWN_RECORDS {
            c.grow_mft();
        }
        Ok(c)
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Free clusters.
    pub(super) fn free(&self) -> u64 {
        self.free
    }

    /// The first cluster of the volume bitmap that describes a cluster.
    pub(super) fn bitmap_of(&self, cluster: u64) -> u64 {
        self.bitmap + cluster / CLUSTER_BITS
    }

    /// The cluster of the MFT's bitmap that describes a record.
    pub(super) fn mft_bitmap_of(&self, record: u64) -> u64 {
        self.mft_bitmap + record / CLUSTER_BITS
    }

    /// The cluster that holds a record.
    pub(super) fn record(&self, record: u64) -> u64 {
        let at = self.mft.get((record / RECORDS) as usize);
        at.copied().unwrap_or(BOOT_CLUSTERS)
    }

    /// Records that the MFT has room for.
    pub(super) fn records(&self) -> u64 {
        self.mft.len() as u64 * RECORDS
    }

    /// Adds a cluster to the MFT: the next, if it is free. False if all
    /// clusters are taken.
    pub(super) fn grow_mft(&mut self) -> bool {
        let next = self.mft.last().map_or(BOOT_CLUSTERS, |c| c + 1);
        let found = self.next_free(next..self.zone_end);
        let found = found.or_else(|| self.next_free(self.data..self.count));
        let Some(cluster) = found else {
            return false;
        };
        self.set(cluster..cluster + 1);
        self.mft.push(cluster);
        true
    }

    /// Takes up to so many clusters in a row, from a place on or from the
    /// cursor. None if all are taken.
    pub(super) fn take(&mut self, behind: Option<u64>, most: u64) -> Option<Range<u64>> {
        let from = behind.map_or(self.cursor, |b| b + 1);
        let start = self
            .next_free(from..self.count)
            .or_else(|| self.next_free(self.data..self.count))
            .or_else(|| self.next_free(BOOT_CLUSTERS..self.data))?;
        let mut end = start + 1;
        while end < self.count && end - start < most && !self.test(end) {
            end += 1;
        }
        self.set(start..end);
        if start >= self.data {
            self.cursor = end;
        }
        Some(start..end)
    }

    /// Gives clusters back.
    pub(super) fn give_back(&mut self, run: Range<u64>) {
        for cluster in run {
            let word = &mut self.taken[(cluster / 64) as usize];
            let bit = 1 << (cluster % 64);
            self.free += u64::from(*word & bit != 0);
            *word &= !bit;
        }
    }

    fn set(&mut self, run: Range<u64>) {
        for cluster in run {
            let word = &mut self.taken[(cluster / 64) as usize];
            let bit = 1 << (cluster % 64);
            self.free -= u64::from(*word & bit == 0);
            *word |= bit;
        }
    }

    fn test(&self, cluster: u64) -> bool {
        self.taken[(cluster / 64) as usize] >> (cluster % 64) & 1 == 1
    }

    fn next_free(&self, run: Range<u64>) -> Option<u64> {
        let mut at = run.start;
        while at < run.end {
            let word = !self.taken[(at / 64) as usize] >> (at % 64);
            if word != 0 {
                let found = at + u64::from(word.trailing_zeros());
                return (found < run.end).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

/// Records of the MFT: which are free.
#[derive(Clone, Debug)]
pub(super) struct Records {
    next: u64,
    free: std::collections::BTreeSet<u64>,
}

impl Default for Records {
    fn default() -> Records {
        Records {
            next: OWN_RECORDS,
            free: std::collections::BTreeSet::new(),
        }
    }
}

impl Records {
    /// The lowest free record. None if the MFT must grow and cannot.
    pub(super) fn take(&mut self, clusters: &mut Clusters) -> Option<u64> {
        if let Some(record) = self.free.pop_first() {
            return Some(record);
        }
        if self.next == clusters.records() && !clusters.grow_mft() {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    /// Clusters of the MFT that would be full if its records were moved
    /// together.
    pub(super) fn used_clusters(&self) -> u64 {
        (self.next - OWN_RECORDS - self.free.len() as u64).div_ceil(RECORDS)
    }

    /// Gives a record back.
    pub(super) fn give_back(&mut self, record: u64) {
        self.free.insert(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_begin_behind_the_zone_and_lie_in_a_row() {
        let mut c = Clusters::new(80_000 * 8).unwrap();
        assert_eq!(c.zone_end, 10_000);
        let a = c.take(None, 3).unwrap();
        assert_eq!(a, c.data..c.data + 3);
        let b = c.take(None, 1).unwrap();
        assert_eq!(b.start, a.end);
        assert_eq!(c.take(Some(b.start), 2), Some(b.end..b.end + 2));
        // What is given back is not looked at before the end is reached.
        c.give_back(a.clone());
        assert_eq!(c.take(None, 1), Some(b.end + 2..b.end + 3));
        assert!(Clusters::new(1000).is_err());
    }

    #[test]
    fn the_mft_grows_in_its_zone_four_records_at_a_time() {
        let mut c = Clusters::new(80_000 * 8).unwrap();
        let mut records = Records::default();
        assert_eq!(c.records(), 64);
        let got: Vec<u64> = (0..5).filter_map(|_| records.take(&mut c)).collect();
        assert_eq!(got, [64, 65, 66, 67, 68]);
        assert_eq!((c.record(64), c.record(68)), (20, 21));
        records.give_back(65);
        assert_eq!(records.take(&mut c), Some(65));
    }

    #[test]
    fn a_full_volume_uses_the_zone_and_then_has_nothing() {
        let mut c = Clusters::new(LEAST_CLUSTERS * 8).unwrap();
        let all = c.free();
        let mut runs = Vec::new();
        while let Some(run) = c.take(None, 100) {
            runs.push(run);
        }
        assert_eq!(c.free(), 0);
        assert!(!c.grow_mft());
        runs.into_iter().for_each(|r| c.give_back(r));
        assert_eq!(c.free(), all);
    }
}
