// SPDX-License-Identifier: MIT OR Apache-2.0
//! mq-deadline: the vectors of its specification, D1 to D17, and what they
//! leave out.

use crate::mq_bench::Bench;
use crate::mq_rig::MqSetup;
use crate::mq_table::{Arrival, MqTable, arrivals, check, generated, read_write_class, series};
use blklab_types::Span;

type Tunables = &'static [(&'static str, i64)];

/// Runs on a device of `slots` commands, `service` ms each, on some kernels.
fn run(
    kernels: &[&'static str],
    (slots, service): (u32, &str),
    tunables: Tunables,
    arrived: &[Arrival],
    expected: &str,
) {
    for kernel in kernels {
        let table = MqTable::new(kernel, "mq-deadline", slots, service, arrived.to_vec());
        println!("{kernel}");
        check(&table.with(tunables).run(), expected);
    }
}

/// The position is a request: 5.10 and before, and 6.1 and before 6.5.
const BY_REQUEST: &[&str] = &["5.0", "5.10", "5.14", "5.16", "6.1", "6.4"];
const OLD: &[&str] = &["5.0", "5.10", "5.13"];
const PER_DIRECTION: &[&str] = &["5.14", "5.15", "5.16", "6.1", "6.4"];
const STRICT_BY_REQUEST: &[&str] = &["5.16", "6.1", "6.4"];
/// The position is a sector.
const BY_SECTOR: &[&str] = &["6.5", "6.11", "6.12", "6.18"];
const STRICT: &[&str] = &["5.16", "6.1", "6.5", "6.12", "6.18"];

#[test]
fn d1_restart() {
    let a = arrivals("0 P a 300; 0 P b 100; 0 P c 200");
    run(BY_REQUEST, (1, "10"), &[], &a, "a@0 b@10 c@20");
    run(BY_SECTOR, (1, "10"), &[], &a, "b@0 c@10 a@20");
}

#[test]
fn d2_starvation_of_writes() {
    let mut a = series("0", "P", "r", 6, (1000, 8), "");
    a.extend(series("0", "P", "w", 3, (9000, 8), "w"));
    let t: Tunables = &[("fifo_batch", 1)];
    let expected = "r0@0 r1@10 w0@20 r2@30 r3@40 w1@50 r4@60 r5@70 w2@80";
    run(BY_REQUEST, (1, "10"), t, &a, expected);
    let expected = "w0@0 r0@10 r1@20 w1@30 r2@40 r3@50 w2@60 r4@70 r5@80";
    run(BY_SECTOR, (1, "10"), t, &a, expected);
}

#[test]
fn d3_between_position_and_next() {
    let a = arrivals("0 P a 100; 0 P b 500; 5 P c 300");
    run(BY_REQUEST, (1, "10"), &[], &a, "a@0 b@10 c@20");
    run(BY_SECTOR, (1, "10"), &[], &a, "a@0 c@10 b@20");
}

#[test]
fn d4_expiry_between_batches() {
    let mut a = arrivals("0 P x 1000; 1 P old 10");
    for k in 0..8 {
        a.push(Arrival::new(&format!(
            "{} P s{k} {}",
            2 + 100 * k,
            1100 + 100 * k
        )));
    }
    let t: Tunables = &[("fifo_batch", 2)];
    run(BY_REQUEST, (1, "120"), t, &a, "x@0 old@120 s0@240..s7@1080");
    let expected = "x@0 s0@120..s4@600 old@720 s5@840..s7@1080";
    run(BY_SECTOR, (1, "120"), t, &a, expected);
}

#[test]
fn d5_classes() {
    let a = arrivals(
        "0 BE b1 100; 1 RT r1 5000; 1 BE b2 108; 2 IDLE i1 9000; 12 RT r2 6000; 25 BE b3 300w",
    );
    let expected = "b1@0 r1@10 r2@20 b2@30 b3@40 i1@50";
    run(STRICT, (1, "10"), &[], &a, expected);
}

#[test]
fn d6_a_class_in_flight_blocks_lower_ones() {
    let a = arrivals("0 RT r1 5000; 0 BE b1 100; 0 BE b2 200; 5 BE b3 300");
    run(STRICT, (2, "10"), &[], &a, "r1@0 b1@10 b2@10 b3@20");
    // It does not before 5.16.
    run(
        &["5.14", "5.15"],
        (2, "10"),
        &[],
        &a,
        "r1@0 b1@0 b2@10 b3@20",
    );
}

#[test]
fn d7_ageing() {
    let mut a = arrivals("0 BE b0 1000; 0 IDLE i1 100");
    for k in 1..=27 {
        a.push(Arrival::new(&format!(
            "{} BE b{k} {}",
            400 * k,
            1000 + 1000 * k
        )));
    }
    let expected = "b0@0 b1@450..b22@9900 i1@10350 b23@10800..b27@12600";
    run(STRICT, (1, "450"), &[], &a, expected);
}

#[test]
fn d8_directions_and_positions() {
    let a = arrivals("0 P a 100; 0 P b 900; 0 P c 500; 0 P d 700; 0 P w1 2000w; 0 P w2 2100w");
    let t: Tunables = &[("fifo_batch", 1), ("writes_starved", 1)];
    run(OLD, (1, "10"), t, &a, "a@0 w1@10 b@20 w2@30 c@40 d@50");
    let expected = "a@0 w1@10 c@20 w2@30 d@40 b@50";
    run(PER_DIRECTION, (1, "10"), t, &a, expected);
    let expected = "w1@0 a@10 w2@20 c@30 d@40 b@50";
    run(BY_SECTOR, (1, "10"), t, &a, expected);
}

#[test]
fn d9_batches_of_reads_before_a_write() {
    let mut a = series("0", "P", "r", 12, (1000, 8), "");
    a.extend(arrivals("0 P w 500w"));
    let t: Tunables = &[("fifo_batch", 4)];
    run(
        BY_REQUEST,
        (1, "10"),
        t,
        &a,
        "r0@0..r7@70 w@80 r8@90..r11@120",
    );
    run(BY_SECTOR, (1, "10"), t, &a, "w@0 r0@10..r11@120");
}

#[test]
fn d10_budget() {
    let a = arrivals("0 P a 100; 0 P b 300; 5 P c 200");
    run(BY_SECTOR, (1, "10"), &[], &a, "a@0 c@10 b@20");
    run(BY_REQUEST, (1, "10"), &[], &a, "a@0 b@10 c@20");
    // With tags, b leaves the scheduler at 0.
    for kernel in BY_REQUEST.iter().chain(BY_SECTOR) {
        let mut t = MqTable::new(kernel, "mq-deadline", 1, "10", a.clone());
        t.setup = MqSetup::tags(kernel, "mq-deadline", 1);
        t.setup.limits.queue.nomerges = 2;
        check(&t.run(), "a@0 b@10 c@20");
    }
}

#[test]
fn d11_no_batches() {
    let a = arrivals("0 P a 300; 0 P b 100; 0 P w 10w; 0 P c 200; 0 P w2 20w");
    let t: Tunables = &[("fifo_batch", 0)];
    run(BY_REQUEST, (1, "10"), t, &a, "a@0 b@10 w@20 c@30 w2@40");
    run(BY_SECTOR, (1, "10"), t, &a, "b@0 c@10 w@20 a@30 w2@40");
}

#[test]
fn d12_first_direction() {
    let a = arrivals("0 P r 1000; 0 P w 500w; 0 P r2 1008");
    run(BY_REQUEST, (1, "10"), &[], &a, "r@0 r2@10 w@20");
    run(BY_SECTOR, (1, "10"), &[], &a, "w@0 r@10 r2@20");
}

fn merging(kernel: &'static str) -> Bench {
    let setup = MqSetup::budget(kernel, "mq-deadline", 1);
    Bench::new(setup, |_| Span::from_ms(50))
}

#[test]
fn d13_merges() {
    for kernel in BY_REQUEST.iter().chain(BY_SECTOR) {
        let mut b = merging(kernel);
        b.submit("R 0+8")
            .check_but_plugs("Q 0+8, G 0+8, I 0+8, D 0+8");
        b.at("1").submit("R 100+8");
        b.check_but_plugs("Q 100+8, G 100+8, I 100+8");
        b.at("2")
            .submit("R 108+8")
            .check_but_plugs("Q 108+8, M 108+8");
        b.at("3").submit("R 92+8").check_but_plugs("Q 92+8, F 92+8");
        b.at("4").submit("R 200+8");
        b.check_but_plugs("Q 200+8, G 200+8, I 200+8");
        b.at("5")
            .submit("R 208+8")
            .check_but_plugs("Q 208+8, M 208+8");
        b.at("6").submit("R 116+84");
        b.check_but_plugs("Q 116+84, F 116+84, M 116+100");
        b.at("50").check("C 0+8, D 92+124");
        b.at("100").check("C 92+124");
    }
}

#[test]
fn d14_insertion_merges() {
    let run = |kernel, dispatched: [&str; 2]| {
        let mut b = merging(kernel);
        b.submit("R 0+8").at("1").events();
        b.insert("R 400+8").check("I 400+8");
        b.insert("R 408+8").check("M 408+8");
        b.insert("R 392+8").check("I 392+8");
        b.at("50").check(&format!("C 0+8, D {}", dispatched[0]));
        let (done, next) = (dispatched[0], dispatched[1]);
        b.at("100").check(&format!("C {done}, D {next}"));
    };
    for kernel in BY_REQUEST {
        run(kernel, ["400+16", "392+8"]);
    }
    for kernel in BY_SECTOR {
        run(kernel, ["392+8", "400+16"]);
    }
}

#[test]
fn d15_generated() {
    let a = generated(11, 60, (10, 3, 8), read_write_class);
    let t: Tunables = &[("fifo_batch", 16), ("writes_starved", 2)];
    let by_request = "1@1 0@7 4@13 6@19 7@25 9@31 10@37 12@43 3@49 13@55 14@61 11@67 15@73 16@79 18@85 \
        24@91 5@97 27@103 28@109 29@115 32@121 25@127 33@133 17@139 34@145 19@151 38@157 \
        20@163 36@169 21@175 39@181 40@187 23@193 43@199 47@205 41@211 50@217 46@223 22@229 \
        42@235 30@241 45@247 53@253 51@259 48@265 59@271 57@277 37@283 44@289 52@295 56@301 \
        49@307 54@313 58@319 26@325 55@331 2@337 8@343 31@349 35@355";
    run(STRICT_BY_REQUEST, (1, "6"), t, &a, by_request);
    let by_sector = "1@1 3@7 0@13 4@19 9@25 6@31 7@37 13@43 14@49 11@55 15@61 12@67 18@73 10@79 16@85 \
        24@91 5@97 25@103 17@109 19@115 20@121 21@127 23@133 22@139 30@145 33@151 37@157 \
        41@163 27@169 28@175 29@181 34@187 43@193 47@199 50@205 46@211 32@217 38@223 42@229 \
        36@235 39@241 40@247 45@253 51@259 48@265 57@271 58@277 53@283 59@289 44@295 52@301 \
        56@307 49@313 54@319 35@325 2@331 8@337 31@343 55@349 26@355";
    run(BY_SECTOR, (1, "6"), t, &a, by_sector);
}

#[test]
fn d16_generated() {
    let a = generated(13, 60, (150, 3, 8), read_write_class);
    let t: Tunables = &[("fifo_batch", 16), ("writes_starved", 2)];
    let by_request = "0@90 2@185 3@280 4@375 1@470 6@565 5@660 10@755 11@850 7@945 13@1040 8@1135 9@1230 \
        16@1325 12@1420 14@1515 15@1610 17@1705 24@1800 27@1895 19@1990 22@2085 23@2180 \
        29@2275 25@2370 35@2465 31@2560 33@2655 37@2750 38@2845 39@2940 36@3035 40@3130 \
        44@3225 43@3320 45@3415 46@3510 20@3605 41@3700 49@3795 53@3890 30@3985 32@4080 \
        42@4175 48@4270 59@4365 47@4460 54@4555 28@4650 26@4745 34@4840 50@4935 52@5030 \
        55@5125 56@5220 58@5315 21@5410 18@5505 51@5600 57@5695";
    run(STRICT_BY_REQUEST, (1, "95"), t, &a, by_request);
    let by_sector = "0@90 2@185 3@280 4@375 5@470 8@565 9@660 6@755 12@850 11@945 14@1040 10@1135 15@1230 \
        17@1325 19@1420 1@1515 16@1610 22@1705 24@1800 27@1895 26@1990 23@2085 29@2180 \
        31@2275 25@2370 35@2465 34@2560 33@2655 37@2750 38@2845 39@2940 36@3035 40@3130 \
        44@3225 43@3320 45@3415 46@3510 7@3605 13@3700 21@3795 53@3890 20@3985 41@4080 \
        49@4175 30@4270 59@4365 32@4460 42@4555 48@4650 47@4745 54@4840 28@4935 50@5030 \
        52@5125 55@5220 56@5315 58@5410 18@5505 51@5600 57@5695";
    run(BY_SECTOR, (1, "95"), t, &a, by_sector);
}

#[test]
fn d17_generated() {
    let a = generated(14, 60, (6, 3, 8), read_write_class);
    let t: Tunables = &[("fifo_batch", 3), ("writes_starved", 1)];
    let by_request = "0@0 2@5 4@10 5@15 6@20 7@25 8@30 13@35 3@40 19@45 10@50 12@55 21@60 14@65 18@70 \
        22@75 27@80 28@85 11@90 15@95 29@100 37@105 25@110 39@115 46@120 49@125 54@130 \
        16@135 24@140 31@145 33@150 34@155 35@160 57@165 59@170 43@175 41@180 50@185 52@190 \
        45@195 48@200 38@205 42@210 51@215 53@220 58@225 20@230 26@235 30@240 32@245 40@250 \
        44@255 55@260 56@265 47@270 23@275 1@280 9@285 17@290 36@295";
    run(STRICT_BY_REQUEST, (1, "5"), t, &a, by_request);
    let by_sector = "0@0 2@5 5@10 4@15 3@20 10@25 12@30 6@35 7@40 19@45 14@50 18@55 22@60 21@65 27@70 \
        28@75 8@80 13@85 31@90 33@95 34@100 35@105 43@110 41@115 50@120 46@125 54@130 52@135 \
        45@140 48@145 38@150 42@155 49@160 51@165 53@170 58@175 16@180 24@185 57@190 59@195 \
        23@200 11@205 15@210 29@215 37@220 25@225 44@230 55@235 56@240 47@245 39@250 20@255 \
        26@260 30@265 32@270 40@275 1@280 36@285 17@290 9@295";
    run(BY_SECTOR, (1, "5"), t, &a, by_sector);
}
