// SPDX-License-Identifier: MIT OR Apache-2.0
//! One line of blkparse text, formatted by hand: this is the hot path when a
//! trace is printed.

use crate::blktrace::may_be_passed_through;
use blklab_trace::{Action, Event, Rwbs};

/// What a line shows beside the event.
pub(super) struct Shown<'a> {
    /// Number of the event on its CPU.
    pub(super) sequence: u32,
    /// Time since the first event, of this trace or the original one.
    pub(super) time_ns: u64,
    /// Name of the process, if known.
    pub(super) comm: Option<&'a [u8]>,
}

/// Appends `n` in decimal, right-aligned in `width`.
#[inline]
pub(super) fn put_dec(buf: &mut Vec<u8>, n: u64, width: usize) {
    let mut digits = [b' '; 20];
    let mut at = digits.len();
    let mut rest = n;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    // All widths in use are far below 20, so the padding is in the array.
    buf.extend_from_slice(&digits[at.min(digits.len() - width)..]);
}

/// Appends `n` as a C `int`, right-aligned in `width`.
#[inline]
fn put_int(buf: &mut Vec<u8>, n: i32, width: usize) {
    if n >= 0 {
        put_dec(buf, n.unsigned_abs().into(), width);
    } else {
        let text = format!("{n:width$}");
        buf.extend_from_slice(text.as_bytes());
    }
}

/// Appends the nine digits of the nanoseconds.
#[inline]
fn put_nine(buf: &mut Vec<u8>, ns: u32) {
    let mut digits = [b'0'; 9];
    let mut rest = ns;
    for d in digits.iter_mut().rev() {
        *d = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    buf.extend_from_slice(&digits);
}

/// Appends flags and direction, right-aligned in three columns. A barrier is
/// shown as a flush: the two share a bit in the binary trace.
#[inline]
fn put_rwbs(buf: &mut Vec<u8>, rwbs: Rwbs, bytes: u32) {
    let mut letters = [b' '; 8];
    let mut n = 0;
    let mut put = |letter| {
        letters[n] = letter;
        n += 1;
    };
    if rwbs.has(Rwbs::FLUSH) || rwbs.has(Rwbs::BARRIER) {
        put(b'F');
    }
    put(if rwbs.has(Rwbs::DISCARD) {
        b'D'
    } else if rwbs.has(Rwbs::WRITE) {
        b'W'
    } else if bytes > 0 {
        b'R'
    } else {
        b'N'
    });
    for (flag, letter) in [
        (Rwbs::FUA, b'F'),
        (Rwbs::AHEAD, b'A'),
        (Rwbs::SYNC, b'S'),
        (Rwbs::META, b'M'),
    ] {
        if rwbs.has(flag) {
            put(letter);
        }
    }
    buf.extend_from_slice(&b"   "[n.min(3)..]);
    buf.extend_from_slice(&letters[..n]);
}

/// Major, minor and CPU: the beginning of every line.
#[inline]
fn put_where(buf: &mut Vec<u8>, event: &Event) {
    put_dec(buf, event.dev.major.into(), 3);
    buf.push(b',');
    let at = buf.len();
    put_dec(buf, event.dev.minor.into(), 1);
    while buf.len() < at + 3 {
        buf.push(b' ');
    }
    buf.push(b' ');
    put_dec(buf, event.cpu.into(), 2);
    buf.push(b' ');
}

#[inline]
fn put_time(buf: &mut Vec<u8>, time_ns: u64) {
    buf.push(b' ');
    put_int(buf, (time_ns / 1_000_000_000) as i32, 5);
    buf.push(b'.');
    put_nine(buf, (time_ns % 1_000_000_000) as u32);
    buf.push(b' ');
}

#[inline]
fn put_comm(buf: &mut Vec<u8>, comm: Option<&[u8]>) {
    buf.push(b'[');
    buf.extend_from_slice(comm.unwrap_or(b"(null)"));
    buf.push(b']');
}

/// Appends `SECTOR + N `, where there is a length.
#[inline]
fn put_extent(buf: &mut Vec<u8>, event: &Event) {
    put_dec(buf, event.sector, 1);
    buf.extend_from_slice(b" + ");
    put_dec(buf, event.nr_sectors(), 1);
    buf.push(b' ');
}

/// Appends the line of an event that is not a message.
pub(super) fn put_event(buf: &mut Vec<u8>, event: &Event, shown: &Shown<'_>) {
    put_where(buf, event);
    put_int(buf, shown.sequence as i32, 8);
    put_time(buf, shown.time_ns);
    put_dec(buf, event.pid.into(), 5);
    let letters = event.action.letters().as_bytes();
    buf.extend_from_slice(&b"   "[letters.len()..]);
    buf.extend_from_slice(letters);
    buf.push(b' ');
    put_rwbs(buf, event.rwbs, event.bytes);
    buf.push(b' ');
    let has_length = event.nr_sectors() > 0;
    let passed_through = event.rwbs.has(Rwbs::PC) && may_be_passed_through(event.action);
    match event.action {
        Action::Complete | Action::Requeue => {
            if passed_through {
            } else if has_length {
                put_extent(buf, event);
            } else {
                put_dec(buf, event.sector, 1);
                buf.push(b' ');
            }
            buf.push(b'[');
            put_dec(buf, event.error.into(), 1);
            buf.push(b']');
        }
        Action::Issue | Action::Insert | Action::Queue if passed_through => {
            put_dec(buf, event.bytes.into(), 1);
            buf.push(b' ');
            put_comm(buf, shown.comm);
        }
        Action::Issue
        | Action::Insert
        | Action::Queue
        | Action::Bounce
        | Action::BackMerge
        | Action::FrontMerge
        | Action::GetRequest
        | Action::SleepRequest => {
            if has_length {
                put_extent(buf, event);
            }
            put_comm(buf, shown.comm);
        }
        Action::Plug => put_comm(buf, shown.comm),
        Action::Unplug | Action::UnplugTimer => {
            put_comm(buf, shown.comm);
            buf.push(b' ');
            put_dec(buf, (event.arg as u32).into(), 1);
        }
        Action::Remap => {
            put_extent(buf, event);
            buf.extend_from_slice(b"<- (");
            put_dec(buf, event.from_dev.major.into(), 1);
            buf.push(b',');
            put_dec(buf, event.from_dev.minor.into(), 1);
            buf.extend_from_slice(b") ");
            put_dec(buf, event.arg, 1);
        }
        Action::Split => {
            put_dec(buf, event.sector, 1);
            buf.extend_from_slice(b" / ");
            put_dec(buf, (event.arg as u32).into(), 1);
            buf.push(b' ');
            put_comm(buf, shown.comm);
        }
        Action::Message => {}
    }
    buf.push(b'\n');
}

/// The line of one event, or of a message if it has a text. `number` stands where
/// blkparse shows the number of the event on its CPU.
pub fn line_of(event: &Event, number: u64, time_ns: u64, comm: Option<&str>, text: &str) -> String {
    let mut buf = Vec::new();
    match event.action {
        Action::Message => put_message(&mut buf, event, time_ns, text),
        _ => {
            let shown = Shown {
                sequence: number.min(i32::MAX as u64) as u32,
                time_ns,
                comm: comm.map(str::as_bytes),
            };
            put_event(&mut buf, event, &shown);
        }
    }
    let mut line = String::new();
    blklab_types::push_visibly(
        &mut line,
        String::from_utf8_lossy(&buf).trim_end_matches('\n'),
    );
    line
}

/// Appends the line of a message: no number, no process, and the text up to
/// its first NUL. An empty message has no line.
pub(super) fn put_message(buf: &mut Vec<u8>, event: &Event, time_ns: u64, text: &str) {
    if text.is_empty() {
        return;
    }
    put_where(buf, event);
    buf.extend_from_slice(b"       0");
    put_time(buf, time_ns);
    buf.extend_from_slice(b"    0  m   N ");
    let shown = text.split('\0').next().unwrap_or_default();
    buf.extend_from_slice(shown.as_bytes());
    buf.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_like_printf() {
        let check = |n: u64, width: usize| {
            let mut buf = Vec::new();
            put_dec(&mut buf, n, width);
            assert_eq!(String::from_utf8(buf).unwrap(), format!("{n:width$}"));
        };
        for n in [0, 7, 10, 99_999, 100_000, u64::MAX] {
            for width in [1, 3, 5, 8] {
                check(n, width);
            }
        }
    }
}
