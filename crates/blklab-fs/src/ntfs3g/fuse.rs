// SPDX-License-Identifier: MIT OR Apache-2.0
//! FUSE's side: which calls become messages (fs/fuse/{dir,file,dev}.c, 2.6.26).

use super::NtfsOptions;
use super::Volume;
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, FsError, Host, Slab, Sleep, WriteControl};
use blklab_types::{PAGE_BYTES, TaskId};
use std::collections::VecDeque;
use std::ops::Range;

/// Most pages of a message (`FUSE_MAX_PAGES_PER_REQ`).
const MESSAGE_PAGES: u64 = 32;
/// Entries that a page of a listing holds: heads of 24 bytes and names of 10
/// on the average.
const LISTED_PER_MESSAGE: u64 = 100;

/// What the daemon is asked.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Lookup {
        id: FileId,
    },
    Create {
        directory: FileId,
        id: FileId,
    },
    Open {
        id: FileId,
    },
    Write {
        id: FileId,
        pages: Range<u64>,
        end: u64,
    },
    Read {
        id: FileId,
        pages: Range<u64>,
    },
    Flush,
    Release,
    OpenDirectory {
        id: FileId,
    },
    List {
        id: FileId,
    },
    /// The rest of a listing.
    ListMore,
    Unlink {
        directory: FileId,
        id: FileId,
    },
    /// A file without a name is not open any more.
    Free {
        id: FileId,
    },
    Truncate {
        id: FileId,
    },
    Fsync,
}

/// A message.
#[derive(Debug)]
struct Message {
    op: Op,
    /// Who sleeps for the reply.
    waiter: Option<TaskId>,
    reply: Option<Result<(), FsError>>,
}

/// The connection between kernel and daemon.
#[derive(Debug, Default)]
pub(super) struct Fuse {
    messages: Slab<Message>,
    queue: VecDeque<u64>,
    pub(super) daemon: Option<TaskId>,
}

impl Fuse {
    fn send(&mut self, op: Op, waiter: Option<TaskId>, wake: &mut Vec<TaskId>) -> u64 {
        let key = self.messages.insert(Message {
            op,
            waiter,
            reply: None,
        });
        self.queue.push_back(key);
        wake.extend(self.daemon);
        key
    }

    /// The next message for the daemon.
    pub(super) fn receive(&mut self) -> Option<(u64, Op)> {
        let key = self.queue.pop_front()?;
        let message = self.messages.get_mut(key);
        let message = message.expect("a message stays until its reply");
        Some((key, message.op.clone()))
    }

    /// The daemon's reply.
    pub(super) fn reply(&mut self, key: u64, reply: Result<(), FsError>, wake: &mut Vec<TaskId>) {
        let message = self.messages.get_mut(key);
        let message = message.expect("a message is replied to once");
        assert!(
            message.reply.is_none(),
            "{:?} is replied to twice",
            message.op
        );
        match message.waiter {
            Some(task) => {
                message.reply = Some(reply);
                wake.push(task);
            }
            None => {
                self.messages.remove(key);
            }
        }
    }

    fn take_reply(&mut self, key: u64) -> Option<Result<(), FsError>> {
        let reply = self.messages.get_mut(key)?.reply.take()?;
        self.messages.remove(key);
        Some(reply)
    }
}

impl View<'_, Volume> {
    fn ntfs_options(&mut self) -> NtfsOptions {
        self.volume.options
    }

    /// Pages of a file are FUSE's clean copies now.
    fn ntfs_keep(&mut self, id: FileId, run: Range<u64>, end: u64) {
        self.cache_whole(id, run);
        let file = &mut self.files[id.idx()];
        file.size_bytes = file.size_bytes.max(end);
    }
}

impl<H: Host> Mount<'_, H, Volume> {
    /// Sends a message that nobody waits for.
    fn ntfs_tell(&self, op: Op) {
        self.waking(|s, wake| {
            s.volume.fuse.send(op, None, wake);
        });
    }

    /// Sends a message and sleeps for the reply.
    pub(super) async fn ntfs_ask(&self, op: Op) -> Result<(), FsError> {
        let me = self.host.current();
        let mut key = 0;
        self.waking(|s, wake| key = s.volume.fuse.send(op, Some(me), wake));
        self.sleeping(Sleep::Daemon, async {
            loop {
                if let Some(reply) = self.with(|s| s.volume.fuse.take_reply(key)) {
                    return reply;
                }
                self.host.suspend().await;
            }
        })
        .await
    }

    // Names ------------------------------------------------------------------

    fn ntfs_trust(&self, id: FileId) {
        let now = self.host.now();
        self.with(|s| {
            let timeout = s.ntfs_options().timeout;
            s.volume.node(id).valid_until = now + timeout;
        });
    }

    /// Asks for a name.
    pub(super) async fn ntfs_look_up(&self, id: FileId) -> Result<(), FsError> {
        self.ntfs_ask(Op::Lookup { id }).await?;
        self.ntfs_trust(id);
        Ok(())
    }

    /// A path is walked: what is trusted no longer is asked for again, from the
    /// top on (`fuse_dentry_revalidate`).
    pub(super) async fn ntfs_revalidate(&self, id: FileId) -> Result<(), FsError> {
        loop {
            let now = self.host.now();
            let stale = self.with(|s| {
                let (root, mut at, mut stale) = (s.root, id, None);
                while at != root && s.files[at.idx()].on_volume {
                    if s.volume.node(at).valid_until < now {
                        stale = Some(at);
                    }
                    at = s.files[at.idx()].parent;
                }
                stale
            });
            match stale {
                Some(id) => self.ntfs_look_up(id).await?,
                None => return Ok(()),
            }
        }
    }

    /// A new name: it is looked for in vain, then made. A file is open then.
    pub(super) async fn ntfs_create(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        self.ntfs_ask(Op::Lookup { id: directory }).await?;
        self.ntfs_ask(Op::Create { directory, id }).await?;
        self.ntfs_trust(id);
        let is_file = self.with(|s| s.files[id.idx()].directory.is_none());
        self.with(|s| s.volume.node(id).opened = is_file);
        Ok(())
    }

    /// A file is opened, unless the call that made it did so.
    pub(super) async fn ntfs_open(&self, id: FileId) -> Result<(), FsError> {
        if self.with(|s| std::mem::take(&mut s.volume.node(id).opened)) {
            return Ok(());
        }
        self.ntfs_ask(Op::Open { id }).await
    }

    /// A file is closed: the caller waits for one message of the two.
    pub(super) async fn ntfs_close(&self, _id: FileId) {
        // Nothing can fail: all data have been handed over.
        let _ = self.ntfs_ask(Op::Flush).await;
        self.ntfs_tell(Op::Release);
    }

    /// A directory is listed.
    pub(super) async fn ntfs_list(&self, id: FileId) -> Result<(), FsError> {
        self.ntfs_ask(Op::OpenDirectory { id }).await?;
        self.ntfs_ask(Op::List { id }).await?;
        let entries = self.with(|s| s.entries(id).map(|e| e.len() as u64))?;
        // The last one says that there are no more.
        for _ in 0..entries / LISTED_PER_MESSAGE + 1 {
            self.ntfs_ask(Op::ListMore).await?;
        }
        self.ntfs_tell(Op::Release);
        Ok(())
    }

    /// A removed file is not open any more. The daemon has freed it with its
    /// name if it was not open then.
    pub(super) async fn ntfs_forget(&self, id: FileId) -> Result<(), FsError> {
        let freed = self.with(|s| {
            let node = s.volume.node(id);
            node.gone && node.extents.pages() == 0
        });
        let freed = if freed {
            Ok(())
        } else {
            self.ntfs_ask(Op::Free { id }).await
        };
        self.with(|s| *s.volume.node(id) = super::Node::default());
        freed
    }

    // Data -------------------------------------------------------------------

    /// Pages have been copied: hands them to the daemon, a page at a time
    /// without `big_writes`.
    pub(super) async fn ntfs_write(
        &self,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        let most = if self.with(|s| s.ntfs_options().big_writes) {
            MESSAGE_PAGES
        } else {
            1
        };
        let mut page = run.start;
        while page < run.end {
            let pages = page..run.end.min(page + most);
            let upto = end.min(pages.end * PAGE_BYTES);
            let op = Op::Write {
                id,
                pages: pages.clone(),
                end: upto,
            };
            self.ntfs_ask(op).await?;
            page = pages.end;
            // A page that was written in part is not kept.
            let whole = pages.start..(upto / PAGE_BYTES).max(pages.start);
            self.with(|s| s.ntfs_keep(id, whole, upto));
        }
        Ok(())
    }

    /// Pages that a mapping has made dirty are handed over, without waiting:
    /// FUSE copies them, and they are clean at once (`fuse_writepage`).
    pub(super) fn ntfs_write_mapped(&self, id: FileId, control: &mut WriteControl) {
        let range = control.range.clone().unwrap_or(0..u64::MAX);
        let mut page = range.start;
        while control.nr_to_write > 0 || control.integrity {
            let next = self.with(|s| {
                let file = &mut s.state.files[id.idx()];
                let page = file.dirty.next_set(page, range.end)?;
                s.state.nr_dirty -= file.dirty.clear(page..page + 1);
                file.towrite.clear(page..page + 1);
                Some((page, file.size_bytes.min((page + 1) * PAGE_BYTES)))
            });
            let Some((at, end)) = next else {
                return;
            };
            self.ntfs_tell(Op::Write {
                id,
                pages: at..at + 1,
                end,
            });
            control.nr_to_write -= 1;
            page = at + 1;
        }
    }

    /// Asks for the missing pages of a window, without waiting.
    pub(super) fn ntfs_read_pages(&self, id: FileId, run: Range<u64>) {
        let mut page = run.start;
        while page < run.end {
            let pages = self.with(|s| {
                let cached = &s.files[id.idx()].cached;
                let start = cached.next_clear(page, run.end);
                let end = cached.next_set(start, run.end).unwrap_or(run.end);
                let pages = start..end.min(start + MESSAGE_PAGES);
                if start < run.end {
                    s.add_locked(id, pages.clone());
                    s.stats.pages_read += pages.end - pages.start;
                }
                pages
            });
            page = pages.end.max(page + 1);
            if !pages.is_empty() {
                self.ntfs_tell(Op::Read { id, pages });
            }
        }
    }

    /// Reads a page that is not there, or not up to date.
    pub(super) async fn ntfs_load_page(&self, id: FileId, page: u64) {
        let (cached, wanted) = self.with(|s| {
            let file = &s.files[id.idx()];
            let wanted = !file.uptodate.test(page) && !file.locked.test(page);
            (file.cached.test(page), wanted)
        });
        if wanted && !cached {
            self.make_room(1).await;
            self.ntfs_read_pages(id, page..page + 1);
        } else if wanted {
            self.with(|s| s.files[id.idx()].locked.set(page..page + 1));
            let pages = page..page + 1;
            self.ntfs_tell(Op::Read { id, pages });
        }
        self.wait_unlocked(id, page).await;
    }
}
