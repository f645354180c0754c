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
        instead: "give its normal output or JSON (fio --output-format=json)",
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
            &["-dsk/"],
            &["-io/total-"],
            &["load average:", "Tasks:"],
        ],
    },
    Foreign {
        what: "the output of iotop without processes, or of biotop without latencies",
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
        what: "stacks of tasks that waited (offcputime, dslower)",
        instead: "they say in which function tasks waited, not for whose I/O; record with `blklab record` while it \
                  happens, with the events of sched, jbd2, ext4 and writeback",
        marks: &[
            &["\n    finish_task_switch\n", "\n    schedule\n"],
            &["finish_task_switch+0x", " schedule+0x"],
        ],
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
            &["START OF SMART DATA SECTION"],
            &["Percentage Used:", "Available Spare:"],
            &["percentage_used", "critical_warning"],
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
mod tests;
