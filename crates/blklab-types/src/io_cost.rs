// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the root group's files tell the kernel's cost controller.

/// `io.cost.qos`: when the controller runs, and which latencies it keeps. A number
/// that is not named is that of the device's class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCostQos {
    /// `enable`.
    pub enable: bool,
    /// `ctrl=user`: the numbers stay as they are.
    pub is_user: bool,
    /// `rpct` and `rlat`.
    pub read: IoCostTarget,
    /// `wpct` and `wlat`.
    pub write: IoCostTarget,
    /// `min`: the slowest rate, in millionths of the device's.
    pub min_ppm: Option<u32>,
    /// `max`: the fastest one.
    pub max_ppm: Option<u32>,
}

/// A latency that so many requests of a direction are to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCostTarget {
    /// The percentile, in millionths; 0: latency does not matter.
    pub ppm: Option<u32>,
    /// The latency, in us.
    pub latency_us: Option<u32>,
}

/// `io.cost.model`: what the device can do. A number that is not named is that of the
/// device's class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCostModel {
    /// `ctrl=user`: the numbers stay as they are.
    pub is_user: bool,
    /// `rbps`, `rseqiops`, `rrandiops`.
    pub read: IoCostRates,
    /// `wbps`, `wseqiops`, `wrandiops`.
    pub write: IoCostRates,
}

/// What a device can do in one direction; 0: what would be paid by it is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCostRates {
    /// Bytes per second.
    pub bytes_per_s: Option<u64>,
    /// Sequential I/Os of 4 KiB per second.
    pub sequential_per_s: Option<u64>,
    /// Random I/Os of 4 KiB per second.
    pub random_per_s: Option<u64>,
}
