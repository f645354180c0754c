// SPDX-License-Identifier: MIT OR Apache-2.0
//! The statistics of a trace as plain data. `docs/metrics.md` defines each
//! metric, with an example and how to read it. Times are in ns.

use crate::distribution::Distribution;
use crate::seeks::Seeks;
use crate::timeline::Profile;
use blklab_trace::Rwbs;
use blklab_types::{Dev, Op, Pid};
use serde::{Serialize, Serializer};

/// Processes with statistics of their own, in order of their first bio. Others
/// are summed: [`TraceStats::other_processes`].
pub const PROCESSES_MAX: usize = 8192;

/// Where the time of bios goes, in btt's phases. A bio that began a request
/// has Q2G, G2I, I2D; one that was merged has Q2M, M2D; all have D2C, Q2C.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Phases {
    /// Between successive bios.
    pub q2q: Distribution,
    /// Until it got a request.
    pub q2g: Distribution,
    /// The part of Q2G spent asleep because no request was free.
    pub s2g: Distribution,
    /// From there until the scheduler had it.
    pub g2i: Distribution,
    /// Until it was merged into a request.
    pub q2m: Distribution,
    /// In the scheduler.
    pub i2d: Distribution,
    /// In the scheduler, for a merged bio.
    pub m2d: Distribution,
    /// In driver and device.
    pub d2c: Distribution,
    /// All of it.
    pub q2c: Distribution,
}

impl Phases {
    /// The phases in btt's order, with their names.
    pub fn named(&self) -> [(&'static str, &Distribution); 9] {
        [
            ("Q2Q", &self.q2q),
            ("Q2G", &self.q2g),
            ("S2G", &self.s2g),
            ("G2I", &self.g2i),
            ("Q2M", &self.q2m),
            ("I2D", &self.i2d),
            ("M2D", &self.m2d),
            ("D2C", &self.d2c),
            ("Q2C", &self.q2c),
        ]
    }
}

/// Bios and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// How many.
    pub count: u64,
    /// How long together.
    pub bytes: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, bytes: u32) {
        self.count += 1;
        // Not even 2³² bios of 4 GiB reach the end.
        self.bytes += u64::from(bytes);
    }

    pub(crate) fn merge(&mut self, other: &Amount) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// Additions for which a sum had no room; it stays at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overflows(pub(crate) u64);

impl Overflows {
    /// Adds to a sum.
    #[inline]
    pub(crate) fn add(&mut self, sum: &mut u64, n: u64) {
        match sum.checked_add(n) {
            Some(total) => *sum = total,
            None => {
                *sum = u64::MAX;
                self.0 += 1;
            }
        }
    }
}

/// Amounts by direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Directions {
    /// Reads.
    pub read: Amount,
    /// Writes.
    pub write: Amount,
    /// Discards.
    pub discard: Amount,
    /// Flushes without data, and whatever else has no direction.
    pub other: Amount,
}

impl Directions {
    pub(crate) fn merge(&mut self, other: &Directions) {
        self.read.merge(&other.read);
        self.write.merge(&other.write);
        self.discard.merge(&other.discard);
        self.other.merge(&other.other);
    }
}

/// Plugging of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plugs {
    /// Ended by U.
    pub nr_unplugs: u64,
    /// Ended by UT.
    pub nr_timer_unplugs: u64,
    /// Requests that U events showed.
    pub nr_requests: u64,
    /// Requests that UT events showed.
    pub nr_timer_requests: u64,
    /// Time between P and the U or UT after it.
    pub plugged_ns: u64,
}

/// Periods in which the device had something to do, from a D to the C after
/// which nothing was left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// How many.
    pub nr_periods: u64,
    /// How long together.
    pub active_ns: u64,
    /// From the start of the trace to the end of the last period.
    pub until_ns: u64,
}

/// Requests between I and D.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SchedulerUse {
    /// Most of them at a time.
    pub max_waiting: u32,
    /// Requests that were issued after one that had come later.
    pub nr_overtaken: u64,
}

/// Times of requests from D to C by direction.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Services {
    /// Reads.
    pub read: Distribution,
    /// Writes.
    pub write: Distribution,
    /// Discards.
    pub discard: Distribution,
    /// Flushes without data, and whatever else has no direction.
    pub other: Distribution,
}

impl Services {
    /// The directions with their letters.
    pub fn named(&self) -> [(&'static str, &Distribution); 4] {
        [
            ("R", &self.read),
            ("W", &self.write),
            ("D", &self.discard),
            ("F", &self.other),
        ]
    }

    pub(crate) fn add(&mut self, rwbs: Rwbs, bytes: u64, ns: u64) {
        let of = match rwbs.op().filter(|_| bytes > 0) {
            Some(Op::Read) => &mut self.read,
            Some(Op::Write) => &mut self.write,
            Some(Op::Discard) => &mut self.discard,
            _ => &mut self.other,
        };
        of.add(ns);
    }
}

/// One device.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DeviceStats {
    /// Its number, as `8,0`.
    #[serde(serialize_with = "dev_text")]
    pub dev: Dev,
    /// Phases of its bios.
    pub phases: Phases,
    /// Bios queued, by direction.
    pub queued: Directions,
    /// Bios completed, by direction.
    pub completed: Directions,
    /// Bios that completed with an error.
    pub nr_errors: u64,
    /// Bios that were split; each part is a bio of its own afterwards.
    pub nr_splits: u64,
    /// Bios merged behind a request.
    pub nr_back_merges: u64,
    /// Bios merged in front of a request.
    pub nr_front_merges: u64,
    /// Requests that vanished into another.
    pub nr_request_merges: u64,
    /// Those of them whose merge the trace does not show.
    pub nr_silent_merges: u64,
    /// Requests issued; a requeued one counts each time.
    pub nr_issued: u64,
    /// Requests given back.
    pub nr_requeues: u64,
    /// Lengths of completions, in sectors.
    pub completed_sectors: Distribution,
    /// Times of requests from D to C.
    pub service: Distribution,
    /// The same by direction.
    pub service_of: Services,
    /// Between successive requests at their D.
    pub d2d: Distribution,
    /// Distances of bios in order of Q.
    pub q2q_seeks: Seeks,
    /// Distances of requests in order of D.
    pub d2d_seeks: Seeks,
    /// Plugging.
    pub plugs: Plugs,
    /// Requests in the scheduler.
    pub scheduler: SchedulerUse,
    /// Bios not yet dispatched when another came: btt's requests at Q.
    pub waiting_at_q: f64,
    /// When the device was busy.
    pub activity: Activity,
    /// Bios between Q and C, over time.
    pub depth: Profile,
    /// Requests between D and C, over time.
    pub device_depth: Profile,
}

/// One process.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ProcessStats {
    /// Its id.
    pub pid: Pid,
    /// Its name, if the trace says one.
    pub comm: Option<String>,
    /// Phases of its bios.
    pub phases: Phases,
    /// Bios queued, by direction.
    pub queued: Directions,
    /// Bios completed, by direction.
    pub completed: Directions,
    /// Bios merged into a request.
    pub nr_merges: u64,
}

/// Devices that were not followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OtherDevices {
    /// Their events.
    pub nr_events: u64,
    /// Bios queued, by direction.
    pub queued: Directions,
    /// Requests issued.
    pub nr_issued: u64,
    /// Completions with data.
    pub nr_completed: u64,
}

/// What could not be matched; see [`crate::lifecycle::Unmatched`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UnmatchedStats {
    /// Events that fit no bio or request: letters and number, where not 0.
    pub events: Vec<(&'static str, u64)>,
    /// Bios without C.
    pub unfinished_bios: u64,
    /// Requests without C.
    pub unfinished_requests: u64,
    /// Events of commands passed through to the device.
    pub passed_through: u64,
}

/// The statistics of a trace.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct TraceStats {
    /// Events, without messages.
    pub nr_events: u64,
    /// Messages.
    pub nr_messages: u64,
    /// Time of the first event.
    pub start_ns: u64,
    /// Time of the last event.
    pub end_ns: u64,
    /// Phases of all bios.
    pub all: Phases,
    /// Devices, in order of their first event.
    pub devices: Vec<DeviceStats>,
    /// Processes that queued something, by id.
    pub processes: Vec<ProcessStats>,
    /// All processes beyond the first
    /// [`PROCESSES_MAX`] as one, with id 0 and
    /// no Q2Q.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_processes: Option<Box<ProcessStats>>,
    /// All devices beyond the first
    /// [`DEVICES_MAX`](crate::lifecycle::DEVICES_MAX): counts of their events
    /// alone, which are in no other number but that of all events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_devices: Option<OtherDevices>,
    /// Additions for which a sum of 64 bits had no room: that sum is a lower
    /// bound. Only times or counts that no machine records lead there.
    #[serde(skip_serializing_if = "is_zero")]
    pub nr_overflows: u64,
    /// What could not be matched.
    pub unmatched: UnmatchedStats,
}

impl DeviceStats {
    /// Bios per request, as btt: how much merging did. At least 1.
    pub fn merge_ratio(&self) -> f64 {
        let queued = self.queued.total().count + self.nr_splits;
        if self.nr_issued == 0 {
            1.0
        } else {
            (queued as f64 / self.nr_issued as f64).max(1.0)
        }
    }
}

impl Directions {
    /// All directions together.
    pub fn total(&self) -> Amount {
        let all = [self.read, self.write, self.discard, self.other];
        Amount {
            count: all.iter().map(|a| a.count).sum(),
            bytes: all.iter().map(|a| a.bytes).sum(),
        }
    }
}

/// Writes a device as text: `8,0`.
///
/// # Errors
/// Those of the serializer.
// serde calls this with a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub fn dev_text<S: Serializer>(dev: &Dev, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(dev)
}

// serde calls this with a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
