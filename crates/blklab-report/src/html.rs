// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page: words, tables and the first picture as HTML, the data for the rest.
//!
//! The script finds its places by `data-` attributes: `data-chart` with the number of
//! the member in `data-member`; `data-show` of a button with what it leads to in the
//! time line. Every number of a table has the JSON's value in `data-v`.

mod findings;
mod matrix;
mod tables;

use crate::model::{Answer, Group, Member, Report, Waited};
use crate::picture;
use crate::svg::escaped;
use base64::Engine as _;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::fmt::Write as _;
use std::io::{self, Write as _};

const SCRIPT: &str = include_str!("../web/dist/report.js");
pub(crate) const STYLE: &str = include_str!("../web/dist/report.css");

/// Licences of what is bundled into the page.
const NOTICE: &str = include_str!("../web/dist/LICENCES.txt");

/// The page of a report, complete in itself.
///
/// # Errors
/// If its data cannot be packed.
pub fn page(report: &Report) -> io::Result<String> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    packed.write_all(report.to_json().as_bytes())?;
    let data = base64::engine::general_purpose::STANDARD.encode(packed.finish()?);
    let title = escaped(&report.title);
    let mut body = String::new();
    header(&mut body, report);
    if report.members.len() > 1 {
        overview(&mut body, report);
    }
    for (i, m) in report.members.iter().enumerate() {
        member(&mut body, i, m, report.members.len() > 1);
    }
    Ok(format!(
        "<!doctype html>\n<!-- made by blklab {version}\n{NOTICE}-->\n\
         <html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <link rel=\"icon\" href=\"data:,\">\
         <title>{title}</title><style>{STYLE}</style></head>\n<body>\
         <a class=\"skip\" href=\"#main\">to the answer</a>\n{body}</main>\
         <footer>blklab {version}: a laboratory for Linux block-I/O latency</footer>\
         <script type=\"text/plain\" id=\"data\">{data}</script>\n\
         <script>{SCRIPT}</script></body></html>\n",
        version = report.version
    ))
}

fn header(out: &mut String, report: &Report) {
    let _ = write!(out, "<header><h1>{}</h1>", escaped(&report.title));
    if let [only] = report.members.as_slice() {
        let _ = write!(out, "<p class=\"lead\">{}</p>", escaped(&only.sentence));
    }
    out.push_str("</header>\n<main id=\"main\">");
}

/// Of several: who waited how long in each, and why.
fn overview(out: &mut String, report: &Report) {
    if let Some(verdict) = &report.verdict {
        matrix::section(out, verdict);
    }
    out.push_str("<section aria-labelledby=\"who\"><h2 id=\"who\">Who waited, how long, why</h2>");
    let lines: Vec<(&str, &Waited)> = report
        .members
        .iter()
        .map(|m| (m.label.as_str(), &m.waited))
        .collect();
    if let Some(svg) = picture::waiting(&lines) {
        let _ = write!(
            out,
            "<figure class=\"wide\">{svg}<figcaption>Requests that a process waited for, \
            from their beginning to their end, in each of the runs or traces. Write-back, for which \
            no process waits, is left out.{}</figcaption></figure>",
            first_runs(report)
        );
    }
    tables::answers(out, report);
    tables::comparison(out, report);
    out.push_str("<h3>Latencies compared</h3><div class=\"charts\" data-chart=\"compare\"></div></section>\n");
    out.push_str("<nav aria-label=\"runs and traces\" class=\"members\">");
    for (i, m) in report.members.iter().enumerate() {
        let label = escaped(&m.label);
        let _ = write!(out, "<a href=\"#m{i}\" data-choose=\"{i}\">{label}</a>");
    }
    out.push_str("</nav>");
}

/// Of which runs pictures are, where there are repetitions.
fn first_runs(report: &Report) -> &'static str {
    if report.members.iter().any(|m| m.repetitions > 1) {
        " Of repetitions, the first run is drawn."
    } else {
        ""
    }
}

fn member(out: &mut String, i: usize, m: &Member, is_one_of_many: bool) {
    let _ = write!(out, "<article id=\"m{i}\" data-member=\"{i}\">");
    if is_one_of_many {
        let (label, sentence) = (escaped(&m.label), escaped(&m.sentence));
        let _ = write!(out, "<h2>{label}</h2><p class=\"lead\">{sentence}</p>");
        if m.repetitions > 1 {
            let _ = write!(
                out,
                "<p class=\"lead\">The first of {} runs; the verdict above has the numbers of all.</p>",
                m.repetitions
            );
        }
    }
    answer(out, &m.answer);
    let lines: Vec<(&str, &Waited)> = m
        .groups
        .iter()
        .map(|g: &Group| (g.name.as_str(), &g.waited))
        .collect();
    if let Some(svg) = picture::waiting(&lines) {
        let _ = write!(
            out,
            "<figure class=\"wide\">{svg}<figcaption>Requests that a process waited \
            for; processes whose names differ in a number only are one line.</figcaption></figure>"
        );
    }
    tables::jobs(out, m);
    tables::groups(out, m);
    chart(
        out,
        i,
        "timeline",
        "Time line",
        "Each mark is a request, where on the device and when it was issued: filled squares read, bars \
         write. Drag over a stretch to zoom in, until each request shows its life: a thin line while it \
         waited (Q to D), a thick one in the device (D to C). Keys: arrows move, + and - zoom, 0 shows \
         all, n and p go from request to request.",
    );
    chart(
        out,
        i,
        "band",
        "Who was served",
        "A line for each process: the darker, the larger its share of the bytes that went to the device. \
         Zoomed in, its requests from D to C. Below, when the device had nothing to do while requests \
         waited.",
    );
    if m.scheduler.is_some() {
        chart(
            out,
            i,
            "scheduler",
            "The scheduler over time",
            "What waiting requests waited for, a line for each reason: the share of each interval, up \
             from its line, in the colour of the process that is served or idled for. Zoomed in, each \
             slice, wait and batch by itself. Nothing is drawn where nothing waits.",
        );
        tables::scheduler(out, m);
    }
    chart(
        out,
        i,
        "latency",
        "Latency over time",
        "Requests that a process waited for, by when they ended: the longest of each interval, and the \
         mean, divided by what they waited for.",
    );
    chart(
        out,
        i,
        "load",
        "Load over time",
        "Throughput; bios between Q and C; requests between I and C, which hold one of the queue's \
         requests or tags; requests between D and C, at the device. Dark: mean of the interval. Light: \
         its highest. Of a run also what no event shows: requests or tags in use, of all that there \
         are, and dirty pages below the limits at which write-back begins and writers must wait.",
    );
    chart(
        out,
        i,
        "curves",
        "How latencies are distributed",
        "The share of requests that took longer than a time, both axes logarithmic: the tail is on the \
         right. Marks: median, 99 %, 99.9 %, longest.",
    );
    findings::section(out, i, m);
    findings::re_enacted(out, m);
    tables::experiment(out, m);
    tables::provenance(out, m);
    out.push_str("</article>\n");
}

fn chart(out: &mut String, member: usize, name: &str, title: &str, caption: &str) {
    let _ = write!(
        out,
        "<section aria-labelledby=\"{name}{member}\"><h3 id=\"{name}{member}\">{title}</h3>\
         <figure><div class=\"charts\" data-chart=\"{name}\" data-member=\"{member}\"></div>\
         <figcaption>{caption}</figcaption></figure></section>"
    );
}

/// Who waited, how long, why, what would help.
fn answer(out: &mut String, a: &Answer) {
    out.push_str("<dl class=\"answer\">");
    let mut say = |name: &str, text: &str| {
        let _ = write!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(text));
    };
    if let Some(text) = &a.application {
        say("The application", text);
    }
    say("Who waited", &a.who);
    say("How long", &a.how_long);
    say("Why", &a.why);
    if let (Some(kind), Some(confidence)) = (a.kind, a.confidence) {
        say("How sure", &format!("{confidence} ({kind})"));
    }
    let _ = write!(out, "<div><dt>What would help</dt><dd>");
    match a.help.as_slice() {
        [] => out.push_str("Nothing that follows from the events."),
        [only] => out.push_str(&escaped(only)),
        several => {
            out.push_str("<ul>");
            for text in several {
                let _ = write!(out, "<li>{}</li>", escaped(text));
            }
            out.push_str("</ul>");
        }
    }
    out.push_str("</dd></div></dl>");
}
