// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab compare`.

use crate::Outcome;
use crate::args::{CompareArgs, PlainFormat};
use crate::guard::Guard;
use crate::histogram;
use crate::output::{Output, cut, hanging, time, value};
use crate::progress::Progress;
use crate::source::report_damage;
use anyhow::{Result, bail};
use blklab::compare::{
    Basis, Change, Comparison, Difference, FindingSum, MetricChange, Options, Recordings,
    RowChange, Side, Verdict, compare as compare_sides,
};
use blklab::metric;
use std::io::Write;

/// Settings that are shown, at most.
const SETTINGS_MAX: usize = 12;

pub(crate) fn compare(a: &CompareArgs) -> Result<Outcome> {
    let options = Options::new(&a.paths, a.bios, &a.metric);
    let options = options.map_err(|err| err.in_file("--metric"))?;
    let mut output = Output::open(&mut Guard::new(&a.paths), a.output.as_deref())?;
    let recordings = Recordings::find(&a.paths, a.read.columns(), &blklab::targets::catalogue())?;
    let progress = Progress::new(recordings.count());
    let sides = recordings.read(&options, || progress.step());
    progress.finish();
    let mut sides = sides?;
    for run in sides.iter().flat_map(|side| &side.runs) {
        report_damage(&run.path, &run.counts);
    }
    let base = base(a, &sides)?;
    let before = sides.remove(base);
    let compared = sides
        .iter()
        .map(|after| compare_sides(&before, after, &options))
        .collect::<Result<Vec<Comparison>, _>>()?;
    match a.output_format {
        PlainFormat::Json => {
            serde_json::to_writer_pretty(&mut output, &compared).map_err(std::io::Error::from)?;
            writeln!(output)?;
        }
        PlainFormat::Table => {
            for (i, comparison) in compared.iter().enumerate() {
                if i > 0 {
                    writeln!(output)?;
                }
                show(&mut output, comparison)?;
            }
        }
    }
    output.commit()?;
    Ok(Outcome::Done)
}

/// The side that the others are compared with.
fn base(a: &CompareArgs, sides: &[Side]) -> Result<usize> {
    let names: Vec<&str> = sides.iter().map(|s| s.name.as_str()).collect();
    if let [name] = names[..] {
        bail!(
            "{name} alone has nothing to be compared with: name another run or trace, or a folder \
             with the runs of a matrix (blklab run … --sched a,b --out DIR)"
        );
    }
    let Some(wanted) = &a.base else { return Ok(0) };
    match names.iter().position(|name| name == wanted) {
        Some(place) => Ok(place),
        None => bail!(
            "--base {}: there are {}",
            blklab::types::shown(wanted),
            names.join(", ")
        ),
    }
}

fn show(out: &mut impl Write, c: &Comparison) -> Result<()> {
    let what = if c.identical {
        "identical: the same events, bit for bit".to_owned()
    } else {
        runs(c)
    };
    hanging(out, "", 2, &format!("{} -> {}: {what}", c.before, c.after))?;
    if c.identical {
        return Ok(settings(out, &c.settings)?);
    }
    settings(out, &c.settings)?;
    for row in &c.rows {
        writeln!(out)?;
        show_row(out, c, row)?;
    }
    writeln!(out)?;
    for (only, name) in c.only.iter().zip([&c.before, &c.after]) {
        if !only.is_empty() {
            hanging(out, "", 2, &format!("only in {name}: {}", only.join(", ")))?;
        }
    }
    findings(out, "gone", &c.gone)?;
    findings(out, "came", &c.came)?;
    for (i, name) in [&c.before, &c.after].into_iter().enumerate() {
        if c.copies[i] > 0 {
            let all = c.runs[i] + c.copies[i];
            let text = format!(
                "{} of the {all} runs of {name} are copies of another: they do not count",
                c.copies[i]
            );
            hanging(out, "note: ", 6, &text)?;
        }
    }
    if not_judged(c) {
        let text = "not judged: the runs do not vary, so nothing is known of the noise";
        hanging(out, "note: ", 6, text)?;
    }
    for note in &c.warm_up {
        hanging(out, "note: ", 6, note)?;
    }
    if c.basis == Basis::Batches {
        let text = "intervals are from stretches of one recording each: how much repetitions would \
                    differ is not in them";
        hanging(out, "note: ", 6, text)?;
    }
    // Traces that have nothing in common say nothing by that.
    if let Some(first) = c.first_difference.as_ref().filter(|f| f.same > 0) {
        let text = match first.same {
            1 => "the first event is the same; then".to_owned(),
            n => format!("the first {n} events are the same; then"),
        };
        writeln!(out, "{text}")?;
        for (name, line) in [(&c.before, &first.before), (&c.after, &first.after)] {
            let line = line.as_deref().unwrap_or("the end");
            let mut name = name.as_str();
            if name.chars().count() > NAME {
                hanging(out, "  ", 2, name)?;
                name = "";
            }
            writeln!(out, "  {name:<NAME$} {}", cut(line, 63))?;
        }
    }
    Ok(())
}

/// Whether something is as far apart in all runs.
fn not_judged(c: &Comparison) -> bool {
    let mut changes = c.rows.iter().flat_map(|row| &row.changes);
    changes.any(|m| m.verdict == Verdict::NoSpread)
}

/// What is behind the intervals, in words.
fn runs(c: &Comparison) -> String {
    let [before, after] = c.runs;
    let number = |n: usize| {
        if n == 1 {
            "one run".to_owned()
        } else {
            format!("{n} runs")
        }
    };
    match c.basis {
        Basis::Batches => format!("in {before} and {after} stretches"),
        Basis::Runs if c.paired && before > 1 => {
            format!("{} of each, in pairs of the same seed", number(before))
        }
        Basis::Runs if before == 1 && after == 1 => {
            "one run of each, so nothing is known of the noise (run --repeat 10)".to_owned()
        }
        Basis::Runs if before == after => format!("{} of each", number(before)),
        Basis::Runs => format!("{} and {}", number(before), number(after)),
    }
}

fn settings(out: &mut impl Write, settings: &[Difference]) -> std::io::Result<()> {
    for d in settings.iter().take(SETTINGS_MAX) {
        let shown = |text: &str| {
            if text.is_empty() {
                "-".to_owned()
            } else {
                cut(text, 120)
            }
        };
        let text = format!("{}: {} -> {}", d.key, shown(&d.before), shown(&d.after));
        hanging(out, "  differs  ", 11, &text)?;
    }
    if settings.len() > SETTINGS_MAX {
        writeln!(out, "           and {} more", settings.len() - SETTINGS_MAX)?;
    }
    Ok(())
}

fn findings(out: &mut impl Write, what: &str, found: &[FindingSum]) -> std::io::Result<()> {
    for f in found {
        let total = f.total_ns.map_or(String::new(), |ns| {
            format!(", {} of delay", time(ns as f64))
        });
        let text = format!("{}{total}, in {} of {} runs", f.kind, f.runs, f.of);
        hanging(out, &format!("{what}: "), 6, &text)?;
    }
    Ok(())
}

fn show_row(out: &mut impl Write, c: &Comparison, row: &RowChange) -> std::io::Result<()> {
    let heading = format!("{} {}", row.who, row.direction);
    // Names that have no room here are above: half of one tells nothing.
    let fits = |name: &str| name.chars().count() <= 9;
    let [before, after] = if fits(&c.before) && fits(&c.after) {
        [c.before.as_str(), c.after.as_str()]
    } else {
        ["before", "after"]
    };
    writeln!(
        out,
        "{:<16} {:>9} {:>9} {:>7} {:>15}",
        cut(heading.trim(), 16),
        before,
        after,
        "change",
        "95 % interval"
    )?;
    for m in &row.changes {
        let MetricChange {
            change, verdict, ..
        } = m;
        let line = format!(
            "  {:<14} {:>9} {:>9} {:>7} {:>15} {}",
            cut(&name(m), NAME),
            value(&m.metric, change.before),
            value(&m.metric, change.after),
            change.ratio.map_or("-".to_owned(), ratio),
            interval(change),
            verdict.text()
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    histograms(out, c, row)
}

/// Characters of a metric's name.
const NAME: usize = 14;

/// A metric in words if these are few; else its column without the unit, which the values
/// have.
fn name(m: &MetricChange) -> String {
    if m.title.len() <= NAME {
        return m.title.to_owned();
    }
    let known = metric::find(&m.metric).map(|wanted| wanted.metric.key);
    known.unwrap_or(&m.metric).replace('_', " ")
}

/// A ratio: in per cent if it is about one, else as a factor.
pub(crate) fn ratio(r: f64) -> String {
    match r {
        r if (0.5..2.0).contains(&r) => format!("{:+.1} %", (r - 1.0) * 100.0),
        r if r >= 99.5 => format!("{r:.0}x"),
        r if r >= 9.95 => format!("{r:.1}x"),
        r if r < 0.0995 => format!("{r:.3}x"),
        r => format!("{r:.2}x"),
    }
}

pub(crate) fn interval(change: &Change) -> String {
    let Some([low, high]) = change.interval else {
        return "-".to_owned();
    };
    let [low, high] = [low, high].map(ratio);
    match (low.strip_suffix(" %"), high.strip_suffix(" %")) {
        (Some(low), Some(high)) => format!("{low}…{high} %"),
        (Some(low), None) => format!("{low}%…{high}"),
        _ => format!("{}…{high}", low.trim_end_matches('x')),
    }
}

/// The latencies of both sides.
fn histograms(out: &mut impl Write, c: &Comparison, row: &RowChange) -> std::io::Result<()> {
    let place = histogram::Place {
        indent: 2,
        names: NAME,
    };
    let [before, after] = row.bins_ns.clone();
    let lines = [(&*c.before, before), (&*c.after, after)];
    histogram::show(out, &place, &lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_near_one_are_per_cents() {
        let shown = [0.0413, 0.5, 0.999, 1.0, 1.25, 2.0, 17.3, 1234.0].map(ratio);
        let expected = [
            "0.041x", "-50.0 %", "-0.1 %", "+0.0 %", "+25.0 %", "2.00x", "17.3x", "1234x",
        ];
        assert_eq!(shown, expected);
    }
}
