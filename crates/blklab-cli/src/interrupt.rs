// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals that ask a command to end: Ctrl-C (SIGINT), SIGTERM as `timeout`, batch systems and
//! service managers send it, and SIGHUP of a terminal that is closed. All do the same.

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The first signal that came; 0: none.
static FIRST: AtomicI32 = AtomicI32::new(0);

/// What ends the runs of a command that shows what they gave until then.
static STOP: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);

fn stop() -> MutexGuard<'static, Option<Arc<AtomicBool>>> {
    STOP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a signal ends the program, even while it waits for a pipe, and leaves no partial
/// file; while there is an [`Interrupt`], the first one ends its runs instead.
pub(crate) fn listen() -> Result<()> {
    let mut wanted = vec![SIGINT, SIGTERM];
    // Whoever started it with nohup wants it to go on.
    if !is_ignored(SIGHUP) {
        wanted.push(SIGHUP);
    }
    let mut signals = Signals::new(wanted).context("cannot watch for signals")?;
    let thread = std::thread::Builder::new().name("signals".to_owned());
    let watching = thread.spawn(move || signals.forever().for_each(came));
    watching.map(drop).context("cannot watch for signals")
}

fn came(signal: i32) {
    let is_first = FIRST
        .compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst)
        .is_ok();
    match &*stop() {
        Some(runs) if is_first => runs.store(true, Ordering::Relaxed),
        _ => {
            blklab::trace_file::remove_partial_files();
            std::process::exit(code().into());
        }
    }
}

/// The exit code of a command that a signal ended, as shells have it.
pub(crate) fn code() -> u8 {
    let signal = u8::try_from(FIRST.load(Ordering::SeqCst)).unwrap_or(0);
    128 + signal
}

/// Whether a signal is ignored, as the process that started this one wished.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// While it is there, the first signal ends runs early; the second ends the program.
pub(crate) struct Interrupt {
    /// Ends the runs.
    pub(crate) stop: Arc<AtomicBool>,
}

impl Interrupt {
    pub(crate) fn watch() -> Interrupt {
        let runs = Arc::new(AtomicBool::new(false));
        *stop() = Some(Arc::clone(&runs));
        Interrupt { stop: runs }
    }

    /// Whether it was a signal that ended the runs.
    pub(crate) fn happened(&self) -> bool {
        FIRST.load(Ordering::SeqCst) != 0
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        *stop() = None;
    }
}
