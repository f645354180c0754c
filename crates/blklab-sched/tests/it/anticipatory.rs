// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of the anticipatory scheduler, for its variants, and what each
//! release does differently.
//!
//! Unless said: 2.6.28, HZ 1000, depth 1 plus the request that the driver
//! looks at in advance, every insertion calls the driver.

use crate::rig::{Rig, Setup, check as check_events};
use crate::timetable::{Arrival, Table, arrivals, check, series};
use blklab_block::sq::{Fetch, Limits, Queue};
use blklab_engine::Stream;
use blklab_types::{Bio, TaskId};

type Tunables = &'static [(&'static str, i64)];

fn setup(kernel: &'static str, tunables: Tunables) -> Setup {
    Setup {
        kernel,
        sched: "anticipatory",
        hz: 1000,
        tunables,
        ..Setup::default()
    }
}

fn table(text: &str) -> Table {
    Table {
        setup: setup("2.6.28", &[]),
        peek: true,
        issues: true,
        arrivals: arrivals(text),
        ..Table::default()
    }
}

fn expect(text: &str, expected: &str) {
    check(&table(text).run(), expected);
}

fn est_time(r: &Rig) -> String {
    let files = r.queue.elevator().shows();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].0, "est_time");
    files[0].1.clone()
}

/// The four numbers of `est_time`: exit, exit without cooperation, think
/// time, seek distance.
fn estimates(r: &Rig) -> [u64; 4] {
    let text = est_time(r);
    let numbers = text
        .lines()
        .map(|l| l.split(' ').next().and_then(|n| n.parse().ok()));
    let numbers: Vec<u64> = numbers.map(|n| n.expect("a number")).collect();
    numbers.try_into().expect("four lines")
}

const A1: &str = "0 A r1 1000; 1 W w1 900000w; 1 W w2 900008w; 7 A r2 1008; 14 A r3 1016";

#[test]
fn a1_worked_example() {
    expect(A1, "r1@0 r2@7 r3@14 w1@25 w2@25");
}

/// The count of the first async batch can be seen when the writes of it are
/// counted: twice 12, because the first sync completion doubles it.
#[test]
fn a1_the_first_completion_doubles_the_write_count() {
    for (hz, count) in [(1000, 24), (250, 6), (100, 4)] {
        let mut t = table("0 A r1 1000; 7 A r2 1008");
        t.setup.hz = hz;
        t.setup.tunables = &[("antic_expire", 0)];
        t.service = |name| if name.starts_with('w') { 1 } else { 5 };
        t.arrivals.extend(series(6, "W", "w", 40, 900_000, 8, "w"));
        let order = t.run();
        let r2 = order.iter().position(|d| d.starts_with("r2@"));
        assert_eq!(r2, Some(1 + count), "HZ {hz}: {order:?}");
    }
}

#[test]
fn a2_long_thinker() {
    let text = "0 A r1 1000; 1 W w1 900000w; 20 A r2 1008; 21 W w2 900008w";
    let mut seen = Vec::new();
    let (_, order) = table(text).run_with(|tick, rig| {
        if tick == 19 || tick == 20 {
            seen.push(estimates(rig));
        }
    });
    check(&order, "r1@0 w1@11 r2@20 w2@25");
    // 32/256 and 28/256; the seek distance of r2 is 0.
    assert_eq!(seen, [[12, 0, 0, 0], [10, 0, 1, 0]]);
}

/// r2 comes at r1's completion, r3 one tick after r2's.
fn a3(hz: u32) -> Vec<String> {
    let mut t = table("0 A r1 1000; 1 W w1 900000w; 1 W w2 900008w");
    t.setup.hz = hz;
    t.service = |_| 2;
    t.next = |name, tick| match name {
        "r1" => Some(Arrival::new(&format!("{tick} A r2 1008"))),
        "r2" => Some(Arrival::new(&format!("{} A r3 1016", tick + 1))),
        _ => None,
    };
    t.run()
}

#[test]
fn a3_the_first_samples_count_as_long_at_hz_250() {
    check(&a3(250), "r1@0 r2@2 w1@4 w2@4 r3@8");
}

#[test]
fn a3_at_hz_1000_it_waits() {
    check(&a3(1000), "r1@0 r2@2 r3@5 w1@13 w2@13");
}

#[test]
fn a4_close_request_of_another_process() {
    let from = |a: u64, x: u64| format!("0 A a1 {a}; 7 B b1 {x}");
    expect(&from(1000, 9200), "a1@0 b1@7");
    expect(&from(1000, 9201), "a1@0 b1@11");
    expect(&from(5088, 1000), "a1@0 b1@7");
    expect(&from(5088, 999), "a1@0 b1@11");
}

#[test]
fn a4_a_close_request_counts_as_one_of_the_process() {
    let (rig, _) = table("0 A a1 1000; 7 B b1 9200").run_with(|_, _| {});
    assert_eq!(estimates(&rig), [0, 0, 0, 8192 / 8], "seek distance 8192");
    // A's next think time, 7, is its second sample then, and the mean 6: not
    // above the limit, so A is waited for. As the first it would be 11.
    let again = "0 A a1 1000; 7 B b1 9200; 12 A a2 9208; 14 W w1 900000w";
    expect(again, "a1@0 b1@7 a2@12 w1@23");
    let alone = "0 A a1 1000; 12 A a2 9208; 14 W w1 900000w";
    expect(alone, "a1@0 a2@12 w1@17");
}

#[test]
fn a5_what_is_close_widens() {
    let b0 = "0 A a1 1000; 6 B b0 50000000; 7 C c1";
    let near = 1008 + 32_768;
    expect(&format!("{b0} {near}"), "a1@0 c1@7 b0@18");
    expect(&format!("{b0} {}", near + 1), "a1@0 c1@11 b0@22");
}

#[test]
fn a6_own_async_write() {
    expect("0 A a1 1000; 6 A w1 900000w", "a1@0 w1@6");
    let text = "0 A a1 1000; 6 W w0 700000w; 7 A w1 900000w";
    expect(text, "a1@0 w0@7 w1@7");
}

fn a7(kernel: &'static str) -> Vec<String> {
    let mut t = table("0 W W1 5000w; 0 W W2 5008w");
    t.setup = setup(kernel, &[("antic_expire", 0), ("read_batch_expire", 10)]);
    t.arrivals.extend(series(0, "A", "R", 6, 0, 8, ""));
    t.run()
}

#[test]
fn a7_batch_change() {
    let expected = "R1@0 R2@0 R3@5 R4@10 R5@15 W1@25 W2@25 R6@35";
    for kernel in ["2.6.26", "2.6.28", "2.6.32"] {
        check(&a7(kernel), expected);
    }
}

#[test]
fn a7_the_old_bug() {
    for kernel in ["2.6.18", "2.6.24", "2.6.25"] {
        check(&a7(kernel), "R1@0 R2@0 R3@5 R4@10 R5@15 R6@25 W1@30 W2@30");
    }
}

/// Seven processes read once and end; a write waits behind each.
#[test]
fn a8_exit() {
    let mut text = String::new();
    for i in 0..7 {
        let (at, sector) = (100 * i, 10_000_000 * (i + 1));
        let write = at + if i < 6 { 1 } else { 6 };
        text += &format!("{at} P{i} r{i} {sector}; {} P{i} exit -;", at + 5);
        text += &format!("{write} W w{i} {}w;", sector + 5_000_000);
    }
    let mut seen = Vec::new();
    let (_, order) = table(&text).run_with(|tick, rig| {
        if tick % 100 == 20 && tick < 600 {
            let [exit, exit_no_coop, ..] = estimates(rig);
            assert_eq!(exit, exit_no_coop, "both rise in step");
            seen.push(exit);
        }
    });
    let values = [32, 60, 84, 105, 123, 139].map(|v| 100 * v / 256);
    assert_eq!(seen, values);
    check(
        &order,
        "r0@0 w0@11 r1@100 w1@111 r2@200 w2@211 r3@300 w3@311 r4@400 w4@411 \
         r5@500 w5@511 r6@600 w6@606",
    );
}

#[test]
fn a8_the_sixth_is_still_waited_for() {
    let mut text = String::new();
    for i in 0..6 {
        let (at, sector) = (100 * i, 10_000_000 * (i + 1));
        let write = at + if i < 5 { 1 } else { 6 };
        text += &format!("{at} P{i} r{i} {sector}; {} P{i} exit -;", at + 5);
        text += &format!("{write} W w{i} {}w;", sector + 5_000_000);
    }
    let order = table(&text).run();
    assert_eq!(order.last().map(String::as_str), Some("w5@511"));
}

/// A rig whose device holds a read of `blocker`, so that all else waits.
fn blocked(setup: Setup) -> (Rig, TaskId) {
    let mut r = Setup {
        limits: |l| {
            l.queue_depth = 1;
            l.unplug_thresh = 1000;
            l.fetch = Fetch::CheckThenPeek;
        },
        ..setup
    }
    .rig();
    let blocker = r.task();
    r.submit(blocker, "R 900000+8");
    r.enter(Queue::unplug);
    r.events();
    (r, blocker)
}

/// R waits at 100 and Q at 500; `last_merge` is Q or R. What happens to a bio
/// that ends where R starts?
fn front_merge(kernel: &'static str, op: &str, last_is_q: bool) -> &'static str {
    let (mut r, _) = blocked(setup(kernel, &[]));
    let t = r.task();
    r.submit(t, &format!("{op} 100+8"));
    r.submit(t, &format!("{op} 500+4"));
    if last_is_q {
        r.submit(t, &format!("{op} 504+4"));
    }
    r.events();
    r.submit(t, &format!("{op} 92+8"));
    if r.events().contains(&"F 92+8".to_owned()) {
        "front"
    } else {
        "new"
    }
}

#[test]
fn a9_front_merge_quirk() {
    for kernel in ["2.6.18", "2.6.24", "2.6.28", "2.6.32"] {
        assert_eq!(front_merge(kernel, "R", true), "new", "{kernel}");
        assert_eq!(front_merge(kernel, "WS", true), "front", "{kernel}");
        assert_eq!(front_merge(kernel, "W", true), "new", "{kernel}");
        for op in ["R", "WS", "W"] {
            assert_eq!(front_merge(kernel, op, false), "front", "{kernel} {op}");
        }
    }
}

/// The choice itself is tested beside `better`; here in the order of service.
#[test]
fn a10_better() {
    let ahead = "0 A a1 9992; 1 A a2 10100; 2 A a3";
    expect(&format!("{ahead} 9960"), "a1@0 a2@1 a3@5");
    // Without the look in advance both wait when a1 is done.
    let later = |a: u64, b: u64, first: u64| {
        let mut t = table(&format!("0 A a1 {first}; 1 A a2 {a}; 2 A a3 {b}"));
        t.peek = false;
        t.run()
    };
    check(&later(10_100, 9960, 9992), "a1@0 a3@5 a2@10");
    check(&later(10_100, 9950, 9992), "a1@0 a2@5 a3@10");
    check(&later(10_100, 9900, 9992), "a1@0 a2@5 a3@10");
    check(&later(20_000, 9000, 9992), "a1@0 a3@5 a2@10");
    check(&later(900_000, 2_000_001, 1_999_992), "a1@0 a3@5 a2@10");
    check(&later(900_000, 5, 1_999_992), "a1@0 a3@5 a2@10");
}

#[test]
fn a11_two_reads_of_one_process() {
    let text = "0 A a1 1000; 1 A a2 500000; 1 W w1 900000w";
    expect(text, "a1@0 a2@1 w1@11");
}

// What differs between releases.

#[test]
fn async_batches_begin_at_the_oldest_from_2_6_24() {
    let writes = "6 W w1 5000w; 6 W w2 100w; 6 W w3 200w";
    for (kernel, expected) in [
        ("2.6.16", "a1@0 w2@6 w3@6 w1@11"),
        ("2.6.23", "a1@0 w2@6 w3@6 w1@11"),
        ("2.6.24", "a1@0 w1@6 w3@6 w2@11"),
        ("2.6.32", "a1@0 w1@6 w3@6 w2@11"),
    ] {
        let mut t = table(&format!("0 A a1 9000; {writes}"));
        t.setup = setup(kernel, &[("antic_expire", 0)]);
        check(&t.run(), expected);
        // If the device has to drain first, the batch is there when it is
        // asked again, and goes on at the next request everywhere.
        let mut t = table(&format!("0 A a1 9000; {}", writes.replace('6', "1")));
        t.setup = setup(kernel, &[("antic_expire", 0)]);
        check(&t.run(), "a1@0 w2@5 w3@5 w1@10");
    }
}

/// At HZ 250 one jiffy is 4 ms: after two, 8 is more than the 5 jiffies of
/// `antic_expire`, and everything is close.
#[test]
fn closeness_is_measured_in_ms_up_to_2_6_21() {
    for (kernel, expected) in [("2.6.21", "a1@0 b1@7"), ("2.6.22", "a1@0 b1@10")] {
        let mut t = table("0 A a1 1000; 6 W w1 900000w; 7 B b1 5000000");
        t.setup = Setup {
            hz: 250,
            ..setup(kernel, &[("antic_expire", 20)])
        };
        let order = t.run();
        check(&order[..2], expected);
    }
}

/// Sync writes of the eras: by the task up to 2.6.17, then by the flag.
#[test]
fn what_makes_a_write_sync() {
    for (kernel, flagged, by_task) in [
        ("2.6.16", "w1@11", "w1@6"),
        ("2.6.17", "w1@11", "w1@6"),
        ("2.6.18", "w1@6", "w1@11"),
        ("2.6.32", "w1@6", "w1@11"),
    ] {
        let run = |letter: &str, process: &str| {
            let mut t = table(&format!("0 A a1 1000; 6 {process} w1 1016{letter}"));
            t.setup.kernel = kernel;
            t.processes = |name, ioc| ioc.sync_writes = name == "S";
            t.run()
        };
        check(&run("s", "B"), &format!("a1@0 {flagged}"));
        check(&run("w", "S"), &format!("a1@0 {by_task}"));
    }
}

/// The completion that a batch change waited for sends the last request and
/// asks for kblockd; before that runs, another request plugs the empty queue.
#[test]
fn kblockd_leaves_the_plug_alone_up_to_2_6_18() {
    for (kernel, removed) in [("2.6.18", false), ("2.6.19", true), ("2.6.31", true)] {
        let mut r = Setup {
            limits: |l| l.queue_depth = 2,
            ..setup(kernel, &[("antic_expire", 0)])
        }
        .rig();
        let (a, w) = (r.task(), r.task());
        r.submit(a, "R 1000+8");
        r.enter(Queue::unplug);
        r.submit(w, "W 5000+8");
        r.enter(Queue::unplug);
        r.until_jiffy(5);
        r.events();
        r.complete_first();
        check_events(&mut r, "C 1000+8, D 5000+8");
        r.submit(w, "W 9000+8");
        check_events(&mut r, "Q 9000+8, G 9000+8, P, I 9000+8");
        r.settle();
        let expected: &[&str] = if removed { &["9000+8"] } else { &[] };
        assert_eq!(r.only("D"), expected, "{kernel}");
        r.until_jiffy(8);
        let late: &[&str] = if removed { &[] } else { &["9000+8"] };
        assert_eq!(r.only("D"), late, "{kernel}: by the plug's timer");
    }
}

#[test]
fn request_merges_swap_owners_up_to_2_6_18() {
    // B's older request is absorbed by A's: the survivor is B's up to 2.6.18
    // and A's later. So after its completion B or A is waited for, and the
    // other's far read comes at once only if it is of that process.
    for (kernel, same) in [("2.6.18", true), ("2.6.19", false)] {
        let (mut r, _) = blocked(setup(kernel, &[]));
        let (a, b, w) = (r.task(), r.task(), r.task());
        r.submit(b, "R 108+8");
        r.until_jiffy(1);
        r.submit(a, "R 92+8");
        r.submit(a, "R 100+8");
        r.submit(w, "W 5000000+8");
        r.until_jiffy(8);
        r.events();
        r.complete_first();
        // The blocker's process is waited for until its time is over.
        r.until_jiffy(20);
        check_events(&mut r, "C 900000+8, D 92+24");
        r.complete_first();
        r.events();
        r.submit(b, "R 70000000+8");
        r.enter(Queue::unplug);
        r.settle();
        assert_eq!(!r.only("D").is_empty(), same, "{kernel}");
    }
}

// Other behaviour.

#[test]
fn the_older_of_two_at_one_sector_goes_out_and_ends_the_wait() {
    let mut t = table("0 A a1 1000; 6 W w1 900000w; 7 W w2 900000+16w");
    t.peek = false;
    let order = t.run();
    // Both start at one sector, so both carry the newer name.
    check(&order, "a1@0 w2@7 w2@12");
}

#[test]
fn a_timer_that_runs_is_cancelled_when_the_wait_ends() {
    let (mut r, a) = blocked(setup("2.6.28", &[]));
    let w = r.task();
    r.submit(w, "W 1000+8");
    r.until_jiffy(5);
    r.complete_first();
    let timers = |r: &Rig| r.agenda.timers.next_time();
    assert_eq!(timers(&r).0, 11_000_000, "antic_timer");
    r.submit(a, "R 900008+8");
    r.settle();
    assert_eq!(timers(&r), blklab_types::Time::MAX);
    assert_eq!(r.at_device.len(), 1);
}

#[test]
fn a_barrier_forces_everything_out_sync_first() {
    let (mut r, a) = blocked(setup("2.6.24", &[]));
    let w = r.task();
    for text in ["W 3000+8", "W 1000+8"] {
        r.submit(w, text);
    }
    r.submit(a, "R 500000+8");
    r.submit(a, "R 100+8");
    r.until_jiffy(5);
    r.submit(w, "WB 7000000+8");
    r.events();
    let mut order = Vec::new();
    while !r.queue.is_idle() {
        r.complete_first();
        r.settle();
        order.extend(r.only("D"));
    }
    let data: Vec<&str> = order
        .iter()
        .map(String::as_str)
        .filter(|d| !d.ends_with("+0"))
        .collect();
    assert_eq!(
        data,
        ["100+8", "500000+8", "1000+8", "3000+8", "7000000+8"],
        "each direction in sector order, sync before async"
    );
}

#[test]
fn a_barrier_ends_a_wait() {
    let (mut r, _) = blocked(setup("2.6.24", &[]));
    let w = r.task();
    r.submit(w, "W 1000+8");
    r.until_jiffy(5);
    r.complete_first();
    assert!(r.at_device.is_empty(), "the wait");
    r.submit(w, "WB 7000+8");
    r.settle();
    assert_eq!(r.only("D"), ["1000+8"]);
    while !r.queue.is_idle() {
        r.complete_first();
        r.settle();
    }
    assert_eq!(r.agenda.timers.next_time(), blklab_types::Time::MAX);
}

/// A front merge that pushes out the only other request makes the scheduler
/// forget its next one. It goes all the same, by drain and by age.
#[test]
fn a_request_that_next_has_lost_still_goes() {
    for forced in [false, true] {
        let (mut r, _) = blocked(setup("2.6.24", &[]));
        let t = r.task();
        // Sync writes at 100 and 600. A bio joins the second in front, and
        // both start at 100: the first goes out, and while it does the
        // second is in no tree.
        r.submit(t, "WS 100+8");
        r.submit(t, "WS 600+8");
        r.events();
        r.submit(t, "WS 100+500");
        check_events(&mut r, "Q 100+500, F 100+500");
        if forced {
            r.submit(t, "WB 7000000+8");
        }
        for _ in 0..100 {
            if r.queue.is_idle() {
                break;
            }
            if r.at_device.is_empty() {
                let now = r.agenda.now();
                r.until(now + blklab_types::Span::from_ms(10));
            } else {
                r.complete_first();
            }
            r.settle();
        }
        assert!(r.queue.is_idle(), "forced: {forced}");
    }
}

#[test]
fn the_process_waited_for_gets_a_request_from_a_full_pool() {
    let mut r = Setup {
        limits: |l| {
            l.queue_depth = 1;
            l.unplug_thresh = 1000;
            l.nr_requests = 4;
        },
        ..setup("2.6.28", &[("antic_expire", 1000)])
    }
    .rig();
    let (a, b, c) = (r.task(), r.task(), r.task());
    r.submit(a, "R 900000+8");
    r.enter(Queue::unplug);
    r.until_jiffy(5);
    r.complete_first();
    for i in 1..=4 {
        assert!(r.submit(b, &format!("R {}+8", 10_000_000 * i)));
    }
    r.enter(Queue::unplug);
    assert!(r.at_device.is_empty(), "A is waited for");
    assert!(!r.submit(c, "R 90000000+8"), "the pool is full");
    assert!(r.submit(a, "R 900008+8"), "but not for A");
    r.settle();
    assert_eq!(r.only("D")[1..], ["900008+8", "40000000+8"][..1]);
}

#[test]
fn a_refused_request_counts_as_dispatched_again() {
    let mut r = Setup {
        limits: |l| l.queue_depth = 1,
        ..setup("2.6.28", &[])
    }
    .rig();
    let (a, w) = (r.task(), r.task());
    r.submit(a, "R 1000+8");
    r.enter(Queue::unplug);
    let rq = r.at_device.remove(0);
    r.enter(|q, cx| q.requeue(cx, rq));
    // A's request is on the dispatch list: it is shown first, then A is
    // waited for as usual.
    r.submit(w, "W 5000+8");
    r.enter(Queue::run_work);
    assert_eq!(r.only("D"), ["1000+8", "1000+8"]);
    r.until_jiffy(5);
    r.complete_first();
    assert!(r.at_device.is_empty());
    r.until_jiffy(11);
    assert_eq!(r.only("D"), ["5000+8"]);
    r.complete_first();
    assert!(r.queue.is_idle());
}

/// With `antic_expire` 0 nothing waits for anybody.
#[test]
fn antic_expire_0_switches_waiting_off() {
    let mut t = table(A1);
    t.setup.tunables = &[("antic_expire", 0)];
    check(&t.run(), "r1@0 w1@5 w2@5 r2@15 r3@15");
}

/// The oldest read goes first when it is due for a look and has expired.
#[test]
fn an_expired_read_ends_waiting_for_others() {
    // B's read lies far away; A keeps the disk busy with reads of its own.
    let run = |tunables| {
        let mut t = table("0 A a1 1000; 1 B b1 50000000");
        t.setup.tunables = tunables;
        t.next = |name, tick| {
            let n: u64 = name.strip_prefix('a')?.parse().ok()?;
            (n < 60).then(|| {
                let line = format!("{} A a{} {}", tick + 1, n + 1, 1000 + 8 * n);
                Arrival::new(&line)
            })
        };
        let order = t.run();
        order.iter().position(|d| d.starts_with("b1")).expect("b1")
    };
    // One of A's every 6 ticks. b1 expires after tick 126. It is looked at
    // in tick 126, just too early, and again in 252.
    assert_eq!(run(&[]), 42);
    // Expires after 11, looked at in 12.
    assert_eq!(run(&[("read_expire", 10)]), 2);
    assert_eq!(run(&[("read_expire", i32::MAX as i64)]), 60);
}

#[test]
fn defaults_follow_the_tick_rate() {
    // The wait after a completion at tick 5: antic_expire is 6, 1 and 1.
    for (hz, expected) in [(1000, "a1@0 w1@11"), (250, "a1@0 w1@6"), (100, "a1@0 w1@6")] {
        let mut t = table("0 A a1 1000; 1 W w1 900000w");
        t.setup.hz = hz;
        check(&t.run(), expected);
    }
    // What is written is rounded up to ticks: 5 ms are 2 jiffies of 4 ms.
    let mut t = table("0 A a1 1000; 1 W w1 900000w");
    t.setup = Setup {
        hz: 250,
        ..setup("2.6.28", &[("antic_expire", 5)])
    };
    check(&t.run(), "a1@0 w1@7");
}

#[test]
fn a_process_may_end_while_its_requests_wait() {
    let text = "0 A a1 1000; 1 A a2 500000; 1 A exit -; 1 B b1 90000000; 12 B exit -";
    expect(text, "a1@0 a2@1 b1@11");
}

#[test]
fn est_time_before_anything_happened() {
    let r = setup("2.6.16", &[]).rig();
    assert_eq!(
        est_time(&r),
        "0 % exit probability\n\
         0 % probability of exiting without a cooperating process submitting IO\n\
         0 ms new thinktime\n\
         0 sectors new seek distance\n"
    );
    let r = Setup::default().rig();
    assert!(r.queue.elevator().shows().is_empty(), "deadline has none");
}

/// Random reads and writes of four processes until all is done.
fn survives(kernel: &'static str, tunables: Tunables, hz: u32) {
    let limits = |l: &mut Limits| {
        l.queue_depth = 3;
        l.nr_requests = 16;
    };
    let mut r = Setup {
        hz,
        limits,
        ..setup(kernel, tunables)
    }
    .rig();
    let mut s = Stream::named(7, kernel);
    let tasks: Vec<TaskId> = (0..4).map(|_| r.task()).collect();
    let mut submitted = 0;
    for _ in 0..300 {
        if r.queue.pool_counts().iter().all(|&c| c < 12) {
            let letters = ["R", "W", "WS"][s.below(3) as usize];
            let task = tasks[s.below(4) as usize];
            let at = s.below(1 << 20) * 8;
            let bio = crate::rig::bio(task, &format!("{letters} {at}+8"));
            assert!(r.submit_bio(Bio { ..bio }));
            submitted += 1;
        }
        if !r.at_device.is_empty() && s.below(2) == 0 {
            r.complete_first();
        }
        if s.below(50) == 0 {
            let task = tasks[s.below(4) as usize];
            r.enter_as(task, |q, cx| q.exit_task(cx, task));
        }
        let now = r.agenda.now();
        r.until(now + blklab_types::Span(s.below(4_000_000)));
    }
    // A process that writes now and then ends every wait of its own, and a
    // wait of 24 days has to end by its timer.
    for _ in 0..2000 {
        if r.queue.is_idle() {
            break;
        }
        if let Some(next) = (r.at_device.is_empty()).then(|| r.agenda.timers.next_time()) {
            if next == blklab_types::Time::MAX {
                r.enter(Queue::unplug);
            } else {
                r.until(next);
            }
        } else {
            r.complete_first();
        }
        r.settle();
    }
    assert_eq!(r.done.len(), submitted, "{kernel} {tunables:?}");
}

#[test]
fn tunables_at_their_extremes() {
    const MAX: i64 = u32::MAX as i64;
    let extremes: [Tunables; 8] = [
        &[("antic_expire", 0)],
        &[("antic_expire", MAX)],
        &[("read_expire", 0), ("write_expire", 0)],
        &[("read_expire", MAX), ("write_expire", MAX)],
        &[("read_batch_expire", 0), ("write_batch_expire", 0)],
        &[("read_batch_expire", MAX), ("write_batch_expire", MAX)],
        &[
            ("antic_expire", MAX),
            ("read_expire", MAX),
            ("write_expire", 0),
            ("read_batch_expire", MAX),
            ("write_batch_expire", 0),
        ],
        &[("antic_expire", -5), ("write_batch_expire", -1)],
    ];
    for kernel in ["2.6.16", "2.6.18", "2.6.21", "2.6.24", "2.6.28", "2.6.32"] {
        for tunables in extremes {
            for hz in [100, 250, 1000] {
                survives(kernel, tunables, hz);
            }
        }
    }
}
