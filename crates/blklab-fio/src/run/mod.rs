// SPDX-License-Identifier: MIT OR Apache-2.0
//! One running job: which I/O comes next, when it is handed over, when to
//! wait.
//!
//! [`JobRun`] is a machine without input and output of its own. The caller asks
//! for the next [`Step`], does it, and reports back: [`JobRun::answer`] after
//! an [`Step::Issue`], [`JobRun::reaped`] after a [`Step::Reap`]. Time is what
//! the caller says it is. The sequence is that of fio 3.33, I/O by I/O, for
//! every engine whose answers are the same.
//!
//! ```
//! use blklab_fio::parse::{Fixed, ParseOptions, parse};
//! use blklab_fio::range::{FileState, find_ranges};
//! use blklab_fio::run::{Answer, JobRun, Step};
//!
//! let text = "[a]\nioengine=null\nrw=randread\nsize=1m\n";
//! let job = parse("x", text, &ParseOptions::default(), &Fixed::default()).unwrap().jobs.remove(0);
//! let ranges = find_ranges(&job, |_| FileState::Missing).unwrap();
//! let mut run = JobRun::new(job, &ranges).unwrap();
//! let mut offsets = Vec::new();
//! loop {
//!     match run.step(0) {
//!         Step::Issue(io) => {
//!             offsets.push(io.offset);
//!             run.answer(Answer::Completed { error: 0 }, 0);
//!         }
//!         Step::Done(_) => break,
//!         _ => {}
//!     }
//! }
//! assert_eq!((offsets.len(), offsets[0], offsets[1]), (256, 61440, 774144));
//! ```
//!
//! Left out: offloaded submission, flow control, steady state, trims between
//! verified writes, zoned devices. Units: bytes; times given are nanoseconds,
//! kept ones microseconds since the job's start as in fio.

mod account;
mod build;
mod files;
mod history;
mod pace;
mod pass;
mod records;

use crate::job::Job;
use crate::range::Ranges;
use crate::rng::Rng;
use crate::seeds::{Generators, Seeds, Use};
use crate::settings::{Dir, Generator, PerDir};
use files::Files;
use history::History;
use pace::{LatencyTarget, MinRate, Rate, Think};
use records::Records;
use std::collections::VecDeque;

/// Operation of one I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoOp {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Trim.
    Trim,
    /// fsync.
    Sync,
    /// fdatasync.
    Datasync,
    /// sync_file_range.
    SyncFileRange,
}

impl IoOp {
    /// The direction, for I/Os with data.
    pub fn dir(self) -> Option<Dir> {
        match self {
            IoOp::Read => Some(Dir::Read),
            IoOp::Write => Some(Dir::Write),
            IoOp::Trim => Some(Dir::Trim),
            IoOp::Sync | IoOp::Datasync | IoOp::SyncFileRange => None,
        }
    }

    /// fio's word in logs.
    pub fn name(self) -> &'static str {
        match self {
            IoOp::Read => "read",
            IoOp::Write => "write",
            IoOp::Trim => "trim",
            IoOp::Sync => "sync",
            IoOp::Datasync => "datasync",
            IoOp::SyncFileRange => "sync_file_range",
        }
    }
}

impl From<Dir> for IoOp {
    fn from(dir: Dir) -> IoOp {
        match dir {
            Dir::Read => IoOp::Read,
            Dir::Write => IoOp::Write,
            Dir::Trim => IoOp::Trim,
        }
    }
}

/// One I/O to hand to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Its request record, below `iodepth`; free again once completed.
    pub record: u32,
    /// Operation.
    pub op: IoOp,
    /// Index of the file in the job.
    pub file: u32,
    /// First byte; for `SyncFileRange` the start of what was written.
    pub offset: u64,
    /// Length; 0 for syncs except `SyncFileRange`.
    pub length: u64,
    /// The offset that fio's log shows: for syncs, the record's last one.
    pub logged_offset: u64,
    /// A read that checks an earlier write.
    pub verify: bool,
    /// Class and level of its I/O priority, if it differs from the job's.
    pub priority: Option<(u32, u32)>,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Open a file (drop its cached pages and advise as the job says).
    Open {
        /// Index of the file.
        file: u32,
    },
    /// Close a file.
    Close {
        /// Index of the file.
        file: u32,
        /// fsync it first.
        fsync: bool,
    },
    /// Drop a file's cached pages, if the job asks for it: a job bound by time
    /// starts over.
    Invalidate {
        /// Index of the file.
        file: u32,
    },
    /// Hand an I/O to the engine, then call [`JobRun::answer`].
    Issue(Io),
    /// Submit what the engine holds, if it holds anything.
    Commit,
    /// Submit what the engine holds, wait for `min` completions, take up to
    /// `max`, then call [`JobRun::reaped`].
    Reap {
        /// At least so many.
        min: u32,
        /// At most so many.
        max: u32,
    },
    /// Wait until this time.
    Wait {
        /// Until when.
        until_ns: u64,
        /// Busy instead of asleep.
        spin: bool,
    },
    /// A pass over the files begins.
    PassStart,
    /// A pass has ended; its time counts as the job's run time.
    PassEnd,
    /// Reading back what a pass wrote begins.
    VerifyStart,
    /// Reading back has ended; its time counts as run time of reads.
    VerifyEnd,
    /// Forget all statistics: the time that does not count is over.
    ResetStats,
    /// The job has ended. Asking again gives the same.
    Done(Outcome),
}

/// How a job ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The error that ended it, as a Linux error number; 0 for none.
    pub error: i32,
    /// Errors that it survived.
    pub survived_errors: u64,
}

/// The engine's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done within the call.
    Completed {
        /// Linux error number, or 0.
        error: i32,
    },
    /// Taken; it completes later.
    Queued,
    /// Not now: the same request comes again.
    Busy,
}

/// A request that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Its record.
    pub record: u32,
    /// Linux error number, or 0.
    pub error: i32,
}

/// Where the machine goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    NextPass,
    LoopTop,
    Choose {
        record: u32,
    },
    RateWait {
        record: u32,
        file: u32,
        dir: Dir,
        wait_us: u64,
    },
    RateDone {
        record: u32,
        file: u32,
        dir: Dir,
    },
    Ready {
        record: u32,
    },
    Answer {
        record: u32,
    },
    Reaping {
        busy: bool,
        data: Option<Dir>,
        again: bool,
        full: bool,
    },
    Think {
        dir: Option<Dir>,
    },
    ThinkSpin {
        dir: Dir,
    },
    ThinkSleep {
        dir: Dir,
    },
    ThinkEnd {
        dir: Dir,
    },
    LoopEnd,
    FinalSync {
        file: u32,
    },
    FinalSyncReap {
        file: u32,
    },
    PassEnd,
    VerifyTop,
    Quiesce,
    Finished,
}

/// What the loop is doing, which decides what follows an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Run,
    FinalSync { file: u32 },
    Verify,
}

/// Cumulative counts, named after what resets them: nothing but the end of the
/// time that does not count, where not said otherwise.
#[derive(Clone, Debug, Default)]
struct Count {
    /// I/Os issued, without verification reads.
    issued: PerDir<u64>,
    /// Bytes issued; never reset.
    issued_bytes: PerDir<u64>,
    /// I/Os completed.
    blocks: PerDir<u64>,
    /// Bytes completed.
    bytes: PerDir<u64>,
    /// Bytes taken by an asynchronous engine in this pass.
    queued_bytes: u64,
    /// `bytes` at the start of this pass.
    bytes_before: u64,
}

/// One running job.
#[derive(Clone, Debug)]
pub struct JobRun {
    job: Job,
    /// fio's `size`: bytes of one pass.
    size: u64,
    loops_left: u32,
    number_ios: u64,
    seeds: Seeds,
    /// Where shift registers restart.
    offset_seed: u64,
    generators: Generators,
    files: Files,
    records: Records,
    history: History,
    verify_left: u64,
    count: Count,
    mix_dir: Dir,
    mix_quota: u64,
    countdown: u32,
    zone_bytes: u64,
    last_was_sync: bool,
    last_dir: Dir,
    /// Requests taken since the last commit. A reap submits them without
    /// resetting this, and it outlives the pass.
    queued: u32,
    /// Requests committed and not reaped; too small by what a reap submitted.
    in_flight: i64,
    stuck: u32,
    at: At,
    /// Where to go after quiescing.
    resume: At,
    phase: Phase,
    out: VecDeque<Step>,
    epoch_us: u64,
    ramp_over: bool,
    passes: u64,
    terminated: bool,
    done: bool,
    error: i32,
    survived: u64,
    rate: Rate,
    think: Think,
    min_rate: MinRate,
    target: LatencyTarget,
}

/// How often a job may find no file without making progress.
const STUCK_MAX: u32 = 1_000_000;

impl JobRun {
    /// A job about to start on files that have been set up.
    ///
    /// # Errors
    /// fio's message if its maps or registers cannot be set up.
    pub fn new(job: Job, ranges: &Ranges) -> Result<JobRun, String> {
        let mut job = job;
        let files = Files::new(&job, ranges)?;
        let generators = Generators::new(&job.seeds, &job.settings);
        widen_generator(&mut job, ranges);
        let settings = &job.settings;
        Ok(JobRun {
            size: ranges.size,
            loops_left: settings.loops,
            number_ios: settings.number_ios,
            seeds: job.seeds.clone(),
            offset_seed: job.seeds.of(Use::Offset),
            generators,
            files,
            records: Records::new(settings.iodepth),
            history: History::default(),
            verify_left: 0,
            count: Count::default(),
            mix_dir: Dir::Read,
            mix_quota: 0,
            countdown: 1,
            zone_bytes: 0,
            last_was_sync: false,
            last_dir: Dir::Read,
            queued: 0,
            in_flight: 0,
            stuck: 0,
            at: At::Start,
            resume: At::Finished,
            phase: Phase::Run,
            out: VecDeque::with_capacity(8),
            epoch_us: 0,
            ramp_over: settings.ramp_time_us == 0,
            passes: 0,
            terminated: false,
            done: false,
            error: 0,
            survived: 0,
            rate: Rate::default(),
            think: Think::default(),
            min_rate: MinRate::default(),
            target: LatencyTarget::new(settings),
            job,
        })
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Bytes of one pass.
    pub fn size_bytes(&self) -> u64 {
        self.size
    }

    /// Requests that may be in flight just now: `iodepth`, or what a latency
    /// target has found.
    pub fn depth_now(&self) -> u32 {
        if self.target.is_on() {
            self.target.depth
        } else {
            self.job.settings.iodepth
        }
    }

    /// Asks the job to end, as another job's `exitall` does.
    pub fn terminate(&mut self) {
        self.terminated = true;
    }

    /// The next step at this time. Asking again before the engine's answer
    /// repeats the request.
    pub fn step(&mut self, now_ns: u64) -> Step {
        loop {
            if let Some(step) = self.out.pop_front() {
                return step;
            }
            if let Some(step) = self.advance(now_ns) {
                return step;
            }
        }
    }

    fn advance(&mut self, now_ns: u64) -> Option<Step> {
        if self.target.quiesce_due {
            self.quiesce_for_target(now_ns);
        }
        match self.at {
            At::Start => self.start(now_ns),
            At::NextPass => self.next_pass(now_ns),
            At::LoopTop => self.loop_top(now_ns),
            At::Choose { record } => self.choose(record, now_ns),
            At::RateWait {
                record,
                file,
                dir,
                wait_us,
            } => self.rate_wait(record, file, dir, wait_us, now_ns),
            At::RateDone { record, file, dir } => self.rate_done(record, file, dir, now_ns),
            At::Ready { record } => Some(self.issue(record, now_ns)),
            At::Answer { record } => Some(Step::Issue(self.io(record))),
            At::Reaping {
                busy,
                data,
                again,
                full,
            } => self.reap(busy, data, again, full),
            At::Think { dir } => self.think(dir, now_ns),
            At::ThinkSpin { dir } => self.think_spin(dir, now_ns),
            At::ThinkSleep { dir } => self.think_sleep(dir, now_ns),
            At::ThinkEnd { dir } => self.think_end(dir, now_ns),
            At::LoopEnd => self.loop_end(),
            At::FinalSync { file } => self.final_sync(file),
            At::FinalSyncReap { file } => self.final_sync_reap(file),
            At::PassEnd => self.pass_end(),
            At::VerifyTop => self.verify_top(now_ns),
            At::Quiesce => self.quiesce(now_ns),
            At::Finished => Some(Step::Done(Outcome {
                error: self.error,
                survived_errors: self.survived,
            })),
        }
    }

    fn go(&mut self, at: At) -> Option<Step> {
        self.at = at;
        None
    }

    /// Top of the loop: whether to build another I/O.
    fn loop_top(&mut self, now_ns: u64) -> Option<Step> {
        let time_based = self.job.settings.time_based;
        if self.terminated || self.done || (!time_based && self.limit_reached()) {
            return self.go(At::LoopEnd);
        }
        if self.runtime_over(now_ns) {
            self.terminated = true;
            return self.go(At::LoopEnd);
        }
        let unbounded = time_based && !self.job.settings.verify;
        if !unbounded && self.count.queued_bytes >= self.pass_limit() {
            return self.go(At::LoopEnd);
        }
        let Some(record) = self.records.take(self.is_full()) else {
            return self.nothing_to_issue();
        };
        if self.take_backlog(record) || self.records.get(record).file.is_some() {
            return self.go(At::Ready { record });
        }
        self.go(At::Choose { record })
    }

    /// No I/O can be built: with a latency target the loop first reaps.
    fn nothing_to_issue(&mut self) -> Option<Step> {
        if self.target.is_on() && self.records.depth > 0 {
            return self.go(At::Reaping {
                busy: false,
                data: None,
                again: false,
                full: false,
            });
        }
        self.go(At::LoopEnd)
    }

    /// Chooses a file and a direction, and places the I/O unless it must wait
    /// for its rate.
    fn choose(&mut self, record: u32, now_ns: u64) -> Option<Step> {
        loop {
            let seed = self.offset_seed;
            let next = self.files.next(
                &self.job,
                seed,
                &mut self.generators.next_file,
                &mut self.out,
            );
            let file = match next {
                Ok(file) => file,
                Err(why) => return self.no_file(record, why),
            };
            self.files.hold(file);
            let op = self.choose_op();
            let Some(dir) = op.dir() else {
                return self.ready_or_trimwrite(record, file, op);
            };
            match self.rate_choice(dir, now_ns) {
                pace::Choice::Go(dir) => {
                    if self.place_in(record, file, dir) {
                        return self.go(At::Ready { record });
                    }
                }
                pace::Choice::Wait { dir, us } => {
                    self.at = At::RateWait {
                        record,
                        file,
                        dir,
                        wait_us: us,
                    };
                    self.resume = self.at;
                    return self.start_quiesce();
                }
            }
            if self.stuck > STUCK_MAX {
                self.records.put(record);
                return self.go(At::LoopEnd);
            }
        }
    }

    /// A sync needs no place, but a trimming job turns it into something else.
    fn ready_or_trimwrite(&mut self, record: u32, file: u32, op: IoOp) -> Option<Step> {
        if let Some(dir) = self.trim_or_write(op, file).dir() {
            return match self.place_in(record, file, dir) {
                true => self.go(At::Ready { record }),
                false => self.go(At::Choose { record }),
            };
        }
        let slot = self.records.get(record);
        slot.op = op;
        slot.file = Some(file);
        self.go(At::Ready { record })
    }

    /// Places an I/O in a file; a file without room is finished.
    fn place_in(&mut self, record: u32, file: u32, dir: Dir) -> bool {
        if self.job.settings.rw.is_mixed() {
            self.mix_dir = dir;
        }
        let op = self.trim_or_write(dir.into(), file);
        let dir = op.dir().unwrap_or(dir);
        if self.place(record, dir, file).is_ok() {
            let slot = self.records.get(record);
            slot.op = op;
            slot.file = Some(file);
            self.stuck = 0;
            return true;
        }
        self.stuck += 1;
        let fsync = self.fsync_on_close();
        self.files.release(file, fsync, &mut self.out);
        self.files.close_file(file, fsync, &mut self.out);
        if self.job.settings.file_service.is_non_uniform() {
            self.files.all[file as usize].reset(self.offset_seed);
        } else {
            self.files.finish(file);
        }
        false
    }

    fn no_file(&mut self, record: u32, why: files::NoFile) -> Option<Step> {
        self.records.put(record);
        match why {
            files::NoFile::Done => self.nothing_to_issue(),
            files::NoFile::Busy => {
                self.stuck += 1;
                if self.stuck > STUCK_MAX {
                    return self.go(At::LoopEnd);
                }
                self.go(At::Reaping {
                    busy: true,
                    data: None,
                    again: false,
                    full: false,
                })
            }
        }
    }

    /// Hands over a request that is ready.
    fn issue(&mut self, record: u32, now_ns: u64) -> Step {
        let settings = &self.job.settings;
        let logs_writes = self.phase == Phase::Run && settings.verify && settings.do_verify;
        let in_order = self.job.uses_random_map();
        let slot = self.records.get(record);
        slot.start_ns = now_ns;
        if let (true, IoOp::Write, Some(file)) = (logs_writes, slot.op, slot.file) {
            slot.history = Some(self.history.add(file, slot.offset, slot.length, in_order));
        }
        self.at = At::Answer { record };
        Step::Issue(self.io(record))
    }

    fn io(&mut self, record: u32) -> Io {
        let slot = *self.records.get(record);
        let file = slot.file.unwrap_or(0);
        let (offset, length) = match slot.op {
            IoOp::Sync | IoOp::Datasync => (0, 0),
            IoOp::SyncFileRange => self.files.all[file as usize]
                .dirty
                .map_or((0, 0), |(a, b)| (a, b - a)),
            IoOp::Read | IoOp::Write | IoOp::Trim => (slot.offset, slot.length),
        };
        Io {
            record,
            op: slot.op,
            file,
            offset,
            length,
            logged_offset: slot.offset,
            verify: slot.verify,
            priority: self.drawn_priority(slot.op),
        }
    }

    /// The priority of a request, for engines that set it per request.
    fn drawn_priority(&mut self, op: IoOp) -> Option<(u32, u32)> {
        let prio = &self.job.settings.cmdprio;
        let dir = op.dir().filter(|dir| *dir != Dir::Trim)? as usize;
        let percent = prio.percentage[dir];
        if percent == 0 {
            return None;
        }
        let class = if prio.class[dir] == 0 {
            1
        } else {
            prio.class[dir]
        };
        let drawn = self.generators.priority.between(0, 99);
        (drawn < u64::from(percent)).then_some((class, prio.level[dir]))
    }

    /// Whether no further request may be built.
    fn is_full(&self) -> bool {
        self.records.none_free() || (self.target.is_on() && self.records.depth >= self.target.depth)
    }

    fn fsync_on_close(&self) -> bool {
        self.job.settings.fsync_on_close && self.should_fsync()
    }

    fn should_fsync(&self) -> bool {
        self.job.settings.rw.writes && !self.last_was_sync
    }

    /// Reaps if it must, as often as it must.
    fn reap(&mut self, busy: bool, data: Option<Dir>, again: bool, full: bool) -> Option<Step> {
        let settings = &self.job.settings;
        let wanted = settings.iodepth_batch_complete_min;
        let depth = self.records.depth;
        let full = if again { full } else { self.is_full() };
        let polling = wanted == 0 && settings.iodepth_batch_complete_max == 0;
        let reap = match again {
            true => full && depth > settings.iodepth_low,
            false => full || (busy && depth > 0) || polling,
        };
        if !reap || depth == 0 || self.error != 0 {
            return self.go(At::Think { dir: data });
        }
        self.at = At::Reaping {
            busy,
            data,
            again: true,
            full,
        };
        let min = wanted.min(depth).max(1);
        Some(self.reap_step(min))
    }

    fn reap_step(&self, min: u32) -> Step {
        let max = self
            .job
            .settings
            .iodepth_batch_complete_max
            .min(self.records.depth);
        Step::Reap {
            min,
            max: max.max(min),
        }
    }

    /// Begins to submit and reap everything, then goes on at `resume`.
    fn start_quiesce(&mut self) -> Option<Step> {
        self.at = At::Quiesce;
        self.commit();
        None
    }

    fn quiesce(&mut self, now_ns: u64) -> Option<Step> {
        if self.in_flight > 0 && self.records.depth > 0 && self.error == 0 {
            return Some(self.reap_step(1));
        }
        if std::mem::take(&mut self.target.cycle_due) {
            self.new_latency_cycle(now_ns);
        }
        self.at = self.resume;
        None
    }

    /// Tells the engine to submit what it holds.
    fn commit(&mut self) {
        if self.records.depth > 0 && self.queued > 0 {
            self.in_flight += i64::from(self.queued);
            self.queued = 0;
            self.out.push_back(Step::Commit);
        }
    }

    fn now_us(&self, now_ns: u64) -> u64 {
        (now_ns / 1000).saturating_sub(self.epoch_us)
    }

    fn runtime_over(&self, now_ns: u64) -> bool {
        let runtime = self.job.settings.runtime_us;
        self.ramp_over && runtime != 0 && self.now_us(now_ns) >= runtime
    }
}

/// Files with more than 2^32 blocks switch the generator, but only for later
/// passes: the one in use stays.
fn widen_generator(job: &mut Job, ranges: &Ranges) {
    let settings = &job.settings;
    let plain = settings.distribution == crate::settings::Distribution::Random
        || matches!(
            settings.distribution,
            crate::settings::Distribution::Zoned(_) | crate::settings::Distribution::ZonedAbs(_)
        );
    let default = settings.random_generator == Generator::Tausworthe
        && !settings.is_given("random_generator");
    let large = |job: &Job| {
        ranges
            .files
            .iter()
            .any(|range| files::map_blocks(job, range) > u64::from(u32::MAX))
    };
    if settings.rw.random && plain && default && large(job) {
        job.settings.random_generator = Generator::Tausworthe64;
    }
}

/// Microseconds of a time in nanoseconds.
fn to_us(now_ns: u64) -> u64 {
    now_ns / 1000
}

impl JobRun {
    /// New generators from the table of seeds.
    fn reseed(&mut self) {
        self.seeds.reseed(&self.job.settings, self.job.thread);
        self.offset_seed = self.seeds.of(Use::Offset);
        self.generators = Generators::new(&self.seeds, &self.job.settings);
        self.files.reseed_service(&self.job, &self.seeds);
    }

    /// The poisson generator of a direction.
    fn poisson(&mut self, dir: Dir) -> &mut Rng {
        &mut self.generators.poisson[dir as usize]
    }
}
