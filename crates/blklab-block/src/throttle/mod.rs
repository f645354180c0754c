// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of control groups on bytes and I/Os per second (`io.max`, and `blkio.throttle.*`
//! of the first version; block/blk-throttle.c of 5.10, 6.1 and 6.12). The same on both paths
//! of a queue.
//!
//! A bio passes its task's group and all groups above. The first that has no
//! room holds it; a timer moves it up level by level, and from the top it is
//! submitted again by a worker. Reads and writes are counted apart.
//!
//! What a group let pass is compared with what its rates allow since the slice
//! of time began, rounded up to whole slices: so bios come in bursts, one a
//! slice.
//!
//! Left out: limits that change while bios are held; limits of the root; slices
//! of a fiftieth of a second on devices that do not seek (to 6.9, and only with
//! `CONFIG_BLK_DEV_THROTTLING_LOW`); separate lists of bios that wait for bytes
//! and for I/Os (after 6.12).

mod gate;
mod held;
mod slice;
#[cfg(test)]
mod tests;

pub use self::gate::Gate;
use self::held::{Held, HeldBios};
use self::slice::{Cost, Slice};
use crate::TaskTable;
use blklab_engine::{TimerId, Timers};
use blklab_types::{Bio, BioFlags, Hz, Jiffies, Op, SECTOR_BYTES};
use std::collections::BTreeSet;

/// Reads and writes that a group passes on before it is another's turn
/// (`THROTL_GRP_QUANTUM`).
const QUANTUM: [u32; 2] = [6, 2];

/// How a kernel version counts; by default as 5.10 does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting {
    /// The remainder of a split bio counts as another I/O.
    pub splits: bool,
    /// A bio over the limit of I/Os waits at least as long as one takes at that rate.
    pub waits_for_one_io: bool,
    /// Metadata is not held back; what follows waits longer instead.
    pub lends_to_meta: bool,
    /// A bio over the limit of I/Os waits until so many may have passed since the slice began,
    /// not until it ends.
    pub waits_by_number: bool,
    /// A slice that is over begins anew even if bios are held in it.
    pub restarts_with_held: bool,
}

/// The same with the length of time.
#[derive(Clone, Copy, Debug)]
struct Rules {
    hz: Hz,
    /// Length of a slice: a tenth of a second (`throtl_slice`).
    slice_ticks: u64,
    counting: Counting,
}

/// What becomes of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttled {
    /// It goes on.
    Pass,
    /// It is held and will be released by [`Throttle::timer`].
    Held,
}

/// What was held of the bios of a group's own tasks, by it or groups above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldStats {
    /// Bios that were held.
    pub bios: u64,
    /// Longest time that one was held, in ticks, of those that were released.
    pub longest: u64,
}

/// The children of a group, or of the top, that hold bios (`throtl_service_queue`).
#[derive(Debug, Default)]
struct Pending {
    /// By when they may pass one on (`pending_tree`); equal ones in order of
    /// insertion.
    children: BTreeSet<(Jiffies, u64, u16)>,
    /// When the timer of this level fires (`pending_timer`).
    timer: Option<(Jiffies, u64)>,
}

/// A group on this device (`throtl_grp`).
#[derive(Debug)]
struct Group {
    /// None: it is below the top, as the root is, and in version 1 every group.
    parent: Option<u16>,
    /// Number of its list in the parent's held bios.
    source: u16,
    /// What became of bios of its tasks.
    stats: HoldStats,
    /// It or a group above limits: bytes, I/Os (`has_rules_bps`, `has_rules_iops`);
    /// by direction.
    limits_bytes: [bool; 2],
    limits_ios: [bool; 2],
    slices: [Slice; 2],
    held: [HeldBios; 2],
    /// Where it is among the children of its parent.
    queued: Option<(Jiffies, u64)>,
    /// When it may pass on a bio, as of its last look (`disptime`).
    dispatch_at: Jiffies,
    /// Bios came in a direction in which it held none, since the last look
    /// (`THROTL_TG_WAS_EMPTY`).
    was_empty: bool,
    below: Pending,
}

/// The limits of all groups on one device, and the bios that they hold.
#[derive(Debug)]
pub struct Throttle {
    rules: Rules,
    groups: Vec<Group>,
    /// What is above the root.
    top: Pending,
    /// Bios that passed the root, by direction.
    released: [Vec<Bio>; 2],
    /// Levels whose timers are set, by time; none stands for the top.
    due: BTreeSet<(Jiffies, u64, Option<u16>)>,
    timer: TimerId,
    seq: u64,
}

impl Throttle {
    /// The limits of a run's groups; none if no group has any.
    pub fn new(
        tasks: &TaskTable,
        counting: Counting,
        hz: Hz,
        timers: &mut Timers,
    ) -> Option<Throttle> {
        let numbers = 1..=u16::try_from(tasks.nr_groups()).expect("groups fit 16 bits");
        let mut groups = numbers.clone().filter_map(|n| tasks.group(n));
        groups.find(|g| g.io_max.is_some())?;
        let rules = Rules {
            hz,
            slice_ticks: u64::from(hz.0 / 10).max(1),
            counting,
        };
        let mut throttle = Throttle {
            rules,
            groups: Vec::new(),
            top: Pending::default(),
            released: Default::default(),
            due: BTreeSet::new(),
            timer: timers.register("throttle"),
            seq: 0,
        };
        throttle.add(None, [None; 4], timers.jiffies());
        for group in numbers.filter_map(|n| tasks.group(n)) {
            let max = group.io_max.unwrap_or_default();
            let limits = [
                max.read_bytes_per_s,
                max.write_bytes_per_s,
                max.read_ios_per_s,
                max.write_ios_per_s,
            ];
            let parent = (!tasks.limits_are_flat()).then_some(group.parent);
            throttle.add(parent, limits, timers.jiffies());
        }
        Some(throttle)
    }

    /// The timer at which [`Throttle::timer`] is to be called.
    pub fn timer_id(&self) -> TimerId {
        self.timer
    }

    /// What was held of the bios of a group's own tasks.
    pub fn stats(&self, group: u16) -> HoldStats {
        self.groups[usize::from(group)].stats
    }

    /// Bios that are held.
    pub fn held(&self) -> usize {
        let held_by = |g: &Group| g.held.iter().map(HeldBios::len).sum::<usize>();
        self.groups.iter().map(held_by).sum()
    }

    /// A bio of a task in `group` is submitted (`__blk_throtl_bio`): before its Q
    /// event. `is_remainder`: it was split off one that passed already, and only
    /// counts as another I/O. Bios that were released are not shown again.
    pub fn submit(
        &mut self,
        timers: &mut Timers,
        group: u16,
        bio: &Bio,
        is_remainder: bool,
    ) -> Throttled {
        let now = timers.jiffies();
        let dir = bio.op.data_dir();
        let first = &self.groups[usize::from(group)];
        let counts = first.limits_ios[dir] || (first.limits_bytes[dir] && !is_remainder);
        if !counts || (is_remainder && !self.rules.counting.splits) {
            return Throttled::Pass;
        }
        let cost = Cost {
            bytes: if is_remainder { 0 } else { size(bio) },
            counts_bytes: !is_remainder,
        };
        let (of, mut at, mut source) = (group, group, 0);
        loop {
            let group = &mut self.groups[usize::from(at)];
            let slice = &mut group.slices[dir];
            if group.held[dir].is_empty() && slice.wait(now, cost, false, &self.rules) == 0 {
                slice.charge(cost);
                slice.trim(now, &self.rules);
            } else if self.rules.counting.lends_to_meta && bio.flags.has(BioFlags::META) {
                slice.charge_debt(cost);
            } else {
                break;
            }
            let Some(parent) = group.parent else {
                return Throttled::Pass;
            };
            (at, source) = (parent, group.source);
        }
        self.groups[usize::from(of)].stats.bios += 1;
        let held = Held {
            bio: *bio,
            cost,
            of,
            since: now,
        };
        self.hold(at, dir, source, held);
        if self.groups[usize::from(at)].was_empty {
            self.look(at, now);
            self.schedule(self.groups[usize::from(at)].parent, now, true);
        }
        self.arm(timers);
        Throttled::Held
    }

    /// The timer fired (`throtl_pending_timer_fn`): moves bios up. Those that
    /// passed the root are appended in the order in which the worker submits them:
    /// reads, then writes.
    pub fn timer(&mut self, timers: &mut Timers, released: &mut Vec<Bio>) {
        let now = timers.jiffies();
        while let Some(&(at, seq, level)) = self.due.first() {
            if at > now {
                break;
            }
            self.due.remove(&(at, seq, level));
            self.pending(level).timer = None;
            self.run(level, now);
        }
        for bios in &mut self.released {
            released.append(bios);
        }
        self.arm(timers);
    }

    fn add(&mut self, parent: Option<u16>, limits: [Option<u64>; 4], now: Jiffies) {
        let mut group = Group {
            parent,
            source: 0,
            stats: HoldStats::default(),
            limits_bytes: [false; 2],
            limits_ios: [false; 2],
            slices: Default::default(),
            held: Default::default(),
            queued: None,
            dispatch_at: now,
            was_empty: false,
            below: Pending::default(),
        };
        for dir in 0..2 {
            let [bytes, ios] = [limits[dir], limits[dir + 2]].map(|l| l.map(|n| n.max(1)));
            group.slices[dir] = Slice::new(bytes, ios, now, &self.rules);
            group.limits_bytes[dir] = bytes.is_some();
            group.limits_ios[dir] = ios.is_some();
            group.held[dir].add_source();
            if let Some(parent) = parent {
                let parent = &mut self.groups[usize::from(parent)];
                group.limits_bytes[dir] |= parent.limits_bytes[dir];
                group.limits_ios[dir] |= parent.limits_ios[dir];
                group.source = parent.held[dir].add_source();
            }
        }
        self.groups.push(group);
    }

    fn pending(&mut self, level: Option<u16>) -> &mut Pending {
        match level {
            Some(group) => &mut self.groups[usize::from(group)].below,
            None => &mut self.top,
        }
    }

    /// A group holds a bio (`throtl_add_bio_tg`).
    fn hold(&mut self, at: u16, dir: usize, source: u16, held: Held) {
        let group = &mut self.groups[usize::from(at)];
        group.was_empty |= group.held[dir].is_empty();
        group.held[dir].push(source, held);
        if group.queued.is_none() {
            self.queue(at);
        }
    }

    /// Puts a group among those that its parent serves (`throtl_enqueue_tg`).
    fn queue(&mut self, at: u16) {
        self.seq += 1;
        let seq = self.seq;
        let group = &mut self.groups[usize::from(at)];
        let (parent, when) = (group.parent, group.dispatch_at);
        group.queued = Some((when, seq));
        self.pending(parent).children.insert((when, seq, at));
    }

    /// `throtl_dequeue_tg`.
    fn unqueue(&mut self, at: u16) {
        let group = &mut self.groups[usize::from(at)];
        let parent = group.parent;
        if let Some((when, seq)) = group.queued.take() {
            self.pending(parent).children.remove(&(when, seq, at));
        }
    }

    /// Finds out when a group may pass on its next bio, in either direction
    /// (`tg_update_disptime`).
    fn look(&mut self, at: u16, now: Jiffies) {
        self.unqueue(at);
        let group = &mut self.groups[usize::from(at)];
        let mut wait = u64::MAX;
        for (slice, held) in group.slices.iter_mut().zip(&group.held) {
            if let Some(front) = held.front() {
                wait = wait.min(slice.wait(now, front.cost, true, &self.rules));
            }
        }
        group.dispatch_at = Jiffies(now.0.saturating_add(wait));
        group.was_empty = false;
        self.queue(at);
    }

    /// Sets the timer of a level for its first child, unless one is due and the
    /// caller serves it: false (`throtl_schedule_next_dispatch`).
    fn schedule(&mut self, level: Option<u16>, now: Jiffies, always: bool) -> bool {
        self.seq += 1;
        let seq = self.seq;
        let pending = self.pending(level);
        let Some(&(first, ..)) = pending.children.first() else {
            return true;
        };
        if !always && first <= now {
            return false;
        }
        let at = first.max(now.plus(1));
        if let Some((old, old_seq)) = pending.timer.replace((at, seq)) {
            self.due.remove(&(old, old_seq, level));
        }
        self.due.insert((at, seq, level));
        true
    }

    /// Serves the children of a level, and of the levels above as far as bios can
    /// go on at once (`throtl_pending_timer_fn`).
    fn run(&mut self, mut level: Option<u16>, now: Jiffies) {
        loop {
            let mut dispatched = false;
            loop {
                dispatched |= self.serve(level, now);
                if self.schedule(level, now, false) {
                    break;
                }
            }
            let Some(group) = level.filter(|_| dispatched) else {
                return;
            };
            if !self.groups[usize::from(group)].was_empty {
                return;
            }
            self.look(group, now);
            level = self.groups[usize::from(group)].parent;
            if self.schedule(level, now, false) {
                return;
            }
        }
    }

    /// Serves the children of a level that are due, in turn
    /// (`throtl_select_dispatch`, `throtl_dispatch_tg`); whether any bio moved.
    fn serve(&mut self, level: Option<u16>, now: Jiffies) -> bool {
        let mut moved = false;
        while let Some(&(at, _, child)) = self.pending(level).children.first() {
            if at > now {
                break;
            }
            for (dir, quantum) in QUANTUM.into_iter().enumerate() {
                for _ in 0..quantum {
                    let group = &mut self.groups[usize::from(child)];
                    let Some(front) = group.held[dir].front() else {
                        break;
                    };
                    if group.slices[dir].wait(now, front.cost, true, &self.rules) > 0 {
                        break;
                    }
                    self.pass_on(child, dir, now);
                    moved = true;
                }
            }
            if self.groups[usize::from(child)]
                .held
                .iter()
                .all(HeldBios::is_empty)
            {
                self.unqueue(child);
            } else {
                self.look(child, now);
            }
        }
        moved
    }

    /// A group passes a bio on to its parent, or out (`tg_dispatch_one_bio`).
    fn pass_on(&mut self, at: u16, dir: usize, now: Jiffies) {
        let group = &mut self.groups[usize::from(at)];
        let Some(held) = group.held[dir].pop() else {
            return;
        };
        group.slices[dir].charge(held.cost);
        let (slice, source) = (group.slices[dir], group.source);
        match group.parent {
            None => {
                self.released[dir].push(held.bio);
                let longest = &mut self.groups[usize::from(held.of)].stats.longest;
                *longest = (*longest).max(now.0 - held.since.0);
            }
            Some(parent) => {
                self.hold(parent, dir, source, held);
                let above = &mut self.groups[usize::from(parent)].slices[dir];
                above.start_with_credit(now, &slice, &self.rules);
            }
        }
        self.groups[usize::from(at)].slices[dir].trim(now, &self.rules);
    }

    fn arm(&self, timers: &mut Timers) {
        match self.due.first() {
            Some(&(at, ..)) => timers.arm(self.timer, at),
            None => {
                timers.cancel(self.timer);
            }
        }
    }
}

/// Bytes that a bio is charged for: a discard counts as one sector
/// (`throtl_bio_data_size`).
fn size(bio: &Bio) -> u64 {
    match bio.op {
        Op::Discard => SECTOR_BYTES,
        _ => u64::from(bio.nr_sectors) * SECTOR_BYTES,
    }
}
