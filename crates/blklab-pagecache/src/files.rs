// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files: those from before the run, opening them, and where they lie.

use crate::cache::PageCache;
use crate::error::FsError;
use crate::file::{Advice, Fd, File, FileId, Name, OSync, OpenFile};
use crate::layout::{Extent, Extents};
use crate::ops::{Host, Ops};
use crate::range::file_range;
use crate::readahead::RaState;

impl<H: Host> PageCache<H> {
    /// A file of that size as an earlier run left it: on the disk, contiguous
    /// as the layout allows, not in the cache. Laying files out (`fio` does it
    /// before its jobs start) takes no simulated time.
    ///
    /// # Errors
    /// [`FsError::NoSpace`], [`FsError::TooBig`].
    pub fn create_laid_out(&self, size_bytes: u64) -> Result<FileId, FsError> {
        file_range(0, size_bytes)?;
        self.with(|s| {
            let id = s.new_file(s.root, Name::default(), false);
            s.file(id).size_bytes = size_bytes;
            let pages = s.file(id).eof_pages();
            if !self.filesystem.lay_out(s, id, pages) {
                s.files.pop();
                return Err(FsError::NoSpace);
            }
            let root = s.root;
            s.entries(root)?.push(id);
            Ok(id)
        })
    }

    /// An empty file. If the size that it will have is given, its space is
    /// set aside now, in one piece as the layout allows; otherwise it grows by
    /// reservations, between other growing files.
    ///
    /// # Errors
    /// [`FsError::NoSpace`], [`FsError::TooBig`].
    pub fn create_empty(&self, final_bytes: Option<u64>) -> Result<FileId, FsError> {
        let set_aside = if self.traits.sets_space_aside {
            final_bytes.unwrap_or(0)
        } else {
            0
        };
        file_range(0, final_bytes.unwrap_or(0))?;
        let id = self.create_laid_out(set_aside)?;
        self.with(|s| {
            s.file(id).size_bytes = 0;
            s.file(id).grows = final_bytes.is_none();
        });
        Ok(id)
    }

    /// The disk itself as a file (`/dev/sda`), from `start_sector` on. It may
    /// overlap files that the layout has placed.
    pub fn create_raw(&self, start_sector: u64, size_bytes: u64) -> FileId {
        self.with(|s| {
            let mut file = File::new(size_bytes);
            file.is_device = true;
            file.extents = Extents::raw(start_sector, file.eof_pages());
            file.buffers.present = self.config.features.device_buffers;
            s.files.push(file);
            FileId(s.files.len() as u32 - 1)
        })
    }

    /// A file becomes a block device: a part of the disk, as a partition is, which has its
    /// size from the start.
    pub fn make_part(&self, id: FileId) {
        let present = self.config.features.device_buffers;
        self.with(|s| {
            let file = s.file(id);
            file.is_device = true;
            file.size_bytes = file
                .size_bytes
                .max(file.extents.pages() * blklab_types::PAGE_BYTES);
            file.buffers.present = present;
        });
    }

    /// Opens a file.
    ///
    /// # Errors
    /// [`FsError::BadHandle`].
    pub fn open(&self, file: FileId, sync: impl Into<OSync>) -> Result<Fd, FsError> {
        let sync = sync.into();
        let max = self.config.read_ahead_pages();
        self.with(|s| {
            s.files.get(file.idx()).ok_or(FsError::BadHandle)?;
            let mapped_as = Advice::Normal;
            let ra = RaState::new(max);
            s.file(file).nr_open += 1;
            let open = OpenFile {
                file,
                sync,
                ra,
                random: false,
                prev_end: 0,
                wrote: false,
                mapped_as,
            };
            if let Some(fd) = s.free_fds.pop() {
                s.open[fd.0 as usize] = open;
                return Ok(fd);
            }
            s.open.push(open);
            Ok(Fd(s.open.len() as u32 - 1))
        })
    }

    /// Size of a file in bytes; 0 for a file that does not exist.
    pub fn size_bytes(&self, file: FileId) -> u64 {
        self.with(|s| s.files.get(file.idx()).map_or(0, |f| f.size_bytes))
    }

    /// Where a file lies.
    pub fn extents(&self, file: FileId) -> Vec<Extent> {
        self.with(|s| {
            let Some(f) = s.files.get(file.idx()) else {
                return Vec::new();
            };
            let own = self.filesystem.extents_of(file);
            own.unwrap_or_else(|| f.extents.runs().to_vec())
        })
    }
}
