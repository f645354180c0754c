// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of jobs that are known, and the jobs that are made of them.

use super::{Section, exact_job, job_file};
use crate::tests::{Trace, noise};
use blklab_trace::{Action, Rwbs};

const SYNC_WRITE: Rwbs = Rwbs(Rwbs::WRITE.0 | Rwbs::SYNC.0);

fn sections(trace: Trace) -> Vec<Section> {
    job_file(&trace.finish().expect("bios"), "/dev/sda").sections
}

/// The only section of a trace.
fn section(trace: Trace) -> Section {
    let mut all = sections(trace);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn check(section: &Section, options: &[(&str, &str)]) {
    for (name, value) in options {
        assert_eq!(section.get(name), Some(*value), "{name}: {section}");
    }
}

#[test]
fn a_sequential_reader_with_pauses() {
    let mut trace = Trace::default();
    let mut now = 0;
    for i in 0..64_u64 {
        let done = now + 900 + noise(i, 300);
        trace.sized(7, Rwbs::READ, (2048 + 8 * i, 8), now, done);
        now = done + 501;
    }
    let s = section(trace);
    assert_eq!(s.name, "seven-7");
    check(
        &s,
        &[
            ("rw", "read"),
            ("bs", "4096"),
            ("offset", "1048576"),
            ("size", "262144"),
            ("ioengine", "psync"),
            ("thinktime", "500"),
            ("direct", "1"),
        ],
    );
    assert_eq!(s.get("startdelay"), None);
}

#[test]
fn random_io_of_several_sizes_at_a_depth() {
    let mut trace = Trace::default();
    let mut slots = [0_u64, 1, 2, 3];
    for i in 0..400_u64 {
        let slot = (0..4).min_by_key(|s| slots[*s]).expect("four");
        let begin = slots[slot];
        let done = begin + 500 + noise(i, 4000);
        let n = if i % 4 == 0 { 16 } else { 8 };
        let rwbs = if noise(i + 9, 10) < 3 {
            SYNC_WRITE
        } else {
            Rwbs::READ
        };
        trace.sized(7, rwbs, (noise(i + 77, 100_000) * 8, n), begin, done);
        slots[slot] = done + 2;
    }
    let s = section(trace);
    check(
        &s,
        &[("rw", "randrw"), ("ioengine", "libaio"), ("iodepth", "4")],
    );
    let mix: u32 = s.get("rwmixread").expect("a mix").parse().expect("percent");
    assert!((65..=75).contains(&mix), "{s}");
    let split = s.get("bssplit").expect("sizes");
    assert!(
        split.starts_with("4096/7") && split.contains(":8192/2"),
        "{s}"
    );
    assert_eq!(s.get("percentage_random"), None, "{s}");
}

#[test]
fn large_ios_are_put_together_again() {
    let mut trace = Trace::default();
    let mut now = 0;
    for i in 0..20_u64 {
        // A megabyte in four bios.
        for part in 0..4 {
            let sector = i * 2048 + part * 512;
            trace.sized(7, SYNC_WRITE, (sector, 512), now + part, now + 4000 + part);
        }
        now += 4050;
    }
    let s = section(trace);
    check(
        &s,
        &[("rw", "write"), ("bs", "1048576"), ("ioengine", "psync")],
    );
}

#[test]
fn strides_rates_and_starts() {
    let mut trace = Trace::default();
    for i in 0..40_u64 {
        let begin = 1000 + i * 10_000;
        trace.sized(
            7,
            Rwbs::READ,
            (i * 64, 8),
            begin,
            begin + 300 + noise(i, 6000),
        );
    }
    trace.sized(9, Rwbs::READ, (0, 8), 1_501_000, 1_502_000);
    let all = sections(trace);
    check(&all[0], &[("rw", "read:28672"), ("rate_iops", "100")]);
    check(&all[1], &[("startdelay", "1500000us")]);
}

#[test]
fn flushes_are_syncs_and_fua_is_dsync() {
    let mut trace = Trace::default();
    let mut now = 0;
    for i in 0..30_u64 {
        trace.sized(7, SYNC_WRITE, (noise(i, 9999) * 8, 8), now, now + 200);
        now += 210;
        if i % 3 == 2 {
            let flush = SYNC_WRITE.with(Rwbs::FLUSH);
            trace.event(now, Action::Queue, 7, flush, 0, 0);
            trace.event(now + 700, Action::Complete, 0, flush, 0, 0);
            now += 710;
        }
    }
    check(&section(trace), &[("rw", "randwrite"), ("fsync", "3")]);
    let mut trace = Trace::default();
    for i in 0..30_u64 {
        let fua = SYNC_WRITE.with(Rwbs::FUA);
        trace.sized(7, fua, (i * 8, 8), i * 300, i * 300 + 250);
    }
    check(&section(trace), &[("rw", "write"), ("sync", "dsync")]);
}

#[test]
fn what_the_page_cache_wrote_is_written_through_it() {
    let mut trace = Trace::default();
    let mut now = 0;
    // A flusher that goes on for two files in turn, and a reader beside it.
    for i in 0..200_u64 {
        let sector = (i % 2) * 1_000_000 + (i / 2) * 256;
        trace.sized(
            8,
            Rwbs::WRITE,
            (sector, 256),
            i * 1000 + noise(i, 400),
            i * 1000 + 20_000 + noise(i + 3, 15_000),
        );
    }
    for i in 0..30_u64 {
        trace.sized(
            7,
            Rwbs::READ,
            (noise(i, 9999) * 80, 8),
            now,
            now + 3000 + noise(i, 900),
        );
        now += 6000;
    }
    let all = sections(trace);
    let writers: Vec<&Section> = all
        .iter()
        .filter(|s| s.get("direct") == Some("0"))
        .collect();
    assert_eq!(writers.len(), 2, "{all:?}");
    check(
        writers[0],
        &[("rw", "write"), ("offset", "0"), ("size", "13107200")],
    );
    check(writers[1], &[("rw", "write"), ("offset", "512000000")]);
    assert_eq!(all.len(), 3);
}

#[test]
fn logs_have_every_bio_at_its_time() {
    let mut trace = Trace::default();
    trace.sized(7, Rwbs::READ, (16, 8), 100, 900);
    trace.sized(7, Rwbs::DISCARD, (32, 8), 1600, 1900);
    trace.sized(9, SYNC_WRITE.with(Rwbs::FUA), (8, 8), 1100, 1900);
    let recorded = trace.finish().expect("bios");
    let exact = exact_job(&recorded, "/dev/sda", "replay");
    let names: Vec<&str> = exact.logs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["replay-1-7.iolog", "replay-2-9.iolog"]);
    assert_eq!(
        exact.logs[0].1,
        "fio version 3 iolog\n0 /dev/sda add\n0 /dev/sda open\n0 /dev/sda read 8192 4096\n\
         1500 /dev/sda trim 16384 4096\n1500 /dev/sda close\n"
    );
    assert!(
        exact.logs[1]
            .1
            .contains("1000 /dev/sda write 4096 4096\n1000 /dev/sda datasync")
    );
    assert!(
        exact.job.contains("read_iolog=replay-2-9.iolog\n"),
        "{}",
        exact.job
    );
}

#[test]
fn percents_add_up() {
    for counts in [vec![1, 1, 1], vec![7, 2, 90, 1], vec![0, 5], vec![3]] {
        assert_eq!(
            super::fit::percents(&counts).iter().sum::<u64>(),
            100,
            "{counts:?}"
        );
    }
}

/// Who waits for a request at each submission would have more under way than there are
/// requests: how many is not shown.
#[test]
fn a_process_that_waits_for_requests_gets_a_deep_queue() {
    let depth = |get_after_us: u64| {
        let mut trace = Trace::default();
        for i in 0..200_u64 {
            let (t, at) = (1000 * i, noise(i, 1 << 20) * 8);
            for (us, action) in [
                (t, Action::Queue),
                (t + get_after_us, Action::GetRequest),
                (t + 995, Action::Issue),
            ] {
                trace.event(us, action, 7, SYNC_WRITE, at, 8);
            }
            trace.event(t + 2999, Action::Complete, 0, SYNC_WRITE, at, 8);
        }
        let s = section(trace);
        let held = s.remark.contains("waits for requests");
        (held, s.get("iodepth").map(str::to_owned))
    };
    assert_eq!(depth(990), (true, Some("64".to_owned())));
    assert_eq!(depth(2), (false, Some("3".to_owned())));
}

/// One pause that something disturbed does not count for the others.
#[test]
fn even_pauses_are_those_of_the_middle() {
    let mut trace = Trace::default();
    let mut now = 0;
    for i in 0..64_u64 {
        let done = now + 900 + noise(i, 300);
        trace.sized(7, Rwbs::READ, (noise(i, 9999) * 8, 8), now, done);
        now = done + if i == 20 { 900 } else { 31 };
    }
    check(&section(trace), &[("thinktime", "30")]);
}
