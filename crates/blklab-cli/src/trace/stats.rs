// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab trace stats`.

use crate::args::{PlainFormat, ReadArgs, SECOND_NS};
use crate::progress::Watcher;
use crate::source::{open, report_damage};
use anyhow::Result;
use blklab::analysis::breakdown::{
    By, DetailCollector, FullStats, Wanted, render_classes, render_histogram, render_queues,
};
use blklab::analysis::{TextOptions, render as render_stats};
use blklab::trace::{NullSink, send_all};
use std::io::Write as _;
use std::path::Path;

/// What is shown.
#[derive(Debug)]
pub(super) struct Sections {
    pub(super) by: Vec<By>,
    pub(super) phases: Vec<String>,
    pub(super) queue: bool,
    pub(super) all: bool,
}

impl Sections {
    /// Whether nothing but what btt shows is asked for.
    fn is_plain(&self) -> bool {
        self.by.is_empty() && self.phases.is_empty() && !self.queue && !self.all
    }

    /// Everything; of the windows those that were asked for.
    fn widen(&mut self) {
        let windows = self.by.iter().rfind(|by| matches!(by, By::Window(_)));
        let windows = windows.copied().unwrap_or(By::Window(SECOND_NS));
        self.by = vec![By::Process, By::Direction, By::Size, windows];
        self.phases = vec!["all".to_owned()];
        self.queue = true;
    }
}

pub(super) fn stats(
    file: &Path,
    read: &ReadArgs,
    mut sections: Sections,
    format: PlainFormat,
) -> Result<()> {
    let mut input = open(file, read.columns())?;
    let shows_plain = sections.is_plain() || sections.all;
    let is_json = format == PlainFormat::Json;
    if sections.all || is_json {
        sections.widen();
    }
    let (stats, details) = if sections.by.is_empty() && !sections.queue {
        (super::collect(&mut input, &mut NullSink)?, None)
    } else {
        let mut collector = DetailCollector::new(&Wanted {
            by: sections.by,
            queues: sections.queue,
        });
        let _shown = Watcher::reading(input.progress());
        send_all(&mut input, &mut collector)?;
        let (stats, details) = collector.finish();
        (stats, Some(details))
    };
    let details = details.unwrap_or_default();
    report_damage(file, input.counts());
    let mut out = std::io::stdout().lock();
    if is_json {
        let full = FullStats::new(&stats, &details);
        serde_json::to_writer_pretty(&mut out, &full).map_err(std::io::Error::from)?;
        writeln!(out)?;
        return Ok(out.flush()?);
    }
    if shows_plain {
        write!(out, "{}", render_stats(&stats, TextOptions::default()))?;
        if sections.queue {
            writeln!(out)?;
        }
    }
    write!(out, "{}", render_classes(&details))?;
    if sections.queue {
        write!(out, "{}", render_queues(&details))?;
    }
    for (name, _) in stats.all.named() {
        let wanted = |phase: &String| phase == "all" || phase.eq_ignore_ascii_case(name);
        if sections.phases.iter().any(wanted) {
            write!(out, "{}", render_histogram(&stats, name))?;
        }
    }
    out.flush()?;
    Ok(())
}
