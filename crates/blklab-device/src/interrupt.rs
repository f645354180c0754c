// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time from a device to its driver: what a device ends is known to the kernel some time
//! later, when an interrupt has reached a processor and its handler has come to it
//! (`nvme_irq`, `blk_mq_complete_request`).
//!
//! A device that was served so has room for its next command as late: what waits for an end,
//! a tag or a token of a scheduler, goes round slower by that time. Latencies of deep queues,
//! where the device is busy anyway, hardly change.
//!
//! All commands take the same time, so they end in the order in which the device ended them.
//! Left out: interrupts for several commands at a time (coalescing), and the processor that
//! is interrupted.

use crate::device::{Command, Device, DeviceCx, Done};
use blklab_types::{Span, Time};
use std::collections::VecDeque;

/// The token of wake-ups that are interrupts; devices have no such token.
const INTERRUPT: u64 = u64::MAX;

struct Interrupted {
    device: Box<dyn Device>,
    after: Span,
    /// What has ended, and when the kernel learns that.
    ended: VecDeque<(Time, Done)>,
}

/// The same device, whose ends are known so much later.
pub fn interrupted(device: Box<dyn Device>, after: Span) -> Box<dyn Device> {
    if after == Span::ZERO {
        return device;
    }
    Box::new(Interrupted {
        device,
        after,
        ended: VecDeque::new(),
    })
}

impl Interrupted {
    /// Calls the device, and keeps back what it ends.
    fn call(&mut self, cx: &mut DeviceCx<'_>, f: impl FnOnce(&mut dyn Device, &mut DeviceCx<'_>)) {
        let before = cx.done.len();
        f(self.device.as_mut(), cx);
        let known = cx.now + self.after;
        for done in cx.done.drain(before..) {
            self.ended.push_back((known, done));
            cx.wakes.push((known, INTERRUPT));
        }
    }
}

impl Device for Interrupted {
    fn copy(&self) -> Box<dyn Device> {
        Box::new(Interrupted {
            device: self.device.copy(),
            after: self.after,
            ended: self.ended.clone(),
        })
    }

    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        self.call(cx, |device, cx| device.submit(cx, cmd));
    }

    fn wake(&mut self, cx: &mut DeviceCx<'_>, token: u64) {
        if token != INTERRUPT {
            self.call(cx, |device, cx| device.wake(cx, token));
            return;
        }
        let first = self.ended.pop_front();
        let (known, done) = first.expect("an interrupt for each command that ended");
        assert_eq!(known, cx.now, "interrupts come in the order of what ended");
        cx.done.push(done);
    }

    fn capacity_sectors(&self) -> Option<u64> {
        self.device.capacity_sectors()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::CmdId;
    use blklab_types::{BioFlags, Op};

    #[test]
    fn what_a_device_ends_is_known_later_and_in_its_order() {
        let (info, params) =
            crate::parse_spec("parallel,read_ns=1000,ns_per_sector=0").expect("a device");
        let none = |_: &str| Err(String::new());
        let device = crate::build(info.name, &params, 32, &none).expect("builds");
        let mut device = interrupted(device, Span(300));
        let (mut wakes, mut done) = (Vec::new(), Vec::new());
        for id in [7, 3] {
            let mut cx = DeviceCx {
                now: Time(100),
                wakes: &mut wakes,
                done: &mut done,
            };
            let cmd = Command {
                id: CmdId(id),
                op: Op::Read,
                flags: BioFlags::NONE,
                sector: 0,
                nr_sectors: 8,
            };
            device.submit(&mut cx, &cmd);
        }
        let mut known = Vec::new();
        while !wakes.is_empty() {
            wakes.sort_by_key(|(time, _)| *time);
            let (now, token) = wakes.remove(0);
            device.wake(
                &mut DeviceCx {
                    now,
                    wakes: &mut wakes,
                    done: &mut done,
                },
                token,
            );
            known.extend(done.drain(..).map(|d| (now.0, d.id.0)));
        }
        assert_eq!(known, [(1400, 7), (1400, 3)]);
    }
}
