// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which scheduler a release takes by itself.

use crate::KernelVersion;

/// The scheduler that a release uses unless told otherwise: anticipatory, from
/// 2.6.18 CFQ (`CONFIG_DEFAULT_IOSCHED`, block/Kconfig.iosched), from 5.0
/// mq-deadline on devices with one hardware queue and none on others
/// (`elevator_get_default`, block/elevator.c).
pub fn default_scheduler(version: KernelVersion, hw_queues: u32) -> &'static str {
    if version < KernelVersion::v2_6(18) {
        "anticipatory"
    } else if version.has_single_queue() {
        "cfq"
    } else if hw_queues == 1 {
        "mq-deadline"
    } else {
        "none"
    }
}
