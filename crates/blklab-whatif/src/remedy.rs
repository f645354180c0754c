// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a finding's remedies come to in the model, or why they cannot be tried.

use crate::change::Change;
use crate::report::Trial;
use blklab_analysis::findings::{Act, Context, Finding, Outside, Party, Remedy, Serving};
use blklab_experiment::{Catalogue, Experiment};
use blklab_infer::{Bio, Recorded, Waiting, most_under_way};
use blklab_types::Error;

/// Bios in a batch where an application is to submit several at a time.
const BATCH: u32 = 32;

/// What is to be less is divided by this: bios that a process keeps under way, commands,
/// requests, the length of discards.
const FEWER: u32 = 8;

/// What is to be more is multiplied by this.
const MORE: u32 = 4;

/// Discards are not made smaller than this, in bytes.
const DISCARD_MIN: u32 = 1 << 20;

/// Why a trace does not show what other write-back would do.
const WRITE_BACK_GIVEN: &str = "how much the page cache writes at a time is given by the trace";

/// What is known of the machine whose findings have remedies.
pub(crate) struct Facts<'a> {
    pub(crate) context: &'a Context,
    pub(crate) recorded: &'a Recorded,
    pub(crate) experiment: &'a Experiment,
    pub(crate) catalogue: &'a Catalogue,
    /// Whether the experiment itself runs again.
    pub(crate) is_rerun: bool,
}

/// What a remedy is made of.
struct Known<'a> {
    finding: &'a Finding,
    context: &'a Context,
    recorded: &'a Recorded,
    /// Commands that the device takes.
    depth: u32,
    /// Requests that there are.
    nr_requests: u32,
    scheduler: &'a str,
    /// Whether the kernel is one of a single queue.
    is_old: bool,
    is_rerun: bool,
}

fn set(key: &str, value: u32) -> Change {
    Change::Set {
        key: key.to_owned(),
        value: value.to_string(),
    }
}

/// The scheduler that does so, of kernels with a single queue and with several.
fn serving(how: Serving, is_old: bool) -> &'static str {
    let [old, new] = match how {
        Serving::AtOnce => ["deadline", "none"],
        Serving::ByPlace | Serving::WritesInTime | Serving::WritesInOrder => {
            ["deadline", "mq-deadline"]
        }
        Serving::ReadsFirst => ["cfq", "mq-deadline"],
        Serving::ByProcess | Serving::ByStream => ["cfq", "bfq"],
    };
    if is_old { old } else { new }
}

/// Those who cause it keep an eighth of what they have under way.
fn fewer(k: &Known<'_>) -> Vec<Change> {
    let with_less = |p: &Party| {
        let found = k.recorded.processes.iter().find(|r| r.pid == p.pid)?;
        let depth = match found.waiting {
            Waiting::Depth(n) => n,
            _ => {
                let ended = |b: &Bio| Some([b.at.ns(), (b.at + b.latency()?).ns()]);
                let most = most_under_way(found.bios.iter().filter_map(ended));
                u32::try_from(most).unwrap_or(u32::MAX)
            }
        };
        (depth > 1).then(|| Change::Depth {
            process: p.pid.to_string(),
            depth: (depth / FEWER).max(1),
        })
    };
    k.finding.causes.iter().filter_map(with_less).collect()
}

/// A change of each of some processes.
fn each(parties: &[Party], change: impl Fn(String) -> Change) -> Vec<Change> {
    let of_one = |p: &Party| change(p.pid.to_string());
    parties.iter().map(of_one).collect()
}

/// Tries changes that were asked for; `compare` makes them and fills in what came of them.
///
/// # Errors
/// Its own.
pub(crate) fn asked(
    changes: &[Change],
    compare: impl Fn(&[Change], &mut Trial) -> Result<(), Error>,
) -> Result<Trial, Error> {
    let names: Vec<String> = changes.iter().map(Change::to_string).collect();
    let mut trial = Trial::new(names.join("; "));
    compare(changes, &mut trial)?;
    trial.judge();
    Ok(trial)
}

/// Tries each remedy of findings; `compare` makes changes and fills in what came of them.
pub(crate) fn trials<'a>(
    findings: impl Iterator<Item = &'a Finding>,
    facts: &Facts<'_>,
    compare: impl Fn(&[Change], &mut Trial) -> Result<(), Error>,
) -> Vec<Trial> {
    let remedies = |finding: &'a Finding| finding.remedies.iter().map(move |r| (finding, r));
    let all = findings.flat_map(remedies);
    all.map(|(finding, remedy)| trial(finding, remedy, facts, &compare))
        .collect()
}

fn trial(
    finding: &Finding,
    remedy: &Remedy,
    facts: &Facts<'_>,
    compare: impl Fn(&[Change], &mut Trial) -> Result<(), Error>,
) -> Trial {
    let e = facts.experiment;
    let queue = e.queue_facts(facts.catalogue);
    let (depth, nr_requests) = queue.map_or((1, 128), |q| (q.queue_depth, q.nr_requests));
    let known = Known {
        finding,
        context: facts.context,
        recorded: facts.recorded,
        depth,
        nr_requests,
        scheduler: &e.scheduler,
        is_old: e.kernel.has_single_queue(),
        is_rerun: facts.is_rerun,
    };
    let mut trial = Trial::new(remedy.to_string());
    trial.finding = Some(finding.kind);
    trial.remedy = Some(remedy.id);
    match changes(remedy, &known) {
        Ok(changes) => {
            let is_said = matches!(remedy.act, Act::Set { .. }) && changes.len() == 1;
            if !is_said {
                let named = |c| named(facts.recorded, c);
                trial.changes = changes.iter().map(named).collect();
            }
            trial.not_tried = compare(&changes, &mut trial).err().map(|e| e.to_string());
        }
        Err(why) => trial.not_tried = Some(why),
    }
    trial.suffer = finding.victims.iter().map(|v| v.pid).collect();
    trial.judge();
    trial
}

/// A change with the names of processes instead of their pids.
fn named(recorded: &Recorded, change: &Change) -> String {
    let text = change.to_string();
    let Some((pid, rest)) = text.split_once(' ') else {
        return text;
    };
    let mut found = recorded.processes.iter();
    let found = found.find(|p| pid.parse() == Ok(p.pid));
    match found.and_then(|p| p.name.as_deref()) {
        Some(name) => format!("{name} ({pid}) {rest}"),
        None => text,
    }
}

/// What a remedy comes to, or why it is not tried: in a clause.
fn changes(remedy: &Remedy, k: &Known<'_>) -> Result<Vec<Change>, String> {
    let (victims, causes) = (&k.finding.victims, &k.finding.causes);
    let eighth = |value: u32, least: u32| (value / FEWER).max(least);
    let changes = match &remedy.act {
        Act::Set { key, value } => return set_to(key, value, k),
        Act::Scheduler(how) => {
            let name = serving(*how, k.is_old).to_owned();
            if name == k.scheduler {
                return Err(format!("{name} is the scheduler already"));
            }
            vec![Change::Scheduler { name }]
        }
        Act::AtMost(depth) => each(victims, |process| Change::Depth {
            process,
            depth: *depth,
        }),
        Act::Fewer => fewer(k),
        Act::Batch => each(victims, |process| Change::Batch {
            process,
            bios: BATCH,
        }),
        Act::RaisePriority => each(first(victims), |process| Change::Prio {
            process,
            level: "0".to_owned(),
        }),
        Act::OtherPriority => each(first(causes), |process| Change::Prio {
            process,
            level: "5".to_owned(),
        }),
        Act::Sync => each(victims, |process| Change::Sync { process }),
        Act::FewerCommands if k.depth <= 1 => {
            return Err("the device takes one command at a time as it is".to_owned());
        }
        Act::FewerCommands => vec![set("queue_depth", eighth(k.depth, 1))],
        Act::FewerRequests => vec![set("nr_requests", eighth(k.nr_requests, 4))],
        Act::MoreRequests => vec![set("nr_requests", k.nr_requests.saturating_mul(MORE))],
        Act::LargestRequests => known_limit(k, "max_hw_sectors_kb")
            .filter(|kb| known_limit(k, "max_sectors_kb").is_some_and(|now| *kb > now))
            .map(|kb| set("max_sectors_kb", kb))
            .into_iter()
            .collect(),
        Act::SmallerDiscards => known_limit(k, "discard_max_bytes")
            .map(|bytes| set("discard_max_bytes", eighth(bytes, DISCARD_MIN)))
            .into_iter()
            .collect(),
        Act::LaxerThrottling => known_limit(k, "wbt_lat_usec")
            .filter(|us| *us > 0)
            .map(|us| set("wbt_lat_usec", us.saturating_mul(MORE)))
            .into_iter()
            .collect(),
        Act::EarlierWriteBack if !k.is_rerun => return Err(WRITE_BACK_GIVEN.to_owned()),
        Act::EarlierWriteBack | Act::LooserLimit => Vec::new(),
        Act::Outside(at) => return Err(outside(*at, k.is_rerun)),
    };
    if changes.is_empty() {
        return Err("too little is known: neither trace nor context say what to change".to_owned());
    }
    Ok(changes)
}

/// What a tunable with its value comes to.
fn set_to(key: &str, value: &str, k: &Known<'_>) -> Result<Vec<Change>, String> {
    if key.starts_with("vm.") && !k.is_rerun {
        return Err(WRITE_BACK_GIVEN.to_owned());
    }
    let is_of_root = key.starts_with("io.cost.");
    let shares_out = [".io.latency", ".io.weight"]
        .iter()
        .any(|file| key.ends_with(file));
    if (is_of_root || shares_out) && !k.is_rerun {
        return Err("a recorded trace runs again without io.cost and io.latency".to_owned());
    }
    let change = Change::Set {
        // In an experiment they are files of the root group.
        key: if is_of_root {
            format!("cgroup./.{key}")
        } else {
            key.to_owned()
        },
        value: value.to_owned(),
    };
    // A scheduler holds no more than there are requests.
    let needs_requests = key == "queue/scheduler";
    let more = needs_requests.then(|| set("nr_requests", k.depth.saturating_mul(MORE).max(128)));
    Ok(std::iter::once(change).chain(more).collect())
}

/// Why what is done there is not tried.
fn outside(at: Outside, is_rerun: bool) -> String {
    let who = match at {
        Outside::Applications => "the applications",
        Outside::Storage => "filesystems and arrays",
        Outside::Machine => "memory, CPUs and drivers",
        Outside::Device => "the device",
        Outside::Groups => "control groups",
        Outside::Kernel => return "no patch of the models does it".to_owned(),
        Outside::Nowhere => return "it finds out more and changes nothing".to_owned(),
    };
    let given = if is_rerun { "experiment" } else { "trace" };
    format!("what {who} would do then is not in the {given}")
}

fn first(parties: &[Party]) -> &[Party] {
    &parties[..parties.len().min(1)]
}

/// A limit of the queue, if the context gives it.
fn known_limit(k: &Known<'_>, name: &str) -> Option<u32> {
    u32::try_from(k.context.queue(name)?).ok()
}

#[cfg(test)]
mod tests;
