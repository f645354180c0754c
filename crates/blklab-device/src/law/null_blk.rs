// SPDX-License-Identifier: MIT OR Apache-2.0
//! Law `null_blk`: the kernel's null block device (queue_mode=2), measured on Linux 6.1 with
//! one hardware queue.
//!
//! With timer completions (`irqmode` 2, the default) every command ends
//! `completion_nsec` after it was handed over, whatever its size, beside any
//! number of others; a depth of 1 makes it a serial server. With `irqmode` 0 it
//! ends at once, during the hand-over, and only the processor takes time.
//!
//! With `mbps` = M there is a budget of M * 20971 bytes, renewed (not added to)
//! every 20 ms. A command larger than what is left takes the rest and waits, with
//! all that come after it, for the next tick, where it is tried again. A command
//! larger than a whole budget would wait for ever in the kernel; here it takes
//! the budget of one tick. That is what a single queue sees. On the multi-queue
//! path it is the driver that refuses commands and stops its queues, which the
//! block layer models, and the device is made without the parameter.
//!
//! Ticks are `tick_phase_ns` after multiples of 20 ms of virtual time; in the kernel
//! they count from the creation of the device. With `memory_backed` data are kept, which makes a difference to the processor that
//! copies them (setting `driver_copy_ns` of an experiment) and none to the times
//! of the device. A flush passes the budget as a command of no bytes.

use super::parallel::InFlight;
use crate::device::{Command, Device, DeviceCx, EIO};
use crate::error::DeviceError;
use crate::info::{MAX_QUEUE_DEPTH, Settings};
use crate::limits::{DeviceLimits, Driver};
use crate::param::{Kind, ParamInfo, Values, param};
use blklab_types::{SECTOR_BYTES, Span, Time, Unit};
use std::collections::VecDeque;

#[rustfmt::skip]
pub(crate) const PARAMS: &[ParamInfo] = &[
    param("completion_nsec", Kind::Time { unit_ns: 1, max_ns: 3_600_000_000_000 }, "10000", "irqmode 2: time of every command"),
    param("irqmode", Kind::Choice(&["0", "2"]), "2", "0: commands end during the hand-over; 2: after completion_nsec"),
    param("hw_queue_depth", Kind::Count { min: 1, max: MAX_QUEUE_DEPTH as u64 }, "", "most commands at a time: the queue depth if that is not given"),
    param("submit_queues", Kind::Count { min: 1, max: 128 }, "1", "hardware queues, each for a share of the processors"),
    param("shared_tag_bitmap", Kind::Switch, "off", "all hardware queues have one set of tags; from 5.16 on"),
    param("memory_backed", Kind::Switch, "off", "data are kept; makes no difference to the times of the device"),
    param("mbps", Kind::Count { min: 0, max: 1_000_000 }, "0", "bandwidth limit in MiB/s; 0: none").in_unit(Unit::MibPerS),
    param("tick_phase_ns", Kind::Time { unit_ns: 1, max_ns: TICK_NS }, "0", "mbps: when the budget is renewed, after multiples of 20 ms"),
    param("gb", Kind::Count { min: 1, max: 1_000_000 }, "250", "capacity in GiB").in_unit(Unit::GiB),
];

/// As measured: no write cache, requests of at most 512 KiB.
pub(crate) const LIMITS: DeviceLimits = DeviceLimits {
    driver: Driver::NullBlk,
    max_segments: Some(128),
    max_sectors: Some(1024),
    rotational: Some(false),
    has_flush: false,
    ..DeviceLimits::NONE
};

pub(crate) const SETTINGS: Settings = Settings {
    depth: Some("hw_queue_depth"),
    enforced: &["mbps"],
    limits: |values, limits| DeviceLimits {
        bytes_per_tick: Some(values.int("mbps") * TICK_BYTES as u64).filter(|bytes| *bytes > 0),
        tick_phase: Span(values.int("tick_phase_ns")),
        hw_queues: values.count("submit_queues"),
        shared_tags: values.on("shared_tag_bitmap"),
        ..limits
    },
};

const TICK_NS: u64 = 20_000_000;
/// Place of `irqmode` 2 in the list of its values.
const TIMER: u64 = 1;
/// Budget of one tick for each unit of `mbps`: 1 MiB / 50.
const TICK_BYTES: i64 = 20_971;
/// Token of the wake-up at a tick; completions have 0.
const TICK: u64 = 1;

#[derive(Clone)]
struct NullBlk {
    /// Time of a command; none: it ends when it starts.
    completion: Option<Span>,
    capacity_sectors: u64,
    in_flight: InFlight,
    /// Bytes per tick; 0 for no limit.
    tick_bytes: i64,
    /// When ticks come, after multiples of their interval.
    phase_ns: u64,
    /// What is left of the budget; below zero while a command waits.
    left_bytes: i64,
    /// Number of the tick in which the budget was last renewed.
    tick: u64,
    /// Commands that the budget holds up, oldest first.
    held: VecDeque<Command>,
}

impl NullBlk {
    /// Ticks so far.
    fn tick_at(&self, now: Time) -> u64 {
        (now.ns() + TICK_NS - self.phase_ns) / TICK_NS
    }

    fn renew(&mut self, now: Time) {
        let tick = self.tick_at(now);
        if tick != self.tick {
            self.tick = tick;
            self.left_bytes = self.tick_bytes;
        }
    }

    /// Whether the command may start now; takes its bytes in either case.
    fn admit(&mut self, cmd: &Command) -> bool {
        if self.tick_bytes == 0 {
            return true;
        }
        let full = self.left_bytes == self.tick_bytes;
        let bytes = (u64::from(cmd.nr_sectors) * SECTOR_BYTES) as i64;
        self.left_bytes -= bytes;
        self.left_bytes >= 0 || full
    }

    fn start(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        match self.completion {
            Some(completion) => {
                let end = cx.now + completion;
                self.in_flight.push(cx, cmd.id, cx.now, end);
            }
            None => cx.finish(cmd.id, cx.now),
        }
    }

    fn wake_at_next_tick(&self, cx: &mut DeviceCx<'_>) {
        let next = self.tick_at(cx.now) * TICK_NS + self.phase_ns;
        cx.wake_at(Time(next), TICK);
    }
}

impl Device for NullBlk {
    fn copy(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        if cmd.exceeds(self.capacity_sectors) {
            cx.fail(cmd.id, EIO);
            return;
        }
        self.renew(cx.now);
        if self.held.is_empty() && self.admit(cmd) {
            self.start(cx, cmd);
            return;
        }
        if self.held.is_empty() {
            self.wake_at_next_tick(cx);
        }
        self.held.push_back(*cmd);
    }

    fn wake(&mut self, cx: &mut DeviceCx<'_>, token: u64) {
        if token != TICK {
            self.in_flight.pop(cx);
            return;
        }
        self.renew(cx.now);
        while let Some(cmd) = self.held.front().copied() {
            if !self.admit(&cmd) {
                self.wake_at_next_tick(cx);
                break;
            }
            self.held.pop_front();
            self.start(cx, &cmd);
        }
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(self.capacity_sectors)
    }
}

pub(crate) fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    let tick_bytes = values.int("mbps") as i64 * TICK_BYTES;
    Ok(Box::new(NullBlk {
        completion: (values.int("irqmode") == TIMER).then(|| Span(values.int("completion_nsec"))),
        capacity_sectors: values.int("gb") << 21,
        in_flight: InFlight::with_depth(depth),
        tick_bytes,
        phase_ns: values.int("tick_phase_ns") % TICK_NS,
        left_bytes: tick_bytes,
        tick: 0,
        held: VecDeque::with_capacity(depth as usize),
    }))
}
