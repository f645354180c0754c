// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that submit bios, explicit ones and those of a trace: a program of ours in the
//! machine (`program/replay.c`) is each of them.

mod ends;
mod explicit;
mod file;
mod recorded;

pub(super) use ends::{check_ends, ends};
pub(super) use explicit::check;

use blklab_experiment::{Experiment, Workload};
use blklab_target::Plan;
use blklab_types::{BioFlags, Error, Op, Pid};

/// Most bios of a process under way.
const DEPTH_MAX: u32 = 4096;

/// What fits the memory of a machine.
struct Limits {
    bios: u64,
    processes: usize,
}

const LIMITS: Limits = Limits {
    bios: 4_000_000,
    processes: 2000,
};

impl Limits {
    /// Refuses more.
    fn check(&self, bios: u64, processes: usize) -> Result<(), Error> {
        let Limits {
            bios: bios_max,
            processes: processes_max,
        } = self;
        let what = if bios > *bios_max {
            format!("{bios} bios of processes: {bios_max} fit the memory of the machine")
        } else if processes > *processes_max {
            format!("{processes} processes: there are {processes_max} here at most")
        } else {
            return Ok(());
        };
        Err(Error::not_modelled(what))
    }
}

/// What our program is given.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    /// The file that it reads.
    pub(super) file: Vec<u8>,
    /// Pid and name of each process, in the order in which it starts them.
    pub(super) processes: Vec<(Pid, String)>,
    /// What a reader of the result should know.
    pub(super) notes: Vec<String>,
}

/// The processes of a plan that has no jobs.
///
/// # Errors
/// If a trace has what is not done here.
pub(super) fn replayed(plan: &Plan, e: &Experiment) -> Result<Replayed, Error> {
    let mut counts = Counts::default();
    let all = match (plan.replay(), &e.workload) {
        (Some(replay), _) => {
            let bios = replay.recorded.processes.iter().flat_map(|p| &p.bios);
            bios.for_each(|b| counts.add(b.op, b.flags));
            recorded::submitters(replay)?
        }
        (None, Workload::Processes(processes)) => {
            let bios = processes.iter().flat_map(explicit::each_bio);
            bios.for_each(|b| counts.add(b.op, b.flags));
            explicit::submitters(processes, e)
        }
        _ => Vec::new(),
    };
    Ok(Replayed {
        file: file::write(&all),
        processes: all.iter().map(|p| (p.pid, p.name.clone())).collect(),
        notes: counts.notes(),
    })
}

/// Bios that are others on the way through a program.
#[derive(Default)]
struct Counts {
    /// Writes that nobody waited for.
    background: u64,
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
            let is_background = !flags.any(ordered | BioFlags::SYNC);
            self.background += u64::from(is_background);
            self.flushing += u64::from(flags.any(before));
        }
        self.flushing += u64::from(op == Op::Flush);
        self.discards += u64::from(op == Op::Discard);
        self.marked += u64::from(flags.any(marks));
    }

    fn notes(&self) -> Vec<String> {
        let first = "processes are run by a program of blklab's, past the page cache; its own time \
                     for an I/O is in their pauses";
        let told = [
            (
                self.background,
                "writes are synchronous, as all that go past the page cache",
            ),
            (
                self.flushing,
                "writes or empty bios with a flush: their process waits for it",
            ),
            (
                self.marked,
                "bios have lost their marks of metadata or read-ahead",
            ),
            (
                self.discards,
                "discards: their process waits for each of them",
            ),
        ];
        let some = told.into_iter().filter(|(n, _)| *n > 0);
        let some = some.map(|(n, what)| format!("{n} {what}"));
        std::iter::once(first.to_owned()).chain(some).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, LIMITS};
    use blklab_types::{BioFlags, Op};

    #[test]
    fn what_becomes_another_bio_is_counted() {
        let mut counts = Counts::default();
        counts.add(Op::Write, BioFlags::NONE);
        counts.add(Op::Write, BioFlags::FUA);
        counts.add(Op::Flush, BioFlags::NONE);
        counts.add(Op::Read, BioFlags::META);
        let notes = counts.notes();
        assert_eq!(notes.len(), 4, "{notes:?}");
        assert!(notes[1].starts_with("1 writes are synchronous"));
        assert!(notes[2].starts_with("1 writes or empty bios with a flush"));
        assert!(notes[3].starts_with("1 bios have lost"));
    }

    #[test]
    fn more_than_fits_is_refused() {
        assert!(LIMITS.check(4_000_000, 2000).is_ok());
        let error = LIMITS
            .check(4_000_001, 1)
            .expect_err("too many")
            .to_string();
        assert!(error.contains("4000000 fit"), "{error}");
        assert!(LIMITS.check(1, 2001).is_err());
    }
}
