// SPDX-License-Identifier: MIT OR Apache-2.0
//! What follows from a trace and what does not, by the kinds of events that it
//! has, that its recorder writes down, and that were lost.

use crate::findings::counted;
use blklab_trace::{Action, Actions, Event, KernelEvent, POINTS, Rwbs, TraceSink};
use std::collections::BTreeMap;

/// What a trace has, counted.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    counts: [u64; Action::ALL.len() + 1],
    /// Q of no process.
    nr_nobody: u64,
    /// Q, D and C that have a length.
    nr_with_data: u64,
    nr_flushes: u64,
    nr_errors: u64,
    /// Events of other parts of the kernel, by name.
    beside: BTreeMap<&'static str, u64>,
}

impl TraceSink for Scope {
    fn event(&mut self, event: &Event) {
        self.counts[event.action as usize] += 1;
        let is_queue = event.action == Action::Queue;
        self.nr_nobody += u64::from(is_queue && event.pid == 0);
        self.nr_with_data += u64::from(event.bytes > 0);
        self.nr_flushes += u64::from(event.rwbs.has(Rwbs::FLUSH));
        self.nr_errors += u64::from(event.error != 0);
    }

    fn kernel_event(&mut self, event: &KernelEvent) {
        *self.beside.entry(event.point.name()).or_default() += 1;
    }

    fn message(&mut self, _: &Event, _: &str) {
        self.counts[Action::Message as usize] += 1;
    }
}

/// What makes all that follows uncertain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// Events that the recorder lost.
    pub lost: u64,
    /// Events or passages that whoever showed the trace left out.
    pub left_out: u64,
    /// Events without a time of their own.
    pub untimed: u64,
    /// Events that are given behind later ones.
    pub backwards: u64,
    /// Places where the trace is damaged.
    pub damaged: u64,
    /// The format cannot say that the recorder lost something.
    pub losses_unsaid: bool,
}

/// How far something can be concluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// As far as a trace can show it.
    Yes,
    /// Of a part, or with a doubt.
    Partly,
    /// Not at all: no statement about it, neither that it was nor that it was not.
    No,
}

impl Known {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Known::Yes => "yes",
            Known::Partly => "partly",
            Known::No => "no",
        }
    }
}

/// What events of other parts of the kernel show, and which of them it takes.
const BESIDE: [(&str, &[&str]); 10] = [
    (
        "which part of a commit takes long (jbd2)",
        &[
            "jbd2_start_commit|jbd2_commit_locking",
            "jbd2_commit_flushing",
            "jbd2_commit_logging",
            "jbd2_end_commit",
        ],
    ),
    (
        "who waits in fsync (ext4)",
        &["ext4_sync_file_enter", "ext4_sync_file_exit"],
    ),
    (
        "waits for room in the journal or log",
        &["jbd2_checkpoint|xfs_log_grant_sleep"],
    ),
    (
        "writers that dirty limits hold back",
        &["balance_dirty_pages"],
    ),
    ("write-back throttling (wbt)", &["wbt_step"]),
    (
        "waits for the log (xfs)",
        &["xfs_log_force|xlog_iclog_wait_on"],
    ),
    (
        "shares of control groups (io.cost)",
        &["iocost_ioc_vrate_adj"],
    ),
    (
        "commands that fail or are tried again",
        &["scsi_dispatch_cmd_done|nvme_complete_rq"],
    ),
    (
        "the driver's own times of commands",
        &[
            "scsi_dispatch_cmd_start|nvme_setup_cmd|ufshcd_command",
            "scsi_dispatch_cmd_done|nvme_complete_rq|ufshcd_command",
        ],
    ),
    (
        "waits for a CPU once the I/O is done",
        &["sched_switch", "sched_wakeup"],
    ),
];

/// Whether something can be concluded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conclusion {
    /// What.
    pub about: &'static str,
    /// Whether.
    pub known: Known,
    /// Why not, or what to mind.
    pub why: String,
}

impl Scope {
    /// How many events of a kind there are.
    pub fn count(&self, action: Action) -> u64 {
        self.counts[action as usize]
    }

    /// The kinds that the trace has.
    pub fn seen(&self) -> Actions {
        let mut seen = Actions::NONE;
        for action in Action::ALL {
            if self.count(action) > 0 {
                seen = seen.with(action);
            }
        }
        seen
    }

    /// What follows from the trace. `recorded` are the kinds that its recorder
    /// writes down, or that were really observed.
    pub fn conclusions(&self, recorded: Actions, doubts: Doubts) -> Vec<Conclusion> {
        let mut all = Vec::new();
        let mut say = |about, (known, why): (Known, String)| {
            all.push(Conclusion { about, known, why });
        };
        let pair = |from, to| self.pair(recorded, from, to);
        say(
            "time of I/Os as a whole (Q to C)",
            pair(Action::Queue, Action::Complete),
        );
        say(
            "time in the device (D to C)",
            pair(Action::Issue, Action::Complete),
        );
        say(
            "time in the scheduler (I to D)",
            pair(Action::Insert, Action::Issue),
        );
        say(
            "time before the device (Q to D)",
            pair(Action::Queue, Action::Issue),
        );
        say(
            "waits for a free request (Q to G, S)",
            pair(Action::Queue, Action::GetRequest),
        );
        say("merges, made and missed (M, F)", self.merges(recorded));
        say(
            "plugging (P, U)",
            self.kind(
                recorded,
                &[Action::Plug, Action::Unplug, Action::UnplugTimer],
            ),
        );
        say(
            "splits (X) and remaps (A)",
            self.kind(recorded, &[Action::Split, Action::Remap]),
        );
        say("requeues (R) and errors", self.errors(recorded));
        say("flushes", self.flushes());
        say("who does it", self.processes(recorded));
        say(
            "the scheduler's own messages (m)",
            self.kind(recorded, &[Action::Message]),
        );
        // Who did not ask for these events need not be told what each would show.
        if !self.beside.is_empty() {
            for (about, needs) in BESIDE {
                say(about, self.beside(needs));
            }
        }
        say("that something is absent", absence(doubts));
        all
    }

    /// How many events of other parts of the kernel there are, by name, in the order of
    /// [`POINTS`].
    pub fn kernel_events(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |name| self.beside.get(name).map(|nr| (name, *nr));
        POINTS.iter().filter_map(move |p| count(p.name))
    }

    /// What events of other parts of the kernel show, where all of them must be there, or of
    /// those with `|` between one.
    fn beside(&self, needs: &[&str]) -> (Known, String) {
        let is_there = |need: &&&str| need.split('|').any(|n| self.beside.contains_key(n));
        let missing = || needs.iter().filter(|need| !is_there(need));
        let shown: Vec<&str> = missing().filter_map(|n| n.split('|').next()).collect();
        match shown.len() {
            0 => (Known::Yes, String::new()),
            nr if nr < needs.len() => (Known::Partly, format!("no {}", shown.join(", no "))),
            // What is rare is absent where nothing happened, too.
            1 if self.has_part_of(shown[0]) => (
                Known::Partly,
                "none seen: none happened, or none recorded".to_owned(),
            ),
            _ => (Known::No, format!("no {}", shown.join(", no "))),
        }
    }

    /// Whether there are other events of the part of the kernel that has this one.
    fn has_part_of(&self, name: &str) -> bool {
        let part = |name: &str| POINTS.iter().find(|p| p.name == name).map(|p| p.part);
        self.beside.keys().any(|other| part(other) == part(name))
    }

    /// The time between two kinds of events.
    fn pair(&self, recorded: Actions, from: Action, to: Action) -> (Known, String) {
        let missing: Vec<&str> = [from, to]
            .into_iter()
            .filter(|action| self.count(*action) == 0 || !recorded.has(*action))
            .map(Action::letters)
            .collect();
        if !missing.is_empty() {
            return (Known::No, format!("no {}", missing.join(", no ")));
        }
        let (begun, ended) = (self.count(from), self.count(to));
        let share = begun.min(ended) as f64 / begun.max(ended) as f64;
        // Merging and splitting make them differ, not by such numbers.
        if share < 0.05 {
            let (from, to) = (from.letters(), to.letters());
            return (Known::Partly, format!("{begun} {from}, {ended} {to}"));
        }
        (Known::Yes, String::new())
    }

    /// Something that the events of these kinds show.
    fn kind(&self, recorded: Actions, kinds: &[Action]) -> (Known, String) {
        let nr: u64 = kinds.iter().map(|action| self.count(*action)).sum();
        if !kinds.iter().any(|action| recorded.has(*action)) {
            return (Known::No, "not recorded".to_owned());
        }
        if nr == 0 {
            return (
                Known::Partly,
                "none seen: none happened, or none recorded".to_owned(),
            );
        }
        (Known::Yes, String::new())
    }

    fn merges(&self, recorded: Actions) -> (Known, String) {
        let (known, why) = self.kind(recorded, &[Action::BackMerge, Action::FrontMerge]);
        if known == Known::Partly && self.count(Action::Queue) == 0 {
            return (
                Known::No,
                "no Q, no M: what was merged cannot be seen".to_owned(),
            );
        }
        (known, why)
    }

    fn errors(&self, recorded: Actions) -> (Known, String) {
        if self.count(Action::Complete) == 0 || !recorded.has(Action::Complete) {
            return (Known::No, "no C".to_owned());
        }
        match (self.nr_errors, recorded.has(Action::Requeue)) {
            (_, false) => (Known::Partly, "neither is recorded here".to_owned()),
            (0, true) => (Known::Yes, "no error".to_owned()),
            (nr, true) => (Known::Yes, counted(nr, "events with an error")),
        }
    }

    fn flushes(&self) -> (Known, String) {
        match self.nr_flushes {
            0 => (Known::Partly, "none seen: a tool may hide them".to_owned()),
            nr => (Known::Yes, counted(nr, "events")),
        }
    }

    fn processes(&self, recorded: Actions) -> (Known, String) {
        let nr_queued = self.count(Action::Queue);
        if nr_queued > 0 && self.nr_nobody < nr_queued {
            return match self.nr_nobody {
                0 => (Known::Yes, String::new()),
                nr => (
                    Known::Partly,
                    format!("{nr} of {nr_queued} Q without a process"),
                ),
            };
        }
        if nr_queued == 0 && recorded.has(Action::Queue) {
            return (Known::Partly, "no Q: only who dispatched".to_owned());
        }
        (Known::No, "no process is recorded".to_owned())
    }
}

fn absence(doubts: Doubts) -> (Known, String) {
    let reasons = [
        (doubts.lost, "events lost"),
        (doubts.left_out, "left out"),
        (doubts.damaged, "places damaged"),
        (doubts.untimed, "without a time"),
        (doubts.backwards, "out of order"),
    ];
    let said: Vec<String> = reasons
        .iter()
        .filter(|(nr, _)| *nr > 0)
        .map(|(nr, what)| counted(*nr, what))
        .collect();
    if said.is_empty() && doubts.losses_unsaid {
        return (
            Known::Partly,
            "the format does not say what was lost".to_owned(),
        );
    }
    if said.is_empty() {
        return (Known::Yes, String::new());
    }
    (Known::No, said.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_types::{Dev, Time};

    fn scope(letters: &str, pid: u32) -> Scope {
        let mut scope = Scope::default();
        for letter in letters.split(' ') {
            scope.event(&Event {
                time: Time(1),
                sector: 8,
                arg: 0,
                bytes: 4096,
                pid,
                dev: Dev::default(),
                from_dev: Dev::default(),
                error: 0,
                cpu: 0,
                rwbs: Rwbs::READ,
                action: Action::from_letters(letter).expect("a letter"),
            });
        }
        scope
    }

    fn check(scope: &Scope, recorded: Actions, doubts: Doubts, about: &str, expected: &str) {
        let all = scope.conclusions(recorded, doubts);
        let found = all
            .iter()
            .find(|c| c.about.contains(about))
            .expect("a subject");
        assert_eq!(
            format!("{} {}", found.known.word(), found.why).trim_end(),
            expected
        );
    }

    #[test]
    fn what_other_parts_of_the_kernel_show() {
        use blklab_trace::{CommitStep, Tracepoint};
        let mut scope = scope("Q D C", 7);
        let about_commits = |scope: &Scope| {
            let all = scope.conclusions(Actions::ALL, Doubts::default());
            let found = all.iter().find(|c| c.about.contains("jbd2"));
            found.map(|c| (c.known, c.why.clone()))
        };
        assert_eq!(about_commits(&scope), None);
        for step in [CommitStep::Start, CommitStep::Flushing, CommitStep::End] {
            scope.kernel_event(&KernelEvent {
                time: Time(2),
                pid: 9,
                dev: Dev::default(),
                cpu: 0,
                point: Tracepoint::Commit { step, tid: 1 },
            });
        }
        let partly = (Known::Partly, "no jbd2_commit_logging".to_owned());
        assert_eq!(about_commits(&scope), Some(partly));
        check(
            &scope,
            Actions::ALL,
            Doubts::default(),
            "fsync",
            "no no ext4_sync_file_enter, no ext4_sync_file_exit",
        );
        check(
            &scope,
            Actions::ALL,
            Doubts::default(),
            "room in the journal",
            "partly none seen: none happened, or none recorded",
        );
        assert_eq!(scope.kernel_events().count(), 3);
    }

    #[test]
    fn what_follows() {
        let whole = scope("Q G I D C", 7);
        let of_whole = |about, expected| {
            check(&whole, Actions::ALL, Doubts::default(), about, expected);
        };
        of_whole("Q to C", "yes");
        of_whole("I to D", "yes");
        of_whole(
            "plugging",
            "partly none seen: none happened, or none recorded",
        );
        of_whole("who does", "yes");
        of_whole("absent", "yes");
        // biosnoop: Q only carries the process.
        let observed = Actions::new(&[Action::Issue, Action::Complete]);
        let snoop = scope("Q D C", 7);
        let of_snoop =
            |about, expected| check(&snoop, observed, Doubts::default(), about, expected);
        of_snoop("D to C", "yes");
        of_snoop("Q to C", "no no Q");
        of_snoop("Q to G", "no no Q, no G");
        of_snoop("merges", "no not recorded");
        of_snoop("who does", "yes");
        // D alone, with holes.
        let doubts = Doubts {
            left_out: 29,
            ..Doubts::default()
        };
        let issues = scope("D D", 7);
        check(&issues, Actions::ALL, doubts, "D to C", "no no C");
        check(&issues, Actions::ALL, doubts, "absent", "no 29 left out");
        check(
            &issues,
            Actions::ALL,
            doubts,
            "merges",
            "no no Q, no M: what was merged cannot be seen",
        );
    }
}
