// SPDX-License-Identifier: MIT OR Apache-2.0
//! A progress bar on a terminal, nothing in a pipe.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;

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
