// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scale by which groups below one hold themselves back.

use blklab_types::{Span, Time};

/// A step of the scale or of a depth: a sixteenth of the requests up, a quarter down
/// (`scale_amount`).
pub(super) fn step(nr_requests: u32, up: bool) -> u32 {
    (nr_requests / if up { 16 } else { 4 }).max(1)
}

/// What the groups below one have in common (`child_latency_info`).
#[derive(Debug)]
pub(super) struct Siblings {
    /// Where they are to scale to (`scale_cookie`).
    pub(super) scale: i64,
    /// When that changed last.
    pub(super) changed: Option<Time>,
    /// The target that is missed; 0: none was.
    pub(super) missed_ns: u64,
    /// Bios of all.
    pub(super) nr_samples: u64,
    /// The group whose target it is.
    pub(super) scaler: Option<u16>,
}

impl Default for Siblings {
    fn default() -> Siblings {
        Siblings {
            scale: Siblings::DEFAULT,
            changed: None,
            missed_ns: 0,
            nr_samples: 0,
            scaler: None,
        }
    }
}

impl Siblings {
    /// The scale at which nobody is held back (`DEFAULT_SCALE_COOKIE`).
    pub(super) const DEFAULT: i64 = 1_000_000;

    /// Whether the scale changed so lately.
    pub(super) fn changed_within(&self, span: Span, now: Time) -> bool {
        self.changed.is_some_and(|at| now.since(at) < span)
    }

    /// A step up or down. Beyond as many as the queue has requests it is one, and down
    /// there is a bottom, so that the way back is not too long (`scale_cookie_change`).
    pub(super) fn move_scale(&mut self, up: bool, nr_requests: u32) {
        let step = i64::from(step(nr_requests, up));
        let nr_requests = i64::from(nr_requests);
        let missing = Siblings::DEFAULT - self.scale;
        let is_deep = missing > nr_requests;
        if up {
            self.scale = if step > missing {
                Siblings::DEFAULT
            } else if is_deep {
                self.scale + 1
            } else {
                self.scale + step
            };
        } else if !is_deep {
            self.scale -= step;
        } else if missing < 2 * nr_requests {
            self.scale -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Siblings;

    /// Where the scale is after some steps, below the default.
    fn after(siblings: &mut Siblings, up: bool, steps: u32) -> i64 {
        for _ in 0..steps {
            siblings.move_scale(up, 32);
        }
        Siblings::DEFAULT - siblings.scale
    }

    #[test]
    fn down_is_faster_than_up_and_has_a_bottom() {
        let mut siblings = Siblings::default();
        assert_eq!(after(&mut siblings, false, 1), 8);
        assert_eq!(after(&mut siblings, false, 4), 40);
        assert_eq!(after(&mut siblings, false, 1), 41);
        assert_eq!(after(&mut siblings, false, 100), 64);
        assert_eq!(after(&mut siblings, true, 32), 32);
        assert_eq!(after(&mut siblings, true, 1), 30);
        assert_eq!(after(&mut siblings, true, 100), 0);
    }
}
