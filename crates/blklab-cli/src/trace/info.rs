// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab trace info`: what was recognised, what is in it, what is missing or
//! damaged, and what follows from that.

use super::collect;
use crate::args::{PlainFormat, ReadArgs};
use crate::source::{damage, open};
use anyhow::Result;
use blklab::analysis::TraceStats;
use blklab::analysis::scope::{Conclusion, Doubts, Scope};
use blklab::findings::counted;
use blklab::trace::{Actions, ReadCounts, TraceHeader};
use blklab::trace_file::TraceFile;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// Columns of a line.
const WIDTH: usize = 80;
/// Names of other events that are shown.
const OTHER_NAMES: usize = 12;

/// All that is known of a trace.
struct Info {
    format: (&'static str, &'static str),
    header: Option<TraceHeader>,
    counts: ReadCounts,
    /// Whether the trace says what was lost of it.
    says_losses: bool,
    missing_cpus: Vec<u16>,
    scope: Scope,
    stats: TraceStats,
    conclusions: Vec<Conclusion>,
}

pub(super) fn info(file: &Path, read: &ReadArgs, format: PlainFormat) -> Result<()> {
    let mut input = open(file, read.columns())?;
    let mut scope = Scope::default();
    let stats = collect(&mut input, &mut scope)?;
    let info = Info::new(&input, scope, stats);
    let mut out = std::io::stdout().lock();
    match format {
        PlainFormat::Table => info.print(&mut out)?,
        PlainFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &info.json()).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(())
}

impl Info {
    fn new(input: &TraceFile, scope: Scope, stats: TraceStats) -> Info {
        let counts = input.counts().clone();
        let header = input.header().cloned();
        let recorded = header.as_ref().map_or(Actions::ALL, |h| h.recorded);
        let doubts = Doubts {
            lost: counts.lost + counts.missing + u64::from(counts.truncated),
            left_out: counts.left_out + counts.elided,
            untimed: counts.untimed,
            backwards: counts.backwards + counts.restarts,
            damaged: counts.damaged + counts.unknown + counts.jumps + counts.impossible,
            losses_unsaid: !input.says_losses(),
        };
        let format = input.format();
        Info {
            format: (format.name, format.summary),
            says_losses: input.says_losses(),
            missing_cpus: input.missing_cpus(),
            conclusions: scope.conclusions(recorded, doubts),
            header,
            counts,
            scope,
            stats,
        }
    }

    /// The kinds of events that there are, with their numbers.
    fn kinds(&self) -> Vec<(&'static str, u64)> {
        let seen = self.scope.seen().iter();
        seen.map(|action| (action.letters(), self.scope.count(action)))
            .collect()
    }

    fn name(&self, dev: (u16, u16)) -> Option<&str> {
        let devices = self.header.iter().flat_map(|h| &h.devices);
        let mut found = devices.filter(|(d, _)| (d.major, d.minor) == dev);
        found.next().map(|(_, name)| name.as_str())
    }

    fn print(&self, out: &mut impl Write) -> Result<()> {
        let (stats, counts) = (&self.stats, &self.counts);
        if let Some(h) = self.header.as_ref().filter(|h| !h.kernel.is_empty()) {
            put(out, "kernel", &h.kernel)?;
        }
        if let Some(h) = self.header.as_ref().filter(|h| !h.origin.is_empty()) {
            put(out, "origin", &h.origin)?;
        }
        put(out, "format", self.format.0)?;
        put(out, "", self.format.1)?;
        put(out, "events", &stats.nr_events.to_string())?;
        put(out, "messages", &stats.nr_messages.to_string())?;
        let kinds = self.kinds();
        let kinds = kinds.iter().map(|(letters, nr)| format!("{letters} {nr}"));
        put(out, "kinds", &kinds.collect::<Vec<_>>().join("  "))?;
        let beside = self.scope.kernel_events();
        let beside: Vec<String> = beside.map(|(name, nr)| format!("{name} {nr}")).collect();
        if !beside.is_empty() {
            put(out, "beside", &beside.join(", "))?;
        }
        if counts.stacks > 0 {
            put(out, "stacks", &counts.stacks.to_string())?;
        }
        if counts.new_recordings > 0 {
            let nr = counts.new_recordings + 1;
            let text = format!("{nr}, one behind the other; none has to do with another");
            put(out, "recorded", &text)?;
        }
        let seconds = (stats.end_ns - stats.start_ns) as f64 / 1e9;
        put(out, "span", &format!("{seconds:.9} s"))?;
        self.print_devices(out)?;
        self.print_oddities(out)?;
        let whole = if self.says_losses {
            "none"
        } else {
            "none seen; what was lost, the format does not say"
        };
        let damage = damage(counts).unwrap_or(whole.to_owned());
        put(out, "damage", &damage)?;
        self.print_conclusions(out)
    }

    fn print_devices(&self, out: &mut impl Write) -> Result<()> {
        for d in &self.stats.devices {
            let (bios, requests) = (d.queued.total().count, d.nr_issued);
            let dev = (d.dev.major, d.dev.minor);
            let mut text = format!(
                "{},{}: {}, {}",
                dev.0,
                dev.1,
                counted(bios, "bios"),
                counted(requests, "requests")
            );
            match self.name(dev) {
                Some(name) if dev.0 == 0 => {
                    text = format!("{text} (this is {name}; the number is made up)");
                }
                Some(name) if !name.is_empty() => text = format!("{text} ({name})"),
                _ => {}
            }
            put(out, "device", &text)?;
        }
        if let Some(others) = &self.stats.other_devices {
            let (n, nr) = (others.nr_events, self.stats.devices.len());
            put(
                out,
                "others",
                &counted(n, &format!("events of devices beyond the first {nr}")),
            )?;
        }
        Ok(())
    }

    /// What is neither damage nor plain.
    fn print_oddities(&self, out: &mut impl Write) -> Result<()> {
        let (stats, counts) = (&self.stats, &self.counts);
        if counts.other_events > 0 {
            let text = "events of other parts of the kernel, or that repeat one";
            put(out, "passed", &counted(counts.other_events, text))?;
            put(out, "", &self.other_names())?;
        }
        let silent: u64 = stats.devices.iter().map(|d| d.nr_silent_merges).sum();
        if silent > 0 {
            let text = "merges of requests that no event shows, inferred from sizes";
            put(out, "inferred", &counted(silent, text))?;
        }
        let unmatched = &stats.unmatched;
        let mut said: Vec<String> = unmatched
            .events
            .iter()
            .map(|(letters, nr)| format!("{nr} {letters} that fit nothing"))
            .collect();
        for (nr, what) in [
            (unmatched.unfinished_bios, "bios without an end"),
            (unmatched.unfinished_requests, "requests without an end"),
        ] {
            if nr > 0 {
                said.push(counted(nr, what));
            }
        }
        if !said.is_empty() {
            put(out, "unmatched", &said.join("; "))?;
        }
        if unmatched.passed_through > 0 {
            let text = "events of commands passed through to the device";
            put(out, "passthru", &counted(unmatched.passed_through, text))?;
        }
        for (nr, text) in [
            (
                counts.reordered,
                "events behind later ones, put in their place",
            ),
            (counts.other_cpu, "records in the file of another CPU"),
            (
                counts.shift_s,
                "s were added to all times, since some were before 0",
            ),
        ] {
            if nr > 0 {
                put(out, "note", &counted(nr, text))?;
            }
        }
        if !self.missing_cpus.is_empty() {
            let cpus: Vec<String> = self.missing_cpus.iter().map(u16::to_string).collect();
            let text = format!("no file of CPU {}: offline, or missing", cpus.join(", "));
            put(out, "note", &text)?;
        }
        if stats.nr_overflows > 0 {
            let text = format!("{} additions went beyond 64 bits", stats.nr_overflows);
            put(out, "overflow", &text)?;
        }
        Ok(())
    }

    /// The most frequent other events.
    fn other_names(&self) -> String {
        let mut names = self.counts.other_names.clone();
        names.sort_by_key(|(_, nr)| std::cmp::Reverse(*nr));
        let mut said: Vec<String> = names
            .iter()
            .take(OTHER_NAMES)
            .map(|(name, nr)| format!("{name} {nr}"))
            .collect();
        if names.len() > OTHER_NAMES {
            said.push(format!("and {} more kinds", names.len() - OTHER_NAMES));
        }
        said.join(", ")
    }

    fn print_conclusions(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "\nWhat it shows:")?;
        for c in &self.conclusions {
            let text = match c.why.as_str() {
                "" => c.about.to_owned(),
                why => format!("{}: {why}", c.about),
            };
            put(out, &format!("  {}", c.known.word()), &text)?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let counts = &self.counts;
        let devices: Vec<Value> = self
            .stats
            .devices
            .iter()
            .map(|d| {
                let dev = (d.dev.major, d.dev.minor);
                json!({
                    "dev": format!("{},{}", dev.0, dev.1),
                    "name": self.name(dev),
                    "bios": d.queued.total().count,
                    "requests": d.nr_issued,
                    "inferred_merges": d.nr_silent_merges,
                })
            })
            .collect();
        let conclusions: Vec<Value> = self
            .conclusions
            .iter()
            .map(|c| json!({"about": c.about, "known": c.known.word(), "why": c.why}))
            .collect();
        let named = |all: &[(&'static str, u64)]| {
            let all = all.iter().map(|(name, nr)| ((*name).to_owned(), json!(nr)));
            Value::Object(all.collect())
        };
        json!({
            "format": self.format.0,
            "kernel": self.header.as_ref().map(|h| &h.kernel),
            "origin": self.header.as_ref().map(|h| &h.origin),
            "events": self.stats.nr_events,
            "messages": self.stats.nr_messages,
            "kinds": named(&self.kinds()),
            "beside": named(&self.scope.kernel_events().collect::<Vec<_>>()),
            "stacks": counts.stacks,
            "recordings": counts.new_recordings + 1,
            "start_ns": self.stats.start_ns,
            "end_ns": self.stats.end_ns,
            "devices": devices,
            "unmatched": self.stats.unmatched,
            "other_events": counts.other_events,
            "other_names": counts.other_names.iter().map(|(name, nr)| (name.clone(), json!(nr)))
                .collect::<serde_json::Map<_, _>>(),
            "missing_cpus": self.missing_cpus,
            "damage": named(&[
                ("lost", counts.lost),
                ("gaps", counts.gaps),
                ("left_out", counts.left_out),
                ("restarts", counts.restarts),
                ("backwards", counts.backwards),
                ("reordered", counts.reordered),
                ("jumps", counts.jumps),
                ("untimed", counts.untimed),
                ("unknown", counts.unknown),
                ("damaged", counts.damaged),
                ("impossible", counts.impossible),
                ("elided", counts.elided),
                ("foreign_lines", counts.foreign),
                ("other_cpu", counts.other_cpu),
                ("shift_s", counts.shift_s),
                ("missing", counts.missing),
                ("skipped_bytes", counts.skipped_bytes),
                ("truncated", u64::from(counts.truncated)),
            ]),
            "says_losses": self.says_losses,
            "examples": counts.examples,
            "conclusions": conclusions,
        })
    }
}

/// A line, or several if the text is long.
fn put(out: &mut impl Write, label: &str, text: &str) -> Result<()> {
    let mut line = format!("{label:<10}");
    let mut is_empty = true;
    let text = blklab::types::visible(text);
    for word in text.split(' ') {
        if !is_empty && line.chars().count() + word.chars().count() + 1 > WIDTH {
            writeln!(out, "{}", line.trim_end())?;
            line = " ".repeat(10);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    writeln!(out, "{}", line.trim_end())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_wrapped() {
        let mut out = Vec::new();
        put(&mut out, "kinds", &"word ".repeat(30)).expect("a vector takes all");
        let text = String::from_utf8(out).expect("text");
        assert!(
            text.lines().count() == 3 && text.lines().all(|l| l.len() <= WIDTH),
            "{text}"
        );
        assert!(
            text.lines()
                .skip(1)
                .all(|l| l.starts_with("          word"))
        );
    }
}
