// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress on standard error: on a terminal, of what takes longer than a
//! second; nothing in a pipe.

use blklab::meter::Meter;
use blklab::trace_file;
use blklab_kernel_target::Step;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What takes less shows nothing.
const SILENCE: Duration = Duration::from_secs(1);
/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(100);
/// Length of a bar whose total is a share.
const SHARES: u64 = 1000;

/// A bar that a thread of its own draws. It goes when this is dropped.
pub(crate) struct Watcher {
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Calls `draw` from time to time with a bar of `len`, or with a spinner if
    /// that is not known.
    fn start(
        len: Option<u64>,
        template: &'static str,
        draw: impl Fn(&ProgressBar) + Send + 'static,
    ) -> Watcher {
        if !std::io::stderr().is_terminal() {
            return Watcher {
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
            let bar = ProgressBar::with_draw_target(len, ProgressDrawTarget::stderr());
            let bar = bar.with_elapsed(SILENCE);
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            loop {
                draw(&bar);
                bar.tick();
                if !waits(INTERVAL) {
                    break;
                }
            }
            bar.finish_and_clear();
        });
        Watcher {
            done: Some(done),
            thread: Some(thread),
        }
    }

    /// How much of a trace was read.
    pub(crate) fn reading(read: trace_file::Progress) -> Watcher {
        let len = read.stored_bytes();
        let template = match len {
            Some(_) => "{bar:30} {bytes} of {total_bytes} read, {elapsed}",
            None => "{spinner} {bytes} read, {elapsed}",
        };
        Watcher::start(len, template, move |bar| {
            bar.set_position(read.taken_bytes());
        })
    }

    /// How many runs have ended, of how many that are known to be wanted.
    pub(crate) fn runs(counts: Arc<[AtomicUsize; 2]>) -> Watcher {
        let template = "{bar:30} {pos} of {len} runs, {elapsed}";
        Watcher::start(Some(1), template, move |bar| {
            let [done, wanted] = [&counts[0], &counts[1]].map(|n| n.load(Ordering::Relaxed));
            bar.set_length(wanted as u64);
            bar.set_position(done as u64);
        })
    }

    /// That a run goes on.
    pub(crate) fn running() -> Watcher {
        Watcher::start(None, "{spinner} running, {elapsed}", |_| {})
    }

    /// How far the build of a kernel is.
    pub(crate) fn building(state: Arc<Mutex<Step>>) -> Watcher {
        let template = "{bar:30} {msg}, {elapsed}";
        Watcher::start(Some(SHARES), template, move |bar| {
            let step = *state.lock().unwrap_or_else(PoisonError::into_inner);
            bar.set_position((step.share() * SHARES as f64) as u64);
            bar.set_message(step.to_string());
        })
    }

    /// What is made ready before anything runs, in words.
    pub(crate) fn preparing(words: Arc<Mutex<String>>) -> Watcher {
        Watcher::start(None, "{spinner} {msg}, {elapsed}", move |bar| {
            let words = words.lock().unwrap_or_else(PoisonError::into_inner);
            bar.set_message(words.clone());
        })
    }

    /// How many lines were written, if they do not show it themselves.
    pub(crate) fn counting(lines: Arc<AtomicU64>) -> Option<Watcher> {
        if std::io::stdout().is_terminal() {
            return None;
        }
        let template = "{spinner} {human_pos} I/Os listed, {elapsed}";
        Some(Watcher::start(None, template, move |bar| {
            bar.set_position(lines.load(Ordering::Relaxed));
        }))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.done.take());
        if let Some(thread) = self.thread.take() {
            // It draws and does nothing else: whether it could is no matter.
            let _ = thread.join();
        }
    }
}

/// Runs that have ended and runs that go on.
struct Board {
    total: AtomicUsize,
    done: AtomicUsize,
    running: Mutex<Vec<Arc<Meter>>>,
}

impl Board {
    fn draw(&self, bar: &ProgressBar) {
        let done = self.done.load(Ordering::Relaxed);
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let shares = running.iter().filter_map(|m| m.share());
        let all = shares.sum::<f64>() + done as f64;
        let times = running.iter().map(|m| m.now()).max();
        let time = match times {
            Some(now) if now.0 > 0 => format!(", {:.1} s of virtual time", now.0 as f64 / 1e9),
            _ => String::new(),
        };
        let total = self.total.load(Ordering::Relaxed);
        bar.set_length(total as u64 * SHARES);
        bar.set_message(match total {
            1 if running.iter().any(|m| m.share().is_some()) => {
                format!("{:.0} %{time}", all * 100.0)
            }
            1 => format!("running{time}"),
            n => format!("{done} of {n} experiments{time}"),
        });
        bar.set_position((all * SHARES as f64) as u64);
    }
}

/// Progress over a number of experiments.
pub(crate) struct Progress {
    board: Arc<Board>,
    watcher: Watcher,
}

impl Progress {
    pub(crate) fn new(experiments: usize) -> Progress {
        let board = Arc::new(Board {
            total: AtomicUsize::new(experiments),
            done: AtomicUsize::new(0),
            running: Mutex::new(Vec::new()),
        });
        let drawn = Arc::clone(&board);
        let len = experiments as u64 * SHARES;
        let template = "{bar:24} {msg}, {elapsed}";
        let watcher = Watcher::start(Some(len), template, move |bar| drawn.draw(bar));
        Progress { board, watcher }
    }

    /// So many experiments more.
    pub(crate) fn expect(&self, experiments: usize) {
        self.board.total.fetch_add(experiments, Ordering::Relaxed);
    }

    /// What a run that begins should report to, if anybody watches.
    pub(crate) fn begin(&self) -> Option<Arc<Meter>> {
        self.watcher.thread.as_ref()?;
        let meter = Arc::new(Meter::default());
        let mut running = self.board.running.lock();
        let running = running.as_mut().ok()?;
        running.push(Arc::clone(&meter));
        Some(meter)
    }

    /// A run that reported to this has ended.
    pub(crate) fn end(&self, meter: Option<&Arc<Meter>>) {
        if let (Some(meter), Ok(mut running)) = (meter, self.board.running.lock()) {
            running.retain(|m| !Arc::ptr_eq(m, meter));
        }
        self.step();
    }

    /// One more is done.
    pub(crate) fn step(&self) {
        self.board.done.fetch_add(1, Ordering::Relaxed);
    }

    /// All are done: the bar goes.
    pub(crate) fn finish(self) {
        drop(self.watcher);
    }
}
