// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of one kind that a device got in a while.

use crate::number::{figures, kib_text, ms_text};

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Reads,
    Writes,
    Discards,
    Flushes,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Reads, Kind::Writes, Kind::Discards, Kind::Flushes];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Reads => "reads",
            Kind::Writes => "writes",
            Kind::Discards => "discards",
            Kind::Flushes => "flushes",
        }
    }
}

/// How many requests of a kind there were, and how long each took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Flow {
    /// Requests that ended in a second, or in all if the while is not known.
    pub(crate) number: f64,
    /// From queueing to the end, on average.
    pub(crate) await_ms: Option<f64>,
    /// Size of one on average.
    pub(crate) size_kib: Option<f64>,
    /// Requests, in percent, that went into others.
    pub(crate) merged_percent: Option<f64>,
}

impl Flow {
    /// Milliseconds of waiting that all of them took: seconds of it in a second are how many
    /// were under way.
    pub(crate) fn waited_ms(&self) -> Option<f64> {
        if self.number > 0.0 {
            Some(self.number * self.await_ms?)
        } else {
            Some(0.0)
        }
    }

    /// A sentence.
    pub(crate) fn text(&self, is_per_second: bool) -> String {
        let unit = if is_per_second { "/s" } else { "" };
        let mut text = format!("{}{unit}", figures(self.number));
        if let Some(kib) = self.size_kib.filter(|kib| *kib > 0.0) {
            text.push_str(&format!(" of {}", kib_text(kib)));
        }
        if let Some(ms) = self.await_ms {
            text.push_str(&format!(", {} each, from queueing to the end", ms_text(ms)));
        }
        if let Some(percent) = self.merged_percent.filter(|percent| *percent >= 1.0) {
            text.push_str(&format!("; {} % were merged", figures(percent)));
        }
        text
    }
}
