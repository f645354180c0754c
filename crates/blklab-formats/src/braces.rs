// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of LTTng in text: as babeltrace prints those of today, and as LTTV (text dump)
//! printed those of 2009.
//!
//! ```text
//! [10:20:30.123456789] (+0.000002000) host block_rq_issue: { cpu_id = 1 }, { dev = 8388608, sector = 8, … }
//! block.bio_queue: 5.123456789 (/tmp/t/block_0), 4175, 4175, pdflush, , 2, 0x0, SYSCALL { sector = 8, size = 4096, … }
//! ```
//!
//! Fields: `include/instrumentation/events/block.h` of lttng-modules, and the probes of
//! LTTng 0.x, which name no device, and no length of a request: it is that of its bios.

use crate::fields::Fields;
use crate::format::{Format, Reader, begins_with};
use crate::input::Input;
use crate::kernel;
use crate::lttng;
use crate::plausible;
use crate::source::Source;
use crate::text::{Dialect, Line, Rest, TextReader, decimal, time, unquoted, without_content};
use crate::tracepoints::{Kind, Kinds};
use crate::{FormatError, ReadCounts};
use blklab_trace::{Action, Event, Item, Rwbs, TraceSource};
use blklab_types::{Dev, Time};
use std::collections::HashMap;
use std::io::Read;

/// Requests whose lengths are known: more do not wait at a time.
const REQUESTS_MAX: usize = 1 << 16;

/// Its row.
pub(crate) static FORMAT: Format = Format {
    name: "lttng",
    summary: "events of LTTng in text: babeltrace, LTTV of 2009; read",
    has_printed_times: false,
    says_losses: true,
    says_flags: true,
    dialect: None,
    recognises: |input| begins_with(input, Braces::default),
    open: |input, _| Ok(Box::new(BracesReader::from_input(input))),
};

impl Reader for BracesReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }
}

/// Reads events of LTTng in text.
#[derive(Debug)]
pub struct BracesReader<R>(TextReader<R, Braces>);

impl<R: Read> BracesReader<R> {
    /// Reads from `inner`; `name` is for errors.
    pub fn new(inner: R, name: &str) -> BracesReader<R> {
        BracesReader::from_input(Input::new(inner, name))
    }

    /// As [`BracesReader::new`].
    pub(crate) fn from_input(input: Input<R>) -> BracesReader<R> {
        BracesReader(TextReader::new(input, Braces::default()))
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        self.0.counts()
    }
}

impl<R: Read> TraceSource for BracesReader<R> {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        self.0.next_item()
    }
}

/// Lines of babeltrace and LTTV.
#[derive(Debug, Default)]
struct Braces {
    kinds: Kinds,
    /// Bytes of each request of LTTV that waits, by direction and first sector.
    lengths: HashMap<(bool, u64), u32>,
}

/// What stands in front of the fields.
struct Head<'a> {
    name: &'a [u8],
    time: Time,
    cpu: u16,
    pid: u32,
    comm: Option<&'a [u8]>,
    is_lttv: bool,
}

const NO_EVENT: &str = "no event, as in [10:20:30.5] (+0.1) host block_rq_issue: { … }";

impl Dialect for Braces {
    fn parse<'a>(&mut self, line: &'a [u8]) -> Line<'a> {
        let line = unquoted(line);
        if let Some(said) = without_content(line) {
            return said;
        }
        let head = match line {
            [b'[', ..] => babeltrace(line),
            _ => lttv(line),
        };
        let Some(head) = head else {
            return Line::Other(NO_EVENT);
        };
        if !plausible::is_time(head.time) {
            return Line::Damaged(plausible::BAD_TIME);
        }
        let name = standard(head.name);
        let Some(kind) = self.kinds.kind(&name) else {
            return other(&head, line);
        };
        match self.event(&head, kind, line) {
            Some(event) => {
                self.kinds.saw(&event);
                Line::Event {
                    event,
                    sequence: None,
                    comm: head.comm.or_else(|| quoted(line, b"comm")),
                    has_time: true,
                    is_whole: true,
                }
            }
            None if matches!(kind, Kind::Plug(_)) => Line::OtherEvent(head.name),
            None => Line::Incomplete("its fields do not fit the event"),
        }
    }
}

/// An event of another part of the kernel.
fn other<'a>(head: &Head<'a>, line: &'a [u8]) -> Line<'a> {
    // LTTng 0.x has events of its own.
    let said = kernel::decode(head.name, &Braced(line));
    let Some(said) = said.filter(|_| !head.is_lttv) else {
        return Line::OtherEvent(head.name);
    };
    let Some(said) = said else {
        return Line::Incomplete("its fields do not fit the event");
    };
    Line::Kernel {
        event: kernel::event(head.time, head.pid, head.cpu, said),
        comm: head.comm.or_else(|| quoted(line, b"procname")),
        has_time: true,
    }
}

/// `[HH:MM:SS.nnnnnnnnn] (+d) host event: { cpu_id = n }, …`; seconds alone with
/// `--clock-seconds`.
fn babeltrace(line: &[u8]) -> Option<Head<'_>> {
    let end = line.iter().position(|b| *b == b']')?;
    let clock = &line[1..end];
    let mut rest = Rest(&line[end + 1..]);
    let mut name = rest.word();
    while !name.ends_with(b":") {
        if name.is_empty() || name.starts_with(b"{") {
            return None;
        }
        name = rest.word();
    }
    Some(Head {
        name: &name[..name.len() - 1],
        time: clock_time(clock)?,
        cpu: field(line, b"cpu_id").and_then(decimal)?.try_into().ok()?,
        pid: field(line, b"tid").and_then(decimal).unwrap_or(0) as u32,
        comm: None,
        is_lttv: false,
    })
}

/// Hours, minutes and seconds, or seconds; a date in front does not matter.
fn clock_time(clock: &[u8]) -> Option<Time> {
    let clock = clock.rsplit(|b| *b == b' ').next()?;
    let mut parts = clock.rsplit(|b| *b == b':');
    let Time(mut ns) = time(parts.next()?)?;
    for (part, seconds) in parts.by_ref().zip([60, 3600]) {
        ns = ns.checked_add(decimal(part)?.checked_mul(seconds * 1_000_000_000)?)?;
    }
    parts.next().is_none().then_some(Time(ns))
}

/// `FACILITY.EVENT: SECONDS (TRACE/CHANNEL_CPU), PID, TGID, NAME, BRAND, PARENT, …`
fn lttv(line: &[u8]) -> Option<Head<'_>> {
    let mut rest = Rest(line);
    let name = rest
        .word()
        .strip_suffix(b":")
        .filter(|name| name.contains(&b'.'))?;
    let time = time(rest.word())?;
    let channel = rest.bracketed_first(b'(', b')')?;
    let cpu = channel.rsplit(|b| *b == b'_').next().and_then(decimal)?;
    let mut columns = rest
        .0
        .strip_prefix(b",")?
        .split(|b| *b == b',')
        .map(<[u8]>::trim_ascii);
    let pid = decimal(columns.next()?)?;
    let comm = columns.nth(1)?;
    Some(Head {
        name,
        time,
        cpu: cpu.try_into().ok()?,
        pid: pid.try_into().ok()?,
        comm: Some(comm).filter(|c| !c.is_empty() && *c != b"UNNAMED"),
        is_lttv: true,
    })
}

/// The kernel's name of a tracepoint.
fn standard(name: &[u8]) -> Vec<u8> {
    let Some(short) = name.strip_prefix(b"block.") else {
        return name.to_vec();
    };
    let short = short
        .strip_suffix(b"_fs")
        .or_else(|| short.strip_suffix(b"_pc"))
        .or_else(|| short.strip_suffix(b"_bio"))
        .unwrap_or(short);
    [b"block_", short].concat()
}

/// The value of `name = VALUE`.
fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut from = line.iter().position(|b| *b == b'{')?;
    loop {
        let at = from + line[from..].windows(name.len()).position(|w| w == name)?;
        let begins = matches!(line[at - 1], b' ' | b',' | b'{');
        let mut rest = Rest(&line[at + name.len()..]);
        if begins && rest.take(b'=') {
            rest.skip_spaces();
            let end = rest.0.iter().position(|b| matches!(b, b',' | b'}'));
            return Some(rest.0[..end.unwrap_or(rest.0.len())].trim_ascii());
        }
        from = at + name.len();
    }
}

/// The same in quotation marks.
fn quoted<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = field(line, name)?;
    value.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// A decimal number, perhaps a negative one, or one with `0x`.
fn number(line: &[u8], name: &[u8]) -> Option<u64> {
    let value = field(line, name)?;
    if let Some(digits) = value.strip_prefix(b"-") {
        return decimal(digits).map(u64::wrapping_neg);
    }
    match value.strip_prefix(b"0x") {
        Some(hex) => u64::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok(),
        None => decimal(value),
    }
}

/// The fields of a line.
struct Braced<'a>(&'a [u8]);

impl Fields for Braced<'_> {
    fn number(&self, name: &str) -> Option<u64> {
        number(self.0, name.as_bytes())
    }

    fn text(&self, name: &str) -> Option<&[u8]> {
        quoted(self.0, name.as_bytes())
    }

    fn error(&self, name: &str) -> Option<Option<u16>> {
        field(self.0, name.as_bytes()).map(crate::text::error)
    }
}

impl Braces {
    fn event(&mut self, head: &Head<'_>, kind: Kind, line: &[u8]) -> Option<Event> {
        if !head.is_lttv {
            let fields = Braced(line);
            return lttng::event(kind, head.time, head.cpu, head.pid, &fields, &self.kinds);
        }
        let (Kind::Bio(action) | Kind::Request(action) | Kind::Done(action) | Kind::Plug(action)) =
            kind;
        let event = Event {
            time: head.time,
            sector: 0,
            arg: 0,
            bytes: 0,
            pid: head.pid,
            dev: Dev::default(),
            from_dev: Dev::default(),
            error: 0,
            cpu: head.cpu,
            rwbs: Rwbs::NONE,
            action,
        };
        self.lttv_event(event, line)
    }

    /// LTTng 0.x: `rw` has the bits of the bio, of which the lowest is a write;
    /// requests know their sector only.
    fn lttv_event(&mut self, mut event: Event, line: &[u8]) -> Option<Event> {
        let plug = [Action::Plug, Action::Unplug, Action::UnplugTimer];
        if plug.contains(&event.action) {
            event.arg = number(line, b"pdu").unwrap_or(0);
            return Some(event);
        }
        let bits = rw_bits(line)?;
        let is_write = bits & 1 != 0;
        event.rwbs = if is_write { Rwbs::WRITE } else { Rwbs::READ };
        event.sector = number(line, b"sector").or_else(|| number(line, b"hard_sector"))?;
        match number(line, b"size") {
            Some(size) => {
                event.bytes = u32::try_from(size).ok()?;
                self.bio(&event, is_write);
            }
            None => {
                let known = self.lengths.get(&(is_write, event.sector));
                event.bytes = known.copied().unwrap_or(0);
            }
        }
        if event.action == Action::Complete {
            self.lengths.remove(&(is_write, event.sector));
        }
        Some(event)
    }

    /// What a bio does to the length of its request.
    fn bio(&mut self, bio: &Event, is_write: bool) {
        let end = bio.end_sector();
        match bio.action {
            Action::GetRequest if self.lengths.len() < REQUESTS_MAX => {
                self.lengths.insert((is_write, bio.sector), bio.bytes);
            }
            Action::BackMerge => {
                let ends_here = |((write, start), bytes): &(&(bool, u64), &mut u32)| {
                    *write == is_write && start + u64::from(**bytes) / 512 == bio.sector
                };
                if let Some((_, bytes)) = self.lengths.iter_mut().find(ends_here) {
                    *bytes = bytes.saturating_add(bio.bytes);
                }
            }
            Action::FrontMerge => {
                if let Some(bytes) = self.lengths.remove(&(is_write, end)) {
                    let all = bytes.saturating_add(bio.bytes);
                    self.lengths.insert((is_write, bio.sector), all);
                }
            }
            _ => {}
        }
    }
}

/// `rw = 1`, or with the names of its bits in parentheses and hexadecimal digits.
fn rw_bits(line: &[u8]) -> Option<u64> {
    if let Some(bits) = number(line, b"rw") {
        return Some(bits);
    }
    let marker = b"rw(";
    let at = line.windows(marker.len()).position(|w| w == marker)?;
    let mut rest = Rest(&line[at + 2..]);
    rest.bracketed_first(b'(', b')')?;
    rest.take(b'=').then_some(())?;
    rest.skip_spaces();
    let end = rest.0.iter().position(|b| matches!(b, b',' | b'}' | b' '));
    let digits = std::str::from_utf8(&rest.0[..end?]).ok()?;
    u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, ReadCounts) {
        let mut reader = BracesReader::new(text.as_bytes(), "test");
        let mut lines = Vec::new();
        while let Ok(Some(item)) = reader.next_item() {
            match item {
                Item::Event(event) => lines.push(event.to_string()),
                Item::Process { pid, comm, .. } => lines.push(format!("{pid} is {comm}")),
                _ => {}
            }
        }
        (lines, reader.counts().clone())
    }

    #[test]
    fn babeltrace_of_today() {
        let text = include_str!("../../../testdata/lttng/babeltrace.txt");
        let (found, counts) = read(text);
        let expected = [
            "907 is dd",
            "8,16 1 37230.500000000 907 Q WS 8 + 8",
            "8,16 1 37230.500001000 907 G WS 8 + 8",
            "8,16 1 37230.500002000 907 P N 0 + 0",
            "8,16 1 37230.500004000 907 D WS 8 + 8",
            "8,16 0 37230.500900000 0 C WS 8 + 8",
        ];
        assert_eq!(found, expected);
        assert_eq!((counts.other_events, counts.kernel_events), (0, 1));
        assert!(counts.damaged == 0 && counts.foreign == 0, "{counts:?}");
    }

    #[test]
    fn lttv_of_2009() {
        let text = include_str!("../../../testdata/lttng/lttv.txt");
        let (found, counts) = read(text);
        let expected = [
            "4175 is pdflush",
            "0,0 0 5.100000000 4175 Q W 8 + 8",
            "0,0 0 5.100001000 4175 G W 8 + 8",
            "0,0 0 5.100002000 4175 Q W 16 + 8",
            "0,0 0 5.100003000 4175 M W 16 + 8",
            "0,0 0 5.100004000 4175 D W 8 + 16",
            "0,0 1 5.109000000 0 C W 8 + 16",
        ];
        assert_eq!(found, expected);
        assert_eq!((counts.other_events, counts.damaged), (1, 0));
    }

    #[test]
    fn what_is_no_event() {
        for line in [
            "Hello.",
            "[10:20] said he: {",
            "foo.bar: 5",
            "8,0 0 1 0.5 9 Q R 8 + 8 [x]",
            "{ \"a\": 1 }",
        ] {
            let (found, counts) = read(line);
            assert_eq!((found.len(), counts.foreign), (0, 1), "{line}");
        }
    }
}
