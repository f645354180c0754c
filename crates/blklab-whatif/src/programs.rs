// SPDX-License-Identifier: MIT OR Apache-2.0
//! Those who do the I/O, as far as changes are about them: the processes of a recording, or
//! the workload of an experiment.

use blklab_experiment::{Catalogue, Experiment, Workload};
use blklab_infer::Recorded;
use blklab_types::{Error, IoPrio, Pid, PrioClass, no_such};
use blklab_workload::{Class, Flag, Io, Process, Refill, Rw};

/// What a process does otherwise.
#[derive(Clone, Debug)]
pub(crate) enum Otherwise {
    /// It keeps at most so many I/Os under way.
    Depth(u32),
    /// It submits so many at a time and waits for them.
    Batch(u32),
    /// It has this I/O priority.
    Prio(IoPrio),
    /// Its writes are sync.
    Sync,
    /// A job of fio has this option.
    Option(String),
}

/// Why nobody else has an option.
const ONLY_JOBS: &str = "only jobs of fio have options";

/// Those who do the I/O of an experiment.
pub(crate) trait Programs {
    /// Changes what a process does, which is named by its name or its pid.
    ///
    /// # Errors
    /// If there is none, or nothing says what it would do then: one line.
    fn change(
        &mut self,
        e: &mut Experiment,
        process: &str,
        otherwise: &Otherwise,
    ) -> Result<(), Error>;

    /// Files are read ahead by so many KiB.
    ///
    /// # Errors
    /// If that is not possible: one line.
    fn read_ahead(&mut self, e: &mut Experiment, kb: u32) -> Result<(), Error>;
}

/// The processes that are called so.
fn pids(recorded: &Recorded, process: &str) -> Result<Vec<Pid>, Error> {
    let is_it = |pid: Pid, name: Option<&str>| {
        process.parse() == Ok(pid) || name.is_some_and(|n| n == process)
    };
    let all = recorded.processes.iter();
    let found = all.filter(|p| is_it(p.pid, p.name.as_deref()));
    let found: Vec<Pid> = found.map(|p| p.pid).collect();
    if found.is_empty() {
        let names = recorded.processes.iter().filter_map(|p| p.name.as_deref());
        let mut names: Vec<&str> = names.collect();
        names.dedup();
        return Err(Error::new(no_such("process of the trace", process, &names)));
    }
    Ok(found)
}

impl Programs for Recorded {
    fn change(
        &mut self,
        _: &mut Experiment,
        process: &str,
        otherwise: &Otherwise,
    ) -> Result<(), Error> {
        for pid in pids(self, process)? {
            let p = self.process_mut(pid).expect("it was found");
            match otherwise {
                Otherwise::Depth(depth) => p.keep_under_way(*depth),
                Otherwise::Batch(bios) => p.submit_in_batches(*bios as usize),
                Otherwise::Prio(prio) => p.prio = *prio,
                Otherwise::Sync => p.write_sync(),
                Otherwise::Option(_) => return Err(Error::new(ONLY_JOBS)),
            }
        }
        Ok(())
    }

    fn read_ahead(&mut self, _: &mut Experiment, kb: u32) -> Result<(), Error> {
        let sectors = kb.saturating_mul(2).max(8);
        for p in &mut self.processes {
            p.read_ahead(sectors);
        }
        Ok(())
    }
}

/// The workload of an experiment; `recorded`, if it ran, knows the names behind pids.
pub(crate) struct OfExperiment<'a> {
    pub(crate) recorded: Option<&'a Recorded>,
    pub(crate) catalogue: &'a Catalogue,
}

impl OfExperiment<'_> {
    /// The name of a process that may be given by its pid.
    fn name<'n>(&'n self, process: &'n str) -> &'n str {
        let is_it = |p: &&blklab_infer::Process| process.parse() == Ok(p.pid);
        let mut all = self.recorded.iter().flat_map(|r| &r.processes);
        all.find(is_it)
            .and_then(|p| p.name.as_deref())
            .unwrap_or(process)
    }
}

impl Programs for OfExperiment<'_> {
    fn change(
        &mut self,
        e: &mut Experiment,
        process: &str,
        otherwise: &Otherwise,
    ) -> Result<(), Error> {
        match &mut e.workload {
            Workload::Fio { text, .. } => {
                *text = amended(text, self.name(process), &options(otherwise))?;
                Ok(())
            }
            Workload::Processes(all) => {
                let is_it = |p: &Process| process.parse() == Ok(p.pid) || p.name == process;
                if !all.iter().any(is_it) {
                    let names: Vec<&str> = all.iter().map(|p| p.name.as_str()).collect();
                    return Err(Error::new(no_such(
                        "process of the experiment",
                        process,
                        &names,
                    )));
                }
                let mut those = all.iter_mut().filter(|p| is_it(p));
                those.try_for_each(|p| alter(p, otherwise))
            }
            Workload::Scenario(_) => {
                Err(Error::new("what its programs do is fixed by the scenario"))
            }
            Workload::Trace(_) => Err(Error::new(
                "what its processes do is given by the trace that it runs again: ask of that",
            )),
        }
    }

    fn read_ahead(&mut self, e: &mut Experiment, kb: u32) -> Result<(), Error> {
        e.set("read_ahead_kb", &kb.to_string(), self.catalogue)
    }
}

/// Options of a fio job that make it do so.
fn options(otherwise: &Otherwise) -> Vec<String> {
    match otherwise {
        Otherwise::Option(option) => vec![option.clone()],
        Otherwise::Depth(depth) => vec![format!("iodepth={depth}")],
        // One call submits all of them, and one reaps them: only an engine with a queue can.
        Otherwise::Batch(n) => vec![
            "ioengine=libaio".to_owned(),
            format!("iodepth={n}"),
            format!("iodepth_batch={n}"),
            format!("iodepth_batch_complete_min={n}"),
            format!("iodepth_batch_complete_max={n}"),
        ],
        Otherwise::Prio(prio) if prio.class == PrioClass::Idle => vec!["prioclass=3".to_owned()],
        Otherwise::Prio(prio) => vec!["prioclass=2".to_owned(), format!("prio={}", prio.level)],
        Otherwise::Sync => vec!["sync=1".to_owned()],
    }
}

/// Characters of a job's name that its process has (`TASK_COMM_LEN`).
const COMM_MAX: usize = 15;

/// A job file whose sections of this name end with these options: the last one counts.
fn amended(text: &str, job: &str, options: &[String]) -> Result<String, Error> {
    let header = |line: &str| {
        let rest = line.trim().strip_prefix('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    };
    let comm: String = job.chars().take(COMM_MAX).collect();
    let is_it = |name: &str| name != "global" && name.chars().take(COMM_MAX).eq(comm.chars());
    let mut out = String::new();
    let (mut within, mut found) = (false, false);
    let end = |out: &mut String, within: &mut bool| {
        if std::mem::take(within) {
            options.iter().for_each(|o| *out += &format!("{o}\n"));
        }
    };
    for line in text.lines() {
        if let Some(name) = header(line) {
            end(&mut out, &mut within);
            within = is_it(&name);
            found |= within;
        }
        out += line;
        out.push('\n');
    }
    end(&mut out, &mut within);
    if found {
        return Ok(out);
    }
    let names: Vec<String> = text.lines().filter_map(header).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let names: Vec<&str> = names.into_iter().filter(|n| *n != "global").collect();
    Err(Error::new(no_such("section of the job file", job, &names)))
}

fn alter(p: &mut Process, otherwise: &Otherwise) -> Result<(), Error> {
    match otherwise {
        Otherwise::Option(_) => return Err(Error::new(ONLY_JOBS)),
        Otherwise::Depth(depth) => p.depth = *depth,
        Otherwise::Batch(bios) => {
            p.depth = *bios;
            p.refill = Refill::All;
        }
        Otherwise::Prio(prio) => {
            p.ioprio_class = match prio.class {
                PrioClass::None => Class::None,
                PrioClass::RealTime => Class::Rt,
                PrioClass::BestEffort => Class::Be,
                PrioClass::Idle => Class::Idle,
            };
            p.ioprio_level = prio.level;
        }
        Otherwise::Sync => write_sync(&mut p.io),
    }
    Ok(())
}

fn write_sync(io: &mut Io) {
    let add = |rw: Rw, flags: &mut Vec<Flag>| {
        if rw == Rw::Write && !flags.contains(&Flag::Sync) {
            flags.push(Flag::Sync);
        }
    };
    match io {
        Io::Sequential { rw, flags, .. } | Io::List { rw, flags, .. } => add(*rw, flags),
        Io::Mixed { ops } => ops.iter_mut().for_each(|op| add(op.0, &mut op.1)),
        Io::Script { ops } => ops.iter_mut().for_each(|op| add(op.rw, &mut op.flags)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_last_in_each_section_of_the_name() {
        let text = "[global]\nbs=4k\n[scan]\niodepth=64\n; end\n[other]\nrw=read\n[scan]\nrw=read";
        let got = amended(text, "scan", &options(&Otherwise::Depth(4))).expect("it is there");
        assert_eq!(
            got,
            "[global]\nbs=4k\n[scan]\niodepth=64\n; end\niodepth=4\n[other]\nrw=read\n\
             [scan]\nrw=read\niodepth=4\n"
        );
        let told = amended(text, "scam", &[]).expect_err("no such section");
        assert!(told.what.contains("did you mean 'scan'?"), "{told}");
        assert!(amended(text, "global", &[]).is_err());
    }

    #[test]
    fn long_names_are_found_by_what_a_process_has_of_them() {
        let text = "[a-job-with-a-long-name]\nrw=read\n";
        let got = amended(text, "a-job-with-a-lo", &["prio=0".to_owned()]).expect("it is there");
        assert!(got.ends_with("prio=0\n"), "{got}");
    }
}
