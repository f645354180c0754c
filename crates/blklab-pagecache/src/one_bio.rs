// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asynchronous direct I/O that is one bio and has to wait for nothing but a
//! request, as most has: it is submitted in one go, without the steps of
//! [`direct`](crate::direct) at which a task may sleep. The order of what is
//! visible outside is the same.

use crate::cache::PageCache;
use crate::features::DevicePlug;
use crate::file::{FileId, OSync};
use crate::ops::Host;
use crate::state::aio::{AioId, Direct, DirectRequest, Waits};
use crate::state::{BioWork, State};
use blklab_types::{BioFlags, BioKey, Op, PAGE_BYTES, SECTOR_BYTES};

/// A direct I/O whose bio has been submitted, or sleeps for a request.
#[derive(Debug)]
pub struct OneBio<P> {
    key: u64,
    /// The work that follows the end of its bio.
    bio: BioKey,
    file: FileId,
    op: Op,
    locks: bool,
    /// Its bio is submitted in a plug.
    plugs: bool,
    /// A plug that covers all of a write.
    plugs_write: bool,
    /// The submission that sleeps.
    pub(crate) pending: Option<P>,
}

impl State {
    /// The bio's place on the disk, if the request is one bio of a file that is
    /// laid out, and nothing of it is in the way in the cache. `on_volume`: files
    /// of the filesystem are no different from the disk itself.
    #[inline(always)]
    fn one_bio(
        &mut self,
        request: &DirectRequest,
        bio_bytes: u64,
        on_volume: bool,
    ) -> Option<(FileId, u64)> {
        let DirectRequest {
            fd,
            write,
            offset,
            bytes,
            ..
        } = *request;
        let open = self.open.get(fd.0 as usize)?;
        let id = open.file;
        let syncs = write && open.sync != OSync::None;
        let file = self.file(id);
        let end = offset.checked_add(bytes)?;
        let aligned = (offset | bytes).is_multiple_of(SECTOR_BYTES);
        if syncs
            || (file.on_volume && !on_volume)
            || (write && file.grows)
            || !aligned
            || bytes == 0
            || bytes > bio_bytes
            || end > file.size_bytes
        {
            return None;
        }
        let pages = offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES);
        let busy = (write && file.cached.next_set(pages.start, pages.end).is_some())
            || file.dirty.next_set(pages.start, pages.end).is_some()
            || file.writeback.next_set(pages.start, pages.end).is_some();
        let (sector, nr_pages) = file.extents.map(pages.start)?;
        let skip = offset % PAGE_BYTES;
        if busy || skip + bytes > nr_pages * PAGE_BYTES {
            return None;
        }
        Some((id, sector + skip / SECTOR_BYTES))
    }
}

impl<H: Host> PageCache<H> {
    /// Submits a direct I/O at once if that is possible; otherwise nothing has
    /// happened. What it returns has to be ended by [`PageCache::end_one_bio`].
    #[inline(always)]
    pub(crate) fn begin_one_bio(
        &self,
        context: AioId,
        request: &DirectRequest,
    ) -> Option<OneBio<H::Pending>> {
        let features = &self.config.features;
        let bio_bytes = self.config.bio_pages * PAGE_BYTES;
        let (op, flags) = if request.write {
            (Op::Write, features.direct_write_flags)
        } else {
            (Op::Read, BioFlags::NONE)
        };
        let flags = if request.nowait {
            flags | BioFlags::NOWAIT
        } else {
            flags
        };
        let plain = self.traits.plain_direct_io;
        let waits = Waits::Context {
            context: context.0 as usize,
            user_data: request.user_data,
        };
        let (mut io, sector, bio) = self.with(|s| {
            let (id, sector) = s.one_bio(request, bio_bytes, plain)?;
            let file = s.file(id);
            let locks = !file.is_device && self.traits.locks_direct_io;
            if locks && !file.mutex.try_lock() {
                return None;
            }
            let is_device = file.is_device;
            let key = s.directs.insert(Direct::of_one_bio(request.bytes, waits));
            s.stats.direct_bios += 1;
            let bio = s.bios.insert(BioWork::Direct(key));
            let io = OneBio {
                key,
                bio,
                file: id,
                op,
                locks,
                plugs: features.device_plug == DevicePlug::Submission || !is_device,
                plugs_write: request.write
                    && is_device
                    && features.device_plug == DevicePlug::Writes,
                pending: None,
            };
            Some((io, sector, bio))
        })?;
        if io.plugs_write {
            self.host.start_plug();
        }
        if io.plugs {
            self.host.start_plug();
        }
        let nr_sectors = (request.bytes / SECTOR_BYTES) as u32;
        let bio = self.new_bio(op, flags, sector, nr_sectors, bio);
        io.pending = self.host.begin_bio(bio);
        Some(io)
    }

    /// The bio of such a direct I/O was refused: as if nothing had happened.
    pub(crate) fn refuse_one_bio(&self, io: &OneBio<H::Pending>) {
        if io.plugs {
            self.host.finish_plug();
        }
        self.with(|s| {
            s.bios.remove(io.bio);
            s.directs.remove(io.key);
            s.stats.direct_bios -= 1;
        });
        if io.locks {
            self.unlock_inode(io.file);
        }
        if io.plugs_write {
            self.host.finish_plug();
        }
    }

    /// The submitter is done with such a direct I/O.
    #[inline(always)]
    pub(crate) fn end_one_bio(&self, io: &OneBio<H::Pending>) {
        if io.plugs {
            self.host.finish_plug();
        }
        if io.op == Op::Write {
            self.end_direct(io.key, false);
        }
        if io.locks {
            self.unlock_inode(io.file);
        }
        if io.op != Op::Write {
            self.end_direct(io.key, false);
        }
        if io.plugs_write {
            self.host.finish_plug();
        }
    }
}
