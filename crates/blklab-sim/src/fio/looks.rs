// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio's main process while its jobs run: it sleeps and looks (`run_threads` of
//! backend.c).

use crate::Machine;
use blklab_types::{Span, Time};

/// The main process sleeps so long between two looks (`do_usleep(10000)` in
/// backend.c, and the slack of a timer, 50 us).
const LOOK_INTERVAL: Span = Span::from_us(10_050);

/// The same while jobs wait to be started (`do_usleep(100000)`).
const START_INTERVAL: Span = Span::from_us(100_050);

/// Processor times of the main process, which sleeps and sees how its jobs are
/// (`run_threads`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks {
    /// While all jobs run; zero: it only sleeps, and starts jobs in time.
    pub(crate) each: Span,
    /// While some wait to be started; zero: it starts them in time.
    pub(crate) to_start: Span,
    /// Of jobs that one look starts the last has the processor first, where they prepare
    /// themselves in no time and tasks share it by deadlines (6.6 and later): when the last
    /// one goes to sleep, the main process sleeps, too, and nobody has had less; the others
    /// went to sleep beside the main process, and owe it something (on 6.12 and 7.3 as
    /// targets, with two, three and four jobs).
    pub(crate) last_begins_first: bool,
}

impl Looks {
    pub(super) async fn sleep(self, m: &Machine, next: Option<Time>) {
        let next_look = m.now() + LOOK_INTERVAL;
        m.suspend_until(next.map_or(next_look, |time| time.min(next_look)))
            .await;
        m.compute(self.each).await;
    }

    /// After jobs have been started it sleeps before it looks whether others may
    /// be; these get as long to prepare themselves before it releases them. As no
    /// time passed before the first jobs of a run were released, nor does it here.
    pub(super) async fn sleep_until_next_start(self, m: &Machine, has_started: bool) {
        let sleeps = if has_started { 2 } else { 1 };
        for _ in 0..sleeps {
            let next = m.now() + START_INTERVAL;
            m.suspend_until(next).await;
            while m.now() < next {
                m.suspend().await;
            }
            m.compute(self.to_start).await;
        }
    }
}
