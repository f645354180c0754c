// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device's peak rate, from which budgets and the length of raising follow.
//! Rates are sectors per us, in units of 2^-16.

use super::Bfq;
use super::clock::now_ns;
use super::settings::MIN_THINK_NS;
use crate::queue_id::QueueId;
use blklab_block::mq::Core;
use blklab_block::{Cx, RqId};

/// Rates of reference, rotational and not (`ref_rate`).
pub(super) const ROTATIONAL_RATE: u64 = 14000;
pub(super) const FLASH_RATE: u64 = 33000;

const SHIFT: u32 = 16;
/// Dispatches, and time, that make an observation.
const MIN_SAMPLES: u32 = 32;
const MIN_SPAN_NS: u64 = 300_000_000;
/// Time at which an observation is evaluated.
const REF_SPAN_NS: u64 = 1_000_000_000;
/// Silence that ends an observation.
const LONG_PAUSE_NS: u64 = 100_000_000;
/// No device is faster: 20 sectors per us.
const MAX_RATE: u64 = 20 << SHIFT;

/// The rate and the observation that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peak {
    pub(super) rate: u64,
    samples: u32,
    seq_samples: u32,
    sectors: u64,
    first_dispatch_ns: u64,
    last_dispatch_ns: u64,
    span_ns: u64,
    /// Largest request of the last 32.
    largest: u64,
}

impl Peak {
    pub(super) fn new(rotational: bool) -> Peak {
        let reference = if rotational {
            ROTATIONAL_RATE
        } else {
            FLASH_RATE
        };
        Peak {
            rate: reference * 2 / 3,
            samples: 0,
            seq_samples: 0,
            sectors: 0,
            first_dispatch_ns: 0,
            last_dispatch_ns: 0,
            span_ns: 0,
            largest: 0,
        }
    }

    /// Starts an observation with a request of so many sectors, or waits for
    /// one (`bfq_reset_rate_computation`).
    fn restart(&mut self, now: u64, first: Option<u64>) {
        if let Some(sectors) = first {
            *self = Peak {
                rate: self.rate,
                samples: 1,
                seq_samples: 0,
                sectors,
                first_dispatch_ns: now,
                last_dispatch_ns: now,
                span_ns: self.span_ns,
                largest: sectors,
            };
        } else {
            self.samples = 0;
        }
    }

    /// Moves the rate towards what was observed, if that tells enough; whether
    /// it moved (`bfq_update_rate_reset`).
    fn evaluate(&mut self, last_completion_ns: u64) -> bool {
        if self.samples < MIN_SAMPLES || self.span_ns < MIN_SPAN_NS {
            return false;
        }
        let busy = last_completion_ns.saturating_sub(self.first_dispatch_ns);
        self.span_ns = self.span_ns.max(busy);
        let rate = (self.sectors << SHIFT) / (self.span_ns / 1000);
        let mostly_seq = self.seq_samples >= (3 * self.samples) >> 2;
        if (!mostly_seq && rate <= self.rate) || rate > MAX_RATE {
            return false;
        }
        // The more sequential and the longer, the more it counts.
        let mut weight = u64::from(9 * self.seq_samples / self.samples);
        weight = weight.min(8).min(weight * self.span_ns / REF_SPAN_NS);
        let divisor = 10 - weight;
        self.rate = (self.rate * (divisor - 1) / divisor + rate / divisor).max(1);
        true
    }
}

impl Bfq {
    /// The budget that takes the time of a slot at the peak rate, in sectors
    /// (`bfq_calc_max_budget`).
    pub(super) fn budget_at_peak_rate(&self) -> i64 {
        let ms = self.set.in_ms(self.set.timeout_jiffies).unsigned_abs();
        ((self.peak.rate * 1000).saturating_mul(ms) >> SHIFT) as i64
    }

    fn evaluate_rate(&mut self, q: &Core, cx: &mut Cx<'_>, first: Option<u64>) {
        if self.peak.evaluate(self.last_completion_ns) && self.set.user_max_budget == 0 {
            self.max_budget = self.budget_at_peak_rate();
        }
        self.restart_rate(q, cx, first);
    }

    fn restart_rate(&mut self, q: &Core, cx: &mut Cx<'_>, first: Option<u64>) {
        self.peak.restart(now_ns(cx), first);
        let Peak {
            samples,
            seq_samples,
            sectors,
            ..
        } = self.peak;
        q.message(
            cx,
            format_args!(
                "bfq reset_rate_computation at end, sample {samples}/{seq_samples} tot_sects {sectors}"
            ),
        );
    }

    /// A request is dispatched (`bfq_update_peak_rate`).
    pub(super) fn observe_dispatch(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId) {
        let now = now_ns(cx);
        let sectors = u64::from(q.rqs[rq].nr_sectors);
        if self.peak.samples == 0 {
            q.message(
                cx,
                format_args!("bfq update_peak_rate: goto reset, samples 0"),
            );
            self.restart_rate(q, cx, Some(sectors));
        } else if now - self.peak.last_dispatch_ns > LONG_PAUSE_NS && self.in_driver == 0 {
            self.evaluate_rate(q, cx, Some(sectors));
        } else {
            let flows = self.in_driver > 0 || now - self.last_completion_ns < MIN_THINK_NS;
            let seeks = self.is_far(self.last_position, &q.rqs[rq]);
            let p = &mut self.peak;
            p.samples += 1;
            if flows && !seeks {
                p.seq_samples += 1;
            }
            p.sectors += sectors;
            p.largest = if p.samples.is_multiple_of(MIN_SAMPLES) {
                sectors
            } else {
                p.largest.max(sectors)
            };
            p.span_ns = now - p.first_dispatch_ns;
            if p.span_ns >= REF_SPAN_NS {
                self.evaluate_rate(q, cx, Some(sectors));
            }
        }
        self.last_position = q.rqs[rq].end();
        if self.in_service == Some(id) {
            self.in_serv_last_pos = self.last_position;
        }
        self.peak.last_dispatch_ns = now;
    }

    /// A completion that came so late that the device cannot have been at its
    /// peak ends the observation.
    pub(super) fn observe_completion(&mut self, q: &Core, cx: &mut Cx<'_>) {
        let us = (now_ns(cx) - self.last_completion_ns) / 1000;
        if us > MIN_THINK_NS / 1000 && (self.peak.largest << SHIFT) / us < 1 << (SHIFT - 10) {
            self.evaluate_rate(q, cx, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_sequential_dispatches() {
        let mut p = Peak::new(true);
        assert_eq!(p.rate, 9333);
        p.samples = 1000;
        p.seq_samples = 999;
        p.sectors = 256_000;
        p.span_ns = REF_SPAN_NS;
        assert!(p.evaluate(0));
        assert_eq!(p.rate, 13054);
        assert_eq!((p.rate * 1000 * 125) >> SHIFT, 24898);
    }

    #[test]
    fn too_little_tells_nothing() {
        let mut p = Peak::new(false);
        assert_eq!(p.rate, 22000);
        p.sectors = 1 << 20;
        for (samples, span_ns) in [(31, REF_SPAN_NS), (32, MIN_SPAN_NS - 1)] {
            p.samples = samples;
            p.seq_samples = samples;
            p.span_ns = span_ns;
            assert!(!p.evaluate(0));
        }
        assert_eq!(p.rate, 22000);
    }
}
