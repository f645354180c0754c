// SPDX-License-Identifier: MIT OR Apache-2.0
//! The settings of the machine's page cache, checked once.

use crate::features::{BioBound, Features};
use crate::layout::Layout;
use crate::limits::Memory;
use blklab_types::{COPY_BYTES_PER_S, DiscardLimits, PAGE_BYTES, PAGE_SECTORS, Span};
use std::fmt;

/// Processor time of calls on names, besides waiting: of a machine with 2.4 GHz
/// in 2008 (estimates).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpCosts {
    /// `open` of a new file, `mkdir`.
    pub create: Span,
    /// `open` of a file that is there.
    pub open: Span,
    /// `close`.
    pub close: Span,
    /// `unlink`, `rmdir`.
    pub unlink: Span,
    /// `stat`.
    pub stat: Span,
    /// `readdir`, per entry.
    pub list_entry: Span,
    /// Giving dirty pages an extent at write-out, where allocation is delayed.
    pub allocate: Span,
}

impl OpCosts {
    /// All costs changed alike.
    #[must_use]
    pub fn map(self, f: impl Fn(Span) -> Span) -> OpCosts {
        OpCosts {
            create: f(self.create),
            open: f(self.open),
            close: f(self.close),
            unlink: f(self.unlink),
            stat: f(self.stat),
            list_entry: f(self.list_entry),
            allocate: f(self.allocate),
        }
    }
}

impl Default for OpCosts {
    fn default() -> OpCosts {
        OpCosts {
            create: Span::from_us(60),
            open: Span::from_us(15),
            close: Span::from_us(5),
            unlink: Span::from_us(50),
            stat: Span::from_us(8),
            list_entry: Span::from_us(1),
            allocate: Span::from_us(20),
        }
    }
}

/// Pages that a bio has vectors for (`BIO_MAX_PAGES`, later `BIO_MAX_VECS`).
const MAX_BIO_PAGES: u64 = 256;

/// Settings of a [`crate::PageCache`]. Sizes are bytes unless the name says
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// What the kernel version does.
    pub features: Features,
    /// Write-back of a file is charged to the control group of the first task
    /// that wrote to it (`inode_attach_wb`; the unified hierarchy).
    pub cgroup_writeback: bool,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// The kernel's own memory; 5 % and 64 MiB by default.
    pub kernel_bytes: u64,
    /// Anonymous memory of processes: not available to the page cache.
    pub anon_bytes: u64,
    /// Mapped file pages: they lower the limits up to 2.6.23.
    pub mapped_bytes: u64,
    /// Whether there is swap: without it anonymous memory lowers the limits
    /// from 2.6.32 on (from 3.15 on it does in any case).
    pub swap: bool,
    /// Processors. A task dirties pages on processor `task % cpus`.
    pub cpus: u32,
    /// `vm.dirty_ratio`, percent.
    pub dirty_ratio: u32,
    /// `vm.dirty_background_ratio`, percent.
    pub dirty_background_ratio: u32,
    /// `vm.dirty_bytes` (2.6.29 and later); takes the place of the ratio.
    pub dirty_bytes: Option<u64>,
    /// `vm.dirty_background_bytes`, likewise.
    pub dirty_background_bytes: Option<u64>,
    /// `vm.dirty_writeback_centisecs`; 0 turns periodic writing off.
    pub dirty_writeback_centisecs: u64,
    /// `vm.dirty_expire_centisecs`.
    pub dirty_expire_centisecs: u64,
    /// Pages that background work writes per round (`MAX_WRITEBACK_PAGES`, up
    /// to 3.1).
    pub max_writeback_pages: u64,
    /// Fewest pdflush threads (`MIN_PDFLUSH_THREADS`).
    pub pdflush_min: u32,
    /// Most pdflush threads (`MAX_PDFLUSH_THREADS`).
    pub pdflush_max: u32,
    /// Largest read-ahead window (`read_ahead_kb`).
    pub read_ahead_bytes: u64,
    /// Largest request of the device in pages: from 4.10 on a read-ahead
    /// window may be as large as that.
    pub request_pages: u64,
    /// Speed of copying between user memory and the page cache, bytes per
    /// second.
    pub copy_bytes_per_s: u64,
    /// Processor time per page besides copying: lookup, lock, block mapping.
    pub page_cost: Span,
    /// The same of each page of a write but its first, if it is another.
    pub further_page_cost: Option<Span>,
    /// Processor time per page that is written to the disk, of whoever submits
    /// it: flusher threads, journal threads, callers of fsync.
    pub writeout_cost: Span,
    /// Pages that a bio can hold: see [`Config::bio_pages_of_queue`].
    pub bio_pages: u64,
    /// Share of pages that lie in memory right behind the page before, and are
    /// one segment with it, in percent.
    pub adjacent_pages_percent: u32,
    /// Where files are put: the sectors of the volume, and the places of files
    /// on the filesystem `extents`.
    pub layout: Layout,
    /// Processor time of calls on names.
    pub op_costs: OpCosts,
    /// The disk has a volatile cache and knows FUA (`queue/fua`).
    pub fua: bool,
    /// What the disk discards; none: it has no discards.
    pub discard: Option<DiscardLimits>,
}

/// A setting that cannot work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

impl ConfigError {
    /// Says what cannot work.
    pub fn new(text: String) -> ConfigError {
        ConfigError(text)
    }
}

impl Config {
    /// The defaults for a machine of that size in the years of the kernels
    /// modelled: 1 processor, copies at 1.5 GB/s and 1 us per page, 128 KiB
    /// read-ahead, requests of 512 KiB.
    pub fn new(features: Features, memory_bytes: u64) -> Config {
        Config {
            features,
            memory_bytes,
            cgroup_writeback: false,
            kernel_bytes: (memory_bytes / 20).saturating_add(64 << 20),
            anon_bytes: 0,
            mapped_bytes: 0,
            swap: true,
            cpus: 1,
            dirty_ratio: features.dirty_ratio,
            dirty_background_ratio: features.dirty_background_ratio,
            dirty_bytes: None,
            dirty_background_bytes: None,
            dirty_writeback_centisecs: 500,
            dirty_expire_centisecs: 3000,
            max_writeback_pages: 1024,
            pdflush_min: 2,
            pdflush_max: 8,
            read_ahead_bytes: 128 << 10,
            request_pages: 1024 / PAGE_SECTORS,
            copy_bytes_per_s: COPY_BYTES_PER_S,
            page_cost: Span::from_us(1),
            further_page_cost: None,
            writeout_cost: Span::ZERO,
            bio_pages: Config::bio_pages_of_queue(&features, 1024, 128),
            adjacent_pages_percent: 0,
            layout: Layout::default(),
            op_costs: OpCosts::default(),
            fua: false,
            discard: None,
        }
    }

    /// Pages per bio for a queue of these limits: at most 256 pages, and
    /// where the block layer does not split bios the queue's segments and its
    /// request size.
    pub fn bio_pages_of_queue(features: &Features, max_sectors: u32, max_segments: u16) -> u64 {
        match features.bio_bound {
            BioBound::Queue => (u64::from(max_sectors) / PAGE_SECTORS)
                .min(u64::from(max_segments))
                .clamp(1, MAX_BIO_PAGES),
            BioBound::Vectors => MAX_BIO_PAGES,
        }
    }

    /// Pages of memory as the dirty limits see them.
    pub fn memory(&self) -> Memory {
        Memory {
            total_pages: self.memory_bytes.saturating_sub(self.kernel_bytes) / PAGE_BYTES,
            mapped_pages: self.anon_bytes.saturating_add(self.mapped_bytes) / PAGE_BYTES,
            anon_pages: self.anon_bytes / PAGE_BYTES,
            swap: self.swap,
        }
    }

    /// Pages that may cache files.
    pub fn cache_pages(&self) -> u64 {
        self.memory()
            .total_pages
            .saturating_sub(self.anon_bytes / PAGE_BYTES)
    }

    /// Largest read-ahead window in pages.
    pub fn read_ahead_pages(&self) -> u64 {
        self.read_ahead_bytes / PAGE_BYTES
    }

    /// Processor time of copying so many bytes that lie in so many pages.
    pub(crate) fn copy_cost(&self, bytes: u64, pages: u64) -> Span {
        let pages = self.page_cost.ns().saturating_mul(pages);
        Span(self.copy_ns(bytes).saturating_add(pages))
    }

    /// The same of a part of a write, with the first of all its pages or without.
    pub(crate) fn write_cost(&self, bytes: u64, pages: u64, has_first: bool) -> Span {
        let first = u64::from(has_first).min(pages);
        let further = self.further_page_cost.unwrap_or(self.page_cost);
        let further = further.ns().saturating_mul(pages - first);
        Span(self.copy_cost(bytes, first).ns().saturating_add(further))
    }

    /// Time in ns to copy so many bytes.
    fn copy_ns(&self, bytes: u64) -> u64 {
        let copy = u128::from(bytes) * 1_000_000_000 / u128::from(self.copy_bytes_per_s);
        u64::try_from(copy).unwrap_or(u64::MAX)
    }

    /// Checks what the model relies on.
    ///
    /// # Errors
    /// Names the first setting that cannot work.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let demands = [
            (
                self.cache_pages() >= 1024,
                format!(
                    "memory of {} bytes leaves {} pages for the page cache beside {} bytes of the kernel and {} of \
                     processes; at least 1024 are needed",
                    self.memory_bytes,
                    self.cache_pages(),
                    self.kernel_bytes,
                    self.anon_bytes
                ),
            ),
            (self.cpus > 0, "a machine has at least 1 processor".to_owned()),
            (
                self.dirty_ratio <= 100 && self.dirty_background_ratio <= 100,
                "dirty_ratio and dirty_background_ratio are at most 100 percent".to_owned(),
            ),
            (
                (1..=self.pdflush_max).contains(&self.pdflush_min),
                "pdflush needs at least 1 thread, and no more threads at the least than at the most".to_owned(),
            ),
            (self.max_writeback_pages > 0, "max_writeback_pages is at least 1".to_owned()),
            (self.copy_bytes_per_s > 0, "copy_bytes_per_s is at least 1".to_owned()),
            ((1..=MAX_BIO_PAGES).contains(&self.bio_pages), "a bio holds 1 to 256 pages".to_owned()),
            (
                self.layout.chunk_pages > 0 && self.layout.growth_pages > 0,
                "chunk_pages and growth_pages of the layout are at least 1".to_owned(),
            ),
        ];
        demands
            .into_iter()
            .find(|(met, _)| !met)
            .map_or(Ok(()), |(_, text)| Err(ConfigError(text)))
    }
}
