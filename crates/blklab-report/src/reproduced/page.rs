// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of a reproduction: words, pictures and tables, without a script.

use super::{Number, Ordering, Reproduced, Study, figure, picture};
use crate::html::STYLE;
use crate::svg::escaped;
use std::fmt::Write as _;

/// Numbers that the first screen names.
const WORST: usize = 3;

/// The page, complete in itself.
pub fn page(r: &Reproduced) -> String {
    let title = match r.studies.as_slice() {
        [only] => format!("{}: published and modelled", only.name),
        all => format!("{} published experiments, run again", all.len()),
    };
    let title = escaped(&title);
    let mut body = format!("<header><h1>{title}</h1></header>\n<main id=\"main\">");
    answer(&mut body, r);
    if r.studies.len() > 1 {
        figure_of(
            &mut body,
            picture::overview(r),
            "A mark for each published number. To the right \
            of the line more came out than was published, to the left less.",
        );
    }
    for s in &r.studies {
        study(&mut body, r, s);
    }
    // A script element that is no script: its text may not end it.
    let data = r.to_json().replace("</", "<\\/");
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" href=\"data:,\">\
         <title>{title}</title><style>{STYLE}</style></head>\n<body>\
         <a class=\"skip\" href=\"#main\">to the answer</a>\n{body}</main>\
         <footer>blklab {version}: a laboratory for Linux block-I/O latency</footer>\
         <script type=\"application/json\" id=\"data\">{data}</script></body></html>\n"
    )
}

fn figure_of(out: &mut String, drawn: Option<(crate::svg::Svg, String)>, caption: &str) {
    if let Some((svg, label)) = drawn {
        let svg = svg.inline(&label);
        let _ = write!(
            out,
            "<figure class=\"wide\">{svg}<figcaption>{caption}</figcaption></figure>"
        );
    }
}

/// The first screen: how true the model is, where it is not.
fn answer(out: &mut String, r: &Reproduced) {
    let predicted: Vec<&Number> = r.numbers.iter().filter(|n| !n.is_calibrated()).collect();
    let within = predicted.iter().filter(|n| n.within).count();
    let published: Vec<&Ordering> = r
        .orderings
        .iter()
        .filter(|o| o.basis == "published")
        .collect();
    let hold = published.iter().filter(|o| o.holds == Some(true)).count();
    let mut off: Vec<&Number> = predicted.iter().copied().filter(|n| !n.within).collect();
    off.sort_by(|a, b| b.off().total_cmp(&a.off()));
    let runs = r.numbers.iter().map(|n| n.measured.runs).max().unwrap_or(0);
    out.push_str("<dl class=\"answer\">");
    let mut say = |name: &str, html: &str| {
        let _ = write!(out, "<div><dt>{name}</dt><dd>{html}</dd></div>");
    };
    say(
        "How near",
        &format!(
            "{within} of {} predicted numbers are within their tolerance.",
            predicted.len()
        ),
    );
    let holding = format!("{hold} of {} published orderings hold.", published.len());
    say("What holds", &holding);
    let worst = off.iter().take(WORST).map(|n| {
        let m = &n.measured;
        format!(
            "{}, {}, {}: {} was published, {} came out (allowed: {})",
            m.study,
            m.configuration,
            m.what(),
            figure(n.published),
            m.ours_text(),
            n.tolerance
        )
    });
    say("Furthest off", &list(worst, "no predicted number"));
    let broken = published.iter().filter(|o| o.holds == Some(false));
    let broken = broken.map(|o| format!("{}: {}", o.study, o.text));
    say(
        "What does not",
        &list(broken, "every published ordering holds, or needs more runs"),
    );
    let seeds = match runs {
        0 | 1 => {
            "One run of each configuration: nothing is known of what another seed gives.".to_owned()
        }
        n => format!(
            "Medians of up to {n} runs with different seeds, with the lowest and the highest."
        ),
    };
    let calibrated = r.numbers.len() - predicted.len();
    let fitted = format!(
        "{seeds} Parameters were fitted to {calibrated} more published numbers: those say nothing about the model."
    );
    say("How sure", &fitted);
    out.push_str("</dl>");
}

fn list(items: impl Iterator<Item = String>, none: &str) -> String {
    let items: Vec<String> = items.map(|i| format!("<li>{}</li>", escaped(&i))).collect();
    if items.is_empty() {
        return none.to_owned();
    }
    format!("<ul>{}</ul>", items.concat())
}

fn study(out: &mut String, r: &Reproduced, s: &Study) {
    let name = escaped(&s.name);
    let _ = write!(
        out,
        "<section aria-labelledby=\"{name}\"><h2 id=\"{name}\">{name}</h2><p class=\"lead\">{}. Source: {}.</p>",
        escaped(&s.title),
        escaped(&s.source)
    );
    if !s.differs.is_empty() {
        let _ = write!(out, "<p>Known to differ: {}.</p>", escaped(&s.differs));
    }
    figure_of(
        out,
        picture::of_study(r, s),
        "Grey: what is allowed. The mark is the median of the seeds, the line goes from the lowest to \
         the highest.",
    );
    orderings(out, r, s);
    table(out, r, s);
    out.push_str("</section>");
}

fn orderings(out: &mut String, r: &Reproduced, s: &Study) {
    for (basis, heading) in [
        ("published", "Published orderings"),
        ("expected", "Expected by us, not published"),
        (
            "contradicted",
            "Published, but contradicted by a measured kernel",
        ),
    ] {
        let own = r
            .orderings
            .iter()
            .filter(|o| o.study == s.name && o.basis == basis);
        let own: Vec<&Ordering> = own.collect();
        if own.is_empty() {
            continue;
        }
        let _ = write!(out, "<h3>{heading}</h3><ul>");
        for o in own {
            let holds = match o.holds {
                Some(true) => "holds",
                Some(false) => "<b>does not hold</b>",
                None => "needs more runs",
            };
            let compared = compared(o);
            let remark = match o.remark.as_str() {
                "" => String::new(),
                remark => format!(" ({})", escaped(remark)),
            };
            let _ = write!(
                out,
                "<li>{}: {holds}{compared}{remark}</li>",
                escaped(&o.text)
            );
        }
        out.push_str("</ul>");
    }
}

fn compared(o: &Ordering) -> String {
    let bounds = match o.expected {
        [Some(low), Some(high)] => format!("{low} to {high}"),
        [Some(low), None] => format!("from {low}"),
        [None, Some(high)] => format!("up to {high}"),
        [None, None] => return String::new(),
    };
    o.value.map_or(String::new(), |v| {
        format!(
            ", <span data-v=\"{v}\">{}</span> where {bounds} is expected",
            figure(v)
        )
    })
}

/// The same as the picture, in numbers, and what nobody published.
fn table(out: &mut String, r: &Reproduced, s: &Study) {
    out.push_str(
        "<details><summary>All numbers as a table</summary><div class=\"scroll\"><table><thead><tr>",
    );
    for head in [
        "",
        "metric",
        "published",
        "here",
        "lowest",
        "highest",
        "ratio",
        "allowed",
        "",
        "remark",
    ] {
        let _ = write!(out, "<th scope=\"col\">{head}</th>");
    }
    out.push_str("</tr></thead><tbody>");
    let cell = |v: Option<f64>| match v {
        Some(v) => format!("<td class=\"n\" data-v=\"{v}\">{}</td>", figure(v)),
        None => "<td class=\"n\">–</td>".to_owned(),
    };
    let numbers = r.of(s).map(|n| (&n.measured, Some(n)));
    let rest = r
        .unpublished
        .iter()
        .filter(|m| m.study == s.name)
        .map(|m| (m, None));
    for (m, n) in numbers.chain(rest) {
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td>{}{}{}{}{}",
            escaped(&m.configuration),
            escaped(&m.what()),
            cell(n.map(|n| n.published)),
            cell(m.ours.map(|o| o.median)),
            cell(m.ours.map(|o| o.min)),
            cell(m.ours.map(|o| o.max)),
            cell(n.and_then(|n| n.ratio)),
        );
        let said = n.map(|n| {
            let fitted = n.parameter.as_ref().map(|p| format!("fitted: {p}. "));
            let remark = fitted.unwrap_or_default() + &n.remark;
            (n.tolerance.clone(), n.verdict(), remark)
        });
        let (tolerance, verdict, remark) = said.unwrap_or_default();
        let _ = write!(
            out,
            "<td>{}</td><td>{verdict}</td><td>{}</td></tr>",
            escaped(&tolerance),
            escaped(&remark)
        );
    }
    out.push_str("</tbody></table></div></details>");
}
