// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables. A cell with a number has the JSON's value beside what it shows.

use crate::model::{JobLine, Member, Report, Waited};
use crate::picture::SHORT;
use crate::svg::escaped;
use blklab::findings::time_text;
use std::fmt::Write as _;

/// Lines of a table that are shown at once; the others are folded away.
const LINES_MAX: usize = 12;

/// A table that is being written.
pub(super) struct Table {
    html: String,
}

impl Table {
    pub(super) fn new(caption: &str, heads: &[&str]) -> Table {
        let mut html =
            format!("<div class=\"scroll\"><table><caption>{caption}</caption><thead><tr>");
        for head in heads {
            let _ = write!(html, "<th scope=\"col\">{head}</th>");
        }
        html.push_str("</tr></thead><tbody>");
        Table { html }
    }

    pub(super) fn begin(&mut self, name: &str) {
        let _ = write!(self.html, "<tr><th scope=\"row\">{}</th>", escaped(name));
    }

    pub(super) fn end(&mut self) {
        self.html.push_str("</tr>");
    }

    pub(super) fn text(&mut self, text: &str) {
        let _ = write!(self.html, "<td>{}</td>", escaped(text));
    }

    /// Words: on a phone a line of their own, below what they are.
    fn words(&mut self, head: &str, text: &str) {
        let text = escaped(text);
        let _ = write!(
            self.html,
            "<td class=\"words\" data-h=\"{head}\">{text}</td>"
        );
    }

    pub(super) fn none(&mut self) {
        self.html.push_str("<td class=\"n\">–</td>");
    }

    /// A number as it is shown, and the value itself.
    pub(super) fn number(&mut self, value: impl std::fmt::Display, text: &str) {
        let _ = write!(self.html, "<td class=\"n\" data-v=\"{value}\">{text}</td>");
    }

    fn time(&mut self, ns: Option<u64>) {
        match ns {
            Some(ns) => self.number(ns, &time_text(ns)),
            None => self.none(),
        }
    }

    pub(super) fn count(&mut self, n: u64) {
        self.number(n, &grouped(n));
    }

    pub(super) fn finish(mut self, out: &mut String) {
        self.html.push_str("</tbody></table></div>");
        out.push_str(&self.html);
    }
}

/// A number with its thousands apart.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

/// Bytes with three figures and their unit.
fn bytes_text(n: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    match value {
        v if unit == 0 => format!("{v:.0} {}", units[unit]),
        v if v < 9.995 => format!("{v:.2} {}", units[unit]),
        v if v < 99.95 => format!("{v:.1} {}", units[unit]),
        v => format!("{v:.0} {}", units[unit]),
    }
}

/// What is said first of each of several.
pub(super) fn answers(out: &mut String, report: &Report) {
    let heads = ["", "who waited", "how long", "why", "what would help"];
    let mut table = Table::new("In words, the worst finding of each", &heads);
    for m in &report.members {
        table.begin(&m.label);
        let a = &m.answer;
        let texts = [&a.who, &a.how_long, &a.why, &a.help.join("; or ")];
        for (head, text) in heads[1..].iter().zip(texts) {
            table.words(head, text);
        }
        table.end();
    }
    table.finish(out);
}

/// The jobs of several runs, one table for each name and direction.
pub(super) fn comparison(out: &mut String, report: &Report) {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for line in report.members.iter().flat_map(|m| &m.jobs) {
        let key = (line.name.as_str(), line.direction.as_str());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    // Behind a verdict they are for who wants to know more.
    let folded = keys.len() > LINES_MAX || report.verdict.is_some() && !keys.is_empty();
    let first = if report.members.iter().any(|m| m.repetitions > 1) {
        ", of the first run of each"
    } else {
        ""
    };
    if folded {
        let tables = if keys.len() == 1 { "table" } else { "tables" };
        let _ = write!(
            out,
            "<details><summary>All figures of the jobs{first} ({} {tables})</summary>",
            keys.len()
        );
    }
    for (name, direction) in keys {
        let caption = format!("{}: {direction}", escaped(name));
        let mut table = Table::new(&caption, &job_heads(""));
        for m in &report.members {
            for line in m
                .jobs
                .iter()
                .filter(|l| (&*l.name, &*l.direction) == (name, direction))
            {
                table.begin(&m.label);
                job_cells(&mut table, line);
                table.end();
            }
        }
        table.finish(out);
    }
    if folded {
        out.push_str("</details>");
    }
}

fn job_heads(first: &str) -> [&str; 10] {
    [
        first,
        "jobs",
        "calls",
        "bytes",
        "shortest run",
        "longest run",
        "clat 50 %",
        "99 %",
        "99.9 %",
        "longest",
    ]
}

fn job_cells(table: &mut Table, line: &JobLine) {
    table.count(line.jobs);
    table.count(line.ios);
    table.number(line.bytes, &bytes_text(line.bytes));
    for ms in [line.runt_min_ms, line.runt_max_ms] {
        match ms {
            Some(ms) => table.number(ms, &time_text((ms * 1e6) as u64)),
            None => table.none(),
        }
    }
    for ns in [
        line.clat_p50_ns,
        line.clat_p99_ns,
        line.clat_p999_ns,
        line.clat_max_ns,
    ] {
        table.time(ns);
    }
}

/// What fio says of the jobs of a run.
pub(super) fn jobs(out: &mut String, m: &Member) {
    if m.jobs.is_empty() {
        return;
    }
    let mut table = Table::new(
        "Jobs, as fio counts: latencies are of calls",
        &job_heads("job"),
    );
    for line in m.jobs.iter().take(LINES_MAX) {
        table.begin(&format!("{} {}", line.name, line.direction));
        job_cells(&mut table, line);
        table.end();
    }
    table.finish(out);
    if m.jobs.len() > LINES_MAX {
        let _ = write!(
            out,
            "<p>{} more are in the page's data, and in result.json.</p>",
            m.jobs.len() - LINES_MAX
        );
    }
}

/// Who waited how long for what.
pub(super) fn groups(out: &mut String, m: &Member) {
    let heads = [
        "processes",
        "",
        "requests",
        "50 %",
        "99 %",
        "99.9 %",
        "longest",
        "in all",
    ];
    let heads = [&heads[..], &SHORT].concat();
    let mut table = Table::new(
        "Requests, from their beginning to their end, and where the time went",
        &heads,
    );
    for g in &m.groups {
        for (kind, w) in [
            ("waited for", &g.waited),
            ("in the background", &g.background),
        ] {
            if w.requests > 0 {
                table.begin(&g.name);
                table.text(kind);
                waited_cells(&mut table, w);
                table.end();
            }
        }
    }
    table.finish(out);
}

fn waited_cells(table: &mut Table, w: &Waited) {
    table.count(w.requests);
    let times = [w.p50_ns, w.p99_ns, w.p999_ns, w.max_ns, w.total_ns];
    for ns in times.into_iter().chain(w.phases_ns) {
        table.time(Some(ns));
    }
}

/// What waiting requests waited for, in all: the same as the band, in numbers.
pub(super) fn scheduler(out: &mut String, m: &Member) {
    let Some(s) = &m.scheduler else { return };
    let heads = ["", "who is served or idled for", "time", "share"];
    let mut table = Table::new(
        "What waiting requests waited for: of the time in which something waited",
        &heads,
    );
    for line in s.lines.iter().take(LINES_MAX) {
        table.begin(line.what);
        table.text(line.group.map_or("", |g| &m.groups[g].name));
        table.time(Some(line.total_ns));
        table.number(line.share, &format!("{:.1} %", line.share));
        table.end();
    }
    table.finish(out);
}

/// The experiment or what is known of the machine, in full.
pub(super) fn experiment(out: &mut String, m: &Member) {
    let Some(texts) = &m.experiment else {
        if !m.context.is_empty() {
            pairs(out, "What is known of the machine", &m.context);
        }
        return;
    };
    out.push_str("<section><h3>The experiment</h3>");
    if let Some(job) = &texts.job {
        let _ = write!(
            out,
            "<details><summary>job.fio</summary><pre>{}</pre></details>",
            escaped(job)
        );
    }
    let toml = escaped(&texts.toml);
    let _ = write!(
        out,
        "<details><summary>experiment.toml, every default spelled out</summary><pre>{toml}</pre></details></section>"
    );
}

/// Where the numbers are from.
pub(super) fn provenance(out: &mut String, m: &Member) {
    let mut rows = vec![("source".to_owned(), m.source.clone())];
    rows.extend(m.provenance.iter().cloned());
    if m.nr_captures > 1 {
        let text = format!(
            "{} in one trace: where their times begin anew, they lie upon each other in the pictures",
            m.nr_captures
        );
        rows.push(("captures".to_owned(), text));
    }
    let r = &m.requests;
    rows.push((
        "single requests".to_owned(),
        shown(r.start.len(), r.seen, r.complete_from_ns),
    ));
    pairs(out, "Where this is from, and what it leaves out", &rows);
}

/// How many requests the time line has.
fn shown(nr: usize, seen: u64, complete_from_ns: u64) -> String {
    if complete_from_ns == 0 {
        return format!("all {seen} are in the time line");
    }
    format!(
        "{nr} of {seen} are in the time line: all that took {} or longer, the slowest read and the \
         slowest other request of each of at most 512 intervals, and of the others a fair sample",
        time_text(complete_from_ns)
    )
}

fn pairs(out: &mut String, title: &str, rows: &[(String, String)]) {
    let _ = write!(out, "<section><h3>{title}</h3><dl class=\"pairs\">");
    for (name, text) in rows {
        let _ = write!(
            out,
            "<div><dt>{}</dt><dd>{}</dd></div>",
            escaped(name),
            escaped(text)
        );
    }
    out.push_str("</dl></section>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(
            [bytes_text(512), bytes_text(1 << 30)],
            ["512 B", "1.00 GiB"]
        );
    }
}
