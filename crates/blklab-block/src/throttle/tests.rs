// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::mq::Features;
use crate::{IoGroup, IoMax};
use blklab_engine::{Agenda, DeviceId, Due, Stream};
use blklab_kernel::KernelVersion;
use blklab_types::{BioKey, Completion, Time};

/// Groups, a clock of 1000 ticks per second, and what was released when.
struct Rig {
    agenda: Agenda,
    throttle: Throttle,
    /// Tick and mark of each released bio.
    released: Vec<(u64, u64)>,
}

fn table(groups: &[(u16, IoMax)]) -> TaskTable {
    let mut tasks = TaskTable::default();
    for &(parent, max) in groups {
        tasks.add_group(IoGroup {
            parent,
            weight: None,
            leaf_weight: None,
            io_max: (max != IoMax::default()).then_some(max),
            ..IoGroup::default()
        });
    }
    tasks
}

/// The mark that a bio was submitted with; 0 if with none.
fn mark_of(bio: &Bio) -> u64 {
    match bio.completion {
        Completion::Submitter(key) => key.number(),
        _ => 0,
    }
}

impl Rig {
    fn new_on(major: u32, minor: u32, groups: &[(u16, IoMax)]) -> Rig {
        let feat = Features::of(KernelVersion::new(major as _, minor as _));
        let counting = feat.throttle_counting();
        let mut agenda = Agenda::new(Hz(1000));
        let throttle = Throttle::new(&table(groups), counting, Hz(1000), &mut agenda.timers);
        Rig {
            agenda,
            throttle: throttle.expect("some limit"),
            released: Vec::new(),
        }
    }

    fn new(groups: &[(u16, IoMax)]) -> Rig {
        Rig::new_on(6, 12, groups)
    }

    fn submit(&mut self, group: u16, bio: &Bio) -> Throttled {
        self.throttle
            .submit(&mut self.agenda.timers, group, bio, false)
    }

    /// Submits `n` bios with marks from `mark` on; how many passed at once.
    fn submit_all(&mut self, group: u16, bio: &Bio, n: u64, mark: u64) -> u64 {
        let mut passed = 0;
        for i in 0..n {
            let bio = Bio {
                completion: Completion::Submitter(BioKey::new(mark + i)),
                ..*bio
            };
            if self.submit(group, &bio) == Throttled::Pass {
                assert_eq!(passed, i, "one passed others");
                passed += 1;
            }
        }
        passed
    }

    /// The clock goes to the start of a tick.
    fn until(&mut self, tick: u64) {
        let end = Time(tick * 1_000_000);
        self.agenda.wake_device(DeviceId(0), end, 0);
        while let Some(due) = self.agenda.next(end) {
            if let Due::Timer(timer) = due {
                assert_eq!(timer, self.throttle.timer_id());
                let mut bios = Vec::new();
                self.throttle.timer(&mut self.agenda.timers, &mut bios);
                let now = self.agenda.timers.jiffies().0;
                self.released
                    .extend(bios.iter().map(|bio| (now, mark_of(bio))));
            }
        }
    }

    /// Ticks at which bios were released, each with their number.
    fn bursts(&self) -> Vec<(u64, usize)> {
        let same = |a: &(u64, u64), b: &(u64, u64)| a.0 == b.0;
        let bursts = self.released.chunk_by(same);
        bursts.map(|b| (b[0].0, b.len())).collect()
    }
}

fn io(op: Op, kib: u32) -> Bio {
    Bio {
        op,
        nr_sectors: kib * 2,
        ..Bio::default()
    }
}

const MIB: u64 = 1 << 20;

fn read_bytes(per_s: u64) -> IoMax {
    IoMax {
        read_bytes_per_s: Some(per_s),
        ..IoMax::default()
    }
}

fn read_ios(per_s: u64) -> IoMax {
    IoMax {
        read_ios_per_s: Some(per_s),
        ..IoMax::default()
    }
}

#[test]
fn bytes_come_in_bursts() {
    // 104857 bytes a slice of 100 ticks: 25 reads of 4 KiB are 102400.
    let mut rig = Rig::new(&[(0, read_bytes(MIB))]);
    assert_eq!(rig.submit_all(1, &io(Op::Read, 4), 100, 0), 25);
    // Writes are not limited, nor are other groups.
    assert_eq!(rig.submit(1, &io(Op::Write, 4096)), Throttled::Pass);
    assert_eq!(rig.submit(0, &io(Op::Read, 4096)), Throttled::Pass);
    // The 26th lacks 1639 bytes: 1 tick beyond the slice. With it the slice
    // from 0 is trimmed and leaves those 1639, so that 25 more fit: 104039.
    // The next lacks 3278 bytes, 3 ticks; the slice, begun at 100, is 1 old:
    // 3 + 99 later. With it 108135 - 104857 = 3278 are left, and 24 fit.
    rig.until(203);
    assert_eq!(rig.bursts(), [(101, 26), (203, 25)]);
    rig.until(1000);
    assert_eq!(rig.throttle.held(), 0);
    let marks: Vec<u64> = rig.released.iter().map(|r| r.1).collect();
    assert_eq!(marks, (25..100).collect::<Vec<_>>());
}

#[test]
fn ios_come_in_bursts() {
    let mut rig = Rig::new(&[(0, read_ios(100))]);
    assert_eq!(rig.submit_all(1, &io(Op::Read, 512), 35, 0), 10);
    rig.until(1000);
    assert_eq!(rig.bursts(), [(100, 10), (200, 10), (300, 5)]);
    // After a pause there is a new slice, without credit.
    assert_eq!(rig.submit_all(1, &io(Op::Read, 512), 12, 0), 10);
}

#[test]
fn a_low_rate_waits_for_one_io() {
    // 2 a second: none in the slices to tick 400, one in that to 500. A version
    // that looks at each slice's end finds it when it begins; the others after
    // half a second and a tick.
    let submit = |major, minor| {
        let mut rig = Rig::new_on(major, minor, &[(0, read_ios(2))]);
        assert_eq!(rig.submit_all(1, &io(Op::Read, 4), 2, 0), 0);
        rig.until(3000);
        rig.released
    };
    assert_eq!(submit(6, 1)[0], (400, 0));
    assert_eq!(submit(6, 12)[0], (501, 0));
}

#[test]
fn both_limits_hold() {
    let max = IoMax {
        read_ios_per_s: Some(50),
        ..read_bytes(MIB)
    };
    // 5 reads a slice, or 104857 bytes.
    let mut rig = Rig::new(&[(0, max)]);
    assert_eq!(rig.submit_all(1, &io(Op::Read, 4), 6, 0), 5);
    let mut rig = Rig::new(&[(0, max)]);
    assert_eq!(rig.submit_all(1, &io(Op::Read, 32), 6, 0), 3);
}

#[test]
fn a_bio_larger_than_a_slice_waits_for_its_bytes() {
    // 1 MiB at 1 MiB/s: 943719 bytes are missing in the first slice: 900 ticks,
    // and the 100 that the slice lasts.
    let mut rig = Rig::new(&[(0, read_bytes(MIB))]);
    assert_eq!(rig.submit(1, &io(Op::Read, 1024)), Throttled::Held);
    rig.until(2000);
    assert_eq!(rig.bursts(), [(1000, 1)]);
}

#[test]
fn the_group_above_limits_both_below() {
    // 1 above 2 and 3: 10 reads a slice for both together. Those of 2 and 3 take
    // turns.
    let none = IoMax::default();
    let mut rig = Rig::new(&[(0, read_ios(100)), (1, none), (1, none)]);
    let read = io(Op::Read, 4);
    assert_eq!(rig.submit_all(2, &read, 20, 1000), 10);
    assert_eq!(rig.submit_all(3, &read, 10, 2000), 0);
    rig.until(100);
    let marks: Vec<u64> = rig.released.iter().map(|r| r.1).collect();
    assert_eq!(
        marks,
        [1010, 2000, 1011, 2001, 1012, 2002, 1013, 2003, 1014, 2004]
    );
    rig.until(200);
    assert_eq!(rig.bursts(), [(100, 10), (200, 10)]);
}

#[test]
fn each_level_holds_by_its_own_limit() {
    // 10 reads a slice below, 20 above: what was held below passes above.
    let mut rig = Rig::new(&[(0, read_ios(200)), (1, read_ios(100)), (1, read_ios(300))]);
    let read = io(Op::Read, 4);
    assert_eq!(rig.submit_all(2, &read, 15, 1000), 10);
    // The other one gets the rest of the 20; 20 more of its 30 wait above.
    assert_eq!(rig.submit_all(3, &read, 40, 2000), 10);
    rig.until(100);
    // At 100 the group above has 20 again. It held 20 of group 3 before the 5 of
    // group 2 came up.
    let released =
        |rig: &Rig, mark: u64| rig.released.iter().filter(|r| r.1 / 1000 == mark).count();
    assert_eq!(rig.released.len(), 20);
    rig.until(1000);
    assert_eq!((released(&rig, 1), released(&rig, 2)), (5, 30));
    assert_eq!(rig.throttle.held(), 0);
}

#[test]
fn reads_are_submitted_before_writes() {
    let max = IoMax {
        write_ios_per_s: Some(20),
        ..read_ios(20)
    };
    let mut rig = Rig::new(&[(0, max)]);
    for i in 0..4 {
        rig.submit_all(1, &io(Op::Write, 4), 1, 100 + i);
        rig.submit_all(1, &io(Op::Read, 4), 1, 200 + i);
    }
    rig.until(100);
    let marks: Vec<u64> = rig.released.iter().map(|r| r.1).collect();
    assert_eq!(marks, [202, 203, 102, 103]);
}

#[test]
fn remainders_count_as_ios_only() {
    let max = IoMax {
        read_ios_per_s: Some(20),
        ..read_bytes(MIB)
    };
    let rest = io(Op::Read, 1024);
    let mut rig = Rig::new(&[(0, max)]);
    let timers = &mut rig.agenda.timers;
    let mut split = || rig.throttle.submit(timers, 1, &rest, true);
    assert_eq!(
        [split(), split(), split()],
        [Throttled::Pass, Throttled::Pass, Throttled::Held]
    );
    // Not at all before 6.1.
    let mut rig = Rig::new_on(5, 10, &[(0, max)]);
    for _ in 0..3 {
        let timers = &mut rig.agenda.timers;
        let passed = rig.throttle.submit(timers, 1, &rest, true);
        assert_eq!(passed, Throttled::Pass);
    }
}

#[test]
fn metadata_passes_and_is_paid_back() {
    let meta = Bio {
        flags: BioFlags::META,
        ..io(Op::Read, 4)
    };
    let mut rig = Rig::new_on(6, 1, &[(0, read_ios(20))]);
    assert_eq!(rig.submit_all(1, &meta, 3, 0), 2);
    let mut rig = Rig::new(&[(0, read_ios(20))]);
    assert_eq!(rig.submit_all(1, &meta, 4, 0), 4);
    // At the end of the slice 4 are allowed, less 2 of debt and 2 that passed.
    // At 200 they are 6 less those: two.
    assert_eq!(rig.submit_all(1, &io(Op::Read, 4), 2, 10), 0);
    rig.until(1000);
    assert_eq!(rig.bursts(), [(200, 2)]);
}

/// As up to 4.4: the eleventh I/O waits until eleven may have passed, and one tick more.
#[test]
fn early_kernels_wait_for_the_number_of_ios() {
    let counting = Counting {
        waits_by_number: true,
        restarts_with_held: true,
        ..Counting::default()
    };
    let max = IoMax {
        read_ios_per_s: Some(100),
        ..IoMax::default()
    };
    let mut agenda = Agenda::new(Hz(1000));
    let throttle = Throttle::new(&table(&[(0, max)]), counting, Hz(1000), &mut agenda.timers);
    let mut rig = Rig {
        agenda,
        throttle: throttle.expect("some limit"),
        released: Vec::new(),
    };
    assert_eq!(rig.submit_all(1, &io(Op::Read, 4), 40, 1), 10);
    rig.until(1000);
    assert_eq!(rig.bursts(), [(111, 10), (211, 10), (311, 10)]);
}

#[test]
fn without_limits_there_is_nothing_to_do() {
    let mut agenda = Agenda::new(Hz(1000));
    let tasks = table(&[(0, IoMax::default())]);
    let throttle = Throttle::new(&tasks, Counting::default(), Hz(1000), &mut agenda.timers);
    assert!(throttle.is_none());
}

/// Any load on any tree: order within a source and direction, nothing lost, and
/// no group is faster than its rate, beyond one slice and one bio.
#[test]
fn rates_hold_and_nothing_is_lost() {
    for seed in 0..60 {
        let mut random = Stream::named(seed, "throttle");
        let rate = 20 + random.below(2000);
        let groups = [
            (0, read_ios(rate)),
            (1, read_ios(20 + random.below(2000))),
            (1, read_bytes(50_000 + random.below(1 << 24))),
            (2, IoMax::default()),
        ];
        let mut rig = Rig::new(&groups);
        let mut passed = Vec::new();
        let mut submitted = 0;
        let mut tick = 0;
        while submitted < 400 {
            let group = 1 + random.below(4) as u16;
            let bio = Bio {
                completion: Completion::Submitter(BioKey::new(u64::from(group) << 32 | submitted)),
                ..io(Op::Read, 4 << random.below(4))
            };
            submitted += 1;
            if rig.submit(group, &bio) == Throttled::Pass {
                passed.push((tick, mark_of(&bio)));
            }
            if random.below(8) == 0 {
                tick += random.below(50);
                rig.until(tick);
            }
        }
        rig.until(tick + 200_000);
        assert_eq!(rig.throttle.held(), 0, "held for good, seed {seed}");
        // In a tick the timer came first.
        let mut passed = [rig.released, passed].concat();
        passed.sort_by_key(|p| p.0);
        assert_eq!(passed.len() as u64, submitted);
        for group in 1..5 {
            let of = passed.iter().filter(|p| p.1 >> 32 == group);
            assert!(of.is_sorted_by_key(|p| p.1), "order, seed {seed}");
        }
        // All pass group 1.
        for (i, first) in passed.iter().enumerate() {
            for (n, last) in (1..).zip(&passed[i..]) {
                let most = (last.0 - first.0 + 200) * rate / 1000 + 2;
                assert!(n <= most, "{n} in {} ticks, seed {seed}", last.0 - first.0);
            }
        }
    }
}
