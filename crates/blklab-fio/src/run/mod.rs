// SPDX-License-Identifier: MIT OR Apache-2.0
//! One running job: which I/O comes next, when it is handed over, when to
//! wait.
//!
//! [`JobRun`] is a machine without input and output of its own. The caller asks
//! for the next [`Step`], does it, and reports back: [`JobRun::answer`] after
//! an [`Step::Issue`], [`JobRun::reaped`] after a [`Step::Reap`]. Time is what
//! the caller says it is. The sequence is that of fio 3.33, I/O by I/O, for
//! every engine whose answers are the same, or under the rules of fio 1.24.
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
//! Left out: trims between verified writes, zoned devices. Units: bytes; times given
//! are nanoseconds, kept ones microseconds since the job's start as in fio.

mod account;
mod build;
pub(crate) mod cmdprio;
mod errors;
mod files;
mod flow;
mod history;
mod of_2009;
mod overlap;
mod pace;
mod pass;
mod records;
mod replay;
mod step;
mod turn;

pub use crate::io_op::IoOp;
pub use cmdprio::priorities;
pub use errors::{Cause, FailedIo, Failure};
pub use files::random_map_bytes;
pub use step::{Answer, Completion, Io, Outcome, Step};

use crate::job::Job;
use crate::range::Ranges;
use crate::release::Features;
use crate::rng::Rng;
use crate::seeds::{Generators, Seeds, Use};
use crate::settings::{Dir, Generator, PerDir};
use blklab_types::Error;
use errors::Errors;
use files::Files;
use history::History;
use pace::{LatencyTarget, MinRate, Rate, Think};
use records::Records;
use std::collections::VecDeque;

/// Where the machine goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    NextPass,
    LoopTop,
    Flow,
    FlowHeld,
    FlowSleep,
    Choose {
        record: u32,
    },
    Replay {
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
    /// What replaces some of them under fio 1.24's rules.
    of_2009: Option<of_2009::Draws>,
    files: Files,
    records: Records,
    /// The flow has just let the job go on.
    granted: bool,
    /// The log that takes the place of everything that is drawn.
    playback: Option<replay::Playback>,
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
    errors: Errors,
    rate: Rate,
    think: Think,
    min_rate: MinRate,
    target: LatencyTarget,
}

/// How often a job may find no file without making progress.
const STUCK_MAX: u32 = 1_000_000;

/// Turns of the machine from one step to the next: more than there can be while
/// it looks for a file.
const TURNS_MAX: u32 = 8 * STUCK_MAX;

impl JobRun {
    /// A job about to start on files that have been set up.
    ///
    /// # Errors
    /// fio's message if its maps or registers cannot be set up.
    pub fn new(job: Job, ranges: &Ranges) -> Result<JobRun, Error> {
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
            offset_seed: job.seeds.seed(Use::Offset),
            generators,
            of_2009: draws_of_2009(&job, &job.seeds),
            files,
            records: Records::new(settings.iodepth),
            granted: false,
            playback: replay::Playback::new(&job),
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
            errors: Errors::default(),
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
    #[inline]
    pub fn step(&mut self, now_ns: u64) -> Step {
        for _ in 0..TURNS_MAX {
            if let Some(step) = self.out.pop_front() {
                return step;
            }
            if let Some(step) = self.advance(now_ns) {
                return step;
            }
        }
        Step::Stalled
    }

    /// Whether nothing has counted so far: `ramp_time` is not over.
    pub fn in_ramp(&self) -> bool {
        !self.ramp_over
    }

    #[inline(always)]
    fn advance(&mut self, now_ns: u64) -> Option<Step> {
        if self.target.quiesce_due {
            self.quiesce_for_target(now_ns);
        }
        match self.at {
            At::LoopTop => self.loop_top(now_ns),
            At::Answer { record } => Some(Step::Issue(self.io(record))),
            At::Reaping {
                busy,
                data,
                again,
                full,
            } => self.reap(busy, data, again, full, now_ns),
            _ => self.advance_elsewhere(now_ns),
        }
    }

    /// Where the machine seldom is: apart, so that the way through the loop stays short.
    #[inline(never)]
    fn advance_elsewhere(&mut self, now_ns: u64) -> Option<Step> {
        match self.at {
            At::LoopTop | At::Answer { .. } | At::Reaping { .. } => {
                unreachable!("is in the loop")
            }
            At::Start => self.start(now_ns),
            At::NextPass => self.next_pass(now_ns),
            At::Flow => Some(Step::Flow),
            At::FlowHeld => self.flow_held(),
            At::FlowSleep => self.flow_sleep(now_ns),
            At::Choose { record } => self.choose(record, now_ns),
            At::Replay { record } => self.replay(record, now_ns),
            At::RateWait {
                record,
                file,
                dir,
                wait_us,
            } => self.rate_wait(record, file, dir, wait_us, now_ns),
            At::RateDone { record, file, dir } => self.rate_done(record, file, dir, now_ns),
            At::Ready { record } => self.ready(record, now_ns),
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
                error: self.errors.fatal,
                errors: self.errors.total,
                first_error: self.errors.first,
            })),
        }
    }

    fn go(&mut self, at: At) -> Option<Step> {
        self.at = at;
        None
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

/// The generators of 2009 for jobs that follow them.
fn draws_of_2009(job: &Job, seeds: &Seeds) -> Option<of_2009::Draws> {
    let old = Features::of(job.release).draws_of_2009;
    old.then(|| of_2009::Draws::new(job, seeds))
}

/// Microseconds of a time in nanoseconds.
fn to_us(now_ns: u64) -> u64 {
    now_ns / 1000
}

impl JobRun {
    /// New generators from the table of seeds.
    fn reseed(&mut self) {
        self.seeds.reseed(&self.job.settings, self.job.thread);
        self.offset_seed = self.seeds.seed(Use::Offset);
        self.generators = Generators::new(&self.seeds, &self.job.settings);
        self.of_2009 = draws_of_2009(&self.job, &self.seeds);
        self.files.reseed_service(&self.job, &self.seeds);
    }

    /// The poisson generator of a direction.
    fn poisson(&mut self, dir: Dir) -> &mut Rng {
        &mut self.generators.poisson[dir as usize]
    }
}
