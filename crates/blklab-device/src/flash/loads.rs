// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readers beside writers, each with a constant number of commands in flight,
//! at random addresses: response times by direction.

use crate::host::Host;
use blklab_types::{BioFlags, Op, Span, SplitMix64, Time};

/// One load. Sizes are in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Reads in flight.
    pub(super) reads: usize,
    pub(super) read_bytes: u64,
    /// Writes in flight.
    pub(super) writes: usize,
    pub(super) write_bytes: u64,
    /// Commands follow each other in address.
    pub(super) sequential: bool,
    /// What the host adds to every response time, beside other commands.
    pub(super) wake_ns: u64,
    /// What the process of a direction takes for each of its commands when it sees
    /// that it is complete, one at a time: the end of its response time.
    pub(super) reap_ns: u64,
    /// What the process of a direction (reads, writes) takes to submit the next one,
    /// with the scheduler and the kernel, before its response time begins.
    pub(super) submit_ns: [u64; 2],
}

/// What came of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    sorted_ns: Vec<u64>,
    per_s: f64,
}

impl Times {
    /// Commands per second.
    pub(super) fn per_s(&self) -> f64 {
        self.per_s
    }

    /// A quantile in microseconds.
    pub(super) fn us(&self, quantile: f64) -> f64 {
        let n = self.sorted_ns.len();
        let i = ((n as f64 * quantile) as usize).min(n.saturating_sub(1));
        self.sorted_ns
            .get(i)
            .map_or(f64::NAN, |ns| *ns as f64 / 1e3)
    }
}

/// Runs a load for `seconds` after a fifth as much; reads, then writes.
pub(super) fn run(spec: &str, load: Load, seconds: f64) -> [Times; 2] {
    let mut host = Host::build(spec, 1023);
    let capacity = host.capacity().expect("a drive has an end");
    let warm = Time((seconds * 0.2e9) as u64);
    let end = Time((seconds * 1.2e9) as u64);
    let mut process_free = [Time::ZERO; 2];
    let mut random = SplitMix64(7);
    let mut times = [Times::default(), Times::default()];
    let mut next = [0, capacity / 16 * 8];
    let bytes = [load.read_bytes, load.write_bytes];
    // Commands that are to be sent, by time; at first all at once.
    let mut due: Vec<(Time, Op)> = vec![(Time::ZERO, Op::Write); load.writes];
    due.extend(vec![(Time::ZERO, Op::Read); load.reads]);
    loop {
        let soonest = due.iter().map(|(time, _)| *time).min();
        let send = soonest.is_some_and(|t| host.next_time().is_none_or(|next| t < next));
        if !send {
            let done = host.step().expect("goes on");
            if host.now >= end {
                break;
            }
            for f in done {
                let of = usize::from(f.cmd.op == Op::Write);
                let awake = process_free[of].max(f.ended + Span(load.wake_ns));
                let seen = awake + Span(load.reap_ns);
                if host.now >= warm {
                    times[of].sorted_ns.push((seen - f.submitted).ns());
                }
                process_free[of] = seen + Span(load.submit_ns[of]);
                due.push((process_free[of], f.cmd.op));
            }
            continue;
        }
        let now = soonest.expect("something is due");
        host.now = now;
        let mut i = 0;
        while i < due.len() {
            let (time, op) = due[i];
            if time > now {
                i += 1;
                continue;
            }
            due.swap_remove(i);
            let of = usize::from(op == Op::Write);
            let n = bytes[of] / 512;
            let sector = if load.sequential {
                next[of] % (capacity / 2)
            } else {
                random.below(capacity / n) * n
            };
            next[of] += n;
            host.submit(op, BioFlags::NONE, sector, n as u32);
        }
    }
    for t in &mut times {
        t.sorted_ns.sort_unstable();
        t.per_s = t.sorted_ns.len() as f64 / seconds;
    }
    times
}
