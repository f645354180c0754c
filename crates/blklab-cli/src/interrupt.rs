// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C.

use anyhow::{Context as _, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ctrl-C: the first ends the runs early, the second ends the program.
pub(crate) struct Interrupt {
    /// Ends the runs.
    pub(crate) stop: Arc<AtomicBool>,
    /// Whether it was Ctrl-C that did.
    happened: Arc<AtomicBool>,
}

impl Interrupt {
    pub(crate) fn watch() -> Result<Interrupt> {
        let stop = Arc::new(AtomicBool::new(false));
        let happened = Arc::new(AtomicBool::new(false));
        let (stop_runs, first) = (Arc::clone(&stop), Arc::clone(&happened));
        ctrlc::set_handler(move || {
            stop_runs.store(true, Ordering::Relaxed);
            if first.swap(true, Ordering::Relaxed) {
                blklab::trace_file::remove_partial_files();
                std::process::exit(130);
            }
        })
        .context("cannot watch for Ctrl-C")?;
        Ok(Interrupt { stop, happened })
    }

    /// Whether it was Ctrl-C that ended the runs.
    pub(crate) fn happened(&self) -> bool {
        self.happened.load(Ordering::Relaxed)
    }
}

/// Ctrl-C ends the program, even while it waits for a pipe, and leaves no
/// partial file.
pub(crate) fn end_at_once() -> Result<()> {
    ctrlc::set_handler(|| {
        blklab::trace_file::remove_partial_files();
        std::process::exit(130);
    })
    .context("cannot watch for Ctrl-C")
}
