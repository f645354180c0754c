// SPDX-License-Identifier: MIT OR Apache-2.0
//! What something that is no trace seems to be.

use super::*;

fn what(text: &str) -> &'static str {
    told(text.as_bytes()).map_or("", |told| told.foreign.what)
}

#[test]
fn texts_by_their_programs() {
    let bcc = "Tracing block device I/O... Hit Ctrl-C to end.\n     usecs               : count     distribution\n         0 -> 1          : 0        |      |\n";
    let bpftrace = "Attaching 4 probes...\n\n@usecs: \n[256, 512)             2 |      |\n[512, 1K)             10 |@      |\n[1K, 2K)             426 |@@@@@@@|\n";
    for text in [bcc, bpftrace] {
        assert!(what(text).starts_with("a histogram"), "{text}");
    }
    let iostat = "Linux 6.1.0 (box)\n\nDevice            r/s     rkB/s   rrqm/s  %rrqm r_await\nsda  1.0 2.0 0 0 0\n";
    assert_eq!(what(iostat), "the output of iostat, sar or gstat");
    assert_eq!(
        what("Device:            tps    kB_read/s    kB_wrtn/s\n"),
        "the output of iostat, sar or gstat"
    );
    let summary = "CPU0 (sda):\n Reads Queued:           0,        0KiB\t Writes Queued:          77,    15968KiB\n";
    assert!(what(summary).starts_with("blkparse's summary"));
    assert_eq!(
        what("[global]\nioengine=libaio\n[a]\nrw=read\n"),
        "a fio job file"
    );
    assert_eq!(
        what("   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n"),
        "/proc/diskstats"
    );
    let slower = "TIME     COMM           PID    T BYTES   OFF_KB   LAT(ms) FILENAME\n";
    assert!(what(slower).contains("ext4slower"));
    assert_eq!(what("PERFILE2\0\0"), "perf.data");
    assert_eq!(what("PAR1\x15\x04"), "a table in Parquet");
    let packet = "\n\x03\x08\0\x01";
    assert_eq!(what(&packet.repeat(4)), "a Perfetto trace");
    assert_eq!(what("\n\nthe disk was slow\n"), "");
    assert!(what("{\"traceEvents\":[{\"name\":\"x\"}]}").contains("Chrome"));
    assert!(what("[{\"ph\":\"X\",\"ts\":1}]").contains("Chrome"));
    let systrace = "{\"systemTraceEvents\":\"fio-50 [001] 1.5: block_bio_queue: 8,0 R 8 + 8\"}";
    assert!(what(systrace).starts_with("systrace's JSON"));
    assert!(what("recording,device,pid\n1,\"8,0\",3\n").contains("requests or bios"));
    assert_eq!(what("the disk was slow yesterday\n"), "");
}

#[test]
fn sums_say_which_they_are() {
    let kind = |text: &str| told(text.as_bytes()).and_then(|told| told.sums);
    for (text, expected) in [
        (
            "some avg10=1.00 avg60=2.00 avg300=3.00 total=4\n",
            SumsKind::Pressure,
        ),
        (
            "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n",
            SumsKind::IoStat,
        ),
        (
            "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n",
            SumsKind::Diskstats,
        ),
        (
            "$ cat /proc/diskstats\n> 8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n",
            SumsKind::Diskstats,
        ),
        ("{\"process_file_io_stats\":[]}", SumsKind::Huatuo),
        ("{\"blockio/read/latency/p99\":1}", SumsKind::Rezolus),
        (
            "{\"sysstat\":{\"hosts\":[{\"disk_device\":\"sda\"}]}}",
            SumsKind::Iostat,
        ),
        ("Device r/s w/s\nsda 1 2\n", SumsKind::Iostat),
        (
            "1:00 DEV tps aqu-sz await\n2:00 sda 1 2 3\n",
            SumsKind::Iostat,
        ),
        ("  Device tps MB/s rqm/s await areq-sz\n", SumsKind::Iostat),
        (
            "device r/s w/s kr/s kw/s wait actv svc_t %w %b\n",
            SumsKind::Iostat,
        ),
        ("L(q) ops/s r/s kBps ms/r %busy Name\n", SumsKind::Iostat),
        (
            "==================== All Devices ====================\n",
            SumsKind::Btt,
        ),
        (
            "  clat (usec): min=2, max=9, avg=4.1, stdev=3\n",
            SumsKind::Fio,
        ),
        ("{\"fio version\":\"fio-3.33\"}", SumsKind::Fio),
        (
            "tank total_wait disk_wait\npool read write\n",
            SumsKind::Zpool,
        ),
        (
            "tank total_wait disk_wait\nlatency read write\n",
            SumsKind::Histogram,
        ),
        ("a_seconds_bucket{le=\"0.1\"} 3\n", SumsKind::Histogram),
        (
            " value  ------------- Distribution ------------- count\n",
            SumsKind::Histogram,
        ),
        (
            "INFO: task db:9 blocked for more than 120 seconds.\n",
            SumsKind::KernelLog,
        ),
        (
            "nvme nvme0: I/O 9 QID 1 timeout, aborting\n",
            SumsKind::KernelLog,
        ),
        (
            "ata1.00: exception Emask 0x0 SAct 0x1\n",
            SumsKind::KernelLog,
        ),
    ] {
        assert_eq!(kind(text), Some(expected), "{text}");
    }
    assert_eq!(kind("slow fdatasync"), None);
}

#[test]
fn disks_and_pools_that_say_little() {
    assert!(what("smartctl 7.3 2022 [x86_64]\nSMART Error Log Version: 1\n").contains("SMART"));
    assert!(what("=== START OF SMART DATA SECTION ===\n").contains("SMART"));
    let dslower = "20:41:44 db 9 25\n  finish_task_switch+0x1\n  schedule+0x29\n";
    assert!(what(dslower).starts_with("stacks of tasks"));
    assert!(what("  capacity  operations  bandwidth\n").contains("without latencies"));
    assert!(what("-dsk/sda- -dsk/sda1\n").contains("dstat"));
    assert!(what("\n3;fio-3.33;job;0\n").starts_with("fio's terse"));
}

#[test]
fn logs_and_stacks_by_their_words() {
    let etcd = "{\"level\":\"warn\",\"msg\":\"slow fdatasync\",\"took\":\"1.6s\"}\n";
    assert!(what(etcd).contains("log of an application"));
    let stacks = "    finish_task_switch\n    schedule\n    wbt_wait\n    -    postgres (9)\n";
    assert!(what(stacks).starts_with("stacks of tasks"));
    assert!(what("MemFree: 1 kB\nDirty: 8 kB\nWriteback: 1 kB\n").starts_with("counters"));
    let calls = "PID    TID    COMM         FUNC             -\n1 1 vim f\n";
    assert!(what(calls).contains("bcc's trace"));
}
