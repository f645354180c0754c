// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads beside writes and collecting, on the small drive of [`tests`](super::tests),
//! against times computed by hand.

use super::gc::{ONE, moves};
use super::tests::{took, toy, toy_spec, us, writes_per_s};
use crate::host::Host;
use blklab_types::{BioFlags, Op, Time};

/// One die; 1.48 units are moved for each unit of random writes.
const ONE_DIE: &str = ",channels=1,state=steady,spare_pct=28,pages_per_block=1000";

/// Times between the ends of three programs of the host, us.
fn gaps(given: &str) -> [u64; 2] {
    let mut host = toy(&format!("{ONE_DIE}{given}"));
    for i in 0..3 {
        host.submit(Op::Write, BioFlags::FUA, i * 1000, 16);
    }
    let ends: Vec<u64> = host.drain().iter().map(|f| f.ended.ns() / 1000).collect();
    [ends[1] - ends[0], ends[2] - ends[1]]
}

#[test]
fn collecting_comes_in_bursts() {
    // A move takes cells 70, out 20, in 20, program 500; a program of the host 520.
    // Owed after each program: 1.48, 2.96 (or 1.96 if one was paid at once).
    assert_eq!(gaps(""), [610 + 520, 610 + 520]);
    assert_eq!(gaps(",gc_burst_bytes=16KiB"), [520, 2 * 610 + 520]);
}

/// Which dies erase after their first, second … fourth program.
fn erases(state: &str) -> Vec<Vec<u64>> {
    let mut host = toy(&format!(",channels=4,pages_per_block=4,state={state}"));
    let mut erases_after = |program: u64, die: u64| {
        // A stream moves nothing. Units and pages, of 16 sectors, go round the dies.
        let sector = 1000 + (program * 4 + die) * 16;
        host.submit(Op::Write, BioFlags::FUA, sector, 16);
        while host.step().expect("goes on").is_empty() {}
        // Stopping an erase takes 200 us.
        let read = took(&mut host, Op::Read, die * 16, 8);
        host.drain();
        read > 200.0
    };
    let of_a_round = |program| (0..4).filter(|die| erases_after(program, *die)).collect();
    (0..4).map(of_a_round).collect()
}

#[test]
fn dies_of_a_written_drive_erase_one_after_another() {
    assert_eq!(erases("full"), [[3], [2], [1], [0]]);
    assert_eq!(erases("fresh"), [[0; 0]; 4], "there is room");
}

/// When a read ends that is handed over at 700 us, while a unit is moved: its cells
/// are read from 523 on, its program runs from 633 to 1133.
fn read_beside_a_move(given: &str) -> f64 {
    let mut host = toy(&format!("{ONE_DIE}{given}"));
    host.one(Op::Write, 1000, 16);
    host.run_until(Time(700_000));
    host.one(Op::Read, 32, 8).ended.ns() as f64 / 1e3
}

#[test]
fn a_move_is_suspended_for_a_read_or_not() {
    // At the die at 706; cells 50, channel 10, link 1.
    assert_eq!(read_beside_a_move(""), 706.0 + 30.0 + 61.0);
    assert_eq!(read_beside_a_move(",gc_suspend=off"), 1133.0 + 61.0);
}

#[test]
fn a_read_waits_for_programs_that_came_before_it() {
    let read = |given: &str| {
        let mut host = toy(&format!(",channels=1,suspend_program=off{given}"));
        host.one(Op::Write, 0, 32);
        host.run_until(Time(100_000));
        host.one(Op::Read, 64, 8).ended.ns() as f64 / 1e3
    };
    // Two programs, from 5 to 525 and to 1045; the read is there at 106.
    assert_eq!(read(""), 525.0 + 61.0);
    assert_eq!(read(",reads_first=off"), 1045.0 + 61.0);
}

#[test]
fn only_so_many_dies_move_at_a_time() {
    // Two dies owe a unit each when both programs are done; the third write waits for both.
    let end = |given: &str| {
        let spec = ",state=steady,spare_pct=28,pages_per_block=1000,gc_burst_bytes=16KiB";
        let mut host = toy(&format!("{spec}{given}"));
        for i in 0..2 {
            host.submit(Op::Write, BioFlags::FUA, i * 1000, 16);
        }
        host.run_until(Time(600_000));
        host.submit(Op::Write, BioFlags::FUA, 2000, 16);
        host.drain().last().expect("one").ended.ns() / 1000
    };
    assert_eq!(end(",gc_dies=1"), end("") + 610);
}

#[test]
fn kinds_of_pages_follow_each_other() {
    let mut host = toy(",read_middle_us=60");
    let reads = [0, 32, 64, 96].map(|sector| took(&mut host, Op::Read, sector, 8));
    assert_eq!(reads, [67.0, 77.0, 87.0, 67.0]);
}

#[test]
fn scattered_slots_are_read_from_dies_of_their_own() {
    // One page of 8 KiB: 1 + 7 + 50 + 20 + 2. Two slots on two dies: 10 each, beside each
    // other, and 1 on the link, one after the other.
    let read = |given: &str| took(&mut toy(given), Op::Read, 0, 16);
    assert_eq!(read(",read_slow_us=50"), 80.0);
    assert_eq!(read(",read_slow_us=50,layout=scattered"), 70.0);
}

#[test]
fn large_reads_take_more_of_the_cells_and_share_a_path() {
    let given = ",read_large_us=5,read_large_mb_per_s=81.92";
    assert_eq!(took(&mut toy(given), Op::Read, 0, 8), 67.0, "4 KiB do not");
    // 1 + 7 + 55 + 20, then 8 KiB at 81.92 MB/s beside the link.
    assert_eq!(took(&mut toy(given), Op::Read, 0, 16), 83.0 + 100.0);
}

#[test]
fn a_drive_works_on_so_many_reads_at_a_time() {
    let mut host = toy(",read_slots=1");
    for sector in [0, 16] {
        host.submit(Op::Read, BioFlags::NONE, sector, 8);
    }
    let took: Vec<f64> = host.drain().iter().map(us).collect();
    assert_eq!(took, [67.0, 134.0]);
}

#[test]
fn writes_that_replace_data_have_a_controller_time_of_their_own() {
    let write = |given: &str| took(&mut toy(given), Op::Write, 0, 8);
    assert_eq!(write(",state=full,write_command_us=10"), 10.0 + 1.0 + 3.0);
    assert_eq!(write(",write_command_us=10"), 5.0, "a fresh drive has none");
}

#[test]
fn pages_are_programmed_together() {
    // Two pages of 8 KiB: link 4, channel 40, program 500.
    let mut host = toy(",pages_per_program=2");
    host.submit(Op::Write, BioFlags::FUA, 0, 32);
    assert_eq!(us(&host.drain()[0]), 1.0 + 4.0 + 40.0 + 500.0 + 3.0);
}

#[test]
fn units_of_a_stripe_are_programmed_together() {
    // A unit of 8 KiB is in the buffer at 1 + 2 us; its program takes 20 + 500.
    let stripe = ",channels=4,stripe_dies=2";
    let read_of_die_0 = |given: &str, units: u64| {
        let mut host = toy(&format!("{given},suspend_program=off"));
        for unit in 0..units {
            host.submit(Op::Write, BioFlags::NONE, 1000 + unit * 16, 16);
        }
        host.run_until(Time(100_000));
        host.one(Op::Read, 0, 8).ended.ns() as f64 / 1e3
    };
    assert_eq!(read_of_die_0(",channels=4", 1), 523.0 + 61.0);
    assert_eq!(
        read_of_die_0(stripe, 1),
        100.0 + 67.0,
        "it waits for another"
    );
    // The second is there at 5.
    assert_eq!(read_of_die_0(stripe, 2), 525.0 + 61.0);
}

#[test]
fn a_flush_does_not_wait_for_a_stripe() {
    let flush = |given: &str| {
        let mut host = toy(given);
        host.one(Op::Write, 0, 16);
        host.one(Op::Write, 1000, 8);
        took(&mut host, Op::Flush, 0, 0)
    };
    // The flush comes at 11. The unit that has been programmed since 3 ends at 523, the half
    // one, which begins now, at 522; firmware 20.
    assert_eq!(flush(",channels=4"), 532.0);
    // Both begin now: controller 1, into the registers 20, program 500.
    assert_eq!(flush(",channels=4,stripe_dies=2"), 541.0);
}

#[test]
fn a_buffer_holds_two_stripes() {
    let build = |given: &str| {
        let (info, params) = crate::parse_spec(&toy_spec(given)).expect("a device");
        crate::build(info.name, &params, 64, &|_| unreachable!()).map(|_| ())
    };
    // Stripes of 32 KiB, where there are four dies.
    for dies in ["stripe_dies=4", "stripe_dies=100"] {
        let with = |bytes: &str| build(&format!(",channels=4,{dies},buffer_bytes={bytes}"));
        assert!(with("64KiB").is_ok(), "{dies}");
        let error = with("60KiB").expect_err("too small").to_string();
        assert!(
            error.contains("at least 65536 bytes: two stripes"),
            "{error}"
        );
    }
}

#[test]
fn what_is_not_filled_is_spare() {
    // 128 % of flash for half of the capacity: 156 % spare.
    let spec = toy_spec(",state=used,filled_pct=50,spare_pct=28");
    let m = moves(1.56) as f64 / ONE as f64;
    let unit_us = 520.0 + m * 610.0 + (1.0 + m) * 500.0;
    let rate = writes_per_s(&spec, false);
    let ratio = rate / (4e6 / unit_us);
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    // `steady` is another word for `full`.
    let [steady, full] = ["steady", "full"].map(|state| {
        let mut host = Host::build(&toy_spec(&format!(",state={state},pages_per_block=1")), 64);
        host.one(Op::Write, 0, 64);
        host.one(Op::Flush, 0, 0).ended
    });
    assert_eq!(steady, full);
}

/// A drive with room for one unit of 8 KiB with one bit per cell.
const SLC: &str = ",channels=1,slc_bytes=8KiB,slc_program_us=100,fold_idle_ms=5";

/// When three FUA writes of a unit each are done, us.
fn three_writes(given: &str) -> Vec<u64> {
    let mut host = toy(&format!("{SLC}{given}"));
    for i in 0..3 {
        host.submit(Op::Write, BioFlags::FUA, i * 1000, 16);
    }
    let ends = host.drain();
    ends.iter().map(|f| f.ended.ns() / 1000).collect()
}

#[test]
fn a_cache_takes_what_has_room() {
    // Controller 1, link 2, channel 20, cells 100 or 500, firmware 3.
    assert_eq!(three_writes(""), [126, 646, 1166], "the rest goes past it");
    // Then each unit waits for a fold: cells 70, out 20, in 20, program 500.
    let fold = three_writes(",slc_when_full=fold");
    assert_eq!(fold, [126, 126 + 610 + 120, 126 + 2 * (610 + 120)]);
    // The fold of what was there, then of what the first write left.
    let full = three_writes(",slc_when_full=fold,slc_state=full");
    assert_eq!(full[0], 1 + 2 + 610 + 120 + 3);
}

#[test]
fn a_drive_folds_when_it_is_idle() {
    let mut host = toy(SLC);
    host.submit(Op::Write, BioFlags::FUA, 0, 16);
    host.drain();
    assert_eq!(
        host.now,
        Time(3_000 + 5_000_000 + 610_000),
        "5 ms after the write"
    );
    // There is room again: 126 us, not 526.
    host.submit(Op::Write, BioFlags::FUA, 1000, 16);
    assert_eq!(us(&host.drain()[0]), 126.0);
}
