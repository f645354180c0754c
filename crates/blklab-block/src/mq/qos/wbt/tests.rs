// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use blklab_engine::{Agenda, DeviceId, Due, Stream};

const HZ: Hz = Hz(1000);
const MS: u64 = 1_000_000;

fn settings(write_cache: bool) -> WbtSettings {
    WbtSettings {
        min_latency: Span::from_ms(2),
        queue_depth: 64,
        write_cache,
        hz: HZ,
    }
}

fn write(task: u32, flags: BioFlags) -> Bio {
    Bio {
        op: Op::Write,
        flags,
        nr_sectors: 8,
        task: TaskId(task),
        ..Bio::default()
    }
}

fn read() -> Bio {
    Bio {
        nr_sectors: 8,
        ..Bio::default()
    }
}

/// Throttling and a clock.
struct Rig {
    agenda: Agenda,
    wbt: Wbt,
    wakes: Vec<TaskId>,
}

impl Rig {
    fn new(write_cache: bool) -> Rig {
        let mut agenda = Agenda::new(HZ);
        let wbt = Wbt::new(settings(write_cache), &mut agenda.timers);
        Rig {
            agenda,
            wbt,
            wakes: Vec::new(),
        }
    }

    fn admit(&mut self, bio: &Bio) -> WbtAdmit {
        self.wbt.try_admit(&mut self.agenda.timers, bio)
    }

    fn free(&mut self, class: WbtClass) -> Vec<TaskId> {
        self.wakes.clear();
        self.wbt
            .freed(&mut self.agenda.timers, class, &mut self.wakes);
        self.wakes.clone()
    }

    /// The clock goes to `ms`; windows that end on the way are returned.
    fn until(&mut self, ms: u64) -> Vec<WbtWindow> {
        let end = Time(ms * MS);
        self.agenda.wake_device(DeviceId(0), end, 0);
        let mut windows = Vec::new();
        loop {
            match self.agenda.next(end) {
                Some(Due::Timer(timer)) => {
                    assert_eq!(timer, self.wbt.timer_id());
                    let now = self.agenda.now();
                    windows.extend(
                        self.wbt
                            .timer(now, &mut self.agenda.timers, &mut self.wakes),
                    );
                }
                Some(Due::Device(..)) => {}
                other => {
                    assert_eq!(other, None);
                    return windows;
                }
            }
        }
    }

    /// Samples of a window, then its end: status, step, and ticks until the
    /// next one ends.
    fn window(&mut self, reads: u32, read_ms: u64, writes: u32) -> (WbtStatus, i32, Option<u64>) {
        for _ in 0..reads {
            self.wbt.completed(Op::Read, Span::from_ms(read_ms));
        }
        for _ in 0..writes {
            self.wbt.completed(Op::Write, Span::from_ms(50));
        }
        let end = self.agenda.timers.next_time().ns() / MS;
        let windows = self.until(end);
        assert_eq!(windows.len(), 1);
        let next = self.agenda.timers.next_time();
        let ticks = (next != Time::MAX).then(|| next.ns() / MS - end);
        (windows[0].status, windows[0].step, ticks)
    }

    fn limits(&self) -> (u32, u32, u32) {
        (self.wbt.depth.max(), self.wbt.normal, self.wbt.background)
    }
}

/// When, in ms, each of 12 writes that one task submits at 0 is admitted, if the
/// device completes one every millisecond.
fn admissions(write_cache: bool, flags: BioFlags) -> Vec<u64> {
    let mut rig = Rig::new(write_cache);
    let bio = write(1, flags);
    let mut admitted = Vec::new();
    let mut asleep = false;
    for ms in 0.. {
        rig.until(ms);
        if ms > 0 && !rig.free(WbtClass::Background).is_empty() {
            asleep = false;
            admitted.push(ms);
        }
        while !asleep && admitted.len() < 12 {
            match rig.admit(&bio) {
                WbtAdmit::Tracked(WbtClass::Background) => admitted.push(ms),
                other => {
                    assert_eq!(other, WbtAdmit::Sleeps(WbtClass::Background));
                    asleep = true;
                }
            }
        }
        if admitted.len() == 12 {
            return admitted;
        }
    }
    unreachable!()
}

#[test]
fn admission_without_a_write_cache() {
    // V15.
    assert_eq!(
        admissions(false, BioFlags::NONE),
        [0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 4, 4]
    );
    assert_eq!(admissions(false, BioFlags::SYNC), [0; 12]);
    assert_eq!(
        admissions(false, BioFlags::BACKGROUND),
        [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    );
}

#[test]
fn admission_with_a_write_cache() {
    // V15.
    assert_eq!(
        admissions(true, BioFlags::NONE),
        [0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8]
    );
}

#[test]
fn the_first_sleeper_without_room_ends_the_scan() {
    // V15: inflight 6 becomes 5; a background write before an ordinary one.
    let mut rig = Rig::new(false);
    for task in 0..6 {
        assert_eq!(
            rig.admit(&write(task, BioFlags::NONE)),
            WbtAdmit::Tracked(WbtClass::Background)
        );
    }
    for (task, flags) in [(6, BioFlags::BACKGROUND), (7, BioFlags::NONE)] {
        assert_eq!(
            rig.admit(&write(task, flags)),
            WbtAdmit::Sleeps(WbtClass::Background)
        );
    }
    assert_eq!(rig.free(WbtClass::Background), []);
    assert_eq!(rig.free(WbtClass::Background), []);
    // 3 are left: one for the first, whose limit is 4, then one for the other.
    assert_eq!(rig.free(WbtClass::Background), [TaskId(6), TaskId(7)]);
    assert_eq!(rig.wbt.inflight(), 5);
}

#[test]
fn which_bios_are_counted() {
    let direct = BioFlags::SYNC | BioFlags::IDLE;
    assert_eq!(WbtClass::of_bio(&write(0, direct)), None);
    assert_eq!(WbtClass::of_bio(&read()), None);
    for flags in [BioFlags::NONE, BioFlags::SYNC, BioFlags::IDLE] {
        assert_eq!(
            WbtClass::of_bio(&write(0, flags)),
            Some(WbtClass::Background)
        );
    }
    let discard = Bio {
        op: Op::Discard,
        flags: direct,
        ..Bio::default()
    };
    assert_eq!(WbtClass::of_bio(&discard), Some(WbtClass::Discard));
    // Discards have a count of their own and the limit of background writes.
    let mut rig = Rig::new(false);
    for _ in 0..4 {
        assert_eq!(rig.admit(&discard), WbtAdmit::Tracked(WbtClass::Discard));
    }
    assert_eq!(rig.admit(&discard), WbtAdmit::Sleeps(WbtClass::Discard));
    assert_eq!(
        rig.admit(&write(0, BioFlags::NONE)),
        WbtAdmit::Tracked(WbtClass::Background)
    );
    // 3 are left of 4, less than half of 4: no wake.
    assert_eq!(rig.free(WbtClass::Discard), []);
    assert_eq!(rig.free(WbtClass::Discard), [TaskId(0)]);
}

#[test]
fn reads_and_dirty_waits_change_the_limit() {
    let admitted = |rig: &mut Rig, flags| {
        let mut n = 0;
        while rig.admit(&write(0, flags)) == WbtAdmit::Tracked(WbtClass::Background) {
            n += 1;
        }
        n
    };
    let mut rig = Rig::new(false);
    assert_eq!(rig.admit(&read()), WbtAdmit::Untracked);
    rig.until(99);
    assert_eq!(admitted(&mut rig, BioFlags::NONE), 4);
    // The last tick that counts was 99; the read's end begins the time anew.
    let mut rig = Rig::new(false);
    rig.admit(&read());
    rig.until(100);
    assert_eq!(admitted(&mut rig, BioFlags::NONE), 8);
    let mut rig = Rig::new(false);
    rig.admit(&read());
    rig.until(100);
    rig.wbt.read_freed(Jiffies(100), RqId(0));
    rig.until(199);
    assert_eq!(admitted(&mut rig, BioFlags::NONE), 4);
    // A task slept for dirty pages: all that may be.
    let mut rig = Rig::new(false);
    rig.admit(&read());
    rig.wbt.dirty_wait(Jiffies(0));
    rig.until(50);
    assert_eq!(admitted(&mut rig, BioFlags::BACKGROUND), 16);
}

#[test]
fn steps_by_windows() {
    use WbtStatus::*;
    // V14. A write is on its way all the time.
    let mut rig = Rig::new(false);
    rig.admit(&write(0, BioFlags::NONE));
    assert_eq!(rig.window(5, 3, 9), (Exceeded, 1, Some(72)));
    assert_eq!(rig.window(5, 1, 9), (Ok, 0, Some(100)));
    assert_eq!(rig.window(0, 0, 9), (UnknownWrites, -1, Some(100)));
    assert_eq!(rig.limits(), (31, 16, 8));
    assert_eq!(rig.window(0, 0, 9), (UnknownWrites, -2, Some(100)));
    assert_eq!(rig.limits(), (48, 24, 12));
    assert_eq!(rig.window(0, 0, 9), (UnknownWrites, -2, Some(100)));
    assert_eq!(rig.window(5, 3, 9), (Exceeded, 0, Some(100)));
    assert_eq!(rig.limits(), (16, 8, 4));
    assert_eq!(rig.window(5, 3, 9), (Exceeded, 1, Some(72)));
    rig.free(WbtClass::Background);
    for _ in 0..4 {
        assert_eq!(rig.window(0, 0, 0), (Unknown, 1, Some(72)));
    }
    assert_eq!(rig.window(0, 0, 0), (Unknown, 0, None));
}

#[test]
fn too_few_writes_say_nothing_about_reads() {
    // V14.
    let mut rig = Rig::new(false);
    rig.admit(&write(0, BioFlags::NONE));
    assert_eq!(
        rig.window(5, 3, 2),
        (WbtStatus::UnknownWrites, -1, Some(100))
    );
}

#[test]
fn a_read_that_does_not_come_back_is_too_slow() {
    // V14: 73 ms at the end of a window of 72.7 ms, whatever the samples are.
    let mut rig = Rig::new(false);
    rig.admit(&write(0, BioFlags::NONE));
    assert_eq!(rig.window(5, 3, 9).1, 1);
    let issued = Time(rig.agenda.now().ns() - MS);
    rig.wbt.issued(issued, Op::Read, RqId(3));
    // Another one is not watched while there is one.
    rig.wbt.issued(rig.agenda.now(), Op::Read, RqId(4));
    assert_eq!(rig.window(5, 1, 9), (WbtStatus::Exceeded, 2, Some(59)));
    // Without samples the latency aimed at is the measure.
    rig.wbt.requeued(RqId(3));
    rig.wbt.issued(rig.agenda.now(), Op::Read, RqId(4));
    assert_eq!(rig.window(0, 0, 9).0, WbtStatus::Exceeded);
    // Gone, it counts no more.
    rig.wbt.read_freed(rig.agenda.timers.jiffies(), RqId(4));
    assert_eq!(rig.window(1, 1, 9).0, WbtStatus::Ok);
}

#[test]
fn samples_count_only_during_windows() {
    let mut rig = Rig::new(false);
    for _ in 0..9 {
        rig.wbt.completed(Op::Read, Span::from_ms(9));
        rig.wbt.completed(Op::Write, Span::from_ms(9));
    }
    rig.admit(&write(0, BioFlags::NONE));
    assert_eq!(rig.window(0, 0, 0).0, WbtStatus::UnknownWrites);
}

#[test]
fn settings_of_devices() {
    let settings_of = |limits: &Limits, replaced| WbtSettings::new(limits, 64, replaced, HZ);
    let mut limits = Limits::default();
    assert_eq!(settings_of(&limits, false).unwrap(), settings(false));
    assert_eq!(settings_of(&limits, true), None);
    limits.queue.rotational = true;
    limits.budget = Some(31);
    let disk = settings_of(&limits, false).unwrap();
    assert_eq!(disk.min_latency, Span::from_ms(75));
    assert_eq!(disk.queue_depth, 31);
    limits.wbt_lat_us = Some(500);
    assert_eq!(
        settings_of(&limits, true).unwrap().min_latency,
        Span::from_us(500)
    );
    limits.wbt_lat_us = Some(0);
    assert_eq!(settings_of(&limits, false), None);
}

/// Any series of calls: nobody is lost, forgotten or overtaken.
#[test]
fn sleepers_are_admitted_in_their_order_and_none_is_left() {
    for seed in 0..200 {
        let mut random = Stream::named(seed, "wbt");
        let mut rig = Rig::new(random.below(2) == 0);
        let mut asleep: [VecDeque<TaskId>; 2] = Default::default();
        let mut inflight = [0_u32; 2];
        let mut ms = 0;
        for task in 0..400 {
            rig.wakes.clear();
            match random.below(10) {
                0..5 => {
                    let mut bio = write(task, BioFlags(random.below(1 << 11) as u16));
                    if random.below(8) == 0 {
                        bio.op = Op::Discard;
                    }
                    let class = WbtClass::of_bio(&bio);
                    match (rig.admit(&bio), class) {
                        (WbtAdmit::Untracked, None) => {}
                        (WbtAdmit::Tracked(c), Some(class)) => {
                            assert_eq!(c, class);
                            assert!(asleep[c as usize].is_empty(), "overtaken");
                            inflight[c as usize] += 1;
                        }
                        (WbtAdmit::Sleeps(c), Some(class)) => {
                            assert_eq!(c, class);
                            asleep[c as usize].push_back(bio.task);
                        }
                        other => panic!("{other:?}"),
                    }
                }
                5..8 => {
                    let class = if random.below(8) == 0 {
                        WbtClass::Discard
                    } else {
                        WbtClass::Background
                    };
                    if inflight[class as usize] > 0 {
                        inflight[class as usize] -= 1;
                        rig.free(class);
                    }
                }
                8 => {
                    rig.admit(&read());
                    let latency = Span::from_ms(random.below(6));
                    rig.wbt.completed(Op::Read, latency);
                    rig.wbt.completed(Op::Write, latency);
                    if random.below(10) == 0 {
                        rig.wbt.dirty_wait(rig.agenda.timers.jiffies());
                    }
                }
                _ => {
                    ms += random.below(60);
                    rig.until(ms);
                }
            }
            let woken = std::mem::take(&mut rig.wakes);
            for task in woken {
                let class = usize::from(asleep[0].front() != Some(&task));
                assert_eq!(asleep[class].pop_front(), Some(task), "out of order");
                inflight[class] += 1;
            }
            assert_eq!(rig.wbt.inflight(), inflight.iter().sum());
            for class in 0..2 {
                let stuck = inflight[class] == 0 && !asleep[class].is_empty();
                assert!(!stuck, "sleepers that nobody will wake");
            }
        }
        // What is on its way comes back: nobody sleeps on.
        for class in [WbtClass::Background, WbtClass::Discard] {
            let n = inflight[class as usize] as usize + asleep[class as usize].len();
            for _ in 0..n {
                rig.free(class);
            }
        }
        assert_eq!((rig.wbt.inflight(), rig.wbt.sleepers()), (0, 0));
    }
}
