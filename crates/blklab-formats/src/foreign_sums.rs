// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums in place of a trace, by the words that their programs print.

use crate::foreign_row::Foreign;
use crate::sums::SumsKind;

/// What to do with it, and with a trace of the same.
const WHY: &str = "it has no single I/Os; `blklab why FILE` says what it shows; who waited for \
                   whom only a recording does (blktrace, biosnoop, `blklab record`)";

/// What is known, by the words that its program prints.
pub(crate) static KNOWN: &[(SumsKind, Foreign)] = &[
    (
        SumsKind::Histogram,
        Foreign {
            what: "a histogram of latencies or sizes (biolatency, bitesize, bpftrace, Prometheus)",
            instead: WHY,
            marks: &[
                &["|@@", "[", ")"],
                &[": count ", " distribution"],
                &["usecs ", "-> ", ": ", "|*"],
                &[">=(ms) ..", ": I/O", "|Distribution"],
                &["- Distribution -", " count"],
                &["value |---", " count"],
                &["_bucket{", "le=\""],
                &["total_wait", "disk_wait", "\nlatency "],
            ],
        },
    ),
    (
        SumsKind::Iostat,
        Foreign {
            what: "the output of iostat, sar or gstat",
            instead: "it has means of an interval and no single I/Os; `blklab why FILE` says what \
                      they show; who waited for whom only a recording does (blktrace, biosnoop, \
                      `blklab record`)",
            marks: &[
                &["rrqm/s"],
                &["Device", "r/s", "w/s"],
                &["DEV ", "tps ", "await"],
                &["Device", "tps ", "await"],
                &["r/s", "w/s", "kr/s", "kw/s"],
                &["L(q)", "ops/s", "%busy"],
                &["Device", "tps", "_read/s"],
                &["Device", "tps", "_wrtn"],
                &["\"sysstat\"", "\"disk_device\""],
            ],
        },
    ),
    (
        SumsKind::Pressure,
        Foreign {
            what: "io.pressure",
            instead: WHY,
            marks: &[&["some avg10=", " total="]],
        },
    ),
    (
        SumsKind::IoStat,
        Foreign {
            what: "io.stat of control groups",
            instead: WHY,
            marks: &[&["rbytes=", "wbytes=", "rios=", "wios="]],
        },
    ),
    (
        SumsKind::Huatuo,
        Foreign {
            what: "a report of huatuo's iotracing",
            instead: WHY,
            marks: &[
                &["\"process_file_io_stats\""],
                &["\"io_schedule_timeout_stacks\""],
            ],
        },
    ),
    (
        SumsKind::Rezolus,
        Foreign {
            what: "figures of Rezolus",
            instead: WHY,
            marks: &[
                &["blockio_latency"],
                &["blockio_device_latency"],
                &["blockio_total_latency"],
                &["blockio/latency"],
                &["blockio/", "/latency"],
            ],
        },
    ),
    (
        SumsKind::Zpool,
        Foreign {
            what: "the output of zpool iostat",
            instead: WHY,
            marks: &[&["total_wait", "disk_wait"]],
        },
    ),
    (
        SumsKind::Btt,
        Foreign {
            what: "the output of btt",
            instead: "it has sums, no events; `blklab why FILE` says what they show; give the trace that \
                      it was made from",
            marks: &[
                &["==== All Devices ===="],
                &["==== Device Overhead ===="],
                &["\nQ2G ", "\nD2C "],
            ],
        },
    ),
    (
        SumsKind::Fio,
        Foreign {
            what: "the output of fio",
            instead: "it shows how long the application's calls took (clat, sync) and how they are spread, \
                      but not what they waited for, and nobody beside fio; `blklab why FILE` says what \
                      follows from it; record with `blklab record` while the job runs, or give the \
                      job file: `blklab why JOB.fio` runs it",
            marks: &[
                &["Run status group", "(all jobs):"],
                &["clat percentiles"],
                &["clat (", "avg=", "stdev="],
                &["\"fio version\""],
                &["rw=", "ioengine=", "iodepth=", "fio-"],
            ],
        },
    ),
    (
        SumsKind::Calls,
        Foreign {
            what: "times of calls (ext4slower, xfsslower, fileslower, fsyncsnoop, strace -T, ioping, pg_test_fsync)",
            instead: "what calls wait for is not what disks are asked for; `blklab why FILE` says who waited \
                      and for how long; record with blktrace, biosnoop or `blklab record`",
            marks: &[
                &["OFF_KB", "FILENAME"],
                &["LAT(ms)", "FILENAME"],
                &["COMM", "LATms", "FD RVAL"],
                &["ops/sec", "usecs/op"],
                &["sync(", " = ", " <0."],
                &["write(", " = ", " <0."],
                &["read(", " = ", " <0."],
                &["write64(", " = ", " <0."],
                &["read64(", " = ", " <0."],
                &["<<< ", "request=", "time="],
                &[">>> ", "request=", "time="],
            ],
        },
    ),
    (
        SumsKind::Processes,
        Foreign {
            what: "the output of pidstat -d, biotop or iotop",
            instead: WHY,
            marks: &[
                &["PID", "kB_wr/s"],
                &["COMM", "MAJ MIN DISK", "AVGms"],
                &["TID", "DISK READ", "DISK WRITE", "COMMAND"],
            ],
        },
    ),
    (
        SumsKind::KernelLog,
        Foreign {
            what: "a kernel's log of hung tasks, stacks or errors",
            instead: "it shows which task waited in which function, and what drivers said; `blklab why \
                      FILE` says what that means; what the disk did meanwhile only a recording \
                      does (blktrace, `blklab record`)",
            marks: &[
                &["blocked for more than", " seconds"],
                &["INFO: task "],
                &["Call Trace:"],
                &["[<0>] "],
                &["I/O error, dev "],
                &[" QID ", " timeout, "],
                &["ata", "Emask 0x"],
                &["attempting task abort"],
                &["uas_eh_abort_handler"],
                &["hostbyte=DID_"],
                &["I/O Error (sct 0x"],
                &["timing out command, waited"],
                &[": Timeout waiting for hardware interrupt"],
            ],
        },
    ),
];

/// `/proc/diskstats`, told by its columns.
pub(crate) static DISKSTATS: (SumsKind, Foreign) = (
    SumsKind::Diskstats,
    Foreign {
        what: "/proc/diskstats",
        instead: WHY,
        marks: &[],
    },
);
