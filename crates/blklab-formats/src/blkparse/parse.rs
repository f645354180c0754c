// SPDX-License-Identifier: MIT OR Apache-2.0
//! One line of blkparse text, taken apart.

use crate::plausible;
use crate::text::{Line, Rest, decimal, device, error, length, rwbs, time, unquoted};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::Dev;

/// Takes a line apart.
pub(super) fn parse(line: &[u8]) -> Line<'_> {
    let line = unquoted(line);
    match line {
        [] => return Line::Blank,
        [b'#', ..] => {
            return Line::Note {
                begins_summary: false,
            };
        }
        [b'.', b'.', b'.', ..] | [b'[', b'.', b'.', b'.', ..] => return Line::Elided,
        _ => {}
    }
    if line.starts_with(b"Input file ") {
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
    event(line).unwrap_or_else(Line::Other)
}

fn event(line: &[u8]) -> Result<Line<'_>, &'static str> {
    let mut rest = Rest(line);
    let dev = device(rest.word()).ok_or("does not begin with a device, as in 8,0")?;
    let cpu = rest.word();
    let cpu = decimal(cpu)
        .and_then(|n| n.try_into().ok())
        .ok_or("CPU is not a number")?;
    let sequence = std::str::from_utf8(rest.word())
        .ok()
        .and_then(|w| w.parse::<i64>().ok());
    // blkparse prints numbers from 2^31 up as negative.
    let sequence = sequence.ok_or("sequence is not a number")? as u32;
    let time = time(rest.word()).ok_or("time is not SECONDS.NANOSECONDS")?;
    if !plausible::is_time(time) {
        return Err(plausible::BAD_TIME);
    }
    let pid = rest.word();
    let pid = decimal(pid)
        .and_then(|n| n.try_into().ok())
        .ok_or("process is not a number")?;
    let letters = std::str::from_utf8(rest.word()).unwrap_or_default();
    let action = Action::from_letters(letters).ok_or("unknown action")?;
    let rwbs = rwbs(rest.word()).ok_or("unknown letter in RWBS")?;
    let mut event = Event {
        time,
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
        Some(comm) => Line::Event {
            event,
            sequence: Some(sequence),
            comm,
        },
        None => Line::Incomplete("what follows RWBS does not fit the action"),
    })
}

/// The part of the line that depends on the action; the process's name, if
/// there is one.
pub(crate) fn details<'a>(rest: &mut Rest<'a>, event: &mut Event) -> Option<Option<&'a [u8]>> {
    let comm = |rest: &mut Rest<'a>| rest.bracketed(b'[', b']');
    match event.action {
        Action::Plug => Some(comm(rest)),
        Action::Unplug | Action::UnplugTimer => {
            let comm = comm(rest)?;
            event.arg = rest.number()?;
            Some(Some(comm))
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
            Some(comm(rest))
        }
        Action::Remap => {
            extent(rest, event)?;
            if !(rest.take(b'<') && rest.take(b'-') && rest.take(b'(')) {
                return None;
            }
            let end = rest.0.iter().position(|b| *b == b')')?;
            event.from_dev = device(&rest.0[..end])?;
            rest.0 = &rest.0[end + 1..];
            event.arg = rest.number()?;
            Some(None)
        }
        Action::Complete | Action::Requeue => {
            if !extent(rest, event)? {
                event.rwbs = event.rwbs.with(Rwbs::PC);
            }
            skip_parentheses(rest)?;
            let code = rest.bracketed(b'[', b']').unwrap_or(b"0");
            event.error = error(code)?;
            Some(None)
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
            skip_parentheses(rest)?;
            Some(comm(rest))
        }
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

/// The elapsed time of `-t`, or the bytes of a command.
fn skip_parentheses(rest: &mut Rest<'_>) -> Option<()> {
    if rest.take(b'(') {
        let end = rest.0.iter().position(|b| *b == b')')?;
        rest.0 = &rest.0[end + 1..];
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str, comm: Option<&str>) {
        match parse(line.as_bytes()) {
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
        let Line::Message { event, text } = parse(text.as_bytes()) else {
            panic!()
        };
        assert_eq!((event.cpu, text), (0, &b"cfq12 alloced"[..]));
        for elided in ["...", "> ....", "[...]"] {
            assert_eq!(parse(elided.as_bytes()), Line::Elided);
        }
        assert_eq!(
            parse(b"Total (sda):"),
            Line::Note {
                begins_summary: true
            }
        );
        assert_eq!(parse(b"  "), Line::Blank);
        let other = |line: &[u8]| match parse(line) {
            Line::Other(problem) => problem,
            line => panic!("{line:?}"),
        };
        assert_eq!(other(b"Hello,"), "does not begin with a device, as in 8,0");
        assert_eq!(other(b"8,0 0 1 0.5 9 Z R 8 + 8 [x]"), "unknown action");
        assert_eq!(
            parse(b"8,0 0 1 0.5 9 Q R 8 + 99999999 [x]"),
            Line::Incomplete("what follows RWBS does not fit the action")
        );
        for beyond in ["10000000000000.5", "2147483648.0"] {
            let line = format!("8,0 0 1 {beyond} 9 Q R 8 + 8");
            assert_eq!(other(line.as_bytes()), "time is beyond 68 years");
        }
        for time in ["1e308", "1e308.5", "-1.5", "inf", "1.1234567890"] {
            let line = format!("8,0 0 1 {time} 9 Q R 8 + 8");
            assert_eq!(other(line.as_bytes()), "time is not SECONDS.NANOSECONDS");
        }
    }
}
