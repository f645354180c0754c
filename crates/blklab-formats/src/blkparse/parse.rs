// SPDX-License-Identifier: MIT OR Apache-2.0
//! One line of blkparse text, taken apart.

use crate::plausible;
use crate::text::{
    Io, Line, Problem, Rest, decimal, device, error, is_priority, length, rwbs, time, unquoted,
    without_content,
};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Dev, Time};

/// Takes a line apart; one without a time has that of the event before. Where the lines of
/// D were left out (`lacks_issue`), a C that says how long ago its D was stands for both.
pub(super) fn parse(line: &[u8], last_time: Time, lacks_issue: bool) -> Line<'_> {
    let line = unnumbered(unquoted(line));
    if let Some(said) = without_content(line) {
        return said;
    }
    if line.starts_with(b"#") || line.starts_with(b"Input file ") {
        return Line::Note {
            begins_summary: false,
        };
    }
    let begins_summary = line.starts_with(b"CPU") && line.ends_with(b"):")
        || line.starts_with(b"Total (")
        || line.starts_with(b"Throughput (");
    if begins_summary {
        return Line::Note { begins_summary };
    }
    match event(line, last_time, lacks_issue) {
        Ok(event) => event,
        Err(Problem::Other(problem)) => {
            behind_words(line, lacks_issue).unwrap_or(Line::Other(problem))
        }
        Err(problem) => problem.into(),
    }
}

/// A whole event, with its time, behind words that a script or `grep` puts in front of it:
/// `c 1024 -- 9,10 …`, `trace.txt:12: 8,0 …`.
#[cold]
fn behind_words(line: &[u8], lacks_issue: bool) -> Option<Line<'_>> {
    let begins_word = |at: &usize| {
        line[*at].is_ascii_digit() && matches!(line[at - 1], b' ' | b'\t' | b':' | b'"' | b'\'')
    };
    let starts = (1..line.len()).filter(begins_word).map(|at| &line[at..]);
    let devices = starts.filter(|rest| device(Rest(rest).word()).is_some());
    let mut events = devices.map(|rest| event(rest, Time::ZERO, lacks_issue));
    events.find_map(|found| {
        let whole = |line: &Line<'_>| match line {
            Line::Event {
                has_time, is_whole, ..
            } => *has_time && *is_whole,
            Line::Io(_) | Line::Message { .. } => true,
            _ => false,
        };
        found.ok().filter(whole)
    })
}

/// The line without a mark and a number that whoever quotes it puts in front of it, and without
/// the mark at its end: `*22   8,0 …`, `*8,0 …*`.
fn unnumbered(line: &[u8]) -> &[u8] {
    let mut line = line;
    if let [b'*', rest @ ..] = line {
        line = rest.strip_suffix(b"*").unwrap_or(rest);
    }
    let mut rest = Rest(line);
    let is_number = decimal(rest.word()).is_some();
    if is_number && device(Rest(rest.0).word()).is_some() {
        line = rest.0.trim_ascii_start();
    }
    line
}

fn event(line: &[u8], last_time: Time, lacks_issue: bool) -> Result<Line<'_>, Problem> {
    let mut rest = Rest(line);
    let dev =
        device(rest.word()).ok_or(Problem::Other("does not begin with a device, as in 8,0"))?;
    let cpu = rest.word();
    let cpu = decimal(cpu)
        .and_then(|n| n.try_into().ok())
        .ok_or(Problem::Other("CPU is not a number"))?;
    let Head {
        sequence,
        time,
        pid,
    } = head(&mut rest)?;
    if time.is_some_and(|t| !plausible::is_time(t)) {
        return Err(Problem::Damaged(plausible::BAD_TIME));
    }
    let mut letters = rest.word();
    if letters.contains(&b',') {
        // The control group: node and generation of its folder.
        letters = rest.word();
    }
    let letters = std::str::from_utf8(letters).unwrap_or_default();
    let action = Action::from_letters(letters).ok_or_else(|| cut(&rest, "unknown action"))?;
    let rwbs = rwbs(rest.word()).ok_or_else(|| cut(&rest, "unknown letter in RWBS"))?;
    let mut event = Event {
        time: time.map_or(last_time, before_zero),
        sector: 0,
        arg: 0,
        bytes: 0,
        pid,
        dev,
        from_dev: Dev::default(),
        error: 0,
        cpu,
        rwbs,
        action,
    };
    if action == Action::Message {
        let text = rest.0.strip_prefix(b" ").unwrap_or(rest.0);
        return Ok(Line::Message { event, text });
    }
    Ok(match details(&mut rest, &mut event) {
        Some(Details {
            elapsed_ns: Some(elapsed_ns),
            ..
        }) if time.is_some() && lacks_issue && event.action == Action::Complete => {
            Line::Io(since_issue(event, sequence, elapsed_ns))
        }
        Some(details) => Line::Event {
            event,
            sequence,
            comm: details.comm,
            has_time: time.is_some(),
            is_whole: details.is_whole,
        },
        None => Line::Incomplete("what follows RWBS does not fit the action"),
    })
}

/// D and C of a request, from the C and the time since the D (`log_track_complete`,
/// blkparse.c of blktrace 1.3).
fn since_issue(event: Event, sequence: Option<u32>, elapsed_ns: u64) -> Io<'static> {
    let complete_ns = event.time.0 as i64;
    let elapsed_ns = i64::try_from(elapsed_ns).unwrap_or(i64::MAX);
    let issue_ns = complete_ns.saturating_sub(elapsed_ns);
    let is_believable = plausible::is_time(Time(issue_ns.unsigned_abs()));
    Io {
        event,
        sequence,
        times: [
            None,
            None,
            Some(issue_ns).filter(|_| is_believable),
            Some(complete_ns),
        ],
        comm: None,
        has_time: true,
    }
}

/// What stands between the CPU and the action.
struct Head {
    sequence: Option<u32>,
    time: Option<Time>,
    pid: u32,
}

/// A line that ends where this should be may go on in the next; else it is
/// damaged.
fn cut(rest: &Rest<'_>, problem: &'static str) -> Problem {
    match rest.0.trim_ascii() {
        [] => Problem::Incomplete(problem),
        _ => Problem::Damaged(problem),
    }
}

/// Sequence, time and process. Of the three numbers, whoever quotes a trace may
/// have left out the time, or all but the process.
fn head(rest: &mut Rest<'_>) -> Result<Head, Problem> {
    let first = rest.word();
    // blkparse prints numbers from 2^31 up as negative.
    let number = |word: &[u8]| {
        let text = std::str::from_utf8(word).ok()?;
        text.parse::<i64>().ok().map(|n| n as u32)
    };
    let bad_pid = |rest: &Rest<'_>| cut(rest, "process is not a number");
    let pid = |word: &[u8]| decimal(word).and_then(|n| n.try_into().ok());
    let Some(sequence) = number(first) else {
        let problem = "sequence is not a number";
        let time = time(first).ok_or(match first {
            [] => Problem::Incomplete(problem),
            _ => Problem::Other(problem),
        })?;
        return Ok(Head {
            sequence: None,
            time: Some(time),
            pid: pid(rest.word()).ok_or_else(|| bad_pid(rest))?,
        });
    };
    let before = rest.0;
    let second = rest.word();
    if let Some(time) = time(second) {
        return Ok(Head {
            sequence: Some(sequence),
            time: Some(time),
            pid: pid(rest.word()).ok_or_else(|| bad_pid(rest))?,
        });
    }
    let without_time = |sequence, pid| {
        Ok(Head {
            sequence,
            time: None,
            pid,
        })
    };
    let is_action =
        |word| std::str::from_utf8(word).is_ok_and(|w| Action::from_letters(w).is_some());
    if is_action(second) {
        rest.0 = before;
        return without_time(None, sequence);
    }
    let third = Rest(rest.0).word();
    match pid(second) {
        Some(pid) if is_action(third) => without_time(Some(sequence), pid),
        _ => Err(cut(rest, "time is not SECONDS.NANOSECONDS")),
    }
}

/// The zero of blkparse's times is the first event that it sees. An earlier one
/// of another CPU, which it sees when it shows a trace that is still being
/// recorded, has a negative time in 64 bits, of which the seconds are printed as
/// 32.
fn before_zero(time: Time) -> Time {
    const SECOND_NS: u64 = 1_000_000_000;
    /// The seconds of 2^64 ns, as 32 bits.
    const WRAPPED_S: u64 = (u64::MAX / SECOND_NS) & u32::MAX as u64;
    /// Those that are not in the seconds.
    const REST_NS: u64 = u64::MAX % SECOND_NS + 1;
    /// Further back than any buffer reaches.
    const BACK_S: u64 = 1000;
    let (seconds, ns) = (time.0 / SECOND_NS, time.0 % SECOND_NS);
    if seconds > WRAPPED_S || WRAPPED_S - seconds > BACK_S || seconds == WRAPPED_S && ns >= REST_NS
    {
        return time;
    }
    let back_ns = (WRAPPED_S - seconds) * SECOND_NS + REST_NS - ns;
    Time(back_ns.wrapping_neg())
}

/// What a line says beside the event's fields.
pub(crate) struct Details<'a> {
    /// The process's name.
    pub(crate) comm: Option<&'a [u8]>,
    /// Whether the line ends with what such a line ends with.
    pub(crate) is_whole: bool,
    /// What `-t` shows in parentheses: ns since what happened to the request before.
    pub(crate) elapsed_ns: Option<u64>,
}

/// The part of the line that depends on the action.
pub(crate) fn details<'a>(rest: &mut Rest<'a>, event: &mut Event) -> Option<Details<'a>> {
    let named = |rest: &mut Rest<'a>| {
        let comm = rest.bracketed(b'[', b']');
        let is_whole = comm.is_some();
        Details {
            comm,
            is_whole,
            elapsed_ns: None,
        }
    };
    let unnamed = |is_whole| Details {
        comm: None,
        is_whole,
        elapsed_ns: None,
    };
    match event.action {
        Action::Plug => Some(named(rest)),
        Action::Unplug | Action::UnplugTimer => {
            let comm = rest.bracketed(b'[', b']')?;
            event.arg = rest.number()?;
            Some(Details {
                comm: Some(comm),
                is_whole: true,
                elapsed_ns: None,
            })
        }
        Action::Split => {
            event.sector = rest.number()?;
            if !rest.take(b'/') {
                return None;
            }
            event.arg = rest.number()?;
            if event.arg < event.sector {
                // blkparse prints the lower half.
                event.arg |= event.sector & !u64::from(u32::MAX);
            }
            // The kernel records the length of the part in front.
            let front = event.arg.checked_sub(event.sector);
            event.bytes = front.and_then(length).unwrap_or(0);
            Some(named(rest))
        }
        Action::Remap => {
            extent(rest, event)?;
            // Pages of the web have `&lt;` where it was.
            let text = rest.0.trim_ascii_start();
            rest.0 = text
                .strip_prefix(b"&lt;")
                .or_else(|| text.strip_prefix(b"<"))?;
            if !(rest.take(b'-') && rest.take(b'(')) {
                return None;
            }
            let end = rest.0.iter().position(|b| *b == b')')?;
            event.from_dev = device(&rest.0[..end])?;
            rest.0 = &rest.0[end + 1..];
            event.arg = rest.number()?;
            Some(unnamed(true))
        }
        Action::Complete | Action::Requeue => {
            if !extent(rest, event)? {
                event.rwbs = event.rwbs.with(Rwbs::PC);
            }
            let elapsed_ns = parentheses(rest)?;
            skip_priority(rest);
            let code = rest.bracketed(b'[', b']');
            event.error = error(code.unwrap_or(b"0"))?;
            Some(Details {
                elapsed_ns,
                ..unnamed(code.is_some())
            })
        }
        _ => {
            let sector = rest.number();
            if rest.take(b'+') {
                event.sector = sector?;
                event.bytes = length(rest.number()?)?;
            } else if let Some(bytes) = sector {
                // No length: the number counts the bytes of a command.
                event.bytes = bytes.try_into().ok()?;
                event.rwbs = event.rwbs.with(Rwbs::PC);
            }
            parentheses(rest)?;
            skip_priority(rest);
            Some(named(rest))
        }
    }
}

/// The priority of a request, which no event has room for.
fn skip_priority(rest: &mut Rest<'_>) {
    let mut behind = Rest(rest.0);
    if is_priority(behind.word()) {
        rest.0 = behind.0;
    }
}

/// `SECTOR + N` or `SECTOR`; whether either is there.
fn extent(rest: &mut Rest<'_>, event: &mut Event) -> Option<bool> {
    let Some(sector) = rest.number() else {
        return Some(false);
    };
    event.sector = sector;
    if rest.take(b'+') {
        event.bytes = length(rest.number()?)?;
    }
    Some(true)
}

/// The elapsed time of `-t`, or the bytes of a command, which have none.
fn parentheses(rest: &mut Rest<'_>) -> Option<Option<u64>> {
    if Rest(rest.0).take(b'(') {
        let inside = rest.bracketed_first(b'(', b')')?;
        return Some(decimal(inside.trim_ascii()));
    }
    Some(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str, comm: Option<&str>) {
        match parse(line.as_bytes(), Time::ZERO, true) {
            Line::Event {
                event, comm: found, ..
            } => {
                assert_eq!(event.to_string(), expected, "{line}");
                assert_eq!(found, comm.map(str::as_bytes), "{line}");
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn lines_of_all_kinds() {
        let pdflush = Some("pdflush");
        check(
            "104,48   1     2139     4.803090086  4175  Q   W 18540712 + 8 [pdflush]",
            "104,48 1 4.803090086 4175 Q W 18540712 + 8",
            pdflush,
        );
        check(
            "> >  8,0    1     2139     4.803090086  4175  D  WS 18540712 + 8 (   41225) [a [b] c]",
            "8,0 1 4.803090086 4175 D WS 18540712 + 8",
            Some("a [b] c"),
        );
        check(
            "8,0 0 1 0.5 9 C R 8 + 8 [65531]",
            "8,0 0 0.500000000 9 C R 8 + 8 [5]",
            None,
        );
        check(
            "8,0 0 1 0.5 9 C FN 8 [0]",
            "8,0 0 0.500000000 9 C FN 8 + 0",
            None,
        );
        // What a script or grep puts in front of it.
        for prefix in ["c 1024 --", "* 2", "sda.txt:17:", "of interest: \""] {
            let text = format!("{prefix}  9,10 5 4 41.266246318 213 Q WS 1024 + 2048 [dd]");
            check(
                &text,
                "9,10 5 41.266246318 213 Q WS 1024 + 2048",
                Some("dd"),
            );
        }
        for prose in ["see 8,0 0 1 0.5 9", "it took 8,0 1 2 hours", "(8,0 0 1)"] {
            let line = parse(prose.as_bytes(), Time::ZERO, true);
            assert!(matches!(line, Line::Other(_)), "{prose}: {line:?}");
        }
        check(
            "8,0 0 1 0.5 9 P N [x]",
            "8,0 0 0.500000000 9 P N 0 + 0",
            Some("x"),
        );
        check(
            "8,0 0 1 0.5 9 UT N [x] 3",
            "8,0 0 0.500000000 9 UT N 0 + 0 -> 3",
            Some("x"),
        );
        check(
            "8,0 0 1 0.5 9 X WS 0 / 1024 [x]",
            "8,0 0 0.500000000 9 X WS 0 + 1024 -> 1024",
            Some("x"),
        );
        check(
            "8,0 0 1 0.5 9 X W 5000000000 / 705033216 [x]",
            "8,0 0 0.500000000 9 X W 5000000000 + 512 -> 5000000512",
            Some("x"),
        );
        check(
            "8,0 0 1 0.5 9 A R 71 + 8 <- (8,1) 8",
            "8,0 0 0.500000000 9 A R 71 + 8 -> 8",
            None,
        );
        check(
            "8,0 0 1 0.5 9 D R 36 (12 00 ..) [hal]",
            "8,0 0 0.500000000 9 D R 0 + 0",
            Some("hal"),
        );
        check(
            "8,0 0 1 0.5 9 Q WS [x]",
            "8,0 0 0.500000000 9 Q WS 0 + 0",
            Some("x"),
        );
        check(
            "8,0 0 1 0.5 9 Q WFSM 8 + 8",
            "8,0 0 0.500000000 9 Q WFSM 8 + 8",
            None,
        );
    }

    #[test]
    fn lines_that_are_no_events() {
        let text = "8,0    0        0     0.000001000     0  m   N cfq12 alloced";
        let Line::Message { event, text } = parse(text.as_bytes(), Time::ZERO, true) else {
            panic!()
        };
        assert_eq!((event.cpu, text), (0, &b"cfq12 alloced"[..]));
        for elided in ["...", "> ....", "[...]"] {
            assert_eq!(parse(elided.as_bytes(), Time::ZERO, true), Line::Elided);
        }
        assert_eq!(
            parse(b"Total (sda):", Time::ZERO, true),
            Line::Note {
                begins_summary: true
            }
        );
        assert_eq!(parse(b"  ", Time::ZERO, true), Line::Blank);
        let other = |line: &[u8]| match parse(line, Time::ZERO, true) {
            Line::Other(problem) => problem,
            line => panic!("{line:?}"),
        };
        let damaged = |line: &[u8]| match parse(line, Time::ZERO, true) {
            Line::Damaged(problem) => problem,
            line => panic!("{line:?}"),
        };
        assert_eq!(other(b"Hello,"), "does not begin with a device, as in 8,0");
        assert_eq!(damaged(b"8,0 0 1 0.5 9 Z R 8 + 8 [x]"), "unknown action");
        assert_eq!(
            parse(b"8,0 0 1 0.5 9 Q R 8 + 99999999 [x]", Time::ZERO, true),
            Line::Incomplete("what follows RWBS does not fit the action")
        );
        for beyond in ["10000000000000.5", "2147483648.0"] {
            let line = format!("8,0 0 1 {beyond} 9 Q R 8 + 8");
            assert_eq!(damaged(line.as_bytes()), "time is beyond 68 years");
        }
        for time in ["1e308", "1e308.5", "-1.5", "inf", "1.1234567890"] {
            let line = format!("8,0 0 1 {time} 9 Q R 8 + 8");
            assert_eq!(damaged(line.as_bytes()), "time is not SECONDS.NANOSECONDS");
        }
    }

    /// What people leave out, and what newer tools print.
    #[test]
    fn heads_of_all_kinds() {
        let at = |line: &str| match parse(line.as_bytes(), Time(7), true) {
            Line::Event {
                event,
                sequence,
                has_time,
                is_whole,
                ..
            } => format!("{sequence:?} {has_time} {is_whole} {event}"),
            Line::Message { event, text } => {
                format!("{event} {}", String::from_utf8_lossy(text))
            }
            other => format!("{other:?}"),
        };
        let read = "8,0 2 0.000000007 99 Q R 8 + 8";
        assert_eq!(
            at("8,0 2 5 99 Q R 8 + 8 [x]"),
            format!("Some(5) false true {read}")
        );
        assert_eq!(
            at("8,0 2 99 Q R 8 + 8 [x]"),
            format!("None false true {read}")
        );
        let half = read.replace("000000007", "500000000");
        assert_eq!(
            at("8,0 2 0.5 99 Q R 8 + 8 [x]"),
            format!("None true true {half}")
        );
        assert_eq!(
            at("8,0 2 5 0.5 99 1a2b,0 Q R 8 + 8 be,0,4 [x]"),
            format!("Some(5) true true {half}")
        );
        assert_eq!(
            at("* 8,0 2 5 0.5 99 Q R 8 + 8"),
            format!("Some(5) true false {half}")
        );
        assert_eq!(
            at("8,0 2 0 0.5 39952 1,0  m   N bfq [x] depth 8"),
            "8,0 2 0.500000000 39952 m N 0 + 0 bfq [x] depth 8"
        );
        assert_eq!(
            at("8,0 2 5 0.5 99 A R 8 + 8 &lt;- (8,1) 0"),
            "Some(5) true true 8,0 2 0.500000000 99 A R 8 + 8"
        );
        for cut in ["8,0 2", "8,0 2 5 0.5", "8,0 2 5 0.5 99", "8,0 2 5 0.5 99 Q"] {
            assert!(at(cut).starts_with("Incomplete"), "{cut}: {}", at(cut));
        }
        for prose in ["8,0 is the disk", "8,0 2 disks"] {
            assert!(at(prose).starts_with("Other"), "{prose}: {}", at(prose));
        }
    }

    /// A live trace has events before that which blkparse saw first.
    #[test]
    fn times_before_zero() {
        let at = |seconds: &str| {
            let line = format!("259,0 3 1 {seconds} 9 G WS 8 + 8 [fio]");
            match parse(line.as_bytes(), Time::ZERO, true) {
                Line::Event { event, .. } => event.time.0 as i64,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(at("1266874889.709450585"), -101_031);
        assert_eq!(at("1266874889.709551615"), -1);
        assert_eq!(at("1266874888.709551616"), -1_000_000_000);
        // The hundred seconds around it in the year 2010.
        assert_eq!(at("1266874890.0"), 1_266_874_890_000_000_000);
        assert_eq!(at("1266873000.0"), 1_266_873_000_000_000_000);
    }
}
