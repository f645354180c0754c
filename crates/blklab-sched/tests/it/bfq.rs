// SPDX-License-Identifier: MIT OR Apache-2.0
//! BFQ: the vectors of its specification, B1 to B26, and what they leave out.

use crate::arrival::ioprio;
use crate::mq_rig::MqSetup;
use crate::mq_table::{
    Arrival, ClosedLoop, MqTable, arrivals, check, generated, read_sync_async, series,
};
use blklab_block::IoContext;
use blklab_types::{Bio, Span, Time};

/// Releases that do the same in all vectors.
const KERNELS: &[&str] = &["6.1", "6.12", "6.18"];
/// The same, and the old rules.
const ALL_KERNELS: &[&str] = &["5.0", "5.10", "5.12", "5.13", "5.17", "6.1", "6.12", "6.18"];
/// Before I/O intensity went by time.
const OLD: &[&str] = &["5.0", "5.10", "5.11"];

type Tunables = &'static [(&'static str, i64)];

/// One vector.
struct Vector {
    rotational: bool,
    slots: u32,
    service: &'static str,
    tunables: Tunables,
    patches: &'static [&'static str],
    arrivals: Vec<Arrival>,
    loops: Vec<ClosedLoop>,
    processes: fn(&str, &mut IoContext),
}

impl Vector {
    fn with(mut self, tunables: Tunables) -> Vector {
        self.tunables = tunables;
        self
    }

    fn check(&self, expected: &str) {
        self.check_on(KERNELS, expected);
    }

    /// Vectors that no change touches.
    fn check_always(&self, expected: &str) {
        self.check_on(ALL_KERNELS, expected);
    }

    fn check_on(&self, kernels: &[&'static str], expected: &str) {
        for kernel in kernels {
            println!("{kernel}");
            check(&self.run(kernel), expected);
        }
    }

    fn run(&self, kernel: &'static str) -> Vec<String> {
        let arrivals = self.arrivals.clone();
        let mut table = MqTable::new(kernel, "bfq", self.slots, self.service, arrivals);
        table.setup.limits.queue.rotational = self.rotational;
        table.setup.limits.nr_requests = Some(2048);
        table.setup.patches = self.patches.to_vec();
        table.loops.clone_from(&self.loops);
        table.processes = self.processes;
        table.with(self.tunables).run()
    }
}

/// On a device that seeks, of `slots` commands, `service` ms each.
fn disk(slots: u32, service: &'static str, arrivals: Vec<Arrival>) -> Vector {
    Vector {
        rotational: true,
        slots,
        service,
        tunables: &[],
        patches: &[],
        arrivals,
        loops: Vec::new(),
        processes: |_, _| {},
    }
}

/// On one that does not.
fn flash(slots: u32, service: &'static str, arrivals: Vec<Arrival>) -> Vector {
    Vector {
        rotational: false,
        ..disk(slots, service, arrivals)
    }
}

const CALM: Tunables = &[("low_latency", 0)];

#[test]
fn b1_order_in_a_queue() {
    let a = arrivals("0 P1 a 300; 0 P1 b 100; 0 P1 c 200");
    disk(1, "10", a).check_always("b@0 c@10 a@20");
}

#[test]
fn b2_nearest_both_ways() {
    let a = arrivals("0 P1 p 992; 1 P1 a 900; 2 P1 b 1150; 3 P1 c 960");
    disk(1, "10", a)
        .with(CALM)
        .check_always("p@0 c@10 a@20 b@30");
}

#[test]
fn b3_age() {
    let mut a = arrivals("0 P1 x 1000; 1 P1 old 40000000");
    a.extend(arrivals(
        "2 P1 s1 1100; 2 P1 s2 1200; 2 P1 s3 1300; 2 P1 s4 1400; 2 P1 s5 1500",
    ));
    let expected = "x@0 s1@10 s2@20 s3@30 s4@40 s5@50 old@60";
    disk(1, "10", a).with(CALM).check_always(expected);
}

#[test]
fn b4_budgets() {
    let mut a = series("0", "P1", "A", 14, (100_000, 1024), "+1024");
    a.extend(series("0", "P2", "B", 14, (90_000_000, 1024), "+1024"));
    let expected = "A0@0..A9@18 B0@20..B9@38 A10@40..A13@46 B10@56..B13@62";
    disk(1, "2", a).with(CALM).check_always(expected);
}

#[test]
fn b5_not_eligible() {
    let mut a = series("0", "P1", "A", 16, (100_000, 1024), "+1024");
    a.extend(series("0", "P2", "B", 6, (90_000_000, 1024), "+1024"));
    let mut v = disk(1, "2", a).with(&[("low_latency", 0), ("max_budget", 2048)]);
    v.processes = |name, ioc| ioc.ioprio = ioprio(if name == "P1" { "be0" } else { "be7" });
    v.check_always("A0@0..A9@18 B0@20..B5@30 A10@40..A15@50");
}

#[test]
fn b6_better_class_preempts() {
    let a = "0 P1 A0 100000+64; 0 P1 A1 100064+64; 0 P1 A2 100128+64; 15 RT R0 5000";
    let expected = "A0@0 A1@10 R0@20 A2@38";
    disk(1, "10", arrivals(a)).with(CALM).check_always(expected);
}

#[test]
fn b7_async_costs_three_times() {
    let mut a = series("0", "P1", "W", 12, (100_000, 1024), "+1024w");
    a.extend(series("0", "P2", "R", 12, (90_000_000, 1024), "+1024"));
    let expected = "W0@0..W2@4 R0@6..R9@24 W3@26..W7@34 R10@36 R11@38 W8@48..W11@54";
    disk(1, "2", a).with(CALM).check_always(expected);
}

fn thinker(think_ms: u64, count: u64) -> Vec<ClosedLoop> {
    vec![ClosedLoop {
        process: "P1",
        prefix: "T",
        sector: 100_000,
        count,
        think: Span::from_ms(think_ms),
    }]
}

#[test]
fn b8_idling_for_a_thinker() {
    let mut v = disk(1, "10", arrivals("1 P2 B0 9000000; 1 P2 B1 9000008")).with(CALM);
    v.loops = thinker(3, 4);
    v.check("T0@0 T1@13 B0@23 B1@33 T2@51 T3@64");
    // A new process counts as I/O-bound until it leaves a slot unused.
    v.check_on(OLD, "T0@0 T1@13 T2@26 T3@39 B0@57 B1@67");
}

#[test]
fn b9_back_in_time() {
    let mut v = disk(1, "10", arrivals("1 P2 B0 9000000; 1 P2 B1 9000008")).with(CALM);
    v.loops = thinker(12, 3);
    v.check_always("T0@0 B0@18 T1@28 B1@38 T2@50");
}

#[test]
fn b10_end_of_raising_by_service() {
    let mut a = series("0", "P1", "A", 140, (100_000, 1024), "+1024");
    a.extend(arrivals("261 P2 B0 90000000; 261 P2 B1 90000100"));
    disk(1, "2", a).check_always("A0@0..A130@260 B0@262 B1@264 A131@286..A139@302");
}

#[test]
fn b11_burst() {
    let a: Vec<Arrival> = (1..=9)
        .map(|k| Arrival::new(&format!("{k} P{k} P{k} {}", 1_000_000 * k)))
        .collect();
    let v = disk(1, "20", a);
    v.check("P1@1..P7@121 P8@149 P9@177");
    // P2 does not preempt P1, which is idled for.
    v.check_on(OLD, "P1@1 P2@41..P7@141 P8@169 P9@197");
}

#[test]
fn b12_stable_merge() {
    let a = arrivals("0 P1 a 1000; 0 P1 b 3000; 0.5 P2 c 2000; 0.6 P2 d 500");
    let v = flash(1, "1", a);
    v.check("a@0 c@1 b@2 d@3");
    v.check_on(OLD, "a@0 b@1 c@2 d@3");
}

#[test]
fn b13_idle_class() {
    let a = "0 IDLE I0 5000; 0 IDLE I1 5008; 5 P1 A0 100000+64; 5 P1 A1 100064+64";
    let expected = "I0@0 A0@10 A1@20 I1@38";
    disk(1, "10", arrivals(a)).with(CALM).check_always(expected);
}

#[test]
fn b14_injection() {
    let a = series("0", "P2", "B", 16, (90_000_000, 8), "");
    let mut v = disk(1, "2", a).with(CALM);
    v.loops = thinker(6, 8);
    v.processes = |name, ioc| {
        if name == "P1" {
            ioc.ioprio = ioprio("be0");
        }
    };
    v.check(
        "T0@0 T1@8 T2@16 B0@18 B1@20 B2@22 T3@24 B3@26 B4@28 B5@30 T4@32 B6@34 B7@36 B8@38 \
         T5@40 B9@42 B10@44 B11@46 T6@48 B12@50 B13@52 B14@54 T7@56 B15@58",
    );
}

/// P1, which seeks and has a higher weight, has 25 reads at 0, and is waited for when they
/// are done; P2 has some at 1.
fn beside_one_that_seeks(patches: &'static [&'static str], others: Vec<Arrival>) -> Vector {
    let mut a = series("0", "P1", "A", 25, (100_000, 2000), "");
    a.extend(others);
    Vector {
        patches,
        processes: |name, ioc| ioc.ioprio = ioprio(if name == "P1" { "be0" } else { "be4" }),
        ..flash(8, "1", a).with(CALM)
    }
}

#[test]
fn before_5_2_injection_goes_by_service() {
    // As soon as P1 has nothing left to dispatch.
    let small = || series("1", "P2", "B", 3, (90_000_000, 2000), "");
    let at_once = "A0@0..A7@0 A8@1..A24@17 B0@18 B1@19 B2@20";
    beside_one_that_seeks(&[], small()).check_on(&["5.0", "5.1"], at_once);
    // P1 got 200 sectors: up to 2000 of others, and the request that goes beyond.
    let large = || series("1", "P2", "B", 4, (90_000_000, 1024), "+1024");
    let two = "A0@0..A7@0 A8@1..A24@17 B0@18 B1@19 B2@33 B3@33";
    beside_one_that_seeks(&[], large()).check_on(&["5.0", "5.1"], two);
    // From 5.2 on as many as service times tell, of which nothing is known yet. Without
    // injection nothing: P1 is done at 25, and waited for until 33.
    let waits = "A0@0..A7@0 A8@1..A24@17 B0@33 B1@33 B2@33";
    beside_one_that_seeks(&[], small()).check_on(&["5.2", "5.10"], waits);
    beside_one_that_seeks(&["bfq_no_inject"], small()).check_on(ALL_KERNELS, waits);
}

#[test]
fn without_injection_wakers_wait_too() {
    // As B14, where P2's reads go out while P1 thinks.
    let a = series("0", "P2", "B", 16, (90_000_000, 8), "");
    let mut v = disk(1, "2", a).with(CALM);
    v.loops = thinker(6, 8);
    v.patches = &["bfq_no_inject"];
    v.processes = |name, ioc| {
        if name == "P1" {
            ioc.ioprio = ioprio("be0");
        }
    };
    v.check("T0@0 T1@8 T2@16 T3@24 T4@32 T5@40 T6@48 T7@56 B0@66..B15@96");
}

#[test]
fn before_5_12_wakers_are_not_injected() {
    // P1 thinks for 13 ms and gets its requests as P2's end. While T5 is at the device, which takes
    // two, and nothing else of P1 waits, B7 stays behind: 5.10 looks for a request of P1.
    let b = series("0", "P2", "B", 8, (90_000_000, 8), "");
    let mut v = disk(2, "2", b).with(CALM);
    let looped = |process, prefix, sector, think_us| ClosedLoop {
        process,
        prefix,
        sector,
        count: 12,
        think: Span::from_us(think_us),
    };
    v.loops = vec![
        looped("P1", "T", 100_000, 13_000),
        looped("P3", "U", 50_000_000, 13_000),
        looped("P4", "V", 50_001_000, 4500),
    ];
    v.processes = |name, ioc| {
        if name == "P1" {
            ioc.ioprio = ioprio("be0");
        }
    };
    v.check_on(
        &["5.2", "5.10"],
        "T0@0 B0@10 B1@10 B2@12 B3@14 T1@16 U0@28 V0@28 T2@33 B4@35 V1@36.5 U1@43 V2@43.5 T3@48 \
         B5@50 V3@51.5 U2@58 V4@58.5 T4@63 B6@65 V5@66.5 U3@73 V6@73.5 T5@78 B7@80 V7@81.5 U4@88 \
         V8@88.5 T6@93 V9@96.5 V10@103 U5@103 T7@108 V11@109.5 U6@120 T8@123 U7@135 T9@138 \
         U8@150 T10@153 U9@165 T11@168 U10@180 U11@195",
    );
}

#[test]
fn before_5_2_the_lowest_weight_is_idled_for() {
    // As B5, on flash: P2, of weight 10, has nothing left at 32, beside P1 of weight 80.
    let mut a = series("0", "P1", "A", 16, (100_000, 1024), "+1024");
    a.extend(series("0", "P2", "B", 6, (90_000_000, 1024), "+1024"));
    let mut v = flash(1, "2", a).with(&[("low_latency", 0), ("max_budget", 2048)]);
    v.processes = |name, ioc| ioc.ioprio = ioprio(if name == "P1" { "be0" } else { "be7" });
    v.check_on(&["5.0", "5.1"], "A0@0..A9@18 B0@20..B5@30 A10@40..A15@50");
    v.check_on(&["5.2", "5.10"], "A0@0..A9@18 B0@20..B5@30 A10@32..A15@42");
}

#[test]
fn b15_cooperators() {
    let a = "0 P1 a0 1000; 0 P2 b0 500000; 1 P1 a1 1016; 2 P2 b1 1008; 3 P2 b2 1024; 4 P1 a2 1032";
    let expected = "a0@0 b1@5 a1@10 b2@15 a2@20 b0@33";
    disk(1, "5", arrivals(a)).with(CALM).check_always(expected);
}

#[test]
fn b16_next_request_is_kept() {
    let a = "0 P1 a 1000; 300 P2 b0 2000; 300 P2 b1 900; 300 P1 c0 1500; 300 P1 c1 1200";
    let expected = "a@0 c1@300 c0@300 b1@300 b0@300";
    flash(4, "1", arrivals(a)).with(CALM).check_always(expected);
}

#[test]
fn b17_low_latency_off() {
    let a = generated(1, 60, (8, 3, 8), read_sync_async);
    let v = disk(1, "7.3", a).with(&[("low_latency", 0)]);
    v.check(
        "0@6 1@21.3 6@28.6 4@35.9 8@43.2 10@50.5 13@57.8 5@65.1 15@72.4 9@79.7 12@87 14@94.3 \
         19@101.6 28@108.9 31@116.2 35@123.5 7@130.8 38@138.1 2@145.4 3@152.7 39@160 47@167.3 \
         24@174.6 50@181.9 52@189.2 54@196.5 56@203.8 18@211.1 21@218.4 22@225.7 25@233 \
         27@240.3 30@247.6 33@254.9 37@262.2 40@269.5 41@276.8 49@284.1 26@291.4 17@298.7 \
         20@306 23@313.3 29@320.6 32@327.9 42@335.2 48@342.5 53@349.8 59@357.1 43@364.4 \
         44@371.7 45@379 36@386.3 46@393.6 55@400.9 11@408.2 16@415.5 34@422.8 51@430.1 \
         57@437.4 58@444.7",
    );
}

#[test]
fn b18_low_latency() {
    let a = generated(2, 60, (8, 3, 8), read_sync_async);
    let v = disk(1, "7.3", a);
    v.check(
        "0@4 1@11.3 2@18.6 4@25.9 11@47 12@54.3 15@65 6@72.3 7@79.6 13@86.9 20@94.2 10@101.5 \
         24@108.8 26@116.1 25@123.4 17@130.7 33@138 29@145.3 38@152.6 41@159.9 42@167.2 \
         48@175 50@182.3 52@189.6 47@196.9 56@204.2 58@211.5 59@218.8 54@246.1 3@253.4 \
         55@260.7 30@268 34@275.3 36@282.6 37@289.9 40@297.2 44@304.5 46@311.8 49@319.1 \
         51@326.4 8@333.7 14@341 16@348.3 22@355.6 23@362.9 35@375.6 18@382.9 19@390.2 \
         27@397.5 28@404.8 31@412.1 32@419.4 39@426.7 43@434 45@441.3 53@448.6 57@455.9 \
         5@463.2 9@470.5 21@483.2",
    );
}

#[test]
fn b19_four_slots() {
    let a = generated(3, 60, (6, 4, 8), read_sync_async);
    let v = disk(4, "5.1", a);
    v.check(
        "0@5 1@8 2@12 3@14 4@16 5@17 6@20.3 7@25.4 9@30.5 11@35.6 24@50 25@53 27@56 28@60 \
         30@62 31@66.2 39@83 47@107 49@112 50@114 52@124 53@129.1 56@134 57@139 55@144.4 \
         58@149.5 44@154.6 40@159.7 59@164.4 18@164.4 29@164.4 35@164.8 26@169.9 37@175 \
         43@180.1 45@185.2 46@190.3 48@195.4 51@200.5 21@205.6 20@240.9 8@240.9 10@240.9 \
         13@240.9 15@246 17@251.1 19@256.2 34@261.3 36@266.4 38@271.5 22@276.6 23@281.7 \
         32@286.8 33@291.9 12@332.3 14@332.3 54@362.5 16@362.5 41@362.5 42@362.5",
    );
}

#[test]
fn b20_flash() {
    let a = generated(4, 60, (3, 3, 8), read_sync_async);
    let v = flash(4, "1.9", a).with(&[("low_latency", 0)]);
    v.check(
        "0@2 1@4 2@4 3@4 4@6 5@8 6@8 7@10 8@11.6 10@13.5 12@15.4 14@17.3 9@19.2 18@21.1 16@23 \
         11@24.9 13@26.8 15@28.7 19@30.6 21@32.5 22@34.4 25@36.3 28@38.2 31@40.1 32@42 \
         34@43.9 35@45.8 39@47.7 41@49.6 42@51.5 44@53.4 29@55.3 36@57.2 37@59.1 40@61 \
         47@62.9 20@64.8 26@66.7 43@68.6 23@70.5 24@72.4 27@74.3 30@76.2 33@78.1 53@80 \
         55@81.9 58@83.8 59@85.7 49@87.6 51@89.5 52@91.4 56@93.3 57@95.2 50@97.1 46@99 \
         48@100.9 54@102.8 17@104.7 38@106.6 45@108.5",
    );
}

#[test]
fn b21_flash_with_low_latency() {
    let a = generated(5, 80, (3, 3, 8), read_sync_async);
    let v = flash(8, "1.9", a);
    v.check(
        "0@1 1@3 2@5 3@7 4@9 5@10 6@12 7@14 8@16 9@17 10@18 11@19 13@23 14@24 16@26 12@26 \
         15@26 18@28 19@29 20@30 21@31 24@33 25@34 26@34 27@35 28@37 30@40 31@41 32@43 33@44 \
         34@46 17@47 22@48.9 29@50.8 23@52.7 39@54.6 40@56.5 36@58.4 35@60.3 43@62.2 45@64.1 \
         50@66 52@67.9 37@69.8 41@71.7 51@73.6 59@75.5 65@77.4 66@79.3 67@81.2 38@83.1 49@85 \
         75@86.9 77@88.8 78@90.7 58@92.6 61@94.5 76@96.4 71@98.3 72@100.2 64@102.1 68@104 \
         69@105.9 70@107.8 74@109.7 44@111.6 46@113.5 47@115.4 48@117.3 53@119.2 55@121.1 \
         60@123 62@124.9 56@126.8 79@128.7 73@130.6 54@165.8 57@165.8 42@165.8 63@165.8",
    );
}

#[test]
fn b22_levels() {
    let a = generated(6, 60, (8, 3, 8), read_sync_async);
    let mut v = disk(1, "7.3", a).with(&[("low_latency", 0)]);
    v.processes = |name, ioc| {
        ioc.ioprio = ioprio(match name {
            "P1" => "be4",
            "P2" => "be0",
            "P3" => "be7",
            other => panic!("no process {other}"),
        });
    };
    v.check(
        "0@6 2@17 3@32.3 5@39.6 7@46.9 9@54.2 11@61.5 12@68.8 13@76.1 8@83.4 26@90.7 10@98 \
         14@105.3 16@112.6 21@119.9 22@127.2 25@134.5 30@141.8 42@149.1 47@156.4 41@163.7 \
         50@171 52@178.3 49@185.6 32@192.9 55@200.2 34@207.5 35@214.8 15@222.1 20@229.4 \
         37@236.7 40@244 17@251.3 57@258.6 1@265.9 4@273.2 23@280.5 46@287.8 6@295.1 24@302.4 \
         45@309.7 48@317 29@324.3 39@331.6 44@338.9 58@354.2 56@369.5 18@376.8 54@384.1 \
         59@391.4 33@398.7 36@406 27@413.3 19@420.6 38@427.9 43@435.2 51@442.5 53@449.8 \
         28@457.1 31@464.4",
    );
}

#[test]
fn b23_classes() {
    let a = generated(7, 60, (8, 3, 8), read_sync_async);
    let mut v = disk(1, "4.1", a).with(&[("low_latency", 0)]);
    v.processes = |name, ioc| {
        ioc.ioprio = ioprio(match name {
            "P1" => "idle7",
            "P2" => "be4",
            "P3" => "rt4",
            other => panic!("no process {other}"),
        });
    };
    v.check(
        "0@4 2@16.1 4@20.2 3@24.3 5@28.4 6@32.5 7@36.6 1@48.7 11@52.8 13@56.9 14@61 15@65.1 \
         16@69.2 18@73.3 19@77.4 20@81.5 21@85.6 24@93 22@97.1 27@101.2 25@113.3 26@117.4 \
         32@121.5 28@125.6 33@129.7 34@133.8 35@137.9 36@142 41@146.1 43@152 45@161 46@166 \
         48@172 49@176.1 50@180.2 42@188.2 54@192.3 56@202 52@214.1 55@218.2 57@222.3 \
         37@226.4 38@230.5 39@234.6 40@238.7 44@242.8 47@246.9 53@251 58@263.1 8@267.2 \
         9@271.3 10@275.4 59@279.5 12@283.6 17@287.7 23@291.8 29@295.9 30@300 31@304.1 \
         51@308.2",
    );
}

#[test]
fn b24_large_requests() {
    let a = generated(8, 80, (5, 3, 64), read_sync_async);
    let v = disk(1, "4.1", a).with(&[("low_latency", 0)]);
    v.check(
        "0@4 2@8.1 3@12.2 6@16.3 8@20.4 11@24.5 12@28.6 13@32.7 19@36.8 20@40.9 22@45 24@49.1 \
         25@53.2 31@57.3 32@61.4 33@65.5 37@69.6 42@74 44@86.1 45@90.2 46@94.3 47@98.4 \
         54@102.5 23@106.6 30@110.7 34@114.8 35@118.9 38@123 39@127.1 48@131.2 4@135.3 \
         5@139.4 7@143.5 9@147.6 10@151.7 14@155.8 55@159.9 1@164 15@168.1 17@172.2 21@176.3 \
         26@180.4 27@184.5 28@188.6 29@192.7 36@196.8 41@200.9 62@205 67@209.1 52@221.2 \
         61@225.3 18@229.4 76@233.5 49@237.6 69@241.7 73@245.8 74@249.9 75@254 59@258.1 \
         60@262.2 50@266.3 51@270.4 53@274.5 56@278.6 57@282.7 58@286.8 63@290.9 64@295 \
         65@299.1 66@303.2 16@307.3 40@311.4 43@315.5 72@319.6 77@323.7 78@327.8 79@331.9 \
         70@336 71@340.1 68@352.2",
    );
}

#[test]
fn b25_no_idling() {
    let a = generated(9, 60, (5, 3, 64), read_sync_async);
    let v = disk(1, "4.1", a).with(&[("low_latency", 0), ("slice_idle", 0)]);
    v.check(
        "0@2 1@6.1 3@10.2 4@14.3 5@18.4 11@22.5 9@26.6 15@30.7 8@34.8 10@38.9 17@43 2@47.1 \
         24@51.2 27@55.3 29@59.4 26@63.5 36@67.6 38@71.7 33@75.8 40@79.9 37@84 39@88.1 \
         20@92.2 16@96.3 46@100.4 47@104.5 48@108.6 55@112.7 56@116.8 57@120.9 58@125 \
         22@129.1 23@133.2 31@137.3 32@141.4 34@145.5 43@149.6 44@153.7 49@157.8 50@161.9 \
         54@166 28@170.1 13@174.2 21@178.3 25@182.4 30@186.5 35@190.6 45@194.7 53@198.8 \
         59@202.9 18@207 19@211.1 51@215.2 6@219.3 7@223.4 52@227.5 12@231.6 14@235.7 \
         42@239.8 41@243.9",
    );
}

#[test]
fn b26_strict_guarantees() {
    let a = generated(10, 60, (8, 3, 8), read_sync_async);
    let v = disk(2, "6.3", a).with(&[("strict_guarantees", 1)]);
    v.check(
        "0@7 1@13.3 5@26 6@32.3 8@38.6 11@47 14@54 19@66 12@92.3 23@98.6 24@104.9 27@111.2 \
         36@117.5 37@123.8 3@130.1 4@136.4 7@142.7 9@149 10@155.3 39@161.6 48@167.9 35@174.2 \
         50@180.5 52@186.8 57@199 58@205.3 59@211.6 45@217.9 46@224.2 49@230.5 54@236.8 \
         51@243.1 2@249.4 13@255.7 47@262 53@268.3 56@274.6 15@280.9 16@287.2 17@293.5 \
         18@299.8 20@306.1 21@312.4 32@318.7 33@325 34@331.3 38@337.6 41@343.9 22@350.2 \
         25@356.5 26@362.8 29@369.1 31@375.4 42@381.7 55@401.7 28@408 30@414.3 40@420.6 \
         43@426.9 44@433.2",
    );
}

/// What a process got among the first dispatches of two that have all they
/// want, each in a group of its own or, without a weight, in the root.
fn got_in_groups(kernel: &'static str, weights: [Option<u32>; 2], first: usize) -> usize {
    let mut setup = MqSetup::budget(kernel, "bfq", 1);
    setup.tunables.push(("low_latency", 0));
    setup.limits.queue.rotational = true;
    setup.limits.nr_requests = Some(2048);
    let mut rig = setup.rig();
    let tasks = weights.map(|weight| {
        let group = weight.map_or(0, |w| rig.group(0, w));
        let task = rig.task();
        rig.io_context(task).group = group;
        task
    });
    for i in 0..300 {
        for (p, &task) in tasks.iter().enumerate() {
            let bio = Bio {
                sector: 1024 * i + 10_000_000 * p as u64,
                nr_sectors: 1024,
                segments: 1,
                task,
                ..Bio::default()
            };
            rig.insert_bare(0, &bio);
        }
    }
    rig.settle();
    let mut got = 0;
    for k in 1..=first as u64 {
        let rq = rig.at_device[0];
        got += usize::from(rig.core().rqs[rq].task == tasks[0]);
        rig.until(Time(k * 2_000_000));
        rig.complete_first();
        rig.settle();
    }
    got
}

#[test]
fn groups_share_by_weight() {
    for kernel in ALL_KERNELS {
        let within = |weights, share: std::ops::Range<usize>| {
            let got = got_in_groups(kernel, weights, 300);
            assert!(share.contains(&got), "{kernel} {weights:?}: {got} of 300");
        };
        within([Some(100), Some(100)], 134..167);
        within([Some(100), Some(200)], 84..117);
        within([Some(300), Some(100)], 209..242);
        // A queue in the root has weight 40 beside groups.
        within([None, Some(100)], 69..102);
        within([None, None], 134..167);
    }
}

#[test]
fn messages_as_measured() {
    // Case rr1x1-n500q4-bfq on 6.1, its first request: 8 sectors at 505944.
    let mut setup = MqSetup::budget("6.1", "bfq", 1);
    setup.hz = 250;
    let mut rig = setup.rig();
    let task = rig.task();
    rig.io_context(task).pid = 185;
    let bio = Bio {
        sector: 505_944,
        nr_sectors: 8,
        segments: 1,
        task,
        ..Bio::default()
    };
    rig.enter_as(task, 0, |q, cx| q.submit(cx, bio));
    rig.settle();
    let expected = "\
        bfq [bfq_limit_depth] wr_busy 0 sync 1 depth 0
        bfq0A new_ioprio 4 new_weight 40
        bfq185S allocated
        bfq185S get_request (____ptrval____): bfqq (____ptrval____), 2
        bfq185S add_request 1
        bfq185S add to busy
        bfq185S get_entity: (____ptrval____) 3
        bfq185S calc_finish: serv 1024, w 1200
        bfq185S calc_finish: start 0, finish 3579139, delta 3579139
        bfq dispatch requests: 1 busy queues
        bfq185S set_in_service_queue, cur-budget = 1024
        bfq185S select_queue: checking new queue
        bfq185S select_queue: returned this queue
        bfq185S bfqq_served 8 secs
        bfq update_peak_rate: goto reset, samples 0
        bfq reset_rate_computation at end, sample 1/0 tot_sects 8
        bfq185S raising period dur 0/3748 msec, old coeff 30, w 1200(40)";
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(rig.messages(), expected);
}

#[test]
fn an_ended_process_leaves_the_device_to_others() {
    // At 10 P1 is idled for; it ends at 12.
    let a = arrivals("0 P1 a 1000; 1 P2 b 9000000; 12 P1 exit -");
    disk(1, "10", a).with(CALM).check_always("a@0 b@12");
}
