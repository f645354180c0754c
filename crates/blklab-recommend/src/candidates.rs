// SPDX-License-Identifier: MIT OR Apache-2.0
//! What experts would try: a scheduler, its tunables, limits of the queue, write-back, and what
//! the control groups of others may do.

use crate::bench::Bench;
use crate::goal::Keep;
use crate::jobs::JobFacts;
use crate::step::{Candidate, Knob, Paste, Step, option, set};
use blklab::figure::Figure;
use blklab::whatif::{Change, changed};
use blklab_experiment::{Catalogue, Experiment};
use blklab_types::Error;

/// Values that are tried of the tunables of schedulers, in the units of the files.
const TUNABLES: [(&str, &[&str]); 12] = [
    ("fifo_batch", &["1", "4"]),
    ("read_expire", &["50", "5000"]),
    ("write_expire", &["500", "50000"]),
    ("writes_starved", &["1", "8"]),
    ("async_depth", &["4", "16"]),
    ("read_lat_nsec", &["500000", "10000000"]),
    ("write_lat_nsec", &["1000000", "50000000"]),
    ("low_latency", &["0"]),
    ("slice_idle", &["0"]),
    ("group_idle", &["0"]),
    ("strict_guarantees", &["1"]),
    ("quantum", &["1", "16"]),
];

/// Latencies at which write-back is throttled, in us; 0: never.
const WBT_LAT_USEC: [u64; 4] = [0, 500, 2_000, 75_000];

/// Dirty pages at which writers are held, in bytes.
const DIRTY_BYTES: [u64; 4] = [8 << 20, 32 << 20, 128 << 20, 512 << 20];

/// Largest read-ahead windows, in KiB.
const READ_AHEAD_KB: [u64; 3] = [16, 512, 4096];

/// Parts of its bandwidth that are left to another job.
const SHARES: [f64; 5] = [0.9, 0.75, 0.52, 0.25, 0.1];

/// How far above the least that it is to keep a limit is set, so that it keeps it.
const ABOVE_KEPT: f64 = 1.03;

/// Latencies that a group is to have under io.latency, in us.
const LATENCY_US: [u64; 4] = [200, 1_000, 5_000, 20_000];

/// Latencies under which io.cost slows others down, in us.
const COST_LATENCY_US: [u64; 3] = [1_000, 5_000, 25_000];

/// Weights of the job that is to wait less, and of others.
const WEIGHTS: [u32; 2] = [800, 50];

/// What candidates are made of.
pub(crate) struct Known<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) catalogue: &'a Catalogue,
    /// The jobs of the job file; none of other workloads.
    pub(crate) jobs: &'a [JobFacts],
    pub(crate) goal: &'a Figure,
    pub(crate) keeps: &'a [Keep],
}

/// What may be set, and what is left out with the reason.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) steps: Vec<Step>,
    pub(crate) left_out: Vec<String>,
}

/// All single steps, the likeliest first.
pub(crate) fn steps(k: &Known<'_>) -> Found {
    let mut found = Found::default();
    schedulers(k, &mut found);
    limits(k, &mut found);
    write_back(k, &mut found);
    queue(k, &mut found);
    found.steps.extend(tunables(k.experiment, k.catalogue));
    targets_of_groups(k, &mut found);
    weights(k, &mut found);
    of_jobs(k, &mut found);
    found
}

/// Tunables of the scheduler of an experiment.
pub(crate) fn tunables(e: &Experiment, catalogue: &Catalogue) -> Vec<Step> {
    let mut steps = Vec::new();
    for (name, values) in TUNABLES {
        if e.can_set(name, catalogue) {
            steps.extend(values.iter().map(|value| Step::tunable(name, value)));
        }
    }
    steps
}

/// Another scheduler with each of its own tunables.
pub(crate) fn with_tunables(scheduler: &Step, bench: &Bench<'_>) -> Result<Vec<Candidate>, Error> {
    let catalogue = bench.how.planner.catalogue();
    let e = changed(&bench.experiment, &scheduler.changes, catalogue)?;
    let own = tunables(&e, catalogue).into_iter();
    let with = |s: Step| Candidate::new(vec![scheduler.clone(), s]);
    Ok(own.map(with).collect())
}

fn schedulers(k: &Known<'_>, found: &mut Found) {
    let e = k.experiment;
    let all = k.catalogue.schedulers();
    let there = all
        .iter()
        .filter(|s| s.name != e.scheduler && k.catalogue.scheduler(s.name, e.kernel).is_ok());
    found.steps.extend(there.map(|s| Step::scheduler(s.name)));
}

/// Jobs that the goal is not about, and that may hold it up.
fn busy_others<'a>(k: &Known<'a>) -> impl Iterator<Item = &'a JobFacts> {
    let goal = k.goal.job.clone();
    k.jobs
        .iter()
        .filter(move |job| job.is_busy && goal.as_deref() != Some(&job.name))
}

/// What puts a job into a group of its own, unless it is in one.
fn in_group(job: &JobFacts) -> Vec<Change> {
    let is_there = job.group.is_some();
    let name = format!("cgroup={}", job.group_name());
    if is_there {
        Vec::new()
    } else {
        vec![option(&job.name, &name)]
    }
}

fn group_paste(job: &JobFacts, file: &str, value: &str) -> Paste {
    Paste::Group {
        job: job.name.clone(),
        file: file.to_owned(),
        value: value.to_owned(),
    }
}

/// Another job is held to a part of what it moves.
fn limits(k: &Known<'_>, found: &mut Found) {
    if !k.experiment.can_set("cgroup.a.io.max", k.catalogue) {
        let what = format!("io.max: Linux {} does not have it", k.experiment.kernel);
        return found.left_out.push(what);
    }
    for job in busy_others(k) {
        let kept = k.keeps.iter().find_map(|keep| keep.share_of(&job.name));
        let mut shares: Vec<f64> = SHARES.to_vec();
        shares.extend(kept.map(|share| share * ABOVE_KEPT).filter(|s| *s < 1.0));
        shares.retain(|share| kept.is_none_or(|kept| *share > kept));
        shares.sort_by(|a, b| b.total_cmp(a));
        shares.dedup();
        let limit = |share: f64| {
            let rates = [("rbps", job.reads_per_s), ("wbps", job.writes_per_s)];
            let words = rates.iter().filter(|(_, rate)| *rate > 0.0);
            let words = words.map(|(key, rate)| format!("{key}={}", rounded(rate * share)));
            words.collect::<Vec<_>>().join(" ")
        };
        let mut said: Vec<String> = Vec::new();
        for value in shares.into_iter().map(limit) {
            if value.is_empty() || said.contains(&value) {
                continue;
            }
            let key = format!("cgroup.{}.io.max", job.group_name());
            let mut changes = in_group(job);
            changes.push(set(&key, &value));
            found.steps.push(Step {
                knob: Knob::Limit(job.name.clone()),
                what: format!("io.max of {}: {value}", job.name),
                changes,
                pastes: vec![group_paste(job, "io.max", &value)],
            });
            said.push(value);
        }
    }
}

/// Two figures that count, as people write limits.
fn rounded(value: f64) -> u64 {
    let value = value.max(1.0);
    let unit = 10f64.powf(value.log10().floor() - 2.0).max(1.0);
    ((value / unit).ceil() * unit) as u64
}

fn write_back(k: &Known<'_>, found: &mut Found) {
    if k.jobs.iter().all(|job| !job.writes_through_cache) {
        let what = "dirty limits and write-back throttling: nobody writes through the page cache";
        return found.left_out.push(what.to_owned());
    }
    let can = |key| k.experiment.can_set(key, k.catalogue);
    if can("wbt_lat_usec") {
        let all = WBT_LAT_USEC.iter();
        found
            .steps
            .extend(all.map(|us| Step::queue("wbt_lat_usec", *us)));
    }
    if can("dirty_bytes") {
        found
            .steps
            .extend(DIRTY_BYTES.iter().map(|b| Step::dirty_bytes(*b)));
    }
}

fn queue(k: &Known<'_>, found: &mut Found) {
    if let Ok(facts) = k.experiment.queue_facts(k.catalogue) {
        let n = u64::from(facts.nr_requests);
        let mut values = vec![n / 8, n / 2, n * 4];
        values.retain(|n| (4..=10_000).contains(n));
        found
            .steps
            .extend(values.iter().map(|n| Step::queue("nr_requests", *n)));
        if facts.max_sectors > 256 {
            found.steps.push(Step::queue("max_sectors_kb", 128));
        }
    }
    if k.jobs.iter().any(|job| job.reads_ahead) {
        let all = READ_AHEAD_KB.iter();
        found
            .steps
            .extend(all.map(|kb| Step::queue("read_ahead_kb", *kb)));
    } else if !k.jobs.is_empty() {
        let what = "read-ahead: nobody reads one piece after the other through the page cache";
        found.left_out.push(what.to_owned());
    }
}

/// The job of the goal.
fn own_job<'a>(k: &Known<'a>) -> Option<&'a JobFacts> {
    let job = k.goal.job.as_deref()?;
    k.jobs.iter().find(|j| j.name == job)
}

/// The group of the goal's job has a latency that others must leave it.
fn targets_of_groups(k: &Known<'_>, found: &mut Found) {
    let Some(own) = own_job(k) else { return };
    let others: Vec<&JobFacts> = busy_others(k).collect();
    if others.is_empty() {
        return;
    }
    let mut in_groups = in_group(own);
    in_groups.extend(others.iter().flat_map(|job| in_group(job)));
    for us in LATENCY_US {
        let value = format!("target={us}");
        let key = format!("cgroup.{}.io.latency", own.group_name());
        let mut changes = in_groups.clone();
        changes.push(set(&key, &value));
        // A group without files is none yet.
        found.steps.push(Step {
            knob: Knob::Share,
            what: format!("io.latency of {}: {value}", own.name),
            changes,
            pastes: vec![group_paste(own, "io.latency", &value)],
        });
    }
}

/// The goal's job weighs more than others: under io.cost, and under BFQ.
fn weights(k: &Known<'_>, found: &mut Found) {
    let Some(own) = own_job(k) else { return };
    let others: Vec<&JobFacts> = busy_others(k).collect();
    if others.is_empty() {
        return;
    }
    let weighed = |file: &str| {
        let mut changes = in_group(own);
        changes.extend(others.iter().flat_map(|job| in_group(job)));
        let mut pastes = Vec::new();
        let of_others = others.iter().map(|job| (*job, WEIGHTS[1]));
        for (job, weight) in std::iter::once((own, WEIGHTS[0])).chain(of_others) {
            let weight = weight.to_string();
            changes.push(set(&format!("cgroup.{}.{file}", job.group_name()), &weight));
            pastes.push(group_paste(job, file, &weight));
        }
        (changes, pastes)
    };
    let words = format!("{} {}, others {}", own.name, WEIGHTS[0], WEIGHTS[1]);
    for us in COST_LATENCY_US {
        let qos = format!("enable=1 ctrl=user rpct=95 rlat={us} wpct=95 wlat={us} min=25 max=150");
        let (mut changes, mut pastes) = weighed("io.weight");
        changes.push(set("cgroup./.io.cost.qos", &qos));
        pastes.push(Paste::RootGroup {
            file: "io.cost.qos".to_owned(),
            value: qos,
        });
        found.steps.push(Step {
            knob: Knob::Share,
            what: format!("io.cost with {us} us, io.weight: {words}"),
            changes,
            pastes,
        });
    }
    let bfq = Step::scheduler("bfq");
    if k.catalogue.scheduler("bfq", k.experiment.kernel).is_ok() {
        let (mut changes, mut pastes) = weighed("io.bfq.weight");
        if k.experiment.scheduler != "bfq" {
            changes.splice(0..0, bfq.changes);
            pastes.splice(0..0, bfq.pastes);
        }
        found.steps.push(Step {
            knob: Knob::Share,
            what: format!("scheduler bfq, io.bfq.weight: {words}"),
            changes,
            pastes,
        });
    }
}

/// What other jobs may do themselves.
fn of_jobs(k: &Known<'_>, found: &mut Found) {
    for job in busy_others(k) {
        let mut step = |what: &str, change: Change, advice: &str| {
            found.steps.push(Step {
                knob: Knob::Job(job.name.clone()),
                what: format!("{}: {what}", job.name),
                changes: vec![change],
                pastes: vec![Paste::Application {
                    job: job.name.clone(),
                    advice: advice.to_owned(),
                }],
            });
        };
        if job.depth > 1 {
            for part in [8, 2] {
                let depth = (job.depth / part).max(1);
                let change = Change::Depth {
                    process: job.name.clone(),
                    depth,
                };
                let advice = format!("keep at most {depth} I/Os under way (now {})", job.depth);
                step(&format!("at most {depth} I/Os under way"), change, &advice);
            }
        }
        if job.writes_through_cache {
            step(
                "direct I/O",
                option(&job.name, "direct=1"),
                "write past the page cache (O_DIRECT; dd oflag=direct)",
            );
            let why = format!(
                "ionice of {}: its writes are written back by kernel threads, which have a \
                 priority of their own",
                job.name
            );
            found.left_out.push(why);
        }
        if !job.writes_through_cache || job.reads_per_s > 0.0 {
            let change = Change::Prio {
                process: job.name.clone(),
                level: "idle".to_owned(),
            };
            step("priority class idle", change, "run it under ionice -c 3");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_that_people_write() {
        assert_eq!(rounded(123_456_789.0), 124_000_000);
        assert_eq!(rounded(1000.0), 1000);
        assert_eq!(rounded(0.3), 1);
        assert_eq!(rounded(57.2), 58);
    }
}
