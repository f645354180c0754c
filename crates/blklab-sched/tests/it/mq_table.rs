// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that arrive by a timetable at a multi-queue device that serves
//! them one after another: the form of the specifications' vectors.
//!
//! Nothing is plugged or merged, and tags do not run out. At one instant:
//! completions, then arrivals in the order listed, then timers, then dispatch.

use crate::arrival::{What, ioprio, lines, words};
use crate::mq_rig::{MqRig, MqSetup};
use blklab_block::IoContext;
use blklab_types::{Bio, IoPrio, Span, TaskId, Time};
use std::collections::{BTreeMap, VecDeque};

/// One arrival; its time in ms (`2.5` is possible).
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Time,
    pub(crate) process: String,
    pub(crate) name: String,
    what: What,
}

/// A process that submits its next read some time after the last one is done:
/// T0, T1, ... of 8 sectors, one behind the other.
#[derive(Clone, Debug)]
pub(crate) struct ClosedLoop {
    pub(crate) process: &'static str,
    pub(crate) prefix: &'static str,
    pub(crate) sector: u64,
    pub(crate) count: u64,
    /// From a completion to the next submission.
    pub(crate) think: Span,
}

/// `2.5` ms.
pub(crate) fn ms(text: &str) -> Time {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = whole.parse().expect("ms");
    let ns: u64 = format!("{fraction:0<6}").parse().expect("a fraction");
    Time(whole * 1_000_000 + ns)
}

/// The reverse: `2.5`, `10`.
pub(crate) fn shown_ms(time: Time) -> String {
    let text = format!("{}.{:06}", time.0 / 1_000_000, time.0 % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Arrivals separated by `;` or line ends.
pub(crate) fn arrivals(text: &str) -> Vec<Arrival> {
    lines(text).map(Arrival::new).collect()
}

/// `a0`, `a1`, ... at `sector`, `sector + step`, ..., all at one time.
pub(crate) fn series(
    at: &str,
    process: &str,
    prefix: &str,
    count: u64,
    (sector, step): (u64, u64),
    suffix: &str,
) -> Vec<Arrival> {
    (0..count)
        .map(|i| {
            let sector = sector + step * i;
            Arrival::new(&format!("{at} {process} {prefix}{i} {sector}{suffix}"))
        })
        .collect()
}

impl Arrival {
    pub(crate) fn new(line: &str) -> Arrival {
        let [at, process, name, place] = words(line);
        Arrival {
            at: ms(at),
            process: process.to_owned(),
            name: name.to_owned(),
            what: What::new(name, place),
        }
    }
}

/// What runs, and on what.
pub(crate) struct MqTable {
    pub(crate) setup: MqSetup,
    /// What the device takes for a request.
    pub(crate) service: Span,
    /// Priorities, nice values and groups of processes. Those whose names
    /// begin with RT, BE or IDLE are of that class unless it says otherwise.
    pub(crate) processes: fn(&str, &mut IoContext),
    /// CPU on which a process runs.
    pub(crate) cpu: fn(&str) -> u16,
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) loops: Vec<ClosedLoop>,
}

impl MqTable {
    /// On a device of `slots` commands that takes `service_ms` for each.
    pub(crate) fn new(
        kernel: &'static str,
        sched: &'static str,
        slots: u32,
        service_ms: &str,
        arrivals: Vec<Arrival>,
    ) -> MqTable {
        MqTable {
            setup: MqSetup::budget(kernel, sched, slots),
            service: Span(ms(service_ms).0),
            processes: |_, _| {},
            cpu: |_| 0,
            arrivals,
            loops: Vec::new(),
        }
    }

    /// The same with tunables.
    pub(crate) fn with(mut self, tunables: &[(&'static str, i64)]) -> MqTable {
        self.setup.tunables.extend(tunables);
        self
    }

    /// `name@ms` in order of dispatch.
    pub(crate) fn run(self) -> Vec<String> {
        self.run_with(|_, _| {}).1
    }

    /// The same, with a look at the rig after every instant at which something
    /// happened; and the rig at the end.
    pub(crate) fn run_with(
        mut self,
        mut look: impl FnMut(Time, &mut MqRig),
    ) -> (MqRig, Vec<String>) {
        for l in &self.loops {
            let line = format!("0 {} {}0 {}", l.process, l.prefix, l.sector);
            self.arrivals.push(Arrival::new(&line));
        }
        self.arrivals.sort_by_key(|a| a.at);
        let mut arrivals: VecDeque<Arrival> = std::mem::take(&mut self.arrivals).into();
        let mut r = Running {
            rig: self.setup.rig(),
            names: BTreeMap::new(),
            tasks: BTreeMap::new(),
            device: VecDeque::new(),
            busy_until: Time::ZERO,
            log: Vec::new(),
        };
        loop {
            let idle = arrivals.is_empty() && r.device.is_empty() && r.rig.queue.is_idle();
            let now = r.next_instant(arrivals.front().map(|a| a.at));
            if idle || now > LONGEST {
                break;
            }
            r.rig.before_timers_of(now);
            while !r.device.is_empty() && r.busy_until == now {
                let name = r.complete(now, self.service);
                if let Some(next) = self.next_of(&name, now) {
                    let place = arrivals.partition_point(|x| x.at <= next.at);
                    arrivals.insert(place, next);
                }
            }
            while arrivals.front().is_some_and(|a| a.at == now) {
                let a = arrivals.pop_front().expect("it is there");
                r.arrive(&a, &self);
            }
            r.rig.clock_to(now);
            r.rig.settle();
            r.collect(now, self.service);
            look(now, &mut r.rig);
        }
        (r.rig, r.log)
    }

    /// What a closed loop submits after a completion.
    fn next_of(&self, done: &str, now: Time) -> Option<Arrival> {
        let number = |l: &ClosedLoop| done.strip_prefix(l.prefix)?.parse::<u64>().ok();
        let (l, n) = self.loops.iter().find_map(|l| Some((l, number(l)? + 1)))?;
        let (at, sector) = (shown_ms(now + l.think), l.sector + 8 * n);
        (n < l.count).then(|| Arrival::new(&format!("{at} {} {}{n} {sector}", l.process, l.prefix)))
    }
}

/// Runs that do not drain end here.
const LONGEST: Time = Time(1_000_000_000_000);

struct Running {
    rig: MqRig,
    /// Names by sector.
    names: BTreeMap<u64, String>,
    tasks: BTreeMap<String, TaskId>,
    /// At the device, oldest first.
    device: VecDeque<String>,
    /// When the oldest is done.
    busy_until: Time,
    log: Vec<String>,
}

impl Running {
    fn next_instant(&self, arrival: Option<Time>) -> Time {
        let done = (!self.device.is_empty()).then_some(self.busy_until);
        let timer = self.rig.agenda.timers.next_time();
        let first = arrival.into_iter().chain(done).min();
        first.map_or(timer, |t| t.min(timer))
    }

    fn complete(&mut self, now: Time, service: Span) -> String {
        let name = self.device.pop_front().expect("something at the device");
        self.busy_until = now + service;
        self.rig.complete_first();
        name
    }

    /// Notes what the driver handed over.
    fn collect(&mut self, now: Time, service: Span) {
        for i in self.device.len()..self.rig.at_device.len() {
            let rq = self.rig.at_device[i];
            let sector = self.rig.core().rqs[rq].sector;
            let name = self.names.remove(&sector).expect("a name");
            if self.device.is_empty() {
                self.busy_until = now + service;
            }
            self.log.push(format!("{name}@{}", shown_ms(now)));
            self.device.push_back(name);
        }
    }

    fn arrive(&mut self, a: &Arrival, table: &MqTable) {
        let task = match self.tasks.get(&a.process) {
            Some(task) => *task,
            None => {
                let task = self.rig.task();
                let ioc = self.rig.io_context(task);
                let named = [("RT", "rt4"), ("BE", "be4"), ("IDLE", "idle7")];
                let named = named.iter().find(|(n, _)| a.process.starts_with(n));
                ioc.ioprio = named.map_or(IoPrio::default(), |(_, p)| ioprio(p));
                (table.processes)(&a.process, ioc);
                self.tasks.insert(a.process.clone(), task);
                task
            }
        };
        match a.what {
            What::Prio(ioprio) => self.rig.io_context(task).ioprio = ioprio,
            What::Exit => self.rig.enter_as(task, 0, |q, cx| q.exit_task(cx, task)),
            What::Io(bio) => {
                let before = self.names.insert(bio.sector, a.name.clone());
                assert!(before.is_none(), "two requests wait at {}", bio.sector);
                let bio = Bio { task, ..bio };
                self.rig.insert_bare((table.cpu)(&a.process), &bio);
            }
        }
    }
}

/// The generator of the specifications' random vectors.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    x: u64,
}

impl Draws {
    pub(crate) fn new(seed: u64) -> Draws {
        Draws { x: seed }
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.x = (self.x * 1_103_515_245 + 12345) % (1 << 31);
        (self.x >> 16) % n
    }
}

/// A random vector's requests `0`, `1`, ...: `gap` bounds the ms between two,
/// `processes` their number (P1, P2, ...), `unit` is the step of lengths in
/// sectors. The suffix of the sector and the process come from `finish`, which
/// may draw further.
pub(crate) fn generated(
    seed: u64,
    count: u64,
    (gap, processes, unit): (u64, u64, u64),
    finish: fn(&mut Draws, u64, u64) -> (&'static str, String),
) -> Vec<Arrival> {
    let mut d = Draws::new(seed);
    let mut end: Vec<u64> = (0..=processes).map(|p| p * 10_000_000).collect();
    let mut t = 0;
    (0..count)
        .map(|i| {
            t += d.below(gap);
            let p = 1 + d.below(processes);
            let (kind, jump) = (d.below(8), d.below(4));
            let sector = if jump == 0 {
                d.below(32768) * 4096
            } else {
                end[p as usize]
            };
            let length = unit * (1 + d.below(16));
            end[p as usize] = sector + length;
            let (letters, process) = finish(&mut d, kind, p);
            Arrival::new(&format!("{t} {process} {i} {sector}+{length}{letters}"))
        })
        .collect()
}

/// As the vectors of BFQ have it: reads, sync writes and async writes.
pub(crate) fn read_sync_async(_: &mut Draws, kind: u64, p: u64) -> (&'static str, String) {
    let letters = match kind {
        0..5 => "",
        5 | 6 => "s",
        _ => "w",
    };
    (letters, format!("P{p}"))
}

/// As the vectors of mq-deadline have it: reads and writes of all classes.
pub(crate) fn read_write_class(d: &mut Draws, kind: u64, _: u64) -> (&'static str, String) {
    let process = match d.below(16) {
        0 => "RT",
        1 => "IDLE",
        _ => "BE",
    };
    (if kind < 5 { "" } else { "w" }, process.to_owned())
}

/// Compares dispatches with a list in the specifications' notation: items
/// `a1@0` separated by blanks, and ranges `a5@3..a30@28` at equal distances.
pub(crate) fn check(got: &[String], expected: &str) {
    let mut all: Vec<String> = Vec::new();
    for word in expected.split_whitespace() {
        let Some((first, last)) = word.split_once("..") else {
            all.push(word.to_owned());
            continue;
        };
        let ((prefix, from, start), (_, to, end)) = (numbered(first), numbered(last));
        let step = (end.0 - start.0) / (to - from);
        all.extend((from..=to).map(|n| {
            let at = shown_ms(start + Span(step * (n - from)));
            format!("{prefix}{n}@{at}")
        }));
    }
    assert_eq!(got, all);
}

/// `a12@3.5`: prefix, number, time.
fn numbered(item: &str) -> (&str, u64, Time) {
    let (name, at) = item.split_once('@').expect("name@ms");
    let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let n = name[prefix.len()..].parse().expect("a numbered name");
    (prefix, n, ms(at))
}

#[test]
fn the_generator_draws_as_specified() {
    let shown = |a: &Arrival| match a.what {
        What::Io(bio) => format!(
            "{} {} {:?} {}+{}",
            shown_ms(a.at),
            a.process,
            bio.op,
            bio.sector,
            bio.nr_sectors
        ),
        _ => unreachable!("only I/O is generated"),
    };
    let of_deadline = generated(11, 3, (10, 3, 8), read_write_class);
    assert_eq!(
        of_deadline.iter().map(shown).collect::<Vec<_>>(),
        [
            "1 BE Read 47808512+56",
            "1 RT Read 47808568+128",
            "6 IDLE Write 30000000+8"
        ]
    );
    let of_bfq = generated(1, 5, (8, 3, 8), read_sync_async);
    assert_eq!(
        of_bfq.iter().map(shown).collect::<Vec<_>>(),
        [
            "6 P2 Read 20000000+96",
            "9 P1 Read 16736256+112",
            "16 P1 Read 16736368+64",
            "17 P1 Read 16736432+56",
            "19 P3 Write 30000000+56"
        ]
    );
}

#[test]
fn times_are_read_and_shown() {
    for text in ["0", "2.5", "240.9", "10", "7.000001"] {
        assert_eq!(shown_ms(ms(text)), text);
    }
}
