// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of a running job: positions, maps, and which one is next.
//!
//! Behaviour of fio 3.33. Opening a file resets it; a file that is closed while
//! I/Os are in flight closes when the last of them is done.

use super::Step;
use crate::dist::{Shape, Skewed, name_hash};
use crate::job::Job;
use crate::lfsr::Lfsr;
use crate::randmap::RandomMap;
use crate::range::{FileRange, Ranges};
use crate::rng::Rng;
use crate::seeds::{Seeds, Use};
use crate::settings::{Distribution, FileService, Generator, PerDir, ZoneMode};
use blklab_types::Error;
use std::collections::VecDeque;

/// "Not set" for the start of the last I/O.
pub(super) const UNSET: u64 = u64::MAX;
/// Draws for a usable file before a job counts as stuck.
const DRAWS_MAX: u32 = 1_000_000;

/// One file of a running job.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) range: FileRange,
    /// First byte of the current zone.
    pub(super) offset: u64,
    /// End of the last I/O per direction.
    pub(super) last_pos: PerDir<u64>,
    /// Start of the last I/O per direction.
    pub(super) last_start: PerDir<u64>,
    pub(super) map: Option<RandomMap>,
    pub(super) lfsr: Option<Lfsr>,
    pub(super) skewed: Option<Skewed>,
    /// What `sync_file_range` covers: start and end of what was written.
    pub(super) dirty: Option<(u64, u64)>,
    open: bool,
    closing: bool,
    done: bool,
    /// I/Os built and not completed.
    users: u32,
}

/// Why no file is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoFile {
    /// All are finished.
    Done,
    /// Too many are open: ask again.
    Busy,
}

/// All files of a running job.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) all: Vec<File>,
    current: Option<u32>,
    left: u32,
    next: u32,
    open: u32,
    done: u32,
    skewed: Option<Skewed>,
}

impl Files {
    /// Sets up the files; `offset_seed` starts the shift registers.
    ///
    /// # Errors
    /// fio's message if a map is too large or a register cannot start.
    pub(super) fn new(job: &Job, ranges: &Ranges) -> Result<Files, Error> {
        let mut all = Vec::with_capacity(ranges.files.len());
        for (range, name) in ranges.files.iter().zip(&job.files) {
            all.push(File::new(job, *range, name)?);
        }
        let mut files = Files {
            all,
            current: None,
            left: 0,
            next: 0,
            open: 0,
            done: 0,
            skewed: None,
        };
        files.reseed_service(job, &job.seeds);
        Ok(files)
    }

    /// A new generator for a non-uniform choice of files.
    pub(super) fn reseed_service(&mut self, job: &Job, seeds: &Seeds) {
        let shape = match job.settings.file_service {
            FileService::Zipf(theta) => Shape::Zipf(theta),
            FileService::Pareto(power) => Shape::Pareto(power),
            FileService::Normal(percent) => Shape::Normal(percent),
            _ => return,
        };
        let range = self.all.len() as u64 * 1024;
        self.skewed =
            Some(Skewed::new(shape, range, None, seeds.seed(Use::NextFile) as u32).unscattered());
    }

    pub(super) fn all_done(&self) -> bool {
        self.done >= self.all.len() as u32
    }

    /// Closes nothing, but forgets which files are finished; `count` says
    /// whether their number is forgotten, too.
    pub(super) fn clear_done(&mut self, count: bool) {
        for file in &mut self.all {
            file.done = false;
            file.offset = file.range.start;
        }
        if count {
            self.done = 0;
        }
    }

    /// Forgets how many files are finished, but not which.
    pub(super) fn clear_done_count(&mut self) {
        self.done = 0;
    }

    /// The file for the next I/O.
    #[inline]
    pub(super) fn next(
        &mut self,
        job: &Job,
        offset_seed: u64,
        rng: &mut Rng,
        out: &mut VecDeque<Step>,
    ) -> Result<u32, NoFile> {
        if self.all_done() {
            return Err(NoFile::Done);
        }
        let service = job.settings.file_service;
        if let Some(current) = self.current {
            let file = &self.all[current as usize];
            if file.open && !file.closing {
                if service == FileService::Sequential {
                    return Ok(current);
                }
                if self.left > 0 {
                    self.left -= 1;
                    return Ok(current);
                }
                let is_only = self.all.len() == 1 && !file.done;
                if is_only && service == FileService::RoundRobin {
                    self.left = job.settings.file_service_count.wrapping_sub(1);
                    return Ok(current);
                }
            }
        }
        let chosen = match service {
            FileService::RoundRobin | FileService::Sequential => {
                self.next_in_turn(job, offset_seed, out)
            }
            _ => self.next_drawn(job, offset_seed, rng, out),
        };
        if chosen == Err(NoFile::Busy) {
            return chosen;
        }
        self.current = chosen.ok();
        self.left = job.settings.file_service_count.wrapping_sub(1);
        chosen
    }

    fn next_in_turn(
        &mut self,
        job: &Job,
        seed: u64,
        out: &mut VecDeque<Step>,
    ) -> Result<u32, NoFile> {
        let before = self.next;
        loop {
            let index = self.next;
            self.next = index + 1;
            if self.next == self.all.len() as u32 {
                self.next = 0;
            }
            if !self.all[index as usize].done {
                self.open_if_allowed(index, job, seed, out)?;
                if !self.all[index as usize].closing {
                    return Ok(index);
                }
            }
            if self.next == before {
                return Err(NoFile::Done);
            }
        }
    }

    fn next_drawn(
        &mut self,
        job: &Job,
        seed: u64,
        rng: &mut Rng,
        out: &mut VecDeque<Step>,
    ) -> Result<u32, NoFile> {
        let count = self.all.len() as u64;
        for _ in 0..DRAWS_MAX {
            let index = match &mut self.skewed {
                Some(skewed) => skewed.draw() / 1024,
                None => rng.below(count),
            };
            let index = index.min(count - 1) as u32;
            let file = &self.all[index as usize];
            if file.done {
                continue;
            }
            self.open_if_allowed(index, job, seed, out)?;
            if !self.all[index as usize].closing {
                return Ok(index);
            }
        }
        Err(NoFile::Done)
    }

    fn open_if_allowed(
        &mut self,
        index: u32,
        job: &Job,
        seed: u64,
        out: &mut VecDeque<Step>,
    ) -> Result<(), NoFile> {
        if self.all[index as usize].open {
            return Ok(());
        }
        if self.open >= job.settings.openfiles {
            return Err(NoFile::Busy);
        }
        self.open_file(index, seed, out);
        Ok(())
    }

    /// Opens a closed file, which resets it.
    pub(super) fn open_file(&mut self, index: u32, seed: u64, out: &mut VecDeque<Step>) {
        let file = &mut self.all[index as usize];
        if file.open {
            return;
        }
        file.open = true;
        file.closing = false;
        file.reset(seed);
        self.open += 1;
        out.push_back(Step::Open { file: index });
    }

    /// Opens a file, or keeps one open that was about to close.
    pub(super) fn reopen(&mut self, index: u32, seed: u64, out: &mut VecDeque<Step>) {
        self.all[index as usize].closing = false;
        self.open_file(index, seed, out);
    }

    /// Closes an open file, now or when its last I/O completes.
    pub(super) fn close_file(&mut self, index: u32, fsync: bool, out: &mut VecDeque<Step>) {
        let file = &mut self.all[index as usize];
        if !file.open {
            return;
        }
        file.closing = true;
        if file.users == 0 {
            self.close_now(index, fsync, out);
        }
    }

    fn close_now(&mut self, index: u32, fsync: bool, out: &mut VecDeque<Step>) {
        let file = &mut self.all[index as usize];
        file.open = false;
        file.closing = false;
        self.open -= 1;
        out.push_back(Step::Close { file: index, fsync });
    }

    /// An I/O uses the file.
    #[inline]
    pub(super) fn hold(&mut self, index: u32) {
        self.all[index as usize].users += 1;
    }

    /// An I/O no longer uses the file.
    pub(super) fn release(&mut self, index: u32, fsync: bool, out: &mut VecDeque<Step>) {
        let file = &mut self.all[index as usize];
        file.users -= 1;
        if file.users == 0 && file.closing && file.open {
            self.close_now(index, fsync, out);
        }
    }

    /// Marks a file as finished.
    pub(super) fn finish(&mut self, index: u32) {
        self.all[index as usize].done = true;
        self.done += 1;
    }

    /// Marks all files as finished that are not yet.
    pub(super) fn finish_all(&mut self) {
        for file in self.all.iter_mut().filter(|file| !file.done) {
            file.done = true;
            self.done += 1;
        }
    }
}

impl File {
    fn new(job: &Job, range: FileRange, name: &str) -> Result<File, Error> {
        let mut file = File {
            range,
            offset: range.first,
            last_pos: [range.first; 3],
            last_start: [UNSET; 3],
            map: None,
            lfsr: None,
            skewed: skewed_blocks(job, &range, name),
            dirty: None,
            open: false,
            closing: false,
            done: false,
            users: 0,
        };
        let settings = &job.settings;
        if !settings.rw.random || file.skewed.is_some() {
            return Ok(file);
        }
        let blocks = map_blocks(job, &range);
        if settings.random_generator == Generator::Lfsr {
            let lfsr = Lfsr::new(blocks, job.seeds.seed(Use::Offset))
                .ok_or_else(|| Error::new("fio: failed initializing LFSR"))?;
            file.lfsr = Some(lfsr);
        } else if !settings.norandommap {
            file.map = RandomMap::new(blocks);
            if file.map.is_none() && !settings.softrandommap {
                return Err(Error::new(format!(
                    "fio: failed allocating random map of {blocks} blocks: try the 'norandommap' option or set \
                     'softrandommap'"
                )));
            }
        }
        Ok(file)
    }

    /// Positions, map and register as at the beginning.
    pub(super) fn reset(&mut self, offset_seed: u64) {
        self.last_pos = [self.offset; 3];
        self.last_start = [UNSET; 3];
        if let Some(map) = &mut self.map {
            map.clear();
        }
        if let Some(lfsr) = &mut self.lfsr {
            lfsr.restart(offset_seed);
        }
    }

    /// The smaller of the range and the file.
    pub(super) fn usable(&self) -> u64 {
        self.range.length.min(self.range.real_size)
    }
}

/// Memory in bytes that the map of touched blocks of a file takes at most: 0 if
/// the job keeps none.
pub fn random_map_bytes(job: &Job, range: &FileRange) -> u64 {
    let settings = &job.settings;
    let keeps_map = settings.rw.random
        && settings.distribution == Distribution::Random
        && settings.random_generator != Generator::Lfsr
        && !settings.norandommap;
    if keeps_map {
        RandomMap::bytes(map_blocks(job, range), settings.number_ios)
    } else {
        0
    }
}

/// Blocks of the map (and of the register) of a file.
pub(super) fn map_blocks(job: &Job, range: &FileRange) -> u64 {
    let settings = &job.settings;
    let bytes = match settings.zonemode {
        ZoneMode::Strided => settings.zonerange,
        _ => range.length.min(range.real_size),
    };
    bytes / settings.smallest_bs().max(1)
}

fn skewed_blocks(job: &Job, range: &FileRange, name: &str) -> Option<Skewed> {
    let settings = &job.settings;
    if !settings.rw.random {
        return None;
    }
    let (shape, center) = match settings.distribution {
        Distribution::Zipf { theta, center } => (Shape::Zipf(theta), center),
        Distribution::Pareto { power, center } => (Shape::Pareto(power), center),
        Distribution::Normal {
            deviation_percent,
            center,
        } => (Shape::Normal(deviation_percent), center),
        _ => return None,
    };
    let block = settings.min_bs[0].min(settings.min_bs[1]).max(1);
    let blocks = range.length.min(range.real_size).div_ceil(block);
    let seed = if settings.randrepeat {
        name_hash(name.as_bytes()).wrapping_mul(job.thread)
    } else {
        job.seeds.seed(Use::Offset) as u32
    };
    Some(Skewed::new(shape, blocks, center, seed))
}
