// SPDX-License-Identifier: MIT OR Apache-2.0
//! Building one I/O: direction, offset, length.
//!
//! Behaviour of fio 3.33, draw by draw. A failure means that the file has no
//! I/O left; the caller finishes it and tries the next one. Random places and
//! lengths under fio 1.24's rules are drawn in [`super::of_2009`].

use super::files::{File, UNSET};
use super::{IoOp, JobRun, Step};
use crate::settings::{Dir, Distribution, Generator, Sequencer, ThinkCount, ZoneMode, ZoneSplit};

/// Draws for a length that fits before the file counts as finished.
const LENGTH_DRAWS_MAX: u32 = 1 << 24;

/// The end of a file's usable part for this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoRoom;

impl JobRun {
    /// The sync operation that is due, if any.
    fn sync_due(&self) -> Option<IoOp> {
        let settings = &self.job.settings;
        let writes = self.count.issued[Dir::Write as usize];
        if !settings.rw.writes || self.last_was_sync || writes == 0 {
            return None;
        }
        let due = |every: u32| every != 0 && writes.is_multiple_of(u64::from(every));
        if due(settings.fsync) {
            Some(IoOp::Sync)
        } else if due(settings.fdatasync) {
            Some(IoOp::Datasync)
        } else {
            due(settings.sync_file_range).then_some(IoOp::SyncFileRange)
        }
    }

    /// What the next I/O does, before rates are looked at.
    pub(super) fn choose_op(&mut self) -> IoOp {
        if let Some(sync) = self.sync_due() {
            return sync;
        }
        let pattern = self.job.settings.rw;
        if pattern.is_mixed() {
            self.choose_mixed().into()
        } else if pattern.reads {
            IoOp::Read
        } else if pattern.writes {
            IoOp::Write
        } else {
            IoOp::Trim
        }
    }

    fn choose_mixed(&mut self) -> Dir {
        let old = self.mix_dir;
        let issued = self.count.issued[old as usize];
        if issued >= self.mix_quota {
            let [reads, writes] = self.job.settings.rwmix;
            let drawn = self.generators.mix.between(1, 100);
            let new = if drawn <= u64::from(reads) {
                Dir::Read
            } else {
                Dir::Write
            };
            if new != old {
                let percent = if new == Dir::Read { reads } else { writes };
                self.mix_quota = issued.wrapping_mul(u64::from(percent)) / 100;
            }
            self.mix_dir = new;
        }
        self.mix_dir
    }

    /// A job that trims and writes: which of both this file needs. It replaces
    /// even a sync.
    pub(super) fn trim_or_write(&self, op: IoOp, file: u32) -> IoOp {
        if !self.job.settings.rw.is_trimwrite() {
            return op;
        }
        let start = self.files.all[file as usize].last_start;
        if start[Dir::Write as usize] == start[Dir::Trim as usize] {
            IoOp::Trim
        } else {
            IoOp::Write
        }
    }

    /// Offset and length of an I/O, noted in record and file.
    #[inline(always)]
    pub(super) fn place(&mut self, record: u32, dir: Dir, file: u32) -> Result<(), NoRoom> {
        if self.job.settings.zonemode == ZoneMode::Strided {
            self.enter_zone(dir, file);
        }
        let (offset, is_random) = self.next_offset(record, dir, file)?;
        let length = self.next_length(offset, dir, file, is_random)?;
        let target = &mut self.files.all[file as usize];
        if length == 0
            || offset
                .checked_add(length)
                .is_none_or(|end| end > target.range.real_size)
        {
            return Err(NoRoom);
        }
        let ignored = self.records.get(record).map_ignored;
        let length = mark(
            target,
            self.job.settings.min_bs[dir as usize],
            offset,
            length,
            ignored,
        );
        if length == 0 {
            return Err(NoRoom);
        }
        self.zone_bytes = self.zone_bytes.wrapping_add(length);
        target.last_start[dir as usize] = offset;
        target.last_pos[dir as usize] = offset + length;
        self.records.get(record).length = length;
        Ok(())
    }

    /// Strided zones: moves on when the zone has had its bytes.
    fn enter_zone(&mut self, dir: Dir, file: u32) {
        let settings = &self.job.settings;
        let range = settings.zonerange;
        let file = &mut self.files.all[file as usize];
        if self.zone_bytes >= settings.zonesize {
            self.zone_bytes = 0;
            file.offset = file
                .offset
                .wrapping_add(range)
                .wrapping_add(settings.zoneskip);
            if file.offset >= file.range.real_size {
                file.offset = file.range.start;
            }
            file.last_pos[dir as usize] = file.offset;
        }
        if file.last_pos[dir as usize] >= file.offset.wrapping_add(range) {
            file.last_pos[dir as usize] = file.offset;
        }
        if range == 0 || self.zone_bytes.is_multiple_of(range) {
            file.reset(self.offset_seed);
        }
    }

    #[inline(always)]
    fn next_offset(&mut self, record: u32, dir: Dir, file: u32) -> Result<(u64, bool), NoRoom> {
        let step = self.is_sequencer_step();
        let (relative, is_random) = self.relative_offset(record, dir, file, step)?;
        let trims =
            self.job.settings.rw.is_trimwrite() && self.job.settings.rw.random && dir == Dir::Trim;
        let file = &mut self.files.all[file as usize];
        // The record remembers the offset even if nothing comes of it: a sync
        // built from it shows it in the log.
        let slot = self.records.get(record);
        if relative == UNSET {
            return Err(NoRoom);
        }
        slot.offset = relative;
        if relative >= file.range.length {
            return Err(NoRoom);
        }
        let offset = relative.wrapping_add(file.offset);
        slot.offset = offset;
        if offset >= file.range.real_size {
            return Err(NoRoom);
        }
        if trims && file.last_start[Dir::Trim as usize] == offset {
            // The same block again: make sure that a write follows.
            let write = &mut file.last_start[Dir::Write as usize];
            *write = write.wrapping_sub(1);
        }
        Ok((offset, is_random))
    }

    fn is_sequencer_step(&mut self) -> bool {
        let count = self.job.settings.sequencer_count;
        if count == 0 {
            return false;
        }
        self.countdown = self.countdown.wrapping_sub(1);
        if self.countdown != 0 {
            return false;
        }
        self.countdown = count;
        true
    }

    /// Offset from the file's current start, and whether it counts as random.
    #[inline(always)]
    fn relative_offset(
        &mut self,
        record: u32,
        dir: Dir,
        file: u32,
        step: bool,
    ) -> Result<(u64, bool), NoRoom> {
        let settings = &self.job.settings;
        let random = settings.rw.random;
        if settings.rw.is_trimwrite() && random && dir == Dir::Write {
            self.records.get(record).map_ignored = true;
            return Ok((
                self.files.all[file as usize].last_start[Dir::Trim as usize],
                true,
            ));
        }
        if step && !random {
            return self.sequential(dir, file).map(|offset| (offset, false));
        }
        if step && self.draws_random(dir) {
            return self.random(dir, file).map(|offset| (offset, true));
        }
        self.records.get(record).map_ignored = true;
        if !step && self.job.settings.sequencer == Sequencer::Identical {
            let file = &self.files.all[file as usize];
            let last = file.last_start[dir as usize];
            return Ok((
                if last == UNSET {
                    0
                } else {
                    last.wrapping_sub(file.offset)
                },
                false,
            ));
        }
        match self.sequential(dir, file) {
            Ok(offset) => Ok((offset, false)),
            Err(NoRoom) => self.random(dir, file).map(|offset| (offset, false)),
        }
    }

    fn draws_random(&mut self, dir: Dir) -> bool {
        let percent = self.job.settings.percentage_random[dir as usize];
        percent == 100
            || self.generators.percentage[dir as usize].between(1, 100) <= u64::from(percent)
    }

    fn sequential(&mut self, dir: Dir, file_idx: u32) -> Result<u64, NoRoom> {
        let settings = &self.job.settings;
        let add = settings.stride;
        let file = &mut self.files.all[file_idx as usize];
        let range = file.range;
        let last = &mut file.last_pos[dir as usize];
        if *last >= range.length.wrapping_add(range.start)
            && settings.time_based
            && settings.nrfiles == 1
        {
            *last = file.offset;
            self.out.push_back(Step::Invalidate { file: file_idx });
        }
        if *last >= range.real_size {
            return Err(NoRoom);
        }
        let usable = range.length.min(range.real_size);
        if add < 0 && file.offset > 0 && *last == file.offset {
            *last = usable;
        }
        let mut position = last.wrapping_sub(file.offset);
        if position != 0 && add != 0 {
            position = position.wrapping_add_signed(add);
            if position >= range.real_size {
                position = if add > 0 {
                    file.offset
                } else {
                    usable.wrapping_add_signed(add)
                };
            }
        }
        Ok(position)
    }

    #[inline(always)]
    fn random(&mut self, dir: Dir, file: u32) -> Result<u64, NoRoom> {
        let settings = &self.job.settings;
        let align = settings.ba[dir as usize];
        let again = settings.time_based || settings.file_service.is_non_uniform();
        let mut block = self.random_block(dir, file);
        if block.is_err() && again {
            self.files.all[file as usize].reset(self.offset_seed);
            self.out.push_back(Step::Invalidate { file });
            block = self.random_block(dir, file);
        }
        block.map(|block| block.wrapping_mul(align))
    }

    /// Number of blocks that a random offset may start at.
    #[inline(always)]
    fn last_block(&self, dir: Dir, file: u32) -> u64 {
        let settings = &self.job.settings;
        let (min, align) = (settings.min_bs[dir as usize], settings.ba[dir as usize]);
        let bytes = match settings.zonemode {
            ZoneMode::Strided if settings.zonerange != 0 => settings.zonerange,
            _ => self.files.all[file as usize].usable(),
        };
        bytes.wrapping_sub(min.saturating_sub(align)) / align.max(1)
    }

    #[inline(always)]
    fn random_block(&mut self, dir: Dir, file: u32) -> Result<u64, NoRoom> {
        if let Some(skewed) = &mut self.files.all[file as usize].skewed {
            return Ok(skewed.draw());
        }
        let last = self.last_block(dir, file);
        if last == 0 {
            return Err(NoRoom);
        }
        let zone = match &self.job.settings.distribution {
            Distribution::Zoned(zones) | Distribution::ZonedAbs(zones) => {
                Some(zone_at(zones, self.generators.zone.between(1, 100)))
            }
            _ => None,
        };
        match (zone, &self.job.settings.distribution) {
            (Some((start, end)), Distribution::Zoned(_)) => {
                let first = start.wrapping_mul(last) / 100;
                let count = last.wrapping_mul(end.wrapping_sub(start)) / 100;
                Ok(first.wrapping_add(self.uniform_block(file, count)?))
            }
            (Some((start, end)), _) => {
                let align = self.job.settings.ba[dir as usize].max(1);
                let (first, end) = (start / align, end / align);
                if end > last {
                    return Err(NoRoom);
                }
                Ok(first.wrapping_add(self.uniform_block(file, end.wrapping_sub(first))?))
            }
            (None, _) => self.uniform_block(file, last),
        }
    }

    #[inline(always)]
    fn uniform_block(&mut self, file: u32, count: u64) -> Result<u64, NoRoom> {
        let file = &mut self.files.all[file as usize];
        if let Some(draws) = &mut self.of_2009 {
            return draws.block(file, count);
        }
        let block = match (&self.job.settings.random_generator, &mut file.lfsr) {
            (Generator::Lfsr, Some(lfsr)) => lfsr.draw().ok_or(NoRoom)?,
            _ => self.generators.offset.below(count),
        };
        match &file.map {
            Some(map) if map.is_set(block) => map.next_free(block).ok_or(NoRoom),
            _ => Ok(block),
        }
    }

    #[inline(always)]
    fn next_length(
        &mut self,
        offset: u64,
        dir: Dir,
        file: u32,
        is_random: bool,
    ) -> Result<u64, NoRoom> {
        let settings = &self.job.settings;
        let file = &self.files.all[file as usize];
        if settings.rw.is_trimwrite() && settings.rw.random && dir == Dir::Write {
            let trim = Dir::Trim as usize;
            return Ok(file.last_pos[trim].wrapping_sub(file.last_start[trim]));
        }
        let sized = match (settings.bs_is_seq_rand, is_random) {
            (false, _) => dir as usize,
            (true, true) => Dir::Write as usize,
            (true, false) => Dir::Read as usize,
        };
        let (min, max) = (settings.min_bs[sized], settings.max_bs[sized]);
        if min == max {
            return Ok(min);
        }
        if let (Some(draws), true) = (&mut self.of_2009, settings.bssplit[sized].is_empty()) {
            let room = file.range.real_size.saturating_sub(offset);
            return Ok(draws.length((min, max), !settings.bs_unaligned, room));
        }
        let end = file.range.length.wrapping_add(file.range.start);
        let fits = |length: u64| offset.checked_add(length).is_some_and(|last| last <= end);
        if !fits(min) {
            return Err(NoRoom);
        }
        let splits = &settings.bssplit[sized];
        let rng = &mut self.generators.block_size[sized];
        for _ in 0..LENGTH_DRAWS_MAX {
            let mut length = if splits.is_empty() {
                min.wrapping_add((max as f64 * rng.unit()) as u64)
            } else {
                let part = rng.max() / 100;
                let drawn = rng.draw();
                let mut percent = 0u64;
                let mut chosen = min;
                for split in splits.iter().filter(|split| split.percent > 0) {
                    chosen = split.bytes;
                    percent += u64::from(split.percent);
                    if drawn / percent <= part && fits(chosen) {
                        break;
                    }
                }
                chosen
            };
            if !settings.bs_unaligned {
                length -= length % min;
            }
            length = length.min(max);
            if fits(length) {
                return Ok(length);
            }
        }
        Err(NoRoom)
    }

    /// Cumulative I/Os that `thinktime_blocks` counts.
    pub(super) fn think_count(&self) -> u64 {
        match self.job.settings.thinktime_count {
            ThinkCount::Complete => self.count.blocks.iter().sum(),
            ThinkCount::Issue => self.count.issued.iter().sum(),
        }
    }
}

/// Start and end of the zone that holds that percentage of the accesses.
fn zone_at(zones: &[ZoneSplit], percent: u64) -> (u64, u64) {
    let mut start: u64 = 0;
    let mut accesses = 0;
    for zone in zones {
        let end = start.wrapping_add(zone.size);
        accesses += u64::from(zone.access_percent);
        if percent <= accesses {
            return (start, end);
        }
        start = end;
    }
    (0, 0)
}

/// Marks an I/O's blocks and cuts it where one is taken already.
#[inline(always)]
fn mark(file: &mut File, min: u64, offset: u64, length: u64, ignored: bool) -> u64 {
    let Some(map) = &mut file.map else {
        return length;
    };
    let count = length.div_ceil(min.max(1));
    let count = if ignored {
        count
    } else {
        let start = offset.wrapping_sub(file.offset);
        map.set(start.checked_div(min).unwrap_or(0), count)
    };
    length.min(count.saturating_mul(min))
}
