// SPDX-License-Identifier: MIT OR Apache-2.0
//! One line of tracepoints, taken apart.

use super::frames::frame;
use super::head::{self, Head};
use super::traced::{Traced, Unnumbered};
use crate::blkparse::{Details, details};
use crate::kernel::{self, TextFields};
use crate::lttng;
use crate::plausible;
use crate::text::{
    Dialect, Line, Problem, Rest, decimal, device, error, length, rwbs, unquoted, without_content,
};
use crate::tracepoints::{Kind, Kinds, place};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Dev, Time};

/// Lines of tracepoints.
#[derive(Debug, Default)]
pub(crate) struct Ftrace {
    kinds: Kinds,
    /// For lines without one.
    last_time: Time,
    /// Tasks that lines name without their number.
    unnumbered: Unnumbered,
}

impl Dialect for Ftrace {
    fn parse<'a>(&mut self, line: &'a [u8]) -> Line<'a> {
        let line = unquoted(line);
        if let Some(said) = without_content(line) {
            return said;
        }
        if line.starts_with(b"#") {
            return overwritten(line);
        }
        if let Some(lost) = lost(line) {
            return Line::Lost(lost);
        }
        if is_note(line) {
            return Line::Note {
                begins_summary: false,
            };
        }
        if let Some(said) = frame(line) {
            return said;
        }
        let parsed = self.event(line).unwrap_or_else(Line::from);
        match &parsed {
            Line::Event { event, .. } => {
                self.last_time = event.time;
                self.kinds.saw(event);
            }
            Line::Kernel { event, .. } => self.last_time = event.time,
            _ => {}
        }
        parsed
    }
}

impl Ftrace {
    fn event<'a>(&mut self, line: &'a [u8]) -> Result<Line<'a>, Problem> {
        let mut rest = Rest(line);
        let Some(head) = head::strict(&mut rest) else {
            return self.event_without_head(line);
        };
        if !plausible::is_time(head.time) {
            return Err(Problem::Damaged(plausible::BAD_TIME));
        }
        let mut word = rest.word();
        if decimal(word).is_some() {
            // How many times the event happened since the last: perf's period.
            word = rest.word();
        }
        if let Some(dev) = device(word) {
            return Ok(traced(&head, dev, &mut rest));
        }
        if word == b"<stack" {
            return Ok(stack(&head));
        }
        let Some(name) = word.strip_suffix(b":").filter(|name| !name.is_empty()) else {
            let problem = "no event behind the time";
            return Err(match word {
                [] => Problem::Incomplete(problem),
                _ => Problem::Damaged(problem),
            });
        };
        // perf says which part of the kernel it is from.
        let name = name.rsplit(|b| *b == b':').next().unwrap_or(name);
        Ok(self
            .named(&head, name, rest)
            .unwrap_or(Line::Incomplete("what follows the event does not fit it")))
    }

    /// An event by its name; none if what follows does not fit.
    fn named<'a>(
        &mut self,
        head: &Head<'a>,
        name: &'a [u8],
        mut rest: Rest<'a>,
    ) -> Option<Line<'a>> {
        if name == b"kernel_stack" {
            return Some(stack(head));
        }
        let Some(kind) = self.kinds.kind(name) else {
            return other(head, name, rest.0);
        };
        if let Kind::Plug(action) = kind {
            let Some(dev) = self.kinds.plugged(head.pid) else {
                return Some(Line::OtherEvent(name));
            };
            let mut event = blank(head, dev, Rwbs::NONE, action);
            let details = details(&mut rest, &mut event)?;
            return Some(whole(head, event, details.is_whole));
        }
        let by_place = fields(head, kind, &mut Rest(rest.0));
        let (event, is_whole) = by_place.or_else(|| self.named_fields(head, kind, rest.0))?;
        Some(whole(head, event, is_whole))
    }

    /// The fields of an event that are shown by their names: `dev=8388608 sector=8 …`, which
    /// is how programs that lack the kernel's own form print them.
    fn named_fields(&self, head: &Head<'_>, kind: Kind, text: &[u8]) -> Option<(Event, bool)> {
        let fields = TextFields(text);
        let (time, cpu, pid) = (head.time, head.cpu, head.pid);
        let event = lttng::event(kind, time, cpu, pid, &fields, &self.kinds)?;
        Some((event, true))
    }

    /// An event as `perf trace` prints it.
    fn traced_fields<'a>(
        &mut self,
        head: &Head<'a>,
        name: &[u8],
        fields: &Traced<'a>,
    ) -> Option<Line<'a>> {
        let kind = self.kinds.kind(name)?;
        let (time, cpu, pid) = (head.time, head.cpu, head.pid);
        let event = lttng::event(kind, time, cpu, pid, fields, &self.kinds)?;
        Some(whole(head, event, true))
    }

    /// An event of the block layer of which a quotation leaves out the CPU, or
    /// the time, or all that stands in front.
    fn event_without_head<'a>(&mut self, line: &'a [u8]) -> Result<Line<'a>, Problem> {
        let other = Problem::Other("no event, as in fio-1234 [000] 56.789012: EVENT: ...");
        let Some((at, name, rest)) = tracepoint(line) else {
            return Err(other);
        };
        let mut head = head::loose(&line[..at], self.last_time);
        if !plausible::is_time(head.time) {
            return Err(Problem::Damaged(plausible::BAD_TIME));
        }
        if rest.is_traced {
            let fields = Traced::new(rest.fields);
            self.unnumbered.name(&mut head, &fields);
            return self.traced_fields(&head, name, &fields).ok_or(other);
        }
        let rest = Rest(rest.fields);
        match self.named(&head, name, rest) {
            Some(line @ Line::Event { .. }) => Ok(line),
            _ => Err(other),
        }
    }
}

/// What the lines behind this one belong to.
fn stack<'a>(head: &Head<'_>) -> Line<'a> {
    Line::Stack {
        time: head.time,
        pid: head.pid,
        cpu: head.cpu,
    }
}

/// An event of another part of the kernel; none if what follows its name does not fit.
fn other<'a>(head: &Head<'a>, name: &'a [u8], fields: &'a [u8]) -> Option<Line<'a>> {
    let Some(said) = kernel::decode(name, &TextFields(fields)) else {
        return Some(Line::OtherEvent(name));
    };
    Some(Line::Kernel {
        event: kernel::event(head.time, head.pid, head.cpu, said?),
        comm: head.known_comm(),
        has_time: head.has_time,
    })
}

/// What stands behind the name of an event.
struct Behind<'a> {
    fields: &'a [u8],
    /// In parentheses, as `perf trace` prints them.
    is_traced: bool,
}

/// The name of a tracepoint of the block layer with a colon, where it stands, and
/// what follows.
fn tracepoint(line: &[u8]) -> Option<(usize, &[u8], Behind<'_>)> {
    let marker = b"block_";
    let mut at = 0;
    loop {
        at += line[at..].windows(marker.len()).position(|w| w == marker)?;
        let len = line[at..]
            .iter()
            .take_while(|b| b.is_ascii_lowercase() || **b == b'_')
            .count();
        let (name, behind) = line[at..].split_at(len);
        // perf has the name of the system in front.
        let start = match line[..at].strip_suffix(b"block:") {
            Some(before) => before.len(),
            None => at,
        };
        let begins = start == 0 || line[start - 1].is_ascii_whitespace();
        // perf trace has the fields in parentheses.
        let fields = match behind {
            [b':', fields @ ..] => Some((fields, false)),
            [b'(', fields @ ..] if fields.starts_with(b"dev:") => Some((fields, true)),
            _ => None,
        };
        if let Some((fields, is_traced)) = fields.filter(|_| begins) {
            return Some((start, name, Behind { fields, is_traced }));
        }
        at += len;
    }
}

/// How many entries were overwritten before the trace was read, which its header
/// says.
fn overwritten(comment: &[u8]) -> Line<'_> {
    let marker = b"entries-in-buffer/entries-written:";
    let at = comment.windows(marker.len()).position(|w| w == marker);
    let lost = at.and_then(|at| {
        let mut rest = Rest(&comment[at + marker.len()..]);
        let there = rest.number()?;
        let written = rest.take(b'/').then(|| rest.number())??;
        written.checked_sub(there).filter(|lost| *lost > 0)
    });
    lost.map_or(
        Line::Note {
            begins_summary: false,
        },
        Line::Lost,
    )
}

/// `CPU:3 [LOST 17 EVENTS]`, or trace-cmd's `CPU:3 [17 EVENTS DROPPED]`; one if
/// it does not say how many.
fn lost(line: &[u8]) -> Option<u64> {
    let text = line.strip_prefix(b"CPU:")?;
    let says = |word: &[u8]| text.windows(word.len()).any(|w| w == word);
    if !(says(b"LOST") || says(b"DROPPED")) {
        return None;
    }
    let inside = text.split(|b| *b == b'[').nth(1)?;
    let digits = inside.split(|b| !b.is_ascii_digit());
    Some(digits.filter_map(decimal).next().unwrap_or(1))
}

/// What trace-cmd says about the trace.
fn is_note(line: &[u8]) -> bool {
    line.starts_with(b"cpus=")
        || line.starts_with(b"version = ")
        || line.starts_with(b"CPU ") && line.ends_with(b" is empty")
}

/// A line of the tracer `blk`: what blkparse shows from the action on.
fn traced<'a>(head: &Head<'a>, dev: Dev, rest: &mut Rest<'a>) -> Line<'a> {
    let letters = std::str::from_utf8(rest.word()).unwrap_or_default();
    let Some(action) = Action::from_letters(letters) else {
        return Line::Damaged("unknown action");
    };
    let flags = rest.word();
    let Some(rwbs) = rwbs(flags) else {
        return Line::Damaged("unknown letter in RWBS");
    };
    let mut event = blank(head, dev, rwbs, action);
    if action == Action::Message {
        let text = rest.0.strip_prefix(b" ").unwrap_or(rest.0);
        return Line::Message { event, text };
    }
    match details(rest, &mut event) {
        Some(Details { is_whole, .. }) => whole(head, event, is_whole),
        None => Line::Incomplete("what follows RWBS does not fit the action"),
    }
}

/// Reads the fields of an event; says whether all were there.
fn fields(head: &Head<'_>, kind: Kind, rest: &mut Rest<'_>) -> Option<(Event, bool)> {
    let dev = device(rest.word())?;
    let flags = rwbs(rest.word())?;
    let (Kind::Bio(action) | Kind::Request(action) | Kind::Done(action) | Kind::Plug(action)) =
        kind;
    let mut event = blank(head, dev, flags, action);
    let bytes = match kind {
        Kind::Bio(_) | Kind::Plug(_) => {
            let details = details(rest, &mut event)?;
            return Some((event, details.is_whole));
        }
        Kind::Request(_) => u32::try_from(rest.number()?).ok()?,
        Kind::Done(_) => 0,
    };
    rest.bracketed_first(b'(', b')')?;
    let sector = rest.number()?;
    if !rest.take(b'+') {
        return None;
    }
    let length = length(rest.number()?)?;
    place(&mut event, sector, length, bytes);
    // From 6.18 on the priority follows: class, hint and level.
    let last = rest.0.iter().rposition(|b| *b == b'[')?;
    rest.0 = &rest.0[last..];
    let bracketed = rest.bracketed(b'[', b']')?;
    if action == Action::Complete && matches!(kind, Kind::Done(_)) {
        event.error = error(bracketed)?;
    }
    Some((event, true))
}

/// An event, with the name of its process if it says it.
fn whole<'a>(head: &Head<'a>, event: Event, is_whole: bool) -> Line<'a> {
    Line::Event {
        event,
        sequence: None,
        comm: head.known_comm(),
        has_time: head.has_time,
        is_whole,
    }
}

fn blank(head: &Head<'_>, dev: Dev, rwbs: Rwbs, action: Action) -> Event {
    Event {
        time: head.time,
        sector: 0,
        arg: 0,
        bytes: 0,
        pid: head.pid,
        dev,
        from_dev: Dev::default(),
        error: 0,
        cpu: head.cpu,
        rwbs,
        action,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The event of a line, and the name of its process.
    fn read(line: &str) -> (String, Option<String>) {
        match Ftrace::default().parse(line.as_bytes()) {
            Line::Event { event, comm, .. } => (
                event.to_string(),
                comm.map(|comm| String::from_utf8_lossy(comm).into_owned()),
            ),
            other => (format!("{other:?}"), None),
        }
    }

    fn check(line: &str, expected: &str, comm: Option<&str>) {
        assert_eq!(
            read(line),
            (expected.to_owned(), comm.map(str::to_owned)),
            "{line}"
        );
    }

    #[test]
    fn requests() {
        check(
            "           dd-3014    [000] .N...  1918.939253: block_rq_issue: 252,2 WS 524288 () 0 + 1024 be,0,4 [dd]",
            "252,2 0 1918.939253000 3014 D WS 0 + 1024",
            Some("dd"),
        );
        check(
            "> <idle>-0       [009] d.h1.  4148.129864: block_rq_complete: 259,0 WFSU () 768 + 32 none,0,0 [0]",
            "259,0 9 4148.129864000 0 C WFS 768 + 32",
            None,
        );
        check(
            "<idle>-0     [007] d.s. 19654.923576: block_rq_complete: 8,0 WS () 0 + 0 [-5]",
            "8,0 7 19654.923576000 0 C WS 0 + 0 [5]",
            None,
        );
        check(
            "kworker/7:1H-250   [007] .... 19654.923352: block_rq_issue: 8,0 FF 0 () 18446744073709551615 + 0 [kworker/7:1H]",
            "8,0 7 19654.923352000 250 D FN 0 + 0",
            Some("kworker/7:1H"),
        );
        check(
            "a b-c-17  (   99) [001] d..1 5.000001: block_rq_insert: 8,0 R 4096 () 8 + 8 [a [b] c]",
            "8,0 1 5.000001000 17 I R 8 + 8",
            Some("a b-c"),
        );
        // An older perf, nanoseconds, and a passed-through command.
        check(
            "fio  11/12 [003] 7.123456789: block:block_rq_requeue: 8,0 R () 8 + 8 0x2,0,4 [0]",
            "8,0 3 7.123456789 12 R R 8 + 8",
            Some("fio"),
        );
        check(
            "smartd 12 [003] 7.1: block:block_rq_issue: 8,0 N 512 (85 08) 0 + 0 [smartd]",
            "8,0 3 7.100000000 12 D N 0 + 1",
            Some("smartd"),
        );
    }

    #[test]
    fn bios() {
        for (fields, expected) in [
            ("block_bio_queue: 8,0 FWS 0 + 0 [rep]", "Q FWS 0 + 0"),
            ("block_bio_backmerge: 8,0 R 8 + 8 [rep]", "M R 8 + 8"),
            ("block_bio_complete: 8,0 R 8 + 8 [0]", "C R 8 + 8"),
            ("block_split: 8,0 R 8 / 16 [rep]", "X R 8 + 8 -> 16"),
            (
                "block_bio_remap: 8,0 R 71 + 8 <- (8,1) 8",
                "A R 71 + 8 -> 8",
            ),
            (
                "block_rq_remap: 8,0 R 71 + 8 <- (8,1) 8 1",
                "A R 71 + 8 -> 8",
            ),
            // The tracer blk.
            ("  8,0    Q   R 8 + 8 [rep]", "Q R 8 + 8"),
            ("  8,0    C   R 8 + 8 [0]", "C R 8 + 8"),
        ] {
            let line = format!("rep-9 [000] .... 1.5: {fields}");
            let expected = format!("8,0 0 1.500000000 9 {expected}");
            check(&line, &expected, Some("rep"));
        }
    }

    #[test]
    fn events_that_say_what_others_said() {
        let mut dialect = Ftrace::default();
        let mut kind = |fields: &str| {
            let line = format!("a-9 [000] .... 1.5: {fields}");
            match dialect.parse(line.as_bytes()) {
                Line::Event { event, .. } => event.action.letters(),
                Line::OtherEvent(_) => "other",
                Line::Kernel { event, .. } => event.point.name(),
                line => panic!("{line:?}"),
            }
        };
        let start = "block_io_start: 8,0 R 4096 () 8 + 8 [a]";
        let done = "block_io_done: 8,0 R 4096 () 8 + 8 [a]";
        assert_eq!((kind(start), kind(done)), ("G", "C"));
        assert_eq!(kind("block_getrq: 8,0 R 8 + 8 [a]"), "G");
        assert_eq!(kind("block_rq_complete: 8,0 R () 8 + 8 [0]"), "C");
        assert_eq!((kind(start), kind(done)), ("other", "other"));
        assert_eq!(kind("block_rq_error: 8,0 R () 8 + 8 [-5]"), "other");
        // Since a task that was given a request.
        assert_eq!(
            (kind("block_plug: [a]"), kind("block_unplug: [a] 1")),
            ("P", "U")
        );
        let logging = "jbd2_commit_logging";
        assert_eq!(kind(&format!("{logging}: dev 8,1 transaction 5")), logging);
        assert_eq!(kind("ext4_evict_inode: dev 8,1 ino 12 nlink 0"), "other");
    }

    #[test]
    fn lines_that_are_no_events() {
        let parse = |line: &'static str| Ftrace::default().parse(line.as_bytes());
        let note = Line::Note {
            begins_summary: false,
        };
        assert_eq!(parse("# tracer: nop"), note);
        let header = "# entries-in-buffer/entries-written: 100/250   #P:4";
        assert_eq!(parse(header), Line::Lost(150));
        let header = "# entries-in-buffer/entries-written: 100/100   #P:4";
        assert_eq!(parse(header), note);
        assert_eq!(parse("CPU:3 [LOST 17 EVENTS]"), Line::Lost(17));
        assert_eq!(parse("CPU:3 [17 EVENTS DROPPED]"), Line::Lost(17));
        assert_eq!(parse("CPU:3 [EVENTS DROPPED]"), Line::Lost(1));
        assert_eq!(parse("cpus=8"), note);
        assert_eq!(parse("..."), Line::Elided);
        assert_eq!(parse(">  "), Line::Blank);
        assert!(matches!(parse("Hello,"), Line::Other(_)));
        assert!(matches!(parse("a-9 [000] .... 1.5:"), Line::Incomplete(_)));
        // No task of which the device is known.
        assert_eq!(
            parse("a-9 [000] .... 1.5: block_plug: [a]"),
            Line::OtherEvent(b"block_plug")
        );
        assert!(matches!(
            parse("a-9 [000] .... 1.5: block_rq_issue:"),
            Line::Incomplete(_)
        ));
        assert!(matches!(
            parse("a-9 [000] .... 9999999999999.5: block_rq_issue:"),
            Line::Damaged(_)
        ));
    }

    /// perf without the CPU, and what people leave out.
    #[test]
    fn heads_of_all_kinds() {
        let fields = "block_rq_issue: 8,0 R 4096 () 8 + 8 [fio]";
        let fio = Some("fio");
        let with = |head: &str| format!("{head}{fields}");
        let named = "8,0 0 7.123456000 12 D R 8 + 8";
        check(&with("fio 12 7.123456: block:"), named, fio);
        check(
            &with("fio    12/13 7.123456: "),
            &named.replace("12 D", "13 D"),
            fio,
        );
        check(&with("7.123456: "), &named.replace("12 D", "0 D"), None);
        check(
            &with("fio-12 [003] "),
            "8,0 3 0.000000000 12 D R 8 + 8",
            fio,
        );
        check(&with(""), "8,0 0 0.000000000 0 D R 8 + 8", None);
        let other = |line: &str| {
            let line = Ftrace::default().parse(line.as_bytes());
            matches!(line, Line::Other(_))
        };
        assert!(other("see block_rq_issue: it fires") && other("block_rq_issue() fires"));
        assert!(other("+ trace_block_rq_issue: 8,0 R 4096 () 8 + 8 [fio]"));
        assert!(other("one more tracepoint: block_rq_issue") && other("block_rq_issue("));
    }
}
