// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that arrive by a timetable at a device that serves them one after
//! another: the form of the specifications' vectors.
//!
//! Nothing is plugged or merged. At one instant: completions (each: the
//! scheduler, the driver, deferred runs), then timers, then arrivals, all
//! inserted in the order listed before the driver runs once.

use crate::arrival::{What, lines, words};
use crate::rig::{Rig, Setup};
use blklab_block::IoContext;
use blklab_block::sq::Fetch;
use blklab_types::{Bio, TaskId, Time};
use std::collections::{BTreeMap, VecDeque};

/// One arrival at a tick.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) tick: u64,
    pub(crate) process: String,
    pub(crate) name: String,
    what: What,
}

/// Arrivals separated by `;` or line ends.
pub(crate) fn arrivals(text: &str) -> Vec<Arrival> {
    lines(text).map(Arrival::new).collect()
}

impl Arrival {
    pub(crate) fn new(line: &str) -> Arrival {
        let [tick, process, name, place] = words(line);
        Arrival {
            tick: tick.parse().expect("a tick"),
            process: process.to_owned(),
            name: name.to_owned(),
            what: What::new(name, place),
        }
    }
}

/// `a1..a3` at sectors 1000, 1000+step, …, all at one tick.
pub(crate) fn series(
    tick: u64,
    process: &str,
    prefix: &str,
    count: u64,
    sector: u64,
    step: u64,
    suffix: &str,
) -> Vec<Arrival> {
    (0..count)
        .map(|i| {
            let (n, at) = (i + 1, sector + step * i);
            Arrival::new(&format!("{tick} {process} {prefix}{n} {at}{suffix}"))
        })
        .collect()
}

/// What runs, and on what.
pub(crate) struct Table {
    pub(crate) setup: Setup,
    /// Length of a tick in ns; that of a jiffy if 0.
    pub(crate) tick_ns: u64,
    pub(crate) depth: u32,
    pub(crate) peek: bool,
    /// Times are those of D, when the driver is shown a request, instead of
    /// those of the hand-over.
    pub(crate) issues: bool,
    /// Service time in ticks, by name.
    pub(crate) service: fn(&str) -> u64,
    /// Weights of control groups below the root, numbered from 1.
    pub(crate) groups: &'static [u32],
    /// Priorities, nice values and groups of processes.
    pub(crate) processes: fn(&str, &mut IoContext),
    pub(crate) arrivals: Vec<Arrival>,
    /// What a process submits when one of its requests completes, and when.
    pub(crate) next: fn(&str, u64) -> Option<Arrival>,
}

impl Default for Table {
    fn default() -> Table {
        Table {
            setup: Setup::default(),
            tick_ns: 0,
            depth: 1,
            peek: false,
            issues: false,
            service: |_| 5,
            groups: &[],
            processes: |_, _| {},
            arrivals: Vec::new(),
            next: |_, _| None,
        }
    }
}

struct Running {
    rig: Rig,
    tick_ns: u64,
    /// Names and processes by sector.
    names: BTreeMap<u64, String>,
    tasks: BTreeMap<String, TaskId>,
    /// At the device, oldest first.
    device: VecDeque<String>,
    /// When the oldest is done.
    busy_until: u64,
    issues: bool,
    /// Names and times of what is asked for.
    log: Vec<(String, u64)>,
}

impl Table {
    /// `name@tick` in order of hand-over.
    pub(crate) fn run(self) -> Vec<String> {
        self.run_with(|_, _| {}).1
    }

    /// The same, with a look at the rig after every tick at which something
    /// happened; and the rig at the end.
    pub(crate) fn run_with(mut self, mut look: impl FnMut(u64, &mut Rig)) -> (Rig, Vec<String>) {
        let rig = std::mem::take(&mut self.setup).rig_with(|l| {
            l.queue_depth = self.depth;
            l.nr_requests = 10_000;
            l.fetch = if self.peek {
                Fetch::PeekThenCheck
            } else {
                Fetch::CheckThenPeek
            };
        });
        let hz = rig.agenda.timers.hz();
        let tick_ns = if self.tick_ns == 0 {
            1_000_000_000 / u64::from(hz.0)
        } else {
            self.tick_ns
        };
        let mut r = Running {
            rig,
            tick_ns,
            names: BTreeMap::new(),
            tasks: BTreeMap::new(),
            device: VecDeque::new(),
            busy_until: 0,
            issues: self.issues,
            log: Vec::new(),
        };
        for &weight in self.groups {
            r.rig.group(0, weight);
        }
        self.arrivals.sort_by_key(|a| a.tick);
        let mut arrivals: VecDeque<Arrival> = self.arrivals.into();
        let mut tick = 0;
        loop {
            let arrival = arrivals.front().map(|a| a.tick);
            let completion = (!r.device.is_empty()).then_some(r.busy_until);
            if arrival.is_none()
                && completion.is_none()
                && (r.rig.queue.is_idle() || tick > 100_000)
            {
                break;
            }
            r.before(tick);
            while !r.device.is_empty() && r.busy_until == tick {
                let done = r.complete(tick, self.service);
                if let Some(a) = (self.next)(&done, tick) {
                    let at = arrivals.partition_point(|x| x.tick <= a.tick);
                    arrivals.insert(at, a);
                }
            }
            r.at(tick);
            r.collect(tick, self.service);
            let mut any = false;
            while arrivals.front().is_some_and(|a| a.tick == tick) {
                let a = arrivals.pop_front().expect("it is there");
                r.arrive(&a, self.processes);
                any = true;
            }
            if any {
                r.rig.enter(blklab_block::sq::Queue::run_work);
                r.rig.settle();
            }
            r.collect(tick, self.service);
            look(tick, &mut r.rig);
            tick += 1;
        }
        let shown = r.log.iter().map(|(n, t)| format!("{n}@{t}"));
        let shown = shown.collect();
        (r.rig, shown)
    }
}

impl Running {
    /// Just before the timers of a tick.
    fn before(&mut self, tick: u64) {
        let time = Time(tick * self.tick_ns);
        if tick > 0 {
            self.rig.until(Time(time.0 - 1));
        }
        self.rig.pretend = Some(time);
    }

    fn at(&mut self, tick: u64) {
        self.rig.pretend = None;
        self.rig.until(Time(tick * self.tick_ns));
    }

    fn complete(&mut self, tick: u64, service: fn(&str) -> u64) -> String {
        let name = self.device.pop_front().expect("something at the device");
        if let Some(next) = self.device.front() {
            self.busy_until = tick + service(next);
        }
        self.rig.complete_first();
        self.rig.settle();
        self.collect(tick, service);
        name
    }

    /// Notes what the driver handed over.
    fn collect(&mut self, tick: u64, service: fn(&str) -> u64) {
        for i in self.device.len()..self.rig.at_device.len() {
            let rq = self.rig.at_device[i];
            let sector = self.rig.core().rqs[rq].sector;
            let name = self.names[&sector].clone();
            if self.device.is_empty() {
                self.busy_until = tick + service(&name);
            }
            if !self.issues {
                self.log.push((name.clone(), tick));
            }
            self.device.push_back(name);
        }
        if self.issues {
            for place in self.rig.only("D") {
                let sector = place.split_once('+').map(|(s, _)| s.parse());
                let sector: u64 = sector.expect("a range").expect("a sector");
                self.log.push((self.names[&sector].clone(), tick));
            }
        }
    }

    fn arrive(&mut self, a: &Arrival, settings: fn(&str, &mut IoContext)) {
        let task = match self.tasks.get(&a.process) {
            Some(task) => *task,
            None => {
                let task = self.rig.task();
                settings(&a.process, self.rig.io_context(task));
                self.tasks.insert(a.process.clone(), task);
                task
            }
        };
        match a.what {
            What::Prio(ioprio) => self.rig.io_context(task).ioprio = ioprio,
            What::Exit => self.rig.enter_as(task, |q, cx| q.exit_task(cx, task)),
            What::Io(bio) => {
                self.names.insert(bio.sector, a.name.clone());
                let bio = Bio { task, ..bio };
                let inserted = self.rig.enter_as(task, |q, cx| q.insert_bare(cx, &bio));
                assert!(inserted, "a free request");
            }
        }
    }
}

/// Compares hand-overs with a list in the specification's notation: items
/// `a1@0` separated by blanks, and ranges: `a1-a4@0` (all at once),
/// `a5@3 +3 a30@78` (one every 3 from a5 to a30).
pub(crate) fn check(got: &[String], expected: &str) {
    let mut all: Vec<String> = Vec::new();
    let mut step: Option<u64> = None;
    let split = |s: &str| {
        let digits = s.trim_end_matches(|c: char| c.is_ascii_digit());
        let n = s[digits.len()..].parse::<u64>().expect("a numbered name");
        (digits.to_owned(), n)
    };
    for word in expected.split_whitespace() {
        if let Some(s) = word.strip_prefix('+') {
            step = Some(s.parse().expect("a step"));
            continue;
        }
        let (names, tick) = word.split_once('@').expect("name@tick");
        if let Some((first, last)) = names.split_once('-') {
            let ((prefix, from), (_, to)) = (split(first), split(last));
            all.extend((from..=to).map(|i| format!("{prefix}{i}@{tick}")));
        } else if let Some(step) = step.take() {
            let (last, tick_from) = {
                let (n, t) = all.last().expect("a start").split_once('@').expect("@");
                (split(n), t.parse::<u64>().expect("a tick"))
            };
            let (_, to) = split(names);
            all.extend(
                (last.1 + 1..=to)
                    .enumerate()
                    .map(|(i, n)| format!("{}{n}@{}", last.0, tick_from + step * (i as u64 + 1))),
            );
            assert_eq!(
                all.last().map(String::as_str),
                Some(word),
                "the end of a range"
            );
        } else {
            all.push(word.to_owned());
        }
    }
    assert_eq!(got, all);
}
