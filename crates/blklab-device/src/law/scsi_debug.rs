// SPDX-License-Identifier: MIT OR Apache-2.0
//! Law `scsi_debug`: the kernel's simulated SCSI disk.
//!
//! Every command, whatever it is, takes `ndelay` nanoseconds from hand-over; all
//! of them progress at once, at most `max_queue` (the queue depth).
//!
//! Left out: `delay` in jiffies, errors that the module can be told to make,
//! and its small store that wraps around.

use super::parallel::InFlight;
use crate::device::{Command, Device, DeviceCx, EIO};
use crate::error::DeviceError;
use crate::info::{MAX_QUEUE_DEPTH, Settings};
use crate::limits::DeviceLimits;
use crate::param::{Kind, ParamInfo, Values, param};
use blklab_types::{Span, Unit};

const NDELAY: Kind = Kind::Time {
    unit_ns: 1,
    max_ns: 3_600_000_000_000,
};
const DEPTH: Kind = Kind::Count {
    min: 1,
    max: MAX_QUEUE_DEPTH as u64,
};
const SIZE: Kind = Kind::Count {
    min: 1,
    max: 1 << 30,
};

#[rustfmt::skip]
pub(crate) const PARAMS: &[ParamInfo] = &[
    param("ndelay", NDELAY, "1000000", "time of every command"),
    param("max_queue", DEPTH, "", "most commands at a time: the queue depth if that is not given"),
    param("dev_size_mb", SIZE, "4096", "capacity in MiB; the kernel's own default is 8").in_unit(Unit::MiB),
];

pub(crate) const LIMITS: DeviceLimits = DeviceLimits {
    rotational: Some(false),
    has_timers: true,
    ..DeviceLimits::NONE
};

pub(crate) const SETTINGS: Settings = Settings {
    depth: Some("max_queue"),
    ..Settings::NONE
};

#[derive(Clone)]
struct ScsiDebug {
    delay: Span,
    capacity_sectors: u64,
    in_flight: InFlight,
}

impl Device for ScsiDebug {
    fn copy(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        if cmd.exceeds(self.capacity_sectors) {
            cx.fail(cmd.id, EIO);
            return;
        }
        let end = cx.now + self.delay;
        self.in_flight.push(cx, cmd.id, cx.now, end);
    }

    fn wake(&mut self, cx: &mut DeviceCx<'_>, _token: u64) {
        self.in_flight.pop(cx);
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(self.capacity_sectors)
    }
}

pub(crate) fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    Ok(Box::new(ScsiDebug {
        delay: Span(values.int("ndelay")),
        capacity_sectors: values.int("dev_size_mb") << 11,
        in_flight: InFlight::with_depth(depth),
    }))
}
