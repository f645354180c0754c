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
            what: "a histogram of latencies or sizes (biolatency, bitesize, bpftrace)",
            instead: WHY,
            marks: &[
                &["|@@", "[", ")"],
                &[": count ", " distribution"],
                &["usecs ", "-> ", ": ", "|*"],
                &[">=(ms) ..", ": I/O", "|Distribution"],
            ],
        },
    ),
    (
        SumsKind::Iostat,
        Foreign {
            what: "the output of iostat or sar",
            instead: "it has means of an interval and no single I/Os; `blklab why FILE` says what \
                      they show; who waited for whom only a recording does (blktrace, biosnoop, \
                      `blklab record`)",
            marks: &[
                &["rrqm/s"],
                &["Device", "r/s", "w/s"],
                &["DEV ", "tps ", "await"],
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
