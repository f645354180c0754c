// SPDX-License-Identifier: MIT OR Apache-2.0
//! The truth stream as the lines of a measured case's event log.

use blklab_trace::truth::{Kind, Truth, TruthSink};
use blklab_types::Op;
use std::cell::RefCell;
use std::rc::Rc;

/// One line of an event log, without its jiffy and free text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Nanoseconds from the start of the run.
    pub t_ns: u64,
    /// Event letters.
    pub event: &'static str,
    /// Process: submitter of the bio, owner of the request.
    pub pid: u32,
    /// Direction; none where the line is not about a bio or request.
    pub op: Option<Op>,
    /// Whether it is sync.
    pub sync: bool,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub nr_sectors: u32,
    /// Further number of the record (latency of an `E` line in ns).
    pub arg: u64,
    /// Text of a message; name of a timer.
    pub text: String,
}

/// Collects the log of a run.
#[derive(Clone, Debug, Default)]
pub struct TruthLog {
    lines: Rc<RefCell<Vec<LogLine>>>,
}

impl TruthLog {
    /// The lines so far; the log is empty afterwards.
    pub fn take(&self) -> Vec<LogLine> {
        std::mem::take(&mut self.lines.borrow_mut())
    }
}

impl TruthSink for TruthLog {
    fn truth(&mut self, r: &Truth, text: &str) {
        let Some((event, about_io)) = letters(r.kind) else {
            return;
        };
        self.lines.borrow_mut().push(LogLine {
            t_ns: r.time.0,
            event,
            pid: r.pid,
            op: about_io.then_some(r.op),
            sync: about_io && r.sync,
            sector: r.sector,
            nr_sectors: r.nr_sectors,
            arg: r.arg,
            text: text.to_owned(),
        });
    }
}

/// Letters of the log, and whether the line shows a bio or request; none for
/// what no log shows.
fn letters(kind: Kind) -> Option<(&'static str, bool)> {
    Some(match kind {
        Kind::Queue => ("Q", true),
        Kind::BackMerge => ("M", true),
        Kind::FrontMerge => ("F", true),
        Kind::RequestMerge => ("MM", true),
        Kind::GetRequest => ("G", true),
        Kind::SleepRequest => ("S", true),
        Kind::Insert => ("I", true),
        Kind::Issue => ("D", true),
        Kind::HandOver => ("DS", true),
        Kind::Complete => ("C", true),
        Kind::BioDone => ("E", true),
        Kind::Plug => ("P", false),
        Kind::Unplug => ("U", false),
        Kind::UnplugTimer => ("UT", false),
        Kind::UnplugSleep => ("UX", false),
        Kind::TimerArm => ("TA", false),
        Kind::TimerCancel => ("TD", false),
        Kind::TimerFire => ("TF", false),
        Kind::Exit => ("X", false),
        Kind::Message => ("m", false),
        Kind::Absorbed | Kind::Wait(_) => return None,
    })
}
