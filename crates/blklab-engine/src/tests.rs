// SPDX-License-Identifier: MIT OR Apache-2.0
use crate::{Agenda, DeviceId, Due, Stream, WorkId};
use blklab_types::{Hz, Jiffies, TaskId, Time};

fn drain(a: &mut Agenda) -> Vec<(u64, Due)> {
    std::iter::from_fn(|| a.next(Time::MAX).map(|d| (a.now().0, d))).collect()
}

#[test]
fn equal_times_run_timers_then_devices_then_ready_in_order() {
    let mut a = Agenda::new(Hz(1000));
    let t = a.timers.register("t");
    a.wake_task_at(TaskId(1), Time(1_000_000));
    a.wake_device(DeviceId(0), Time(1_000_000), 7);
    a.timers.arm(t, Jiffies(1));
    a.ready_work(WorkId(3));
    a.ready_task(TaskId(2));
    assert_eq!(
        drain(&mut a),
        vec![
            (0, Due::Work(WorkId(3))),
            (0, Due::Task(TaskId(2))),
            (1_000_000, Due::Timer(t)),
            (1_000_000, Due::Device(DeviceId(0), 7)),
            (1_000_000, Due::Task(TaskId(1))),
        ]
    );
}

/// Whatever is due until then, at that instant too, comes first.
#[test]
fn the_clock_skips_only_what_is_empty() {
    let due: [fn(&mut Agenda); 5] = [
        |a| a.ready_task(TaskId(1)),
        |a| a.ready_work(WorkId(0)),
        |a| a.wake_task_at(TaskId(1), Time(1_000_000)),
        |a| a.wake_device(DeviceId(0), Time(1_000_000), 7),
        |a| {
            let timer = a.timers.register("t");
            a.timers.arm(timer, Jiffies(1));
        },
    ];
    for add in due {
        let mut a = Agenda::new(Hz(1000));
        add(&mut a);
        assert!(!a.skip_to(Time(1_000_000)));
        assert_eq!(a.now(), Time::ZERO);
        assert_eq!(drain(&mut a).len(), 1);
        assert!(a.skip_to(Time(2_500_000)), "nothing is left");
        assert_eq!((a.now(), a.timers.jiffies()), (Time(2_500_000), Jiffies(2)));
    }
}

#[test]
fn a_jiffy_timer_never_fires_in_the_jiffy_in_which_it_was_set() {
    let mut a = Agenda::new(Hz(250));
    let t = a.timers.register("t");
    a.timers.arm(t, Jiffies(0));
    assert_eq!(drain(&mut a), vec![(4_000_000, Due::Timer(t))]);
}

#[test]
fn cancelling_and_moving_timers_keeps_the_next_time_true() {
    let mut a = Agenda::new(Hz(1000));
    let (t, u) = (a.timers.register("t"), a.timers.register("u"));
    a.timers.arm(t, Jiffies(2));
    a.timers.arm(u, Jiffies(5));
    a.timers.arm(t, Jiffies(9));
    assert_eq!(a.timers.next_time(), Time(5_000_000));
    assert!(a.timers.cancel(u));
    assert!(!a.timers.cancel(u));
    assert_eq!(drain(&mut a), vec![(9_000_000, Due::Timer(t))]);
}

#[test]
fn the_limit_leaves_clock_and_agenda_alone() {
    let mut a = Agenda::new(Hz(250));
    a.wake_task_at(TaskId(0), Time(10));
    assert_eq!(a.next(Time(9)), None);
    assert_eq!(a.now(), Time::ZERO);
    assert_eq!(a.next(Time(10)), Some(Due::Task(TaskId(0))));
}

#[test]
fn streams_depend_on_seed_and_name_and_spread_evenly() {
    let mut a = Stream::named(1, "disk");
    let mut b = Stream::named(1, "disk");
    assert_eq!(a.next_u64(), b.next_u64());
    assert_ne!(a.next_u64(), Stream::named(1, "cache").next_u64());
    assert_ne!(a.next_u64(), Stream::named(2, "disk").next_u64());
    let mut counts = [0u32; 10];
    for _ in 0..10_000 {
        counts[a.below(10) as usize] += 1;
    }
    assert!(
        counts.iter().all(|&c| (850..1150).contains(&c)),
        "{counts:?}"
    );
}

#[test]
fn work_that_is_ready_is_not_queued_twice() {
    let mut a = Agenda::new(Hz(1000));
    a.ready_work(WorkId(1));
    a.ready_task(TaskId(2));
    a.ready_work(WorkId(1));
    a.ready_work(WorkId(0));
    assert_eq!(a.next(Time::MAX), Some(Due::Work(WorkId(1))));
    a.ready_work(WorkId(1));
    assert_eq!(
        drain(&mut a),
        vec![
            (0, Due::Task(TaskId(2))),
            (0, Due::Work(WorkId(0))),
            (0, Due::Work(WorkId(1))),
        ]
    );
}

#[test]
fn work_that_is_put_off_runs_once_at_its_time() {
    let mut a = Agenda::new(Hz(250));
    let work = WorkId(3);
    a.ready_work_at(work, Time(50));
    a.ready_work(work);
    a.ready_work_at(work, Time(20));
    a.wake_task_at(TaskId(1), Time(50));
    assert_eq!(a.next(Time::MAX), Some(Due::Work(work)));
    assert_eq!(a.now(), Time(50));
    assert_eq!(a.next(Time::MAX), Some(Due::Task(TaskId(1))));
    assert_eq!(a.next(Time::MAX), None);
    a.ready_work(work);
    assert_eq!(a.next(Time::MAX), Some(Due::Work(work)));
}
