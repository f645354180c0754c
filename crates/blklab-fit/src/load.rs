// SPDX-License-Identifier: MIT OR Apache-2.0
//! A load straight against a device: processes with a constant number of commands in
//! flight, as fio has them, and the completion latencies that fio would see.
//!
//! ```text
//!            submit_ns             device             wake_ns    reap_ns
//! process ──────────────► sent ─────────────► done ┄┄┄┄┄┄┄┄┄► ─────────► seen ─► the next one
//!                          └────────────── completion latency ────────────┘
//! ```
//!
//! A process does one thing at a time. Neither block layer nor scheduler is there: their
//! part is in these three times.

use crate::cell::Stream;
use blklab_device::{CmdId, Command, Device, DeviceCx, Done};
use blklab_types::{BioFlags, Op, SECTOR_BYTES, Slab, SplitMix64, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What came of one direction of a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    ns: Vec<u64>,
    sorted: bool,
    /// Commands per second.
    pub(crate) per_s: f64,
}

impl Times {
    /// How many commands there are.
    pub(crate) fn len(&self) -> usize {
        self.ns.len()
    }

    /// A quantile in microseconds; there must be commands.
    pub(crate) fn us(&mut self, part: f64) -> f64 {
        if !self.sorted {
            self.ns.sort_unstable();
            self.sorted = true;
        }
        let last = self.ns.len() - 1;
        let place = (self.ns.len() as f64 * part.clamp(0.0, 1.0)) as usize;
        self.ns[place.min(last)] as f64 / 1e3
    }
}

/// How long a load runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    /// Slots of 4 KiB of the write buffer, which is full when it begins; 0: it is empty.
    pub(crate) buffer_slots: u64,
    /// Writes per second that are expected of it.
    pub(crate) writes_per_s: f64,
    /// Seconds that count, after a fifth as many, or until what it does not fill of the write
    /// buffer is empty.
    pub(crate) seconds: f64,
    /// It ends after so many commands, at the latest; what is before that too.
    pub(crate) commands_max: u64,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The device asked to be woken.
    Wake(u64),
    /// A process submits a command.
    Submit(u32),
}

#[derive(Clone, Copy, Debug)]
struct Process {
    stream: usize,
    /// When it has done what it does.
    free: Time,
    /// The next sector of one that goes in order.
    next: u64,
}

/// A command on its way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    process: u32,
    op: Op,
    at: Time,
}

/// Commands in flight while the write buffer is filled.
const FILLING_DEPTH: u32 = 16;

/// One of so many of them is a read.
const READ_ONE_OF: u64 = 4;

/// A load that leaves less than this of what goes on to the flash keeps the buffer full.
const SATURATED: f64 = 0.1;

/// Sectors of a device that has no end.
const ENDLESS: u64 = 1 << 31;

/// The first of the seeds.
const SEED: u64 = 7;

struct Host<'a> {
    device: Box<dyn Device>,
    streams: &'a [Stream],
    processes: Vec<Process>,
    capacity: u64,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    pushed: u64,
    sent: Slab<CmdId, Sent>,
    /// Commands that the device has no room for, oldest first.
    held: VecDeque<Command>,
    room: u32,
    wakes: Vec<(Time, u64)>,
    done: Vec<Done>,
    random: SplitMix64,
    warm: Time,
    times: Vec<[Times; 2]>,
    commands_max: u64,
    nr_before: u64,
    nr_counted: u64,
}

/// Runs the streams side by side on a device that takes `queue_depth` commands; reads, then
/// writes of each stream. Runs of different `draw` differ by chance alone.
pub(crate) fn run(
    device: Box<dyn Device>,
    queue_depth: u32,
    streams: &[Stream],
    length: Length,
    draw: u64,
) -> Vec<[Times; 2]> {
    let capacity = device.capacity_sectors().unwrap_or(ENDLESS);
    let mut host = Host {
        device,
        streams,
        processes: Vec::new(),
        capacity,
        events: BinaryHeap::new(),
        pushed: 0,
        sent: Slab::default(),
        held: VecDeque::new(),
        room: queue_depth,
        wakes: Vec::new(),
        done: Vec::new(),
        random: SplitMix64(SEED + draw),
        warm: Time::ZERO,
        times: vec![Default::default(); streams.len()],
        commands_max: length.commands_max,
        nr_before: 0,
        nr_counted: 0,
    };
    let (mut now, drained_per_s) = host.fill_buffer(length.buffer_slots, draw);
    let left_per_s = drained_per_s - length.writes_per_s;
    let mut ramp = length.seconds * 0.2;
    if left_per_s > drained_per_s * SATURATED {
        ramp += (length.buffer_slots as f64 / left_per_s).min(length.seconds);
    }
    host.warm = Time(now.0 + (ramp * 1e9) as u64);
    let end = Time(now.0 + ((ramp + length.seconds) * 1e9) as u64);
    host.start(now);
    while let Some(Reverse((time, _, event))) = host.events.pop() {
        if time >= end || host.nr_counted >= host.commands_max {
            break;
        }
        now = time;
        match event {
            Event::Wake(token) => host.call(now, |device, cx| device.wake(cx, token)),
            Event::Submit(process) => host.submit(now, process),
        }
        host.submit_held(now);
    }
    let counted = if host.nr_counted >= host.commands_max {
        now.0.saturating_sub(host.warm.0) as f64 / 1e9
    } else {
        length.seconds
    };
    for t in host.times.iter_mut().flatten() {
        t.per_s = t.ns.len() as f64 / counted.max(1e-9);
    }
    host.times
}

impl Host<'_> {
    /// Fills a write buffer of so many slots by writes of 4 KiB at random addresses, a quarter
    /// more than it has; says when that has ended, and how many writes per second went on to the
    /// flash in the end. Under writes alone dies stay as they began, in step or evenly spread;
    /// reads among the writes bring them out of step. Nobody knows how dies stood when writes
    /// alone were measured, so there every other draw is without reads.
    fn fill_buffer(&mut self, slots: u64, draw: u64) -> (Time, f64) {
        const PAGE: u64 = 4096 / SECTOR_BYTES;
        let in_step = draw % 2 == 1 && self.streams.iter().all(|s| s.read_pct == 0);
        let (mut now, mut full) = (Time::ZERO, Time::ZERO);
        let nr = slots + slots / 4;
        let mut ops = [Op::Write; FILLING_DEPTH as usize];
        let mut idle: Vec<u32> = (0..FILLING_DEPTH).collect();
        let mut written = 0;
        while written < nr || idle.len() < ops.len() {
            let free = if written < nr {
                std::mem::take(&mut idle)
            } else {
                Vec::new()
            };
            for id in free {
                let is_read = !in_step && self.random.below(READ_ONE_OF) == 0;
                let op = if is_read { Op::Read } else { Op::Write };
                ops[id as usize] = op;
                let cmd = Command {
                    id: CmdId(id),
                    op,
                    flags: BioFlags::NONE,
                    sector: self.random.below(self.capacity / PAGE) * PAGE,
                    nr_sectors: PAGE as u32,
                };
                self.call_device(now, |device, cx| device.submit(cx, &cmd));
            }
            if let Some(Reverse((time, _, Event::Wake(token)))) = self.events.pop() {
                now = time;
                self.call_device(now, |device, cx| device.wake(cx, token));
            }
            for done in self.done.drain(..) {
                idle.push(done.id.0);
                written += u64::from(ops[done.id.0 as usize] == Op::Write);
            }
            if written <= slots {
                full = now;
            }
        }
        let last_s = (now.0 - full.0).max(1) as f64 / 1e9;
        (now, (slots / 4) as f64 / last_s)
    }

    fn start(&mut self, now: Time) {
        let nr: u64 = self.streams.iter().map(|s| u64::from(s.processes)).sum();
        for (stream, s) in self.streams.iter().enumerate() {
            for _ in 0..s.processes {
                let no = self.processes.len() as u64;
                self.processes.push(Process {
                    stream,
                    free: now,
                    next: self.capacity / nr * no / 2048 * 2048,
                });
                for _ in 0..s.depth {
                    self.send_next(no as u32);
                }
            }
        }
    }

    fn push(&mut self, time: Time, event: Event) {
        self.events.push(Reverse((time, self.pushed, event)));
        self.pushed += 1;
    }

    /// A process is about to submit a command.
    fn send_next(&mut self, process: u32) {
        let p = &mut self.processes[process as usize];
        p.free.0 += self.streams[p.stream].host.submit_ns;
        let at = p.free;
        self.push(at, Event::Submit(process));
    }

    fn submit(&mut self, now: Time, process: u32) {
        let p = &mut self.processes[process as usize];
        let s = &self.streams[p.stream];
        let is_read = match s.read_pct {
            0 => false,
            100 => true,
            pct => self.random.below(100) < u64::from(pct),
        };
        let (op, bytes) = if is_read {
            (Op::Read, s.bytes[0])
        } else {
            (Op::Write, s.bytes[1])
        };
        let n = u64::from(bytes) / SECTOR_BYTES;
        let sector = if s.sequential {
            if p.next + n > self.capacity {
                p.next = 0;
            }
            p.next += n;
            p.next - n
        } else {
            self.random.below(self.capacity / n) * n
        };
        let at = now;
        let cmd = Command {
            id: self.sent.insert(Sent { process, op, at }),
            op,
            flags: BioFlags::NONE,
            sector,
            nr_sectors: n as u32,
        };
        if self.room == 0 {
            self.held.push_back(cmd);
            return;
        }
        self.room -= 1;
        self.call(now, |device, cx| device.submit(cx, &cmd));
    }

    fn call_device(&mut self, now: Time, f: impl FnOnce(&mut dyn Device, &mut DeviceCx<'_>)) {
        let mut cx = DeviceCx {
            now,
            wakes: &mut self.wakes,
            done: &mut self.done,
        };
        f(self.device.as_mut(), &mut cx);
        let mut wakes = std::mem::take(&mut self.wakes);
        for (time, token) in wakes.drain(..) {
            self.push(time, Event::Wake(token));
        }
        self.wakes = wakes;
    }

    fn call(&mut self, now: Time, f: impl FnOnce(&mut dyn Device, &mut DeviceCx<'_>)) {
        self.call_device(now, f);
        let mut done = std::mem::take(&mut self.done);
        for d in done.drain(..) {
            self.seen(now, d.id);
        }
        self.done = done;
    }

    /// Hands over what waits for room.
    fn submit_held(&mut self, now: Time) {
        while self.room > 0
            && let Some(cmd) = self.held.pop_front()
        {
            self.room -= 1;
            self.call(now, |device, cx| device.submit(cx, &cmd));
        }
    }

    /// A command is done: its process sees that when it can, and submits the next one.
    fn seen(&mut self, now: Time, id: CmdId) {
        let sent = *self.sent.remove(id);
        self.room += 1;
        let p = &mut self.processes[sent.process as usize];
        let host = self.streams[p.stream].host;
        p.free = Time(p.free.0.max(now.0 + host.wake_ns) + host.reap_ns);
        self.nr_before += u64::from(now < self.warm);
        if self.nr_before == self.commands_max {
            self.warm = self.warm.min(now);
        }
        if now >= self.warm {
            self.nr_counted += 1;
            let times = &mut self.times[p.stream][usize::from(sent.op == Op::Write)];
            times.ns.push(p.free.since(sent.at).ns());
        }
        self.send_next(sent.process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::HostTimes;

    fn stream(depth: u32, host: HostTimes) -> Stream {
        Stream {
            processes: 1,
            depth,
            read_pct: 100,
            bytes: [4096; 2],
            sequential: false,
            host,
        }
    }

    fn times(device: &str, queue_depth: u32, stream: Stream) -> Times {
        let (info, params) = blklab_device::parse_spec(device).expect("a device");
        let none = |_: &str| Err(String::new());
        let device = blklab_device::build(info.name, &params, queue_depth, &none).expect("builds");
        let length = Length {
            buffer_slots: 0,
            writes_per_s: 0.0,
            seconds: 0.01,
            commands_max: 10_000,
        };
        let mut times = run(device, queue_depth, &[stream], length, 0);
        std::mem::take(&mut times[0][0])
    }

    #[test]
    fn one_command_at_a_time_takes_the_devices_time_and_the_hosts() {
        let law = "parallel,read_ns=100us,ns_per_sector=0";
        let mut t = times(law, 32, stream(1, HostTimes::default()));
        assert_eq!((t.us(0.5), t.per_s), (100.0, 10_000.0));
        let host = HostTimes {
            wake_ns: 5_000,
            reap_ns: 1_000,
            submit_ns: 2_000,
        };
        let mut t = times(law, 32, stream(1, host));
        assert_eq!(
            t.us(0.5),
            106.0,
            "what comes before the submission is not in it"
        );
        assert!((t.per_s - 1e6 / 108.0).abs() < 150.0, "{}", t.per_s);
    }

    #[test]
    fn a_process_limits_the_rate_and_a_full_device_lets_commands_wait() {
        let law = "parallel,read_ns=100us,ns_per_sector=0";
        let host = HostTimes {
            submit_ns: 10_000,
            ..HostTimes::default()
        };
        let t = times(law, 256, stream(64, host));
        assert!((t.per_s - 100_000.0).abs() < 1000.0, "{}", t.per_s);
        let mut t = times(law, 4, stream(8, HostTimes::default()));
        assert!((t.per_s - 40_000.0).abs() < 1000.0, "{}", t.per_s);
        assert_eq!(t.us(0.5), 200.0);
    }
}
