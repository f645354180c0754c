// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which scheduler a release takes by itself.

use crate::KernelVersion;

crate::features! {
    /// The choice of a release.
    struct Features {
        /// On a device with one hardware queue.
        one_queue: &'static str = "anticipatory",
        /// On one with several.
        several_queues: &'static str = "anticipatory",
    }

    /// What releases changed in which scheduler is taken unless told otherwise.
    pub const CHANGES = {
        // `CONFIG_DEFAULT_IOSCHED`
        "2.6.18": "CFQ is the scheduler by default", "block/Kconfig.iosched" => {
            one_queue: "cfq",
            several_queues: "cfq",
        }
        // `elevator_get_default`
        "5.0": "mq-deadline is the scheduler by default, none on devices with several hardware queues",
            "block/elevator.c" => {
            one_queue: "mq-deadline",
            several_queues: "none",
        }
    };
}

/// The scheduler that a release uses unless told otherwise.
pub fn default_scheduler(version: KernelVersion, hw_queues: u32) -> &'static str {
    let features = Features::of(version);
    if hw_queues == 1 {
        features.one_queue
    } else {
        features.several_queues
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::v2_6(16)..KernelVersion::FOREVER;
        crate::check_changes(CHANGES, era, Features::of);
    }
}
