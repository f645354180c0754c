// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trace that a run repeats, kept in its run directory so that it can be run again
//! when the trace is gone or has changed.

use crate::trace_file::{TraceOut, header_for};
use blklab_experiment::TraceSpec;
use blklab_formats::TraceFile;
use blklab_target::Plan;
use blklab_trace::{DigestSink, TraceSource as _};
use blklab_types::Error;
use std::path::{Path, PathBuf};

/// A trace and the name of its copy in the compact form.
#[derive(Clone, Debug)]
pub(crate) struct TraceCopy {
    from: PathBuf,
    name: PathBuf,
    digest: u64,
}

impl TraceCopy {
    /// Of a plan, whose experiment then names the copy; none if it repeats no trace. The name
    /// is made from the events: whatever the folder is from which the run is repeated, no
    /// other file has it.
    ///
    /// # Errors
    /// If the trace can be read only once.
    pub(crate) fn new(plan: &Plan, spec: &mut TraceSpec) -> Result<Option<TraceCopy>, Error> {
        let Some(replay) = plan.replay() else {
            return Ok(None);
        };
        let from = PathBuf::from(&spec.file);
        if from.exists() && !from.is_file() || spec.file == "-" {
            let what = "a run directory keeps a copy of the trace, which can be read only once; \
                        give a file";
            return Err(Error::new(what).in_file(&spec.file));
        }
        let digest = replay.recorded.digest;
        let name = format!("{digest:016x}.blk");
        spec.file.clone_from(&name);
        Ok(Some(TraceCopy {
            from,
            name: PathBuf::from(name),
            digest,
        }))
    }

    /// Name of the copy.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// Makes the copy.
    ///
    /// # Errors
    /// If the trace cannot be read, is no longer the same, or its copy cannot be written.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), Error> {
        let failed = |e: blklab_formats::FormatError| Error::new(e.to_string());
        let mut input = TraceFile::open(&self.from).map_err(failed)?;
        let header = header_for(&input, &self.from);
        let out = TraceOut::create(&dir.join(&self.name), &header).map_err(failed)?;
        let mut sink = DigestSink {
            digest: blklab_trace::Digest::default(),
            inner: out,
        };
        input.send_all(&mut sink).map_err(failed)?;
        if sink.digest.value() != self.digest {
            sink.inner.discard();
            let what = "the trace has changed since it was read; run again";
            return Err(Error::new(what).in_file(&self.from.display().to_string()));
        }
        sink.inner.finish().map_err(failed).map(drop)
    }
}
