// SPDX-License-Identifier: MIT OR Apache-2.0
//! What policies of a queue (rq-qos) note of a bio on its way.

use blklab_types::{Bio, BioFlags, Op, Time};

/// What policies noted of a bio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BioQos {
    /// Write-back throttling counts it in this class.
    pub(crate) class: Option<WbtClass>,
    /// Its groups count it as on its way, for `io.latency`.
    pub(crate) is_counted: bool,
    /// The group that holds it back.
    pub(crate) held_by: u16,
    /// Its latency counts from here (`bi_issue`, later `issue_time_ns`).
    pub(crate) issued: Time,
    /// By so much it moved its group's clock on (`bi_iocost_cost`).
    pub(crate) cost: u64,
}

/// What is counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WbtClass {
    /// Writes (`WBT_RWQ_BG`).
    Background,
    /// Discards (`WBT_RWQ_DISCARD`).
    Discard,
}

impl WbtClass {
    /// The class of a bio that is throttled (`wbt_should_throttle`): any that
    /// writes or discards, but not writes past the page cache.
    pub fn of_bio(bio: &Bio) -> Option<WbtClass> {
        const DIRECT: BioFlags = BioFlags(BioFlags::SYNC.0 | BioFlags::IDLE.0);
        match bio.op {
            Op::Read => None,
            Op::Write if bio.flags.has(DIRECT) => None,
            Op::Write | Op::Flush => Some(WbtClass::Background),
            Op::Discard => Some(WbtClass::Discard),
        }
    }
}
