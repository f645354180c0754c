// SPDX-License-Identifier: MIT OR Apache-2.0
//! md RAID 0 and RAID 1: an array in front of the queues of its members.
//!
//! ```text
//! RAID 0:  bio ── Q ── member by chunk ── A ─────────────► member's queue
//! RAID 1:  read ─ Q ── one member by balance ────────────► member's queue
//!          write  Q ── a clone per member ─► pending list
//!                                    plug, timer │ or somebody waits
//!                                                ▼
//!                              the array's thread ───────► members' queues
//! ```
//!
//! Neither level has a scheduler, a request pool or merging of its own. The
//! array knows nothing of the queues: it says which bio goes to which member
//! and is told when a member finished one.
//!
//! Source: drivers/md/{raid0,raid1,md}.c and block/blk-core.c of 2.6.28, as
//! specified in block-layer-legacy section 13 and devices section 6. The array
//! is whole and in sync. Left out: resync and recovery, write-mostly members,
//! bitmaps, write-behind, superblock updates at the first write after a pause,
//! repeating failed reads on another member, dropping members that fail.

mod masters;
mod raid1;

pub use blklab_types::{Level, MEMBERS_MAX, Stripes};

use crate::submit::EOPNOTSUPP;
use crate::{Cx, Effect};
use blklab_engine::{TimerId, Timers};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Bio, BioFlags, Completion, Dev, Op, TaskId, Time};
use masters::{Masters, Slot};
use raid1::Mirror;
use std::collections::VecDeque;

/// The array as traces name it: md0.
pub const MD0: Dev = Dev { major: 9, minor: 0 };

/// Largest bio of an array in sectors: queues without a request function keep
/// the limit they start with (`SAFE_MAX_SECTORS`, 2.6.18 to 2.6.28).
pub const ARRAY_MAX_SECTORS: u32 = 255;

/// What an array is made of.
#[derive(Clone, Copy, Debug)]
pub struct ArrayConfig {
    /// Level.
    pub level: Level,
    /// Members, 2 to [`MEMBERS_MAX`].
    pub nr_members: u32,
    /// Where the array begins on each member: 0, or the start of a partition.
    pub data_start: u64,
    /// Whether all members can order writes.
    pub members_order_writes: bool,
    /// Delay of the plug in jiffies.
    pub unplug_delay: u64,
}

/// A bio for a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberBio {
    /// Which member.
    pub member: u32,
    /// What it gets. Its end is told to [`Array::end`].
    pub bio: Bio,
    /// Sector on the array, if the array's bio itself is passed on (event A).
    pub remapped_from: Option<u64>,
}

/// A bio on its way into the array.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    slot: Slot,
    rest: Option<Bio>,
}

/// An array of disks.
pub struct Array {
    config: ArrayConfig,
    mirror: Mirror,
    masters: Masters,
    /// Writes that the thread has not taken yet.
    pending: VecDeque<Slot>,
    /// Writes whose clones the thread is submitting, and the member that is next to
    /// get one of the first.
    taken: VecDeque<Slot>,
    next_member: u32,
    plugged: bool,
    unplug_timer: TimerId,
    thread_woken: bool,
}

impl Array {
    /// An array of idle members. Registers its timer.
    pub fn new(config: ArrayConfig, timers: &mut Timers) -> Array {
        Array {
            config,
            mirror: Mirror::new(config.nr_members),
            masters: Masters::default(),
            pending: VecDeque::new(),
            taken: VecDeque::new(),
            next_member: 0,
            plugged: false,
            unplug_timer: timers.register("md_unplug_timer"),
            thread_woken: false,
        }
    }

    /// Its level.
    pub fn level(&self) -> Level {
        self.config.level
    }

    /// Whether no bio is on its way.
    pub fn is_idle(&self) -> bool {
        self.masters.is_empty()
    }

    /// A bio arrives. It goes on with [`Array::next`].
    pub fn enter(&mut self, bio: Bio) -> Entry {
        let parts = match self.config.level {
            Level::Raid0(stripes) => stripes.nr_pieces(&bio),
            Level::Raid1 if bio.op == Op::Read => 1,
            Level::Raid1 => self.config.nr_members,
        };
        Entry {
            slot: self.masters.insert(bio, parts),
            rest: Some(bio),
        }
    }

    /// The next bio that its submitter passes to a member; none when there
    /// are no more. Whoever builds bios for a RAID 0 ends them at chunk
    /// boundaries: one that crosses a boundary enters in pieces (Q each).
    pub fn next(&mut self, cx: &mut Cx<'_>, entry: &mut Entry) -> Option<MemberBio> {
        let mut bio = entry.rest.take()?;
        if let Level::Raid0(stripes) = self.config.level {
            (bio, entry.rest) = stripes.cut(bio);
        }
        self.event(cx, Action::Queue, &bio);
        if bio.flags.has(BioFlags::BARRIER) && !self.barriers_supported() {
            self.refuse(cx, entry);
            return None;
        }
        match self.config.level {
            Level::Raid0(stripes) => Some(self.redirect(entry.slot, stripes, bio)),
            Level::Raid1 if bio.op == Op::Read => Some(self.read(entry.slot, bio)),
            Level::Raid1 => {
                self.write(cx, entry.slot, bio.flags);
                None
            }
        }
    }

    /// A write of a mirror arrives and goes on: its submitter passes nothing to a member.
    /// Of other bios it takes none; says whether it took this one.
    pub fn take_write(&mut self, cx: &mut Cx<'_>, bio: Bio) -> bool {
        if self.config.level != Level::Raid1 || bio.op == Op::Read {
            return false;
        }
        let mut entry = self.enter(bio);
        let part = self.next(cx, &mut entry);
        assert!(part.is_none(), "the thread submits a mirror's writes");
        true
    }

    /// RAID 0 refuses barriers; RAID 1 passes them on.
    fn barriers_supported(&self) -> bool {
        self.config.level == Level::Raid1 && self.config.members_order_writes
    }

    fn refuse(&mut self, cx: &mut Cx<'_>, entry: &mut Entry) {
        entry.rest = None;
        let master = self.masters.remove(entry.slot);
        done(cx, master.completion, EOPNOTSUPP);
    }

    fn redirect(&mut self, slot: Slot, stripes: Stripes, bio: Bio) -> MemberBio {
        let (member, sector) = stripes.place(bio.sector, self.config.nr_members);
        MemberBio {
            member,
            bio: Bio {
                sector: sector + self.config.data_start,
                completion: slot.part_on(member),
                ..bio
            },
            remapped_from: Some(bio.sector),
        }
    }

    /// A clone of a read, for the member that the balance chooses.
    fn read(&mut self, slot: Slot, bio: Bio) -> MemberBio {
        let member = self.mirror.choose(bio.sector, bio.nr_sectors);
        self.clone_for(member, slot, bio)
    }

    /// A write, whose clones wait for the thread.
    fn write(&mut self, cx: &mut Cx<'_>, slot: Slot, flags: BioFlags) {
        (0..self.config.nr_members).for_each(|member| self.mirror.begin(member));
        self.pending.push_back(slot);
        self.plug(cx);
        self.thread_woken |= flags.has(BioFlags::SYNC);
    }

    /// A clone keeps direction, order and whether somebody waits for it.
    fn clone_for(&self, member: u32, slot: Slot, bio: Bio) -> MemberBio {
        let kept = BioFlags::SYNC | BioFlags::BARRIER;
        MemberBio {
            member,
            bio: Bio {
                flags: BioFlags(bio.flags.0 & kept.0),
                sector: bio.sector + self.config.data_start,
                ioprio: Default::default(),
                completion: slot.part_on(member),
                ..bio
            },
            remapped_from: None,
        }
    }

    /// A member finished its part of the bio in that slot, as the part's
    /// [`Completion::Array`] says.
    pub fn end(&mut self, cx: &mut Cx<'_>, slot: u32, member: u32, error: u16) {
        let slot = Slot(slot);
        if self.config.level == Level::Raid1 {
            let end_sector = self.masters.get(slot).end();
            self.mirror.end(member, end_sector);
        }
        let Some((completion, errors)) = self.masters.part_done(slot, error) else {
            return;
        };
        // A mirrored write is done if one member has it.
        let error = match self.config.level {
            Level::Raid1 if errors.failed < errors.parts => 0,
            _ => errors.last,
        };
        done(cx, completion, error);
    }

    /// Plugs the array (P) and starts the timer; nothing if it is plugged.
    fn plug(&mut self, cx: &mut Cx<'_>) {
        if std::mem::replace(&mut self.plugged, true) {
            return;
        }
        let due = cx.jiffies.plus(self.config.unplug_delay);
        cx.timers.arm(self.unplug_timer, due);
        self.queue_event(cx, Action::Plug);
    }

    /// The timer that removes the plug.
    pub fn unplug_timer_id(&self) -> TimerId {
        self.unplug_timer
    }

    /// The plug timer fired: UT; kblockd does the rest with
    /// [`Array::unplug`].
    pub fn unplug_timeout(&mut self, cx: &mut Cx<'_>) {
        self.queue_event(cx, Action::UnplugTimer);
        cx.ask(Effect::UnplugWork);
    }

    /// Somebody waits for I/O: U. The members for which
    /// [`Array::unplugs_member`] holds are to be unplugged next, and the
    /// thread is woken.
    pub fn unplug(&mut self, cx: &mut Cx<'_>) {
        self.queue_event(cx, Action::Unplug);
        self.thread_woken |= self.config.level == Level::Raid1;
    }

    /// Whether an unplug of the array is passed on to this member: RAID 0
    /// passes it to all, RAID 1 to those with I/O of the array.
    pub fn unplugs_member(&self, member: u32) -> bool {
        self.config.level != Level::Raid1 || self.mirror.has_pending(member)
    }

    /// Whether the thread is to run; it is not any more, once told.
    pub fn take_thread_wakeup(&mut self) -> bool {
        std::mem::take(&mut self.thread_woken)
    }

    /// Whether the thread is to run.
    pub fn thread_is_woken(&self) -> bool {
        self.thread_woken
    }

    /// The thread takes the whole pending list, and the plug goes. False if
    /// there is nothing to take.
    pub fn take_writes(&mut self, cx: &mut Cx<'_>) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        debug_assert!(self.taken.is_empty(), "one list is submitted at a time");
        std::mem::swap(&mut self.pending, &mut self.taken);
        self.plugged = false;
        cx.timers.cancel(self.unplug_timer);
        true
    }

    /// The next bio that the thread submits, in its own name.
    pub fn next_write(&mut self, thread: TaskId) -> Option<MemberBio> {
        let slot = *self.taken.front()?;
        let member = self.next_member;
        self.next_member += 1;
        if self.next_member == self.config.nr_members {
            self.next_member = 0;
            self.taken.pop_front();
        }
        let bio = Bio {
            task: thread,
            ..*self.masters.get(slot)
        };
        Some(self.clone_for(member, slot, bio))
    }

    fn event(&self, cx: &mut Cx<'_>, action: Action, bio: &Bio) {
        let bytes = u64::from(bio.nr_sectors) * blklab_types::SECTOR_BYTES;
        let event = Event {
            sector: bio.sector,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            rwbs: Rwbs::of_bio(bio.op, bio.flags),
            ..blank(action)
        };
        cx.event(MD0, event);
    }

    /// An event about the array rather than a bio. It counts no requests: the
    /// array has none.
    fn queue_event(&self, cx: &mut Cx<'_>, action: Action) {
        cx.event(MD0, blank(action));
    }
}

/// The word to the simulation that a bio of the array finished.
fn done(cx: &mut Cx<'_>, completion: Completion, error: u16) {
    cx.ask(Effect::BioDone { completion, error });
}

fn blank(action: Action) -> Event {
    Event {
        time: Time::ZERO,
        sector: 0,
        arg: 0,
        bytes: 0,
        pid: 0,
        dev: Dev::default(),
        from_dev: Dev::default(),
        error: 0,
        cpu: 0,
        rwbs: Rwbs::NONE,
        action,
    }
}
