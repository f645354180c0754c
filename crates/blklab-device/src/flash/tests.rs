// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small drive against times computed by hand, then what must hold for any.

use crate::host::{Finished, Host};
use blklab_types::{BioFlags, Op, SplitMix64, Time};

/// Two channels with one die each; 4 KiB take 10 us on a channel and 1 us on the
/// link; a unit is one page of 8 KiB, the buffer has four units.
const TOY: &str = "nvme-consumer,channels=2,ways=1,dies=1,planes=1,page_bytes=8KiB,\
                   pages_per_block=4,read_us=50,read_slow_us=70,program_us=500,erase_us=2000,\
                   suspend_program=on,suspend_program_us=30,suspend_erase=on,\
                   suspend_erase_us=200,suspend_max=2,channel_mb_per_s=409.6,link_mb_per_s=4096,\
                   command_us=1,read_overhead_us=5,read_large_overhead_us=7,\
                   write_overhead_us=3,flush_overhead_us=20,discard_overhead_us=4,\
                   buffer_bytes=32KiB,spare_pct=100";

/// The small drive with some parameters changed.
pub(super) fn toy_spec(given: &str) -> String {
    let name = |param: &str| param.split('=').next().map(str::to_owned);
    let changed: Vec<_> = given.split(',').map(name).collect();
    let kept = TOY.split(',').filter(|p| !changed.contains(&name(p)));
    kept.collect::<Vec<_>>().join(",") + given
}

pub(super) fn toy(given: &str) -> Host {
    Host::build(&toy_spec(given), 64)
}

/// Time from hand-over to completion in microseconds.
pub(super) fn us(f: &Finished) -> f64 {
    (f.ended - f.submitted).ns() as f64 / 1e3
}

pub(super) fn took(host: &mut Host, op: Op, sector: u64, n: u32) -> f64 {
    us(&host.one(op, sector, n))
}

/// First sectors of completed commands and how long they took.
fn all(host: &mut Host, cmds: &[(Op, u64, u32)]) -> Vec<(u64, f64)> {
    for &(op, sector, n) in cmds {
        host.submit(op, BioFlags::NONE, sector, n);
    }
    let finished = host.drain();
    finished.iter().map(|f| (f.cmd.sector, us(f))).collect()
}

#[test]
fn a_read_is_controller_firmware_cells_channel_and_link() {
    // 1 + 5 + 50 + 10 + 1; page 2 is the second of its die: 70.
    assert_eq!(took(&mut toy(""), Op::Read, 0, 8), 67.0);
    assert_eq!(took(&mut toy(""), Op::Read, 32, 8), 87.0);
    // The example of the module's description.
    assert_eq!(
        took(&mut Host::build("nvme-consumer", 1), Op::Read, 0, 8),
        59.639
    );
}

#[test]
fn reads_share_the_controller_and_their_die() {
    // Page 0 on die 0, page 1 on die 1: the second is 1 us behind.
    let other = all(&mut toy(""), &[(Op::Read, 0, 8), (Op::Read, 16, 8)]);
    assert_eq!(other, [(0, 67.0), (16, 68.0)]);
    // Both on page 0: the die is free at 66.
    let same = all(&mut toy(""), &[(Op::Read, 0, 8), (Op::Read, 8, 8)]);
    assert_eq!(same, [(0, 67.0), (8, 66.0 + 60.0 + 1.0)]);
}

#[test]
fn dies_share_their_channel() {
    // Two dies on one channel: the second transfer begins when the first ends, at 66.
    let mut host = toy(",channels=1,ways=2");
    let finished = all(&mut host, &[(Op::Read, 0, 8), (Op::Read, 16, 8)]);
    assert_eq!(finished, [(0, 67.0), (16, 77.0)]);
}

#[test]
fn a_large_read_is_done_with_its_last_page() {
    // 1 + 7 + 50 + 20 for both pages; 2 us on the link each.
    assert_eq!(took(&mut toy(""), Op::Read, 0, 32), 82.0);
}

#[test]
fn a_write_is_done_in_the_buffer_and_read_from_there() {
    let mut host = toy("");
    assert_eq!(took(&mut host, Op::Write, 0, 8), 1.0 + 1.0 + 3.0);
    assert_eq!(took(&mut host, Op::Read, 0, 8), 1.0 + 5.0 + 1.0);
    assert_eq!(
        took(&mut host, Op::Read, 4, 8),
        67.0,
        "half of it is elsewhere"
    );
}

#[test]
fn a_full_buffer_makes_writes_wait() {
    // 64 KiB have come at 17 and fill 8 slots; two units at a time take 520, the next
    // two begin at 537 and end at 1057, when the last four slots are free.
    assert_eq!(took(&mut toy(""), Op::Write, 0, 128), 1060.0);
}

#[test]
fn a_flush_programs_what_is_there() {
    let mut host = toy("");
    host.one(Op::Write, 0, 8);
    // Controller 1, half a unit into the registers 10, program 500, firmware 20.
    assert_eq!(took(&mut host, Op::Flush, 0, 0), 531.0);
    assert_eq!(took(&mut host, Op::Flush, 0, 0), 21.0, "nothing to do");
    let mut host = toy(",power_loss_protection=on");
    host.one(Op::Write, 0, 8);
    assert_eq!(took(&mut host, Op::Flush, 0, 0), 21.0);
}

#[test]
fn a_fua_write_is_done_in_the_flash() {
    for (given, expected) in [
        ("", 1.0 + 1.0 + 10.0 + 500.0 + 3.0),
        (",power_loss_protection=on", 5.0),
    ] {
        let mut host = toy(given);
        host.submit(Op::Write, BioFlags::FUA, 0, 8);
        assert_eq!(us(&host.drain()[0]), expected, "{given}");
    }
}

/// A unit is programmed on die 0 from 23 to 523; a read of that die is handed
/// over at `at_us`, a flush after it. When both end.
fn read_beside_a_program(given: &str, at_us: u64) -> [f64; 2] {
    let mut host = toy(given);
    host.one(Op::Write, 0, 16);
    host.run_until(Time(at_us * 1000));
    let read = host.one(Op::Read, 32, 8);
    let flush = host.one(Op::Flush, 0, 0);
    [read, flush].map(|f| f.ended.ns() as f64 / 1e3)
}

#[test]
fn a_read_suspends_a_program() {
    // At the die at 106, stopped at 136, cells until 206, channel 216, link 217. What was
    // left, 417, runs from 216 on: until 633, and the flush takes 20 more.
    assert_eq!(read_beside_a_program("", 100), [217.0, 653.0]);
    // Not suspended: cells from 523 on; then the flush has nothing to wait for.
    let off = read_beside_a_program(",suspend_program=off", 100);
    assert_eq!(off, [523.0 + 70.0 + 10.0 + 1.0, 604.0 + 21.0]);
    // 27 us are left at 496: stopping would take 30.
    assert_eq!(read_beside_a_program("", 490)[0], 604.0);
}

#[test]
fn a_program_is_suspended_so_many_times() {
    let mut host = toy("");
    host.one(Op::Write, 0, 16);
    let mut last = 0.0;
    // Reads at 100, 230, 360: the first two suspend (30 + 70 + 10 each), the third waits
    // until the program ends at 523 + 220.
    for at_us in [100, 230, 360] {
        host.run_until(Time(at_us * 1000));
        host.submit(Op::Read, BioFlags::NONE, 32, 8);
    }
    for f in host.drain() {
        last = f.ended.ns() as f64 / 1e3;
    }
    assert_eq!(last, 523.0 + 220.0 + 70.0 + 10.0 + 1.0);
}

#[test]
fn a_read_suspends_an_erase() {
    // One program fills a block: die 0 erases from 523 to 2523. A read there at 1000
    // arrives at 1006, stops it until 1206, and takes 81 more.
    let mut host = toy(",pages_per_block=1,state=steady");
    host.one(Op::Write, 0, 16);
    host.run_until(Time(1_000_000));
    assert_eq!(took(&mut host, Op::Read, 32, 8), 6.0 + 200.0 + 81.0);
    let mut host = toy(",pages_per_block=1,state=steady,suspend_erase=off");
    host.one(Op::Write, 0, 16);
    host.run_until(Time(1_000_000));
    assert_eq!(took(&mut host, Op::Read, 32, 8), 2523.0 - 1000.0 + 81.0);
}

#[test]
fn reads_do_not_keep_a_program_waiting_for_ever() {
    // Reads keep the die busy; after 3 of them the program gets its turn.
    let mut host = toy(",channels=1,suspend_program=off,read_burst=3");
    for _ in 0..8 {
        host.submit(Op::Read, BioFlags::NONE, 0, 8);
    }
    host.submit(Op::Write, BioFlags::FUA, 1000, 16);
    let order: Vec<u64> = host.drain().iter().map(|f| f.cmd.sector).collect();
    assert_eq!(order, [0, 0, 0, 0, 1000, 0, 0, 0, 0]);
}

/// Random or sequential writes of 4 KiB per second in the long run.
pub(super) fn writes_per_s(spec: &str, sequential: bool) -> f64 {
    let mut host = Host::build(spec, 64);
    let mut random = SplitMix64(1);
    let (mut done, mut begin, mut next) = (0, host.now, 0);
    while done < 40_000 {
        while host.nr_in_flight() < 32 {
            let sector = if sequential {
                next * 8
            } else {
                random.below(100_000_000 / 8) * 8
            };
            next += 1;
            host.submit(Op::Write, BioFlags::NONE, sector, 8);
        }
        done += host.step().expect("goes on").len();
        if done < 20_000 {
            begin = host.now;
        }
    }
    20_000.0 * 1e9 / (host.now - begin).ns() as f64
}

#[test]
fn steady_writes_take_what_their_moves_and_erases_take() {
    for (spare, moves) in [("7", 6.8172), ("28", 1.4814), ("100", 0.2550)] {
        let spec = toy_spec(&format!(",state=steady,spare_pct={spare}"));
        // Fill 20 + program 500; a move: read 70, out 20, in 20, program 500; erase 2000
        // after every 4 programs. Two dies, two slots each.
        let unit_us = 520.0 + moves * 610.0 + (1.0 + moves) * 500.0;
        let expected = 2.0 * 2.0 * 1e6 / unit_us;
        let rate = writes_per_s(&spec, false);
        assert!((rate / expected - 1.0).abs() < 0.01, "{spare}: {rate}");
        let rate = writes_per_s(&spec, true);
        assert!(
            (rate / (4e6 / 1020.0) - 1.0).abs() < 0.01,
            "{spare}: {rate}"
        );
    }
    let fresh = writes_per_s(&toy_spec(""), false);
    assert!((fresh / (4e6 / 520.0) - 1.0).abs() < 0.01, "{fresh}");
}

#[test]
fn discarded_space_is_written_without_collecting() {
    let second_flush = |discard: u32| {
        let mut host = toy(",pages_per_block=1,state=steady");
        assert_eq!(took(&mut host, Op::Discard, 3, discard), 1.0 + 4.0);
        for _ in 0..2 {
            host.one(Op::Write, 0, 32);
            host.one(Op::Flush, 0, 0);
        }
        host.now.ns() / 1_000_000
    };
    // The second pair of units waits for erases of 2 ms, unless 8 whole slots (of the 9
    // that the discard touches) were given back.
    assert_eq!([second_flush(72), second_flush(8)], [1, 3]);
}

/// Random reads of 4 KiB per second.
fn reads_per_s(spec: &str, depth: usize) -> f64 {
    let mut host = Host::build(spec, 1023);
    let mut random = SplitMix64(2);
    let (mut done, mut in_flight) = (0, 0);
    while done < 20_000 {
        while in_flight < depth {
            let sector = random.below(900_000_000 / 8) * 8;
            host.submit(Op::Read, BioFlags::NONE, sector, 8);
            in_flight += 1;
        }
        let n = host.step().expect("goes on").len();
        (done, in_flight) = (done + n, in_flight - n);
    }
    done as f64 * 1e9 / host.now.ns() as f64
}

/// Each rate is at least the one before it.
fn rising(what: &str, rates: &[f64]) {
    let falls = rates.windows(2).any(|pair| pair[1] < pair[0] * 0.999);
    assert!(!falls, "{what}: {rates:?}");
}

#[test]
fn more_of_anything_is_not_slower() {
    let reads = |given: &str, depth| reads_per_s(&format!("nvme-datacenter{given}"), depth);
    let over = |values: &[&str], name: &str| -> Vec<f64> {
        let rate = |v: &&str| reads(&format!(",{name}={v}"), 256);
        values.iter().map(rate).collect()
    };
    let depths: Vec<f64> = [1, 2, 4, 8, 16, 64, 256].map(|d| reads("", d)).into();
    rising("depth", &depths);
    rising("ways", &over(&["1", "2", "4", "8"], "ways"));
    rising("channels", &over(&["1", "2", "4", "8"], "channels"));
    rising(
        "channel",
        &over(&["50", "100", "533", "1200"], "channel_mb_per_s"),
    );
    rising(
        "link",
        &over(&["100", "500", "1000", "7000"], "link_mb_per_s"),
    );
    rising("cells", &over(&["900", "300", "60", "20"], "read_us"));
    rising("controller", &over(&["50", "10", "2", "1"], "command_us"));
    let writes = |given: &str| writes_per_s(&toy_spec(&format!(",state=steady{given}")), false);
    rising(
        "spare",
        &["3", "7", "14", "28", "100"].map(|v| writes(&format!(",spare_pct={v}"))),
    );
    rising(
        "block",
        &["1", "4", "64"].map(|v| writes(&format!(",pages_per_block={v}"))),
    );
    rising(
        "program",
        &["2000", "900", "100"].map(|v| writes(&format!(",program_us={v}"))),
    );
}

#[test]
fn no_part_does_more_than_it_can() {
    // Spec: min(dies / (cells + transfer), channels / transfer, link / 4 KiB).
    for (given, most) in [
        (",channels=2,ways=1,dies=1,command_us=0", 2.0 / 67.685e-6),
        (",channels=1,ways=8,command_us=0", 533e6 / 4096.0),
        (",link_mb_per_s=400,command_us=0", 400e6 / 4096.0),
        (",command_us=10", 100_000.0),
    ] {
        let rate = reads_per_s(&format!("nvme-datacenter{given}"), 256);
        assert!(
            rate <= most && rate > most * 0.97,
            "{given}: {rate} of {most}"
        );
    }
}

#[test]
fn agrees_with_the_two_parameter_model_of_2009() {
    // Ten channels with two dies, cells 60 us, 12 us for 4 KiB on a channel, 100 us of
    // overhead beside others, 25 us of the controller: min(Q / 197 us, 1 / 25 us).
    let spec = "sata-ssd,channels=10,ways=2,dies=1,channel_mb_per_s=341.333,\
                link_mb_per_s=100000,read_overhead_us=100,command_us=25,suspend_program=off,\
                program_us=900,page_bytes=4KiB";
    let vector = [
        (1, 5076.0),
        (2, 10152.0),
        (4, 20305.0),
        (8, 40000.0),
        (31, 40000.0),
    ];
    for (depth, expected) in vector {
        // Reads may meet on a die, which the two parameters do not know.
        let ratio = reads_per_s(spec, depth) / expected;
        assert!(ratio > 0.9 && ratio < 1.001, "{depth}: {ratio}");
    }
}

#[test]
fn impossible_drives_are_refused() {
    let error = |given: &str| {
        let (info, params) = crate::parse_spec(given).expect("a drive");
        let made = crate::build(info.name, &params, 1, &|_| Err(String::new()));
        made.map(|_| ()).expect_err("refused").to_string()
    };
    assert_eq!(
        error("nvme-consumer,page_bytes=5000"),
        "device nvme-consumer: page_bytes=5000: expected a multiple of 4 KiB"
    );
    assert_eq!(
        error("nvme-consumer,buffer_bytes=32KiB"),
        "device nvme-consumer: buffer_bytes=32768: expected at least 65536 bytes: two programs \
         of a die"
    );
    assert_eq!(
        error("sd-card-a1,slc_bytes=100GB"),
        "device sd-card-a1: slc_bytes=100000000000: expected at most 64413184000 bytes: all of \
         the flash"
    );
    assert_eq!(
        error("sd-card-a1,gc_burst_bytes=10GB"),
        "device sd-card-a1: gc_burst_bytes=10000000000: expected at most 1876111360 bytes: what \
         is spare"
    );
}

#[test]
fn limits_follow_the_protection_of_the_buffer() {
    let limits = |name: &str, given: &[(String, String)]| {
        let l = crate::limits(name, given).expect("limits");
        (l.has_flush, l.has_fua, l.hw_queues)
    };
    assert_eq!(limits("nvme-consumer", &[]), (true, true, 128));
    assert_eq!(limits("nvme-datacenter", &[]), (false, false, 128));
    let off = ("power_loss_protection".to_owned(), "off".to_owned());
    assert_eq!(limits("sata-ssd", &[off]), (true, false, 1));
}

/// When a flush and a read that are handed over together end, in us, after a write.
fn around_a_flush(given: &str) -> Vec<(Op, f64)> {
    let mut host = toy(&format!(",power_loss_protection=off{given}"));
    host.one(Op::Write, 1000, 8);
    host.submit(Op::Flush, BioFlags::NONE, 0, 0);
    host.submit(Op::Read, BioFlags::NONE, 0, 8);
    let ended = |f: &Finished| (f.cmd.op, f.ended.ns() as f64 / 1e3);
    host.drain().iter().map(ended).collect()
}

#[test]
fn a_flush_that_is_not_queued_is_alone() {
    let queued = around_a_flush("");
    let alone = around_a_flush(",flush_queued=off");
    // The read stops the program that the flush waits for: 30 us, and 60 for its own page.
    assert_eq!((queued[0].0, queued[1]), (Op::Read, (Op::Flush, 626.0)));
    assert_eq!((alone[0], alone[1].0), ((Op::Flush, 536.0), Op::Read));
    let read = took(&mut toy(""), Op::Read, 0, 8);
    assert!((alone[1].1 - alone[0].1 - read).abs() < 1e-6, "{alone:?}");
}
