// SPDX-License-Identifier: MIT OR Apache-2.0
//! Law `simdisk`: the simulated disk used for the measurements on Linux 6.1.
//!
//! One server, one command at a time. Mode 0 is a fixed time plus a time per
//! sector, in order of arrival. Mode 1 is a platter ([`super::platter`]):
//! `order` 0 takes the oldest command, 1 the one with the shortest positioning
//! time (the oldest of equals; what the read-ahead holds costs nothing), chosen
//! when the server becomes free. The fixed time of a command comes before its
//! seek. Writes always go to the medium. Before time 0 the partition scan has
//! read the first `scanned` sectors, and the read-ahead after them has come to
//! its end: reads of these sectors are hits until another access to the medium.

use super::order::{SOME_WAITS, cheapest};
use super::platter::{Platter, PlatterSpec};
use super::serial::CommandTime;
use super::server::{Server, Service};
use crate::device::{Command, Device};
use crate::error::DeviceError;
use crate::info::{MAX_QUEUE_DEPTH, Settings};
use crate::limits::{DeviceLimits, Driver};
use crate::param::{Kind, ParamInfo, Values, param};
use blklab_types::{Op, Span, Time, Unit};
use std::collections::VecDeque;

#[rustfmt::skip]
pub(crate) const PARAMS: &[ParamInfo] = &[
    param("mode", Kind::Choice(&["0", "1"]), "0", "0: fixed time plus time per sector; 1: a rotating disk"),
    param("fixed_ns", Kind::Time { unit_ns: 1, max_ns: 3_600_000_000_000 }, "100000", "time of every command, before the seek in mode 1"),
    param("sector_ns", Kind::Time { unit_ns: 1, max_ns: 1_000_000_000 }, "5000", "time of one sector"),
    param("order", Kind::Choice(&["0", "1"]), "0", "mode 1: 0 takes the oldest command, 1 the one with the shortest positioning time"),
    param("spt", Kind::Count { min: 1, max: 1 << 20 }, "1024", "mode 1: sectors per track").in_unit(Unit::Sectors),
    param("ra", Kind::Sectors { min: 0, max: 1 << 20 }, "512", "mode 1: read-ahead in sectors"),
    param("seek_min_ns", Kind::Time { unit_ns: 1, max_ns: 1_000_000_000 }, "1000000", "mode 1: time of any seek"),
    param("seek_var_ns", Kind::Time { unit_ns: 1, max_ns: 1_000_000_000 }, "14000000", "mode 1: added for a seek over the whole disk; by square root of the distance"),
    param("scanned", Kind::Sectors { min: 0, max: 1 << 20 }, "8", "mode 1: sectors that the partition scan has read before time 0, besides the read-ahead after them"),
    param("submit_queues", Kind::Count { min: 1, max: 128 }, "1", "hardware queues, each for a share of the processors"),
    param("depth", Kind::Count { min: 1, max: MAX_QUEUE_DEPTH as u64 }, "", "most commands held: the queue depth if that is not given"),
];

/// As measured: no write cache, requests of at most 512 KiB.
pub(crate) const LIMITS: DeviceLimits = DeviceLimits {
    driver: Driver::SimDisk,
    max_segments: Some(128),
    max_sectors: Some(1024),
    // The measuring machine wrote 512 to `max_sectors_kb` of a disk that had 1280.
    registered_sectors: Some(2560),
    rotational: Some(false),
    has_flush: false,
    ..DeviceLimits::NONE
};

/// A platter says that it is one.
pub(crate) const SETTINGS: Settings = Settings {
    depth: Some("depth"),
    limits: |values, limits| DeviceLimits {
        rotational: Some(values.int("mode") == 1),
        hw_queues: values.count("submit_queues"),
        ..limits
    },
    ..Settings::NONE
};

/// 4 GiB.
const CAPACITY_SECTORS: u64 = 8_388_608;

/// Mode 0.
#[derive(Clone)]
struct Fixed(CommandTime);

impl Service for Fixed {
    fn serve(&mut self, now: Time, cmd: &Command) -> Time {
        now + self.0.service_time(cmd)
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(CAPACITY_SECTORS)
    }
}

/// Mode 1.
#[derive(Clone)]
struct Disk {
    platter: Platter,
    fixed: Span,
    shortest_first: bool,
}

impl Disk {
    fn cost_ns(&self, now: Time, cmd: &Command) -> u64 {
        let (sector, n) = (cmd.sector, u64::from(cmd.nr_sectors));
        match cmd.op {
            Op::Flush | Op::Discard => 0,
            Op::Read if self.platter.is_hit(now.ns(), sector, n) => 0,
            Op::Read | Op::Write => self.platter.positioning_ns((now + self.fixed).ns(), sector),
        }
    }
}

impl Service for Disk {
    fn choose(&self, now: Time, waiting: &VecDeque<Command>) -> usize {
        if !self.shortest_first {
            return 0;
        }
        cheapest(waiting, |cmd| self.cost_ns(now, cmd)).expect(SOME_WAITS)
    }

    fn serve(&mut self, now: Time, cmd: &Command) -> Time {
        let (sector, n) = (cmd.sector, u64::from(cmd.nr_sectors));
        let ready = now + self.fixed;
        match cmd.op {
            Op::Read if self.platter.is_hit(now.ns(), sector, n) => {
                self.platter.read_ahead(now, ready, sector, n)
            }
            Op::Read => self.platter.read(ready, sector, n),
            _ => self.platter.write(ready, sector, n),
        }
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(self.platter.capacity_sectors())
    }
}

pub(crate) fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    let fixed_ns = values.int("fixed_ns");
    let sector_ns = values.int("sector_ns");
    if values.int("mode") == 0 {
        let time = CommandTime {
            read_ns: fixed_ns,
            write_ns: fixed_ns,
            ns_per_sector: sector_ns,
        };
        return Ok(Box::new(Server::new(Fixed(time), depth)));
    }
    if sector_ns == 0 {
        return Err(values.bad(
            "sector_ns",
            "at least 1 ns in mode 1, where it makes the revolution".into(),
        ));
    }
    let mut platter = Platter::new(PlatterSpec {
        capacity_sectors: CAPACITY_SECTORS,
        sector_ns,
        track_sectors: values.int("spt"),
        seek_min_ns: values.count("seek_min_ns"),
        seek_var_ns: values.count("seek_var_ns"),
        read_ahead_sectors: values.int("ra"),
    });
    platter.scanned(values.int("scanned"));
    let shortest_first = values.int("order") == 1;
    Ok(Box::new(Server::new(
        Disk {
            platter,
            fixed: Span(fixed_ns),
            shortest_first,
        },
        depth,
    )))
}
