// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that submit bios. Those of a trace are run by a program of ours
//! ([`recorded`]). Explicit ones are logs that fio replays, one for each process, and the
//! job file that does so.
//!
//! fio's logs of version 3 say when an I/O is issued, to the microsecond, counted from
//! the one before; I/Os at the same time are issued as fast as the queue takes them. So a
//! timetable is one in the log, and a process without one has everything at its start and
//! a depth. What fio cannot do is refused by name, or told.
//!
//! Source: fio 3.33, its manual page and the program run: the first time of a log is no
//! pause, trims of a log are left out.

mod ends;
mod explicit;
mod recorded;

pub(super) use ends::{check_ends, ends};
pub(super) use explicit::check;
pub(super) use recorded::recorded;

use super::job_logs::Logs;
use blklab_experiment::{Experiment, Workload};
use blklab_fio::iolog::IologWriter;
use blklab_fio::run::IoOp;
use blklab_types::{BioFlags, Error, IoPrio, Op, Pid, PrioClass, SECTOR_BYTES};
use std::fmt::Write as _;

/// Most I/Os of all processes: their logs are in the memory of the machine.
const IOS_MAX: usize = 4_000_000;
/// Most processes: fio has no more jobs.
const PROCESSES_MAX: usize = 2000;
/// Most I/Os that a process of fio has under way.
const DEPTH_MAX: u32 = 4096;
/// The first time of a log, which is no pause: what comes later counts from there.
const FIRST_US: u64 = 1;

/// A process, as fio does what it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Script {
    pid: Pid,
    name: String,
    prio: IoPrio,
    group: String,
    /// Most I/Os under way.
    depth: u32,
    /// I/Os that are submitted together.
    batch: u32,
    /// It submits again when all are done, not as soon as one is.
    refills_all: bool,
    /// Its pause when it has waited.
    think_us: u64,
    ios: Vec<Step>,
}

/// An I/O of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    at_us: u64,
    op: Op,
    flags: BioFlags,
    sector: u64,
    nr_sectors: u32,
}

/// What fio is given.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    /// The job file.
    pub(super) job: String,
    pub(super) logs: Logs,
    /// Pid and name of each process, in the order in which fio starts them.
    pub(super) processes: Vec<(Pid, String)>,
    /// What a reader of the result should know.
    pub(super) notes: Vec<String>,
}

/// The explicit processes of an experiment, which use the device at this path; none if it
/// has no such.
///
/// # Errors
/// If fio cannot do what they do.
pub(super) fn replayed(e: &Experiment, disk: &str) -> Result<Replayed, Error> {
    let Workload::Processes(processes) = &e.workload else {
        return Ok(Replayed::default());
    };
    write(explicit::scripts(processes), disk)
}

fn write(scripts: Vec<Script>, disk: &str) -> Result<Replayed, Error> {
    let nr_ios: usize = scripts.iter().map(|s| s.ios.len()).sum();
    if nr_ios > IOS_MAX {
        let what = format!("{nr_ios} I/Os of processes: fio replays {IOS_MAX} here at most");
        return Err(Error::not_modelled(what));
    }
    if scripts.len() > PROCESSES_MAX {
        let what = format!(
            "{} processes: fio has {PROCESSES_MAX} here at most",
            scripts.len()
        );
        return Err(Error::not_modelled(what));
    }
    let mut out = Replayed::default();
    out.job.push_str("[global]\ndirect=1\nioengine=libaio\n");
    let mut counts = Counts::default();
    for script in scripts {
        let has_data = |io: &Step| matches!(io.op, Op::Read | Op::Write);
        if !script.ios.iter().any(has_data) {
            out.notes.push(format!(
                "process {} ({}) is left out: it neither reads nor writes, and fio replays no \
                 such log",
                script.name, script.pid
            ));
            continue;
        }
        script.ios.iter().for_each(|io| counts.add(io.op, io.flags));
        let log = out.logs.keep(script.log(disk));
        script.write_section(&mut out.job, out.processes.len(), &log, disk);
        out.processes.push((script.pid, script.name));
    }
    out.notes.extend(counts.notes());
    Ok(out)
}

impl Script {
    fn write_section(&self, job: &mut String, i: usize, log: &str, disk: &str) {
        let _ = write!(
            job,
            "[process-{i}]\nread_iolog={log}\nreplay_redirect={disk}\niodepth={}\niodepth_batch={}\n",
            self.depth,
            self.batch.min(self.depth)
        );
        if self.refills_all {
            let _ = writeln!(job, "iodepth_batch_complete_min={}", self.depth);
        }
        if self.think_us > 0 {
            let _ = write!(
                job,
                "thinktime={}\nthinktime_blocks={}\n",
                self.think_us, self.depth
            );
        }
        let class = match self.prio.class {
            PrioClass::RealTime => 1,
            PrioClass::BestEffort => 2,
            PrioClass::Idle => 3,
            _ => 0,
        };
        if class > 0 {
            let _ = write!(job, "prioclass={class}\nprio={}\n", self.prio.level);
        }
        if !self.group.is_empty() {
            let _ = writeln!(job, "cgroup={}", self.group);
        }
    }

    /// Its log.
    fn log(&self, disk: &str) -> Vec<u8> {
        let written = || {
            let mut log = IologWriter::new(Vec::new(), FIRST_US, [disk])?;
            log.open(FIRST_US, disk)?;
            let mut last_us = FIRST_US;
            for io in &self.ios {
                last_us = io.at_us.saturating_add(FIRST_US);
                let ordered = io.op == Op::Write;
                let before = BioFlags::FLUSH | BioFlags::BARRIER;
                let after = BioFlags::FUA | BioFlags::BARRIER;
                if ordered && io.flags.any(before) {
                    log.transfer(last_us, disk, IoOp::Datasync, 0, 0)?;
                }
                let (offset, bytes) = match io.op {
                    Op::Flush => (0, 0),
                    _ => (
                        io.sector * SECTOR_BYTES,
                        u64::from(io.nr_sectors) * SECTOR_BYTES,
                    ),
                };
                let op = match io.op {
                    Op::Flush => IoOp::Datasync,
                    op => op.into(),
                };
                log.transfer(last_us, disk, op, offset, bytes)?;
                if ordered && io.flags.any(after) {
                    log.transfer(last_us, disk, IoOp::Datasync, 0, 0)?;
                }
            }
            log.close(last_us, disk)?;
            std::io::Result::Ok(log.into_inner())
        };
        written().expect("memory takes whatever is written to it")
    }
}

/// Bios that are others on the way through a program.
#[derive(Default)]
struct Counts {
    /// Writes that nobody waited for.
    background: u64,
    /// Writes with a flush before or behind them, or that go on to the medium.
    ordered: u64,
    /// Writes and empty bios that flush before.
    flushing: u64,
    discards: u64,
    /// Other marks.
    marked: u64,
}

impl Counts {
    fn add(&mut self, op: Op, flags: BioFlags) {
        let before = BioFlags::FLUSH | BioFlags::BARRIER;
        let ordered = before | BioFlags::FUA;
        let marks = BioFlags::META | BioFlags::AHEAD;
        if op == Op::Write {
            let is_ordered = flags.any(ordered);
            self.ordered += u64::from(is_ordered);
            self.background += u64::from(!is_ordered && !flags.has(BioFlags::SYNC));
            self.flushing += u64::from(flags.any(before));
        }
        self.flushing += u64::from(op == Op::Flush);
        self.discards += u64::from(op == Op::Discard);
        self.marked += u64::from(flags.any(marks));
    }

    fn notes(&self) -> impl Iterator<Item = String> + use<> {
        let all = [
            (
                self.background,
                "writes are synchronous, as all of fio that go past the page cache",
            ),
            (
                self.ordered,
                "writes with a flush or through to the medium have fdatasync before or behind them",
            ),
            (
                self.marked,
                "bios have lost their marks of metadata or read-ahead",
            ),
        ];
        let first = "processes are run by fio, from logs: their times are whole microseconds, and \
                     plugs are fio's";
        let some = all.into_iter().filter(|(n, _)| *n > 0);
        let told = some.map(|(n, what)| format!("{n} {what}"));
        std::iter::once(first.to_owned()).chain(told)
    }
}

#[cfg(test)]
mod tests {
    use super::{Script, Step, write};
    use blklab_types::{BioFlags, Op};

    fn step(at_us: u64, op: Op, flags: BioFlags, sector: u64) -> Step {
        Step {
            at_us,
            op,
            flags,
            sector,
            nr_sectors: 8,
        }
    }

    fn script(ios: Vec<Step>) -> Script {
        Script {
            pid: 7,
            name: "a b".to_owned(),
            depth: 4,
            batch: 9,
            think_us: 3,
            group: "web".to_owned(),
            ios,
            ..Script::default()
        }
    }

    #[test]
    fn a_process_is_a_log_and_a_section() {
        let ios = vec![
            step(5, Op::Read, BioFlags::NONE, 16),
            step(9, Op::Write, BioFlags::FUA, 0),
            step(9, Op::Flush, BioFlags::NONE, 0),
        ];
        let out = write(vec![script(ios)], "/dev/vda").expect("fio can do it");
        assert!(
            out.job.ends_with(
                "[process-0]\nread_iolog=/work/replayed-0\nreplay_redirect=/dev/vda\niodepth=4\n\
                 iodepth_batch=4\nthinktime=3\nthinktime_blocks=4\ncgroup=web\n"
            ),
            "{}",
            out.job
        );
        let (name, log) = out.logs.taken_along().next().expect("a log");
        assert_eq!(name, "replayed-0");
        assert_eq!(
            String::from_utf8_lossy(&log),
            "fio version 3 iolog\n1 /dev/vda add\n1 /dev/vda open\n6 /dev/vda read 8192 4096\n\
             10 /dev/vda write 0 4096\n10 /dev/vda datasync 0 0\n10 /dev/vda datasync 0 0\n\
             10 /dev/vda close\n"
        );
        assert_eq!(out.processes, [(7, "a b".to_owned())]);
        assert!(
            out.notes
                .iter()
                .any(|n| n.starts_with("1 writes with a flush"))
        );
    }

    #[test]
    fn who_only_flushes_is_left_out_and_that_is_told() {
        let ios = vec![step(5, Op::Flush, BioFlags::NONE, 0)];
        let out = write(vec![script(ios)], "/dev/vda").expect("it is left out");
        assert!(out.processes.is_empty());
        assert!(
            out.notes[0].contains("a b (7) is left out"),
            "{:?}",
            out.notes
        );
    }
}
