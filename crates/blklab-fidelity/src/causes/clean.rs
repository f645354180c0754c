// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios with nothing wrong: nobody waits longer than the device takes, and the
//! device gets no more commands than it needs.

use super::draw::Draw;
use super::setup::Setup;
use super::stacks::{named, on_any, parallel, serial};

/// A sort of scenario: its name, and how one is drawn.
type Sort = (&'static str, fn(&mut Draw) -> Setup);

/// The sorts.
pub(super) const SORTS: &[Sort] = &[
    ("one-at-a-time", one_at_a_time),
    ("several-beside", several_beside),
    ("rate-limited", rate_limited),
    ("streams", streams),
    ("page-cache", page_cache),
    ("write-back", write_back),
    ("syncs", syncs),
    ("disk", disk),
    ("harmless-setting", harmless_setting),
    ("few-beside", few_beside),
    ("streams-on-flash", streams_on_flash),
];

fn any(draw: &mut Draw) -> Setup {
    on_any(
        draw,
        &["noop", "deadline", "cfq", "anticipatory"],
        &["none", "mq-deadline", "kyber", "bfq"],
    )
    .existing()
}

impl Setup {
    /// The anticipatory scheduler went with 2.6.33.
    fn existing(mut self) -> Setup {
        if self.scheduler == "anticipatory"
            && !self.kernel.starts_with("2.6.1")
            && !self.kernel.starts_with("2.6.2")
        {
            self.scheduler = "deadline";
        }
        self
    }
}

/// One process that waits for each of its I/Os.
fn one_at_a_time(draw: &mut Draw) -> Setup {
    let mut setup = any(draw);
    if draw.once_in(2) {
        serial(&mut setup, draw, 8);
    } else {
        parallel(&mut setup, draw, 32);
    }
    let rw = draw.one(&["randread", "randwrite", "read", "write", "randrw"]);
    let kb = draw.one(&[4, 8, 64, 128]);
    let think_us = draw.one(&[0, 0, 100, 2000]);
    setup.job(
        "single",
        format!("direct=1 rw={rw} bs={kb}k size=256m thinktime={think_us}"),
    );
    setup
}

/// Several on a device that takes no notice.
fn several_beside(draw: &mut Draw) -> Setup {
    let mut setup = on_any(
        draw,
        &["noop", "deadline"],
        &["none", "mq-deadline", "kyber"],
    );
    parallel(&mut setup, draw, 64);
    for name in ["first", "second", "third", "fourth"] {
        let rw = draw.one(&["randread", "randwrite", "randrw"]);
        let kb = draw.one(&[4, 16, 64]);
        setup.job(name, format!("direct=1 rw={rw} bs={kb}k size=128m"));
    }
    setup
}

/// Load that leaves the device half idle.
fn rate_limited(draw: &mut Draw) -> Setup {
    let mut setup = on_any(
        draw,
        &["noop", "deadline"],
        &["none", "mq-deadline", "kyber"],
    );
    if draw.once_in(2) {
        parallel(&mut setup, draw, 32);
    } else {
        serial(&mut setup, draw, 16);
    }
    for name in ["reader", "writer"] {
        let rw = if name == "reader" {
            "randread"
        } else {
            "randwrite"
        };
        let iops = draw.number(50..=300);
        setup.job(
            name,
            format!("direct=1 rw={rw} bs=4k size=128m rate_iops={iops}"),
        );
    }
    setup
}

/// A sequential reader or writer of large blocks.
fn streams(draw: &mut Draw) -> Setup {
    let mut setup = any(draw);
    serial(&mut setup, draw, 4);
    let rw = draw.one(&["read", "write"]);
    let kb = draw.one(&[128, 256]);
    setup.job("stream", format!("direct=1 rw={rw} bs={kb}k size=1g"));
    setup
}

/// A reader through the page cache, with read-ahead.
fn page_cache(draw: &mut Draw) -> Setup {
    let mut setup = any(draw);
    if draw.once_in(2) {
        parallel(&mut setup, draw, 32);
    } else {
        serial(&mut setup, draw, 8);
    }
    let kb = draw.one(&[4, 16, 64, 128]);
    setup.job("copy", format!("rw=read bs={kb}k size=512m"));
    setup
}

/// A writer into the page cache; nobody waits for what is written back.
fn write_back(draw: &mut Draw) -> Setup {
    let mut setup = on_any(
        draw,
        &["noop", "deadline", "cfq"],
        &["none", "mq-deadline", "kyber"],
    );
    parallel(&mut setup, draw, 32);
    let mb = draw.number(8..=64);
    let rw = draw.one(&["write", "randwrite"]);
    setup.job(
        "editor",
        format!("rw={rw} bs=16k size={mb}m thinktime=500 end_fsync=0"),
    );
    setup.vm = vec![
        ("dirty_writeback_centisecs", "20".to_owned()),
        ("dirty_expire_centisecs", "30".to_owned()),
    ];
    setup
}

/// Syncs on a device without a volatile cache and a file that needs no journal.
fn syncs(draw: &mut Draw) -> Setup {
    let mut setup = on_any(draw, &["noop", "deadline"], &["none", "mq-deadline"]);
    parallel(&mut setup, draw, 32);
    let kb = draw.one(&[4, 8, 16]);
    setup.job(
        "database",
        format!("rw=randwrite bs={kb}k size=64m fdatasync=1"),
    );
    setup
}

/// A disk that seeks, and one process that has it for itself.
fn disk(draw: &mut Draw) -> Setup {
    let mut setup = any(draw);
    let device = draw.one(&[
        "sata-7200-2008",
        "laptop-5400",
        "sas-15k",
        "ssd-x25m",
        "sata-ssd",
        "nvme-datacenter",
    ]);
    named(&mut setup, device);
    let rw = draw.one(&["randread", "read"]);
    let kb = draw.one(&[4, 16, 64]);
    setup.job("single", format!("direct=1 rw={rw} bs={kb}k size=1g"));
    setup.runtime_ms = 1500;
    setup
}

/// A setting that could do harm, and a load that it does none to.
fn harmless_setting(draw: &mut Draw) -> Setup {
    let mut setup = any(draw);
    serial(&mut setup, draw, 8);
    // The first two are about kernels of their own.
    let first = if draw.kernel().is_some() { 2 } else { 0 };
    match draw.number(first..=5) {
        0 => {
            // What is far apart is not merged anyway.
            setup.kernel = draw.one(&["2.6.38", "4.19"]);
            setup.scheduler = draw.one(&["noop", "deadline", "cfq"]);
            setup.queue.push(("nomerges", "2".to_owned()));
            setup.job("single", "direct=1 rw=randread bs=4k size=256m");
        }
        3 => {
            // Small I/O fits into a small limit.
            setup.queue.push(("max_sectors_kb", "64".to_owned()));
            setup.job("single", "direct=1 rw=randrw bs=16k size=256m");
        }
        2 => {
            // Read-ahead is of no use where nothing is sequential.
            setup.queue.push(("read_ahead_kb", "0".to_owned()));
            setup.job("single", "rw=randread bs=4k size=512m");
        }
        1 => {
            // A limit far above what is asked for.
            setup.kernel = "6.12";
            setup.scheduler = draw.one(&["none", "mq-deadline"]);
            setup.cgroups = vec![("tenant", "io.max", "riops=50000".to_owned())];
            setup.job(
                "tenant",
                "direct=1 rw=randread bs=4k size=256m cgroup=tenant",
            );
        }
        4 => {
            // A scheduler that idles, and nobody else who could wait.
            setup.scheduler = if super::stacks::OLD.contains(&setup.kernel) {
                "cfq"
            } else {
                "bfq"
            };
            setup.queue.push(("rotational", "1".to_owned()));
            setup.job("thinker", "direct=1 rw=read bs=4k size=256m thinktime=3000");
        }
        _ => {
            // One request at a time never meets the end of a small pool.
            setup.queue.push(("nr_requests", "4".to_owned()));
            setup.job("single", "direct=1 rw=randread bs=4k size=256m");
        }
    }
    setup
}

/// Two or three that share a device fairly, one request at a time each.
fn few_beside(draw: &mut Draw) -> Setup {
    let mut setup = on_any(
        draw,
        &["noop", "deadline"],
        &["none", "mq-deadline", "kyber"],
    );
    serial(&mut setup, draw, 8);
    let rw = draw.one(&["randread", "randwrite"]);
    for name in ["first", "second", "third"] {
        let kb = draw.one(&[4, 8]);
        if name != "third" || draw.once_in(2) {
            setup.job(name, format!("direct=1 rw={rw} bs={kb}k size=128m"));
        }
    }
    setup
}

/// Streams that take turns where a turn costs nothing.
fn streams_on_flash(draw: &mut Draw) -> Setup {
    let mut setup = on_any(draw, &["noop", "deadline"], &["none", "mq-deadline"]);
    let device = draw.one(&["sata-ssd", "nvme-datacenter", "nvme-consumer"]);
    named(&mut setup, device);
    let kb = draw.one(&[64, 128]);
    for name in ["first", "second"] {
        setup.job(name, format!("rw=read bs={kb}k size=1g"));
    }
    setup
}
