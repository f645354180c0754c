// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics by process, direction, size and time, and what a queue did while its
//! device waited: beside [`TraceStats`], and only what somebody asks for.
//!
//! A class is told what was queued (Q) when it happens, and what a bio went through when
//! that ends; a bio belongs to the window of time in which it was queued.

mod class;
mod queue;
mod text;

pub use class::{ClassRow, ClassTable};
pub use queue::{Flushes, IdleWithWork, QueueDetail};
pub use text::{render_classes, render_histogram, render_queues};

use crate::collect::StatsCollector;
use crate::distribution::Distribution;
use crate::lifecycle::{BioLife, LifeSink, RequestLife};
use crate::stats::TraceStats;
use blklab_trace::{Action, Event, TraceSink};
use blklab_types::{Dev, Pid, Time};
use class::Classes;
use queue::Queues;
use serde::Serialize;

/// By what bios are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Who queued them.
    Process,
    /// Reads, sync writes, other writes, discards, flushes.
    Direction,
    /// Their length, by powers of two.
    Size,
    /// When they were queued, in windows of so many ns.
    Window(u64),
}

/// What is collected beside [`TraceStats`].
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Tables of classes.
    pub by: Vec<By>,
    /// Depths at Q and D, idle devices with work queued, flushes.
    pub queues: bool,
}

/// What was collected beside [`TraceStats`].
#[derive(Clone, Debug, Default, Serialize)]
pub struct Details {
    /// A table for each way of telling bios apart.
    pub by: Vec<ClassTable>,
    /// Queues of devices, in order of their first event.
    pub queues: Vec<QueueDetail>,
}

/// Statistics of a trace with their details and histograms, as programs read them.
#[derive(Debug, Serialize)]
pub struct FullStats<'a> {
    /// All bios and all devices.
    #[serde(flatten)]
    pub stats: &'a TraceStats,
    /// What was collected beside that.
    #[serde(flatten)]
    pub details: &'a Details,
    /// A histogram of each phase: values from, up to, how many.
    pub histograms: Vec<(&'static str, Bars)>,
}

impl<'a> FullStats<'a> {
    /// With histograms of all phases.
    pub fn new(stats: &'a TraceStats, details: &'a Details) -> FullStats<'a> {
        let phases = stats.all.named();
        let histogram = |(name, phase): &(&'static str, &Distribution)| (*name, histogram(phase));
        FullStats {
            stats,
            details,
            histograms: phases.iter().map(histogram).collect(),
        }
    }
}

/// Rows of a histogram: values from (inclusive), up to (exclusive), how many.
pub type Bars = Vec<(u64, u64, u64)>;

/// Values by powers of two: from (inclusive), up to (exclusive), how many; those between
/// the first and the last that are not empty.
pub fn histogram(values: &Distribution) -> Bars {
    let power = |value: u64| value.checked_ilog2().map_or(0, |bits| bits + 1);
    let mut counts = [0_u64; 65];
    for (value, count) in values.buckets() {
        counts[power(value) as usize] += count;
    }
    let first = counts.iter().position(|n| *n > 0);
    let last = counts.iter().rposition(|n| *n > 0);
    let (Some(first), Some(last)) = (first, last) else {
        return Vec::new();
    };
    let edge = |power: usize| match power {
        0 => 0,
        1..=64 => 1_u64 << (power - 1),
        _ => u64::MAX,
    };
    let row = |power: usize| (edge(power), edge(power + 1), counts[power]);
    (first..=last).map(row).collect()
}

/// Collects [`TraceStats`] and their details in one pass.
#[derive(Debug)]
pub struct DetailCollector(StatsCollector<Breakdown>);

/// The details, told of lives and of Q.
#[derive(Debug)]
struct Breakdown {
    classes: Vec<Classes>,
    queues: Option<Queues>,
}

impl DetailCollector {
    /// For one trace.
    pub fn new(wanted: &Wanted) -> DetailCollector {
        DetailCollector(StatsCollector::with(Breakdown {
            classes: wanted.by.iter().map(|by| Classes::new(*by)).collect(),
            queues: wanted.queues.then(Queues::default),
        }))
    }

    /// All that was collected.
    pub fn finish(self) -> (TraceStats, Details) {
        let (stats, breakdown) = self.0.finish_with();
        let classes = breakdown.classes.into_iter();
        let details = Details {
            by: classes.map(|c| c.finish(&stats)).collect(),
            queues: breakdown.queues.map_or_else(Vec::new, Queues::finish),
        };
        (stats, details)
    }
}

impl LifeSink for Breakdown {
    fn bio(&mut self, bio: &BioLife) {
        for classes in &mut self.classes {
            classes.bio(bio);
        }
        if let Some(queues) = &mut self.queues {
            queues.bio(bio);
        }
    }

    fn request(&mut self, request: &RequestLife) {
        if let Some(queues) = &mut self.queues {
            queues.request(request);
        }
    }

    fn depth(&mut self, time: Time, dev: Dev, nr_bios: u32, nr_issued: u32) {
        if let Some(queues) = &mut self.queues {
            queues.depth(time, dev, nr_bios, nr_issued);
        }
    }
}

impl TraceSink for DetailCollector {
    fn event(&mut self, event: &Event) {
        if event.action == Action::Queue {
            for classes in &mut self.0.also().classes {
                classes.queued(event);
            }
        }
        self.0.event(event);
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.0.message(event, text);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.0.process(time, pid, comm);
    }

    fn new_recording(&mut self) {
        self.0.new_recording();
        let breakdown = self.0.also();
        for classes in &mut breakdown.classes {
            classes.new_recording();
        }
        if let Some(queues) = &mut breakdown.queues {
            queues.new_recording();
        }
    }
}

#[cfg(test)]
mod tests;
