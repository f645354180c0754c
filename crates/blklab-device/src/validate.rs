// SPDX-License-Identifier: MIT OR Apache-2.0
//! Response times of a device against those measured on a real one.
//!
//! A trace has a request a line: `R|W Hit|Miss LBN SIZE RESPONSE(us)
//! TIME_TO_NEXT(us)`. The next request arrives so long after the end of the one
//! before, as in the validation mode of DiskSim 4.0. The figure of merit is the
//! root mean square of the horizontal distance between the two distributions of
//! response times (C. Ruemmler and J. Wilkes, "An introduction to disk drive
//! modeling", IEEE Computer 27(3), 1994).

use crate::device::{CmdId, Command, Device, DeviceCx};
use crate::error::DeviceError;
use blklab_types::{BioFlags, Op, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A measured request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Read or write.
    pub op: Op,
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub nr_sectors: u32,
    /// How long the real device took.
    pub response_ns: u64,
    /// From its end to the next request.
    pub pause_ns: u64,
}

/// Two distributions of response times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// Requests.
    pub requests: usize,
    /// Root mean square of the horizontal distance, ms.
    pub rms_ms: f64,
    /// Mean response time, measured and simulated, ms.
    pub mean_ms: [f64; 2],
}

/// Reads a trace; `file` is its name for messages.
///
/// # Errors
/// If a line is not a request, with its number, or there is none.
pub fn parse_trace(file: &str, text: &str) -> Result<Vec<Measured>, DeviceError> {
    let error = |line: usize, reason: &str| DeviceError::BadFile {
        file: file.to_owned(),
        line,
        reason: reason.to_owned(),
    };
    let mut all = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let expected = "expected 'R|W Hit|Miss LBN SIZE RESPONSE(us) TIME_TO_NEXT(us)'";
        all.push(parse_line(line).ok_or_else(|| error(i + 1, expected))?);
    }
    if all.is_empty() {
        return Err(error(0, "expected a request or more"));
    }
    Ok(all)
}

fn parse_line(line: &str) -> Option<Measured> {
    let mut fields = line.split_whitespace();
    let op = match fields.next()? {
        "R" => Op::Read,
        "W" => Op::Write,
        _ => return None,
    };
    let _hit = fields.next()?;
    let sector: u64 = fields.next()?.parse().ok()?;
    let nr_sectors: u32 = fields.next()?.parse().ok()?;
    let mut time_ns = || -> Option<u64> {
        let us: f64 = fields.next()?.parse().ok()?;
        // A day and more is no response time.
        (0.0..1e11)
            .contains(&us)
            .then_some((us * 1e3).round() as u64)
    };
    Some(Measured {
        op,
        sector,
        nr_sectors: (nr_sectors > 0).then_some(nr_sectors)?,
        response_ns: time_ns()?,
        pause_ns: time_ns()?,
    })
}

/// Runs a trace on a device. A request beyond its end fails at once and counts
/// with the time that takes.
pub fn replay(device: &mut dyn Device, trace: &[Measured]) -> Distance {
    let mut host = OneByOne::default();
    let mut measured: Vec<u64> = trace.iter().map(|r| r.response_ns).collect();
    let mut simulated: Vec<u64> = Vec::with_capacity(trace.len());
    for r in trace {
        simulated.push(host.serve(device, r));
        host.pass(device, r.pause_ns);
    }
    measured.sort_unstable();
    simulated.sort_unstable();
    let ms = |ns: u64| ns as f64 / 1e6;
    let squares = measured.iter().zip(&simulated).map(|(m, s)| {
        let d = ms(*m) - ms(*s);
        d * d
    });
    let n = trace.len().max(1) as f64;
    let mean = |all: &[u64]| all.iter().map(|ns| ms(*ns)).sum::<f64>() / n;
    Distance {
        requests: trace.len(),
        rms_ms: (squares.sum::<f64>() / n).sqrt(),
        mean_ms: [mean(&measured), mean(&simulated)],
    }
}

/// A driver with one command at a time.
#[derive(Default)]
struct OneByOne {
    now: Time,
    events: BinaryHeap<Reverse<(Time, u64, u64)>>,
    pushed: u64,
    wakes: Vec<(Time, u64)>,
    done: Vec<crate::Done>,
}

impl OneByOne {
    /// How long the request takes.
    fn serve(&mut self, device: &mut dyn Device, r: &Measured) -> u64 {
        let begin = self.now;
        let cmd = Command {
            id: CmdId(0),
            op: r.op,
            flags: BioFlags::NONE,
            sector: r.sector,
            nr_sectors: r.nr_sectors,
        };
        let mut finished = self.call(|cx| device.submit(cx, &cmd));
        while !finished {
            let Some(Reverse((time, _, token))) = self.events.pop() else {
                break;
            };
            self.now = time;
            finished = self.call(|cx| device.wake(cx, token));
        }
        self.now.since(begin).ns()
    }

    /// Lets time pass.
    fn pass(&mut self, device: &mut dyn Device, ns: u64) {
        let until = self.now + blklab_types::Span(ns);
        while let Some(&Reverse((time, _, token))) = self.events.peek()
            && time <= until
        {
            self.events.pop();
            self.now = time;
            self.call(|cx| device.wake(cx, token));
        }
        self.now = until;
    }

    fn call(&mut self, f: impl FnOnce(&mut DeviceCx<'_>)) -> bool {
        let mut cx = DeviceCx {
            now: self.now,
            wakes: &mut self.wakes,
            done: &mut self.done,
        };
        f(&mut cx);
        for (time, token) in self.wakes.drain(..) {
            self.events.push(Reverse((time, self.pushed, token)));
            self.pushed += 1;
        }
        let finished = !self.done.is_empty();
        self.done.clear();
        finished
    }
}
