// SPDX-License-Identifier: MIT OR Apache-2.0
//! The summary after the events: what was queued, dispatched, completed and
//! merged per CPU, their total, and the throughput. Sums wrap as in blkparse:
//! a requeue takes the bytes of a dispatch back, even one that was not seen.

use crate::blktrace::may_be_passed_through;
use crate::output::prefix;
use blklab_trace::{Action, Event, Rwbs};
use std::fmt::Write as _;

/// Requests and their bytes; KiB and rests are summed apart.
#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    count: u64,
    kib: u64,
    rest_bytes: u64,
}

impl Amount {
    fn add(&mut self, bytes: u32) {
        self.count += 1;
        self.add_bytes(bytes);
    }

    fn add_bytes(&mut self, bytes: u32) {
        self.kib = self.kib.wrapping_add(u64::from(bytes >> 10));
        self.rest_bytes = self.rest_bytes.wrapping_add(u64::from(bytes & 1023));
    }

    fn take_back(&mut self, bytes: u32) {
        self.kib = self.kib.wrapping_sub(u64::from(bytes >> 10));
        self.rest_bytes = self.rest_bytes.wrapping_sub(u64::from(bytes & 1023));
    }

    fn total_kib(&self) -> u64 {
        self.kib.wrapping_add(self.rest_bytes >> 10)
    }

    fn join(&mut self, other: &Amount) {
        self.count += other.count;
        self.kib = self.kib.wrapping_add(other.kib);
        self.rest_bytes = self.rest_bytes.wrapping_add(other.rest_bytes);
    }

    /// `   COUNT,     SIZEiB`, as in every cell of the summary.
    fn cell(&self) -> String {
        format!(
            "{}, {}iB",
            scaled(self.count, 0),
            scaled(self.total_kib(), 1)
        )
    }
}

/// One direction of one CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    queued: Amount,
    dispatched: Amount,
    requeued: u64,
    completed: Amount,
    merged: Amount,
}

impl Direction {
    fn join(&mut self, other: &Direction) {
        self.queued.join(&other.queued);
        self.dispatched.join(&other.dispatched);
        self.requeued += other.requeued;
        self.completed.join(&other.completed);
        self.merged.join(&other.merged);
    }
}

/// What one CPU did: reads in index 0, all else in 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuSums {
    file_system: [Direction; 2],
    passed_through: [Direction; 2],
    unplugs: u64,
    timer_unplugs: u64,
}

impl CpuSums {
    fn join(&mut self, other: &CpuSums) {
        for way in 0..2 {
            self.file_system[way].join(&other.file_system[way]);
            self.passed_through[way].join(&other.passed_through[way]);
        }
        self.unplugs += other.unplugs;
        self.timer_unplugs += other.timer_unplugs;
    }

    fn count(&mut self, event: &Event) {
        let way = way(event);
        let passed_through = event.rwbs.has(Rwbs::PC);
        if passed_through && may_be_passed_through(event.action) {
            let sums = &mut self.passed_through[way];
            match event.action {
                Action::Queue if way == 0 => {
                    // blkparse adds the bytes of these reads to the others.
                    sums.queued.count += 1;
                    self.file_system[0].queued.add_kib_only(event.bytes);
                    sums.queued.rest_bytes += u64::from(event.bytes & 1023);
                }
                Action::Queue => sums.queued.add(event.bytes),
                Action::Issue => sums.dispatched.add(event.bytes),
                Action::Requeue => {
                    sums.requeued += 1;
                    sums.dispatched.take_back(event.bytes);
                }
                Action::Complete => sums.completed.count += 1,
                _ => {}
            }
            return;
        }
        let sums = &mut self.file_system[way];
        match event.action {
            Action::Queue => sums.queued.add(event.bytes),
            Action::BackMerge | Action::FrontMerge => sums.merged.add(event.bytes),
            Action::Issue => sums.dispatched.add(event.bytes),
            Action::Requeue => {
                sums.requeued += 1;
                sums.dispatched.take_back(event.bytes);
            }
            Action::Complete => sums.completed.add(event.bytes),
            Action::Unplug => self.unplugs += 1,
            Action::UnplugTimer => self.timer_unplugs += 1,
            _ => {}
        }
    }

    fn has_passed_through(&self) -> bool {
        self.passed_through
            .iter()
            .any(|d| d.queued.count + d.dispatched.count + d.requeued + d.completed.count > 0)
    }

    fn print(&self, text: &mut String, title: &str, depth_max: Option<[u32; 2]>) {
        let [r, w] = &self.file_system;
        let _ = write!(
            text,
            "{title}\n \
             Reads Queued:    {}\t Writes Queued:    {}\n \
             Read Dispatches: {}\t Write Dispatches: {}\n \
             Reads Requeued:  {}\t\t Writes Requeued:  {}\n \
             Reads Completed: {}\t Writes Completed: {}\n \
             Read Merges:     {}\t Write Merges:     {}\n",
            r.queued.cell(),
            w.queued.cell(),
            r.dispatched.cell(),
            w.dispatched.cell(),
            scaled(r.requeued, 0),
            scaled(w.requeued, 0),
            r.completed.cell(),
            w.completed.cell(),
            r.merged.cell(),
            w.merged.cell(),
        );
        if let Some([read, write]) = depth_max {
            let _ = writeln!(
                text,
                " Read depth:      {read:8}        \t Write depth:      {write:8}"
            );
        }
        if self.has_passed_through() {
            let [r, w] = &self.passed_through;
            let _ = write!(
                text,
                " PC Reads Queued: {}\t PC Writes Queued: {}\n \
                 PC Read Disp.:   {}\t PC Write Disp.:   {}\n \
                 PC Reads Req.:   {}\t\t PC Writes Req.:   {}\n \
                 PC Reads Compl.: {}\t\t PC Writes Compl.: {}\n",
                r.queued.cell(),
                w.queued.cell(),
                r.dispatched.cell(),
                w.dispatched.cell(),
                scaled(r.requeued, 0),
                scaled(w.requeued, 0),
                scaled(r.completed.count, 0),
                scaled(w.completed.count, 0),
            );
        }
        let _ = writeln!(
            text,
            " IO unplugs:      {:8}        \t Timer unplugs:    {:8}",
            self.unplugs, self.timer_unplugs
        );
    }
}

impl Amount {
    fn add_kib_only(&mut self, bytes: u32) {
        self.kib = self.kib.wrapping_add(u64::from(bytes >> 10));
    }
}

/// blkparse counts as a write what has the write bit: discards too.
fn way(event: &Event) -> usize {
    usize::from(event.rwbs.has(Rwbs::WRITE) || event.rwbs.has(Rwbs::DISCARD))
}

/// A number in eight columns and a unit, divided by 1000 while it is above a
/// million.
fn scaled(mut number: u64, mut unit: usize) -> String {
    const UNITS: [&str; 5] = ["", "K", "M", "G", "P"];
    while number > 1_000_000 && unit < UNITS.len() - 1 {
        unit += 1;
        number /= 1000;
    }
    format!("{number:8}{}", UNITS[unit])
}

/// The sums of a whole trace.
#[derive(Debug, Default)]
pub(super) struct Summary {
    depth: [u32; 2],
    depth_max: [u32; 2],
    nr_events: u64,
    last_ns: u64,
}

impl Summary {
    /// Counts an event that is not a message.
    #[inline]
    pub(super) fn count(&mut self, cpu: &mut CpuSums, event: &Event, time_ns: u64) {
        cpu.count(event);
        self.nr_events += 1;
        self.last_ns = time_ns;
        let way = way(event);
        match event.action {
            Action::Issue => {
                self.depth[way] += 1;
                self.depth_max[way] = self.depth_max[way].max(self.depth[way]);
            }
            Action::Requeue | Action::Complete => {
                self.depth[way] = self.depth[way].saturating_sub(1);
            }
            _ => {}
        }
    }

    /// Counts a message.
    pub(super) fn count_message(&mut self, time_ns: u64) {
        self.nr_events += 1;
        self.last_ns = time_ns;
    }

    /// The text. blkparse cuts the name where its buffers end.
    pub(super) fn print<'a>(
        &self,
        name: &str,
        cpus: impl Iterator<Item = (usize, &'a CpuSums)>,
    ) -> String {
        let mut text = String::new();
        let mut total = CpuSums::default();
        let mut nr_cpus = 0;
        for (number, cpu) in cpus {
            let title = format!("CPU{number} ({}):", prefix(name, 31));
            cpu.print(&mut text, prefix(&title, 46), Some(self.depth_max));
            total.join(cpu);
            nr_cpus += 1;
        }
        if nr_cpus > 1 {
            text.push('\n');
            let title = format!("Total ({}):", prefix(name, 31));
            total.print(&mut text, prefix(&title, 46), None);
        }
        let rate = |way: usize| {
            let done = &total.file_system[way].completed;
            let amount = done.kib.wrapping_mul(1000).wrapping_add(done.rest_bytes);
            amount.checked_div(self.last_ns / 1_000_000).unwrap_or(0)
        };
        let _ = write!(
            text,
            "\nThroughput (R/W): {}KiB/s / {}KiB/s\nEvents ({}): {} entries\n\
             Skips: 0 forward (0 -   0.0%)\n",
            rate(0),
            rate(1),
            prefix(name, 47),
            self.nr_events,
        );
        text
    }
}
