// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which request is next.

use super::{BE, CLASSES, MqDeadline};
use crate::direction::{BATCH, READ, WRITE};
use blklab_block::mq::Core;
use blklab_block::{Cx, RqId};
use blklab_trace::truth::Why;
use blklab_types::Jiffies;

impl MqDeadline {
    pub(super) fn next_request(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> Option<RqId> {
        let rq = self.choose_class(q, cx)?;
        cx.waits(BATCH[q.rqs[rq].data_dir()], 0);
        Some(rq)
    }

    fn choose_class(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> Option<RqId> {
        if self.feat.one_head_list
            && let Some(rq) = self.take_head(q, 0)
        {
            return Some(rq);
        }
        let now = signed(cx.jiffies.0);
        if !self.feat.strict {
            return (0..CLASSES).find_map(|p| self.select(q, cx.jiffies, p, now));
        }
        let in_use = self.classes.iter().filter(|c| c.queued != 0).count();
        if in_use >= 2 {
            let aged = now - signed(self.set.aging_jiffies);
            let rq = (BE..CLASSES).find_map(|p| self.select(q, cx.jiffies, p, aged));
            if rq.is_some() {
                return rq;
            }
        }
        for p in 0..CLASSES {
            let rq = self.select(q, cx.jiffies, p, now);
            if rq.is_some() {
                return rq;
            }
            if self.classes[p].queued != 0 {
                cx.waits(Why::HigherClass, 0);
                return None;
            }
        }
        None
    }

    /// The next request of a class, unless it was inserted after `latest`. The
    /// choice of a direction stands even then.
    fn select(&mut self, q: &mut Core, now: Jiffies, p: usize, latest: i64) -> Option<RqId> {
        if !self.feat.one_head_list
            && let Some(rq) = self.heads[p].front()
        {
            if self.started_after(q, rq, latest) {
                return None;
            }
            return self.take_head(q, p);
        }
        let rq = match self.continue_batch(p) {
            Some(rq) => rq,
            None => self.first_of_batch(now, p)?,
        };
        if self.started_after(q, rq, latest) {
            return None;
        }
        self.take(q, p, rq);
        Some(rq)
    }

    /// Whether a request was inserted after `latest`, as far as its expiry
    /// tells (`started_after`).
    fn started_after(&self, q: &Core, rq: RqId, latest: i64) -> bool {
        let expire = self.set.expire_jiffies[q.rqs[rq].data_dir()];
        let expiry = self.infos[rq].expiry.0;
        signed(expiry) - signed(expire) > latest
    }

    /// Where the sweep of a class and direction goes on
    /// (`deadline_next_request`, from 6.5 `deadline_from_pos`).
    fn next_in_order(&self, p: usize, dir: usize) -> Option<RqId> {
        let class = &self.classes[p];
        if self.feat.position_is_sector {
            class.sort[dir].lower_bound(&self.nodes, class.latest_pos[dir])
        } else {
            class.next[dir]
        }
    }

    /// The request that continues the current batch, if it may go on
    /// (`deadline_next_request`).
    fn continue_batch(&self, p: usize) -> Option<RqId> {
        if self.batching >= self.set.fifo_batch {
            return None;
        }
        if self.feat.classes {
            self.next_in_order(p, self.last_dir)
        } else {
            // At most one of them is set.
            let next = &self.classes[p].next;
            next[WRITE].or(next[READ])
        }
    }

    fn first_of_batch(&mut self, now: Jiffies, p: usize) -> Option<RqId> {
        let most = i64::from(self.set.writes_starved);
        let fifo = &self.classes[p].fifo;
        let dir = self.starved.choose_direction(fifo, most)?;
        let oldest = fifo[dir].front()?;
        let expired = self.infos[oldest].expiry <= now;
        self.last_dir = dir;
        self.batching = 0;
        if expired {
            return Some(oldest);
        }
        Some(self.next_in_order(p, dir).unwrap_or(oldest))
    }

    /// Takes a chosen request out; the sweep goes on behind it.
    fn take(&mut self, q: &mut Core, p: usize, rq: RqId) {
        let dir = q.rqs[rq].data_dir();
        self.batching = self.batching.saturating_add(1);
        let class = &mut self.classes[p];
        if self.feat.position_is_sector {
            class.latest_pos[dir] = q.rqs[rq].sector;
        } else {
            if !self.feat.classes {
                class.next = [None; 2];
            }
            class.next[dir] = Some(rq);
        }
        self.forget(q, rq);
    }

    /// Takes the first of those inserted at the head, which belong to no batch.
    fn take_head(&mut self, q: &mut Core, list: usize) -> Option<RqId> {
        let rq = self.heads[list].pop_front(&mut q.rqs)?;
        let (dir, sector) = (q.rqs[rq].data_dir(), q.rqs[rq].sector);
        let p = self.class_at_insertion(rq);
        if self.feat.position_is_sector {
            self.classes[p].latest_pos[dir] = sector;
        }
        Some(rq)
    }
}

/// Jiffies, for differences. Neither the counter nor a setting comes near the
/// limit.
fn signed(jiffies: u64) -> i64 {
    jiffies as i64
}
