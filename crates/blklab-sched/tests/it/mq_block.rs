// SPDX-License-Identifier: MIT OR Apache-2.0
//! The multi-queue block layer: the vectors of its specification, V1 to V17.
//! V5, V9, V13 and V14 are beside the code.

use crate::mq_bench::Bench;
use crate::mq_rig::{MqRig, MqSetup};
use crate::mq_table::shown_ms;
use blklab_block::Request;
use blklab_block::Submit;
use blklab_block::mq::Refusal;
use blklab_types::{Bio, BioFlags, Op, Span, Time};

const KERNELS: &[&str] = &["5.10", "6.1", "6.12", "6.18"];

fn ten_ms(_: &Request) -> Span {
    Span::from_ms(10)
}

fn budget(kernel: &'static str, sched: &'static str, slots: u32) -> Bench {
    Bench::new(MqSetup::budget(kernel, sched, slots), ten_ms)
}

fn tags(kernel: &'static str, sched: &'static str, tags: u32) -> Bench {
    Bench::new(MqSetup::tags(kernel, sched, tags), ten_ms)
}

#[test]
fn v1_plug_merge() {
    for kernel in KERNELS {
        let mut b = budget(kernel, "mq-deadline", 1);
        b.plug().submit("R 1000+8, R 1008+8, R 2000+8").unplug();
        b.check(
            "Q 1000+8, G 1000+8, P, Q 1008+8, M 1008+8, Q 2000+8, G 2000+8, U 2, \
             I 1000+16, I 2000+8, D 1000+16",
        );
        b.at("10").check("C 1000+16, D 2000+8");
        b.at("20").check("C 2000+8");
    }
}

#[test]
fn v2_order_of_a_plug_without_a_scheduler() {
    for (kernel, expected) in [
        ("5.10", "U 3, D 1000+8, D 3000+8, D 2000+8"),
        ("6.1", "D 2000+8, D 3000+8, D 1000+8"),
        ("6.12", "U 3, D 1000+8, D 3000+8, D 2000+8"),
        ("6.18", "U 3, D 1000+8, D 3000+8, D 2000+8"),
    ] {
        let mut b = tags(kernel, "none", 64);
        b.plug().submit("R 1000+8, R 3000+8, R 2000+8").events();
        b.unplug().check(expected);

        let mut b = tags(kernel, "none", 64);
        b.plug().submit("R 1000+8, R 3000+8, R 2000+8").events();
        b.sleep().settle();
        b.check("UT 3, I 1000+8, I 3000+8, I 2000+8, D 1000+8, D 3000+8, D 2000+8");
    }
}

#[test]
fn v3_plug_limits() {
    let unplugs = |b: &mut Bench| {
        let mut events = b.events();
        events.retain(|e| e.starts_with('U') || e == "P");
        events.join(", ")
    };
    for (kernel, expected) in [
        ("5.10", "P, U 16, P, U 16, P, U 8"),
        ("6.1", "P, U 32, P, U 8"),
        ("6.12", "P, U 32, P, U 8"),
    ] {
        let mut b = budget(kernel, "mq-deadline", 1);
        b.plug();
        for k in 0..40 {
            b.submits(&format!("R {}+8", k * 1000));
        }
        b.unplug();
        assert_eq!(unplugs(&mut b), expected, "{kernel}");
    }
    for kernel in KERNELS {
        for nomerges in [0, 2] {
            let mut setup = MqSetup::budget(kernel, "mq-deadline", 1);
            setup.limits.queue.nomerges = nomerges;
            let mut b = Bench::with_nomerges(&setup, ten_ms);
            b.plug().submit("R 0+256, R 1000+256, R 2000+8").unplug();
            let expected = if nomerges == 0 || *kernel == "5.10" {
                "P, U 1, P, U 1, P, U 1"
            } else {
                "P, U 3"
            };
            assert_eq!(unplugs(&mut b), expected, "{kernel} {nomerges}");
        }
    }
}

fn split(kernel: &'static str, max_segments: u32) -> Bench {
    let mut setup = MqSetup::budget(kernel, "mq-deadline", 1);
    setup.limits.queue.max_segments = max_segments;
    setup.limits.physical_block_sectors = 8;
    Bench::new(setup, ten_ms)
}

#[test]
fn v4_split() {
    for (kernel, expected) in [
        (
            "6.1",
            "Q 0+3000, X 0+2560/2560, G 0+2560, I 0+2560, G 2560+440, I 2560+440, D 0+2560",
        ),
        (
            "6.12",
            "Q 0+3000, X 0+2560/2560, G 0+2560, P, U 1, I 0+2560, D 0+2560, G 2560+440, P, U 1, \
             I 2560+440",
        ),
    ] {
        let mut b = split(kernel, 1024);
        b.submit("R 0+3000").check(expected);
        b.submit("R 3000+8").check_but_plugs("Q 3000+8, M 3000+8");

        // The front part is large: the rest flushes it out of the plug. The
        // specification has both leave it at the end; so it was measured.
        let mut b = split(kernel, 1024);
        b.plug().submit("R 0+3000").unplug();
        b.check(
            "Q 0+3000, X 0+2560/2560, G 0+2560, P, G 2560+440, U 1, I 0+2560, D 0+2560, P, \
             U 1, I 2560+440",
        );

        let mut b = split(kernel, 128);
        b.submit("R 0+3000");
        b.check_but_plugs(if kernel == "6.1" {
            "Q 0+3000, X 0+1024/1024, G 0+1024, I 0+1024, X 1024+1024/2048, G 1024+1024, \
             I 1024+1024, G 2048+952, I 2048+952, D 0+1024"
        } else {
            "Q 0+3000, X 0+1024/1024, G 0+1024, I 0+1024, D 0+1024, X 1024+1024/2048, \
             G 1024+1024, I 1024+1024, G 2048+952, I 2048+952"
        });
    }
}

#[test]
fn v6_a_refused_merge_is_the_last_attempt() {
    for kernel in KERNELS {
        let mut setup = MqSetup::budget(kernel, "mq-deadline", 1);
        setup.limits.queue.max_sectors = 16;
        let mut b = Bench::new(setup, ten_ms);
        b.submit("R 9000+8, R 100+8").events();
        b.submit("R 108+16")
            .check_but_plugs("Q 108+16, G 108+16, I 108+16");
        b.submit("R 92+8").check_but_plugs("Q 92+8, G 92+8, I 92+8");
    }
}

/// Ten requests in the software queue; kblockd does not run it.
fn software_queue(kernel: &'static str, last: &str) -> Bench {
    let mut b = tags(kernel, "none", 64);
    b.plug();
    for k in 0..9 {
        b.submits(&format!("R {}+8", k * 1000));
    }
    b.submits(last);
    b.sleep().events();
    b.plug();
    b
}

#[test]
fn v7_the_newest_eight_of_a_software_queue() {
    for kernel in KERNELS {
        // A plug of 5.10 that holds requests already does not matter here.
        let mut b = software_queue(kernel, "R 9000+8");
        b.submits("R 8+8");
        b.check("Q 8+8, G 8+8, P");
        let mut b = software_queue(kernel, "R 9000+8");
        b.submits("R 2008+8");
        b.check("Q 2008+8, M 2008+8");
        let mut b = software_queue(kernel, "R 2016+8");
        b.submits("R 2008+8");
        b.check("Q 2008+8, F 2008+8");
    }
}

#[test]
fn v8_one_request_early() {
    let five = |mut b: Bench, expected: &str| {
        b.plug()
            .submit("R 100+8, R 200+8, R 300+8, R 400+8")
            .unplug();
        b.at("5").submit("R 250+8");
        b.drains(expected);
    };
    let early = "100@0 200@0 300@10 400@20 250@30";
    for kernel in KERNELS {
        five(tags(kernel, "mq-deadline", 2), early);
    }
    five(budget("6.1", "mq-deadline", 2), early);
    let late = "100@0 200@0 250@10 300@20 400@30";
    five(budget("6.12", "mq-deadline", 2), late);
    five(budget("6.18", "mq-deadline", 2), late);
}

#[test]
fn v10_a_driver_that_refuses() {
    for (kernel, flush, expected) in [
        (
            "6.1",
            "D 400+8, D 300+8, R 200+8, R 200+8, U 1, I 100+8, R 200+8",
            "400@0 300@0 200@10 100@20",
        ),
        (
            "6.12",
            "U 4, D 100+8, D 200+8, R 300+8, R 300+8, U 1, I 400+8, R 300+8",
            "100@0 200@0 300@10 400@20",
        ),
    ] {
        let mut setup = MqSetup::tags(kernel, "none", 64);
        setup.limits.refuses_above = Some(2);
        let mut b = Bench::new(setup.clone(), ten_ms);
        b.plug()
            .submit("R 100+8, R 200+8, R 300+8, R 400+8")
            .events();
        b.unplug().check(flush);

        let mut b = Bench::new(setup, ten_ms);
        b.plug()
            .submit("R 100+8, R 200+8, R 300+8, R 400+8")
            .unplug();
        b.drains(expected);
    }
}

/// Not of the specification: `mbps` of `null_blk`. A request that the budget does
/// not cover stops the queue, and what comes meanwhile is merged; from 6.7 on the
/// driver is asked first, in vain.
#[test]
fn a_driver_with_a_budget_of_bytes() {
    for (kernel, refusal, held, ticks) in [
        (
            "6.1",
            Refusal::AfterStart,
            "Q 400+8, G 400+8, D 400+8, R 400+8, Q 500+8, G 500+8, I 500+8, Q 508+8, M 508+8",
            ["D 400+8, D 500+16, R 500+16", "D 500+16"],
        ),
        (
            "6.12",
            Refusal::TakesLists,
            "Q 400+8, G 400+8, P, U 1, I 400+8, Q 500+8, G 500+8, P, U 1, I 500+8, \
             Q 508+8, M 508+8",
            ["D 400+8, R 500+16", "D 500+16"],
        ),
    ] {
        let mut setup = MqSetup::tags(kernel, "none", 64);
        setup.limits.bytes_per_tick = Some(3 * 4096 - 1);
        setup.limits.refusal = refusal;
        let mut b = Bench::new(setup, |_| Span::from_ms(1));
        // The first finds the budget untouched, so that the timer gives the second
        // a new one.
        for sector in [100, 200, 300] {
            b.submits(&format!("R {sector}+8"));
        }
        b.events();
        for bio in ["R 400+8", "R 500+8", "R 508+8"] {
            b.submits(bio);
        }
        b.check(held);
        b.at("3").check("C 100+8, C 200+8, C 300+8");
        b.at("20").check(ticks[0]);
        b.at("21").check("C 400+8");
        b.at("40").check(ticks[1]);
        b.at("41").check("C 500+16");
    }
}

#[test]
fn v11_round_robin_over_cpus() {
    for kernel in KERNELS {
        for busy in [false, true] {
            let mut setup = MqSetup::tags(kernel, "none", 64);
            setup.limits.refuses_above = Some(6);
            setup.limits.nr_cpus = 3;
            let mut b = Bench::new(setup, ten_ms);
            if busy {
                for k in 0..7 {
                    b.submit(&format!("R {}+8", 1000 * k));
                }
                b.drains("0@0 1000@0 2000@0 3000@0 4000@0 5000@0 6000@10");
            }
            let lists = [
                (0, "R 100+8, R 200+8"),
                (1, "R 300+8"),
                (2, "R 400+8, R 500+8"),
            ];
            for (cpu, bios) in lists {
                b.task = b.rig.task();
                b.cpu = cpu;
                b.plug().submits(bios);
                b.sleep();
            }
            b.events();
            b.settle().check(if busy {
                "D 100+8, D 300+8, D 400+8, D 200+8, D 500+8"
            } else {
                "D 100+8, D 200+8, D 300+8, D 400+8, D 500+8"
            });
        }
    }
}

/// A device whose cache flushes take 20 ms, data 10 ms.
fn flushes(kernel: &'static str, sched: &'static str, has_flush: bool, has_fua: bool) -> Bench {
    let mut setup = MqSetup::tags(kernel, sched, 64);
    setup.limits.queue.has_flush = has_flush;
    setup.limits.queue.has_fua = has_fua;
    Bench::new(setup, |rq| {
        Span::from_ms(if rq.nr_sectors == 0 { 20 } else { 10 })
    })
}

#[test]
fn v12_flushes() {
    // C of a flush and of data, in order; bios are told apart by their ends.
    let issues = |b: &mut Bench, expected: &str| b.drains(expected);
    for kernel in KERNELS {
        for sched in ["none", "mq-deadline", "kyber"] {
            let mut b = flushes(kernel, sched, true, false);
            b.submit("WFA 1000+8").at("5").submit("WF 0+0");
            issues(&mut b, "0@0 1000@20 0@30");
            let mut b = flushes(kernel, sched, true, true);
            b.submit("WFA 1000+8").at("5").submit("WF 0+0");
            issues(&mut b, "0@0 1000@20 0@30");
            let mut b = flushes(kernel, sched, false, false);
            b.submit("WFA 1000+8").at("5").submit("WF 0+0");
            issues(&mut b, "1000@0");

            let mut b = flushes(kernel, sched, true, true);
            b.submit("WA 1000+8");
            let inserted = b.events().iter().any(|e| e.starts_with('I'));
            let ordinary = ["6.12", "6.18"].contains(kernel);
            assert_eq!(inserted, ordinary && sched != "none", "{kernel} {sched}");
        }
    }
}

#[test]
fn v12_ends_of_bios() {
    let ends = |has_flush, has_fua| {
        let mut b = flushes("6.1", "mq-deadline", has_flush, has_fua);
        let mut ends = Vec::new();
        b.submit("WFA 1000+8").at("5").submit("WF 0+0");
        for at in 5..=60 {
            b.at(&at.to_string());
            ends.extend(std::iter::repeat_n(
                at,
                std::mem::take(&mut b.rig.done).len(),
            ));
        }
        ends
    };
    assert_eq!(ends(true, false), [50, 50]);
    assert_eq!(ends(true, true), [30, 50]);
    assert_eq!(ends(false, false), [5, 10]);
}

/// Twelve writes of one task at a device that takes 1 ms for each: when each
/// gets its request. No read came for 100 ms before.
fn admitted(kernel: &'static str, has_flush: bool, letters: &str) -> String {
    let mut setup = MqSetup::tags(kernel, "mq-deadline", 64);
    setup.limits.queue.nomerges = 2;
    setup.limits.queue.has_flush = has_flush;
    let mut b = Bench::with_nomerges(&setup, |_| Span::from_ms(1));
    let (mut next, mut asleep) = (0, false);
    for at in 200..240 {
        b.at(&at.to_string());
        asleep = asleep && !b.goes_on();
        while !asleep && next < 12 {
            asleep = !b.submits(&format!("{letters} {}+8", 1000 * next));
            next += 1;
        }
        b.settle();
    }
    let granted = b
        .timed_events()
        .into_iter()
        .filter(|(_, e)| e.starts_with('G'));
    let times: Vec<String> = granted
        .map(|(at, _)| shown_ms(Time(at.0 - 200_000_000)))
        .collect();
    times.join(" ")
}

#[test]
fn v15_throttled_writes() {
    for kernel in KERNELS {
        let all = "0 0 0 0 0 0 0 0 0 0 0 0";
        assert_eq!(admitted(kernel, true, "WS"), all);
        assert_eq!(admitted(kernel, true, "W"), "0 0 0 0 0 0 0 0 8 8 8 8");
        assert_eq!(admitted(kernel, false, "W"), "0 0 0 0 0 0 0 0 2 2 4 4");
        let background = "0 0 0 0 1 2 3 4 5 6 7 8";
        assert_eq!(admitted(kernel, false, "Wb"), background);
    }
}

/// Async writes that are granted a request before one has to sleep.
fn granted(mut setup: MqSetup, nr_requests: u32) -> u32 {
    setup.limits.queue_depth = nr_requests / 2;
    granted_after_write(setup, nr_requests)
}

/// The same, of which the scheduler was told when `nr_requests` was written.
fn granted_after_write(mut setup: MqSetup, nr_requests: u32) -> u32 {
    setup.limits.nr_requests = Some(nr_requests);
    granted_as_it_is(setup)
}

/// The same, as the queue is set up.
fn granted_as_it_is(mut setup: MqSetup) -> u32 {
    setup.limits.wbt_lat_us = Some(0);
    let most = setup.limits.nr_requests(true);
    let mut b = Bench::new(setup, ten_ms);
    let mut n = 0;
    while b.submits(&format!("W {}+8", 1000 * n)) {
        n += 1;
        assert!(n <= most, "more than there are");
    }
    n
}

#[test]
fn v16_limited_depths() {
    for kernel in KERNELS {
        let kyber = MqSetup::budget(kernel, "kyber", 1);
        assert_eq!(granted(kyber.clone(), 64), 48, "{kernel}");
        let total = ["6.12", "6.18"].contains(kernel);
        assert_eq!(granted(kyber, 62), if total { 46 } else { 48 }, "{kernel}");
        if *kernel == "5.10" {
            continue;
        }
        let mut deadline = MqSetup::budget(kernel, "mq-deadline", 1);
        for (depth, tags) in [(32, 32), (2, if total { 2 } else { 4 })] {
            deadline.tunables = vec![("async_depth", depth)];
            assert_eq!(granted(deadline.clone(), 64), tags, "{kernel}");
        }
    }
}

/// On a device of depth 1 a scheduler has two requests; then 64 are written. Who
/// looks at the bitmap sees the new number, who asks for the number the old one, up
/// to 6.16. Measured on 6.12: `async_depth` 2 of mq-deadline, 1 of Kyber, depth 1 of
/// BFQ. From 7.0 on the write scales what was there: of Kyber and BFQ 1 of 2, of which BFQ
/// gives async requests 2/3.
#[test]
fn limited_depths_after_a_write_to_nr_requests() {
    for (kernel, sched, tags) in [
        ("5.10", "mq-deadline", 64),
        ("6.1", "mq-deadline", 4),
        ("6.12", "mq-deadline", 2),
        ("6.18", "mq-deadline", 64),
        ("6.1", "kyber", 48),
        ("6.12", "kyber", 1),
        ("6.18", "kyber", 48),
        ("6.1", "bfq", 32),
        ("6.12", "bfq", 1),
        ("6.18", "bfq", 32),
        ("7.0", "mq-deadline", 64),
        ("7.3", "kyber", 32),
        ("7.3", "bfq", 21),
    ] {
        let setup = MqSetup::tags(kernel, sched, 1);
        assert_eq!(granted_after_write(setup, 64), tags, "{kernel} {sched}");
    }
}

/// Measured on 7.3.4 at depth 31: 62 requests, `async_depth` 46 under Kyber and BFQ, which
/// still goes by what the disk had before, 62, or 31 without a scheduler.
#[test]
fn limited_depths_of_a_queue_as_it_is_set_up() {
    for (sched, by_default, tags) in [
        ("mq-deadline", true, 62),
        ("kyber", true, 46),
        ("bfq", true, 41),
        ("bfq", false, 20),
    ] {
        let mut setup = MqSetup::tags("7.3", sched, 31);
        setup.limits.nr_requests = None;
        setup.limits.scheduled_by_default = by_default;
        assert_eq!(granted_as_it_is(setup.clone()), tags, "{sched}");
        // Who writes the number that there is changes nothing (`queue_requests_store`).
        setup.limits.nr_requests = Some(62);
        assert_eq!(granted_as_it_is(setup), tags, "{sched}");
    }
    let mut setup = MqSetup::tags("7.3", "kyber", 31);
    setup.limits.nr_requests = None;
    setup.tunables = vec![("async_depth", 10)];
    assert_eq!(granted_as_it_is(setup), 10);
}

/// From 6.12 to 7.1 a bio outside of a plug has one of its own.
#[test]
fn a_single_bio_is_plugged_in_some_releases() {
    for (kernel, is_plugged) in [
        ("6.11", false),
        ("6.12", true),
        ("7.1", true),
        ("7.2", false),
    ] {
        let mut b = budget(kernel, "mq-deadline", 1);
        let events = b.submit("R 0+8").events();
        let unplugs = events.iter().any(|e| e.starts_with('U'));
        assert_eq!(unplugs, is_plugged, "{kernel}: {events:?}");
    }
}

/// The limit that a request may take of the tags is asked for once, also if its
/// task sleeps for a tag and is woken in vain.
#[test]
fn a_limit_is_asked_for_once_per_request() {
    let mut setup = MqSetup::tags("6.12", "bfq", 1);
    setup.limits.nr_requests = Some(64);
    let mut rig = setup.rig();
    let submits = |rig: &mut MqRig| {
        let task = rig.task();
        let bio = Bio {
            op: Op::Write,
            sector: 1000 * u64::from(task.0),
            nr_sectors: 8,
            segments: 1,
            task,
            ..Bio::default()
        };
        let submitted = rig.submit(0, &bio);
        rig.settle();
        submitted
    };
    assert_eq!([(); 2].map(|()| submits(&mut rig)), [true, false]);
    rig.complete_first();
    assert!(submits(&mut rig), "who runs goes before who was woken");
    let woken = rig.woken.pop().expect("the second task");
    assert!(!rig.resume(woken, 0));
    rig.complete_first();
    let woken = rig.woken.pop().expect("the second task");
    assert!(rig.resume(woken, 0));
    let asked = rig.messages();
    let asked = asked.iter().filter(|m| m.contains("bfq_limit_depth"));
    assert_eq!(asked.count(), 3);
}

#[test]
fn v17_requests_merge() {
    for kernel in KERNELS {
        let mut b = budget(kernel, "mq-deadline", 1);
        b.submit("R 9000+8").submit("R 0+8");
        b.at("1").submit("R 16+8").events();
        b.at("2").submit("R 8+8");
        b.check_but_plugs("Q 8+8, M 8+8, M 16+8");
        b.at("10").check("C 9000+8, D 0+24");
        b.at("20").check("C 0+24");
    }
}

/// Who does not sleep for a request is told so, and nothing of its bio stays: neither
/// where there is no tag, nor where it would have to be split.
#[test]
fn who_does_not_sleep_is_refused() {
    for kernel in ["6.1", "6.12", "6.18"] {
        let mut rig = MqSetup::tags(kernel, "none", 1).rig();
        let task = rig.task();
        let bio = |sector, nr_sectors| Bio {
            sector,
            nr_sectors,
            segments: 1,
            flags: BioFlags::NOWAIT,
            task,
            ..Bio::default()
        };
        let submit = |rig: &mut MqRig, bio: Bio| rig.enter_as(task, 0, |q, cx| q.submit(cx, bio));
        assert_eq!(submit(&mut rig, bio(100, 1 << 15)), Submit::Refused);
        assert_eq!(submit(&mut rig, bio(0, 8)), Submit::Done);
        assert_eq!(submit(&mut rig, bio(1000, 8)), Submit::Refused);
        rig.complete_first();
        assert_eq!(submit(&mut rig, bio(1000, 8)), Submit::Done);
        rig.complete_first();
        rig.settle();
        let events = rig.events();
        let events: Vec<&str> = events.iter().map(|(_, e)| e.as_str()).collect();
        let own: Vec<&str> = events
            .iter()
            .copied()
            .filter(|e| "QGDC".contains(&e[..1]))
            .collect();
        let expected = "Q 100+32768, C 100+32768, Q 0+8, G 0+8, D 0+8, Q 1000+8, C 1000+8, \
                        C 0+8, Q 1000+8, G 1000+8, D 1000+8, C 1000+8";
        assert_eq!(own.join(", "), expected, "{kernel}");
        assert!(rig.woken.is_empty(), "nobody slept");
    }
}

/// A task that has the processor for each of its requests has it before the request goes
/// anywhere, and not for a bio that is merged.
#[test]
fn a_request_goes_on_when_its_task_has_had_the_processor_for_it() {
    let mut setup = MqSetup::tags("6.12", "mq-deadline", 1);
    setup.limits.queue.nomerges = 0;
    let mut rig = setup.rig();
    rig.enter(|q, _| q.pay_for_requests());
    let task = rig.task();
    let bio = |sector| Bio {
        sector,
        nr_sectors: 8,
        segments: 1,
        task,
        ..Bio::default()
    };
    rig.enter_as(task, 0, |q, _| q.start_plug(task));
    let first = rig.enter_as(task, 0, |q, cx| q.submit(cx, bio(0)));
    let Submit::Pays(pending) = first else {
        panic!("{first:?}")
    };
    let q_alone = rig.events();
    assert_eq!(q_alone.len(), 1, "{q_alone:?}");
    let goes_on = rig.enter_as(task, 0, |q, cx| q.resume(cx, pending));
    assert_eq!(goes_on, Submit::Done);
    let merged = rig.enter_as(task, 0, |q, cx| q.submit(cx, bio(8)));
    assert_eq!(merged, Submit::Done);
    rig.enter_as(task, 0, |q, cx| q.finish_plug(cx, task));
    rig.settle();
    rig.complete_first();
    rig.settle();
    let events: Vec<String> = rig.events().into_iter().map(|(_, e)| e).collect();
    assert_eq!(
        events.join(", "),
        "G 0+8, P, Q 8+8, M 8+8, U 1, I 0+16, D 0+16, C 0+16"
    );
}

/// A policy holds up who does not sleep for a request, too; woken, it waits for one.
#[test]
fn who_was_throttled_waits_for_a_request() {
    let mut setup = MqSetup::tags("6.12", "none", 4);
    setup.limits.wbt_lat_us = Some(2000);
    let mut rig = setup.rig();
    let (writer, reader) = (rig.task(), rig.task());
    let write = |n: u64| Bio {
        op: Op::Write,
        sector: 1000 * n,
        nr_sectors: 8,
        segments: 1,
        flags: BioFlags::NOWAIT,
        task: writer,
        ..Bio::default()
    };
    let held = (0..4).find(|n| !rig.submit(0, &write(*n)));
    assert!(held.is_some(), "write-back throttling holds one of them");
    rig.complete_first();
    assert_eq!(rig.woken, [writer]);
    for n in 10..14 {
        let read = Bio {
            op: Op::Read,
            flags: BioFlags::NONE,
            task: reader,
            ..write(n)
        };
        if !rig.submit(0, &read) {
            break;
        }
    }
    assert!(!rig.resume(writer, 0), "there is no tag");
}
