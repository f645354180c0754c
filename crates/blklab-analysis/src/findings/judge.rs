// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings compete: who names the cause stays, its symptoms go.

use super::finding::{Confidence, Finding, Party, Weight, time_text};
use super::kinds::ALL;
use super::sums::{add, is_most};
use super::threads::{hands_on, is_flusher};
use super::verdict::{of_behaviour, shows_no_owner};
use super::whole::{Account, DiskSum, Reading, Whole};
use super::{Context, Kind};
use blklab_trace::Action;
use blklab_types::Pid;

/// Flushes that take less explain no wait.
const SLOW_NS: u64 = 1_000_000;

/// A cause explains a symptom if it costs at least this part of what the symptom does.
const EXPLAINS_SHARE: f64 = 0.3;

/// What stays of all findings, the worst first.
pub(super) fn judge(mut all: Vec<Finding>, whole: &Whole<'_>) -> Vec<Finding> {
    if let Some(absent) = absent(whole.reading) {
        let rests = |f: &&mut Finding| kind(f.kind).is_some_and(|k| k.rests_on_absence);
        for f in all.iter_mut().filter(rests) {
            f.doubt(Confidence::Likely, absent.clone());
        }
    }
    for f in &mut all {
        doubt_owners(f, whole);
        doubt_who_waits(f, whole);
        let span_ns = whole.disk(f.dev).span_ns;
        let most_ns = span_ns.saturating_mul(f.victims.len().max(1) as u64);
        f.do_overlap = span_ns > 0 && f.total_ns.is_some_and(|ns| ns > most_ns);
    }
    all.retain(|f| !is_of_write_back(f, whole));
    sort(&mut all);
    let explained = |symptom: &Finding| all.iter().position(|cause| explains(cause, symptom));
    let by: Vec<Option<usize>> = all.iter().map(explained).collect();
    let mut explains: Vec<Vec<&'static str>> = vec![Vec::new(); all.len()];
    for (f, by) in all.iter().zip(&by) {
        if let Some(by) = by {
            explains[*by].push(f.kind);
        }
    }
    let mut kept = Vec::new();
    for ((mut f, by), explains) in all.into_iter().zip(by).zip(explains) {
        if by.is_none() {
            f.explains = explains;
            kept.push(f);
        }
    }
    kept
}

/// Whether those who suffer are only taken to wait for their writes, and are known to write
/// through the page cache: nobody waits for write-back.
fn is_of_write_back(f: &Finding, whole: &Whole<'_>) -> bool {
    let inferred = &whole.disk(f.dev).who_waits;
    let writers = whole.context.buffered_writers().unwrap_or_default();
    let is_writer = |p: &Party| {
        let comm = p.comm.as_deref().unwrap_or_default();
        let is_named = || writers.split([',', ' ']).any(|word| word == comm);
        inferred.contains_key(&p.pid) && !comm.is_empty() && is_named()
    };
    !f.victims.is_empty()
        && f.weight > Weight::Fault
        && f.victims.iter().all(|p| is_writer(p) || is_flushers(p))
        && f.victims.iter().any(is_writer)
}

fn is_flushers(p: &Party) -> bool {
    p.comm.as_deref().is_some_and(is_flusher)
}

/// Where nothing but D and C is shown, a request is of whoever handed it to the device: often of
/// the one who queued it, and never of a thread that hands on what others have queued.
fn doubt_owners(f: &mut Finding, whole: &Whole<'_>) {
    if !shows_no_owner(whole.disk(f.dev)) {
        return;
    }
    let is_nobody = |p: &Party| p.pid == 0 || p.comm.as_deref().is_some_and(hands_on);
    f.victims.retain(|p| !is_nobody(p));
    f.causes.retain(|p| !is_nobody(p));
    f.doubt(
        Confidence::Likely,
        "whose requests they are: D names who handed them to the device",
    );
}

/// A finding is no surer than that those who suffer wait at all.
fn doubt_who_waits(f: &mut Finding, whole: &Whole<'_>) {
    let inferred = &whole.disk(f.dev).who_waits;
    let Some((victim, behaviour)) = f
        .victims
        .iter()
        .find_map(|p| Some((p.to_string(), *inferred.get(&p.pid)?)))
    else {
        return;
    };
    let at_most = if behaviour.is_likely() {
        Confidence::Likely
    } else {
        Confidence::Possible
    };
    f.doubt(at_most, of_behaviour(&victim, &behaviour));
}

/// Why what a trace does not show may have been, in words; none if nothing is missing.
fn absent(reading: Reading) -> Option<String> {
    match (reading.lost, reading.elided) {
        (0, 0) if reading.losses_unsaid => {
            Some("whether events were lost: the trace's format cannot say".to_owned())
        }
        (0, 0) => None,
        (0, _) => Some("lines were left out of the trace".to_owned()),
        (1, _) => Some("1 event is missing from the trace".to_owned()),
        (n, _) => Some(format!("{n} events are missing from the trace")),
    }
}

fn kind(name: &str) -> Option<&'static Kind> {
    ALL.iter().find(|k| k.name == name)
}

fn sort(all: &mut [Finding]) {
    all.sort_by_key(|f| {
        (
            f.weight,
            std::cmp::Reverse(f.total_ns.unwrap_or(0)),
            std::cmp::Reverse(f.extra_commands.unwrap_or(0)),
            f.dev,
            f.kind,
        )
    });
}

fn explains(cause: &Finding, symptom: &Finding) -> bool {
    let names = kind(cause.kind).is_some_and(|k| k.explains.contains(&symptom.kind));
    if !names || cause.dev != symptom.dev {
        return false;
    }
    let parties = cause.victims.iter().chain(&cause.causes).map(|p| p.pid);
    let concerned: Vec<Pid> = parties.chain(cause.through.iter().copied()).collect();
    // Most of the delay must be that of processes that the cause concerns.
    let (mut shared, mut all) = (0, 0);
    for p in &symptom.victims {
        let delay = p.delay_ns.max(1);
        add(&mut all, delay);
        if concerned.contains(&p.pid) {
            add(&mut shared, delay);
        }
    }
    let outweighs = match (cause.total_ns, symptom.total_ns) {
        (Some(cause), Some(symptom)) => cause as f64 >= EXPLAINS_SHARE * symptom as f64,
        _ => true,
    };
    is_most(shared, all) && outweighs
}

/// Where the time went on a device, and what the trace does not show of it.
pub(super) fn words(sum: &DiskSum, context: &Context) -> Vec<String> {
    let mut words = Vec::new();
    match sum.nr_ended {
        0 => {}
        _ if sum.waited.requests > 0 => words.push(went(&sum.waited, sum, "waited for")),
        _ => words.push(went(&sum.background, sum, "of write-back")),
    }
    if let (nr @ 1.., total) = sum.bios {
        words.push(format!(
            "{}, {} each on average, {} the longest.",
            plural(nr, "bio", "bios"),
            time_text(total / nr),
            time_text(sum.bio_worst_ns)
        ));
    }
    let (nr, total, worst) = (sum.flushes.0, sum.flushes.1, sum.flush_worst_ns);
    if nr > 0 {
        words.push(format!(
            "{} of the device's cache: {} in all, {} the longest.",
            plural(nr, "flush", "flushes"),
            time_text(total),
            time_text(worst)
        ));
    }
    let (nr, total) = sum.forced;
    if nr > 0 {
        let innocent = if sum.forced_worst_ns < SLOW_NS {
            "; flushing explains no long wait here"
        } else {
            ""
        };
        words.push(format!(
            "{} (F): {} in all, {} the longest{innocent}.",
            plural(
                nr,
                "request that flushes the cache or passes it",
                "requests that flush the cache or pass it"
            ),
            time_text(total),
            time_text(sum.forced_worst_ns)
        ));
    }
    if sum.writes_after_flush > 0 && context.has_write_cache() != Some(false) {
        words.push(format!(
            "{} after the last flush that the trace shows: if the device has a volatile cache, it \
             is not shown that they are safe.",
            plural(sum.writes_after_flush, "write ended", "writes ended")
        ));
    }
    if sum.nr_unflushed > 0 && context.has_write_cache() != Some(false) {
        words.push(format!(
            "{} without a flush of the device's cache though writes had ended before: if the \
             cache is volatile, they are not safe.",
            plural(sum.nr_unflushed, "fsync ended", "fsyncs ended")
        ));
    }
    if sum.nr_silent_merges > 0 {
        words.push(format!(
            "{} into another without an event of it (inferred from sizes): nothing is lost.",
            plural(
                sum.nr_silent_merges,
                "request was merged",
                "requests were merged"
            )
        ));
    }
    if sum.nr_begun > 0 && sum.nr_direct == sum.nr_begun && sum.nr(Action::GetRequest) > 0 {
        words.push(
            "Requests went to the device without having been in a scheduler (no I): issued \
             directly by the tasks that submitted them."
                .to_owned(),
        );
    }
    words.extend(not_shown(sum));
    if context.is_empty() && sum.nr_issued > 0 {
        words.push(
            "Scheduler, limits and write cache of the device are not known; a context \
             gives them."
                .to_owned(),
        );
    }
    words
}

/// So many of something.
fn plural(n: u64, one: &str, many: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    }
}

/// The sentence of where the time went.
fn went(a: &Account, sum: &DiskSum, what: &str) -> String {
    let mean = a.waited_ns / a.requests.max(1);
    let mut parts: Vec<(u64, &str)> = vec![
        (a.get_ns, "for a request or tag (Q-G)"),
        (a.plug_ns, "on a plug (G-I)"),
        (a.idle_ns, "in the scheduler while the device was idle"),
        (a.ahead_ns, "in the scheduler while the device was busy"),
        (a.alone_ns, "in service at the device"),
        (
            a.behind_ns,
            "at the device, beyond what a request takes alone",
        ),
        (a.flush_ns, "for cache flushes"),
    ];
    parts.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    let percent = |ns: u64| (ns as f64 * 100.0 / a.waited_ns.max(1) as f64).round() as u64;
    let shown = parts.iter().filter(|(ns, _)| percent(*ns) >= 1).take(4);
    let shown: Vec<String> = shown
        .map(|(ns, what)| format!("{} % {what}", percent(*ns)))
        .collect();
    // Less than one is there only while requests are under way whose end is not shown.
    let depth = match sum.mean_depth {
        depth if depth < 1.0 => String::new(),
        depth => format!(" Mean depth at the device while busy {depth:.1}."),
    };
    format!(
        "{} {what}, {} each on average, {} the longest: {}.{depth}",
        plural(a.requests, "request", "requests"),
        time_text(mean),
        time_text(a.worst_ns),
        if shown.is_empty() {
            "no time that the trace shows".to_owned()
        } else {
            shown.join(", ")
        }
    )
}

/// What cannot be concluded since events of some kind are absent.
fn not_shown(sum: &DiskSum) -> Vec<String> {
    let has = |action| sum.nr(action) > 0;
    let mut words = Vec::new();
    if !has(Action::Complete) && (has(Action::Issue) || has(Action::Queue)) {
        words.push(
            "No completions (C): how long the device took, and whether it was idle, is not \
             shown."
                .to_owned(),
        );
    }
    if !has(Action::Queue) && has(Action::Issue) {
        words.push(
            "No Q: how long requests waited before the device got them is not shown.".to_owned(),
        );
    }
    if !has(Action::Issue) && has(Action::Queue) {
        words.push(if has(Action::Complete) {
            "No D: a device that takes bios, or dispatch was not recorded; waits in \
                     the kernel and in the device cannot be told apart."
                .to_owned()
        } else {
            "Only arrivals: no wait can be measured.".to_owned()
        });
    }
    words
}
