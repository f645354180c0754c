// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which part of each file a job works on, and what must be laid out first.
//!
//! Behaviour of fio 3.33's file set-up: sizes come from `size`, `filesize` or
//! the files themselves; files that are too short are extended before the job
//! starts unless their engine moves no data.
//!
//! Units: bytes.

use crate::job::Job;
use crate::replay::Replay;
use crate::seeds::Generators;
use crate::settings::{Dir, Settings};
use blklab_types::Error;

/// What there is under a file's name before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileState {
    /// Nothing.
    #[default]
    Missing,
    /// A regular file of that size.
    Regular(u64),
    /// A device of that size; it cannot grow.
    Device(u64),
    /// Something whose size means nothing (for engines that move no data).
    Unknown,
}

/// The part of a file that a job works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// First byte in the first pass.
    pub first: u64,
    /// First byte as calculated again after set-up (percentages of a file that
    /// has grown differ).
    pub start: u64,
    /// Length of the range.
    pub length: u64,
    /// Size of the file once set up; `u64::MAX` if it has no end.
    pub real_size: u64,
    /// Size before set-up, if it must be laid out or extended.
    pub layout_from: Option<u64>,
}

/// A job's files once set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges {
    /// One per file, in order.
    pub files: Vec<FileRange>,
    /// Bytes of one pass over all files: fio's `size` from here on.
    pub size: u64,
}

/// A file to set up before the jobs start, because it is missing or too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Index of the file in its job.
    pub file: u32,
    /// Size it has now.
    pub from_bytes: u64,
    /// Size it must get.
    pub to_bytes: u64,
    /// Bytes per write: the largest write the job makes.
    pub block_bytes: u64,
    /// Whether the file is removed, given its size and written from beginning
    /// to end (for reads and overwrites); else it is merely created.
    pub written: bool,
    /// Whether an existing file is removed first.
    pub unlinked: bool,
    /// Whether an fsync follows.
    pub fsync: bool,
}

impl Layout {
    /// Size of the file afterwards.
    pub fn size_bytes(&self) -> u64 {
        match (self.written, self.unlinked) {
            (true, _) => self.to_bytes,
            (false, true) => 0,
            (false, false) => self.from_bytes,
        }
    }
}

/// Finds the ranges of a job's files. `state` says what is there.
///
/// # Errors
/// fio's message when there is nothing to work on.
pub fn find_ranges(job: &Job, mut state: impl FnMut(&str) -> FileState) -> Result<Ranges, Error> {
    if let Some(replay) = &job.replay {
        return recorded_ranges(job, replay, state);
    }
    let settings = &job.settings;
    let count = settings.nrfiles as usize;
    let states: Vec<FileState> = job
        .files
        .iter()
        .take(count)
        .map(|name| state(name))
        .collect();
    let sizes: Vec<u64> = states.iter().map(|state| known_size(job, *state)).collect();
    check_size_given(job, &sizes)?;
    let per_file = settings.size.checked_div(count as u64).unwrap_or(0);
    let mut longer = settings
        .size
        .wrapping_sub(per_file.wrapping_mul(count as u64))
        / settings.smallest_bs().max(1);
    let mut draw = Generators::new(&job.seeds, settings).file_size;
    let mut total: u64 = 0;
    let mut files = Vec::with_capacity(count);
    for (at, &size) in sizes.iter().enumerate() {
        let grows = !matches!(states[at], FileState::Device(_));
        let first = start_offset(job, size, grows);
        let mut given = per_file;
        if longer > 0 && settings.filesize.0 == 0 {
            longer -= 1;
            given = given.wrapping_add(settings.smallest_bs());
        }
        let mut length = range_length(job, given, size, first, || {
            drawn_file_size(settings, draw.unit())
        })?;
        if length == u64::MAX {
            total = u64::MAX;
        } else {
            length = cut_to_percent(settings, length, first);
            total = total.wrapping_add(percent(length, settings.io_size_percent));
        }
        let end = length.wrapping_add(first);
        let extended = grows && end > size;
        let real_size = if extended { end } else { size };
        files.push(FileRange {
            first,
            start: start_offset(job, real_size, grows),
            length,
            real_size,
            layout_from: (extended && !job.is_diskless()).then_some(size),
        });
    }
    let mut size = settings.size;
    if size == 0 || (total != 0 && size > total) {
        size = total;
    }
    if size < settings.smallest_bs() && count > 0 {
        return Err(Error::new("fio: blocksize is larger than data set range"));
    }
    Ok(Ranges { files, size })
}

/// The whole of every file of a log. A file that is read is taken to be there,
/// as large as the log reaches; one that is only written grows.
fn recorded_ranges(
    job: &Job,
    replay: &Replay,
    mut state: impl FnMut(&str) -> FileState,
) -> Result<Ranges, Error> {
    let mut files = Vec::with_capacity(replay.files.len());
    for file in &replay.files {
        let (size, grows) = match state(&file.name) {
            _ if job.is_diskless() => (u64::MAX, false),
            FileState::Unknown => (u64::MAX, false),
            FileState::Device(size) => (size, false),
            FileState::Regular(size) => (size, true),
            FileState::Missing => (0, true),
        };
        if !grows && file.end_bytes > size {
            return Err(Error::new(format!(
                "{}:{}: the replay reaches byte {} of {}, which has {size}; replay_scale= divides \
                 all offsets",
                replay.log, file.end_line, file.end_bytes, file.name
            )));
        }
        files.push(FileRange {
            first: 0,
            start: 0,
            length: size.max(file.end_bytes),
            real_size: size.max(file.end_bytes),
            layout_from: (grows && file.end_bytes > size).then_some(size),
        });
    }
    Ok(Ranges {
        files,
        size: replay.bytes,
    })
}

/// The files to set up for these ranges, in order.
pub fn layouts(job: &Job, ranges: &Ranges) -> Vec<Layout> {
    let settings = &job.settings;
    if settings.create_on_open {
        return Vec::new();
    }
    let append = settings.file_append;
    // A mapping cannot extend a file (`FIO_NOEXTEND`).
    let never_extends = settings.ioengine == "mmap";
    let written = settings.rw.reads
        || (settings.rw.writes && (never_extends || settings.overwrite && !append));
    let layout = |(at, from_bytes, to_bytes): (usize, u64, u64)| {
        let recorded = job.replay.as_ref().map(|replay| replay.files[at].is_read);
        let written = recorded.unwrap_or(written);
        Layout {
            file: at as u32,
            from_bytes,
            to_bytes,
            block_bytes: settings.max_bs[Dir::Write as usize],
            written,
            unlinked: written || (settings.rw.writes && !append),
            fsync: settings.create_fsync && written,
        }
    };
    let files = ranges.files.iter().enumerate();
    files
        .filter_map(|(at, range)| Some(layout((at, range.layout_from?, range.real_size))))
        .collect()
}

fn known_size(job: &Job, state: FileState) -> u64 {
    let share = job
        .settings
        .size
        .checked_div(u64::from(job.settings.nrfiles))
        .unwrap_or(0);
    match state {
        FileState::Unknown => unknown_size(job, share),
        _ if job.is_diskless() => unknown_size(job, share),
        FileState::Missing => 0,
        FileState::Regular(size) | FileState::Device(size) => size,
    }
}

fn unknown_size(job: &Job, share: u64) -> u64 {
    if job.settings.size != 0 {
        share
    } else {
        u64::MAX
    }
}

fn check_size_given(job: &Job, sizes: &[u64]) -> Result<(), Error> {
    let settings = &job.settings;
    let nothing = sizes.contains(&u64::MAX) || sizes.iter().all(|&size| size == 0);
    let given = settings.size != 0
        || settings.fill_device
        || (settings.nrfiles > 0 && settings.filesize.1 != 0);
    if nothing && !given {
        return Err(Error::new(format!(
            "{}: you need to specify size=",
            job.name
        )));
    }
    Ok(())
}

/// The first byte a job touches in a file of that size.
fn start_offset(job: &Job, size: u64, grows: bool) -> u64 {
    let settings = &job.settings;
    if settings.file_append && grows {
        return size;
    }
    let share = |percent: u32| u64::from(percent).wrapping_mul(size) / 100;
    let by_percent = settings.offset_increment_percent != 0 || settings.offset_percent != 0;
    let increment = match settings.offset_increment_percent {
        0 => settings.offset_increment,
        percent => share(percent),
    };
    let base = match settings.offset_percent {
        0 => settings.offset,
        percent => share(percent),
    };
    let offset = base.wrapping_add(u64::from(job.subjob).wrapping_mul(increment));
    if !by_percent {
        return offset;
    }
    let given = if settings.is_given("offset_align") {
        u64::from(settings.offset_align)
    } else {
        0
    };
    let align = if given != 0 {
        given
    } else {
        settings.smallest_bs().max(1)
    };
    offset.div_ceil(align).wrapping_mul(align)
}

fn range_length(
    job: &Job,
    given: u64,
    real_size: u64,
    first: u64,
    drawn: impl FnOnce() -> u64,
) -> Result<u64, Error> {
    let (low, high) = job.settings.filesize;
    let no_offset = || Error::new(format!("{}: you need to specify valid offset=", job.name));
    let rest = |size: u64| size.checked_sub(first).ok_or_else(no_offset);
    if low == 0 {
        return if given != 0 {
            Ok(given)
        } else {
            rest(real_size)
        };
    }
    if (low..=high).contains(&real_size) {
        return Ok(real_size.wrapping_sub(first));
    }
    let fixed = rest(low)?;
    Ok(if low == high {
        fixed
    } else {
        drawn().wrapping_sub(first)
    })
}

fn drawn_file_size(settings: &Settings, unit: f64) -> u64 {
    let (low, high) = settings.filesize;
    let size = ((high.wrapping_sub(low)) as f64 * unit) as u64;
    let size = size.wrapping_add(low);
    size - size % settings.smallest_bs().max(1)
}

fn cut_to_percent(settings: &Settings, length: u64, first: u64) -> u64 {
    if matches!(settings.size_percent, 0 | 100) {
        return length;
    }
    let file_size = length.wrapping_add(first);
    let cut = (file_size.wrapping_mul(u64::from(settings.size_percent)) / 100).min(length);
    cut - cut % settings.smallest_bs().max(1)
}

fn percent(value: u64, percent: u32) -> u64 {
    match percent {
        0 | 100 => value,
        percent => value.wrapping_mul(u64::from(percent)) / 100,
    }
}
