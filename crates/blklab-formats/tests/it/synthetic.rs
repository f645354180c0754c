// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up traces: every action and flag, many processes and CPUs.

use blklab_trace::{Action, Event, Rwbs, TraceHeader, TraceSink};
use blklab_types::{Dev, Pid, Time};

/// What a sink was given, to be given again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Event(Event),
    Message(Event, String),
    Process(Time, Pid, String),
}

pub(crate) fn send(said: &[Said], sink: &mut dyn TraceSink) {
    for s in said {
        match s {
            Said::Event(event) => sink.event(event),
            Said::Message(event, text) => sink.message(event, text),
            Said::Process(time, pid, comm) => sink.process(*time, *pid, comm),
        }
    }
}

/// Records what it is given.
#[derive(Default)]
pub(crate) struct Recorder(pub(crate) Vec<Said>);

impl TraceSink for Recorder {
    fn event(&mut self, event: &Event) {
        self.0.push(Said::Event(*event));
    }
    fn message(&mut self, event: &Event, text: &str) {
        self.0.push(Said::Message(*event, text.into()));
    }
    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.0.push(Said::Process(time, pid, comm.into()));
    }
}

pub(crate) fn header(nr_cpus: u16) -> TraceHeader {
    TraceHeader {
        devices: vec![(Dev { major: 8, minor: 0 }, "sda".into())],
        nr_cpus,
        kernel: "2.6.28".into(),
        origin: "synthetic".into(),
        ..TraceHeader::default()
    }
}

/// A small generator of numbers, the same on every run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// Below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Event `action` with plausible, hostile and borderline fields.
fn event(n: &mut Numbers, time: u64, action: Action, nr_cpus: u64) -> Event {
    let flags = [
        Rwbs::READ,
        Rwbs::WRITE,
        Rwbs::WRITE.with(Rwbs::SYNC),
        Rwbs::READ.with(Rwbs::AHEAD),
        Rwbs::READ.with(Rwbs::META),
        Rwbs::DISCARD,
        Rwbs::FLUSH,
        Rwbs::WRITE
            .with(Rwbs::FLUSH)
            .with(Rwbs::FUA)
            .with(Rwbs::SYNC)
            .with(Rwbs::META),
        Rwbs::WRITE.with(Rwbs::BARRIER),
        Rwbs::WRITE.with(Rwbs::PC),
        Rwbs::READ.with(Rwbs::PC),
    ];
    // blkparse complains about some actions of commands passed through.
    let usable = match action {
        Action::BackMerge
        | Action::FrontMerge
        | Action::Plug
        | Action::Unplug
        | Action::UnplugTimer
        | Action::Split
        | Action::Bounce
        | Action::Remap => 9,
        _ => 11,
    };
    let rwbs = match action {
        Action::Plug | Action::Unplug | Action::UnplugTimer | Action::Message => Rwbs::NONE,
        _ => flags[n.below(usable) as usize],
    };
    let sizes = [0, 512, 4096, 65536, 524_288, 511, 1_048_576, 1_234_567];
    let bytes = match action {
        Action::Plug | Action::Unplug | Action::UnplugTimer | Action::Message => 0,
        _ => sizes[n.below(8) as usize],
    };
    let sector = match (action, n.below(20)) {
        (Action::Plug | Action::Unplug | Action::UnplugTimer | Action::Message, _) => 0,
        (_, 0) => 0,
        (_, 1) => u64::MAX,
        (_, 2) => 18_540_712_345_678,
        _ => n.below(1 << 30) * 8,
    };
    // No device has that sector; without data it is in traces.
    let bytes = if sector == u64::MAX { 0 } else { bytes };
    let pids = [0, 1, 42, 4175, 32768, 99_999, 4_194_303, 1_234_567_890];
    let disk = |n: &mut Numbers| match n.below(4) {
        0 => Dev {
            major: 104,
            minor: 48,
        },
        1 => Dev {
            major: 259,
            minor: 1234,
        },
        _ => Dev { major: 8, minor: 0 },
    };
    let dev = disk(n);
    Event {
        time: Time(time),
        sector,
        arg: match action {
            Action::Unplug | Action::UnplugTimer => n.below(1000),
            Action::Split | Action::Remap => n.below(1 << 40),
            _ => 0,
        },
        bytes,
        pid: pids[n.below(8) as usize],
        dev,
        from_dev: if action == Action::Remap {
            Dev { major: 9, minor: 2 }
        } else {
            Dev::default()
        },
        error: if action == Action::Complete && n.below(5) == 0 {
            5
        } else {
            0
        },
        cpu: n.below(nr_cpus) as u16,
        rwbs,
        action,
    }
}

/// `nr_events` events with messages between them; half of the processes have
/// names; `tie` in 8 events have the time of their predecessor.
pub(crate) fn trace(seed: u64, nr_events: usize, nr_cpus: u64, tie: u64) -> Vec<Said> {
    let mut n = Numbers(seed);
    let mut said = Vec::new();
    for (pid, comm) in [
        (0, "swapper"),
        (42, "pdflush"),
        (4175, "a name with [brackets]"),
        (99_999, ""),
    ] {
        said.push(Said::Process(Time(0), pid, comm.into()));
    }
    let mut time = n.below(3_000_000_000);
    for _ in 0..nr_events {
        if n.below(8) >= tie {
            time += [1, 700, 1_000_000, 33_333_333][n.below(4) as usize];
        }
        let action = Action::ALL[n.below(16) as usize];
        let event = event(&mut n, time, action, nr_cpus);
        said.push(if action == Action::Message {
            let texts = ["cfq1234 slice expired t=0", "", "100% done", "two\nlines"];
            Said::Message(event, texts[n.below(4) as usize].into())
        } else {
            Said::Event(event)
        });
    }
    // One name that comes late and one that changes.
    said.push(Said::Process(Time(time), 7, "late".into()));
    said.push(Said::Process(Time(time), 42, "renamed".into()));
    for pid in [7, 42] {
        time += 1000;
        let e = event(&mut n, time, Action::Queue, nr_cpus);
        said.push(Said::Event(Event { pid, ..e }));
    }
    said
}
