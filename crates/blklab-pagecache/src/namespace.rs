// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names: directories, and what system calls do with them (fs/namei.c,
//! fs/open.c, fs/readdir.c).
//!
//! Here is what all filesystems have in common: the tree, the mutex of a
//! directory, names and inodes that are in memory, processor time. What is read
//! and written for it is the filesystem's ([`crate::ops::Ops`]).
//!
//! Files have no names but numbers; a name's length and a hash of it stand for
//! it. Left out: links, symbolic links, renaming, permissions, names that are
//! looked up in vain and remembered.

use crate::cache::PageCache;
use crate::config::OpCosts;
use crate::error::FsError;
use crate::file::{Fd, File, FileId, Name};
use crate::ops::{Host, Ops};
use crate::state::State;
use crate::volume::on_volume;
use blklab_types::Span;
use std::ops::Range;

impl State {
    /// The directory at the top of the volume.
    pub(crate) fn new_root(&mut self) {
        let mut file = File::new(0);
        file.directory = Some(Box::default());
        file.in_memory = true;
        file.on_volume = true;
        self.root = FileId(self.files.len() as u32);
        file.parent = self.root;
        self.files.push(file);
    }

    /// A new file or directory, not yet in its directory.
    pub(crate) fn new_file(&mut self, parent: FileId, name: Name, directory: bool) -> FileId {
        let id = FileId(self.files.len() as u32);
        let mut file = File::new(0);
        file.parent = parent;
        file.name = name;
        file.directory = directory.then(Box::default);
        file.in_memory = true;
        file.on_volume = true;
        self.files.push(file);
        id
    }

    /// The entries of a directory.
    pub fn entries(&mut self, directory: FileId) -> Result<&mut Vec<FileId>, FsError> {
        let directory = self.files[directory.idx()].directory.as_mut();
        directory
            .map(|d| &mut d.entries)
            .ok_or(FsError::NotDirectory)
    }

    fn exists(&self, id: FileId) -> Result<(), FsError> {
        let there = self.files.get(id.idx()).is_some_and(|f| !f.removed);
        there.then_some(()).ok_or(FsError::BadHandle)
    }

    /// The part of a file's path nearest to the top that is not in memory.
    fn first_cold(&self, id: FileId) -> Option<FileId> {
        let up = |id: &FileId| Some(self.files[id.idx()].parent).filter(|p| p != id);
        let path = std::iter::successors(Some(id), up);
        path.take_while(|id| !self.files[id.idx()].in_memory).last()
    }

    /// The directory that a file is in.
    fn parent(&self, id: FileId) -> Result<FileId, FsError> {
        self.exists(id)?;
        Ok(self.files[id.idx()].parent)
    }
}

impl<H: Host> PageCache<H> {
    /// The directory at the top of the volume.
    pub fn root(&self) -> FileId {
        self.with(|s| s.root)
    }

    async fn spend_call(&self, cost: impl FnOnce(&OpCosts) -> Span) {
        self.spend(cost(&self.config.op_costs)).await;
    }

    /// `open` with `O_CREAT` of a name that is not there, without the opening.
    ///
    /// # Errors
    /// [`FsError::BadHandle`], [`FsError::NotDirectory`],
    /// [`FsError::NoSpace`], [`FsError::Io`].
    pub async fn create(&self, directory: FileId, name: Name) -> Result<FileId, FsError> {
        self.spend_call(|c| c.create).await;
        self.make(directory, name, false).await
    }

    /// `mkdir` of a name that is not there.
    ///
    /// # Errors
    /// As [`PageCache::create`].
    pub async fn mkdir(&self, directory: FileId, name: Name) -> Result<FileId, FsError> {
        self.spend_call(|c| c.create).await;
        self.make(directory, name, true).await
    }

    /// `vfs_create`, `vfs_mkdir`.
    async fn make(
        &self,
        parent: FileId,
        name: Name,
        is_directory: bool,
    ) -> Result<FileId, FsError> {
        self.with(|s| {
            s.exists(parent)?;
            s.entries(parent).map(|_| ())
        })?;
        self.load(parent).await?;
        self.lock_inode(parent).await;
        let id = self.with(|s| s.new_file(parent, name, is_directory));
        let made = on_volume!(self, create(parent, id));
        self.with(|s| match made {
            Ok(()) => s.entries(parent).map(|e| e.push(id)),
            Err(_) => {
                s.file(id).removed = true;
                Ok(())
            }
        })?;
        self.unlock_inode(parent);
        made.map(|()| id)
    }

    /// Reads what is not in memory of a path, from the top on: each entry and
    /// its inode.
    async fn load(&self, id: FileId) -> Result<(), FsError> {
        while let Some(id) = self.with(|s| s.first_cold(id)) {
            self.load_one(id).await?;
        }
        on_volume!(self, revalidate(id))
    }

    /// Reads a file's entry and its inode if they are not in memory (`real_lookup`,
    /// later `lookup_slow`).
    async fn load_one(&self, id: FileId) -> Result<(), FsError> {
        let parent = self.with(|s| s.parent(id))?;
        self.lock_inode(parent).await;
        let found = if self.with(|s| s.file(id).in_memory) {
            Ok(())
        } else {
            on_volume!(self, look_up(parent, id))
        };
        self.with(|s| s.file(id).in_memory |= found.is_ok());
        self.unlock_inode(parent);
        found
    }

    /// `stat` of a name that is there, its directory having been looked up.
    ///
    /// # Errors
    /// [`FsError::BadHandle`], [`FsError::Io`].
    pub async fn stat(&self, id: FileId) -> Result<(), FsError> {
        self.with(|s| s.exists(id))?;
        self.spend_call(|c| c.stat).await;
        self.load(id).await
    }

    /// `stat` of a name that is not there.
    ///
    /// # Errors
    /// [`FsError::BadHandle`], [`FsError::Io`].
    pub async fn stat_missing(&self, directory: FileId) -> Result<(), FsError> {
        self.with(|s| s.exists(directory))?;
        self.spend_call(|c| c.stat).await;
        self.load(directory).await
    }

    /// `open` of a file that is there.
    ///
    /// # Errors
    /// [`FsError::BadHandle`], [`FsError::Io`].
    pub async fn open_file(&self, id: FileId) -> Result<Fd, FsError> {
        self.with(|s| s.exists(id))?;
        self.spend_call(|c| c.open).await;
        self.load(id).await?;
        on_volume!(self, opened(id))?;
        self.open(id, false)
    }

    /// `close`.
    ///
    /// # Errors
    /// [`FsError::BadHandle`].
    pub async fn close(&self, fd: Fd) -> Result<(), FsError> {
        let open = self.opened(fd)?;
        self.spend_call(|c| c.close).await;
        let last = self.with(|s| {
            s.free_fds.push(fd);
            let file = s.file(open.file);
            file.nr_open -= 1;
            file.nr_open == 0
        });
        on_volume!(self, close(open.file, open.wrote));
        if last && self.with(|s| s.file(open.file).removed) {
            self.delete_inode(open.file).await?;
        }
        Ok(())
    }

    /// `readdir` to the end (`vfs_readdir`): the files in the order in which the
    /// filesystem lists them.
    ///
    /// # Errors
    /// [`FsError::BadHandle`], [`FsError::NotDirectory`], [`FsError::Io`].
    pub async fn list(&self, directory: FileId) -> Result<Vec<FileId>, FsError> {
        self.with(|s| s.exists(directory))?;
        self.load(directory).await?;
        self.lock_inode(directory).await;
        let read = on_volume!(self, list(directory));
        self.unlock_inode(directory);
        read?;
        on_volume!(self, accessed(directory));
        let mut entries = self.with(|s| s.entries(directory).cloned())?;
        let cost = self.config.op_costs.list_entry.ns();
        self.spend(Span(cost * entries.len() as u64)).await;
        self.with(|s| entries.sort_by_key(|e| self.filesystem.list_key(s, *e)));
        Ok(entries)
    }

    /// `unlink` of a file, or `rmdir` of an empty directory.
    ///
    /// # Errors
    /// [`FsError::BadHandle`], [`FsError::NotEmpty`], [`FsError::Io`].
    pub async fn unlink(&self, id: FileId) -> Result<(), FsError> {
        let parent = self.with(|s| s.parent(id))?;
        if parent == id {
            return Err(FsError::NotEmpty);
        }
        self.spend_call(|c| c.unlink).await;
        self.load(id).await?;
        self.lock_inode(parent).await;
        let gone = self.remove_name(parent, id).await;
        self.unlock_inode(parent);
        gone?;
        if self.with(|s| s.file(id).nr_open == 0) {
            self.delete_inode(id).await?;
        }
        Ok(())
    }

    /// `vfs_unlink`, `vfs_rmdir`.
    async fn remove_name(&self, parent: FileId, id: FileId) -> Result<(), FsError> {
        self.with(|s| {
            s.exists(id)?;
            match &s.file(id).directory {
                Some(d) if !d.entries.is_empty() => Err(FsError::NotEmpty),
                _ => Ok(()),
            }
        })?;
        self.lock_inode(id).await;
        let gone = on_volume!(self, remove_entry(parent, id));
        self.unlock_inode(id);
        gone?;
        self.with(|s| {
            s.file(id).removed = true;
            s.entries(parent).map(|e| e.retain(|x| *x != id))
        })
    }

    /// Nobody has the file any more (`iput_final`).
    async fn delete_inode(&self, id: FileId) -> Result<(), FsError> {
        self.drop_pages(id).await;
        self.wait_synced(id).await;
        let freed = on_volume!(self, remove_inode(id));
        self.with(|s| {
            s.lists_of(id).remove(id);
            let (name, parent) = (s.file(id).name, s.file(id).parent);
            let mut file = File::new(0);
            (file.name, file.parent, file.removed) = (name, parent, true);
            *s.file(id) = file;
        });
        freed
    }

    /// `ftruncate` to nothing.
    ///
    /// # Errors
    /// [`FsError::BadHandle`], [`FsError::Io`].
    pub async fn truncate(&self, fd: Fd) -> Result<(), FsError> {
        let id = self.opened(fd)?.file;
        self.lock_inode(id).await;
        self.with(|s| s.file(id).size_bytes = 0);
        self.drop_pages(id).await;
        let cut = on_volume!(self, truncate(id));
        self.unlock_inode(id);
        cut
    }

    /// Drops all pages of a file, dirty ones too, when what is on its way has
    /// arrived (`truncate_inode_pages`).
    async fn drop_pages(&self, id: FileId) {
        on_volume!(self, invalidate(id, 0..u64::MAX));
        let is_on_volume = self.is_on_volume(id);
        while let Some(page) = self.with(|s| s.file(id).cached.next_set(0, u64::MAX)) {
            self.wait_unlocked(id, page).await;
            self.wait_writeback(id, page).await;
            self.with(|s| {
                let idle = s.idle_from(id, page);
                if is_on_volume {
                    self.filesystem.dropped(s, id, &idle);
                }
                s.forget_pages(id, idle);
            });
        }
    }
}

impl State {
    /// Pages from one on, up to the first that is locked or on its way.
    fn idle_from(&self, id: FileId, page: u64) -> Range<u64> {
        let file = &self.files[id.idx()];
        let busy = [&file.locked, &file.writeback];
        let busy = busy
            .into_iter()
            .filter_map(|bits| bits.next_set(page, u64::MAX));
        page..busy.min().unwrap_or(u64::MAX)
    }

    /// Drops pages, whatever their state.
    fn forget_pages(&mut self, id: FileId, run: Range<u64>) {
        let file = &mut self.files[id.idx()];
        self.nr_dirty -= file.dirty.clear(run.clone());
        file.towrite.clear(run.clone());
        file.pinned.clear(run.clone());
        self.nr_cached -= self.lru.forget_pages(file, run);
    }
}
