// SPDX-License-Identifier: MIT OR Apache-2.0
//! Law `simdisk-2628`: the simulated disk used for the measurements on Linux
//! 2.6.28: a platter ([`super::platter`]) of 64 GiB with an overhead that
//! overlaps with the service of other commands, and a plain write cache.
//!
//! A command is ready 150 us after hand-over. When the mechanism is free it
//! takes a ready one: the oldest (`fifo`) or the one with the shortest
//! positioning time (`sptf`; what the read-ahead holds costs nothing; the
//! earlier of equals). With `write_cache_sectors` > 0 ready writes pass over the
//! bus one at a time in order of arrival, each when the cache has room for it,
//! and complete then; they stay in the cache until they are on the medium.
//! Cached writes are put down, shortest positioning first, only when no read is
//! ready. Reads do not look into the cache.
//!
//! The mechanism learns of the end of an access by an interrupt, `interrupt_ns`
//! later; only then does it complete the command and choose the next one. By
//! then a sector that follows directly has passed: in the recorded traces of
//! writers it is never taken as the next one.
//!
//! Not measured, and chosen here: a write larger than the cache enters it when
//! it is empty; a flush ends when the cache is empty.

use super::order::cheapest;
use super::platter::{Platter, PlatterSpec};
use crate::device::{CmdId, Command, Device, DeviceCx, EIO};
use crate::error::DeviceError;
use crate::info::Settings;
use crate::limits::DeviceLimits;
use crate::param::{Kind, ParamInfo, Values, param};
use blklab_types::{Op, Span, Time};
use std::collections::VecDeque;

/// Without a cache there is nothing to flush.
pub(crate) const SETTINGS: Settings = Settings {
    limits: |values, limits| DeviceLimits {
        has_flush: values.int("write_cache_sectors") > 0,
        ..limits
    },
    ..Settings::NONE
};

#[rustfmt::skip]
pub(crate) const PARAMS: &[ParamInfo] = &[
    param("order", Kind::Choice(&["fifo", "sptf"]), "sptf", "which ready command is next: the oldest, or the one with the shortest positioning time"),
    param("write_cache_sectors", Kind::Sectors { min: 0, max: 1 << 24 }, "0", "size of the write cache; 0: a write completes when it is on the medium"),
    param("overhead_ns", Kind::Time { unit_ns: 1, max_ns: 1_000_000_000 }, "150000", "time from hand-over until a command is ready"),
    param("bus_ns_per_sector", Kind::Time { unit_ns: 1, max_ns: 1_000_000_000 }, "2560", "time of one sector on its way into the write cache"),
    param("interrupt_ns", Kind::Time { unit_ns: 1, max_ns: 1_000_000_000 }, "2000", "from the end of an access to its completion and the next choice"),
];

const PLATTER: PlatterSpec = PlatterSpec {
    capacity_sectors: 134_217_728,
    sector_ns: 6_200,
    track_sectors: 1_344,
    seek_min_ns: 800_000,
    seek_var_ns: 14_400_000,
    read_ahead_sectors: 512,
};

/// Tokens of wake-ups.
const READY: u64 = 0;
const BUS: u64 = 1;
const MECHANISM: u64 = 2;

/// What the mechanism is busy with.
#[derive(Clone)]
enum Job {
    /// A command of the host, begun at the time given.
    Command(CmdId, Time),
    /// Putting down cached sectors, so many.
    Destage(u64),
}

#[derive(Clone)]
struct CachedDisk {
    platter: Platter,
    shortest_first: bool,
    overhead: Span,
    interrupt: Span,
    bus_ns_per_sector: u64,
    cache_sectors: u64,
    /// Not ready yet, in order.
    arriving: VecDeque<Command>,
    /// Ready for the mechanism, oldest first.
    ready: VecDeque<Command>,
    /// Ready writes that wait for the bus or for room, oldest first.
    incoming: VecDeque<Command>,
    /// The write on the bus and when it began.
    on_bus: Option<(Command, Time)>,
    /// In the cache and not begun, oldest first.
    dirty: VecDeque<Command>,
    /// Sectors in the cache, on their way in, or on their way out.
    used_sectors: u64,
    job: Option<Job>,
    flushes: VecDeque<CmdId>,
}

impl CachedDisk {
    fn cost_ns(&self, now: Time, cmd: &Command) -> u64 {
        match cmd.op {
            Op::Read if self.platter.is_hit(now.ns(), cmd.sector, sectors(cmd)) => 0,
            _ => self.platter.positioning_ns(now.ns(), cmd.sector),
        }
    }

    fn shortest(&self, now: Time, list: &VecDeque<Command>) -> Option<usize> {
        cheapest(list, |cmd| self.cost_ns(now, cmd))
    }

    /// Begins whatever can begin.
    fn advance(&mut self, cx: &mut DeviceCx<'_>) {
        self.feed_bus(cx);
        self.feed_mechanism(cx);
        if self.used_sectors == 0 && self.incoming.is_empty() {
            while let Some(id) = self.flushes.pop_front() {
                cx.finish(id, cx.now);
            }
        }
    }

    fn feed_bus(&mut self, cx: &mut DeviceCx<'_>) {
        let Some(cmd) = self.incoming.front().copied() else {
            return;
        };
        let fits =
            self.used_sectors == 0 || self.used_sectors + sectors(&cmd) <= self.cache_sectors;
        if self.on_bus.is_some() || !fits {
            return;
        }
        self.incoming.pop_front();
        self.used_sectors += sectors(&cmd);
        self.on_bus = Some((cmd, cx.now));
        cx.wake_at(cx.now + Span(sectors(&cmd) * self.bus_ns_per_sector), BUS);
    }

    fn feed_mechanism(&mut self, cx: &mut DeviceCx<'_>) {
        if self.job.is_some() {
            return;
        }
        let now = cx.now;
        let ready = if self.shortest_first {
            let i = self.shortest(now, &self.ready);
            i.and_then(|i| self.ready.remove(i))
        } else {
            self.ready.pop_front()
        };
        if let Some(cmd) = ready {
            let (sector, n) = (cmd.sector, sectors(&cmd));
            let end = match cmd.op {
                Op::Read if self.platter.is_hit(now.ns(), sector, n) => {
                    self.platter.read_ahead(now, now, sector, n)
                }
                Op::Read => self.platter.read(now, sector, n),
                _ => self.platter.write(now, sector, n),
            };
            self.job = Some(Job::Command(cmd.id, now));
            cx.wake_at(end + self.interrupt, MECHANISM);
            return;
        }
        let i = self.shortest(now, &self.dirty);
        if let Some(cmd) = i.and_then(|i| self.dirty.remove(i)) {
            let end = self.platter.write(now, cmd.sector, sectors(&cmd));
            self.job = Some(Job::Destage(sectors(&cmd)));
            cx.wake_at(end + self.interrupt, MECHANISM);
        }
    }
}

fn sectors(cmd: &Command) -> u64 {
    u64::from(cmd.nr_sectors)
}

impl Device for CachedDisk {
    fn copy(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        if cmd.exceeds(self.platter.capacity_sectors()) {
            cx.fail(cmd.id, EIO);
            return;
        }
        self.arriving.push_back(*cmd);
        cx.wake_at(cx.now + self.overhead, READY);
    }

    fn wake(&mut self, cx: &mut DeviceCx<'_>, token: u64) {
        match token {
            READY => match self.arriving.pop_front() {
                Some(cmd) if cmd.op == Op::Flush => self.flushes.push_back(cmd.id),
                Some(cmd) if cmd.op == Op::Discard => cx.finish(cmd.id, cx.now),
                Some(cmd) if cmd.op == Op::Write && self.cache_sectors > 0 => {
                    self.incoming.push_back(cmd);
                }
                Some(cmd) => self.ready.push_back(cmd),
                None => {}
            },
            BUS => {
                if let Some((cmd, started)) = self.on_bus.take() {
                    cx.finish(cmd.id, started);
                    self.dirty.push_back(cmd);
                }
            }
            _ => match self.job.take() {
                Some(Job::Command(id, started)) => cx.finish(id, started),
                Some(Job::Destage(n)) => self.used_sectors -= n,
                None => {}
            },
        }
        self.advance(cx);
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(self.platter.capacity_sectors())
    }
}

pub(crate) fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    let queue = || VecDeque::with_capacity(depth as usize);
    Ok(Box::new(CachedDisk {
        platter: Platter::new(PLATTER),
        shortest_first: values.int("order") == 1,
        overhead: Span(values.int("overhead_ns")),
        interrupt: Span(values.int("interrupt_ns")),
        bus_ns_per_sector: values.int("bus_ns_per_sector"),
        cache_sectors: values.int("write_cache_sectors"),
        arriving: queue(),
        ready: queue(),
        incoming: queue(),
        on_bus: None,
        dirty: queue(),
        used_sectors: 0,
        job: None,
        flushes: VecDeque::new(),
    }))
}
