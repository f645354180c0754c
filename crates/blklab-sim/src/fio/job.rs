// SPDX-License-Identifier: MIT OR Apache-2.0
//! One fio job as a task: asks its state machine what is next, does it, and
//! keeps fio's statistics.

use super::call::CallCost;
use super::engine::{CallSettings, Engine};
use super::files::Plan;
use super::first::{FirstCost, FirstTimes};
use super::flow::Share;
use super::looks::Looks;
use super::offload::{Pool, Setup, Work};
use super::program;
use super::recording::{Record, Recording, Slot, account, ddir};
use super::start::StartCost;
use super::uring;
use crate::Machine;
use blklab_fio::iolog::IologWriter;
use blklab_fio::job::io_prio;
use blklab_fio::run::{Answer, Io, JobRun, Outcome, Step};
use blklab_fio::settings::{FadviseHint, SyncWrites};
use blklab_pagecache::{Advice, Fd, OSync, PageCache};
use blklab_types::{Span, Time};
use std::rc::Rc;

/// Settings that all jobs of a run share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Processor time of one I/O in fio and the system call.
    pub(crate) io_cost: Span,
    /// Processor time of one direct I/O that counts as its latency.
    pub(crate) call_cost: CallCost,
    /// Processor time of one completion of an asynchronous I/O.
    pub(crate) reap_cost: Span,
    /// Processor time of a job until its first I/O.
    pub(crate) job_start: StartCost,
    /// What takes longer the first time.
    pub(crate) first_times: FirstCost,
    /// What a job has had of the processor when it begins.
    pub(crate) job_setup: Span,
    /// What the main process does while the jobs run.
    pub(crate) looks: Looks,
    /// Whether the kernel takes a priority for each asynchronous request.
    pub(crate) request_prio: bool,
    /// What the kernel's io_uring does.
    pub(crate) uring: uring::Features,
    /// Seed of the run; 0 for fio's own timing.
    pub(crate) seed: u64,
}

/// A running job.
struct Runner<'a> {
    m: &'a Machine,
    cache: &'a PageCache<Machine>,
    slot: &'a Slot,
    engine: Engine,
    is_direct: bool,
    fds: Vec<Option<Fd>>,
    records: Vec<Record>,
    in_flight: u32,
    completions: Vec<blklab_fio::run::Completion>,
    settings: Settings,
    iolog: Option<IologWriter<Vec<u8>>>,
    names: Vec<String>,
    started: Time,
    /// The job's part in a flow.
    share: Option<Share>,
    /// Its worker threads.
    pool: Option<Pool>,
    /// The job's own priority, as the kernel encodes it.
    ioprio: u16,
    first: FirstTimes,
}

/// The body of a job's task.
pub(crate) async fn run_job(
    m: &Machine,
    cache: &PageCache<Machine>,
    // Not in the task's own memory, which has room for each argument twice.
    mut plan: Box<Plan>,
    slot: &Slot,
    settings: Settings,
    stop: impl Fn() -> bool,
) {
    if let Some(program) = plan.program.take() {
        // Programs need more memory than jobs, of which there may be thousands.
        let run = program::run(m, cache, program, &plan.job, slot, settings.io_cost);
        return Box::pin(run).await;
    }
    *slot.borrow_mut() = Some(Recording {
        steady: plan.steady.take(),
        ..Recording::new(Rc::clone(&plan.job), m.now())
    });
    let job = &plan.job.settings;
    let depth = job.iodepth;
    let mut runner = Runner {
        m,
        cache,
        slot,
        engine: Engine::new(
            &job.ioengine,
            job.direct,
            depth,
            CallSettings::new(job, settings.io_cost, settings.uring),
            m,
            cache,
        ),
        is_direct: job.direct,
        fds: vec![None; plan.files.len()],
        records: vec![Record::default(); depth as usize + 1],
        in_flight: 0,
        completions: Vec::with_capacity(depth as usize),
        settings,
        iolog: None,
        names: plan.job.files.clone(),
        started: m.now(),
        share: plan.share.take(),
        pool: None,
        ioprio: plan.job.ioprio().value(),
        first: FirstTimes::new(job, settings.first_times),
    };
    runner.pool = runner.workers(&plan);
    runner.engine.sets_prio = settings.request_prio;
    runner.start_iolog(&plan);
    loop {
        if stop() {
            plan.run.terminate();
        }
        let now = m.now();
        if m.halts(now) {
            return std::future::pending().await;
        }
        if runner.pool.is_some() {
            runner.collect(&mut plan.run);
        }
        match plan.run.step(now.0) {
            Step::Issue(io) => {
                if !runner.issue_at_once(&mut plan.run, &io, now) {
                    runner.issue(&mut plan.run, &io).await;
                }
            }
            Step::Flow => runner.ask_flow(&mut plan.run),
            Step::FlowHeld { until_ns } => runner.held(until_ns, &stop).await,
            Step::Commit => runner.commit().await,
            Step::Reap { min, .. } if runner.pool.as_ref().is_some_and(Pool::is_busy) => {
                runner.wait_for_workers(&mut plan.run, min).await;
            }
            Step::Reap { min, max } => {
                runner.commit().await;
                runner.reap(&mut plan.run, min, max).await;
            }
            Step::Wait {
                until_ns,
                spin: true,
            } => m.spin_until(Time(until_ns)).await,
            Step::Wait { until_ns, .. } => m.sleep_until(Time(until_ns)).await,
            Step::Open { file } => runner.open(&plan, file).await,
            Step::Close { file, fsync } => runner.close(file, fsync).await,
            Step::Invalidate { file } => runner.invalidate(&plan, file).await,
            Step::PassStart | Step::VerifyStart => runner.pass_start(),
            Step::PassEnd | Step::VerifyEnd => runner.pass_end(),
            Step::ResetStats => {
                let now = m.now();
                runner.with(|r| r.end_ramp(now));
            }
            Step::Done(outcome) => {
                runner.end(&plan.run, outcome);
                if let Some(pool) = &runner.pool {
                    pool.end();
                }
                if let Some(share) = runner.share.take() {
                    share.leave(m);
                }
                return;
            }
            Step::Stalled => m.stall().await,
        }
    }
}

impl Runner<'_> {
    fn with<R>(&self, f: impl FnOnce(&mut Recording) -> R) -> R {
        f(self
            .slot
            .borrow_mut()
            .as_mut()
            .expect("the recording lives as long as its job"))
    }

    fn start_iolog(&mut self, plan: &Plan) {
        if plan.job.settings.write_iolog.is_some() {
            let files = plan.job.files.iter().map(String::as_str);
            self.iolog = IologWriter::new(Vec::new(), 0, files).ok();
        }
    }

    /// Adds to the job's iolog, which is kept in memory: writing cannot fail.
    fn log(&mut self, f: impl FnOnce(&mut IologWriter<Vec<u8>>, u64, &[String])) {
        if let Some(log) = &mut self.iolog {
            let now_us = self.m.now().since(self.started).0 / 1000;
            f(log, now_us, &self.names);
        }
    }

    /// Issues an I/O that only has to be held until the next commit, in no time but
    /// that of fio and the system call: whether that is so. If not, nothing has happened.
    #[inline]
    fn issue_at_once(&mut self, run: &mut JobRun, io: &Io, built: Time) -> bool {
        let plain = self.pool.is_none() && self.iolog.is_none() && self.engine.only_holds(io);
        if !plain || !self.m.computes_at_once(self.settings.io_cost) {
            return false;
        }
        let now = self.m.now();
        self.record(io, built, now);
        let answer = self.engine.hold(io, self.fds[io.file as usize]);
        self.issued(run, io, answer, now);
        true
    }

    async fn issue(&mut self, run: &mut JobRun, io: &Io) {
        let built = self.m.now();
        let is_data = io.op.dir().is_some();
        if is_data {
            self.m.compute_in_program(self.settings.io_cost).await;
        }
        self.record(io, built, self.m.now());
        let fd = self.fds[io.file as usize];
        self.log(|log, us, names| {
            let _ = log.io(us, &names[io.file as usize], io);
        });
        if let (Some(pool), true) = (&self.pool, run.offloads()) {
            self.count_issue(io);
            pool.enqueue(Work {
                io: *io,
                fd,
                record: self.records[io.record as usize],
            });
            return run.answer(Answer::Queued, self.m.now().0);
        }
        if !is_data {
            // The latency of a sync is that of its system call.
            self.m.compute(self.settings.io_cost).await;
        }
        if fd.is_some() && self.engine.trims_now(io) {
            // Taken for that of a direct I/O without pages: not measured.
            self.call(1, 0).await;
        } else if self.engine.is_synchronous() && self.is_direct {
            self.call(1, io.length).await;
        }
        let answer = self.engine.queue(io, fd).await;
        self.issued(run, io, answer, self.m.now());
    }

    /// Notes what the I/O of a record is.
    fn record(&mut self, io: &Io, built: Time, issued: Time) {
        let at = io.record as usize;
        if self.records.len() <= at {
            self.records.resize(at + 1, Record::default());
        }
        self.first.uses_buffer(io);
        self.records[at] = Record {
            op: Some(io.op),
            offset: io.offset,
            length: io.length,
            built,
            issued,
            ioprio: match io.priority {
                Some((class, level)) => io_prio(class, level).value(),
                None => self.ioprio,
            },
        };
    }

    fn count_issue(&self, io: &Io) {
        self.with(|r| match io.op.dir() {
            Some(dir) => r.stats.on_issue(ddir(dir)),
            None => r.stats.on_sync_issue(),
        });
    }

    /// The engine has answered.
    #[inline]
    fn issued(&mut self, run: &mut JobRun, io: &Io, answer: Answer, now: Time) {
        if answer != Answer::Busy {
            self.count_issue(io);
        }
        match answer {
            Answer::Completed { error } => {
                self.with(|r| r.stats.on_submit(1, 1));
                self.account(now, io.record, error);
                self.with(|r| r.stats.on_complete_batch(1));
            }
            Answer::Queued => {
                self.in_flight += 1;
                // posixaio hands each request over as it comes.
                self.records[io.record as usize].issued = now;
            }
            Answer::Busy => {}
        }
        run.answer(answer, now.0);
    }

    /// The workers of a job that has some.
    fn workers(&self, plan: &Plan) -> Option<Pool> {
        let job = &plan.job.settings;
        if !job.offload {
            return None;
        }
        let (m, cache) = (self.m.clone(), self.cache.clone());
        let (name, direct) = (job.ioengine.clone(), job.direct);
        let calls = CallSettings::new(job, self.settings.io_cost, self.settings.uring);
        let sets_prio = self.settings.request_prio;
        let setup = Setup {
            m: m.clone(),
            slot: Rc::clone(self.slot),
            engine: Rc::new(move || {
                let mut engine = Engine::new(&name, direct, 1, calls, &m, &cache);
                engine.sets_prio = sets_prio;
                engine
            }),
            is_direct: direct,
            call_cost: self.settings.call_cost,
            overlaps: job.serialize_overlap.then(|| plan.overlaps.clone()),
            name: plan.job.name.chars().take(15).collect(),
        };
        Some(Pool::new(setup, job.iodepth))
    }

    /// Tells the job what its workers have done meanwhile.
    fn collect(&mut self, run: &mut JobRun) {
        if let Some(pool) = &self.pool {
            let mut done = std::mem::take(&mut self.completions);
            pool.collect(&mut done);
            run.reaped(&done, self.m.now().0);
            self.completions = done;
        }
    }

    async fn wait_for_workers(&mut self, run: &mut JobRun, min: u32) {
        if let Some(pool) = &self.pool {
            pool.wait(min).await;
        }
        self.collect(run);
    }

    fn ask_flow(&mut self, run: &mut JobRun) {
        let yes = match &mut self.share {
            Some(share) => share.may_issue(self.m),
            None => true,
        };
        run.may_issue(yes);
    }

    /// Spins until another job of the flow has issued.
    async fn held(&self, until_ns: Option<u64>, stop: impl Fn() -> bool) {
        if let (Some(share), false) = (&self.share, stop()) {
            share.wait(self.m, until_ns.map(Time)).await;
        }
    }

    /// The system calls of some direct I/Os take processor time. The kernel looks
    /// whether others may go first before each page that it has to provide
    /// (`cond_resched` of `__get_user_pages`).
    async fn call(&mut self, nr_ios: usize, bytes: u64) {
        for _ in 0..self.first.pages() {
            self.m.compute(self.settings.first_times.page).await;
        }
        let span = self.settings.call_cost.span(nr_ios, bytes) + self.first.call();
        if span > Span::ZERO {
            self.m.compute(span).await;
        }
    }

    async fn commit(&mut self) {
        if !self.engine.commits() {
            return;
        }
        let takes_time = self.settings.call_cost.takes_time() || self.first.takes_time();
        let mut call = (self.is_direct && takes_time)
            .then(|| (self.engine.nr_held(), self.engine.held_bytes()));
        // Most of a call comes behind its bios, which matters to who waits elsewhere for its
        // turn.
        if let Some((nr_ios, bytes)) = call.take_if(|_| !self.m.has_turns()) {
            self.call(nr_ios, bytes).await;
        }
        if let Some(rest) = self.engine.begin_commit() {
            self.engine.finish_commit(rest).await;
        }
        if let Some((nr_ios, bytes)) = call {
            self.call(nr_ios, bytes).await;
        }
        self.m.return_to_program().await;
        let now = self.m.now();
        for record in &self.engine.submitted {
            self.records[*record as usize].issued = now;
        }
        let n = self.engine.submitted.len() as u32;
        if n > 0 {
            let depth = self.in_flight;
            self.with(|r| r.stats.on_submit(n, depth));
        }
    }

    async fn reap(&mut self, run: &mut JobRun, min: u32, max: u32) {
        let mut completions = std::mem::take(&mut self.completions);
        self.engine.reap(min, max, &mut completions).await;
        let nr = completions.len() as u64;
        let first = if nr > 0 {
            self.first.reap()
        } else {
            Span::ZERO
        };
        let took = Span(self.settings.reap_cost.0 * nr) + first;
        if took > Span::ZERO && !self.m.computes_at_once(took) {
            self.m.compute_in_program(took).await;
        }
        let now = self.m.now();
        let n = completions.len() as u32;
        self.in_flight -= n;
        if n > 0 {
            self.with(|r| {
                for c in &completions {
                    account(r, now, &self.records[c.record as usize], c.error, false);
                }
                r.stats.on_complete_batch(n);
            });
        }
        run.reaped(&completions, now.0);
        self.completions = completions;
    }

    /// Statistics of an I/O that its call has done: it has no submission latency,
    /// whatever the engine.
    fn account(&self, now: Time, record: u32, error: i32) {
        let rec = &self.records[record as usize];
        self.with(|r| account(r, now, rec, error, true));
    }

    async fn open(&mut self, plan: &Plan, file: u32) {
        let Some(id) = plan.files[file as usize] else {
            return;
        };
        let s = &plan.job.settings;
        let sync = match s.sync {
            SyncWrites::None => OSync::None,
            SyncWrites::Dsync => OSync::Data,
            SyncWrites::Sync => OSync::File,
        };
        let Ok(fd) = self.cache.open(id, sync) else {
            return;
        };
        self.fds[file as usize] = Some(fd);
        self.log(|log, us, names| {
            let _ = log.open(us, &names[file as usize]);
        });
        self.invalidate(plan, file).await;
        let advice = match s.fadvise_hint {
            FadviseHint::None => return,
            FadviseHint::Random => Advice::Random,
            FadviseHint::Sequential => Advice::Sequential,
            FadviseHint::ByPattern if s.rw.random => Advice::Random,
            FadviseHint::ByPattern => Advice::Sequential,
        };
        // The descriptor was opened just now, so advice cannot fail.
        if s.ioengine == "mmap" {
            let _ = self.cache.madvise(fd, advice);
        } else {
            let _ = self.cache.fadvise(fd, 0, 0, advice).await;
        }
    }

    async fn invalidate(&mut self, plan: &Plan, file: u32) {
        if let Some(fd) = self.fds[file as usize]
            && plan.job.settings.invalidate
        {
            let _ = self.cache.fadvise(fd, 0, 0, Advice::DontNeed).await;
        }
    }

    async fn close(&mut self, file: u32, fsync: bool) {
        self.log(|log, us, names| {
            let _ = log.close(us, &names[file as usize]);
        });
        if let Some(fd) = self.fds[file as usize].take()
            && fsync
        {
            let _ = self.cache.fsync(fd).await;
            self.m.return_to_program().await;
        }
    }

    fn pass_start(&self) {
        let now = self.m.now();
        self.with(|r| r.pass_start = Some(now));
    }

    fn pass_end(&self) {
        let now = self.m.now();
        self.with(|r| r.end_pass(now));
    }

    fn end(&mut self, run: &JobRun, outcome: Outcome) {
        let now = self.m.now();
        let text = self.iolog.take().map(IologWriter::into_inner);
        let iolog = text.and_then(|bytes| String::from_utf8(bytes).ok());
        self.with(|r| {
            r.iolog = iolog;
            r.ended = Some(now);
            r.outcome = outcome;
            r.failures = run.failures().to_vec();
            if run.in_ramp() {
                r.stats.drop_latencies();
            }
        });
    }
}
