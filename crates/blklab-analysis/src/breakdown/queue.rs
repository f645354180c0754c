// SPDX-License-Identifier: MIT OR Apache-2.0
//! Depths as I/Os met them, devices that waited while work was queued, and flushes.

use crate::distribution::Distribution;
use crate::lifecycle::{BioLife, RequestLife};
use blklab_trace::Rwbs;
use blklab_types::{Dev, Time};
use serde::Serialize;

/// The queue of a device.
#[derive(Clone, Debug, Default, Serialize)]
pub struct QueueDetail {
    /// The device, as `8,0`.
    #[serde(serialize_with = "crate::stats::dev_text")]
    pub dev: Dev,
    /// Bios between Q and C that each met at its Q.
    pub depth_at_q: Distribution,
    /// Requests between D and C that each met at its D.
    pub depth_at_d: Distribution,
    /// The device had nothing while bios waited.
    pub idle_with_work: IdleWithWork,
    /// Flushes and what they took.
    pub flushes: Flushes,
}

/// Times without a request between D and C, and with a bio between Q and C.
#[derive(Clone, Debug, Default, Serialize)]
pub struct IdleWithWork {
    /// How often and how long, in ns.
    pub pauses: Distribution,
    /// The same, but between the first D and the last C of the device: what its queue
    /// held back.
    pub share_percent: f64,
}

/// Flushes of the device's cache.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Flushes {
    /// Bios without data that asked for one: Q to C, in ns.
    pub empty_q2c: Distribution,
    /// Writes that asked for one first: Q to C, in ns.
    pub preflush_q2c: Distribution,
    /// Writes that had to be on the medium (FUA): Q to C, in ns.
    pub fua_q2c: Distribution,
    /// Flush commands at the device: D to C, in ns.
    pub commands_d2c: Distribution,
}

#[derive(Debug, Default)]
struct Queue {
    detail: QueueDetail,
    nr_bios: u32,
    nr_issued: u32,
    idle_since: Option<Time>,
    first_issue: Option<Time>,
    last: Time,
    span_ns: u64,
}

impl Queue {
    fn end_of_recording(&mut self) {
        if let Some(first) = self.first_issue.take() {
            self.span_ns = self.span_ns.saturating_add(self.last.since(first).ns());
        }
        self.idle_since = None;
        (self.nr_bios, self.nr_issued) = (0, 0);
    }
}

/// The queues of a trace.
#[derive(Debug, Default)]
pub(super) struct Queues(Vec<Queue>);

impl Queues {
    /// There are as many as the tracker follows.
    fn queue_of(&mut self, dev: Dev) -> &mut Queue {
        let place = self.0.iter().position(|q| q.detail.dev == dev);
        let place = place.unwrap_or_else(|| {
            self.0.push(Queue {
                detail: QueueDetail {
                    dev,
                    ..QueueDetail::default()
                },
                ..Queue::default()
            });
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    pub(super) fn depth(&mut self, time: Time, dev: Dev, nr_bios: u32, nr_issued: u32) {
        let queue = self.queue_of(dev);
        if nr_bios > queue.nr_bios {
            queue.detail.depth_at_q.add(queue.nr_bios.into());
        }
        if nr_issued > queue.nr_issued {
            queue.detail.depth_at_d.add(queue.nr_issued.into());
            queue.first_issue.get_or_insert(time);
        }
        (queue.nr_bios, queue.nr_issued) = (nr_bios, nr_issued);
        queue.last = queue.last.max(time);
        if nr_issued == 0 && nr_bios > 0 {
            queue.idle_since.get_or_insert(time);
        } else if let Some(since) = queue.idle_since.take()
            && nr_issued > 0
            && time > since
        {
            let pauses = &mut queue.detail.idle_with_work.pauses;
            pauses.add(time.since(since).ns());
        }
    }

    pub(super) fn bio(&mut self, bio: &BioLife) {
        let kinds = Rwbs(bio.rwbs.0 & (Rwbs::FLUSH.0 | Rwbs::FUA.0));
        if kinds == Rwbs::NONE {
            return;
        }
        let Some(complete) = bio.complete else { return };
        let q2c_ns = complete.since(bio.queue).ns();
        let flushes = &mut self.queue_of(bio.dev).detail.flushes;
        match (kinds.has(Rwbs::FLUSH), bio.bytes) {
            (true, 0) => flushes.empty_q2c.add(q2c_ns),
            (true, _) => flushes.preflush_q2c.add(q2c_ns),
            (false, _) => {}
        }
        if kinds.has(Rwbs::FUA) && bio.bytes > 0 {
            flushes.fua_q2c.add(q2c_ns);
        }
    }

    pub(super) fn request(&mut self, request: &RequestLife) {
        let is_flush = request.rwbs.has(Rwbs::FLUSH) && request.bytes == 0;
        if let (true, Some(issue), Some(complete)) = (is_flush, request.issue, request.complete) {
            let flushes = &mut self.queue_of(request.dev).detail.flushes;
            flushes.commands_d2c.add(complete.since(issue).ns());
        }
    }

    pub(super) fn new_recording(&mut self) {
        self.0.iter_mut().for_each(Queue::end_of_recording);
    }

    pub(super) fn finish(mut self) -> Vec<QueueDetail> {
        self.new_recording();
        let detail = |queue: Queue| {
            let mut detail = queue.detail;
            let idle_ns = detail.idle_with_work.pauses.sum() as f64;
            if queue.span_ns > 0 {
                // The wait for the very first D is before the span.
                let share = 100.0 * idle_ns / queue.span_ns as f64;
                detail.idle_with_work.share_percent = share.min(100.0);
            }
            detail
        };
        self.0.into_iter().map(detail).collect()
    }
}
