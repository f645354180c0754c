// SPDX-License-Identifier: MIT OR Apache-2.0
//! Printing a trace as blkparse does.

use super::line::{self, Shown};
use super::summary::{CpuSums, Summary};
use super::ties::{Order, Recency};
use crate::FormatError;
use crate::counts::Numbered;
use crate::names::Names;
use crate::output::Output;
use blklab_trace::{Action, Event, KernelEvent, TraceSink};
use blklab_types::{Pid, Time};
use std::collections::VecDeque;
use std::io::Write;

/// What blkparse's command line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlkparseOptions {
    /// The NAME of `-i NAME`, which the summary shows.
    pub name: String,
    /// Whether to print the summary: false is `-q`.
    pub summary: bool,
    /// Whether to print the events: false is `-O`.
    pub events: bool,
    /// Whether to print times as they are instead of counting them from the
    /// first event: for events whose times blkparse printed.
    pub times_as_given: bool,
}

impl Default for BlkparseOptions {
    fn default() -> BlkparseOptions {
        BlkparseOptions {
            name: "trace".into(),
            summary: true,
            events: true,
            times_as_given: false,
        }
    }
}

/// Events of one time that are put into blkparse's order together; beyond
/// that, which no trace of a machine has, they are printed as they come.
const GROUP_MAX: usize = 65_536;

/// Writes what `blkparse -i NAME -o FILE` prints for the trace that
/// [`BlktraceWriter`](crate::blktrace::BlktraceWriter) writes from the same
/// events.
///
/// Like blkparse it counts time from the first event (unless told otherwise), shows the first name
/// that a process ever had, `(null)` where there is none, and orders events
/// of equal time by CPU (see `ties.rs`). Names must be known before the first
/// event of their process. The numbers of the summary have no thousands
/// separators: blkparse prints them only where the locale `en_US` exists.
#[derive(Debug)]
pub struct BlkparseWriter<W> {
    out: Output<W>,
    options: BlkparseOptions,
    names: Names,
    /// Time of the first event.
    genesis_ns: Option<u64>,
    /// Those that had an event; a trace may name a CPU far beyond the others.
    cpus: Vec<Option<Box<Cpu>>>,
    summary: Summary,
    order: Order,
    /// Events of the latest time, in the order given.
    group: Vec<Pending>,
    /// Texts of the messages among them.
    texts: String,
    group_cpus: Vec<(u16, Recency)>,
}

#[derive(Debug, Default)]
struct Cpu {
    sequence: u32,
    /// Events to come whose numbers do not follow the one before.
    numbered: VecDeque<Numbered>,
    recency: Recency,
    sums: CpuSums,
}

#[derive(Debug)]
struct Pending {
    event: Event,
    /// Start and end in `texts`; of interest for messages.
    text: (usize, usize),
}

impl<W: Write> BlkparseWriter<W> {
    /// Prints to `inner`.
    pub fn new(inner: W, options: BlkparseOptions) -> BlkparseWriter<W> {
        BlkparseWriter {
            out: Output::new(inner),
            options,
            names: Names::default(),
            genesis_ns: None,
            cpus: Vec::new(),
            summary: Summary::default(),
            order: Order::default(),
            group: Vec::new(),
            texts: String::new(),
            group_cpus: Vec::new(),
        }
    }

    /// The event at this time on this CPU has this number, and the following go on from
    /// it. Without it they count from 1. Events of one time are kept until a later one comes,
    /// so that it may be said right after an event what its number is.
    pub fn number(&mut self, numbered: Numbered) {
        let cpu = cpu_of(&mut self.cpus, numbered.cpu);
        cpu.numbered.push_back(numbered);
    }

    /// Prints the rest and the summary, and returns what was printed to.
    ///
    /// # Errors
    /// The first error since the start.
    pub fn finish(mut self) -> Result<W, FormatError> {
        self.end_group();
        if self.options.summary {
            let cpus = self.cpus.iter().enumerate();
            let cpus = cpus.filter_map(|(n, cpu)| Some((n, &cpu.as_ref()?.sums)));
            let text = self.summary.print(&self.options.name, cpus);
            self.out.buf.extend_from_slice(text.as_bytes());
        }
        self.out.finish("blkparse text")
    }

    #[inline]
    fn add(&mut self, event: &Event, text: &str) {
        let differs = |first: &Pending| first.event.time != event.time;
        if self.group.first().is_some_and(differs) || self.group.len() >= GROUP_MAX {
            self.end_group();
        }
        let start = self.texts.len();
        self.texts.push_str(text);
        self.group.push(Pending {
            event: *event,
            text: (start, self.texts.len()),
        });
    }

    /// Prints the group of equal times.
    fn end_group(&mut self) {
        let group = std::mem::take(&mut self.group);
        let Some(first) = group.first() else { return };
        let cpu = first.event.cpu;
        if group.iter().all(|p| p.event.cpu == cpu) {
            for pending in &group {
                self.print(pending);
            }
        } else {
            self.print_by_cpu(&group);
        }
        self.group = group;
        self.group.clear();
        self.texts.clear();
    }

    #[cold]
    fn print_by_cpu(&mut self, group: &[Pending]) {
        let mut cpus = std::mem::take(&mut self.group_cpus);
        for pending in group {
            let cpu = pending.event.cpu;
            if cpus.iter().all(|(other, _)| *other != cpu) {
                let known = self.cpus.get(usize::from(cpu)).and_then(Option::as_ref);
                cpus.push((cpu, known.map(|c| c.recency).unwrap_or_default()));
            }
        }
        self.order.sort(&mut cpus);
        for &(cpu, _) in &cpus {
            for pending in group.iter().filter(|p| p.event.cpu == cpu) {
                self.print(pending);
            }
        }
        cpus.clear();
        self.group_cpus = cpus;
    }

    fn print(&mut self, pending: &Pending) {
        let event = &pending.event;
        let genesis_ns = *self.genesis_ns.get_or_insert(event.time.0);
        let since_first_ns = event.time.0.wrapping_sub(genesis_ns);
        let time_ns = if self.options.times_as_given {
            event.time.0
        } else {
            since_first_ns
        };
        let cpu = cpu_of(&mut self.cpus, event.cpu);
        self.order.given_out(event.cpu, &mut cpu.recency);
        if event.action == Action::Message {
            self.summary.count_message(since_first_ns);
            if self.options.events {
                let text = &self.texts[pending.text.0..pending.text.1];
                line::put_message(&mut self.out.buf, event, time_ns, text);
            }
        } else {
            cpu.sequence = cpu.sequence.wrapping_add(1);
            while let Some(numbered) = cpu.numbered.front()
                && numbered.time <= event.time
            {
                cpu.sequence = numbered.sequence;
                cpu.numbered.pop_front();
            }
            self.summary.count(&mut cpu.sums, event, since_first_ns);
            if self.options.events {
                let comm = self.names.get(event.pid);
                let shown = Shown {
                    sequence: cpu.sequence,
                    time_ns,
                    comm,
                };
                line::put_event(&mut self.out.buf, event, &shown);
            }
        }
        self.out.end_record();
    }
}

#[inline]
fn cpu_of(cpus: &mut Vec<Option<Box<Cpu>>>, number: u16) -> &mut Cpu {
    let idx = usize::from(number);
    if idx >= cpus.len() {
        cpus.resize_with(idx + 1, || None);
    }
    cpus[idx].get_or_insert_default()
}

impl<W: Write> TraceSink for BlkparseWriter<W> {
    fn event(&mut self, event: &Event) {
        self.add(event, "");
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.add(event, text);
    }

    /// As a message of the kernel: blkparse has no other line for it.
    fn kernel_event(&mut self, event: &KernelEvent) {
        let event_of = crate::order::Held::kernel(event, None).event;
        let text = match self.names.get(event.pid) {
            Some(comm) => format!("{} [{}]", event.point, String::from_utf8_lossy(comm)),
            None if event.pid > 0 => format!("{} [{}]", event.point, event.pid),
            None => event.point.to_string(),
        };
        self.add(&event_of, &text);
    }

    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        self.names.add(pid, comm.as_bytes());
    }
}
