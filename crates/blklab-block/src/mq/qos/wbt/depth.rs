// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many writes may be on their way, and how long a window is, by step:
//! `rq_depth` of block/blk-rq-qos.c and the limits of block/blk-wbt.c.

use blklab_types::Span;

/// Writes on their way at step 0, if the device takes so many (`RWB_DEF_DEPTH`).
const DEFAULT_DEPTH: u32 = 16;

/// Length of a window at step 0 and below (`RWB_WINDOW_NSEC`).
const WINDOW: Span = Span::from_ms(100);

/// The scaled depth of a device (`rq_depth`). Steps above 0 narrow it, steps
/// below 0 widen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Depth {
    queue_depth: u32,
    /// `scale_step`.
    step: i32,
    /// The last step towards more found the device's end (`scaled_max`).
    at_end: bool,
    /// `max_depth`.
    max: u32,
}

impl Depth {
    /// Step 0 for a device that takes `queue_depth` requests at once.
    pub(super) fn new(queue_depth: u32) -> Depth {
        Depth {
            queue_depth,
            step: 0,
            at_end: false,
            max: max_depth(queue_depth, 0).0,
        }
    }

    pub(super) fn step(&self) -> i32 {
        self.step
    }

    /// Writes on their way at most.
    pub(super) fn max(&self) -> u32 {
        self.max
    }

    /// One step towards more (`rq_depth_scale_up`); false if the device's end was
    /// reached.
    pub(super) fn scale_up(&mut self) -> bool {
        if self.at_end {
            return false;
        }
        self.step -= 1;
        (self.max, self.at_end) = max_depth(self.queue_depth, self.step);
        true
    }

    /// One step towards less (`rq_depth_scale_down`); a hard one (`hard_throttle`)
    /// takes back all steps towards more at once. False if one write at a time is
    /// all there is.
    pub(super) fn scale_down(&mut self, hard: bool) -> bool {
        if self.max == 1 {
            return false;
        }
        self.step = if hard && self.step < 0 {
            0
        } else {
            self.step + 1
        };
        self.at_end = false;
        self.max = max_depth(self.queue_depth, self.step).0;
        true
    }

    /// Length of the next window.
    pub(super) fn window(&self) -> Span {
        window(self.step)
    }
}

/// Depth at a step, and whether it cannot grow (`rq_depth_calc_max_depth`).
fn max_depth(queue_depth: u32, step: i32) -> (u32, bool) {
    if queue_depth == 1 {
        return if step > 0 { (1, false) } else { (2, true) };
    }
    let base = u64::from(queue_depth.min(DEFAULT_DEPTH)) - 1;
    let shift = step.unsigned_abs().min(31);
    if step > 0 {
        return ((base >> shift) as u32 + 1, false);
    }
    let depth = (base << shift) + 1;
    let end = 3 * u64::from(queue_depth) / 4;
    if step < 0 && depth > end {
        (end as u32, true)
    } else {
        (depth as u32, false)
    }
}

/// What ordinary and background writes get of a depth (`calc_wb_limits`).
pub(super) fn shares(max: u32) -> (u32, u32) {
    if max <= 2 {
        (max, 1)
    } else {
        (max.div_ceil(2), max.div_ceil(4))
    }
}

/// Length of a window at a step (`rwb_arm_timer`).
fn window(step: i32) -> Span {
    match u64::try_from(step) {
        Ok(step) if step > 0 => Span((WINDOW.ns() << 4) / ((step + 1) << 8).isqrt()),
        _ => WINDOW,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_by_step() {
        /// Depth of the device, then max, normal and background by step.
        type Row = (u32, &'static [(u32, u32, u32)]);
        // V13; steps from -3.
        let table: [Row; 7] = [
            (1, &[(2, 2, 1), (2, 2, 1), (2, 2, 1), (2, 2, 1), (1, 1, 1)]),
            (2, &[(1, 1, 1), (1, 1, 1), (1, 1, 1), (2, 2, 1), (1, 1, 1)]),
            (
                4,
                &[
                    (3, 2, 1),
                    (3, 2, 1),
                    (3, 2, 1),
                    (4, 2, 1),
                    (2, 2, 1),
                    (1, 1, 1),
                ],
            ),
            (16, &[(12, 6, 3), (12, 6, 3), (12, 6, 3), (16, 8, 4)]),
            (32, &[(24, 12, 6), (24, 12, 6), (24, 12, 6), (16, 8, 4)]),
            (64, &[(48, 24, 12), (48, 24, 12), (31, 16, 8), (16, 8, 4)]),
            (256, &[(121, 61, 31), (61, 31, 16), (31, 16, 8), (16, 8, 4)]),
        ];
        for (queue_depth, row) in table {
            let narrow: &[_] = if queue_depth < 16 {
                &[]
            } else {
                &[(8, 4, 2), (4, 2, 1), (2, 2, 1), (1, 1, 1)]
            };
            for (step, &expected) in (-3..).zip(row.iter().chain(narrow)) {
                let (max, _) = max_depth(queue_depth, step);
                let (normal, background) = shares(max);
                assert_eq!(
                    (max, normal, background),
                    expected,
                    "depth {queue_depth}, step {step}"
                );
            }
        }
    }

    #[test]
    fn windows_by_step() {
        let expected = [100_000_000, 72_727_272, 59_259_259, 50_000_000, 45_714_285];
        for (step, ns) in (0..).zip(expected) {
            assert_eq!(window(step), Span(ns));
        }
        assert_eq!(window(-3), WINDOW);
    }

    #[test]
    fn steps_end_at_the_device_and_at_one() {
        for queue_depth in 1..=1100 {
            let mut depth = Depth::new(queue_depth);
            let mut steps = 0;
            while depth.scale_up() {
                steps += 1;
                assert!(steps < 10, "depth {queue_depth} grows without end");
            }
            assert!(depth.max() <= queue_depth.max(2));
            // Hard: at once back to 0, if there is anything to give up.
            if depth.scale_down(true) {
                assert_eq!(depth.step(), 0);
            }
            while depth.scale_down(false) {}
            assert_eq!(depth.max(), 1);
            assert!(depth.step() <= 4);
        }
        // 64: the second step up is the last one.
        let mut depth = Depth::new(64);
        assert!(depth.scale_up() && depth.scale_up() && !depth.scale_up());
        assert_eq!((depth.step(), depth.max()), (-2, 48));
    }
}
