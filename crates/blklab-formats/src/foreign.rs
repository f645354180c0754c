// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people hand over in place of a trace: summaries, histograms, logs, archives. Each is
//! told by words that its program prints, and refused with what would do instead.

use crate::foreign_row::Foreign;
use crate::foreign_sums;
use crate::sums::SumsKind;

/// Single I/Os are needed.
const RECORD: &str =
    "it has no single I/Os; record them with blktrace, biosnoop or `blklab record`";

/// What is known, the surest first.
static KNOWN: &[Foreign] = &[
    Foreign {
        what: "blkparse's summary without its events",
        instead: "print them too (blkparse without -q or -O), or give the binary trace",
        marks: &[&["Reads Queued:", "Writes Queued:"], &["Throughput (R/W):"]],
    },
    Foreign {
        what: "fio's terse output",
        instead: "give its normal output or JSON (--output-format=json)",
        marks: &[
            &["\n3;fio-"],
            &["\n5;fio-"],
            &["\n2;fio-"],
            &["terse_version"],
        ],
    },
    Foreign {
        what: "a fio job file",
        instead: "run it with `blklab run`",
        marks: &[
            &["[global]", "="],
            &["ioengine=", "["],
            &["\nrw=", "\n["],
            &["\nreadwrite=", "\n["],
        ],
    },
    Foreign {
        what: "an experiment of blklab",
        instead: "run it with `blklab run`",
        marks: &[&["[workload", "kernel"], &["[[process", "device"]],
    },
    Foreign {
        what: "the output of sar, pidstat or mpstat without disks",
        instead: RECORD,
        marks: &[
            &["DEV ", "tps "],
            &["kB_rd/s"],
            &["CPU ", "%usr"],
            &["CPU ", "%iowait"],
        ],
    },
    Foreign {
        what: "the output of vmstat, dstat or top",
        instead: RECORD,
        marks: &[
            &["procs ", "-memory-"],
            &["swpd ", "free ", "buff"],
            &["-dsk/"],
            &["--dsk/"],
            &["-io/total-"],
            &["load average:", "Tasks:"],
        ],
    },
    Foreign {
        what: "the output of iotop, or of biotop without latencies",
        instead: RECORD,
        marks: &[&["DISK READ", "DISK WRITE"], &["COMM", "MAJ MIN", "Kbytes"]],
    },
    Foreign {
        what: "the output of biopattern, cachestat or funclatency",
        instead: RECORD,
        marks: &[&["%RND", "%SEQ"], &["HITS", "MISSES", "DIRTIES"]],
    },
    Foreign {
        what: "the output of dd or hdparm, or what ioping says at its end",
        instead: RECORD,
        marks: &[
            &["ioping statistics"],
            &["records in", "records out"],
            &["Timing ", "disk reads"],
        ],
    },
    Foreign {
        what: "a log of an application (etcd, PostgreSQL, MySQL)",
        instead: "it says that calls took long, not what they waited for; record with `blklab record` \
                  while it happens, and ask `blklab why` about its moment or its process",
        marks: &[
            &["slow fdatasync"],
            &["apply request took too long"],
            &["checkpoint complete: wrote", "sync="],
            &["InnoDB: page_cleaner", "intended loop took"],
        ],
    },
    Foreign {
        what: "the output of a tool that traces calls (fsyncsnoop, syncsnoop, opensnoop, bcc's trace)",
        instead: "calls are not what disks are asked for; record with blktrace, biosnoop or `blklab record`",
        marks: &[
            &["Tracing fsync()s"],
            &["Tracing sync"],
            &["PID", "TID", "COMM", "FUNC"],
            &["PID", "COMM", "FD ERR", "PATH"],
        ],
    },
    Foreign {
        what: "stacks of tasks that waited (offcputime)",
        instead: "they say in which function tasks waited, not for whose I/O; record with `blklab record` while it \
                  happens, with the events of sched, jbd2, ext4 and writeback",
        marks: &[&["\n    finish_task_switch\n", "\n    schedule\n"]],
    },
    Foreign {
        what: "counters of memory (/proc/meminfo, /proc/vmstat)",
        instead: "they say how much is dirty or under write-back, not what waits for it; record with \
                  `blklab record` and the events of writeback while it is slow",
        marks: &[
            &["\nDirty:", "\nWriteback:"],
            &["\nnr_dirty ", "\nnr_writeback "],
        ],
    },
    Foreign {
        what: "the output of strace without times",
        instead: "with -T it says how long calls took (`blklab why` reads that); what they waited for it does not; record with blktrace, biosnoop or `blklab record`",
        marks: &[
            &["read(", ") = ", "\""],
            &["write(", ") = ", "\""],
            &["fsync(", ") = "],
            &["pread64(", ") = "],
            &["pwrite64(", ") = "],
        ],
    },
    Foreign {
        what: "a kernel's log",
        instead: RECORD,
        marks: &[
            &["Linux version ", "[    0.000000]"],
            &["EXT4-fs ("],
            &["XFS ("],
            &["sd ", ": [sd"],
        ],
    },
    Foreign {
        what: "a report of perf",
        instead: "print the events with `perf script`",
        marks: &[
            &["# Overhead"],
            &["Performance counter stats"],
            &["# Samples:"],
            &["[ perf record:"],
        ],
    },
    Foreign {
        what: "what bpftrace collected in maps",
        instead: RECORD,
        marks: &[&["Attach", " probe", "@"]],
    },
    Foreign {
        what: "the output of nfsiostat",
        instead: "it is about a server behind a network: avg RTT is the server's and the network's, what avg exe \
                  has beyond it is the client's own queue; no disk of this machine is asked. Ask `blklab \
                  why` of the server",
        marks: &[&["avg RTT (ms)"]],
    },
    Foreign {
        what: "the output of ceph osd perf",
        instead: "means of each OSD: one that stands out points at its disk; on its host record with blktrace, \
                  biosnoop or `blklab record`",
        marks: &[&["commit_latency(ms)", "apply_latency(ms)"]],
    },
    Foreign {
        what: "a summary of strace (-c)",
        instead: "it adds up calls; with -T it says how long each took (`blklab why` reads that)",
        marks: &[&["usecs/call", "syscall"]],
    },
    Foreign {
        what: "what a disk says of itself (SMART)",
        instead: "it says how worn it is and which sectors it could not read, not what took long; sectors that \
                  are reallocated, pending or unreadable (UNC) make a disk try again for seconds; record \
                  with blktrace or `blklab record`",
        marks: &[
            &["SMART Error Log"],
            &["SMART/Health Information"],
            &["Smart Log for NVME"],
            &["ATTRIBUTE_NAME", "RAW_VALUE"],
            &["smartctl ", "["],
        ],
    },
    Foreign {
        what: "the output of zpool iostat without latencies",
        instead: "zpool iostat -vl 10 shows how long I/Os wait at the disks and in ZFS's own queues; \
                  `blklab why` says what that means",
        marks: &[&["capacity ", "operations ", "bandwidth"]],
    },
    Foreign {
        what: "a list of disks or their state",
        instead: RECORD,
        marks: &[
            &["MAJ:MIN", "TYPE"],
            &["NAME ", "ROTA", "SCHED"],
            &["Personalities :"],
            &["SMART "],
            &["major minor  #blocks"],
        ],
    },
    Foreign {
        what: "a patch",
        instead: "give the trace in a file of its own",
        marks: &[&["diff --git a/"], &["\n--- a/", "\n+++ b/"]],
    },
    Foreign {
        what: "a web page",
        instead: "save the text of the trace alone",
        marks: &[&["<!DOCTYPE html"], &["<html"], &["<!doctype html"]],
    },
];

/// Files that their first bytes tell.
static MAGIC: &[(&[u8], Foreign)] = &[
    (
        b"PERFILE2",
        Foreign {
            what: "perf.data",
            instead: "print it with `perf script`",
            marks: &[],
        },
    ),
    (
        b"PK\x03\x04",
        Foreign {
            what: "a zip archive",
            instead: "unpack it",
            marks: &[],
        },
    ),
    (
        b"PAR1",
        Foreign {
            what: "a table in Parquet",
            instead: "blklab writes Parquet for other programs; give the trace that it was made \
                      from, or its events as NAME.csv",
            marks: &[],
        },
    ),
    (
        b"BZh",
        Foreign {
            what: "compressed with bzip2",
            instead: "decompress it (gzip, zstd and xz are read as they are)",
            marks: &[],
        },
    ),
    (
        b"\x04\x22\x4d\x18",
        Foreign {
            what: "compressed with lz4",
            instead: "decompress it (gzip, zstd and xz are read as they are)",
            marks: &[],
        },
    ),
];

/// Where a tar archive says that it is one.
const TAR_AT: usize = 257;
static TAR: Foreign = Foreign {
    what: "a tar archive",
    instead: "unpack it",
    marks: &[],
};

static PERFETTO: Foreign = Foreign {
    what: "a Perfetto trace",
    instead: "blklab writes Perfetto for ui.perfetto.dev; give the trace that it was made from, or \
              the ftrace events as text (traceconv systrace)",
    marks: &[],
};

/// So many packets of Perfetto in a row are no chance.
const PERFETTO_PACKETS: usize = 3;

/// Whether a file begins with packets of Perfetto: each is field 1 of the whole, with its length
/// (protos/perfetto/trace/trace.proto).
fn is_perfetto(head: &[u8]) -> bool {
    let mut rest = head;
    for nr in 0..PERFETTO_PACKETS {
        let [0x0a, behind @ ..] = rest else {
            // A short trace may end here.
            return nr > 0 && rest.is_empty() && head.contains(&0);
        };
        let len_bytes = behind.iter().take_while(|b| **b >= 0x80).count() + 1;
        if len_bytes > 4 || behind.len() < len_bytes {
            return false;
        }
        let length = |n: usize, b: &u8| n << 7 | usize::from(b & 0x7f);
        let len = behind[..len_bytes].iter().rev().fold(0, length);
        let Some(next) = behind.get(len_bytes + len..) else {
            // The packet is longer than what was looked at.
            return nr > 0;
        };
        if len == 0 {
            return false;
        }
        rest = next;
    }
    true
}

static OWN_TABLE: Foreign = Foreign {
    what: "a table of requests or bios that blklab wrote",
    instead: "give the trace that it was made from, or its events (trace convert TRACE NAME.csv \
              with its rows of events)",
    marks: &[],
};

/// What something that is no trace seems to be, by what it begins with.
pub(crate) struct Told {
    /// The words for it.
    pub(crate) foreign: &'static Foreign,
    /// The sums that it has.
    pub(crate) sums: Option<SumsKind>,
}

impl From<&'static Foreign> for Told {
    fn from(foreign: &'static Foreign) -> Told {
        Told {
            foreign,
            sums: None,
        }
    }
}

impl From<&'static (SumsKind, Foreign)> for Told {
    fn from((kind, foreign): &'static (SumsKind, Foreign)) -> Told {
        Told {
            foreign,
            sums: Some(*kind),
        }
    }
}

/// Tells it.
pub(crate) fn told(head: &[u8]) -> Option<Told> {
    let by_magic = MAGIC.iter().find(|(magic, _)| head.starts_with(magic));
    if let Some((_, foreign)) = by_magic {
        return Some(foreign.into());
    }
    if head
        .get(TAR_AT..)
        .is_some_and(|at| at.starts_with(b"ustar"))
    {
        return Some((&TAR).into());
    }
    if is_perfetto(head) {
        return Some((&PERFETTO).into());
    }
    if head.contains(&0) {
        return None;
    }
    if let Some(json) = chrome_json(head) {
        return Some(json.into());
    }
    if head.starts_with(b"recording,device,") || head.starts_with(b"recording,request,") {
        return Some((&OWN_TABLE).into());
    }
    if head
        .split(|b| *b == b'\n')
        .take(DISKSTATS_WITHIN)
        .any(is_diskstats)
    {
        return Some((&foreign_sums::DISKSTATS).into());
    }
    // The first line begins like all others.
    let text = [b"\n", head].concat();
    let has = |word: &&str| memchr::memmem::find(&text, word.as_bytes()).is_some();
    let is_text = |known: &Foreign| known.marks.iter().any(|set| set.iter().all(has));
    let of_sums = foreign_sums::KNOWN.iter().find(|(_, known)| is_text(known));
    let told = of_sums.map(Told::from);
    told.or_else(|| KNOWN.iter().find(|known| is_text(known)).map(Told::from))
}

static SYSTRACE_JSON: Foreign = Foreign {
    what: "systrace's JSON, whose events of ftrace are in one string",
    instead: "take the string out: jq -r .systemTraceEvents FILE > trace.txt",
    marks: &[],
};

static CHROME_JSON: Foreign = Foreign {
    what: "JSON for Chrome's trace viewer",
    instead: "give the Perfetto trace (.pftrace), or ftrace's text (of systrace: jq -r \
              .systemTraceEvents FILE)",
    marks: &[],
};

/// Whether this is JSON for Chrome's trace viewer. The lines of ftrace in it are no lines of the
/// file, so that a reader of text would find but one.
pub(crate) fn chrome_json(head: &[u8]) -> Option<&'static Foreign> {
    let text = head.trim_ascii_start();
    if !matches!(text, [b'{' | b'[', ..]) {
        return None;
    }
    let has = |word: &str| memchr::memmem::find(text, word.as_bytes()).is_some();
    if has("\"systemTraceEvents\"") {
        return Some(&SYSTRACE_JSON);
    }
    let is_chrome = has("\"traceEvents\"") || (has("\"ph\"") && has("\"ts\""));
    is_chrome.then_some(&CHROME_JSON)
}

/// Columns of `/proc/diskstats`: of partitions until 2.6.24, of all until 4.17, until 5.4, since.
const DISKSTATS_COLUMNS: [usize; 4] = [7, 14, 18, 20];

/// Lines above the first row: a prompt, a sentence, a fence.
const DISKSTATS_WITHIN: usize = 40;

/// Whether a line is of `/proc/diskstats`: two numbers, a name, and only numbers.
fn is_diskstats(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"> ").unwrap_or(line);
    let mut words = line.split(u8::is_ascii_whitespace);
    let words: Vec<&[u8]> = words.by_ref().filter(|word| !word.is_empty()).collect();
    let is_number = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
    let mut columns = words.iter().enumerate();
    DISKSTATS_COLUMNS.contains(&words.len()) && columns.all(|(i, w)| is_number(w) != (i == 2))
}

#[cfg(test)]
mod tests {
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
        assert!(what("  capacity  operations  bandwidth\n").contains("without latencies"));
        assert!(what("--dsk/sda-----dsk/sda1\n").contains("dstat"));
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
}
