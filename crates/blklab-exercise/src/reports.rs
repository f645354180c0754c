// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of any content as a report: the page is well-formed HTML without control
//! characters, its data are JSON, and it says what the trace lacks.

use crate::Target;
use crate::check::fingerprint;
use crate::traces::{open, traces};
use crate::well_formed::html;
use blklab::findings::Context;
use blklab::trace::TraceFile;
use blklab::why::reading;
use blklab_report::member::{Asked, of_trace};
use blklab_report::{Report, html as written};
use blklab_trace::NullSink;

pub(crate) const TARGET: Target = Target {
    name: "report",
    feed,
    samples: traces,
};

/// Requests that are shown one by one.
const SHOWN_MAX: usize = 1000;

fn feed(data: &[u8]) -> Option<u64> {
    page_of(&mut open(data)?)
}

fn page_of(input: &mut TraceFile) -> Option<u64> {
    let asked = Asked {
        label: "fuzz",
        source: "fuzz",
        context: Context::default(),
        shown_max: SHOWN_MAX,
    };
    let member = of_trace(input, asked, NullSink).ok()?;
    let lost = reading(input);
    assert_eq!(
        (member.reading.lost, member.reading.elided),
        (lost.lost, lost.elided)
    );
    let nr_events = member.nr_events;
    let report = Report::new(vec![member]);
    let json = report.to_json();
    serde_json::from_str::<serde_json::Value>(&json).expect("the data are JSON");
    let page = written::page(&report).expect("a vector takes all");
    html(&page);
    if lost.lost > 0 {
        let says = ["lost", "missing", "left out"];
        assert!(says.iter().any(|w| page.contains(w)), "losses are told");
    }
    (nr_events > 0).then(|| fingerprint(&json))
}
