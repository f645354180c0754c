// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work that takes long: Python's lock is left to others, and Ctrl-C ends it.

use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often Python is asked whether a signal has come.
const EVERY: Duration = Duration::from_millis(50);

/// Does `work` on another thread, without Python's lock. At Ctrl-C `stop` is set and, once
/// the work has ended, `KeyboardInterrupt` raised.
///
/// # Errors
/// What a signal's handler raises.
pub(crate) fn wait_for<T: Send>(
    py: Python<'_>,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, end) = channel();
            let worker = scope.spawn(move || {
                let result = work();
                // Nobody waits any more if the interpreter ends.
                let _ = done.send(());
                result
            });
            let mut raised = None;
            while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(EVERY) {
                if raised.is_none()
                    && let Err(e) = signals()
                {
                    stop.store(true, Ordering::Relaxed);
                    raised = Some(e);
                }
            }
            match (worker.join(), raised) {
                (_, Some(e)) => Err(e),
                (Ok(result), None) => Ok(result),
                (Err(panic), None) => std::panic::resume_unwind(panic),
            }
        })
    })
}

/// What the handler of a signal raises that has come.
fn signals() -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        Ok(())
    })
}
