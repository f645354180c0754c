// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of a trace, beside what was planted in it.

use super::classes::{Class, Need};
use super::forms::Form;
use super::planted::Planted;
use super::scenario::Ran;
use blklab::findings::verdict::Part;
use blklab::findings::{Answer, Finding, Party, Report, Weight};
use blklab_trace::truth::Why as Reason;
use serde::Serialize;
use std::collections::BTreeMap;

/// How a planted cause fared in a form of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It is named, with who suffers and who causes it.
    Named,
    /// No cause is named that is none, and what the trace lacks is, with how to record it.
    Told,
    /// No wrong cause is named, nor what is missing.
    Silent,
    /// Something else is blamed.
    Blamed,
    /// It is said that nothing is wrong.
    NothingWrong,
}

/// What is said of a planted cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The class that was planted.
    pub class: &'static str,
    /// The form of the trace.
    pub form: Form,
    /// Whether this form can show it at all.
    pub is_shown: bool,
    /// What became of it.
    pub fate: Fate,
    /// Whether it is named before everything else.
    pub is_first: bool,
    /// Whether a finding has its kind, whoever is said to suffer.
    pub is_kind_named: bool,
    /// Whether that finding names who suffers.
    pub is_sufferer_named: bool,
    /// Whether it names who causes it.
    pub is_causer_named: bool,
    /// Whether a remedy undoes what was planted; none if nothing but the application could.
    pub is_remedy_named: Option<bool>,
}

/// A finding, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Said {
    /// The form of the trace.
    pub form: Form,
    /// Its kind.
    pub kind: &'static str,
    /// Whether it is true of the scenario.
    pub right: bool,
}

/// A cause with its class.
pub(super) type Planting<'a> = (&'a Class, &'a Planted);

/// Judges what is said of a planted cause.
pub(super) fn judge(
    (class, planted): Planting<'_>,
    form: Form,
    why: &Report,
    said: &[Said],
) -> Judged {
    let of_kind = |f: &&Finding| class.kinds.contains(&f.kind);
    // Who suffers may be said not to be shown.
    let is_unknown = why
        .verdict
        .not_visible
        .iter()
        .any(|n| n.part == Part::Owners);
    let sufferer = |f: &Finding| is_unknown || is_named(&f.victims, planted.victims);
    let causer = |f: &Finding| is_unknown || are_right_causes(f, planted.culprits);
    let is_it = |f: &Finding| of_kind(&f) && sufferer(f) && causer(f);
    let nr = if class.must_be_first { 1 } else { usize::MAX };
    let best = why.findings.iter().take(nr).find(|f| is_it(f));
    let any = best.or_else(|| why.findings.iter().find(of_kind));
    let is_shown = shows(form, class.need);
    let is_wrong = said.iter().any(|s| !s.right);
    let fate = match (best, why.verdict.answer) {
        (Some(_), _) => Fate::Named,
        (None, Answer::NothingWrong) => Fate::NothingWrong,
        (None, _) if is_wrong => Fate::Blamed,
        (None, _) if !is_shown && tells_what_is_missing(form, class.need, why) => Fate::Told,
        (None, _) => Fate::Silent,
    };
    Judged {
        class: class.name,
        form,
        is_shown,
        fate,
        is_first: why.findings.first().is_some_and(is_it),
        is_kind_named: any.is_some(),
        is_sufferer_named: any.is_some_and(sufferer),
        is_causer_named: any.is_some_and(causer),
        is_remedy_named: best
            .filter(|_| !class.remedies.is_empty())
            .map(|f| f.remedies.iter().any(|r| class.remedies.contains(&r.id))),
    }
}

/// All findings that complain about something, judged.
pub(super) fn said(plantings: &[Planting<'_>], form: Form, why: &Report, ran: &Ran) -> Vec<Said> {
    let complaints = why.findings.iter().filter(|f| f.weight < Weight::Note);
    complaints
        .map(|f| Said {
            form,
            kind: f.kind,
            right: plantings.iter().any(|p| is_true(f, *p, why))
                || (!plantings.is_empty() && is_known(f, ran)),
        })
        .collect()
}

/// Whether a finding is true by the construction of a scenario.
fn is_true(f: &Finding, (class, planted): Planting<'_>, why: &Report) -> bool {
    let is_unknown = why
        .verdict
        .not_visible
        .iter()
        .any(|n| n.part == Part::Owners);
    let is_it = class.kinds.contains(&f.kind)
        && (is_unknown || is_named(&f.victims, planted.victims))
        && (is_unknown || are_right_causes(f, planted.culprits));
    is_it || planted.also.contains(&f.kind)
}

/// Whether one of some parties has one of these names, if there are any.
fn is_named(parties: &[Party], names: &[&str]) -> bool {
    let is_one = |p: &Party| {
        let comm = p.comm.as_deref().unwrap_or_default();
        names
            .iter()
            .any(|name| comm == *name || is_thread(comm, name))
    };
    names.is_empty() || parties.iter().any(is_one)
}

/// Threads of kernels that write for others.
const THREADS: &[&str] = &["flush", "kworker", "pdflush", "jbd2", "kjournald"];

/// Names of kernel threads have a number, a device or a queue behind them.
fn is_thread(comm: &str, name: &str) -> bool {
    THREADS.contains(&name) && comm.starts_with(name)
}

/// Whether who is blamed is to blame: those of one name together, the most of them first. What
/// a thread writes back is somebody's, who has to be named.
fn are_right_causes(f: &Finding, culprits: &[&str]) -> bool {
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for p in &f.causes {
        let name = p.comm.as_deref().unwrap_or_default();
        *by_name.entry(name).or_default() += p.requests.max(1);
    }
    let Some((first, _)) = by_name.into_iter().max_by_key(|(_, n)| *n) else {
        return true;
    };
    let is_one = culprits.iter().any(|c| first == *c || is_thread(first, c));
    let mut writers = culprits.iter().filter(|c| !THREADS.contains(c)).peekable();
    let is_written_back = THREADS.iter().any(|thread| is_thread(first, thread));
    let are_told = writers.peek().is_none() || writers.any(|w| f.what.contains(*w));
    culprits.is_empty() || (is_one && (!is_written_back || are_told))
}

/// Whether a form shows what a cause is told from.
fn shows(form: Form, need: Need) -> bool {
    match form {
        Form::Full => !matches!(need, Need::PageCache | Need::Journal),
        Form::IssueComplete => matches!(need, Need::Device | Need::Flags),
        Form::Biosnoop => matches!(need, Need::Device | Need::Owner),
        // Forty lines are enough for some, and for others not.
        Form::Excerpt => false,
    }
}

/// Whether it is said what the trace lacks for a cause, and how to record it.
fn tells_what_is_missing(form: Form, need: Need, why: &Report) -> bool {
    let lacks = |part: Part| why.verdict.not_visible.iter().any(|n| n.part == part);
    let is_named = match need {
        // What an excerpt shows may be true, and is not all.
        _ if form == Form::Excerpt => lacks(Part::Rest),
        Need::Device => false,
        Need::Owner => lacks(Part::Owners),
        Need::Flags => lacks(Part::Flags),
        Need::Way => lacks(Part::BeforeDevice),
        Need::PageCache => lacks(Part::PageCache),
        Need::Journal => lacks(Part::Journal),
    };
    is_named && why.verdict.record.is_some()
}

/// Of the time of those who are said to suffer, the run itself must know so large a part
/// to be for the reason of a finding.
const KNOWN_SHARE: f64 = 0.2;

/// Whether the run itself knows of the waits that a finding speaks of.
fn is_known(f: &Finding, ran: &Ran) -> bool {
    let reasons: &[Reason] = match f.kind {
        "idling" => &[Reason::Idling, Reason::InFlight],
        "slice" => &[Reason::Slice],
        "writes-starved" => &[Reason::ReadBatch],
        "no-request-free" => &[],
        _ => return false,
    };
    f.victims.iter().all(|p| {
        let Some(sum) = ran.truth_of_process(p.pid) else {
            return false;
        };
        let ns = if f.kind == "no-request-free" {
            sum.sleep_ns
        } else {
            reasons.iter().filter_map(|why| sum.why.get(why)).sum()
        };
        ns as f64 >= KNOWN_SHARE * sum.waited_ns as f64
    })
}
