// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded traces as workloads: read once, and checked against the device.

use blklab_experiment::{Experiment, Placement, Timing, TraceSpec, Workload};
use blklab_formats::TraceFile;
use blklab_infer::{Bio, CannotRepeat, Collector, Recorded};
use blklab_trace::{Actions, TraceSource as _};
use blklab_types::Error;
use blklab_types::{Dev, SECTOR_BYTES};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sectors in a MiB: bios are moved by whole ones, so that they stay as aligned as they are.
const MIB_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;

/// What a trace is read as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceKey {
    file: String,
    dev: Option<Dev>,
    /// An experiment file names it, not a person.
    is_of_a_file: bool,
}

impl TraceKey {
    /// Of an experiment; none if it repeats no trace.
    pub(crate) fn for_experiment(e: &Experiment) -> Option<TraceKey> {
        let Workload::Trace(spec) = &e.workload else {
            return None;
        };
        Some(TraceKey {
            file: spec.file.clone(),
            dev: spec.dev,
            is_of_a_file: !e.file.is_empty(),
        })
    }

    /// Reads the trace.
    pub(crate) fn read(&self) -> Result<TraceText, Error> {
        let path = Path::new(&self.file);
        let is_trace = path.is_file() || TraceFile::is_folder(path);
        if self.is_of_a_file && path.exists() && !is_trace {
            return Err(Error::new("not a regular file").in_file(&self.file));
        }
        let failed = |e: &dyn std::fmt::Display| {
            let what = e.to_string();
            if what.contains(&self.file) {
                Error::new(what)
            } else {
                Error::new(what).in_file(&self.file)
            }
        };
        let mut input = TraceFile::open(path).map_err(|e| failed(&e))?;
        let mut collector = Collector::default();
        input.send_all(&mut collector).map_err(|e| failed(&e))?;
        let kinds = input.header().map_or(Actions::ALL, |h| h.recorded);
        let mut recorded = collector.finish(kinds, self.dev).map_err(|e| {
            let told = failed(&e);
            match e {
                CannotRepeat::SeveralDevices(_) => told.about("replay.device"),
                _ => told,
            }
        })?;
        let counts = input.counts();
        for (what, n) in [("lost", counts.lost), ("damaged", counts.damaged)] {
            if n > 0 {
                let note =
                    format!("{n} events of the trace are {what}: what they began is missing");
                recorded.notes.push(note);
            }
        }
        let files = match input.cpu_files() {
            [] => vec![PathBuf::from(&self.file)],
            files => files.to_vec(),
        };
        Ok(TraceText {
            recorded: Arc::new(recorded),
            files,
        })
    }
}

/// A trace that was read.
#[derive(Debug)]
pub(crate) struct TraceText {
    pub(crate) recorded: Arc<Recorded>,
    /// Its files.
    pub(crate) files: Vec<PathBuf>,
}

/// The recorded bios of a plan, and where they go.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The trace.
    pub recorded: Arc<Recorded>,
    /// When the bios are submitted.
    pub timing: Timing,
    /// Sectors that all bios move down.
    shift: u64,
    /// Sectors to go round in; none if they do not.
    wrap: Option<u64>,
    /// Each process goes on for as long as it did in the recording: whoever is faster begins
    /// anew, whoever is slower stops. Else it has done when its bios have.
    pub for_recorded_time: bool,
}

impl Replay {
    /// Recorded processes at their sectors, for as long as they were recorded.
    pub fn for_recorded_time(recorded: Arc<Recorded>, timing: Timing) -> Replay {
        Replay {
            recorded,
            timing,
            shift: 0,
            wrap: None,
            for_recorded_time: true,
        }
    }

    /// A trace on a disk of so many bytes.
    ///
    /// # Errors
    /// If bios lie beyond its end, or nothing shows what to wait for in closed loop.
    pub(crate) fn new(
        text: &TraceText,
        spec: &TraceSpec,
        disk_bytes: u64,
    ) -> Result<Replay, Error> {
        let recorded = &text.recorded;
        let fail = |what: String, key: &str| {
            let told = Error::new(what).about(format!("replay.{key}"));
            Err(told.in_file(&spec.file))
        };
        if spec.timing == Timing::Closed && !recorded.has_completions() {
            return fail(
                "no completions (C) in the trace: nothing shows what its processes waited for; it \
                 can be run open loop"
                    .to_owned(),
                "loop",
            );
        }
        let disk = disk_bytes / SECTOR_BYTES;
        let mut replay = Replay {
            recorded: Arc::clone(recorded),
            timing: spec.timing,
            shift: 0,
            wrap: None,
            for_recorded_time: false,
        };
        let Some((low, high)) = recorded.sectors() else {
            return Ok(replay);
        };
        match spec.placement {
            Placement::AsRecorded => {}
            Placement::Shift => replay.shift = low / MIB_SECTORS * MIB_SECTORS,
            Placement::Wrap => {
                let round = disk / MIB_SECTORS * MIB_SECTORS;
                let longest = recorded.processes.iter().flat_map(|p| &p.bios);
                let longest = longest.map(|b| u64::from(b.nr_sectors)).max().unwrap_or(0);
                if round < longest.max(1) {
                    return fail(
                        format!("a bio of {longest} sectors does not fit the device of {disk}"),
                        "sectors",
                    );
                }
                replay.wrap = Some(round);
            }
        }
        let end = high - replay.shift;
        if replay.wrap.is_none() && end > disk {
            let others = match spec.placement {
                Placement::Shift => "sectors=wrap",
                _ => "sectors=shift moves all down, sectors=wrap",
            };
            return fail(
                format!(
                    "bios up to sector {end} lie beyond the end of the device, which has {disk} \
                     sectors; take a larger one ({others} goes round)"
                ),
                "sectors",
            );
        }
        Ok(replay)
    }

    /// Where a bio goes.
    pub fn sector(&self, bio: &Bio) -> u64 {
        if bio.nr_sectors == 0 {
            return 0;
        }
        let sector = bio.sector - self.shift;
        match self.wrap {
            None => sector,
            // One that would reach over the end ends there.
            Some(round) => (sector % round).min(round - u64::from(bio.nr_sectors)),
        }
    }

    /// What a reader of the result should know.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = self.recorded.notes.clone();
        if self.shift > 0 {
            notes.push(format!(
                "all bios lie {} sectors lower than recorded",
                self.shift
            ));
        }
        if self.wrap.is_some() {
            notes.push(
                "bios beyond the end of the device went round to its beginning: merges and seeks \
                 are not the recorded ones"
                    .to_owned(),
            );
        }
        notes.push(
            "priorities of processes are not recorded in traces: all have the default".to_owned(),
        );
        notes
    }
}
