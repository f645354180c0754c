// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrays: what members get, when, and what comes back.

use crate::rig::{Ran, experiment, run as run_job, run_processes};
use blklab_experiment::{Experiment, MdOptions, MdSpec};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::Dev;

const MD0: Dev = Dev { major: 9, minor: 0 };
const SDA: Dev = Dev { major: 8, minor: 0 };
const SDB: Dev = Dev {
    major: 8,
    minor: 16,
};

fn stack(md: &str) -> String {
    format!(
        "kernel = '2.6.28'\nhz = 1000\nscheduler = 'noop'\n[md]\n{md}\n\
         [device]\nlaw = 'serial'\nread_ns = 100000\nqueue_depth = 1\n"
    )
}

/// Time, device, sector and length of the events of a kind.
fn events_of(events: &[Event], action: Action) -> Vec<(u64, Dev, u64, u64)> {
    let all = events.iter().filter(|e| e.action == action);
    all.map(|e| (e.time.0, e.dev, e.sector, e.nr_sectors()))
        .collect()
}

/// Vector 9 of the device specification: an async write waits for the array's
/// timer, a sync write does not.
#[test]
fn a_mirrored_write_waits_for_the_plug_unless_somebody_waits_for_it() {
    let write = |flags: &str| {
        run_processes(&format!(
            "{}[[processes]]\nname = 'p'\npid = 7\nunplug = 'never'\n\
             io = {{ pattern = 'script', ops = [[500000, 'write', [{flags}], 80, 8]] }}\n",
            stack("level = 'raid1'")
        ))
    };
    // From the middle of a tick: 3 ms are what is left of it and two more.
    let late = events_of(&write(""), Action::Queue);
    let at_timer = [(SDA, 3_000_000), (SDB, 3_000_000)].map(|(dev, t)| (t, dev, 80, 8));
    assert_eq!(late[0], (500_000, MD0, 80, 8));
    assert_eq!(late[1..], at_timer);
    let now = events_of(&write("'sync'"), Action::Queue);
    let at_once = [MD0, SDA, SDB].map(|dev| (500_000, dev, 80, 8));
    assert_eq!(now, at_once);
}

#[test]
fn the_array_shows_queueing_and_plugs_and_no_completions() {
    let events = run_processes(&format!(
        "{}[[processes]]\nname = 'p'\npid = 7\nunplug = 'never'\n\
         io = {{ pattern = 'script', ops = [[0, 'write', [], 80, 8]] }}\n",
        stack("level = 'raid1'")
    ));
    let line = |e: &Event| format!("{} {} {}", e.time.0, e.pid, e.action.letters());
    let own: Vec<String> = events.iter().filter(|e| e.dev == MD0).map(line).collect();
    assert_eq!(own, ["0 7 Q", "0 7 P", "3000000 0 UT", "3000000 42 U"]);
    // kblockd unplugs the members, the thread submits and unplugs again.
    let first: Vec<String> = events.iter().filter(|e| e.dev == SDA).map(line).collect();
    assert_eq!(
        first,
        [
            "3000000 42 U",
            "3000000 43 Q",
            "3000000 43 G",
            "3000000 43 P",
            "3000000 43 I",
            "3000000 43 U",
            "3000000 43 D",
            "3100000 0 C"
        ]
    );
}

#[test]
fn striped_bios_go_on_as_themselves_in_pieces_of_a_chunk() {
    let events = run_processes(&format!(
        "{}[[processes]]\nname = 'p'\npid = 7\n\
         io = {{ pattern = 'script', ops = [[0, 'read', [], 120, 144]] }}\n",
        stack("level = 'raid0'\nchunk_kb = 64")
    ));
    let places: Vec<_> = events_of(&events, Action::Queue)
        .iter()
        .map(|&(_, dev, sector, n)| (dev, sector, n))
        .collect();
    assert_eq!(
        places,
        [
            (MD0, 120, 8),
            (SDA, 120, 8),
            (MD0, 128, 128),
            (SDB, 0, 128),
            (MD0, 256, 8),
            (SDA, 128, 8)
        ]
    );
    let remaps: Vec<_> = events
        .iter()
        .filter(|e| e.action == Action::Remap)
        .map(|e| (e.dev, e.sector, e.from_dev, e.arg))
        .collect();
    assert_eq!(
        remaps,
        [
            (SDA, 120, MD0, 120),
            (SDB, 0, MD0, 128),
            (SDA, 128, MD0, 256)
        ]
    );
}

/// The first sector of the members' partitions is that of the array.
#[test]
fn an_array_of_partitions_shows_both_remaps() {
    let events = run_processes(&format!(
        "{}[queue]\npartition_start = 63\n[[processes]]\nname = 'p'\npid = 7\n\
         io = {{ pattern = 'script', ops = [[0, 'read', [], 8, 8]] }}\n",
        stack("level = 'raid0'")
    ));
    let shown: Vec<_> = events
        .iter()
        .take(4)
        .map(|e| (e.action.letters(), e.dev, e.sector, e.from_dev, e.arg))
        .collect();
    let (none, sda1) = (Dev::default(), Dev { major: 8, minor: 1 });
    assert_eq!(
        shown,
        [
            ("Q", MD0, 8, none, 0),
            ("A", SDA, 71, sda1, 8),
            ("A", SDA, 71, MD0, 8),
            ("Q", SDA, 71, none, 0)
        ]
    );
}

#[test]
fn stripes_refuse_barriers_and_mirrors_pass_them_on() {
    let barrier = |level: &str| {
        run_processes(&format!(
            "{}[[processes]]\nname = 'p'\npid = 7\n\
             io = {{ pattern = 'script', ops = [[0, 'write', ['barrier'], 80, 8]] }}\n",
            stack(&format!("level = '{level}'"))
        ))
    };
    let refused = barrier("raid0");
    let queued: Vec<Dev> = events_of(&refused, Action::Queue)
        .iter()
        .map(|e| e.1)
        .collect();
    assert_eq!(queued, [MD0]);
    let passed = barrier("raid1");
    let on = |dev| {
        let of_dev = passed.iter().filter(move |e| e.dev == dev);
        of_dev.filter(|e| e.rwbs.has(Rwbs::BARRIER) && e.action == Action::Queue)
    };
    assert_eq!((on(SDA).count(), on(SDB).count()), (1, 1));
}

/// Readers and writers all over the disk, with nothing that could merge.
fn crowd(level: &str, scheduler: &str) -> Vec<Event> {
    let mut text = stack(&format!("level = '{level}'\nmembers = 3"))
        .replace("queue_depth = 1", "queue_depth = 4")
        .replace("noop", scheduler);
    let mut x = 1_u64;
    for i in 0..6_u32 {
        let sectors: Vec<String> = (0..200)
            .map(|k| {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Apart from all others by more than its length.
                (((x >> 50) * 2000 + u64::from(i) * 300 + k) * 16).to_string()
            })
            .collect();
        let rw = if i % 3 == 0 { "write" } else { "read" };
        text += &format!(
            "[[processes]]\nname = 'p{i}'\npid = {}\ndepth = {}\n\
             io = {{ pattern = 'list', rw = '{rw}', nsect = 8, sectors = [{}] }}\n",
            100 + i,
            1 + i,
            sectors.join(", ")
        );
    }
    run_processes(&text)
}

/// What the array got and what members got and finished: (write, sector) with
/// the number of times.
fn places(
    events: &[Event],
    action: Action,
    of_array: bool,
) -> std::collections::BTreeMap<(bool, u64), u32> {
    let mut places = std::collections::BTreeMap::new();
    let all = events
        .iter()
        .filter(|e| e.action == action && (e.dev == MD0) == of_array);
    for e in all {
        *places
            .entry((e.rwbs.has(Rwbs::WRITE), e.sector))
            .or_default() += 1;
    }
    places
}

#[test]
fn mirrors_write_everywhere_and_read_once() {
    for scheduler in ["noop", "anticipatory", "deadline", "cfq"] {
        let events = crowd("raid1", scheduler);
        let asked = places(&events, Action::Queue, true);
        assert_eq!(asked.len(), 1200, "no two I/Os are alike");
        for action in [Action::Queue, Action::Complete] {
            let got = places(&events, action, false);
            assert_eq!(got.len(), asked.len(), "{scheduler}");
            for ((write, sector), n) in got {
                let expected = if write { 3 } else { 1 };
                assert_eq!(n, expected, "{scheduler}: {sector}, write: {write}");
            }
        }
    }
}

#[test]
fn stripes_pass_everything_on_once() {
    let events = crowd("raid0", "noop");
    let count = |action, array| places(&events, action, array).values().sum::<u32>();
    assert_eq!(count(Action::Queue, true), 1200);
    assert_eq!(count(Action::Queue, false), 1200);
    assert_eq!(count(Action::Complete, false), 1200);
}

/// The rule for reads, told from the trace alone: what each member has of the
/// array, where its head was at its last completion, where the last read
/// ended, and who did it.
#[test]
fn reads_go_where_the_rule_says() {
    let events = crowd("raid1", "noop");
    let member = |dev: Dev| usize::from(dev.minor / 16);
    let (mut pending, mut heads) = ([0_u32; 3], [0_u64; 3]);
    let (mut last, mut next_sector) = (0_usize, 0_u64);
    let mut reads = [0_u32; 3];
    let mut asked: Option<u64> = None;
    for e in &events {
        let is_read = e.rwbs.has(Rwbs::READ);
        match (e.action, e.dev == MD0) {
            (Action::Queue, true) if is_read => asked = Some(e.sector),
            (Action::Queue, true) => pending.iter_mut().for_each(|n| *n += 1),
            (Action::Queue, false) if is_read => {
                let s = e.sector;
                assert_eq!(asked.take(), Some(s), "in the reader's context, at once");
                let others = [(last + 2) % 3, (last + 1) % 3];
                let idle = [others[0], others[1], last]
                    .into_iter()
                    .find(|&m| pending[m] == 0);
                let near = [last, others[0], others[1]]
                    .into_iter()
                    .min_by_key(|&m| s.abs_diff(heads[m]));
                let goes_on = s == next_sector || s == heads[last];
                let expected = if goes_on { Some(last) } else { idle.or(near) };
                assert_eq!(Some(member(e.dev)), expected, "{e}");
                (last, next_sector) = (member(e.dev), s + 8);
                pending[last] += 1;
                reads[last] += 1;
            }
            (Action::Complete, false) => {
                pending[member(e.dev)] -= 1;
                heads[member(e.dev)] = e.sector + e.nr_sectors();
            }
            _ => {}
        }
    }
    assert_eq!(reads.iter().sum::<u32>(), 800);
    assert!(reads.iter().all(|&n| n > 100), "{reads:?}");
    assert_eq!(pending, [0; 3]);
}

fn mirror(scheduler: &str) -> Experiment {
    let mut e = experiment();
    e.scheduler = scheduler.to_owned();
    e.md = Some(MdSpec::new("raid1", 2, &MdOptions::default()).expect("an array"));
    e
}

const JOB: &str = "[w]\nrw=write\nsize=64m\nbs=1m\n\
                   [r]\nrw=randread\nsize=1m\nfilesize=16m\nnumjobs=3\n";

/// Sectors that each disk was asked for in one direction.
fn sectors(ran: &Ran, dev: Dev, dir: Rwbs) -> u64 {
    let all = ran.events.iter();
    let asked = all.filter(|e| e.action == Action::Queue && e.dev == dev && e.rwbs.has(dir));
    asked.map(Event::nr_sectors).sum()
}

#[test]
fn files_on_a_mirror() {
    for scheduler in ["noop", "anticipatory", "deadline", "cfq"] {
        let ran = run_job(&mirror(scheduler), JOB);
        let written = sectors(&ran, MD0, Rwbs::WRITE);
        assert!(written > 0, "{scheduler}");
        assert_eq!(sectors(&ran, SDA, Rwbs::WRITE), written, "{scheduler}");
        assert_eq!(sectors(&ran, SDB, Rwbs::WRITE), written, "{scheduler}");
        let read = sectors(&ran, MD0, Rwbs::READ);
        let by_disk = [SDA, SDB].map(|dev| sectors(&ran, dev, Rwbs::READ));
        assert_eq!(by_disk.iter().sum::<u64>(), read, "{scheduler}");
        assert!(by_disk.iter().all(|&n| n > 0), "{scheduler}: {by_disk:?}");
        let of_array = ran.events.iter().filter(|e| e.dev == MD0);
        let largest = of_array.map(Event::nr_sectors).max();
        assert_eq!(largest, Some(248), "31 pages: the limit is 255 sectors");
        assert!(ran.outcome.jobs.iter().all(|j| j.outcome.error == 0));
    }
}

/// Writes come from the array's thread, whoever wrote; reads from the readers.
#[test]
fn members_see_the_thread_and_the_readers() {
    let ran = run_job(&mirror("cfq"), JOB);
    for e in ran.events.iter().filter(|e| e.action == Action::Queue) {
        let by_thread = e.pid == 43;
        assert_eq!(by_thread, e.dev != MD0 && e.rwbs.has(Rwbs::WRITE), "{e}");
    }
}

#[test]
fn the_same_run_twice() {
    for scheduler in ["noop", "cfq"] {
        let (a, b) = (
            run_job(&mirror(scheduler), JOB),
            run_job(&mirror(scheduler), JOB),
        );
        assert_eq!(a.digest(), b.digest(), "{scheduler}");
    }
}
