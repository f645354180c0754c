// SPDX-License-Identifier: MIT OR Apache-2.0
//! Discarding a range of a block device (`BLKDISCARD`).
//!
//! Pages of the range are dropped, then bios are submitted and waited for; what of
//! it a release does says [`DiscardCall`]. As long as whoever makes bios cuts them
//! to the queue's limits (up to 4.20), so does a discard; from 5.0 on its bios are
//! as long as a bio can be, and the block layer splits them. Sources: block/ioctl.c,
//! block/blk-lib.c and block/blk-barrier.c of the releases named there. Left out:
//! signals that end a long discard (6.10).

use crate::cache::PageCache;
use crate::error::FsError;
use crate::features::{BioBound, DiscardCall};
use crate::file::{Fd, FileId};
use crate::ops::Host;
use crate::state::aio::{Direct, Waits};
use crate::state::{BioWork, State};
use blklab_types::{Bio, BioFlags, DiscardLimits, Op, PAGE_BYTES, SECTOR_BYTES};
use std::ops::Range;

/// Most sectors of a bio: it counts its bytes in 32 bits.
const BIO_MAX_SECTORS: u32 = u32::MAX >> 9;

/// A discard as device and kernel make it.
#[derive(Clone, Copy, Debug)]
struct Means {
    file: FileId,
    call: DiscardCall,
    /// What its bios keep to.
    limits: DiscardLimits,
}

impl Means {
    /// Sectors of the bio at a sector with so many to go.
    fn bio_sectors(&self, sector: u64, rest: u64) -> u32 {
        let granularity = u64::from(self.limits.granularity_sectors);
        let beyond = sector % granularity;
        if self.call.aligns_start && beyond > 0 {
            return rest.min(granularity - beyond) as u32;
        }
        match self.limits.front_sectors(sector, rest) {
            Some(front) => front,
            None => rest as u32,
        }
    }
}

impl<H: Host> PageCache<H> {
    /// `BLKDISCARD` of a range of bytes.
    ///
    /// # Errors
    /// [`FsError::NoSuchRequest`] of files and in kernels that do not know it,
    /// [`FsError::NotSupported`], [`FsError::Unaligned`], [`FsError::BehindEnd`],
    /// [`FsError::Io`].
    pub async fn discard(&self, fd: Fd, offset: u64, bytes: u64) -> Result<(), FsError> {
        let file = self.opened(fd)?.file;
        let (is_device, size_bytes) = self.with(|s| {
            let file = s.file(file);
            (file.is_device, file.size_bytes)
        });
        let features = &self.config.features;
        if !is_device || !features.has_discard {
            return Err(FsError::NoSuchRequest);
        }
        let call = features.discard;
        let limits = self.config.discard.ok_or(FsError::NotSupported)?;
        if !offset.is_multiple_of(SECTOR_BYTES) || !bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(FsError::Unaligned);
        }
        let end = offset.checked_add(bytes).filter(|end| *end <= size_bytes);
        let range = offset..end.ok_or(FsError::BehindEnd)?;
        if call.drops_pages {
            self.drop_discarded(file, &range).await;
        }
        let max_sectors = match features.bio_bound {
            BioBound::Queue => limits.max_sectors.min(BIO_MAX_SECTORS),
            BioBound::Vectors => BIO_MAX_SECTORS,
        };
        let limits = DiscardLimits {
            max_sectors,
            ..limits
        };
        self.issue_discard(Means { file, call, limits }, range)
            .await
    }

    /// The bios of a discard, and the wait for them (`blkdev_issue_discard`).
    async fn issue_discard(&self, means: Means, range: Range<u64>) -> Result<(), FsError> {
        let call = means.call;
        let mut at = range.start;
        while at < range.end {
            if call.plugs {
                self.host.start_plug();
            }
            let key = self.with(|s| {
                s.directs.insert(Direct {
                    pending: 1,
                    failed: false,
                    bytes: range.end - range.start,
                    waits: Waits::Task(self.host.current()),
                    sync: None,
                })
            });
            loop {
                at = self.submit_discard(&means, at, range.end, key).await;
                if at >= range.end || !call.together {
                    break;
                }
            }
            // `submit_bio_wait` waits inside the plug, which the sleep removes.
            if call.plugs && !call.last_is_sync {
                self.host.finish_plug();
            }
            let done = self.wait_direct(key, call.last_is_sync).await;
            if call.plugs && call.last_is_sync {
                self.host.finish_plug();
            }
            done?;
        }
        Ok(())
    }

    /// Submits one bio of a discard from a byte on; where the next one begins.
    async fn submit_discard(&self, means: &Means, at: u64, end: u64, key: u64) -> u64 {
        let place = self.with(|s| {
            let (sector, _) = s.file(means.file).extents.map(at / PAGE_BYTES)?;
            s.directs.get_mut(key)?.pending += 1;
            let sector = sector + at % PAGE_BYTES / SECTOR_BYTES;
            Some((sector, s.bios.insert(BioWork::Direct(key))))
        });
        let (sector, bio_key) = place.expect("the range lies on the device");
        let nr_sectors = means.bio_sectors(sector, (end - at) / SECTOR_BYTES);
        let next = at + u64::from(nr_sectors) * SECTOR_BYTES;
        let flags = if means.call.last_is_sync && next >= end {
            BioFlags::SYNC
        } else {
            BioFlags::NONE
        };
        self.submit_bio(Bio {
            nr_sectors,
            segments: 1,
            ..self.new_bio(Op::Discard, flags, sector, 0, bio_key)
        })
        .await;
        next
    }

    /// Drops the whole pages of a range, dirty ones too, when what is on its way has
    /// arrived (`truncate_inode_pages_range`).
    async fn drop_discarded(&self, id: FileId, range: &Range<u64>) {
        let pages = range.start.div_ceil(PAGE_BYTES)..range.end / PAGE_BYTES;
        let mut page = pages.start;
        while let Some(next) = self.with(|s| s.file(id).cached.next_set(page, pages.end)) {
            self.wait_unlocked(id, next).await;
            self.wait_writeback(id, next).await;
            page = self.with(|s| s.drop_dirty(id, next..pages.end));
        }
    }
}

impl State {
    /// Drops the pages of a run, dirty ones too, up to the first that is locked or on
    /// its way: which one.
    fn drop_dirty(&mut self, id: FileId, run: Range<u64>) -> u64 {
        let file = &mut self.files[id.idx()];
        let busy = [&file.locked, &file.writeback]
            .into_iter()
            .filter_map(|bits| bits.next_set(run.start, run.end))
            .min();
        let end = busy.unwrap_or(run.end);
        self.nr_dirty -= file.dirty.clear(run.start..end);
        for bits in [&mut file.towrite, &mut file.pinned, &mut file.buffers.dirty] {
            bits.clear(run.start..end);
        }
        self.drop_clean(id, run.start..end);
        end
    }
}
