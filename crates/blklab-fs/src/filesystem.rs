// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the page cache asks of a filesystem, and who answers.
//!
//! A filesystem gives files their places and adds the traffic and the waits of
//! its metadata at these points; where one does nothing, nothing happens:
//!
//! | the page cache | asks |
//! |---|---|
//! | creates files before a run | [`State::ext_create`] and the like |
//! | begins a write | [`PageCache::begin_write`]: times, space known at once |
//! | has copied pages | [`PageCache::dirty_written`]: places, dirty pages, journal |
//! | writes a page out | [`crate::writeback`]: runs of pages, or buffer by buffer |
//! | maps a page for reading | [`PageCache::load_mapping`]: blocks of pointers |
//! | ends a read | [`PageCache::accessed`]: access time |
//! | syncs a file, the machine | [`PageCache::sync_metadata`], [`PageCache::sync_filesystem`] |
//! | starts | [`PageCache::start_filesystem`]: threads of its own |

use crate::cache::{FsError, PageCache};
use crate::config::Config;
use crate::ext3::{Ext, ExtOptions};
use crate::file::FileId;
use crate::host::Host;
use crate::state::State;
use blklab_types::PAGE_BYTES;
use std::ops::Range;

/// What the files lie on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filesystem {
    /// Space in ascending order, no metadata ([`crate::Layout`]).
    #[default]
    Extents,
    /// ext2 or ext3.
    Ext(ExtOptions),
}

impl State {
    /// Makes the volume.
    pub(crate) fn mount(&mut self, config: &Config) -> Result<(), String> {
        let Filesystem::Ext(options) = config.filesystem else {
            return Ok(());
        };
        let sectors = config.layout.start_sector..config.layout.end_sector;
        let ext = Ext::new(options, sectors, FileId(self.files.len() as u32))?;
        self.files.push(ext.device_file());
        self.ext = Some(Box::new(ext));
        Ok(())
    }
}

impl<H: Host> PageCache<H> {
    fn on_ext(&self, id: FileId) -> bool {
        self.with(|s| s.on_ext(id))
    }

    /// Starts the filesystem's threads.
    pub(crate) fn start_filesystem(&self) {
        self.start_journal();
    }

    /// A write up to `end` bytes begins; its file is locked.
    pub(crate) async fn begin_write(&self, id: FileId, end: u64) -> Result<(), FsError> {
        if self.on_ext(id) {
            self.ext_modified(id).await;
            return Ok(());
        }
        self.allocate(id, end)
    }

    /// A direct write up to `end` bytes needs its blocks now.
    pub(crate) async fn place_direct(&self, id: FileId, end: u64) -> Result<(), FsError> {
        if self.on_ext(id) {
            self.ext_modified(id).await;
            return self.ext_reserve(id, end.div_ceil(PAGE_BYTES)).await;
        }
        self.allocate(id, end)
    }

    /// Pages have been copied: makes them dirty, and the file at least `end`
    /// bytes long.
    pub(crate) async fn dirty_written(
        &self,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        if self.on_ext(id) {
            self.ext_dirty_pages(id, run).await?;
            self.with(|s| {
                let file = s.file(id);
                file.size_bytes = file.size_bytes.max(end);
            });
        } else {
            self.set_dirty(id, run, end, false).await;
        }
        Ok(())
    }

    /// A page is about to be mapped for a read.
    pub(crate) async fn load_mapping(&self, id: FileId, page: u64) {
        if self.on_ext(id) {
            self.ext_load_leaf(id, page).await;
        }
    }

    /// A read of a file has ended.
    pub(crate) async fn accessed(&self, id: FileId) {
        if self.on_ext(id) {
            self.ext_accessed(id).await;
        }
    }

    /// The filesystem's step of fsync.
    pub(crate) async fn sync_metadata(&self, id: FileId, data_only: bool) {
        if self.on_ext(id) {
            self.ext_sync(id, data_only).await;
        }
    }

    /// The filesystem's step of sync.
    pub(crate) async fn sync_filesystem(&self) {
        if self.with(|s| s.ext.as_ref().is_some_and(|e| e.options.journal)) {
            self.force_commit().await;
        }
    }
}
