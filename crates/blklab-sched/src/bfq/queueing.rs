// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the device queues commands, as far as what was at the driver tells
//! (`bfq_update_hw_tag`).

/// Requests, waiting and at the driver, beyond which the depth of the device shows.
const DEPTH_THRESHOLD: u32 = 3;
/// Samples after which it is judged.
const SAMPLES: u32 = 32;

/// What is known of the device's queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queueing {
    /// The device seeks.
    rotational: bool,
    /// The device queues commands; none: not known yet.
    hw_tag: Option<bool>,
    /// Most requests that were at the driver since it was judged (`max_rq_in_driver`).
    max_in_driver: u32,
    /// `hw_tag_samples`.
    samples: u32,
}

impl Queueing {
    pub(super) fn new(rotational: bool) -> Queueing {
        Queueing {
            rotational,
            hw_tag: None,
            max_in_driver: 0,
            samples: 0,
        }
    }

    /// Whether it does, or is not known not to.
    pub(super) fn may_queue(&self) -> bool {
        self.hw_tag != Some(false)
    }

    /// Whether requests of neighbouring sectors gain nothing from each other, because the
    /// device queues commands and does not seek (`nonrot_with_queueing`).
    pub(super) fn ignores_distance(&self) -> bool {
        !self.rotational && self.may_queue()
    }

    pub(super) fn max_in_driver(&self) -> u32 {
        self.max_in_driver
    }

    /// A request completes while so many are at the driver and so many wait. Of the queue
    /// in service: its own, at the driver or waiting, and whether it thinks for a short
    /// time only. Once the device is known to queue, that stays.
    pub(super) fn sample(&mut self, in_driver: u32, queued: u32, of_service: Option<(u32, bool)>) {
        self.max_in_driver = self.max_in_driver.max(in_driver);
        if self.hw_tag == Some(true) || in_driver + queued <= DEPTH_THRESHOLD {
            return;
        }
        if let Some((own, short_think)) = of_service
            && short_think
            && own < DEPTH_THRESHOLD
            && in_driver < DEPTH_THRESHOLD
        {
            return;
        }
        self.samples += 1;
        if self.samples <= SAMPLES {
            return;
        }
        self.hw_tag = Some(self.max_in_driver > DEPTH_THRESHOLD);
        self.max_in_driver = 0;
        self.samples = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(samples: u32, in_driver: u32) -> Queueing {
        let mut q = Queueing::new(false);
        for _ in 0..samples {
            q.sample(in_driver, 4, None);
        }
        q
    }

    #[test]
    fn thirty_three_samples_judge() {
        assert_eq!(after(32, 2).hw_tag, None);
        assert!(!after(33, 2).may_queue());
        assert_eq!(after(33, 4).hw_tag, Some(true));
    }

    #[test]
    fn a_shallow_queue_in_service_tells_nothing() {
        let mut q = Queueing::new(false);
        for _ in 0..100 {
            q.sample(2, 4, Some((2, true)));
        }
        assert_eq!(q.hw_tag, None);
    }

    #[test]
    fn distance_matters_where_the_device_seeks_or_takes_one_at_a_time() {
        assert!(after(0, 0).ignores_distance());
        assert!(!after(33, 2).ignores_distance());
        assert!(!Queueing::new(true).ignores_distance());
    }
}
