// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress bars on a terminal, nothing in a pipe.

use blklab::trace_file;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Progress over a number of experiments, on standard error.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(experiments: usize) -> Progress {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(experiments as u64), target);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} {pos}/{len} experiments {elapsed}")
        {
            bar.set_style(style);
        }
        bar.tick();
        Progress(bar)
    }

    /// One more is done.
    pub(crate) fn step(&self) {
        self.0.inc(1);
    }

    /// All are done: the bar goes.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// How much of a trace was read, on standard error, once it has taken more
/// than a second. Ends when dropped.
pub(crate) struct ReadProgress {
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What takes less shows nothing.
const SILENCE: Duration = Duration::from_secs(1);
/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(100);

impl ReadProgress {
    pub(crate) fn start(read: trace_file::Progress) -> ReadProgress {
        if !std::io::stderr().is_terminal() {
            return ReadProgress {
                done: None,
                thread: None,
            };
        }
        let (done, ended) = channel();
        let thread = std::thread::spawn(move || {
            let waits = |time| ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
            if !waits(SILENCE) {
                return;
            }
            let target = ProgressDrawTarget::stderr();
            let bar = ProgressBar::with_draw_target(read.stored_bytes(), target);
            let template = match read.stored_bytes() {
                Some(_) => "{bar:30} {bytes} of {total_bytes} read, {elapsed}",
                None => "{spinner} {bytes} read, {elapsed}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            while waits(INTERVAL) {
                bar.set_position(read.taken_bytes());
                bar.tick();
            }
            bar.finish_and_clear();
        });
        ReadProgress {
            done: Some(done),
            thread: Some(thread),
        }
    }
}

impl Drop for ReadProgress {
    fn drop(&mut self) {
        drop(self.done.take());
        if let Some(thread) = self.thread.take() {
            // It draws and does nothing else: whether it could is no matter.
            let _ = thread.join();
        }
    }
}
