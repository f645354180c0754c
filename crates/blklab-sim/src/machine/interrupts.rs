// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the interrupts of devices come, and requests that are sent on to another
//! processor to end there.

use super::work::Work;
use super::{Machine, World};
use blklab_block::{QueueNo, RqId, Running};
use blklab_device::Done;
use blklab_types::Span;

/// Which processor a device's interrupt comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupts {
    /// Always to this one.
    Line(u16),
    /// Each hardware queue has an interrupt of its own, which comes to the first of its
    /// processors (`irq_create_affinity_masks`; NVMe, virtio).
    OfQueue,
    /// Each command has a timer, which runs out where it was started: on the processor that
    /// handed it over (`null_blk`, `scsi_debug`).
    OfCommand,
    /// The device has one timer, which stays where it was started: on this processor, which
    /// handed over the command that found the device idle (`simdisk`).
    OfServer(u16),
}

/// A command that a device has finished.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) no: QueueNo,
    pub(super) done: Done,
    /// The processor that it was sent on to, if it was.
    pub(super) sent_to: Option<u16>,
    /// The processor whose interrupt it is, once that handles it.
    pub(super) comes_to: Option<u16>,
}

impl World {
    /// The processor that hands a request over may be the one whose timer ends it.
    pub(super) fn note_who_starts(&mut self, no: QueueNo, rq: RqId) {
        let unheard = self.nr_unheard(no);
        let disk = &mut self.disks[no.idx()];
        if let Interrupts::OfServer(cpu) = &mut disk.interrupts {
            let sent = self.sent.iter().flatten().filter(|e| e.no == no).count();
            if disk.queue.device_busy() > (sent + unheard) as u32 + 1 {
                return;
            }
            *cpu = disk.queue.requests()[rq].issued_on;
        }
    }

    /// The processor that ends a request of which a device says that it is finished; none
    /// if it is sent on.
    pub(super) fn ends_on(&mut self, ended: Ended) -> Option<u16> {
        let disk = &self.disks[ended.no.idx()];
        let rq = RqId(ended.done.id.0);
        let request = &disk.queue.requests()[rq];
        let cpu = match (ended.sent_to.or(ended.comes_to), disk.interrupts) {
            (Some(cpu), _) if ended.sent_to.is_some() => return Some(cpu),
            (Some(cpu), _) => cpu,
            (None, Interrupts::Line(cpu) | Interrupts::OfServer(cpu)) => cpu,
            (None, Interrupts::OfQueue) => request.hctx,
            (None, Interrupts::OfCommand) => request.issued_on,
        };
        if ended.comes_to.is_none()
            && self.running.task.is_none()
            && let Some(turns) = &mut self.turns
        {
            let comes_to = Some(cpu);
            turns.interrupt(cpu, Ended { comes_to, ..ended });
            return None;
        }
        match disk.queue.sends_on(rq, cpu) {
            None => Some(cpu),
            Some(to) => {
                self.send_on(ended, to);
                None
            }
        }
    }

    /// Another processor is to end a request: it is interrupted once for all that it is sent
    /// until then (`blk_mq_complete_send_ipi`).
    fn send_on(&mut self, ended: Ended, to: u16) {
        let ended = Ended {
            sent_to: Some(to),
            ..ended
        };
        if let Some(turns) = &mut self.turns {
            return turns.interrupt(to, ended);
        }
        let sent = &mut self.sent[usize::from(to)];
        sent.push(ended);
        if sent.len() == 1 {
            let time = self.agenda.now() + self.call_time();
            self.agenda.ready_work_at(Work::End(to).id(), time);
        }
    }

    /// From the interrupt that one processor sends another until that one handles it.
    pub(super) fn call_time(&mut self) -> Span {
        let remote = self.wake_times.remote.ns();
        Span(remote / 2 + self.wake_spread.below(remote + 1))
    }
}

impl Machine {
    /// A processor ends the requests that it was sent (`blk_complete_reqs`).
    pub(super) fn end_what_was_sent(&self, cpu: u16) {
        {
            let w = &mut *self.inner.world.borrow_mut();
            w.running = Running {
                cpu,
                ..Running::INTERRUPT
            };
            let sent = std::mem::take(&mut w.sent[usize::from(cpu)]);
            w.done.extend(sent);
        }
        self.route();
        self.inner.world.borrow_mut().running = Running::INTERRUPT;
    }
}
