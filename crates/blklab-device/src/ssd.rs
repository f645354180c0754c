// SPDX-License-Identifier: MIT OR Apache-2.0
//! A SATA SSD of 2009: a serial link and controller before parallel flash.
//!
//! ```text
//! read:  link (serial) ─► flash (all at once, each die waits for its program)
//! write: link (serial) ─► buffer ─► drain (serial), a program on one die
//! ```
//!
//! With Q reads of 4 KiB in flight the rate is `min(Q / (read + serial),
//! 1 / serial)`: two parameters. Writes end when they are in the buffer, which
//! drains at the sequential rate, or a random write at a time; a page being
//! programmed keeps reads of its die waiting.
//!
//! Sources: reviews of Intel's X25-M (2008, 2009) for capacity, dies and writes;
//! the two read parameters of `ssd-2010` from two throughputs published in
//! January 2010 (78 and 156 MB/s; see `examples/quantum-2010.toml`). Left out: the translation
//! layer and its garbage collection (the random rate stands for both), wear,
//! and trims: the drives of that generation have none.

use crate::device::{Command, Device, DeviceCx, EIO};
use crate::error::DeviceError;
use crate::info::{Build, DeviceInfo, Settings};
use crate::law::parallel::InFlight;
use crate::limits::DeviceLimits;
use crate::param::{Kind, ParamInfo, Values, param};
use blklab_types::{Op, SECTOR_BYTES, Span, Time, Unit};
use std::collections::VecDeque;

const TIME_US: Kind = Kind::Time {
    unit_ns: 1_000,
    max_ns: 1_000_000_000,
};

#[rustfmt::skip]
pub(crate) const PARAMS: &[ParamInfo] = &[
    param("capacity_sectors", Kind::Sectors { min: 1_000, max: 1 << 36 }, "156301488", "size"),
    param("read_us", TIME_US, "172", "time of a read, in parallel with any number of others"),
    param("serial_us", TIME_US, "25", "link and controller, per 4 KiB, one command at a time"),
    param("write_us", TIME_US, "65", "time of a write that finds room in the buffer"),
    param("buffer_bytes", Kind::Bytes { min: 4096, max: 1 << 30 }, "256KiB", "write buffer"),
    param("write_mb_per_s", Kind::Real { min: 0.1, max: 100_000.0 }, "70", "sequential writes in 10^6 B/s").in_unit(Unit::MbPerS),
    param("random_writes_per_s", Kind::Count { min: 1, max: 10_000_000 }, "3300", "writes that do not continue the one before").in_unit(Unit::PerS),
    param("dies", Kind::Count { min: 1, max: 4096 }, "20", "flash dies; pages are striped over them"),
    param("page_bytes", Kind::Bytes { min: 512, max: 1 << 20 }, "8192", "programmed at once on a die"),
    param("program_us", TIME_US, "900", "time to program a page; reads of its die wait"),
];

/// Intel X25-M, first generation.
pub(crate) const SSD_X25M: DeviceInfo = DeviceInfo {
    name: "ssd-x25m",
    summary: "SATA SSD of 2009 (Intel X25-M class), 80 GB",
    source: "reviews of 2008 and 2009; read_us and serial_us from 20,000 reads/s with 4 in \
             flight and 40,000 at most",
    params: PARAMS,
    preset: &[],
    queue_depth: 31,
    limits: DeviceLimits {
        rotational: Some(false),
        ..DeviceLimits::NONE
    },
    settings: Settings::NONE,
    build: Build::Plain(build),
};

/// The SSD of the reports of January 2010.
pub(crate) const SSD_2010: DeviceInfo = DeviceInfo {
    name: "ssd-2010",
    summary: "SATA SSD of the reports on CFQ's quantum of January 2010",
    source: "as ssd-x25m; read_us and serial_us calibrated with 78 and 156 MB/s of \
             examples/quantum-2010.toml",
    preset: &[("read_us", "168"), ("serial_us", "15")],
    ..SSD_X25M
};

/// A write on its way from the buffer to the flash.
#[derive(Clone, Copy, Debug)]
struct Draining {
    end: Time,
    sectors: u64,
}

#[derive(Clone, Debug)]
struct Ssd {
    capacity_sectors: u64,
    read: Span,
    write: Span,
    serial_ns_per_4k: u64,
    buffer_sectors: u64,
    ns_per_sector: u64,
    random_ns: u64,
    page_sectors: u64,
    program: Span,
    in_flight: InFlight,
    link_free: Time,
    /// The buffer, oldest first, and the sectors in it.
    buffer: VecDeque<Draining>,
    buffered_sectors: u64,
    drain_free: Time,
    /// The sector after the last write.
    write_end: u64,
    /// When each die has no program left.
    die_free: Vec<Time>,
}

impl Ssd {
    /// Takes the link for the command; says when it has passed.
    fn pass_link(&mut self, cmd: &Command, now: Time) -> Time {
        let bytes = u64::from(cmd.nr_sectors) * SECTOR_BYTES;
        let begin = self.link_free.max(now);
        self.link_free = begin + Span(bytes * self.serial_ns_per_4k / 4096);
        self.link_free
    }

    /// The dies of a command: those of its pages, each once.
    fn dies(&self, cmd: &Command) -> impl Iterator<Item = usize> + use<> {
        let first = cmd.sector / self.page_sectors;
        let pages = (cmd.end().saturating_sub(1) / self.page_sectors + 1).saturating_sub(first);
        let dies = self.die_free.len() as u64;
        (0..pages.min(dies)).map(move |i| ((first + i) % dies) as usize)
    }

    fn read(&mut self, cmd: &Command, now: Time) -> Time {
        let passed = self.pass_link(cmd, now);
        let free = self.dies(cmd).map(|die| self.die_free[die]).max();
        passed.max(free.unwrap_or(passed)) + self.read
    }

    fn write(&mut self, cmd: &Command, now: Time) -> Time {
        let passed = self.pass_link(cmd, now);
        let sectors = u64::from(cmd.nr_sectors).min(self.buffer_sectors);
        let admitted = self.make_room(sectors, passed);
        let sequential_ns = u64::from(cmd.nr_sectors) * self.ns_per_sector;
        let drain_ns = if cmd.sector == self.write_end {
            sequential_ns
        } else {
            sequential_ns.max(self.random_ns)
        };
        self.write_end = cmd.end();
        let begin = self.drain_free.max(admitted);
        self.drain_free = begin + Span(drain_ns);
        for die in self.dies(cmd) {
            self.die_free[die] = self.die_free[die].max(begin + self.program);
        }
        self.buffer.push_back(Draining {
            end: self.drain_free,
            sectors,
        });
        self.buffered_sectors += sectors;
        admitted + self.write
    }

    /// When so many sectors have room in the buffer, from `now` on.
    fn make_room(&mut self, sectors: u64, now: Time) -> Time {
        let mut admitted = now;
        while let Some(first) = self.buffer.front() {
            let full = self.buffered_sectors + sectors > self.buffer_sectors;
            if first.end > now && !full {
                break;
            }
            admitted = admitted.max(first.end);
            self.buffered_sectors -= first.sectors;
            self.buffer.pop_front();
        }
        admitted
    }
}

impl Device for Ssd {
    fn copy(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        if cmd.exceeds(self.capacity_sectors) {
            cx.fail(cmd.id, EIO);
            return;
        }
        let end = match cmd.op {
            _ if cmd.nr_sectors == 0 && cmd.op != Op::Flush => cx.now,
            Op::Read => self.read(cmd, cx.now),
            Op::Write => self.write(cmd, cx.now),
            Op::Flush => self.drain_free.max(self.link_free).max(cx.now),
            Op::Discard => cx.now,
        };
        self.in_flight.push(cx, cmd.id, cx.now, end);
    }

    fn wake(&mut self, cx: &mut DeviceCx<'_>, _token: u64) {
        self.in_flight.pop(cx);
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(self.capacity_sectors)
    }
}

fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    let buffer_sectors = values.int("buffer_bytes") / SECTOR_BYTES;
    let per_sector = SECTOR_BYTES as f64 * 1_000.0 / values.real("write_mb_per_s");
    Ok(Box::new(Ssd {
        capacity_sectors: values.int("capacity_sectors"),
        read: Span(values.int("read_us")),
        write: Span(values.int("write_us")),
        serial_ns_per_4k: values.int("serial_us"),
        buffer_sectors,
        ns_per_sector: per_sector.round() as u64,
        random_ns: 1_000_000_000 / values.int("random_writes_per_s"),
        page_sectors: values.int("page_bytes") / SECTOR_BYTES,
        program: Span(values.int("program_us")),
        in_flight: InFlight::with_depth(depth),
        link_free: Time::ZERO,
        buffer: VecDeque::with_capacity(buffer_sectors.min(4096) as usize),
        buffered_sectors: 0,
        drain_free: Time::ZERO,
        write_end: 0,
        die_free: vec![Time::ZERO; values.int("dies") as usize],
    }))
}

#[cfg(test)]
mod tests {
    use crate::host::Host;
    use blklab_types::{BioFlags, Op};

    /// Reads of 4 KiB per second with `depth` in flight.
    fn reads_per_s(depth: usize) -> f64 {
        let mut host = Host::build("ssd-x25m", 31);
        let (mut done, mut next) = (0u64, 0u64);
        while done < 20_000 {
            while host.nr_in_flight() < depth {
                next = (next + 7_654_320) % 156_000_000;
                host.submit(Op::Read, BioFlags::NONE, next, 8);
            }
            done += host.step().expect("goes on").len() as u64;
        }
        done as f64 * 1e9 / host.now.ns() as f64
    }

    #[test]
    fn reads_by_depth() {
        let vector = [
            (1, 5076.0),
            (2, 10152.0),
            (4, 20305.0),
            (8, 40000.0),
            (31, 40000.0),
        ];
        for (depth, expected) in vector {
            let rate = reads_per_s(depth);
            assert!((rate / expected - 1.0).abs() < 0.005, "{depth}: {rate}");
        }
    }

    #[test]
    fn writes_run_at_the_sequential_or_the_random_rate() {
        for (stride, per_s) in [(8, 70e6 / 4096.0), (100_000, 3300.0)] {
            let mut host = Host::build("ssd-x25m", 31);
            for i in 0..1000 {
                while host.nr_in_flight() == 31 {
                    host.step();
                }
                host.submit(Op::Write, BioFlags::NONE, i * stride, 8);
            }
            host.drain();
            host.one(Op::Flush, 0, 0);
            let rate = 1000e9 / host.now.ns() as f64;
            assert!((rate / per_s - 1.0).abs() < 0.03, "{stride}: {rate}");
        }
    }

    #[test]
    fn a_read_waits_for_the_program_of_its_die() {
        let mut host = Host::build("ssd-x25m", 31);
        let idle = host.one(Op::Read, 0, 8);
        host.one(Op::Write, 0, 8);
        let busy = host.one(Op::Read, 8, 8);
        let other = host.one(Op::Read, 16, 8);
        let ns = |f: crate::host::Finished| (f.ended - f.submitted).ns();
        assert_eq!(ns(idle), 197_000);
        assert!(ns(busy) > 900_000, "{}", ns(busy));
        assert_eq!(ns(other), 197_000);
    }
}
