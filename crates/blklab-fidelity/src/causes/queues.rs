// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes in queues: who is ahead of whom, in scheduler, pool and device.

use super::draw::Draw;
use super::planted::Planted;
use super::proof::Proof;
use super::setup::Setup;
use super::stacks::{NEW, OLD, WITH_PLUG_TIMER, on, on_any, parallel, serial};
use blklab_trace::truth::Why;

/// Somebody who reads one block at a time.
const READER: &str = "direct=1 rw=randread bs=4k size=256m";

/// A reader beside writes that fill the device.
pub(super) fn reads_behind_writes(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["noop", "deadline"], &["none", "mq-deadline"]);
    let depth = draw.one(&[16, 31, 32, 64]);
    serial(&mut setup, draw, depth);
    setup.job("reader", READER);
    let (kb, many) = (draw.one(&[16, 64, 128, 256]), draw.one(&[24, 32, 64, 128]));
    setup.job(
        "writer",
        format!("direct=1 rw=randwrite bs={kb}k size=512m ioengine=libaio iodepth={many}"),
    );
    Planted {
        control: setup.without("writer"),
        setup,
        victims: &["reader"],
        culprits: &["writer"],
        // The writer's own depth delays it, too.
        also: vec!["deep-queue", "no-request-free"],
        proof: &[Proof::Slower(5.0)],
        change: None,
    }
}

/// A process with one request at a time beside one of the same direction with many.
pub(super) fn behind_other(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["noop"], &["none"]);
    let depth = draw.one(&[32, 64, 128]);
    serial(&mut setup, draw, depth);
    // Nobody sleeps for a request.
    setup = setup.with_queue("nr_requests", depth);
    let many = draw.number(12..=depth - 4);
    setup.job("reader", READER);
    setup.job(
        "crowd",
        format!("direct=1 rw=randread bs=8k size=512m ioengine=libaio iodepth={many}"),
    );
    Planted {
        control: setup.without("crowd"),
        setup,
        victims: &["reader"],
        culprits: &["crowd"],
        also: vec!["deep-queue"],
        proof: &[Proof::Slower(5.0)],
        change: None,
    }
}

/// One process with many requests at a time.
pub(super) fn deep_queue(draw: &mut Draw) -> Planted {
    let mut setup = on_any(
        draw,
        &["noop", "deadline", "cfq"],
        &["none", "mq-deadline", "bfq"],
    );
    let depth = draw.one(&[31, 64]);
    serial(&mut setup, draw, depth);
    let many = draw.number(12..=28);
    let rw = draw.one(&["randread", "randwrite"]);
    let job =
        |many: u64| format!("direct=1 rw={rw} bs=4k size=512m ioengine=libaio iodepth={many}");
    let mut control = setup.clone();
    setup.job("deep", job(many));
    control.job("deep", job(1));
    Planted {
        setup,
        control,
        victims: &["deep"],
        culprits: &[],
        also: vec![],
        proof: &[Proof::Slower(4.0)],
        change: None,
    }
}

/// The requests of a queue are used up by many threads: another process sleeps.
pub(super) fn pool_used_up(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["noop", "deadline"]);
    let setup = on(draw, OLD, scheduler);
    let pool = draw.one(&[8, 16]);
    used_up(draw, setup, pool)
}

/// The tags of a device are used up by many threads: another process sleeps.
pub(super) fn tags_used_up(draw: &mut Draw) -> Planted {
    let setup = on(draw, NEW, "none");
    let tags = draw.one(&[4, 8]);
    used_up(draw, setup, tags)
}

fn used_up(draw: &mut Draw, mut setup: Setup, pool: u64) -> Planted {
    serial(&mut setup, draw, pool.min(8));
    setup = setup.with_queue("nr_requests", pool);
    let threads = 2 * pool + draw.number(4..=24);
    // The pools of the two directions are apart up to 4.20.
    let rw = draw.one(&["randread", "randwrite"]);
    setup.job("victim", format!("direct=1 rw={rw} bs=4k size=256m"));
    setup.job(
        "filler",
        format!("direct=1 rw={rw} bs=16k size=16m ioengine=libaio iodepth=4 numjobs={threads}"),
    );
    Planted {
        control: setup.without("filler"),
        setup,
        victims: &["victim"],
        culprits: &["filler"],
        // Those that have a request are ahead in scheduler and device, too.
        also: vec!["behind-other", "deep-queue"],
        proof: &[Proof::Sleeps(0.3), Proof::Slower(4.0)],
        change: None,
    }
}

/// BFQ and CFQ wait for the next request of a process that thinks.
pub(super) fn idling(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["cfq"], &["bfq"]);
    serial(&mut setup, draw, 1);
    setup.queue.push(("rotational", "1".to_owned()));
    setup.queue.push(("nr_requests", "128".to_owned()));
    if setup.scheduler == "bfq" {
        setup.tunables.push(("low_latency", "0".to_owned()));
    }
    let think_us = draw.number(25..=65) * 100;
    setup.job(
        "thinker",
        format!("direct=1 rw=read bs=4k size=256m thinktime={think_us}"),
    );
    setup.job("waiter", "direct=1 rw=read bs=16k size=256m");
    let mut control = setup.clone();
    control.tunables.push(("slice_idle", "0".to_owned()));
    Planted {
        setup,
        control,
        victims: &["waiter", "thinker"],
        culprits: &["thinker", "waiter"],
        also: vec!["slice", "behind-other"],
        proof: &[
            Proof::Slower(1.3),
            Proof::Waits(&[Why::Idling], 0.25),
            Proof::Mean(1_000_000),
        ],
        change: None,
    }
}

/// BFQ joins the queues of two readers that start together: the one with few requests waits
/// behind the other's. With another priority each keeps its queue.
pub(super) fn bfq_queue_merge(draw: &mut Draw) -> Planted {
    let mut setup = on(draw, NEW, "bfq");
    serial(&mut setup, draw, 1);
    setup.tunables.push(("low_latency", "0".to_owned()));
    setup.queue = vec![
        ("rotational", "0".to_owned()),
        ("nr_requests", "128".to_owned()),
    ];
    setup.runtime_ms = 1500;
    let delay_ms = draw.number(1..=50);
    let (many, few) = (draw.number(16..=40), draw.number(1..=2));
    let job = "direct=1 filename=/dev/sda rw=randread bs=4k norandommap=1 ioengine=libaio";
    let hog = format!("{job} iodepth={many} size=2g");
    let small = format!("{job} iodepth={few} offset=2g size=1g startdelay={delay_ms}ms");
    let mut control = setup.clone();
    setup.job("hog", hog.clone());
    control.job("hog", format!("{hog} prioclass=2 prio=5"));
    for setup in [&mut setup, &mut control] {
        setup.job("small", small.clone());
    }
    Planted {
        setup,
        control,
        victims: &["small"],
        culprits: &["hog"],
        also: vec!["deep-queue"],
        proof: &[Proof::Said("merging with queue"), Proof::Slower(3.0)],
        change: None,
    }
}

/// A process that never unplugs the queue: the timer does.
pub(super) fn plug_timer(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["noop", "deadline"]);
    let mut setup = on(draw, WITH_PLUG_TIMER, scheduler);
    parallel(&mut setup, draw, 4);
    let (think_us, sectors) = (draw.number(0..=20) * 100, draw.one(&[8, 32, 64]));
    let (start, count) = (draw.number(1..=100_000) * 1024, draw.number(20..=150));
    let mut control = setup.clone();
    let process = |unplug: &str| {
        format!(
            "\n[[processes]]\nname = \"reader\"\npid = 101\nunplug = \"{unplug}\"\nthink_ns = \
             {think_us}000\nio = {{ pattern = \"sequential\", rw = \"read\", start = {start}, \
             nsect = {sectors}, count = {count} }}\n"
        )
    };
    setup.processes = process("never");
    control.processes = process("on_wait");
    Planted {
        setup,
        control,
        victims: &["reader"],
        culprits: &[],
        also: vec![],
        proof: &[Proof::Slower(4.0)],
        change: None,
    }
}

/// Slices of a process that has always something queued, under CFQ and BFQ.
pub(super) fn slice(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["cfq"], &["bfq"]);
    serial(&mut setup, draw, 1);
    setup.queue.push(("rotational", "1".to_owned()));
    if setup.scheduler == "bfq" {
        setup.tunables.push(("low_latency", "0".to_owned()));
        setup.tunables.push(("slice_idle", "0".to_owned()));
    }
    setup.queue.push(("nr_requests", "128".to_owned()));
    let many = draw.one(&[16, 32]);
    let think_us = draw.one(&[0, 5000, 20000]);
    setup.job(
        "victim",
        format!("direct=1 rw=randread bs=4k size=256m thinktime={think_us}"),
    );
    setup.runtime_ms = 1500;
    setup.job(
        "hog",
        format!("direct=1 rw=read bs=128k size=1g ioengine=libaio iodepth={many}"),
    );
    Planted {
        control: setup.without("hog"),
        setup,
        victims: &["victim"],
        culprits: &["hog"],
        also: vec!["deep-queue", "behind-other", "missed-merge"],
        proof: &[
            // Until the scheduler decides again, the device is what is waited for.
            Proof::Waits(&[Why::Slice, Why::DeviceFull], 0.6),
            Proof::Mean(15_000_000),
            Proof::Slower(8.0),
        ],
        change: None,
    }
}

/// Deadline schedulers that prefer reads too much.
pub(super) fn writes_starved(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["deadline"], &["mq-deadline"]);
    serial(&mut setup, draw, 1);
    setup.tunables = vec![
        ("writes_starved", draw.number(20..=200).to_string()),
        ("fifo_batch", draw.one(&[16_u64, 32]).to_string()),
        ("write_expire", "100000".to_owned()),
    ];
    setup.job("logger", "direct=1 rw=randwrite bs=4k size=256m");
    let many = draw.number(6..=32);
    setup.job(
        "readers",
        format!("direct=1 rw=randread bs=16k size=512m ioengine=libaio iodepth={many}"),
    );
    Planted {
        control: setup.without("readers"),
        setup,
        victims: &["logger"],
        culprits: &["readers"],
        also: vec!["deep-queue"],
        proof: &[Proof::Slower(4.0), Proof::Waits(&[Why::ReadBatch], 0.5)],
        change: None,
    }
}

/// CFQ's quantum keeps a device that could do more at a time shallow.
pub(super) fn shallow(draw: &mut Draw) -> Planted {
    let mut setup = on(draw, &["2.6.33"], "cfq");
    parallel(&mut setup, draw, 31);
    setup.queue.push(("rotational", "1".to_owned()));
    let many = draw.number(24..=48);
    for name in ["first", "second"] {
        setup.job(
            name,
            format!("direct=1 rw=randread bs=4k size=256m ioengine=libaio iodepth={many}"),
        );
    }
    let mut control = setup.clone();
    control.scheduler = "noop";
    Planted {
        setup,
        control,
        victims: &["first", "second"],
        culprits: &[],
        also: vec!["deep-queue", "slice", "behind-other"],
        proof: &[Proof::Slower(2.0)],
        change: None,
    }
}

/// Write-back throttling aims at less than the device takes for a read: it lets one write after
/// the other through, and a sync waits for each of its pages.
pub(super) fn wbt(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["none", "mq-deadline"]);
    let mut setup = on(draw, NEW, scheduler);
    parallel(&mut setup, draw, 64);
    setup.runtime_ms = 2500;
    setup.queue.push(("nr_requests", "64".to_owned()));
    let pages = draw.one(&[32, 64]);
    setup.job(
        "logger",
        format!("rw=randwrite bs=4k size=256m fdatasync={pages}"),
    );
    setup.job("reader", READER);
    let lat_us = draw.number(1..=4) * 10;
    Planted {
        control: setup.with_queue("wbt_lat_usec", 0),
        setup: setup.with_queue("wbt_lat_usec", lat_us),
        victims: &["logger"],
        culprits: &["reader", "logger", "flush", "kworker"],
        also: vec!["no-request-free", "flush", "journal-chain"],
        proof: &[Proof::Slower(1.5)],
        change: None,
    }
}

/// Dirty pages that are written all at once, beside a reader.
pub(super) fn write_back_burst(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["noop", "deadline"], &["none", "mq-deadline"]);
    let depth = draw.one(&[16, 31, 64]);
    serial(&mut setup, draw, depth);
    setup.runtime_ms = 2000;
    setup.job("reader", READER);
    let (kb, mb) = (draw.one(&[16, 64]), draw.number(32..=256));
    setup.job(
        "editor",
        format!("rw=randwrite bs={kb}k size={mb}m thinktime=300 end_fsync=0"),
    );
    setup.vm = vec![
        (
            "dirty_writeback_centisecs",
            draw.one(&["20", "50"]).to_owned(),
        ),
        ("dirty_expire_centisecs", "30".to_owned()),
    ];
    Planted {
        control: setup.without("editor"),
        setup,
        victims: &["reader"],
        culprits: &[],
        also: vec!["no-request-free"],
        proof: &[Proof::Slower(1.5), Proof::Longest(10.0)],
        change: None,
    }
}

/// A limit of a control group.
pub(super) fn cgroup_limit(draw: &mut Draw) -> Planted {
    let mut setup = on(draw, NEW, "none");
    if draw.once_in(2) {
        setup.scheduler = "mq-deadline";
    }
    parallel(&mut setup, draw, 64);
    setup.runtime_ms = 1500;
    let limit = draw.number(100..=2000);
    let (what, many) = (draw.one(&["riops", "rbps"]), draw.number(1..=16));
    let value = if what == "rbps" { limit * 4096 } else { limit };
    setup.job(
        "tenant",
        format!(
            "direct=1 rw=randread bs=4k size=256m ioengine=libaio iodepth={many} cgroup=tenant"
        ),
    );
    setup.job("free", READER);
    let control = setup.clone();
    setup.cgroups = vec![("tenant", "io.max", format!("{what}={value}"))];
    Planted {
        setup,
        control,
        victims: &["tenant"],
        culprits: &[],
        also: vec![],
        proof: &[Proof::LessDone(1.5)],
        change: None,
    }
}

/// An elevator that goes on upwards while somebody waits below.
pub(super) fn overtaken(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["deadline"], &["mq-deadline"]);
    serial(&mut setup, draw, 1);
    setup = setup.with_queue("nr_requests", 128);
    setup.runtime_ms = 4000;
    let expiry_ms = draw.number(15..=40) * 10;
    setup.tunables = vec![
        ("read_expire", expiry_ms.to_string()),
        ("fifo_batch", draw.one(&[1_u64, 16]).to_string()),
    ];
    // Its file is laid out first, below the other's.
    setup.job("victim", "direct=1 rw=randread bs=4k size=64m");
    let many = draw.number(8..=24);
    setup.job(
        "scan",
        format!("direct=1 rw=read:60k bs=4k size=8g ioengine=libaio iodepth={many}"),
    );
    Planted {
        control: setup.without("scan"),
        setup,
        victims: &["victim"],
        culprits: &["scan"],
        also: vec!["deep-queue"],
        proof: &[Proof::Slower(20.0), Proof::Mean(120_000_000)],
        change: None,
    }
}
