// SPDX-License-Identifier: MIT OR Apache-2.0
//! XFS.

use super::options::CHANGES;
use super::{XfsFeatures, XfsOptions};
use crate::kind::{ATIME, BARRIER, Kind, Mounting, numbers, switch, words};
use blklab_types::Unit;

/// XFS.
pub(crate) const XFS: Kind<XfsOptions> = Kind {
    name: "xfs",
    summary: "XFS: allocation groups, log buffers, delayed allocation",
    page: Some("xfs"),
    options: &[
        BARRIER,
        numbers("logbufs", (2, 8), Unit::Count, "8", "log buffers in memory"),
        words(
            "logbsize",
            &["16384", "32768", "65536", "131072", "262144"],
            "32768",
            "bytes of each buffer, and so of a full log record",
        ),
        numbers(
            "log_blocks",
            (512, 524_288),
            Unit::Blocks,
            "a 2048th of the volume, 2560 to 32768",
            "blocks of 4 KiB of the log on the disk",
        ),
        numbers(
            "agcount",
            (1, 65_536),
            Unit::Count,
            "4, or as many as 1 TiB each need",
            "allocation groups",
        ),
        words(
            "log_memory",
            &["contiguous", "pages"],
            "by release",
            "whether a record has a segment for 64 KiB, or one for each page",
        ),
        switch(
            "lazy_count",
            "0",
            "1: the superblock's counters are not logged with every change",
        ),
        switch(
            "delaylog",
            "0; 1 from 2.6.39",
            "delayed logging, from 2.6.35 on",
        ),
        ATIME,
    ],
    changes: CHANGES,
    choose: options,
    notes,
    ..Kind::PLAIN
};

/// The options of a volume.
fn options(m: &Mounting<'_>) -> XfsOptions {
    let mut o = XfsOptions::new(XfsFeatures::of(m.kernel));
    let number = |key, default| m.number_or(key, default);
    let flag = |key, default| m.flag(key, default);
    o.barrier = flag("barrier", o.barrier) && (o.features.flush_fua || m.orders_writes);
    o.log_buffers = number("logbufs", o.log_buffers);
    o.log_buffer_bytes = number("logbsize", o.log_buffer_bytes);
    o.log_blocks = m.number("log_blocks");
    o.features.contiguous_log_buffers = match m.option("log_memory") {
        Some(memory) => memory == "contiguous",
        None => o.features.contiguous_log_buffers,
    };
    o.ag_count = m.number("agcount").and_then(|n| u32::try_from(n).ok());
    o.lazy_count = flag("lazy_count", o.lazy_count);
    o.delayed_logging = flag("delaylog", o.delayed_logging) && o.features.has_delayed_logging;
    o.atime = m.atime(o.atime);
    o
}

/// What the mount says.
fn notes(m: &Mounting<'_>) -> Vec<String> {
    let o = options(m);
    let mut notes = Vec::new();
    if !o.barrier && m.number("barrier") != Some(0) {
        notes.push(
            "xfs: the device below refuses barriers: they are off after the trial at mount"
                .to_owned(),
        );
    }
    if !o.delayed_logging && m.number("delaylog") == Some(1) {
        notes.push("xfs: this kernel has no delayed logging: delaylog does nothing".to_owned());
    }
    notes
}
