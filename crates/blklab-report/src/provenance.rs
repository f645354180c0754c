// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the numbers of a page are from, and what they leave out.

use blklab::run_directory::RunDir;
use blklab::trace::TraceFile;
use blklab_formats::ReadCounts;

/// What no event stream shows, and so no page.
const NOT_SHOWN: &str = "An event stream has no page cache: hits, dirty pages and copying are not \
                         in these pictures; nor has it tags: a request holds one from I to C.";

/// What the counters of a run do not show either.
const NOT_COUNTED: &str = "Hits of the page cache and copying are not in these pictures.";

/// How the parts of a latency are known.
const METHOD: &str = "Requests are matched by device, direction and sector, as blkparse and btt do; \
                      what a request would take alone is the median of those that came to an idle \
                      device. Percentiles of bios and requests are of fio's buckets, at most 0.8 % \
                      off; maxima are exact.";

/// Of a run.
pub(crate) fn of_run(run: &RunDir, events: &TraceFile) -> Vec<(String, String)> {
    let r = &run.record;
    let mut all = Rows::default();
    all.say("made by", format!("blklab {}", r.version));
    all.say("seed", r.seed.to_string());
    let verified = if r.verified {
        ", the same in a second run"
    } else {
        ""
    };
    all.say(
        "digest",
        format!("{} over {} events{verified}", r.digest, r.events),
    );
    all.say(
        "ended",
        if r.interrupted {
            "interrupted"
        } else {
            "by itself"
        },
    );
    for (name, text) in &r.sysfs {
        let text = text
            .as_str()
            .map_or_else(|| text.to_string(), str::to_owned);
        all.say(&format!("sysfs {name}"), text.trim());
    }
    for note in &r.notes {
        all.say("note", note);
    }
    all.reading(events.counts());
    all.say(
        "how true",
        "docs/fidelity.md compares the models with measured kernels and published \
                         reports, case by case, with the tolerances; docs/status.md says what each \
                         model leaves out.",
    );
    let not_shown = if r.counters.is_empty() {
        NOT_SHOWN
    } else {
        NOT_COUNTED
    };
    all.say("not shown", not_shown);
    all.say("method", METHOD);
    all.0
}

/// Of a trace.
pub(crate) fn of_trace(input: &TraceFile) -> Vec<(String, String)> {
    let mut all = Rows::default();
    all.say("read by", format!("blklab {}", env!("CARGO_PKG_VERSION")));
    all.say(
        "format",
        format!("{}: {}", input.format().name, input.format().summary),
    );
    if let Some(header) = input.header().filter(|h| !h.origin.is_empty()) {
        all.say("origin", &header.origin);
    }
    all.reading(input.counts());
    all.say("not shown", NOT_SHOWN);
    all.say("method", METHOD);
    all.0
}

#[derive(Default)]
struct Rows(Vec<(String, String)>);

impl Rows {
    fn say(&mut self, name: &str, text: impl Into<String>) {
        self.0.push((name.to_owned(), text.into()));
    }

    /// What the reader of the events says of them.
    fn reading(&mut self, c: &ReadCounts) {
        let counts = [
            ("lost by the recorder", c.lost),
            ("left out of the text", c.left_out),
            ("out of order", c.backwards),
            ("without a time", c.untimed),
            ("of unknown kind", c.unknown),
            ("damaged", c.damaged),
            ("with impossible numbers", c.impossible),
            ("passages left out", c.elided),
            ("missing at the end", c.missing),
        ];
        let said = counts.iter().filter(|(_, n)| *n > 0);
        let said: Vec<String> = said.map(|(what, n)| format!("{n} {what}")).collect();
        let text = if said.is_empty() {
            "none lost, left out or damaged".to_owned()
        } else {
            format!("{}: what they would show is missing here", said.join(", "))
        };
        self.say("events", text);
    }
}
