// SPDX-License-Identifier: MIT OR Apache-2.0
//! The laws against times computed by hand.

use crate::host::{Finished, Host};
use blklab_types::{BioFlags, Op, Time};

/// (sector, start, end) of finished commands.
fn times(finished: &[Finished]) -> Vec<(u64, u64, u64)> {
    finished
        .iter()
        .map(|f| (f.cmd.sector, f.started.ns(), f.ended.ns()))
        .collect()
}

fn submit_all(host: &mut Host, cmds: &[(Op, u64, u32)]) -> Vec<Finished> {
    let mut finished = Vec::new();
    for &(op, sector, n) in cmds {
        finished.extend(host.submit(op, BioFlags::NONE, sector, n));
    }
    finished.extend(host.drain());
    finished
}

#[test]
fn serial_serves_in_order_without_a_gap() {
    let mut host = Host::build("serial,read_ns=2ms,write_ns=3ms,ns_per_sector=10", 4);
    host.run_until(Time(7));
    let finished = submit_all(
        &mut host,
        &[(Op::Read, 80, 8), (Op::Write, 0, 16), (Op::Read, 8, 1)],
    );
    assert_eq!(
        times(&finished),
        [
            (80, 7, 2_000_087),
            (0, 2_000_087, 5_000_247),
            (8, 5_000_247, 7_000_257)
        ]
    );
}

#[test]
fn parallel_counts_from_hand_over_and_equals_keep_their_order() {
    let mut host = Host::build("parallel,read_ns=100,write_ns=300,ns_per_sector=0", 4);
    host.submit(Op::Write, BioFlags::NONE, 1, 8);
    host.run_until(Time(200));
    let finished = submit_all(
        &mut host,
        &[(Op::Read, 2, 8), (Op::Write, 3, 8), (Op::Read, 4, 8)],
    );
    assert_eq!(
        times(&finished),
        [(1, 0, 300), (2, 200, 300), (4, 200, 300), (3, 200, 500)]
    );
}

#[test]
fn seek_counts_from_the_end_of_the_last_command() {
    let mut host = Host::build(
        "seek,a_ns=3ms,b_ns_per_sqrt_sector=300.0,ns_per_sector=5000",
        4,
    );
    // d = 0; then d = 1000 - 8 = 992: 300 * 31.496.. = 9448.8; then d = 0 again.
    let finished = submit_all(
        &mut host,
        &[(Op::Read, 0, 8), (Op::Read, 1000, 8), (Op::Read, 1008, 2)],
    );
    assert_eq!(
        times(&finished),
        [
            (0, 0, 40_000),
            (1000, 40_000, 3_089_448),
            (1008, 3_089_448, 3_099_448)
        ]
    );
}

#[test]
fn nearest_takes_the_shortest_distance_and_the_earlier_of_equals() {
    let mut host = Host::build(
        "seek,a_ns=1000,b_ns_per_sqrt_sector=0,ns_per_sector=0,order=nearest",
        8,
    );
    // Head at 100 after the first; 90 and 110 are equally near, 90 came first;
    // then the head is at 90 and 85 beats 110.
    let finished = submit_all(
        &mut host,
        &[
            (Op::Read, 100, 0),
            (Op::Read, 500, 0),
            (Op::Read, 90, 0),
            (Op::Read, 110, 0),
            (Op::Read, 85, 0),
        ],
    );
    let order: Vec<u64> = finished.iter().map(|f| f.cmd.sector).collect();
    assert_eq!(order, [100, 90, 85, 110, 500]);
}

#[test]
fn null_blk_takes_one_time_for_all() {
    let mut host = Host::build("null_blk,completion_nsec=500", 4);
    let finished = submit_all(&mut host, &[(Op::Read, 0, 8), (Op::Write, 8, 1024)]);
    assert_eq!(times(&finished), [(0, 0, 500), (8, 0, 500)]);
}

#[test]
fn null_blk_budget_passes_one_half_mebibyte_per_tick_at_50() {
    // 1,048,550 bytes per tick: the second of 524,288 bytes does not fit.
    let mut host = Host::build("null_blk,completion_nsec=500,mbps=50", 4);
    let cmds = [
        (Op::Write, 0, 1024),
        (Op::Write, 1024, 1024),
        (Op::Write, 2048, 1024),
    ];
    let finished = submit_all(&mut host, &cmds);
    assert_eq!(
        times(&finished),
        [
            (0, 0, 500),
            (1024, 20_000_000, 20_000_500),
            (2048, 40_000_000, 40_000_500)
        ]
    );
}

#[test]
fn null_blk_without_timer_ends_during_the_hand_over() {
    let mut host = Host::build("null_blk,irqmode=0,memory_backed=1", 4);
    host.run_until(Time(7));
    let at_once = host.submit(Op::Write, BioFlags::NONE, 8, 1024);
    assert_eq!(times(&at_once), [(8, 7, 7)]);
    assert_eq!(host.next_time(), None);
}

#[test]
fn null_blk_budget_that_is_left_over_is_lost() {
    // 209,710 bytes per tick at 10: 51 writes of 4096 bytes and 814 bytes over. In the
    // second tick 51 fit again, not 51.4.
    let mut host = Host::build("null_blk,completion_nsec=0,mbps=10", 128);
    let cmds: Vec<(Op, u64, u32)> = (0..103).map(|i| (Op::Write, i * 8, 8)).collect();
    let finished = submit_all(&mut host, &cmds);
    let ticks: Vec<u64> = finished.iter().map(|f| f.ended.ns() / 20_000_000).collect();
    let count = |tick| ticks.iter().filter(|t| **t == tick).count();
    assert_eq!([count(0), count(1), count(2)], [51, 51, 1]);
    // What waits uses the rest up: a smaller one that comes after it waits as well.
    let mut host = Host::build("null_blk,completion_nsec=0,mbps=10", 128);
    let finished = submit_all(
        &mut host,
        &[
            (Op::Write, 0, 400),
            (Op::Write, 400, 16),
            (Op::Write, 416, 1),
        ],
    );
    let ends: Vec<u64> = finished.iter().map(|f| f.ended.ns()).collect();
    assert_eq!(ends, [0, 20_000_000, 20_000_000]);
}

#[test]
fn scsi_debug_takes_one_time_for_every_command() {
    let mut host = Host::build("scsi_debug,ndelay=700us", 192);
    host.submit(Op::Read, BioFlags::NONE, 0, 8);
    host.run_until(Time(300));
    let finished = submit_all(&mut host, &[(Op::Write, 8, 1024), (Op::Flush, 0, 0)]);
    assert_eq!(
        times(&finished),
        [(0, 0, 700_000), (8, 300, 700_300), (0, 300, 700_300)]
    );
}

#[test]
fn simdisk_mode_0_serves_one_at_a_time() {
    let mut host = Host::build("simdisk,fixed_ns=1ms,sector_ns=5000", 4);
    let finished = submit_all(&mut host, &[(Op::Read, 80, 8), (Op::Write, 0, 1024)]);
    assert_eq!(
        times(&finished),
        [
            (80, 0, 1_040_000),
            (0, 1_040_000, 1_040_000 + 1_000_000 + 5_120_000)
        ]
    );
}

#[test]
fn a_command_beyond_the_end_fails() {
    let mut host = Host::build("simdisk", 1);
    let end = host.capacity().expect("a disk has an end");
    assert_eq!(host.one(Op::Read, end - 8, 8).error, 0);
    assert_eq!(host.one(Op::Read, end - 7, 8).error, crate::EIO);
    assert_eq!(host.one(Op::Write, u64::MAX, 8).error, crate::EIO);
}

const SIMDISK: &str = "simdisk,mode=1,fixed_ns=100us,sector_ns=8138,spt=1024,ra=512,\
                       seek_min_ns=1ms,seek_var_ns=14ms,scanned=0";

#[test]
fn simdisk_positions_by_seek_and_angle() {
    // Revolution 8,333,312 ns; tracks 8192; seek(1) = 1,000,000 + 14e6 * sqrt(1/8192)
    // = 1,154,678; skew = ceil(1,154,678 / 8138) = 142 sectors.
    let mut host = Host::build(SIMDISK, 31);
    // Sector 2048 is on track 2 at angle 284 sectors = 2,311,192 ns; seek(2) = 1,218,750.
    let first = host.one(Op::Read, 2048, 8);
    assert_eq!(first.ended.ns(), 2_311_192 + 8 * 8138);
    // The next 8 sectors are under the head already: they come from the read-ahead,
    // 100 us later at the earliest, when the medium has passed them.
    let second = host.one(Op::Read, 2056, 8);
    assert_eq!(second.ended.ns(), first.ended.ns() + 100_000);
    // A write there waits for the angle to come round.
    let third = host.one(Op::Write, 2064, 8);
    assert_eq!(third.ended.ns(), 2_311_192 + 24 * 8138 + 8_333_312);
}

#[test]
fn simdisk_read_ahead_crosses_tracks_and_stops() {
    let mut host = Host::build(SIMDISK, 31);
    let first = host.one(Op::Read, 0, 1000);
    // From angle 0 at the first whole revolution after 100 us.
    assert_eq!(first.ended.ns(), 8_333_312 + 1000 * 8138);
    // 100 sectors more, the change of track costs the skew.
    let second = host.one(Op::Read, 1000, 100);
    assert_eq!(second.ended.ns(), first.ended.ns() + (100 + 142) * 8138);
    // Long after, the read-ahead holds 512 sectors and no more.
    host.run_until(Time(1_000_000_000));
    let hit = host.one(Op::Read, 1100, 512);
    assert_eq!(hit.ended.ns() - hit.started.ns(), 100_000);
    let miss = host.one(Op::Read, 1612, 8);
    assert!(miss.ended.ns() - miss.started.ns() > 165_104);
}

#[test]
fn simdisk_has_read_the_begin_of_the_disk_before_time_0() {
    let mut host = Host::build(&SIMDISK.replace("scanned=0", "scanned=8"), 31);
    // The 8 sectors, and the 512 after them that were read ahead.
    for sector in [0, 8, 512] {
        let hit = host.one(Op::Read, sector, 8);
        assert_eq!((hit.ended - hit.started).ns(), 100_000, "{sector}");
    }
    let miss = host.one(Op::Read, 513, 8);
    assert!((miss.ended - miss.started).ns() > 100_000 + 8 * 8138);
}

#[test]
fn simdisk_keeps_no_more_than_its_read_ahead() {
    let mut host = Host::build(SIMDISK, 31);
    // L0 = 1000: the buffer begins at L0 - ra = 488.
    host.one(Op::Read, 0, 1000);
    host.run_until(Time(1_000_000_000));
    let hit = host.one(Op::Read, 488, 8);
    assert_eq!((hit.ended - hit.started).ns(), 100_000);
    let miss = host.one(Op::Read, 487, 8);
    assert!((miss.ended - miss.started).ns() > 100_000 + 8 * 8138);
}

#[test]
fn simdisk_2628_overlaps_overhead_with_service() {
    let mut host = Host::build("simdisk-2628,order=fifo", 31);
    // Skew = ceil(seek(1) / 6200) = ceil(845,567 / 6200) = 137; revolution 8,332,800.
    // Ready at 150 us: sector 0 passes at 8,332,800. The second is chosen 2 us after
    // the first has passed; sector 9 is still to come, sector 8 is a revolution away.
    let finished = submit_all(&mut host, &[(Op::Read, 0, 8), (Op::Write, 9, 8)]);
    assert_eq!(
        times(&finished),
        [
            (0, 150_000, 8_384_400),
            (9, 8_384_400, 8_332_800 + 17 * 6200 + 2_000)
        ]
    );
}

#[test]
fn simdisk_2628_cached_writes_take_the_bus_one_at_a_time() {
    let mut host = Host::build("simdisk-2628,write_cache_sectors=16384", 31);
    let finished = submit_all(&mut host, &[(Op::Write, 0, 100), (Op::Write, 5000, 100)]);
    assert_eq!(
        times(&finished),
        [(0, 150_000, 406_000), (5000, 406_000, 662_000)]
    );
}

#[test]
fn simdisk_2628_full_cache_waits_for_the_medium() {
    let mut host = Host::build("simdisk-2628,write_cache_sectors=128", 31);
    let cmds = [
        (Op::Write, 0, 100),
        (Op::Write, 100, 100),
        (Op::Flush, 0, 0),
    ];
    let finished = submit_all(&mut host, &cmds);
    let on_medium = 8_332_800 + 100 * 6200;
    assert_eq!(finished[1].started.ns(), on_medium + 2_000);
    assert_eq!(finished[1].ended.ns(), on_medium + 258_000);
    // Sector 100 has just passed when its data is there: one revolution more.
    assert_eq!(
        finished[2].ended.ns(),
        on_medium + 8_332_800 + 100 * 6200 + 2_000
    );
}

#[test]
fn measured_times_are_the_quantiles_each_once_without_a_pattern() {
    let mut host = Host::build("measured,read=0:0/50:1024/100:10240,channels=1", 1);
    let times: Vec<u64> = (0..1024)
        .map(|i| {
            let f = host.one(Op::Read, i * 1000, 8);
            (f.ended - f.submitted).ns()
        })
        .collect();
    let mut sorted = times.clone();
    sorted.sort_unstable();
    let expected: Vec<u64> = (0..1024)
        .map(|i| {
            if i < 512 {
                i * 2
            } else {
                1024 + (i - 512) * 18
            }
        })
        .collect();
    assert_eq!(sorted, expected);
    // Who has every n-th command has the same distribution, and neighbours are strangers.
    for every in [2, 3, 4, 8] {
        let own: Vec<u64> = times.iter().step_by(every).copied().collect();
        let low = own.iter().filter(|t| **t < 1024).count();
        assert!(
            (low * 2).abs_diff(own.len()) * 5 < own.len(),
            "{every}: {low}"
        );
    }
    let changes = times
        .windows(2)
        .filter(|p| (p[0] < 1024) != (p[1] < 1024))
        .count();
    assert!((450..575).contains(&changes), "{changes}");
}

#[test]
fn measured_channels_directions_places_and_lengths_count() {
    let spec = "measured,channels=2,read=1us,read_sequential=100ns,write=3us,flush=7us,\
                read_ns_per_sector=1,b_ns_per_sqrt_sector=10.0";
    let mut host = Host::build(spec, 4);
    let finished = submit_all(
        &mut host,
        &[
            (Op::Read, 100, 8),
            (Op::Read, 108, 8),
            (Op::Write, 216, 1),
            (Op::Flush, 0, 0),
        ],
    );
    // 1000 + 8 + 10 * sqrt(100); right behind it 100 + 8; then each as a channel is free.
    assert_eq!(
        times(&finished),
        [
            (108, 0, 108),
            (100, 0, 1108),
            (216, 108, 3208),
            (0, 1108, 8108)
        ]
    );
}

#[test]
fn measured_quantiles_are_checked() {
    for bad in [
        "0:5/0:6", "0:6/50:5", "101:1", "5us/6us", "0:5x", "0:2h", "/",
    ] {
        let given = [("read".to_owned(), bad.to_owned())];
        let made = crate::build("measured", &given, 1, &|_| Err(String::new()));
        let text = made.map(|_| ()).expect_err(bad).to_string();
        assert!(
            text.starts_with(&format!(
                "device measured: read={bad}: expected a time, or "
            )),
            "{text}"
        );
    }
}
