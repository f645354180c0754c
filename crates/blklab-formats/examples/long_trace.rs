// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a blktrace trace of any length to standard output: `long_trace BYTES [DEPTH]`.
//!
//! Random 4 KiB reads and writes of four processes through a scheduler, so many in flight at a
//! time: Q G I D C of each. For measurements of speed and memory without a file as long.

use blklab_formats::blktrace::BlktraceStream;
use blklab_trace::{Action, Event, Rwbs, TraceSink};
use blklab_types::{Dev, Time};
use std::io::{BufWriter, Write as _};

/// Bytes of a record.
const RECORD_BYTES: u64 = 48;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let bytes: u64 = args.next().ok_or("long_trace BYTES [DEPTH]")?.parse()?;
    let depth: usize = args.next().map_or(Ok(32), |d| d.parse())?;
    let out = BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    let mut trace = BlktraceStream::new(out);
    for pid in 1..=4 {
        trace.process(Time::ZERO, pid, "long");
    }
    let (mut now, mut random) = (0, 7_u64);
    // In flight, as a ring: the oldest ends when a new one begins.
    let mut flying: Vec<Event> = Vec::with_capacity(depth);
    let mut oldest = 0;
    for io in 0..bytes / RECORD_BYTES / 5 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let mut event = Event {
            time: Time(now),
            sector: (random >> 33) % (1 << 28) * 8,
            arg: 0,
            bytes: 4096,
            pid: (io % 4) as u32 + 1,
            dev: Dev { major: 8, minor: 0 },
            from_dev: Dev::default(),
            error: 0,
            cpu: 0,
            rwbs: if random >> 63 == 0 {
                Rwbs::READ
            } else {
                Rwbs::WRITE
            },
            action: Action::Queue,
        };
        let steps = [
            Action::Queue,
            Action::GetRequest,
            Action::Insert,
            Action::Issue,
        ];
        for action in steps {
            now += 400;
            event.time = Time(now);
            event.action = action;
            trace.event(&event);
        }
        event.action = Action::Complete;
        event.pid = 0;
        let ended = if flying.len() < depth {
            flying.push(event);
            continue;
        } else {
            std::mem::replace(&mut flying[oldest], event)
        };
        oldest = (oldest + 1) % depth;
        now += 400;
        trace.event(&Event {
            time: Time(now),
            ..ended
        });
    }
    trace.finish()?.flush()?;
    Ok(())
}
