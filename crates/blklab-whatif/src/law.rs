// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace says about its device: how long it takes for a command, by direction and
//! size, and how many it works on at a time.
//!
//! A command that reaches a device of N servers begins when it is handed over or, if all
//! are busy, when the first of them has done; from there to its end is what it takes. The
//! N is right for which commands of one size take the same time.

use blklab_analysis::findings::time_text;
use blklab_analysis::lifecycle::{BioLife, LifeSink, RequestLife};
use blklab_experiment::DeviceSpec;
use blklab_trace::Rwbs;
use blklab_types::{Dev, Op, Pid, SECTOR_BYTES, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Commands that are looked at: the first ones.
const COMMANDS_MAX: usize = 1 << 20;

/// Numbers of servers that are tried; 0: all commands at once.
const SERVERS: [u32; 10] = [1, 2, 3, 4, 6, 8, 16, 32, 64, 0];

/// A number of servers counts as the better one if what is left over is smaller by this.
const CLEARLY: (f64, f64) = (1.5, 0.002);

/// Quantiles that a law has of what commands take.
const RANKS: usize = 64;

/// Ends of commands that are no farther apart may be reported together.
const TOGETHER_NS: u64 = 2_000;

/// Commands of a size that it takes to count.
const SIZE_MIN: usize = 4;

/// Where all commands have one size, what is taken for the part of the transfer: no more
/// than half of the time, and no slower than SATA's 500 MB/s (a disk that rotates: 100).
const TRANSFER_PS: [u64; 2] = [SECTOR_BYTES * 2000, SECTOR_BYTES * 10_000];

/// A command at the device.
#[derive(Clone, Copy, Debug)]
struct Command {
    issue: Time,
    complete: Time,
    op: Op,
    is_fua: bool,
    sectors: u64,
}

/// The commands of a trace: a sink for its lives.
#[derive(Debug, Default)]
pub struct Commands {
    all: BTreeMap<Dev, Vec<Command>>,
    nr: usize,
    /// Bios of processes that got a request, and those that had to wait for it.
    granted: BTreeMap<Pid, [u64; 2]>,
}

/// A request that takes longer to get was not free: newer kernels have no event for it.
const GRANT_NS: u64 = 20_000;

impl LifeSink for Commands {
    fn bio(&mut self, b: &BioLife) {
        if let Some(get) = b.get {
            let counts = self.granted.entry(b.pid).or_default();
            counts[0] += 1;
            counts[1] += u64::from(get.0.saturating_sub(b.queue.0) > GRANT_NS);
        }
    }

    fn request(&mut self, r: &RequestLife) {
        let (Some(issue), Some(complete)) = (r.issue, r.complete) else {
            return;
        };
        let op = match r.rwbs.op() {
            _ if r.rwbs.has(Rwbs::PC) => return,
            _ if r.bytes == 0 => Op::Flush,
            Some(op) => op,
            None => return,
        };
        self.nr += 1;
        if self.nr <= COMMANDS_MAX && complete >= issue {
            self.all.entry(r.dev).or_default().push(Command {
                issue,
                complete,
                op,
                is_fua: r.rwbs.has(Rwbs::FUA),
                sectors: r.bytes / SECTOR_BYTES,
            });
        }
    }
}

/// Time of a command by its length.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    fixed_ns: f64,
    sector_ps: f64,
    /// Quantiles, in thousandths of what the line says.
    spread: Vec<u32>,
}

impl Line {
    fn ns(&self, sectors: u64) -> f64 {
        self.fixed_ns + self.sector_ps * sectors as f64 / 1000.0
    }
}

/// A device as a trace shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Law {
    /// Commands that it works on at a time; 0: all.
    pub servers: u32,
    /// What the law does not explain, as a share of the time of commands.
    pub unexplained: f64,
    /// What was assumed, in sentences.
    pub assumed: Vec<String>,
    read: Option<Line>,
    write: Option<Line>,
    flush_ns: u64,
    fua_ns: u64,
}

/// What is known of a device beside its trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints {
    /// The commands that it works on at a time, by the rule of its driver; 0: all.
    pub servers: Option<u32>,
    /// It has a disk that rotates.
    pub rotates: bool,
}

impl Commands {
    /// Whether a process mostly had to wait for a request.
    pub fn slept(&self, pid: Pid) -> bool {
        let counts = self.granted.get(&pid);
        counts.is_some_and(|[all, slept]| slept * 2 > *all)
    }

    /// The law of a device; none if no command of it ends.
    pub fn law(&self, dev: Dev, hints: Hints) -> Option<Law> {
        let mut commands = self.all.get(&dev)?.clone();
        commands.sort_by_key(|c| c.issue);
        let mut assumed = Vec::new();
        let (servers, times, unexplained) = match hints.servers {
            Some(servers) => {
                let times = service_times(&commands, servers);
                let left = unexplained(&commands, &times);
                (servers, times.0, left)
            }
            None => servers(&commands, &mut assumed),
        };
        let seen: Vec<(Command, f64)> = commands.into_iter().zip(times).collect();
        let line = |op| line(&seen, op, hints.rotates, &mut assumed);
        let [read, write] = [Op::Read, Op::Write].map(line);
        if read.is_none() && write.is_none() {
            return None;
        }
        let flushes = seen.iter().filter(|(c, _)| c.op == Op::Flush);
        let flush_ns = median(flushes.map(|(_, ns)| *ns)).unwrap_or(0.0);
        let beyond = |(c, ns): &(Command, f64)| {
            let line = write.as_ref()?;
            (c.op == Op::Write && c.is_fua).then(|| ns - line.ns(c.sectors))
        };
        let fua_ns = median(seen.iter().filter_map(beyond)).unwrap_or(0.0);
        Some(Law {
            servers,
            unexplained,
            assumed,
            flush_ns: flush_ns as u64,
            fua_ns: fua_ns.max(0.0) as u64,
            read,
            write,
        })
    }
}

impl Law {
    /// The device `fitted` of this law.
    pub fn device(&self, has_fua: bool, budget: bool) -> DeviceSpec {
        let mut params = vec![("servers".to_owned(), self.servers.to_string())];
        let other = |a: &Option<Line>, b: &Option<Line>| a.clone().or_else(|| b.clone());
        for (name, line) in [
            ("read", other(&self.read, &self.write)),
            ("write", other(&self.write, &self.read)),
        ] {
            let line = line.expect("a law has a line");
            let spread: Vec<String> = line.spread.iter().map(u32::to_string).collect();
            let mut push =
                |what: &str, value: String| params.push((format!("{name}_{what}"), value));
            push("ns", format!("{:.0}", line.fixed_ns));
            push("sector_ps", format!("{:.0}", line.sector_ps));
            push("spread", spread.join(":"));
        }
        params.push(("flush_ns".to_owned(), self.flush_ns.to_string()));
        params.push(("fua_ns".to_owned(), self.fua_ns.to_string()));
        for (name, is_on) in [("fua", has_fua), ("budget", budget)] {
            let value = if is_on { "on" } else { "off" };
            params.push((name.to_owned(), value.to_owned()));
        }
        DeviceSpec {
            name: "fitted".to_owned(),
            params,
        }
    }

    /// The law in words.
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        for (name, line) in [("read", &self.read), ("write", &self.write)] {
            if let Some(l) = line {
                parts.push(format!(
                    "a {name} of 4 KiB takes {}, one of 128 KiB {}",
                    time_text(l.ns(8) as u64),
                    time_text(l.ns(256) as u64)
                ));
            }
        }
        if self.flush_ns > 0 {
            parts.push(format!("a flush {}", time_text(self.flush_ns)));
        }
        if self.fua_ns > 0 {
            parts.push(format!("FUA {} more", time_text(self.fua_ns)));
        }
        parts.push(match self.servers {
            0 => "all at once".to_owned(),
            1 => "one at a time".to_owned(),
            n => format!("{n} at a time"),
        });
        parts.join("; ")
    }
}

/// What each command takes if a device has so many servers, and how many end before they
/// can have begun.
fn service_times(commands: &[Command], servers: u32) -> (Vec<f64>, usize) {
    let mut free: BinaryHeap<Reverse<Time>> = BinaryHeap::new();
    let mut all_free = Time::ZERO;
    let mut impossible = 0;
    let mut times = Vec::with_capacity(commands.len());
    for c in commands {
        let mut begin = c.issue;
        if c.op == Op::Flush {
            begin = begin.max(all_free);
            free.clear();
            (0..servers).for_each(|_| free.push(Reverse(c.complete)));
        } else if servers > 0 {
            if free.len() >= servers as usize
                && let Some(Reverse(first)) = free.pop()
            {
                begin = begin.max(first);
            }
            free.push(Reverse(c.complete));
        }
        all_free = all_free.max(c.complete);
        if c.complete < begin {
            impossible += 1;
        }
        times.push(c.complete.0.saturating_sub(begin.0) as f64);
    }
    if servers == 1 {
        share(commands, &mut times);
    }
    (times, impossible)
}

/// Commands whose ends are reported together took their time together: nobody knows which
/// part of it each took.
fn share(commands: &[Command], times: &mut [f64]) {
    let mut from = 0;
    while from < commands.len() {
        let first = commands[from].complete;
        let joins = |pair: &&[Command]| {
            pair[1].complete.0.abs_diff(pair[0].complete.0) <= TOGETHER_NS && pair[1].issue <= first
        };
        let to = from + 1 + commands[from..].windows(2).take_while(joins).count();
        let each = times[from..to].iter().sum::<f64>() / (to - from) as f64;
        times[from..to].fill(each);
        from = to;
    }
}

/// The share of the time of commands that their size does not explain.
fn unexplained(commands: &[Command], (times, impossible): &(Vec<f64>, usize)) -> f64 {
    let mut sizes: BTreeMap<(u8, u64, bool), Vec<f64>> = BTreeMap::new();
    for (c, ns) in commands.iter().zip(times) {
        let key = (c.op as u8, c.sectors, c.is_fua);
        sizes.entry(key).or_default().push(*ns);
    }
    let (mut off, mut all) = (0.0, 0.0);
    for times in sizes.values() {
        let middle = median(times.iter().copied()).unwrap_or(0.0);
        off += times.iter().map(|ns| (ns - middle).abs()).sum::<f64>();
        all += middle * times.len() as f64;
    }
    let share = *impossible as f64 / commands.len().max(1) as f64;
    if all > 0.0 {
        off / all + share
    } else {
        f64::MAX
    }
}

fn servers(commands: &[Command], assumed: &mut Vec<String>) -> (u32, Vec<f64>, f64) {
    let together = commands.windows(2).any(|w| w[1].issue < w[0].complete);
    if !together {
        assumed.push(
            "the device works on one command at a time: the trace never shows two".to_owned(),
        );
    }
    let tried = SERVERS.iter().map(|n| {
        let times = service_times(commands, *n);
        let left = unexplained(commands, &times);
        (*n, times.0, left)
    });
    let tried: Vec<(u32, Vec<f64>, f64)> = tried.collect();
    let best = tried.iter().map(|t| t.2).fold(f64::MAX, f64::min);
    let good = best * CLEARLY.0 + CLEARLY.1;
    let found = tried.into_iter().find(|t| t.2 <= good);
    found.expect("the best one is good")
}

/// The line through what commands of a direction take, by their sizes.
fn line(seen: &[(Command, f64)], op: Op, rotates: bool, assumed: &mut Vec<String>) -> Option<Line> {
    let of_op = |fua: bool| {
        let these = seen.iter().filter(move |(c, _)| c.op == op);
        these.filter(move |(c, _)| fua || !c.is_fua)
    };
    let with_fua = of_op(false).next().is_none();
    let mut sizes: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (c, ns) in of_op(with_fua) {
        sizes.entry(c.sectors).or_default().push(*ns);
    }
    let often: Vec<(f64, f64, f64)> = sizes
        .iter()
        .filter(|(_, t)| t.len() >= SIZE_MIN || sizes.len() == 1)
        .filter_map(|(n, t)| Some((*n as f64, usual(t)?, t.len() as f64)))
        .collect();
    let points = if often.is_empty() {
        let any = sizes.iter();
        any.filter_map(|(n, t)| Some((*n as f64, usual(t)?, t.len() as f64)))
            .collect()
    } else {
        often
    };
    let (fixed_ns, sector_ps) = match &points[..] {
        [] => return None,
        [(n, ns, _)] => {
            let most = TRANSFER_PS[usize::from(rotates)] as f64;
            let sector_ps = (ns * 500.0 / n.max(1.0)).min(most);
            assumed.push(format!(
                "of a {} the transfer takes {}: all have {} KiB",
                if op == Op::Read { "read" } else { "write" },
                time_text((sector_ps * n / 1000.0) as u64),
                n / 2.0
            ));
            (ns - sector_ps * n / 1000.0, sector_ps)
        }
        points => least_squares(points),
    };
    let mut line = Line {
        fixed_ns,
        sector_ps,
        spread: Vec::new(),
    };
    let mut ratios: Vec<f64> = of_op(with_fua)
        .map(|(c, ns)| ns * 1000.0 / line.ns(c.sectors).max(1.0))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let rank = |i: usize| ratios[(2 * i + 1) * ratios.len() / (2 * RANKS)];
    line.spread = (0..RANKS).map(|i| rank(i).round() as u32).collect();
    if line.spread.first() == line.spread.last() {
        line.spread.truncate(1);
    }
    Some(line)
}

/// Fixed part in ns and slope in ps: neither is below zero.
fn least_squares(points: &[(f64, f64, f64)]) -> (f64, f64) {
    let weight: f64 = points.iter().map(|p| p.2).sum();
    let mean = |part: fn(&(f64, f64, f64)) -> f64| {
        points.iter().map(|p| part(p) * p.2).sum::<f64>() / weight
    };
    let (n, ns) = (mean(|p| p.0), mean(|p| p.1));
    let along: f64 = points.iter().map(|p| p.2 * (p.0 - n) * (p.1 - ns)).sum();
    let square: f64 = points.iter().map(|p| p.2 * (p.0 - n).powi(2)).sum();
    let slope = (along / square).max(0.0).min(ns / n.max(1.0));
    (ns - slope * n, slope * 1000.0)
}

/// The mean without the longest hundredth: rates follow from means.
fn usual(times: &[f64]) -> Option<f64> {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.truncate((times.len() * 99).div_ceil(100));
    (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands that a device of so many servers serves in order.
    fn served(servers: usize, interval: u64, n: u64) -> Vec<Command> {
        let mut free = vec![0_u64; servers];
        let command = |i: u64| {
            let sectors = 8 << (i % 3);
            // Bursts: now more, now less than the device can do.
            let issue = i * interval + (i / 16) * 40 * interval;
            let server = (0..servers).min_by_key(|s| free[*s]).expect("one");
            let end = free[server].max(issue) + 500_000 + 1000 * sectors;
            free[server] = end;
            Command {
                issue: Time(issue),
                complete: Time(end),
                op: Op::Read,
                is_fua: false,
                sectors,
            }
        };
        (0..n).map(command).collect()
    }

    fn law(commands: Vec<Command>) -> Law {
        let mut all = Commands::default();
        all.all.insert(Dev::default(), commands);
        all.law(Dev::default(), Hints::default()).expect("a law")
    }

    #[test]
    fn the_number_of_servers_and_the_line_are_found() {
        for servers in [1, 2, 4] {
            let law = law(served(servers, 100_000, 400));
            let read = law.read.as_ref().expect("reads");
            assert_eq!(law.servers, servers as u32, "{law:?}");
            assert!((read.fixed_ns - 500_000.0).abs() < 1000.0, "{law:?}");
            assert!((read.sector_ps - 1e6).abs() < 1e4, "{law:?}");
            assert!(law.unexplained < 0.01 && law.assumed.is_empty(), "{law:?}");
        }
    }

    #[test]
    fn a_rule_that_is_known_is_not_guessed() {
        let mut all = Commands::default();
        all.all.insert(Dev::default(), served(4, 100_000, 100));
        let hints = Hints {
            servers: Some(0),
            ..Hints::default()
        };
        let law = all.law(Dev::default(), hints).expect("a law");
        assert_eq!(law.servers, 0);
        let device = law.device(false, true);
        assert_eq!(device.params[0], ("servers".to_owned(), "0".to_owned()));
        assert!(
            device
                .params
                .contains(&("budget".to_owned(), "on".to_owned()))
        );
    }

    #[test]
    fn what_one_size_cannot_tell_is_assumed_and_said() {
        let mut commands = served(1, 2_000_000, 40);
        for c in &mut commands {
            c.complete = Time(c.complete.0 - 1000 * (c.sectors - 8));
            c.sectors = 8;
        }
        let law = law(commands);
        assert_eq!(law.assumed.len(), 2, "{law:?}");
        let read = law.read.as_ref().expect("reads");
        assert!((read.ns(8) - 508_000.0).abs() < 1.0, "{read:?}");
    }
}
