// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings with their evidence, each leading to its place in the time line.

use crate::model::Member;
use crate::svg::escaped;
use blklab::explain::ReEnacted;
use blklab::findings::{Finding, Instance, Verdict, Weight, counted, parties, time_text};
use serde_json::json;
use std::fmt::Write as _;

/// Events of evidence that are shown of an instance.
const EVIDENCE_MAX: usize = 12;

/// Requests of a re-enactment that are shown, and processes.
const EXPLAINED_MAX: usize = 6;

/// Waits that are shorter are not shown.
const SHORT_NS: u64 = 100_000;

/// All findings of a member.
pub(super) fn section(out: &mut String, member: usize, m: &Member) {
    let _ = write!(out, "<section><h3>Findings</h3>");
    if !m.findings.iter().any(|f| f.weight < Weight::Note) {
        let _ = write!(out, "<p>{}</p>", escaped(&m.verdict.sentence));
    }
    if let Some(slowest) = &m.verdict.slowest {
        let _ = write!(out, "<p>The slowest: {}</p>", escaped(slowest));
    }
    for (i, f) in m.findings.iter().enumerate() {
        finding(out, member, i, f, m);
    }
    beside(out, &m.verdict);
    out.push_str("<h4>Where the time went</h4>");
    for d in &m.devices {
        let words = if d.report.words.is_empty() {
            "no I/O whose time the trace shows.".to_owned()
        } else {
            d.report.words.join(" ")
        };
        let _ = write!(out, "<p><b>{}</b> {}</p>", d.report.dev, escaped(&words));
    }
    out.push_str("</section>");
}

/// What is ruled out, and what the trace does not show.
fn beside(out: &mut String, verdict: &Verdict) {
    if !verdict.ruled_out.is_empty() {
        out.push_str("<h4>Ruled out</h4>");
    }
    for r in &verdict.ruled_out {
        let (what, figure) = (escaped(r.what), escaped(&r.figure));
        let _ = write!(out, "<p><b>{}</b> {what}: {figure}.</p>", r.dev);
    }
    if !verdict.not_visible.is_empty() {
        out.push_str("<h4>Not visible in this trace</h4>");
    }
    for n in &verdict.not_visible {
        let (what, because) = (escaped(&n.what), escaped(&n.because));
        let _ = write!(out, "<p><b>{}</b> {what}: {because}.</p>", n.dev);
    }
    if let Some(command) = &verdict.record {
        let _ = write!(out, "<p>To see it: <code>{}</code></p>", escaped(command));
    }
}

fn finding(out: &mut String, member: usize, i: usize, f: &Finding, m: &Member) {
    let _ = write!(
        out,
        "<details class=\"finding\" id=\"m{member}f{i}\"{}><summary><b>{}</b> on {}: {}. {}</summary>",
        if i == 0 { " open" } else { "" },
        f.kind,
        f.dev,
        f.confidence.word(),
        escaped(&f.what)
    );
    if !f.how.is_empty() {
        let _ = write!(out, "<p>{}</p>", escaped(&f.how));
    }
    out.push_str("<dl class=\"pairs\">");
    let mut say = |name: &str, text: &str| {
        if !text.is_empty() {
            let _ = write!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(text));
        }
    };
    say("how much", &f.amounts());
    say("suffers", &parties(&f.victims));
    say("cause", f.cause.as_deref().unwrap_or_default());
    say("causes", &parties(&f.causes));
    for missing in &f.missing {
        say("not known", missing);
    }
    for remedy in &f.remedies {
        say("change", &remedy.to_string());
    }
    say("explains", &f.explains.join(", "));
    for (name, value, unit) in &f.figures {
        say(name, format!("{value} {unit}").trim_end());
    }
    out.push_str("</dl>");
    for (name, instance) in [("the first", &f.first), ("the worst", &f.worst)] {
        if let Some(instance) = instance {
            evidence(out, member, name, instance, m);
        }
    }
    out.push_str("</details>");
}

/// The events that show an instance, and the way to them.
fn evidence(out: &mut String, member: usize, name: &str, instance: &Instance, m: &Member) {
    if instance.evidence.is_empty() {
        return;
    }
    // Place and letters, for the time line.
    let marks = instance.evidence.iter().map(|e| {
        let ns = e.event.time.0.saturating_sub(m.start_ns);
        json!([
            ns,
            e.event.sector,
            e.event.action.letters(),
            e.event.dev.to_string()
        ])
    });
    let marks = json!(marks.collect::<Vec<_>>()).to_string();
    let took = instance.delay_ns.filter(|ns| *ns > 0);
    let took = took.map_or(String::new(), |ns| format!(", {}", time_text(ns)));
    let _ = write!(
        out,
        "<p>{name}{took}: <button type=\"button\" data-show=\"{}\" data-member=\"{member}\">show it in \
         the time line</button></p><pre>",
        escaped(&marks)
    );
    for e in instance.evidence.iter().take(EVIDENCE_MAX) {
        let text = e.text.as_deref().unwrap_or_default();
        let _ = writeln!(out, "#{:<8} {} {}", e.number, e.event, escaped(text));
    }
    let more = instance.evidence.len().saturating_sub(EVIDENCE_MAX);
    if more > 0 {
        let _ = writeln!(out, "and {more} more");
    }
    if let Some(way) = instance.way_in() {
        let _ = writeln!(out, "way in: {}", escaped(&way));
    }
    out.push_str("</pre>");
}

/// What the model of the kernel says that requests waited for.
pub(super) fn re_enacted(out: &mut String, m: &Member) {
    if let Some(why) = &m.not_re_enacted {
        let _ = write!(
            out,
            "<section><h3>What the scheduler did</h3><p>Not re-enacted: {}.</p></section>",
            escaped(why)
        );
    }
    if let Some(r) = &m.re_enacted {
        out.push_str("<section><h3>What the scheduler did</h3>");
        agreement(out, r);
        if r.is_good {
            reasons(out, r);
        }
        out.push_str("</section>");
    }
}

fn agreement(out: &mut String, r: &ReEnacted) {
    let a = &r.agreement;
    let _ = write!(
        out,
        "<p>The model of Linux {} with {} was given the same I/O again: {} of {} dispatches in the \
         recorded order ({:.1} %), {:.1} % within 100 µs of the recorded time. {}</p>",
        escaped(&r.kernel),
        escaped(&r.scheduler),
        a.in_order,
        a.dispatches,
        a.order_share() * 100.0,
        a.time_share() * 100.0,
        if r.is_good {
            ""
        } else {
            "That is too little to give reasons."
        }
    );
    for assumed in &r.assumed {
        let _ = write!(out, "<p>Assumed: {}.</p>", escaped(assumed));
    }
}

fn reasons(out: &mut String, r: &ReEnacted) {
    let list = |out: &mut String, reasons: &[blklab::explain::Reason]| {
        out.push_str("<ul>");
        for reason in reasons.iter().take(EXPLAINED_MAX) {
            let _ = write!(
                out,
                "<li>{}: {}</li>",
                time_text(reason.ns),
                escaped(&reason.words)
            );
        }
        out.push_str("</ul>");
    };
    for w in r
        .waiting
        .iter()
        .filter(|w| w.worst_ns >= SHORT_NS)
        .take(EXPLAINED_MAX)
    {
        let _ = write!(
            out,
            "<p>{} waited {} before the device ({}, {} the worst):</p>",
            escaped(&w.who()),
            time_text(w.wait_ns),
            counted(w.requests, "requests"),
            time_text(w.worst_ns)
        );
        list(out, &w.reasons);
    }
    for x in r
        .worst
        .iter()
        .filter(|x| x.wait_ns >= SHORT_NS)
        .take(EXPLAINED_MAX / 2)
    {
        let _ = write!(
            out,
            "<p>#{}: {} {} + {} of {} waited {}:</p>",
            x.event,
            escaped(&x.rwbs),
            x.sector,
            x.sectors,
            escaped(&x.who()),
            time_text(x.wait_ns)
        );
        list(out, &x.reasons);
    }
}
