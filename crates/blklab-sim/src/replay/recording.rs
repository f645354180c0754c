// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recorded trace of a multi-queue device says about those who used its
//! queue: what they submitted, when, under which plug, when they slept, and
//! when the device finished what.
//!
//! A trace shows plugs only by their effects. A task's plug was open when a
//! bio's request was followed by P; it stayed open for requests without P as
//! long as there was something in it; it was emptied by U, and without a
//! scheduler, where nothing says so, by the task's next D. U followed by P
//! without a Q in between is the block layer's own (the plug was full, or its
//! last request large), any other the end of the plug. UT is a task that goes
//! to sleep. Written for kernels 5.16 and later, where plugs issue directly.

use blklab_trace::{Action, Event, Rwbs, TraceSink};
use blklab_types::{BioFlags, Op, Pid, Time};
use std::collections::BTreeMap;

/// A command as traces show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatched {
    /// When the driver got it.
    pub time: Time,
    /// Direction.
    pub op: Op,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub nr_sectors: u32,
}

impl Dispatched {
    /// Whether both are the same command, whenever it was.
    pub fn is_same(&self, o: &Dispatched) -> bool {
        (self.op, self.sector, self.nr_sectors) == (o.op, o.sector, o.nr_sectors)
    }
}

/// What happened at one recorded event, as far as it has to be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A task submitted a bio.
    Submit {
        op: Op,
        flags: BioFlags,
        sector: u64,
        nr_sectors: u32,
        /// Whether the task's plug was open; none if nothing shows it.
        plugged: Option<bool>,
        /// When the bio's last request was granted; none if it was merged.
        granted: Option<Time>,
    },
    /// The task ended its plug.
    FinishPlug,
    /// The task went to sleep with requests in its plug.
    Sleep,
    /// The device finished a command.
    Complete(Dispatched),
    /// Somebody handed something to the driver.
    Issue,
    /// Something that the queue did by itself.
    Other,
}

/// One recorded event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) time: Time,
    pub(super) pid: Pid,
    pub(super) what: What,
}

/// A recorded trace, ready to be fed into a queue. It is a sink: send the
/// trace to it, then call [`Recorder::finish`].
#[derive(Debug, Default)]
pub struct Recorder {
    events: Vec<Event>,
}

/// What a trace says that has to be repeated.
#[derive(Debug, Default)]
pub struct Recording {
    pub(super) steps: Vec<Step>,
    /// Commands in the order in which the driver got them.
    pub dispatches: Vec<Dispatched>,
    /// Processes that submitted bios, in order of their pids.
    pub submitters: Vec<Pid>,
}

impl TraceSink for Recorder {
    fn event(&mut self, event: &Event) {
        self.events.push(*event);
    }

    fn message(&mut self, event: &Event, _text: &str) {
        self.events.push(*event);
    }
}

impl Recorder {
    /// What was recorded, in order of time. `with_scheduler`: whether the
    /// queue had one; without one a plug's end shows by D.
    pub fn finish(mut self, with_scheduler: bool) -> Recording {
        self.events.sort_by_key(|e| e.time);
        let mut steps: Vec<Step> = self.events.iter().map(step).collect();
        let mut by_pid: BTreeMap<Pid, Vec<usize>> = BTreeMap::new();
        for (i, e) in self.events.iter().enumerate() {
            let of_task = !matches!(e.action, Action::Complete | Action::Message);
            if of_task {
                by_pid.entry(e.pid).or_default().push(i);
            }
        }
        let is_submit = |i: &usize| matches!(steps[*i].what, What::Submit { .. });
        let submits = by_pid.iter().filter(|(_, list)| list.iter().any(is_submit));
        let submitters = submits.map(|(pid, _)| *pid).collect();
        for list in by_pid.values() {
            plugs_of(list, &self.events, with_scheduler, &mut steps);
        }
        let issued = self.events.iter().filter(|e| e.action == Action::Issue);
        Recording {
            steps,
            dispatches: issued.filter_map(command).collect(),
            submitters,
        }
    }
}

fn step(e: &Event) -> Step {
    let what = match e.action {
        Action::Queue => match e.rwbs.op() {
            Some(op) => What::Submit {
                op,
                flags: e.rwbs.bio_flags(),
                sector: e.sector,
                nr_sectors: e.nr_sectors() as u32,
                plugged: None,
                granted: None,
            },
            None => What::Other,
        },
        Action::Complete => command(e).map_or(What::Other, What::Complete),
        Action::UnplugTimer => What::Sleep,
        Action::Issue => What::Issue,
        _ => What::Other,
    };
    Step {
        time: e.time,
        pid: e.pid,
        what,
    }
}

/// The command of a D or C event; none if it moved no data of a file system.
fn command(e: &Event) -> Option<Dispatched> {
    if e.rwbs.has(Rwbs::PC) {
        return None;
    }
    Some(Dispatched {
        time: e.time,
        op: e.rwbs.op()?,
        sector: e.sector,
        nr_sectors: e.nr_sectors() as u32,
    })
}

/// Fills in the plugs of one task, whose events these are.
fn plugs_of(list: &[usize], events: &[Event], with_scheduler: bool, steps: &mut [Step]) {
    // Whether its plug holds something, and whether it is getting a request.
    let (mut filled, mut in_submit) = (false, false);
    for (at, &i) in list.iter().enumerate() {
        let rest = &list[at + 1..];
        match events[i].action {
            Action::Queue => {
                in_submit = true;
                let shown = until_next_bio(rest, events, filled);
                if let What::Submit {
                    plugged, granted, ..
                } = &mut steps[i].what
                {
                    (*plugged, *granted) = shown;
                }
            }
            Action::GetRequest | Action::BackMerge | Action::FrontMerge => in_submit = false,
            Action::Plug => filled = true,
            Action::UnplugTimer => filled = false,
            Action::Unplug => {
                filled = false;
                if !is_own_flush(rest, events) {
                    steps[i].what = What::FinishPlug;
                }
            }
            Action::Issue if !with_scheduler && filled && !in_submit => {
                filled = false;
                if !is_own_flush(rest, events) {
                    steps[i].what = What::FinishPlug;
                }
            }
            _ => {}
        }
    }
}

/// Whether a bio was plugged and when its last request was granted, by the
/// task's events up to its next bio.
fn until_next_bio(
    rest: &[usize],
    events: &[Event],
    mut filled: bool,
) -> (Option<bool>, Option<Time>) {
    let (mut plugged, mut granted) = (None, None);
    let own = rest.iter().map(|&i| &events[i]);
    for e in own.take_while(|e| e.action != Action::Queue) {
        match e.action {
            Action::GetRequest => {
                granted = Some(e.time);
                plugged = plugged.or((!filled).then_some(false));
            }
            Action::Plug => plugged = Some(true),
            Action::Unplug | Action::UnplugTimer => filled = false,
            _ => {}
        }
    }
    (plugged, granted)
}

/// Whether the block layer emptied the plug to go on with it: P without a new
/// bio.
fn is_own_flush(rest: &[usize], events: &[Event]) -> bool {
    let actions = rest.iter().map(|&i| events[i].action);
    let mut next = actions.filter(|a| matches!(a, Action::Queue | Action::Plug));
    next.next() == Some(Action::Plug)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines `time action pid [rwbs sector nr_sectors]`.
    fn recording(text: &str, with_scheduler: bool) -> Recording {
        let mut recorder = Recorder::default();
        for line in text.lines() {
            let f: Vec<&str> = line.split_whitespace().collect();
            let number = |i: usize| f.get(i).map_or(0, |t| t.parse::<u64>().expect(line));
            let rwbs = match f.get(3) {
                Some(&"RS") => Rwbs::READ.with(Rwbs::SYNC),
                Some(&"W") => Rwbs::WRITE,
                _ => Rwbs::NONE,
            };
            recorder.event(&Event {
                time: Time(number(0)),
                sector: number(4),
                arg: 0,
                bytes: 512 * number(5) as u32,
                pid: number(2) as Pid,
                dev: blklab_types::Dev::default(),
                from_dev: blklab_types::Dev::default(),
                error: 0,
                cpu: 0,
                rwbs,
                action: Action::from_letters(f[1]).expect(line),
            });
        }
        recorder.finish(with_scheduler)
    }

    fn plugged(r: &Recording) -> Vec<Option<bool>> {
        let submits = r.steps.iter().filter_map(|s| match s.what {
            What::Submit { plugged, .. } => Some(plugged),
            _ => None,
        });
        submits.collect()
    }

    fn ends(r: &Recording) -> Vec<u64> {
        let ends = r.steps.iter().filter(|s| s.what == What::FinishPlug);
        ends.map(|s| s.time.0).collect()
    }

    #[test]
    fn a_plug_is_open_from_the_bio_before_p_to_u() {
        let r = recording(
            "0 Q 9 RS 0 8\n1 G 9 RS 0 8\n2 P 9\n3 Q 9 RS 8 8\n4 M 9 RS 8 8\n5 Q 9 RS 80 8\n\
             6 G 9 RS 80 8\n7 U 9\n8 I 9 RS 0 16\n9 D 9 RS 0 16\n10 C 0 RS 0 16\n\
             11 Q 9 RS 800 8\n12 G 9 RS 800 8\n13 I 9 RS 800 8\n14 D 37 RS 800 8",
            true,
        );
        assert_eq!(plugged(&r), [Some(true), None, None, Some(false)]);
        assert_eq!(ends(&r), [7]);
        assert_eq!(r.submitters, [9]);
        assert_eq!(r.dispatches.len(), 2);
        assert_eq!(r.steps.last().unwrap().what, What::Issue);
    }

    #[test]
    fn a_flush_of_a_full_plug_is_no_end_of_it() {
        let r = recording(
            "0 Q 9 W 0 2048\n1 X 9 W 0 1024\n2 G 9 W 0 1024\n3 P 9\n4 G 9 W 1024 1024\n5 U 9\n\
             6 I 9 W 0 1024\n7 D 9 W 0 1024\n8 P 9\n9 UT 9\n10 I 9 W 1024 1024",
            true,
        );
        assert_eq!(plugged(&r), [Some(true)]);
        assert!(ends(&r).is_empty());
        assert_eq!(r.steps[9].what, What::Sleep);
        let What::Submit { granted, .. } = r.steps[0].what else {
            panic!("not a bio")
        };
        assert_eq!(granted, Some(Time(4)), "of the last request");
    }

    #[test]
    fn without_a_scheduler_the_plug_ends_at_the_next_hand_over() {
        let text = "0 Q 9 RS 0 8\n1 G 9 RS 0 8\n2 P 9\n3 Q 9 RS 80 8\n4 G 9 RS 80 8\n\
                    5 D 9 RS 80 8\n6 D 9 RS 0 8\n7 Q 9 RS 0 8\n8 G 9 RS 0 8\n9 D 9 RS 0 8";
        let r = recording(text, false);
        assert_eq!(plugged(&r), [Some(true), None, Some(false)]);
        assert_eq!(ends(&r), [5]);
        assert!(ends(&recording(text, true)).is_empty());
    }
}
