// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups: `io.max` on the multi-queue path, weights under CFQ and BFQ.

use crate::rig::{Ran, experiment, run, run_processes};
use blklab_experiment::Experiment;
use blklab_kernel::KernelVersion;
use blklab_sim::catalogue;
use blklab_trace::{Action, Event};
use blklab_types::Time;

/// A fast device on a multi-queue kernel with 1000 ticks a second.
fn multi_queue(groups: &[(&str, &str)]) -> Experiment {
    let mut e = experiment();
    e.kernel = "6.12".parse().expect("a version");
    e.scheduler = "none".to_owned();
    e.hz.0 = 1000;
    e.device.name = "parallel".to_owned();
    e.device.params = vec![("read_ns".to_owned(), "100000".to_owned())];
    for (key, value) in groups {
        e.set(key, value, &catalogue())
            .expect("a setting of a group");
    }
    e
}

const DIRECT: &str = "[global]\nioengine=libaio\ndirect=1\niodepth=32\nsize=64m\nrw=randread\n\
                      runtime=2\ntime_based=1\n";

fn jobs(text: &str) -> String {
    format!("{DIRECT}{text}")
}

/// Bios that were queued by others than a process in its two seconds: that is,
/// by the limited job, and by kthrotld for it.
fn queued_by_others(ran: &Ran, pid: u32) -> Vec<&Event> {
    let others =
        |e: &&Event| e.action == Action::Queue && e.pid != pid && e.time < Time(2_000_000_000);
    ran.events.iter().filter(others).collect()
}

/// I/Os that a job completed, in its direction.
fn ios(ran: &Ran, job: &str) -> u64 {
    let stat = &ran.job(job).stat;
    stat.io_bytes() / 4096
}

fn pid_of(ran: &Ran, name: &str) -> u32 {
    1000 + ran.job(name).job.thread
}

#[test]
fn a_job_gets_what_its_group_may() {
    let e = multi_queue(&[("cgroup.a.io.max", "riops=500")]);
    let ran = run(&e, &jobs("[a]\ncgroup=a\n[b]\n"));
    // 50 a slice of 100 ms, the first ones at once. At the end 32 are in flight,
    // which the job waits for.
    let queued = queued_by_others(&ran, pid_of(&ran, "b"));
    assert_eq!(queued.len(), 1000, "500 a second");
    assert_eq!(ios(&ran, "a"), 1032);
    assert!(ios(&ran, "b") > 20_000, "the other has no limits");
    let held = &ran.outcome.cgroups[0];
    assert_eq!((held.name.as_str(), ran.outcome.cgroups.len()), ("a", 1));
    let held = held.held.expect("it is counted");
    assert_eq!(held.bios, 20 * 32, "those in flight, in each slice");
    assert_eq!(held.longest.ns(), 100_000_000);
}

#[test]
fn q_comes_after_the_wait() {
    let e = multi_queue(&[("cgroup.a.io.max", "riops=100")]);
    let ran = run(&e, &jobs("iodepth=4\n[a]\ncgroup=a\n"));
    let own = pid_of(&ran, "a");
    let all = queued_by_others(&ran, 0);
    let (job, worker): (Vec<&Event>, Vec<&Event>) = all.iter().partition(|e| e.pid == own);
    // 10 pass in each slice; who had to wait is queued by the worker when the
    // slice begins, one request's processor time after the other.
    let into_slice = |e: &Event| e.time.0 % 100_000_000;
    assert!(worker.len() >= 19 * 4, "{}", worker.len());
    assert!(worker.iter().all(|e| into_slice(e) < 20_000));
    assert!(job.iter().all(|e| into_slice(e) < 50_000_000));
    for slice in 0..20 {
        let in_slice = |e: &&&Event| e.time.0 / 100_000_000 == slice;
        assert_eq!(all.iter().filter(in_slice).count(), 10, "slice {slice}");
    }
}

#[test]
fn bytes_are_limited_for_the_group_above() {
    let e = multi_queue(&[
        ("cgroup.up.io.max", "rbps=4096000"),
        ("cgroup.up/a.io.max", "rbps=1024000"),
        ("cgroup.up/b.io.max", "rbps=max"),
    ]);
    let ran = run(&e, &jobs("[a]\ncgroup=up/a\n[b]\ncgroup=up/b\n"));
    // 1000 reads of 4 KiB a second for both, 250 at most for a; at the end 32 of
    // each are in flight.
    let (a, b) = (ios(&ran, "a"), ios(&ran, "b"));
    assert!((1950..=2064).contains(&(a + b)), "{a} + {b}");
    assert!((450..=532).contains(&a), "{a}");
}

#[test]
fn large_bios_are_charged_once_and_split() {
    let e = multi_queue(&[("cgroup.a.io.max", "rbps=10485760 riops=1000")]);
    let ran = run(&e, &jobs("bs=2m\nrw=read\n[a]\ncgroup=a\n"));
    // 32 of 2 MiB each, at 10 MiB/s, and up to a tick longer for each.
    assert_eq!(ran.job("a").stat.io_bytes(), 64 << 20);
    let end_ms = ran.outcome.end.0 / 1_000_000;
    assert!((6400..=6500).contains(&end_ms), "{end_ms}");
    let splits = ran.spans(Action::Split).len();
    assert!(splits > 0, "2 MiB are more than a request has");
}

#[test]
fn write_back_belongs_to_the_writer() {
    let job = "[a]\nrw=write\nbs=64k\nsize=8m\ncgroup=a\nend_fsync=1\n";
    let limited = multi_queue(&[("cgroup.a.io.max", "wbps=1048576")]);
    let ran = run(&limited, job);
    let seconds = ran.outcome.end.0 / 1_000_000_000;
    assert!((7..=8).contains(&seconds), "8 MiB at 1 MiB/s: {seconds} s");
    let note = "control groups: write-back of a file is charged to the group that first wrote";
    assert!(ran.outcome.notes.iter().any(|n| n.starts_with(note)));
    // The root's are not held.
    let ran = run(&limited, &job.replace("cgroup=a\n", ""));
    assert!(ran.outcome.end < Time(1_000_000_000));
}

#[test]
fn explicit_processes_wait_for_bios_that_kthrotld_submits() {
    let text = "kernel = '6.1'\nscheduler = 'none'\nhz = 1000\n[device]\nname = 'parallel'\n\
                read_ns = 1000\n[cgroup.a]\nio.max = 'riops=20'\n\
                [[processes]]\nname = 'p'\npid = 7\ncgroup = 'a'\ndepth = 2\n\
                io = { pattern = 'list', rw = 'read', nsect = 8, \
                sectors = [0, 80, 160, 240, 320, 400, 480, 560, 640, 720] }\n";
    let events = run_processes(text);
    let done: Vec<u64> = events
        .iter()
        .filter(|e| e.action == Action::Complete)
        .map(|e| e.time.0 / 100_000_000)
        .collect();
    assert_eq!(done, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], "2 a slice");
}

#[test]
fn a_run_repeats_itself() {
    let e = multi_queue(&[("cgroup.a.io.max", "riops=777 rbps=2000000")]);
    let text = jobs("[a]\ncgroup=a\nnumjobs=2\n[b]\ncgroup=b\n");
    assert_eq!(run(&e, &text).digest(), run(&e, &text).digest());
}

/// What a job in a group of weight 300 has in units of what one of weight 100
/// has.
fn shares(e: &Experiment, rw: &str) -> f64 {
    let file = if e.kernel < KernelVersion::new(5, 0) {
        "blkio.weight"
    } else {
        "io.bfq.weight"
    };
    let mut e = e.clone();
    for (group, weight) in [("light", "100"), ("heavy", "300")] {
        let key = format!("cgroup.{group}.{file}");
        e.set(&key, weight, &catalogue()).expect("a weight");
    }
    let text = format!(
        "[global]\nioengine=sync\ndirect=1\nsize=64m\nrw={rw}\nruntime=20\n\
         time_based=1\n[light]\ncgroup=light\n[heavy]\ncgroup=heavy\n"
    );
    let ran = run(&e, &text);
    ios(&ran, "heavy") as f64 / ios(&ran, "light") as f64
}

#[test]
fn cfq_serves_groups_by_weight() {
    let mut e = experiment();
    e.scheduler = "cfq".to_owned();
    for kernel in ["2.6.38", "3.10", "4.19"] {
        e.kernel = kernel.parse().expect("a version");
        let ratio = shares(&e, "randread");
        assert!((2.7..=3.3).contains(&ratio), "{kernel}: {ratio}");
    }
}

#[test]
fn bfq_serves_groups_by_weight() {
    let mut e = experiment();
    e.scheduler = "bfq".to_owned();
    for kernel in ["5.10", "6.1", "6.12"] {
        e.kernel = kernel.parse().expect("a version");
        e.set("low_latency", "0", &catalogue()).expect("a tunable");
        let ratio = shares(&e, "read");
        assert!((2.7..=3.3).contains(&ratio), "{kernel}: {ratio}");
    }
}

/// 8000 reads of 4 KiB a second, at a rate that stays.
const COST: [(&str, &str); 2] = [
    (
        "cgroup./.io.cost.qos",
        "enable=1 rpct=0 rlat=100000 wpct=0 wlat=100000 min=100 max=100",
    ),
    (
        "cgroup./.io.cost.model",
        "rbps=4000000000 rseqiops=8000 rrandiops=8000",
    ),
];

#[test]
fn io_cost_shares_by_weight() {
    let weights = [("cgroup.a.io.weight", "100"), ("cgroup.b.io.weight", "300")];
    let e = multi_queue(&[&COST[..], &weights[..]].concat());
    let ran = run(&e, &jobs("[a]\ncgroup=a\n[b]\ncgroup=b\n"));
    let (a, b) = (ios(&ran, "a"), ios(&ran, "b"));
    assert!((15_500..=17_500).contains(&(a + b)), "{a} + {b}");
    assert!((280..=320).contains(&(b * 100 / a)), "{a}, {b}");
    let uses = &ran.outcome.cgroups;
    assert_eq!(uses.len(), 2, "the root is told of by its groups");
    let moved = uses[0].moved.expect("it is counted");
    assert_eq!(moved.ios[0], a);
    assert!(uses[0].said[0].starts_with("cost.usage="), "{:?}", uses[0]);
    // The same weight under another name, and by default.
    let e = multi_queue(&[&COST[..], &[("cgroup.b.io.bfq.weight", "300")]].concat());
    let ran = run(&e, &jobs("[a]\ncgroup=a\n[b]\ncgroup=b\n"));
    assert_eq!((ios(&ran, "a"), ios(&ran, "b")), (a, b));
}

#[test]
fn io_cost_that_is_off_holds_nobody() {
    let off = [
        ("cgroup./.io.cost.qos", "enable=0"),
        ("cgroup.a.io.weight", "1"),
    ];
    let free = run(&multi_queue(&[]), &jobs("[a]\n"));
    let off = run(&multi_queue(&off), &jobs("[a]\ncgroup=a\n"));
    assert_eq!(ios(&free, "a"), ios(&off, "a"));
}

#[test]
fn io_latency_holds_the_deep_queue_back() {
    let set = |target| {
        let mut e = multi_queue(&[
            ("cgroup.web.io.latency", target),
            ("cgroup.batch.io.max", "rbps=max"),
        ]);
        e.device.name = "serial".to_owned();
        e.device.params = vec![("read_ns".to_owned(), "250000".to_owned())];
        run(
            &e,
            &jobs("runtime=8\n[web]\niodepth=1\ncgroup=web\n[batch]\ncgroup=batch\n"),
        )
    };
    let (kept, missed) = (set("target=1000000"), set("target=2000"));
    let (before, after) = (ios(&kept, "web"), ios(&missed, "web"));
    assert!(after > 3 * before, "{before}, then {after}");
    let said = |ran: &Ran, n: usize| ran.outcome.cgroups[n].said.join(" ");
    assert!(said(&kept, 1).contains("depth=max"), "{}", said(&kept, 1));
    assert!(!said(&missed, 1).contains("depth=max"));
    assert!(said(&missed, 0).contains("depth=max"), "it has the target");
}

#[test]
fn classes_of_groups_order_requests() {
    // Both have the same load; mq-deadline serves real time first.
    let set = |policy, kernel: &str| {
        let mut e = multi_queue(&[("cgroup.a.io.prio.class", policy)]);
        e.kernel = kernel.parse().expect("a version");
        e.scheduler = "mq-deadline".to_owned();
        for (key, value) in [("queue_depth", "1"), ("nr_requests", "256")] {
            e.set(key, value, &catalogue()).expect("a setting");
        }
        e.device.name = "serial".to_owned();
        e.device.params = vec![("read_ns".to_owned(), "200000".to_owned())];
        let ran = run(&e, &jobs("[a]\ncgroup=a\n[b]\n"));
        (ios(&ran, "a"), ios(&ran, "b"))
    };
    let (a, b) = set("promote-to-rt", "6.12");
    assert!(a > 10 * b, "{a}, {b}");
    assert_eq!(set("none-to-rt", "6.12"), (a, b));
    let (a, b) = set("idle", "6.12");
    assert!(b > 10 * a, "{a}, {b}");
    // Bios have the class of their task's nice value by then, which is not none.
    let (a, b) = set("none-to-rt", "6.1");
    assert!(a < 2 * b && b < 2 * a, "{a}, {b}");
}

#[test]
fn limits_of_version_1_hold_for_each_group_alone() {
    let e = multi_queue(&[
        ("cgroup.up.blkio.throttle.read_iops_device", "100"),
        ("cgroup.up/a.blkio.throttle.read_iops_device", "500"),
    ]);
    let ran = run(&e, &jobs("[up]\ncgroup=up\n[a]\ncgroup=up/a\n"));
    // 32 of each are in flight at the end.
    assert_eq!((ios(&ran, "up"), ios(&ran, "a")), (232, 1032));
}

/// The same on a kernel with one queue.
fn single_queue(kernel: &str, scheduler: &str, limit: (&str, &str)) -> Experiment {
    let mut e = multi_queue(&[limit]);
    e.kernel = kernel.parse().expect("a version");
    e.scheduler = scheduler.to_owned();
    e
}

/// Limits of the single-queue path: of each release that has them, under each scheduler, and of
/// no other group.
#[test]
fn limits_hold_on_the_single_queue_path() {
    for (kernel, scheduler) in [
        ("2.6.37", "noop"),
        ("2.6.37", "cfq"),
        ("3.10", "deadline"),
        ("4.19", "deadline"),
    ] {
        let limit = ("cgroup.slow.blkio.throttle.read_iops_device", "100");
        let e = single_queue(kernel, scheduler, limit);
        let ran = run(
            &e,
            &jobs("[slow]\ncgroup=slow\niodepth=4\n[free]\niodepth=4\n"),
        );
        let (slow, free) = (ios(&ran, "slow"), ios(&ran, "free"));
        // 100 a second for two seconds, and those in flight at the end. Under CFQ what was held
        // and let go waits for a slice of its group behind those of the other: it may be fewer.
        let least = if scheduler == "cfq" { 50 } else { 200 };
        assert!(
            (least..=204).contains(&slow),
            "{kernel} {scheduler}: {slow}"
        );
        assert!(free > 5 * slow, "{kernel} {scheduler}: {free}");
        let held = ran.outcome.cgroups[0].held.expect("it is counted");
        assert!(held.bios >= 19, "{kernel}: {held:?}");
    }
}

/// A bio that is held has no Q until kthrotld submits it.
#[test]
fn what_is_held_is_queued_by_the_worker() {
    let limit = ("cgroup.slow.blkio.throttle.write_bps_device", "409600");
    let e = single_queue("3.10", "noop", limit);
    let ran = run(&e, &jobs("[slow]\ncgroup=slow\niodepth=1\nrw=randwrite\n"));
    let own = pid_of(&ran, "slow");
    let worker = queued_by_others(&ran, own);
    assert_eq!(worker.len(), 19, "one a slice has to wait");
    let apart = worker
        .windows(2)
        .map(|two| two[1].time.since(two[0].time).0);
    assert!(apart.min() >= Some(90_000_000));
    // 100 of 4 KiB a second.
    assert!(
        (200..=201).contains(&ios(&ran, "slow")),
        "{}",
        ios(&ran, "slow")
    );
}

/// Eight reads of 64 KiB in a row, which the plug merges: the group has the device's time
/// for few of them, and the rest is a debt.
#[test]
fn a_task_is_held_up_at_the_end_of_its_system_call_for_a_debt() {
    let e = multi_queue(&[
        (
            "cgroup./.io.cost.qos",
            "enable=1 rpct=0 rlat=1000 wpct=0 wlat=1000 min=100 max=100",
        ),
        (
            "cgroup./.io.cost.model",
            "rbps=400000000 rseqiops=10000 rrandiops=8000 wbps=400000000 wseqiops=10000 \
             wrandiops=8000",
        ),
        ("cgroup.a.io.weight", "10"),
        ("cgroup.b.io.weight", "300"),
    ]);
    let text = "[global]\nioengine=libaio\ndirect=1\nsize=64m\nruntime=2\ntime_based=1\n\
                [a]\ncgroup=a\nrw=read\nbs=64k\niodepth=8\niodepth_batch_submit=8\n\
                iodepth_batch_complete_min=8\n\
                [b]\ncgroup=b\nrw=randread\nbs=4k\niodepth=8\n";
    let ran = run(&e, text);
    let pid = pid_of(&ran, "a");
    let is_own = |e: &&Event| e.pid == pid && matches!(e.action, Action::Queue | Action::BackMerge);
    let own: Vec<&Event> = ran.events.iter().filter(is_own).collect();
    // Behind its last merge the call ends, and the task would be back within the 100 us of
    // the device.
    let held_up = own.windows(2).filter(|pair| {
        pair[0].action == Action::BackMerge && pair[1].time.since(pair[0].time).ns() > 1_000_000
    });
    assert!(held_up.count() > 10);
}

#[test]
fn what_groups_move_is_counted_without_limits_and_with_the_groups_below() {
    let e = multi_queue(&[("cgroup.up/a.io.max", "rbps=max")]);
    let text = "runtime=0\ntime_based=0\nsize=4m\n[a]\ncgroup=up/a\n[b]\ncgroup=up/b\n[root]\n";
    let ran = run(&e, &jobs(text));
    let moved = |name: &str| {
        let found = ran.outcome.cgroups.iter().find(|g| g.name == name);
        found.expect("the group").moved.expect("it is counted")
    };
    assert_eq!(moved("up/a").bytes, [4 << 20, 0, 0]);
    assert_eq!(moved("up/a").ios, [1024, 0, 0]);
    assert_eq!(moved("up").ios, [2048, 0, 0]);
}

#[test]
fn parts_of_bios_count_each_and_their_bytes_once() {
    let e = multi_queue(&[("cgroup.a.io.max", "rbps=max")]);
    let ran = run(&e, &jobs("bs=2m\nrw=read\ntime_based=0\n[a]\ncgroup=a\n"));
    let moved = ran.outcome.cgroups[0].moved.expect("it is counted");
    assert_eq!(moved.bytes, [64 << 20, 0, 0]);
    let splits = ran.spans(Action::Split).len() as u64;
    let queued = ran.events.iter().filter(|e| e.action == Action::Queue);
    assert!(splits > 0);
    assert_eq!(moved.ios[0], queued.count() as u64 + splits);
}

#[test]
fn who_sleeps_in_io_schedule_is_stalled_and_who_sleeps_in_io_getevents_is_not() {
    let e = multi_queue(&[("cgroup.up/a.io.max", "rbps=max")]);
    let text = "iodepth=1\n[a]\ncgroup=up/a\nioengine=psync\n[b]\ncgroup=b\n\
                [c]\ncgroup=c\nioengine=io_uring\n";
    let ran = run(&e, &jobs(text));
    let stalled_us = |name: &str| {
        let found = ran.outcome.cgroups.iter().find(|g| g.name == name);
        let pressure = found.expect("the group").pressure.expect("it is counted");
        assert_eq!(pressure.some, pressure.full, "{name} has one task");
        pressure.full.total_us
    };
    // Each read takes 100 us, and the device has room for all.
    let reads = ios(&ran, "a");
    let range = 98 * reads..=115 * reads;
    assert!(
        range.contains(&stalled_us("up/a")),
        "{}",
        stalled_us("up/a")
    );
    assert_eq!(stalled_us("up"), stalled_us("up/a"));
    assert_eq!(stalled_us("b"), 0);
    let reads = ios(&ran, "c");
    let range = 98 * reads..=115 * reads;
    assert!(range.contains(&stalled_us("c")), "{}", stalled_us("c"));
    assert!(ran.outcome.pressure.expect("it is counted").some.total_us > 0);
}

#[test]
fn who_waits_for_io_uring_is_stalled_in_releases_that_count_it() {
    for (kernel, counts) in [
        ("5.10", true),
        ("5.15", false),
        ("6.1", true),
        ("6.4", false),
        ("6.6", true),
    ] {
        let mut e = multi_queue(&[("cgroup.c.io.max", "rbps=max")]);
        e.kernel = kernel.parse().expect("a version");
        let text = "iodepth=1\nruntime=1\n[c]\ncgroup=c\nioengine=io_uring\n";
        let ran = run(&e, &jobs(text));
        let pressure = ran.outcome.cgroups[0].pressure.expect("it is counted");
        assert_eq!(pressure.full.total_us > 0, counts, "{kernel}");
    }
}

#[test]
fn pressure_is_counted_where_there_are_groups() {
    let ran = run(&multi_queue(&[]), &jobs("runtime=1\n[a]\n"));
    assert_eq!(ran.outcome.pressure, None);
    assert!(ran.outcome.cgroups.is_empty());
}
