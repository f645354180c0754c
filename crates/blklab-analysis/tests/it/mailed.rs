// SPDX-License-Identifier: MIT OR Apache-2.0
//! Excerpts as people mail them, made up after such that were explained in public: what is said
//! of them.

use blklab_analysis::findings::{Context, Finding, Reading, Report, Search};
use blklab_formats::TraceFile;
use blklab_trace::TraceSource as _;
use std::io::Write as _;

/// The kinds whose traces are here.
pub(crate) const KINDS: [&str; 4] = [
    "behind-discards",
    "mapping-slow",
    "power-state",
    "slow-member",
];

fn why(text: &str) -> Report {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("it can be written");
    let mut trace = TraceFile::open(file.path()).expect("a trace");
    let mut search = Search::all(Context::default());
    trace.send_all(&mut search).expect("it can be read");
    search.finish(Reading::default())
}

/// Writes of a journal to an array, of 4 KiB each, of which it says that it reads for them.
#[test]
fn an_array_says_that_it_reads_before_it_writes() {
    let report = why("\
  9,127  0  1  0.000003301  397  Q  WS 29630736 + 8 [jbd2/md127p1-8]
  9,127  0  2  0.012090276  397  Q  WS 29630752 + 8 [jbd2/md127p1-8]
  9,127  0  0  0.012143579    0  m   N raid5 rcw 14815504 1 1 0
  9,127  0  0  0.012159857    0  m   N raid5 rcw 14815512 1 1 0
  9,127  0  3  0.015627276  281  C  WS 29630736 + 8 [0]
  9,127  0  4  0.015636952  281  C  WS 29630752 + 8 [0]
  9,127  0  5  0.015746617  397  Q FWFS 29630776 + 8 [jbd2/md127p1-8]
  9,127  0  0  0.017888976    0  m   N raid5 rmw 14815544 2
  9,127  0  6  0.020969957  281  C WFS 29630776 + 8 [0]
");
    let f = &report.findings[0];
    assert_eq!((f.kind, f.victims[0].pid), ("read-modify-write", 397));
    assert!(
        f.what.contains("old data and parity of 1 stripe"),
        "{}",
        f.what
    );
    assert!(f.what.contains("the rest of 2 stripes"), "{}", f.what);
    assert!(f.what.contains("3 of 3 writes"), "{}", f.what);
    let words = report.devices[0].words.join(" ");
    assert!(words.contains("3 bios"), "{words}");
}

/// The command that empties the cache succeeds, and who asked for it is told that it failed.
#[test]
fn a_flush_fails_above_the_device() {
    let report = why("\
 rep-3060 [007] .... 19654.923315: block_bio_queue: 8,0 FWS 0 + 0 [rep]
 rep-3060 [007] .... 19654.923333: block_getrq: 8,0 FWS 0 + 0 [rep]
 kworker/7:1H-250 [007] .... 19654.923352: block_rq_issue: 8,0 FF 0 () 0 + 0 [kworker/7:1H]
 <idle>-0 [007] ..s. 19654.923562: block_rq_complete: 8,0 FF () 18446744073709551615 + 0 [0]
 <idle>-0 [007] d.s. 19654.923576: block_rq_complete: 8,0 WS () 0 + 0 [-5]
");
    let f = &report.findings[0];
    assert_eq!((f.kind, f.victims[0].pid), ("io-error", 3060));
    assert!(f.how.contains("ended without an error"), "{}", f.how);
}

/// A write, and an fsync behind it that flushes nothing.
#[test]
fn an_fsync_without_a_flush_is_told() {
    let fsync = |flush: &str| {
        let report = why(&format!(
            "\
 raft-37 [003] ..... 9904.831144: block_bio_queue: 259,0 WS 498455480 + 8 [raft]
 raft-37 [003] ..... 9904.831149: block_getrq: 259,0 WS 498455480 + 8 [raft]
 raft-37 [003] ..... 9904.831159: block_rq_issue: 259,0 WS 4096 () 498455480 + 8 [raft]
 raft-37 [003] d.h.. 9904.831178: block_rq_complete: 259,0 WS () 498455480 + 8 [0]
 kworker/3:1-30 [003] ..... 9904.831202: ext4_sync_file_enter: dev 259,0 ino 12 parent 2 datasync 1 
{flush} kworker/3:1-30 [003] ..... 9904.831903: ext4_sync_file_exit: dev 259,0 ino 12 ret 0
"
        ));
        assert!(report.findings.is_empty(), "{:#?}", report.findings);
        report.devices[0].words.join(" ")
    };
    let said = "1 fsync ended without a flush";
    assert!(fsync("").contains(said), "{}", fsync(""));
    let flushed = fsync(
        "\
 kworker/3:1-30 [003] ..... 9904.831210: block_bio_queue: 259,0 FWS 0 + 0 [kworker/3:1]
 kworker/3:1-30 [003] ..... 9904.831211: block_getrq: 259,0 FWS 0 + 0 [kworker/3:1]
 kworker/3:1-30 [003] ..... 9904.831212: block_rq_issue: 259,0 FF 0 () 0 + 0 [kworker/3:1]
 <idle>-0 [003] d.h.. 9904.831800: block_rq_complete: 259,0 FF () 0 + 0 [0]
",
    );
    assert!(!flushed.contains(said), "{flushed}");
}

/// D and C alone, as iosnoop and `blktrace -a issue -a complete` have them.
#[test]
fn time_at_the_device_needs_neither_q_nor_i() {
    let report = why("\
  8,80   4  1  97.593173642   548  D  DS 3904898591 + 262143 [kworker/4:1H]
  8,80   4  2  97.603246256   548  D  DS 3905160734 + 262143 [kworker/4:1H]
  8,80   4  3  97.623198445     0  C  DS 3900704303 + 4456431 [0]
  8,80   4  4  97.633162688     0  C  DS 3900704303 + 4718574 [0]
");
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    let words = report.devices[0].words.join(" ");
    assert!(words.contains("30.0 ms each on average"), "{words}");
    assert!(words.contains("at the device"), "{words}");
}

/// Reads while fstrim discards 256 MiB at a time, on a device that takes one command at once.
fn beside_fstrim(discard_ms: f64) -> String {
    let mut lines = Vec::new();
    let mut line = |at: f64, pid: u32, action: &str, what: &str| {
        let line = format!("8,0 0 {{}} {at:.9} {pid} {action} {what}\n");
        lines.push((at, line));
    };
    for i in 0..6 {
        let begin = f64::from(i) * 0.1;
        let discard = format!("D {} + 524288", 1_000_000 + i * 524_288);
        let read = |n: i32| format!("R {} + 8", 5_000 + (i * 8 + n) * 8_000);
        for action in ["Q", "G", "I", "D"] {
            line(begin, 900, action, &format!("{discard} [fstrim]"));
        }
        line(begin + discard_ms / 1e3, 0, "C", &format!("{discard} [0]"));
        for (n, at) in [(0, 0.001), (1, 0.08)] {
            let from = begin + at;
            let issue = if n == 0 {
                begin + discard_ms.max(1.0) / 1e3 + 1e-5
            } else {
                from
            };
            for action in ["Q", "G", "I"] {
                line(from, 1000, action, &format!("{} [mysqld]", read(n)));
            }
            line(issue, 1000, "D", &format!("{} [mysqld]", read(n)));
            line(issue + 2e-4, 0, "C", &format!("{} [0]", read(n)));
        }
    }
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    let numbered = lines.iter().enumerate();
    numbered
        .map(|(n, (_, line))| line.replacen("{}", &(n + 1).to_string(), 1))
        .collect()
}

#[test]
fn reads_wait_while_the_device_discards() {
    let report = why(&beside_fstrim(62.0));
    let f = &report.findings[0];
    assert_eq!((f.kind, f.victims[0].pid), ("behind-discards", 1000));
    assert_eq!((f.causes[0].pid, f.count), (900, 6));
    assert!(f.how.contains("6 discards of 256.0 MiB"), "{}", f.how);
    let fast = why(&beside_fstrim(0.1));
    assert!(fast.findings.iter().all(|f| f.kind != "behind-discards"));
}

/// Writes to an encrypted device: each waits for its threads, while the disk does nothing.
#[test]
fn a_mapping_keeps_what_it_is_given() {
    let encrypted = |above_us: u64| {
        let mut text = String::new();
        let mut number = 0;
        for i in 0..4_u64 {
            let begin = i * 20_000;
            let below = begin + above_us;
            let sector = 208_896 + i * 8;
            let mut line = |dev: &str, us: u64, pid: u32, action: &str, sector: u64, comm: &str| {
                number += 1;
                let (s, us) = (us / 1_000_000, us % 1_000_000);
                text += &format!(
                    "{dev} 1 {number} {s}.{us:06}000 {pid} {action} WS {sector} + 8 [{comm}]\n"
                );
            };
            line("253,0", begin, 4211, "Q", sector - 4096, "postgres");
            for action in ["Q", "G", "I", "D"] {
                line("8,0", below, 311, action, sector, "dmcrypt_write/2");
            }
            line("8,0", below + 200, 0, "C", sector, "0");
            line("253,0", below + 210, 0, "C", sector - 4096, "0");
        }
        why(&text)
    };
    let report = encrypted(12_000);
    let f = &report.findings[0];
    assert_eq!((f.kind, f.victims[0].pid), ("mapping-slow", 4211));
    assert_eq!((f.causes[0].pid, f.count), (311, 4));
    assert!(f.cause.as_deref().is_some_and(|c| c.contains("dm-crypt")));
    assert_eq!(f.first.as_ref().expect("one").evidence.len(), 3);
    assert!(encrypted(20).findings.is_empty());
}

/// Writes of a log, each behind which forty reads come, which are served first: by the device, or
/// by the scheduler, which holds the write for as long.
#[test]
fn what_the_device_serves_first_is_no_schedulers_choice() {
    let starved = |is_held: bool| {
        let mut lines = Vec::new();
        for i in 0..30_u64 {
            let begin = i * 40_000;
            let mut line = |us: u64, pid: u32, what: String| lines.push((us, pid, what));
            let write = format!("WS {} + 8", 8_000_000 + i * 8192);
            // Two of three have the device for themselves.
            let is_beside = i % 3 == 2;
            let ends = begin + if is_beside { 20_400 } else { 200 };
            for action in ["Q", "G", "I"] {
                line(begin, 900, format!("{action} {write} [log]"));
            }
            let issued = if is_held && is_beside {
                ends - 200
            } else {
                begin + 1
            };
            line(issued, 900, format!("D {write} [log]"));
            line(ends, 0, format!("C {write} [0]"));
            for n in (0..40_u64).filter(|_| is_beside) {
                let read = format!("R {} + 8", 1_000_000 + (i * 977 + n * 131) % 4096 * 512);
                let at = begin + 10 + n * 500;
                for action in ["Q", "G", "I", "D"] {
                    line(at, 1000, format!("{action} {read} [scan]"));
                }
                line(at + 495, 0, format!("C {read} [0]"));
            }
        }
        lines.sort_by_key(|(us, ..)| *us);
        let line = |(i, (us, pid, what)): (usize, (u64, u32, String))| {
            let (s, us) = (us / 1_000_000, us % 1_000_000);
            format!("8,0 1 {} {s}.{us:06}000 {pid} {what}\n", i + 1)
        };
        let text: String = lines.into_iter().enumerate().map(line).collect();
        let report = why(&text);
        report.findings.iter().any(|f| f.kind == "writes-starved")
    };
    assert!(starved(true) && !starved(false));
}

/// Writes to a RAID 1 of two disks, of which the second takes so long.
fn mirrored(second_us: u64) -> String {
    let mut lines = Vec::new();
    for i in 0..40_u64 {
        let (begin, sector) = (i * 50_000, 4096 + i * 640);
        let mut line = |dev: &str, us: u64, action: &str, whose: &str| {
            let pid = if action == "C" { 0 } else { 4211 };
            let text = format!("{pid} {action} WS {sector} + 8 {whose}");
            lines.push((us, text, dev.to_owned()));
        };
        line("9,0", begin, "Q", "[postgres]");
        for (dev, took) in [("8,0", 300), ("8,16", second_us)] {
            line(dev, begin, "A", &format!("<- (9,0) {sector}"));
            for action in ["Q", "G", "I", "D"] {
                line(dev, begin, action, "[postgres]");
            }
            line(dev, begin + took, "C", "[0]");
        }
        line("9,0", begin + second_us.max(300) + 20, "C", "[0]");
    }
    lines.sort_by_key(|(us, ..)| *us);
    let line = |(i, (us, what, dev)): (usize, (u64, String, String))| {
        let (s, us) = (us / 1_000_000, us % 1_000_000);
        format!("{dev} 1 {} {s}.{us:06}000 {what}\n", i + 1)
    };
    lines.into_iter().enumerate().map(line).collect()
}

#[test]
fn the_slow_member_of_an_array_is_named() {
    let report = why(&mirrored(30_000));
    let is_it = |f: &&Finding| f.kind == "slow-member";
    let f = report.findings.iter().find(is_it).expect("it is found");
    assert_eq!((f.victims[0].pid, f.count), (4211, 40));
    assert!(
        f.what.contains("on 9,0 end only when its member 8,16"),
        "{}",
        f.what
    );
    assert_eq!(f.worst_ns, Some(29_700_000));
    assert_eq!(f.first.as_ref().expect("one").evidence.len(), 3);
    assert!(
        why(&mirrored(400))
            .findings
            .iter()
            .all(|f| f.kind != "slow-member")
    );
}

/// A read of a database between reads of a thread that checks an array.
#[test]
fn it_is_said_what_a_kernel_thread_does() {
    let mut lines = Vec::new();
    let mut line = |us: u64, pid: u32, action: &str, what: String| {
        lines.push((us, pid, action.to_owned(), what));
    };
    for i in 0..200_u64 {
        let (who, sector, n) = if i % 20 == 10 {
            ((2100, "postgres"), 900_000_000 + i * 8000, 8)
        } else {
            ((700, "md0_resync"), i * 1024, 1024)
        };
        let begin = i / 20 * 30_000 + 10 * (i % 20);
        for action in ["Q", "G", "I"] {
            line(
                begin,
                who.0,
                action,
                format!("R {sector} + {n} [{}]", who.1),
            );
        }
        let issue = i / 20 * 30_000 + 1_000 + i % 20 * 1_400;
        line(issue, who.0, "D", format!("R {sector} + {n} [{}]", who.1));
        line(issue + 1_390, 0, "C", format!("R {sector} + {n} [0]"));
    }
    lines.sort();
    let numbered = (1..).zip(&lines);
    let text: String = numbered
        .map(|(number, (us, pid, action, what))| {
            let (s, us) = (us / 1_000_000, us % 1_000_000);
            format!("8,0 0 {number} {s}.{us:06}000 {pid} {action} {what}\n")
        })
        .collect();
    let report = why(&text);
    let f = &report.findings[0];
    assert_eq!(
        (f.kind, f.victims[0].pid, f.causes[0].pid),
        ("behind-other", 2100, 700)
    );
    assert!(
        f.how.contains("md0_resync rebuilds or checks an array"),
        "{}",
        f.how
    );
    assert!(format!("{:?}", f.remedies[0]).contains("sync_speed_max"));
}

/// A few reads every quarter of an hour; the first takes so long.
#[test]
fn a_disk_that_has_stopped_starts_again() {
    let report = |starts_us: u64| {
        let mut text = String::new();
        for (number, i) in (0..36_u64).enumerate() {
            let (burst, n) = (i / 6, i % 6);
            let takes = if n == 0 { starts_us } else { 9_000 };
            let begin = burst * 900_000_000 + if n == 0 { 0 } else { starts_us + n * 20_000 };
            for (k, (action, us)) in [("Q", 0), ("I", 2), ("D", 3), ("C", 3 + takes)]
                .into_iter()
                .enumerate()
            {
                let (s, us) = ((begin + us) / 1_000_000, (begin + us) % 1_000_000);
                let number = number * 4 + k + 1;
                let who = if action == "C" { "0" } else { "cron" };
                text += &format!(
                    "8,0 0 {number} {s}.{us:06}000 500 {action} R {} + 8 [{who}]\n",
                    i * 8000
                );
            }
        }
        why(&text)
    };
    let found = report(7_500_000);
    let f = &found.findings[0];
    assert_eq!((f.kind, f.victims[0].pid, f.count), ("power-state", 500, 5));
    assert!(f.cause.as_deref().is_some_and(|c| c.contains("spinning")));
    assert!(report(25_000).findings.is_empty());
}

/// Commands passed through (TEST UNIT READY) have G, too, and end with a status of SCSI.
#[test]
fn commands_passed_through_are_nobodys_flush() {
    let report = why("\
8,16 1  8 0.000192641 6801 G   N [kworker/1:0]
8,16 1  9 0.000193318 6801 I   N 0 (00 ..) [kworker/1:0]
8,16 1 10 0.000193637 6801 D   N 0 (00 ..) [kworker/1:0]
8,16 0  1 0.000206557 8978 C   N (00 ..) [2]
8,16 3  1 0.100477153 5365 Q FWS [sync]
8,16 3  2 0.100479799 5365 G FWS [sync]
8,16 3  3 0.100481319 5365 I FWS [sync]
8,16 3  4 0.100499251   24 C  WS 0 [0]
");
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    let words = report.devices[0].words.join(" ");
    assert!(words.contains("(F): 22.1 us in all"), "{words}");
}

/// Each piece of a read ends with the sectors of all that have.
#[test]
fn pieces_end_with_the_sum_of_them() {
    let mut text = String::from("8,32 5 1 0.000000000 34 Q R 0 + 32 [fio]\n");
    let mut number = 1;
    let mut line = |us: u64, what: String| {
        number += 1;
        text += &format!("8,32 5 {number} 0.{us:06}000 34 {what}\n");
    };
    for i in 1..4_u64 {
        line(i, format!("X R {} / {} [fio]", i * 8 - 8, i * 8));
    }
    for (k, action) in ["G", "I", "D"].into_iter().enumerate() {
        for i in 0..4_u64 {
            line(
                10 + k as u64 * 10 + i,
                format!("{action} R {} + 8 [fio]", i * 8),
            );
        }
    }
    for i in 1..5_u64 {
        line(1_000 + i, format!("C R 0 + {} [0]", i * 8));
    }
    let report = why(&text);
    let words = report.devices[0].words.join(" ");
    assert!(words.contains("4 requests waited for, 1.00 ms"), "{words}");
    assert_eq!(report.findings[0].total_ns, Some(1_004_000));
}

/// trace-cmd's latency format, wrapped by a mail behind every 70th character or so.
#[test]
fn wrapped_lines_of_the_latency_format() {
    let report = why("\
ftrace log shows that a pair of block_rq_issue and
block_rq_complete takes so long.

test-2991    0.....   119.255974: block_rq_issue:       8,0 R 1310720 ()
505083904 + 2560 0x0,0,0 [test]
test-2991    0.....   119.255975: scsi_dispatch_cmd_start: host_no=0
channel=0 id=0 lun=0 data_sgl=20 prot_sgl=0 prot_op=0x0 driver_tag=19
scheduler_tag=40 cmnd=(READ_10 lba=505083904 txlen=2560 protect=0 raw=28
00 1e 1a f8 00 00 0a 00 00)
   <idle>-0       4d.h2.   119.323166: scsi_dispatch_cmd_done: host_no=0
channel=0 id=0 lun=0 data_sgl=20 prot_sgl=0 prot_op=0x0 driver_tag=19
scheduler_tag=40 cmnd=(READ_10 lba=505083904 txlen=2560 protect=0 raw=28
00 1e 1a f8 00 00 0a 00 00) result=(driver=DRIVER_OK host=0x0
message=COMMAND_COMPLETE status=0x0) sense=(key=0 asc=0 ascq=0)
   <idle>-0       4..s1.   119.323172: block_rq_complete:    8,0 R ()
505083904 + 2560 0x0,0,0 [0]
");
    let words = report.devices[0].words.join(" ");
    assert!(words.contains("1 request waited for, 67.2 ms"), "{words}");
    assert_eq!(report.names.get(2991), Some("test"));
}
