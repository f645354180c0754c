// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups that hold I/O back: by io.cost, for io.latency of another group, at a limit.
//! Who is in a group, and what it may do, is known from the context alone.

use blklab_analysis::findings::{Answer, Confidence, Context, Finding, Reading, Report, Search};
use blklab_trace::{Action, Event, Rwbs, TraceSink as _};
use blklab_types::{Dev, Pid, Time};

const DEV: Dev = Dev { major: 8, minor: 0 };
const WEB: Pid = 10;
const BATCH: Pid = 20;
const KWORKER: Pid = 77;
const US: u64 = 1000;

/// Events of reads of 4 KiB.
#[derive(Default)]
struct Trace(Vec<Event>);

impl Trace {
    fn event(&mut self, us: u64, action: Action, pid: Pid, sector: u64) {
        self.0.push(Event {
            time: Time(us * US),
            sector,
            arg: 0,
            bytes: 4096,
            pid,
            dev: DEV,
            from_dev: Dev::default(),
            error: 0,
            cpu: 0,
            rwbs: Rwbs::READ,
            action,
        });
    }

    /// A read with its Q, G and C.
    fn read(&mut self, pid: Pid, sector: u64, [queue, get, end]: [u64; 3]) {
        self.event(queue, Action::Queue, pid, sector);
        self.event(get, Action::GetRequest, pid, sector);
        self.event(get, Action::Issue, pid, sector);
        self.event(end, Action::Complete, 0, sector);
    }

    fn report(mut self, context: &str) -> Report {
        self.0.sort_by_key(|e| e.time);
        let mut search = Search::all(Context::parse(context).expect("a context"));
        for (pid, comm) in [(WEB, "web"), (BATCH, "batch"), (KWORKER, "kworker/0:1")] {
            search.process(Time(0), pid, comm);
        }
        for event in &self.0 {
            search.event(event);
        }
        search.finish(Reading::default())
    }
}

/// Two groups read beside each other: each read of `batch` waits 2 ms for a request, those of
/// `web` take `web_us`.
fn beside(web_us: u64) -> Trace {
    let mut t = Trace::default();
    for k in 0..1000 {
        let us = k * 2500;
        t.read(WEB, k * 100_000 % 7_777_777, [us, us, us + web_us]);
        t.read(
            BATCH,
            9_000_000 + k * 77_777 % 999_999,
            [us, us + 2000, us + 2400],
        );
    }
    t
}

fn found<'a>(report: &'a Report, kind: &str) -> Option<&'a Finding> {
    report.findings.iter().find(|f| f.kind == kind)
}

const QUEUE: &str = "kernel=6.12\nqueue/scheduler=[none]\nqueue/nr_requests=64\n";
const WHO: &str = "cgroup.web.processes=web\ncgroup.batch.processes=20\n";

#[test]
fn a_group_waits_for_the_target_of_another_one() {
    let target = "cgroup.web.io.latency=8:0 target=300\n";
    let report = beside(400).report(&format!("{QUEUE}{WHO}{target}"));
    let f = found(&report, "cgroup-latency").expect("it is found");
    assert_eq!(f.victims.iter().map(|v| v.pid).collect::<Vec<_>>(), [BATCH]);
    assert_eq!(f.causes.iter().map(|v| v.pid).collect::<Vec<_>>(), [WEB]);
    let cause = "io.latency of web (8:0 target=300)";
    assert_eq!(f.cause.as_deref(), Some(cause));
    assert_eq!((f.count, f.worst_ns), (1000, Some(2_000_000)));
    assert_eq!(
        (f.confidence, f.missing.as_slice()),
        (Confidence::Likely, [].as_slice())
    );
    assert!(f.what.contains("lets batch have few"), "{}", f.what);
    assert!(
        f.how.contains("web 100 % took 300.0 us or more"),
        "{}",
        f.how
    );
    let larger = f.remedies[0].to_string();
    assert!(
        larger.starts_with("cgroup.web.io.latency = target=600:"),
        "{larger}"
    );
    // The group keeps its target: that it misses it is not shown.
    let report = beside(200).report(&format!("{QUEUE}{WHO}{target}"));
    let f = found(&report, "cgroup-latency").expect("it is found");
    assert_eq!(f.confidence, Confidence::Possible);
    assert!(f.missing[0].contains("misses it"), "{:?}", f.missing);
}

#[test]
fn nobody_is_held_by_a_target_that_is_not_tighter() {
    for held_by_none in [
        "cgroup.web.io.latency=8:0 target=300\ncgroup.batch.io.latency=8:0 target=300\n",
        "cgroup.batch.io.latency=8:0 target=300\n",
        "cgroup.web.io.latency=8:0 target=0\n",
    ] {
        let report = beside(400).report(&format!("{QUEUE}{WHO}{held_by_none}"));
        assert!(found(&report, "cgroup-latency").is_none(), "{held_by_none}");
        assert!(
            found(&report, "no-request-free").is_some(),
            "{held_by_none}"
        );
    }
    // In the root group nobody is held.
    let root = "cgroup.web.processes=web\ncgroup./.processes=batch\n";
    let target = "cgroup.web.io.latency=8:0 target=300\n";
    let report = beside(400).report(&format!("{QUEUE}{root}{target}"));
    assert!(found(&report, "cgroup-latency").is_none());
}

/// 1000 reads of 4 KiB a second, wherever they are; groups have the given part of that.
fn cost(max: u64) -> String {
    let rates = "rbps=4096000 rseqiops=1000 rrandiops=1000 wbps=4096000 wseqiops=1000 \
                 wrandiops=1000";
    format!("io.cost.qos=8:0 enable=1 ctrl=user min=1.00 max={max}.00\nio.cost.model=8:0 {rates}\n")
}

#[test]
fn a_group_has_used_up_its_share() {
    let weights = "cgroup.web.io.weight=default 300\ncgroup.batch.io.weight=100\n";
    // Each of 2000 reads costs 1 ms of 2.5 s: 80 %.
    let report = beside(400).report(&format!("{QUEUE}{WHO}{weights}{}", cost(80)));
    let f = found(&report, "cgroup-share").expect("it is found");
    assert_eq!(f.victims.iter().map(|v| v.pid).collect::<Vec<_>>(), [BATCH]);
    assert!(f.causes.is_empty());
    let cause = "io.cost: the share of batch, io.weight 100 of 400 beside web";
    assert_eq!(f.cause.as_deref(), Some(cause));
    assert_eq!(f.confidence, Confidence::Likely);
    assert!(f.how.contains("billed 80 % of the time"), "{}", f.how);
    assert!(f.how.ends_with("all is used up."), "{}", f.how);
    let remedies: Vec<String> = f.remedies.iter().map(ToString::to_string).collect();
    assert!(
        remedies[0].starts_with("cgroup.batch.io.weight = 200"),
        "{remedies:?}"
    );
    assert!(remedies[1].contains("max=160"), "{remedies:?}");
    // Most of the rate is not given out: a larger max would change nothing.
    let report = beside(400).report(&format!("{QUEUE}{WHO}{weights}{}", cost(800)));
    let f = found(&report, "cgroup-share").expect("it is found");
    assert!(f.remedies.iter().all(|r| r.id != "larger-vrate-max"));
    assert!(f.remedies.iter().any(|r| r.id == "looser-qos"));
}

#[test]
fn a_larger_weight_is_of_no_use_to_a_group_alone() {
    let mut t = Trace::default();
    for k in 0..1000 {
        let us = k * 2500;
        t.read(BATCH, k * 77_777 % 999_999, [us, us + 2000, us + 2400]);
    }
    let report = t.report(&format!("{QUEUE}{WHO}{}", cost(40)));
    let f = found(&report, "cgroup-share").expect("it is found");
    assert!(
        f.remedies.iter().all(|r| r.id != "larger-io-weight"),
        "{:?}",
        f.remedies
    );
    assert!(
        f.cause
            .as_deref()
            .is_some_and(|c| c.contains("no other beside it"))
    );
}

#[test]
fn who_is_in_no_known_group_is_held_by_one_that_is_not_named() {
    let report = beside(400).report(&format!("{QUEUE}{}", cost(80)));
    let f = found(&report, "cgroup-share").expect("it is found");
    assert_eq!(f.cause.as_deref(), Some("io.cost"));
    assert!(
        f.missing.iter().any(|m| m.contains("which group")),
        "{:?}",
        f.missing
    );
}

#[test]
fn a_trace_without_context_says_that_groups_are_not_visible() {
    let not_visible = |context: &str| {
        let verdict = beside(400).report(context).verdict;
        let of_groups = verdict.not_visible.iter();
        let of_groups = of_groups.filter(|n| n.what.starts_with("control groups"));
        (of_groups.count(), verdict.record)
    };
    let (nr, record) = not_visible("kernel=6.12");
    assert_eq!(nr, 1);
    assert!(record.is_some_and(|r| r.contains(",iocost ")));
    assert_eq!(not_visible(&format!("{QUEUE}{WHO}{}", cost(80))).0, 0);
    // These kernels have neither.
    assert_eq!(not_visible("kernel=2.6.28").0, 0);
}

/// Many reads at once, and then a process that waits for each though nothing is in use.
#[test]
fn requests_that_were_free_are_not_said_to_lack() {
    let mut t = beside(400);
    for k in 0..64 {
        t.read(
            WEB,
            50_000_000 + k * 8,
            [3_000_000, 3_000_000, 3_000_500 + k],
        );
    }
    let report = t.report("");
    let f = found(&report, "no-request-free").expect("it is found");
    assert_eq!(f.confidence, Confidence::Possible);
    assert_eq!(f.remedies[0].id, "look-at-group");
    assert!(f.how.starts_with("Fewer are in use"), "{}", f.how);
}

/// One read at a time, each submitted by a worker 10 ms after the one before.
fn one_by_one() -> Trace {
    let mut t = Trace::default();
    t.read(BATCH, 8, [0, 0, 200]);
    for k in 1..300 {
        let us = k * 10_000;
        t.read(KWORKER, k * 77_777 % 999_999, [us, us, us + 200]);
    }
    t
}

#[test]
fn a_group_that_goes_at_its_limit_is_held_by_it() {
    let limits = [
        ("io.max", "8:0 riops=100", "max"),
        ("io.max", "8:0 rbps=409600 wbps=max", "max"),
        ("blkio.throttle.read_iops_device", "8:0 100", "0"),
        ("blkio.throttle.read_bps_device", "409600", "0"),
    ];
    for (file, said, none) in limits {
        let context = format!("{QUEUE}{WHO}cgroup.batch.{file}={said}\n");
        let report = one_by_one().report(&context);
        let f = found(&report, "cgroup-limit").expect("it is found");
        assert_eq!(report.verdict.answer, Answer::Cause);
        assert_eq!(f.victims.iter().map(|v| v.pid).collect::<Vec<_>>(), [BATCH]);
        assert_eq!((f.count, f.worst_ns), (299, Some(9_800_000)));
        let cause = format!("its control group's own limit ({file} of batch: {said})");
        assert_eq!(f.cause.as_deref(), Some(cause.as_str()));
        let remedy = format!("cgroup.batch.{file} = {none}: raise or remove the limit of batch");
        assert_eq!(f.remedies[0].to_string(), remedy);
        assert_eq!(f.confidence, Confidence::Likely);
    }
}

#[test]
fn a_limit_that_is_not_reached_holds_nobody() {
    for (file, said) in [
        ("io.max", "8:0 riops=200"),
        ("io.max", "8:0 wiops=100"),
        ("blkio.throttle.read_iops_device", "8:0 0"),
        ("blkio.throttle.read_bps_device", "8:0 1048576"),
    ] {
        let context = format!("{QUEUE}{WHO}cgroup.batch.{file}={said}\n");
        let report = one_by_one().report(&context);
        assert!(found(&report, "cgroup-limit").is_none(), "{file}={said}");
    }
    // The process itself submits: no bio was held.
    let mut t = Trace::default();
    for k in 0..300 {
        let us = k * 10_000;
        t.read(BATCH, k * 77_777 % 999_999, [us, us, us + 200]);
    }
    let context = format!("{QUEUE}{WHO}cgroup.batch.io.max=8:0 riops=100\n");
    assert!(found(&t.report(&context), "cgroup-limit").is_none());
}
