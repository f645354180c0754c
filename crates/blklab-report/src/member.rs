// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs and traces, read into what a page says of them.

use crate::collect::{Account, DIRECTIONS, Ended, Gathered, Pass};
use crate::groups::{GROUPS_MAX, groups};
use crate::jobs::{Counts, of_metrics};
use crate::model::{
    Curve, Device, Flow, Group, Member, PHASES, Process, Requests, Steps, Texts, Waited,
};
use crate::sample::Shown;
use crate::{provenance, words};
use blklab::findings::Context;
use blklab::run_directory::RunDir;
use blklab::trace::TraceFile;
use blklab::verdict::Measured;
use blklab::why::reading;
use blklab_analysis::bins::Bins;
use blklab_analysis::distribution::Distribution;
use blklab_analysis::timeline::Profile;
use blklab_formats::FormatError;
use blklab_trace::{TraceSink, TraceSource as _};
use blklab_types::Error;
use blklab_types::{Dev, Pid, Time};
use serde_json::Value;
use std::collections::BTreeMap;

/// What is asked of a run or a trace.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// What tells it from the others on the page.
    pub label: &'a str,
    /// Where it is from.
    pub source: &'a str,
    /// What is known of the machine.
    pub context: Context,
    /// Requests that are shown one by one, at most.
    pub shown_max: usize,
}

/// Of a run directory and its events; `also` sees them, too.
///
/// # Errors
/// If they cannot be read.
pub fn of_run(
    run: &RunDir,
    events: &mut TraceFile,
    asked: Asked<'_>,
    also: impl TraceSink,
) -> Result<Member, Error> {
    let gathered = pass(events, &asked, also);
    let gathered = gathered.map_err(|e| Error::new(e.to_string()))?;
    let (jobs, curves) = of_metrics(&run.record.metrics);
    let mut member = member(&asked, gathered);
    let e = &run.experiment;
    member.title = if e.title.is_empty() { &e.id } else { &e.title }.clone();
    let told = Measured::new(&run.record.metrics).application();
    member.answer.application = told.map(|t| format!("{} is {}", t.figure, t.text));
    member.sentence = words::of_run(&run.experiment, &run.record);
    member.experiment = Some(Texts {
        toml: run.experiment_text()?,
        job: run.job_text()?,
    });
    member.jobs = jobs;
    member.curves.splice(0..0, curves);
    member.metrics = run.record.metrics.clone();
    member.counters.clone_from(&run.record.counters);
    member.provenance = provenance::of_run(run, events);
    Ok(member)
}

/// Of a trace; `also` sees its events, too.
///
/// # Errors
/// If it cannot be read.
pub fn of_trace(
    input: &mut TraceFile,
    asked: Asked<'_>,
    also: impl TraceSink,
) -> Result<Member, FormatError> {
    let gathered = pass(input, &asked, also)?;
    let span_ns = gathered
        .stats
        .end_ns
        .saturating_sub(gathered.stats.start_ns);
    let sentence = words::of_trace(input, &gathered.report, span_ns);
    let mut member = member(&asked, gathered);
    member.sentence = sentence;
    member.provenance = provenance::of_trace(input);
    Ok(member)
}

fn pass(
    input: &mut TraceFile,
    asked: &Asked<'_>,
    also: impl TraceSink,
) -> Result<Gathered, FormatError> {
    let pass = Pass::new(asked.context.clone(), asked.shown_max, input.says_flags());
    let mut both = (pass, also);
    input.send_all(&mut both)?;
    Ok(both.0.finish(reading(input)))
}

/// What the events alone say.
fn member(asked: &Asked<'_>, g: Gathered) -> Member {
    let (label, source, context) = (asked.label, asked.source, &asked.context);
    let people = People::new(&g);
    let mut all: [Account; 2] = Default::default();
    for own in g.people.values() {
        all.iter_mut().zip(own).for_each(|(sum, a)| sum.merge(a));
    }
    let answer = words::answer(&g.report);
    let curves = people.curves(&g.bios);
    let (processes, places) = people.processes(&g.shown);
    let devs: Vec<Dev> = g.report.devices.iter().map(|d| d.dev).collect();
    let requests = columns(&g, &devs, &places);
    let Gathered {
        report,
        stats,
        start,
        mut flows,
        mut depths,
        ..
    } = g;
    let devices = report.devices.into_iter().map(|d| {
        let [in_queue, held, in_device] = depths.remove(&d.dev).unwrap_or_default().map(steps);
        Device {
            name: None,
            nr_requests: context.queue("nr_requests"),
            queue_depth: context.queue_depth(),
            flow: flows
                .remove(&d.dev)
                .map(|f| flow(f, &people))
                .unwrap_or_default(),
            in_queue,
            held,
            in_device,
            report: d,
        }
    });
    Member {
        label: label.to_owned(),
        source: source.to_owned(),
        title: label.to_owned(),
        sentence: String::new(),
        repetitions: 1,
        context: context
            .facts()
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect(),
        experiment: None,
        answer,
        start_ns: start.0,
        span_ns: stats.end_ns.saturating_sub(start.0),
        nr_events: report.nr_events,
        nr_captures: report.nr_captures,
        reading: report.reading,
        waited: waited_of(&all[0]),
        background: waited_of(&all[1]),
        processes,
        jobs: Vec::new(),
        curves,
        devices: devices.collect(),
        counters: Vec::new(),
        scheduler: None,
        requests,
        findings: report.findings,
        verdict: report.verdict,
        re_enacted: None,
        not_re_enacted: None,
        provenance: Vec::new(),
        metrics: Value::Null,
        places: people.places,
        groups: people.groups,
    }
}

/// Processes by name.
struct People {
    groups: Vec<Group>,
    /// Place of each process in `groups`.
    places: BTreeMap<Pid, usize>,
    names: BTreeMap<Pid, String>,
}

impl People {
    fn new(g: &Gathered) -> People {
        let mut pids: Vec<Pid> = g.people.keys().chain(g.bios.keys()).copied().collect();
        pids.extend(g.shown.iter().map(|r| r.pid));
        pids.sort_unstable();
        pids.dedup();
        let known = &g.report.names;
        let called = |pid: Pid| match known.get(pid) {
            Some(name) => name.to_owned(),
            None if pid == 0 => "not known who".to_owned(),
            None => format!("process {pid}"),
        };
        let names: Vec<String> = pids.iter().map(|pid| called(*pid)).collect();
        let (own, titles) = groups(names.iter().map(String::as_str));
        let mut accounts: Vec<(usize, [Account; 2], usize)> = (0..titles.len())
            .map(|i| (i, Default::default(), 0))
            .collect();
        for (pid, place) in pids.iter().zip(&own) {
            accounts[*place].2 += 1;
            for (sum, account) in accounts[*place]
                .1
                .iter_mut()
                .zip(g.people.get(pid).into_iter().flatten())
            {
                sum.merge(account);
            }
        }
        // Who waited longest comes first, then who had most done in the background.
        let weight = |a: &Account| a.phases.iter().sum::<u64>();
        accounts.sort_by_key(|(i, a, _)| (std::cmp::Reverse((weight(&a[0]), weight(&a[1]))), *i));
        let rest = accounts.split_off(accounts.len().min(if accounts.len() > GROUPS_MAX + 1 {
            GROUPS_MAX
        } else {
            GROUPS_MAX + 1
        }));
        let mut new_place = vec![accounts.len(); titles.len()];
        let mut all = Vec::new();
        for (place, (old, account, nr)) in accounts.into_iter().enumerate() {
            new_place[old] = place;
            all.push(group(titles[old].clone(), nr, place, &account));
        }
        if !rest.is_empty() {
            let mut sums: [Account; 2] = Default::default();
            let nr = rest.iter().map(|(_, _, nr)| nr).sum();
            for (_, account, _) in &rest {
                sums.iter_mut()
                    .zip(account)
                    .for_each(|(sum, a)| sum.merge(a));
            }
            all.push(group(format!("{nr} others"), nr, all.len(), &sums));
        }
        let places = pids
            .iter()
            .zip(&own)
            .map(|(pid, old)| (*pid, new_place[*old]));
        People {
            groups: all,
            places: places.collect(),
            names: pids
                .iter()
                .filter_map(|p| Some((*p, known.get(*p)?.to_owned())))
                .collect(),
        }
    }

    fn place(&self, pid: Pid) -> usize {
        self.places.get(&pid).copied().unwrap_or(0)
    }

    /// From Q to C, by group and direction.
    fn curves(&self, bios: &BTreeMap<Pid, [Distribution; 4]>) -> Vec<Curve> {
        let mut sums: BTreeMap<(usize, usize), Distribution> = BTreeMap::new();
        for (pid, all) in bios {
            for (direction, d) in all.iter().enumerate().filter(|(_, d)| d.count() > 0) {
                sums.entry((self.place(*pid), direction))
                    .or_default()
                    .merge(d);
            }
        }
        let curve = |((place, direction), d): ((usize, usize), Distribution)| {
            let mut counts = Counts::default();
            d.buckets().for_each(|(value, n)| counts.add(value, n));
            counts.curve(
                &self.groups[place].name,
                DIRECTIONS[direction],
                "Q2C",
                d.max(),
            )
        };
        sums.into_iter().map(curve).collect()
    }

    /// The processes of these requests, and the place of each.
    fn processes(&self, shown: &[Shown]) -> (Vec<Process>, BTreeMap<Pid, usize>) {
        let mut pids: Vec<Pid> = shown
            .iter()
            .flat_map(|r| [r.pid, r.ahead.pid, r.behind.pid])
            .collect();
        pids.sort_unstable();
        pids.dedup();
        let process = |pid: &Pid| Process {
            pid: *pid,
            name: self.names.get(pid).cloned(),
            group: self.place(*pid),
        };
        let all = pids.iter().map(process).collect();
        (
            all,
            pids.iter().enumerate().map(|(i, pid)| (*pid, i)).collect(),
        )
    }
}

fn group(
    name: String,
    nr_processes: usize,
    colour: usize,
    [waited, background]: &[Account; 2],
) -> Group {
    Group {
        name,
        nr_processes,
        colour,
        waited: waited_of(waited),
        background: waited_of(background),
    }
}

fn waited_of(a: &Account) -> Waited {
    Waited {
        requests: a.times.count(),
        p50_ns: a.times.percentile(50.0),
        p99_ns: a.times.percentile(99.0),
        p999_ns: a.times.percentile(99.9),
        max_ns: a.times.max(),
        total_ns: u64::try_from(a.times.sum()).unwrap_or(u64::MAX),
        phases_ns: a.phases,
    }
}

fn steps(p: Profile) -> Steps {
    let hundredths = |mean: f64| (mean * 100.0).round() / 100.0;
    Steps {
        interval_ns: p.interval_ns,
        means: p.means.into_iter().map(hundredths).collect(),
        maxima: p.maxima,
    }
}

fn flow(bins: Bins<Ended>, people: &People) -> Flow {
    let interval_ns = bins.interval_ns();
    let bins = bins.into_bins();
    let column = |count: fn(&Ended) -> u64| bins.iter().map(count).collect::<Vec<u64>>();
    let mut served = vec![vec![0_u64; bins.len()]; people.groups.len()];
    for (i, bin) in bins.iter().enumerate() {
        for (pid, bytes) in &bin.served {
            served[people.place(*pid)][i] += bytes;
        }
    }
    let phase = |k: usize| {
        let mean = bins
            .iter()
            .map(|b| b.phases[k].checked_div(b.requests).unwrap_or(0));
        mean.collect()
    };
    Flow {
        interval_ns,
        ended: column(|b| b.requests),
        phases_ns: std::array::from_fn::<Vec<u64>, { PHASES.len() }, _>(phase),
        max_ns: column(|b| b.max_ns),
        background_max_ns: column(|b| b.background_max_ns),
        read_bytes: column(|b| b.read_bytes),
        write_bytes: column(|b| b.write_bytes),
        served_bytes: served,
        idle_ns: column(|b| b.idle_ns),
    }
}

fn columns(g: &Gathered, devs: &[Dev], places: &BTreeMap<Pid, usize>) -> Requests {
    let mut c = Requests {
        seen: g.seen,
        complete_from_ns: g.complete_from_ns,
        ..Requests::default()
    };
    let mut flags: BTreeMap<String, usize> = BTreeMap::new();
    let mut before = g.start;
    for r in &g.shown {
        let after = |time: Option<Time>| {
            time.map_or(-1, |t| {
                i64::try_from(t.since(r.start).0).unwrap_or(i64::MAX)
            })
        };
        c.start.push(r.start.since(before).0);
        before = r.start.max(before);
        c.get.push(after(r.get));
        c.insert.push(after(r.insert));
        c.issue.push(after(r.issue));
        c.complete.push(after(r.complete));
        c.sector.push(r.sector);
        c.sectors.push(r.sectors);
        c.bios.push(r.nr_bios);
        c.dev
            .push(devs.iter().position(|d| *d == r.dev).unwrap_or(0));
        c.process.push(places.get(&r.pid).copied().unwrap_or(0));
        let text = r.flags.to_string();
        let nr = flags.len();
        c.flag.push(*flags.entry(text.clone()).or_insert(nr));
        if flags.len() > c.flags.len() {
            c.flags.push(text);
        }
        c.sync.push(u8::from(r.is_sync));
        for (column, ns) in c.phases.iter_mut().zip(r.phases) {
            column.push(ns);
        }
        c.ahead.push(r.ahead.reason);
        c.ahead_pid.push(r.ahead.pid);
        c.ahead_nr.push(r.ahead.requests);
        c.behind.push(r.behind.reason);
        c.behind_pid.push(r.behind.pid);
        c.behind_nr.push(r.behind.requests);
    }
    c
}
