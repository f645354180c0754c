// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows: jobs that share their I/Os by weight.
//!
//! Behaviour of fio 3.33 (flow.c): before each I/O a job asks whether its share
//! of what the flow has issued exceeds its share of the weights. If so it asks
//! again, at once or, with `flow_sleep`, after what is in flight has been reaped
//! and a sleep. Who counts is the caller.

use super::{At, JobRun, Phase, Step};

impl JobRun {
    /// Whether the flow is asked first. An answer lasts for one I/O.
    pub(super) fn must_ask(&mut self) -> bool {
        self.job.settings.flow != 0 && !std::mem::take(&mut self.granted)
    }

    /// The flow's answer to [`Step::Flow`].
    pub fn may_issue(&mut self, yes: bool) {
        if self.at != At::Flow {
            return;
        }
        self.granted = yes;
        let sleeps = self.job.settings.flow_sleep_us != 0;
        match (yes, sleeps) {
            (true, _) => self.at = self.top(),
            (false, false) => self.at = At::FlowHeld,
            (false, true) => {
                self.resume = At::FlowSleep;
                self.start_quiesce();
            }
        }
    }

    fn top(&self) -> At {
        match self.phase {
            Phase::Verify => At::VerifyTop,
            _ => At::LoopTop,
        }
    }

    pub(super) fn flow_held(&mut self) -> Option<Step> {
        self.at = self.top();
        let runtime_us = self.job.settings.runtime_us;
        let end_us = self.epoch_us.saturating_add(runtime_us);
        let bounded = self.ramp_over && runtime_us != 0;
        Some(Step::FlowHeld {
            until_ns: bounded.then(|| end_us.saturating_mul(1000)),
        })
    }

    pub(super) fn flow_sleep(&mut self, now_ns: u64) -> Option<Step> {
        self.at = self.top();
        let us = u64::from(self.job.settings.flow_sleep_us);
        Some(Step::Wait {
            until_ns: now_ns.saturating_add(us.saturating_mul(1000)),
            spin: false,
        })
    }
}
