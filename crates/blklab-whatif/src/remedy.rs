// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a finding's remedies can be tried: the one table of it.

use crate::change::Change;
use crate::report::Trial;
use blklab_analysis::findings::{Context, Finding, Party, Remedy};
use blklab_experiment::Experiment;
use blklab_infer::{Bio, Recorded, Waiting, most_under_way};

/// Bios in a batch where an application is to submit several at a time.
const BATCH: u32 = 32;

/// A process that is to keep fewer bios under way keeps this part of them.
const FEWER: u32 = 8;

/// What is known of the machine whose findings have remedies.
pub(crate) struct Facts<'a> {
    pub(crate) context: &'a Context,
    pub(crate) recorded: &'a Recorded,
    pub(crate) experiment: &'a Experiment,
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
    /// Whether the kernel is one of a single queue.
    is_old: bool,
    is_rerun: bool,
}

/// What an action comes to; none if this case has too little for it.
type Make = fn(&Known<'_>) -> Option<Vec<Change>>;

/// Actions that can be tried: the kind of finding, how the action begins or what it says,
/// what is changed.
const ACTIONS: &[(&str, &str, Make)] = &[
    ("deep-queue", "fewer requests at a time", |k| enough(k)),
    ("behind-other", "fewer requests at a time in", |k| fewer(k)),
    ("behind-other", "shares it (bfq)", |_| scheduler("bfq")),
    ("behind-other", "shares the device by process", |_| {
        scheduler("bfq")
    }),
    ("bfq-queue-merge", "another ioprio", |k| prio(k)),
    ("missed-merge", "submit in batches", |k| batch(k)),
    ("missed-merge", "plug around the loop", |k| batch(k)),
    ("slice", "a higher priority", |k| {
        let raised = |p: &Party| Change::Prio {
            process: p.pid.to_string(),
            level: "0".to_owned(),
        };
        Some(k.finding.victims.iter().take(1).map(raised).collect())
    }),
    ("reads-behind-writes", "scheduler: ", |k| {
        scheduler(if k.is_old { "cfq" } else { "mq-deadline" })
    }),
    ("reads-behind-writes", "a smaller queue depth", |k| {
        (k.depth > 1).then(|| vec![set("queue_depth", (k.depth / FEWER).max(1))])
    }),
    ("reads-behind-writes", "less write-back at a time", |k| {
        Some(vec![set("nr_requests", (k.nr_requests / FEWER).max(4))])
    }),
    ("no-request-free", "a larger nr_requests", |k| {
        Some(vec![set("nr_requests", k.nr_requests.saturating_mul(4))])
    }),
    ("writes-starved", "a scheduler that bounds", |k| {
        scheduler(if k.is_old { "deadline" } else { "mq-deadline" })
    }),
    ("writes-starved", "fewer reads queued", |k| fewer(k)),
    ("plug-timer", "submit with the sync flag", |k| {
        let asynchronous = |p: &Party| Change::Sync {
            process: p.pid.to_string(),
        };
        Some(k.finding.victims.iter().map(asynchronous).collect())
    }),
    ("held-back", "try a scheduler that does not idle", |k| {
        no_idling(k)
    }),
    ("idling", "try a scheduler that does not idle", |k| {
        no_idling(k)
    }),
    ("shallow-dispatch", "a scheduler that does not hold", |k| {
        no_idling(k)
    }),
    ("split", "raise the limit that cuts", |k| {
        let kb = k.context.queue("max_hw_sectors_kb")?;
        let now = k.context.queue("max_sectors_kb")?;
        (kb > now).then(|| vec![set("max_sectors_kb", kb as u32)])
    }),
    ("cgroup-limit", "raise or remove io.max", |_| None),
];

/// Why other actions are not tried.
const NOT_MODELLED: [&str; 2] = [
    "what the applications would do then is not in the trace",
    "what the applications would do then is not in the experiment",
];

fn set(key: &str, value: u32) -> Change {
    Change::Set {
        key: key.to_owned(),
        value: value.to_string(),
    }
}

fn scheduler(name: &str) -> Option<Vec<Change>> {
    Some(vec![Change::Scheduler {
        name: name.to_owned(),
    }])
}

fn no_idling(k: &Known<'_>) -> Option<Vec<Change>> {
    scheduler(if k.is_old { "deadline" } else { "none" })
}

fn enough(k: &Known<'_>) -> Option<Vec<Change>> {
    let figure = |name| {
        let found = k.finding.figures.iter().find(|(n, ..)| *n == name);
        found.map(|(_, value, _)| *value)
    };
    let parallel = figure("a request alone")? / figure("time between completions")?.max(1.0);
    let depth = (2.0 * parallel.max(1.0)).ceil().max(4.0) as u32;
    let at_depth = |p: &Party| Change::Depth {
        process: p.pid.to_string(),
        depth,
    };
    Some(k.finding.victims.iter().map(at_depth).collect())
}

/// Those who cause it keep an eighth of what they have under way.
fn fewer(k: &Known<'_>) -> Option<Vec<Change>> {
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
    let changes: Vec<Change> = k.finding.causes.iter().filter_map(with_less).collect();
    (!changes.is_empty()).then_some(changes)
}

fn prio(k: &Known<'_>) -> Option<Vec<Change>> {
    let cause = k.finding.causes.first()?;
    Some(vec![Change::Prio {
        process: cause.pid.to_string(),
        level: "5".to_owned(),
    }])
}

fn batch(k: &Known<'_>) -> Option<Vec<Change>> {
    let batched = |p: &Party| Change::Batch {
        process: p.pid.to_string(),
        bios: BATCH,
    };
    let changes: Vec<Change> = k.finding.victims.iter().map(batched).collect();
    (!changes.is_empty()).then_some(changes)
}

/// Tries changes that were asked for; `compare` makes them and fills in what came of them.
///
/// # Errors
/// Its own.
pub(crate) fn asked(
    changes: &[Change],
    compare: impl Fn(&[Change], &mut Trial) -> Result<(), String>,
) -> Result<Trial, String> {
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
    compare: impl Fn(&[Change], &mut Trial) -> Result<(), String>,
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
    compare: impl Fn(&[Change], &mut Trial) -> Result<(), String>,
) -> Trial {
    let e = facts.experiment;
    let queue = e.queue_facts();
    let (depth, nr_requests) = queue.map_or((1, 128), |q| (q.queue_depth, q.nr_requests));
    let known = Known {
        finding,
        context: facts.context,
        recorded: facts.recorded,
        depth,
        nr_requests,
        is_old: e.kernel.has_single_queue(),
        is_rerun: facts.is_rerun,
    };
    let mut trial = Trial::new(remedy.to_string());
    trial.finding = Some(finding.kind);
    match changes(remedy, &known) {
        Ok(changes) => {
            let is_said = matches!(remedy, Remedy::Set { .. }) && changes.len() == 1;
            if !is_said {
                let named = |c| named(facts.recorded, c);
                trial.changes = changes.iter().map(named).collect();
            }
            trial.not_tried = compare(&changes, &mut trial).err();
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
    match remedy {
        Remedy::Set { key, .. } if key.starts_with("vm.") && !k.is_rerun => {
            Err("how much the page cache writes at a time is given by the trace".to_owned())
        }
        Remedy::Set { key, value, .. } => {
            let change = Change::Set {
                key: key.clone(),
                value: value.clone(),
            };
            // A scheduler holds no more than there are requests.
            let needs_requests = key == "queue/scheduler" && k.finding.kind == "missed-merge";
            let more = needs_requests.then(|| set("nr_requests", (4 * k.depth).max(128)));
            Ok(std::iter::once(change).chain(more).collect())
        }
        Remedy::Kernel { text } | Remedy::Do { text } => {
            let row = ACTIONS
                .iter()
                .find(|(kind, words, _)| *kind == k.finding.kind && text.contains(words));
            let Some((_, _, make)) = row else {
                return Err(match remedy {
                    Remedy::Kernel { .. } => "no patch of the models does it".to_owned(),
                    _ => NOT_MODELLED[usize::from(k.is_rerun)].to_owned(),
                });
            };
            make(k).filter(|c| !c.is_empty()).ok_or_else(|| {
                "too little is known: neither trace nor context say what to change".to_owned()
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_analysis::findings::ALL;

    #[test]
    fn every_row_is_about_a_kind_that_there_is() {
        for (kind, words, _) in ACTIONS {
            assert!(ALL.iter().any(|k| k.name == *kind), "{kind}");
            assert!(!words.is_empty());
        }
    }
}
