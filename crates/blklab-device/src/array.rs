// SPDX-License-Identifier: MIT OR Apache-2.0
//! An array behind a controller with a protected write cache: a RAID controller
//! in the machine, or a LUN in a storage network.
//!
//! ```text
//! write ─► link (serial) ─► cache, if there is room ─► done
//! read  ─► in the cache? ─► link ─► done;  else back end ─► link ─► done
//! cache ─► back end: dirty data upwards by address, then again from the lowest
//! ```
//!
//! A write takes the overhead and its time on the link, which all commands
//! share. Above the limit of dirty data, writes wait for the back end; with a
//! hysteresis none are taken until so much has gone out. The back end serves one
//! access at a time: a positioning time unless it continues the last one, and its
//! length at the back end's rate; reads go first, or in turn while writes wait.
//! The cache is protected by a battery: a flush is an overhead and no more.
//!
//! Sources: Linux 2.6.24 drivers/block/cciss.c for the limits of `cciss`; a
//! write of 64 KiB traced in 2008 (0.598 ms) for its times; typical figures of
//! 10,000 rpm disks. Left out: geometry of the disks (positioning is a mean),
//! rebuilds, and read-ahead of the controller.

use crate::device::{Command, Device, DeviceCx, EIO};
use crate::error::DeviceError;
use crate::info::{Build, DeviceInfo, Settings};
use crate::limits::DeviceLimits;
use crate::param::{Kind, ParamInfo, Values, param};
use blklab_types::{Op, SECTOR_BYTES, Slab, Span, Time, Unit};
use std::collections::{BTreeMap, VecDeque};

const TIME_MS: Kind = Kind::Time {
    unit_ns: 1_000_000,
    max_ns: 1_000_000_000,
};
const RATE: Kind = Kind::Real {
    min: 0.1,
    max: 100_000.0,
};

/// The defaults are those of a RAID controller with two mirrored disks.
#[rustfmt::skip]
pub(crate) const PARAMS: &[ParamInfo] = &[
    param("capacity_sectors", Kind::Sectors { min: 1_000, max: 1 << 36 }, "143374744", "size"),
    param("write_ms", TIME_MS, "0.25", "overhead of a write, and of a flush"),
    param("read_hit_ms", TIME_MS, "0.3", "overhead of a read that is in the cache"),
    param("read_miss_ms", TIME_MS, "0.2", "overhead of a read from the disks"),
    param("link_mb_per_s", RATE, "190", "rate of the link to the cache, shared, in 10^6 B/s").in_unit(Unit::MbPerS),
    param("cache_bytes", Kind::Bytes { min: 1 << 16, max: 1 << 40 }, "128MiB", "write cache"),
    param("dirty_limit_pct", Kind::Count { min: 1, max: 100 }, "90", "writes wait above this share of the cache").in_unit(Unit::Percent),
    param("hysteresis_pct", Kind::Count { min: 0, max: 100 }, "0", "once the limit is reached, no write is accepted until this share of the cache has been destaged").in_unit(Unit::Percent),
    param("backend_mb_per_s", RATE, "60", "streaming rate of the disks in 10^6 B/s").in_unit(Unit::MbPerS),
    param("position_read_ms", TIME_MS, "7.7", "mean seek and rotation before a read"),
    param("position_write_ms", TIME_MS, "4.0", "the same before a write from the cache, in address order"),
    param("destage_bytes", Kind::Bytes { min: 512, max: 1 << 30 }, "1MiB", "largest piece that is destaged at once"),
];

/// HP Smart Array of 2008.
pub(crate) const CCISS: DeviceInfo = DeviceInfo {
    name: "cciss",
    summary: "RAID controller with protected write cache (HP Smart Array, 2008), RAID 1 of two \
              10,000 rpm disks",
    source: "Linux 2.6.24 drivers/block/cciss.c (limits); block trace of August 2008 (write times)",
    params: PARAMS,
    preset: &[],
    queue_depth: 512,
    limits: DeviceLimits {
        max_segments: Some(31),
        max_sectors: Some(2048),
        completion_unplugs: false,
        ordered_writes: false,
        has_flush: false,
        ..DeviceLimits::NONE
    },
    settings: Settings::NONE,
    build: Build::Plain(build),
};

/// A LUN of a disk array on Fibre Channel.
pub(crate) const SAN_LUN: DeviceInfo = DeviceInfo {
    name: "san-lun",
    summary: "LUN of a disk array with protected write cache, 2 Gb/s Fibre Channel, 2006",
    source: "typical figures; backend_mb_per_s from one published total time (2006)",
    params: PARAMS,
    preset: &[
        ("capacity_sectors", "419430400"),
        ("write_ms", "0.5"),
        ("read_hit_ms", "0.5"),
        ("read_miss_ms", "0.5"),
        ("link_mb_per_s", "170"),
        ("cache_bytes", "512MiB"),
        ("backend_mb_per_s", "22.5"),
    ],
    queue_depth: 32,
    limits: DeviceLimits {
        has_flush: false,
        ..DeviceLimits::NONE
    },
    settings: Settings::NONE,
    build: Build::Plain(build),
};

/// Tokens: a command's end carries its slot, the back end this.
const BACKEND: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
enum Job {
    Read(Command, Time),
    /// Sectors that leave the cache.
    Destage(u64),
}

#[derive(Clone, Debug)]
struct Array {
    capacity_sectors: u64,
    write: Span,
    read_hit: Span,
    read_miss: Span,
    link_ns_per_sector: u64,
    limit_sectors: u64,
    hysteresis_sectors: u64,
    backend_ns_per_sector: u64,
    position_read: Span,
    position_write: Span,
    piece_sectors: u64,
    link_free: Time,
    /// Dirty data: disjoint ranges by their begin, with their end.
    dirty: BTreeMap<u64, u64>,
    /// Sectors in the cache, those on their way out included.
    used_sectors: u64,
    /// The limit was reached and the hysteresis has not passed.
    stopped: bool,
    /// Writes without room, oldest first.
    waiting: VecDeque<(Command, Time)>,
    reads: VecDeque<(Command, Time)>,
    job: Option<Job>,
    /// The sector after the last one accessed by the back end.
    position: u64,
    /// The back end's last job was a read.
    after_read: bool,
    /// Commands whose end is certain, by slot.
    ending: Slab<u32, (Command, Time)>,
}

impl Array {
    /// Takes the link from `now` on; says when the command has passed.
    fn pass_link(&mut self, now: Time, cmd: &Command) -> Time {
        let begin = self.link_free.max(now);
        self.link_free = begin + Span(u64::from(cmd.nr_sectors) * self.link_ns_per_sector);
        self.link_free
    }

    fn end_at(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command, started: Time, end: Time) {
        let slot = self.ending.insert((*cmd, started));
        cx.wake_at(end, u64::from(slot));
    }

    fn holds(&self, start: u64, end: u64) -> bool {
        let before = self.dirty.range(..=start).next_back();
        before.is_some_and(|(_, &dirty_end)| end <= dirty_end)
    }

    /// Adds `[start, end)` to the dirty data, joined with what it touches.
    fn make_dirty(&mut self, start: u64, end: u64) {
        let (mut low, mut high, mut had) = (start, end, 0);
        while let Some((&s, &e)) = self
            .dirty
            .range(..=high)
            .next_back()
            .filter(|(_, e)| **e >= low)
        {
            self.dirty.remove(&s);
            had += e - s;
            (low, high) = (low.min(s), high.max(e));
        }
        self.dirty.insert(low, high);
        self.used_sectors += high - low - had;
    }

    /// Lets waiting writes into the cache while there is room.
    fn admit(&mut self, cx: &mut DeviceCx<'_>) {
        while let Some(&(cmd, started)) = self.waiting.front() {
            let n = u64::from(cmd.nr_sectors);
            let full = self.used_sectors > 0 && self.used_sectors + n > self.limit_sectors;
            let low = self.limit_sectors.saturating_sub(self.hysteresis_sectors);
            if full && self.hysteresis_sectors > 0 {
                self.stopped = true;
            } else if self.stopped && self.used_sectors <= low {
                self.stopped = false;
            }
            if full || self.stopped {
                return;
            }
            self.waiting.pop_front();
            let end = self.pass_link(cx.now, &cmd) + self.write;
            self.make_dirty(cmd.sector, cmd.end());
            self.end_at(cx, &cmd, started, end);
        }
    }

    fn submit_read(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        if self.holds(cmd.sector, cmd.end()) {
            let end = self.pass_link(cx.now, cmd) + self.read_hit;
            self.end_at(cx, cmd, cx.now, end);
        } else {
            self.reads.push_back((*cmd, cx.now));
        }
    }

    /// Gives the free back end something to do.
    fn start_next(&mut self, cx: &mut DeviceCx<'_>) {
        if self.job.is_some() {
            return;
        }
        let writes_due = !self.waiting.is_empty() && self.after_read;
        let read = if writes_due && !self.dirty.is_empty() {
            None
        } else {
            self.reads.pop_front()
        };
        self.after_read = read.is_some();
        let (start, n, position) = if let Some((cmd, started)) = read {
            self.job = Some(Job::Read(cmd, started));
            (cmd.sector, u64::from(cmd.nr_sectors), self.position_read)
        } else if let Some((start, n)) = self.take_dirty() {
            self.job = Some(Job::Destage(n));
            (start, n, self.position_write)
        } else {
            return;
        };
        let move_ns = if start == self.position {
            Span::ZERO
        } else {
            position
        };
        self.position = start + n;
        cx.wake_at(
            cx.now + move_ns + Span(n * self.backend_ns_per_sector),
            BACKEND,
        );
    }

    /// Takes the next piece upwards by address, or from the lowest.
    fn take_dirty(&mut self) -> Option<(u64, u64)> {
        let next = self.dirty.range(self.position..).next();
        let (&start, &end) = next.or_else(|| self.dirty.first_key_value())?;
        self.dirty.remove(&start);
        let n = (end - start).min(self.piece_sectors);
        if start + n < end {
            self.dirty.insert(start + n, end);
        }
        Some((start, n))
    }
}

impl Device for Array {
    fn copy(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        if cmd.exceeds(self.capacity_sectors) {
            cx.fail(cmd.id, EIO);
            return;
        }
        match cmd.op {
            Op::Discard => cx.finish(cmd.id, cx.now),
            _ if cmd.nr_sectors == 0 && cmd.op != Op::Flush => cx.finish(cmd.id, cx.now),
            Op::Flush => self.end_at(cx, cmd, cx.now, cx.now + self.write),
            Op::Read => self.submit_read(cx, cmd),
            Op::Write => {
                self.waiting.push_back((*cmd, cx.now));
                self.admit(cx);
            }
        }
        self.start_next(cx);
    }

    fn wake(&mut self, cx: &mut DeviceCx<'_>, token: u64) {
        if token != BACKEND {
            let (cmd, started) = *self.ending.remove(token as u32);
            cx.finish(cmd.id, started);
            return;
        }
        match self.job.take() {
            Some(Job::Read(cmd, started)) => {
                let end = self.pass_link(cx.now, &cmd) + self.read_miss;
                self.end_at(cx, &cmd, started, end);
            }
            Some(Job::Destage(n)) => {
                self.used_sectors -= n;
                self.admit(cx);
            }
            None => {}
        }
        self.start_next(cx);
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(self.capacity_sectors)
    }
}

fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    let depth = depth as usize;
    let cache_sectors = values.int("cache_bytes") / SECTOR_BYTES;
    let per_sector = |name| (SECTOR_BYTES as f64 * 1_000.0 / values.real(name)).round() as u64;
    let share = |name| cache_sectors * values.int(name) / 100;
    Ok(Box::new(Array {
        capacity_sectors: values.int("capacity_sectors"),
        write: Span(values.int("write_ms")),
        read_hit: Span(values.int("read_hit_ms")),
        read_miss: Span(values.int("read_miss_ms")),
        link_ns_per_sector: per_sector("link_mb_per_s"),
        limit_sectors: share("dirty_limit_pct"),
        hysteresis_sectors: share("hysteresis_pct"),
        backend_ns_per_sector: per_sector("backend_mb_per_s"),
        position_read: Span(values.int("position_read_ms")),
        position_write: Span(values.int("position_write_ms")),
        piece_sectors: values.int("destage_bytes") / SECTOR_BYTES,
        link_free: Time::ZERO,
        dirty: BTreeMap::new(),
        used_sectors: 0,
        stopped: false,
        waiting: VecDeque::with_capacity(depth),
        reads: VecDeque::with_capacity(depth),
        job: None,
        position: 0,
        after_read: false,
        ending: Slab::with_capacity(depth),
    }))
}

#[cfg(test)]
mod tests {
    use crate::host::Host;
    use blklab_types::{BioFlags, Op};

    fn ms(ns: u64) -> f64 {
        ns as f64 / 1e6
    }

    #[test]
    fn writes_of_the_controller() {
        for (sectors, expected_ms) in [(128, 0.595), (8, 0.272)] {
            let mut host = Host::build("cciss", 512);
            let f = host.one(Op::Write, 4096, sectors);
            let took = ms((f.ended - f.submitted).ns());
            assert!((took - expected_ms).abs() < 0.0005, "{sectors}: {took}");
        }
    }

    #[test]
    fn nine_writes_at_once_share_the_link() {
        let mut host = Host::build("cciss", 512);
        for i in 0..9 {
            host.submit(Op::Write, BioFlags::NONE, i * 100_000, 128);
        }
        let ends: Vec<u64> = host.drain().iter().map(|f| f.ended.ns()).collect();
        assert_eq!(ends.len(), 9);
        for pair in ends.windows(2) {
            let apart = ms(pair[1] - pair[0]);
            assert!((apart - 0.345).abs() < 0.0005, "{apart}");
        }
    }

    /// MB/s of `count` sequential writes of 512 KiB, 8 at a time.
    fn stream(spec: &str, count: u64) -> (f64, u64) {
        let mut host = Host::build(spec, 32);
        let (mut sent, mut longest, mut done) = (0, 0, 0);
        while done < count {
            let mut finished = Vec::new();
            while host.nr_in_flight() < 8 && sent < count {
                finished.extend(host.submit(Op::Write, BioFlags::NONE, sent * 1024, 1024));
                sent += 1;
            }
            finished.extend(host.step().expect("goes on"));
            for f in finished {
                done += 1;
                longest = longest.max((f.ended - f.submitted).ns());
            }
        }
        let mb = (count * 524_288) as f64 / 1e6;
        (mb * 1e9 / host.now.ns() as f64, longest)
    }

    #[test]
    fn a_stream_runs_at_the_link_and_then_at_the_back_end() {
        let (burst, _) = stream("san-lun", 400);
        assert!(burst > 160.0, "{burst}");
        let (sustained, steady) = stream("san-lun,cache_bytes=16MiB", 4000);
        assert!((sustained / 22.5 - 1.0).abs() < 0.02, "{sustained}");
        let (stop_and_go, longest) = stream("san-lun,cache_bytes=16MiB,hysteresis_pct=50", 4000);
        assert!((stop_and_go / 22.5 - 1.0).abs() < 0.02, "{stop_and_go}");
        assert!(longest > steady * 3 / 2, "{longest} {steady}");
    }

    #[test]
    fn reads_come_from_the_cache_or_from_the_disks() {
        let mut host = Host::build("cciss", 512);
        let took = |f: crate::host::Finished| ms((f.ended - f.submitted).ns());
        host.submit(Op::Write, BioFlags::NONE, 0, 8);
        for i in 1..30 {
            host.submit(Op::Write, BioFlags::NONE, i * 50_000, 8);
        }
        let hit = took(
            host.submit(Op::Read, BioFlags::NONE, 29 * 50_000, 8)
                .first()
                .copied()
                .unwrap_or_else(|| {
                    let all = host.drain();
                    *all.iter().find(|f| f.cmd.op == Op::Read).expect("the read")
                }),
        );
        assert!(hit < 1.0, "{hit}");
        let miss = took(host.one(Op::Read, 90_000_000, 8));
        assert!((7.9..8.2).contains(&miss), "{miss}");
        let flush = took(host.one(Op::Flush, 0, 0));
        assert!((flush - 0.25).abs() < 1e-9, "{flush}");
    }
}
