// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes in what somebody has set: tunables of schedulers, priorities, control groups, the
//! depth of a device.

use super::draw::Draw;
use super::planted::Planted;
use super::proof::Proof;
use super::setup::Setup;
use super::stacks::{named, on, on_any, parallel, serial};

/// Releases whose mq-deadline has classes of priority and `async_depth`, in `iosched` up to
/// 6.18.
const WITH_CLASSES: &[&str] = &["6.1", "6.6", "6.12", "6.18"];

/// Somebody who reads one block at a time.
const READER: &str = "direct=1 rw=randread bs=4k size=256m";

/// A job with many random I/Os at a time.
fn crowd(rw: &str, kb: u64, many: u64) -> String {
    format!("direct=1 rw={rw} bs={kb}k size=512m ioengine=libaio iodepth={many}")
}

/// A cause that is a setting: with it and without.
fn setting(
    setup: Setup,
    control: Setup,
    victims: &'static [&'static str],
    proof: &'static [Proof],
) -> Planted {
    Planted {
        also: vec!["deep-queue"],
        ..Planted::new(setup, control, victims, proof)
    }
}

/// Batches of writes that go on for long before a read has its turn.
pub(super) fn large_batches(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["deadline"], &["mq-deadline"]);
    serial(&mut setup, draw, 1);
    setup = setup.with_queue("nr_requests", 256);
    setup.job("reader", READER);
    let (kb, many) = (draw.one(&[16, 64]), draw.one(&[64, 128]));
    setup.job("writer", crowd("randwrite", kb, many));
    let mut control = setup.clone();
    setup.tunables = vec![("fifo_batch", draw.number(64..=512).to_string())];
    control.tunables = vec![("fifo_batch", "1".to_owned())];
    Planted {
        culprits: &["writer"],
        also: vec!["deep-queue", "overtaken", "no-request-free"],
        ..setting(setup, control, &["reader"], &[Proof::Slower(3.0)])
    }
}

/// Few of the tags for writes: mq-deadline keeps the others free for reads.
pub(super) fn async_depth(draw: &mut Draw) -> Planted {
    let mut setup = on(draw, WITH_CLASSES, "mq-deadline");
    parallel(&mut setup, draw, 64);
    setup = setup.with_queue("nr_requests", 64);
    setup = setup.with_queue("wbt_lat_usec", 0);
    let many = draw.one(&[16, 32]);
    setup.job("writer", crowd("randwrite", 4, many));
    setup.job("reader", READER);
    let control = setup.clone();
    let depth = draw.one(&[1, 2, 4]).to_string();
    // From 7.0 on it is a file of the queue.
    if setup.kernel == "7.3" {
        setup.queue.push(("async_depth", depth));
    } else {
        setup.tunables.push(("async_depth", depth));
    }
    setting(setup, control, &["writer"], &[Proof::Slower(2.0)])
}

/// Kyber takes tokens from writes since reads miss a target that the device cannot meet.
pub(super) fn kyber_tokens(draw: &mut Draw) -> Planted {
    let mut setup = on(draw, super::stacks::NEW, "kyber");
    parallel(&mut setup, draw, 256);
    setup = setup.with_queue("nr_requests", 256);
    setup = setup.with_queue("wbt_lat_usec", 0);
    setup.runtime_ms = 1500;
    let (readers, writers) = (draw.one(&[4, 16]), draw.one(&[96, 128]));
    setup.job("reader", crowd("randread", 4, readers));
    setup.job("writer", crowd("randwrite", 4, writers));
    let control = setup.clone();
    let ns = draw.one(&[10_000_u64, 30_000]).to_string();
    setup.tunables = vec![("read_lat_nsec", ns)];
    Planted {
        culprits: &["reader"],
        ..setting(setup, control, &["writer"], &[Proof::Slower(1.5)])
    }
}

/// A process of the idle class beside one that always has something.
pub(super) fn idle_class(draw: &mut Draw) -> Planted {
    let mut setup = on(draw, WITH_CLASSES, "mq-deadline");
    serial(&mut setup, draw, 1);
    setup = setup.with_queue("nr_requests", 128);
    setup.runtime_ms = 2000;
    let many = draw.number(8..=32);
    setup.job("hog", crowd("randread", 8, many));
    let mut control = setup.clone();
    setup.job("lowly", format!("{READER} prioclass=3"));
    control.job("lowly", READER);
    if draw.once_in(2) {
        let ms = draw.one(&[200_u64, 500]).to_string();
        setup.tunables.push(("prio_aging_expire", ms.clone()));
        control.tunables.push(("prio_aging_expire", ms));
    }
    Planted {
        culprits: &["hog"],
        ..setting(setup, control, &["lowly"], &[Proof::Slower(3.0)])
    }
}

/// A process of a lower class that has to become old first.
pub(super) fn prio_aging(draw: &mut Draw) -> Planted {
    let mut setup = on(draw, WITH_CLASSES, "mq-deadline");
    serial(&mut setup, draw, 1);
    setup = setup.with_queue("nr_requests", 128);
    setup.runtime_ms = 3000;
    let many = draw.number(8..=32);
    setup.job(
        "urgent",
        format!("{} prioclass=1", crowd("randread", 8, many)),
    );
    setup.job("usual", READER);
    let mut control = setup.clone();
    let ms = draw.number(300..=900);
    setup.tunables = vec![("prio_aging_expire", ms.to_string())];
    control.tunables = vec![("prio_aging_expire", "10".to_owned())];
    Planted {
        culprits: &["urgent"],
        ..setting(setup, control, &["usual"], &[Proof::Slower(3.0)])
    }
}

/// Groups of different weight under BFQ.
pub(super) fn bfq_weight(draw: &mut Draw) -> Planted {
    let mut setup = on(draw, super::stacks::NEW, "bfq");
    serial(&mut setup, draw, 1);
    setup.queue = vec![
        ("rotational", "1".to_owned()),
        ("nr_requests", "128".to_owned()),
    ];
    setup.tunables = vec![("low_latency", "0".to_owned())];
    setup.runtime_ms = 2000;
    let many = draw.one(&[8, 32]);
    setup.job("light", format!("{READER} cgroup=light"));
    setup.job(
        "heavy",
        format!("{} cgroup=heavy", crowd("randread", 8, many)),
    );
    let mut control = setup.clone();
    let weight = draw.one(&[500_u64, 1000]);
    let groups = |light: u64, heavy: u64| {
        vec![
            ("light", "io.bfq.weight", light.to_string()),
            ("heavy", "io.bfq.weight", heavy.to_string()),
        ]
    };
    setup.cgroups = groups(10, weight);
    control.cgroups = groups(100, 100);
    Planted {
        culprits: &["heavy"],
        ..setting(setup, control, &["light"], &[Proof::Slower(2.0)])
    }
}

/// Groups of different weight under CFQ.
pub(super) fn cfq_weight(draw: &mut Draw) -> Planted {
    let mut setup = on(draw, &["2.6.33", "3.10", "4.19"], "cfq");
    serial(&mut setup, draw, 1);
    setup.queue = vec![
        ("rotational", "1".to_owned()),
        ("nr_requests", "128".to_owned()),
    ];
    setup.runtime_ms = 2000;
    let many = draw.one(&[8, 32]);
    setup.job("light", format!("{READER} cgroup=light"));
    setup.job(
        "heavy",
        format!("{} cgroup=heavy", crowd("randread", 8, many)),
    );
    let mut control = setup.clone();
    let groups = |light: u64, heavy: u64| {
        vec![
            ("light", "blkio.weight", light.to_string()),
            ("heavy", "blkio.weight", heavy.to_string()),
        ]
    };
    setup.cgroups = groups(100, 1000);
    control.cgroups = groups(500, 500);
    Planted {
        culprits: &["heavy"],
        ..setting(setup, control, &["light"], &[Proof::Slower(1.5)])
    }
}

/// io.cost gives a group a small share of the device.
pub(super) fn io_cost(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["none", "mq-deadline"]);
    let mut setup = on(draw, &["5.10", "6.1", "6.6", "6.12", "6.18"], scheduler);
    setup.device = vec![
        ("name", "parallel".to_owned()),
        ("read_ns", (draw.number(20..=60) * 10_000).to_string()),
        ("queue_depth", "64".to_owned()),
    ];
    setup = setup.with_queue("wbt_lat_usec", 0);
    setup.runtime_ms = 2500;
    let iops = draw.number(3..=8) * 1000;
    let many = draw.one(&[4, 8]);
    setup.job(
        "light",
        format!("{} cgroup=light", crowd("randread", 4, many)),
    );
    setup.job(
        "heavy",
        format!("{} cgroup=heavy", crowd("randread", 4, 4 * many)),
    );
    let mut control = setup.clone();
    let qos = "enable=1 rpct=0 rlat=100000 wpct=0 wlat=100000 min=100 max=100";
    let model = format!(
        "rbps=4000000000 rseqiops={iops} rrandiops={iops} wbps=4000000000 wseqiops={iops} \
         wrandiops={iops}"
    );
    setup.cgroups = vec![
        ("/", "io.cost.qos", qos.to_owned()),
        ("/", "io.cost.model", model),
        ("light", "io.weight", "50".to_owned()),
        ("heavy", "io.weight", draw.one(&[400_u64, 1000]).to_string()),
    ];
    control.cgroups.clear();
    Planted {
        also: vec!["deep-queue", "no-request-free"],
        culprits: &["heavy"],
        // Both are held to their share.
        ..setting(setup, control, &["light", "heavy"], &[Proof::LessDone(1.5)])
    }
}

/// io.latency holds a group back, since another one misses its target.
pub(super) fn io_latency(draw: &mut Draw) -> Planted {
    let mut setup = on(draw, super::stacks::NEW, "none");
    serial(&mut setup, draw, 64);
    setup = setup.with_queue("wbt_lat_usec", 0);
    setup.runtime_ms = 6000;
    let many = draw.one(&[16, 32]);
    setup.job("web", format!("{READER} cgroup=web"));
    setup.job(
        "batch",
        format!("{} cgroup=batch", crowd("randread", 4, many)),
    );
    setup.cgroups = vec![("batch", "io.latency", "target=0".to_owned())];
    let control = setup.clone();
    let us = draw.number(10..=20) * 100;
    setup
        .cgroups
        .push(("web", "io.latency", format!("target={us}")));
    Planted {
        also: vec!["deep-queue", "behind-other"],
        ..setting(setup, control, &["batch"], &[Proof::LessDone(1.2)])
    }
}

/// A process waits in its own io_submit: it keeps more on its way than the queue has requests.
pub(super) fn io_submit(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["noop", "deadline"], &["mq-deadline"]);
    parallel(&mut setup, draw, 64);
    let many = draw.one(&[64, 128]);
    setup.job("submitter", crowd("randread", 4, many));
    let control = setup.with_queue("nr_requests", 256);
    let setup = setup.with_queue("nr_requests", draw.one(&[4, 8, 16]));
    Planted {
        culprits: &["submitter"],
        ..setting(setup, control, &["submitter"], &[Proof::LessDone(2.0)])
    }
}

/// A disk that takes one command at a time, below a process that has many.
pub(super) fn no_ncq(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["noop"], &["none"]);
    let device = draw.one(&["sata-7200-2008", "laptop-5400"]);
    named(&mut setup, device);
    setup.runtime_ms = 2500;
    let many = draw.one(&[16, 31]);
    setup = setup.with_queue("nr_requests", 128);
    setup.job("database", crowd("randread", 4, many));
    let mut control = setup.clone();
    setup.device.push(("queue_depth", "1".to_owned()));
    control.device.push(("queue_depth", "31".to_owned()));
    setting(setup, control, &["database"], &[Proof::Slower(1.3)])
}

/// The anticipatory scheduler waits for the next read of a process that thinks.
pub(super) fn anticipation(draw: &mut Draw) -> Planted {
    let mut setup = on(draw, &["2.6.18", "2.6.24", "2.6.28"], "anticipatory");
    serial(&mut setup, draw, 1);
    let think_us = draw.number(10..=40) * 100;
    setup.job(
        "thinker",
        format!("direct=1 rw=read bs=4k size=256m thinktime={think_us}"),
    );
    setup.job("waiter", "direct=1 rw=read bs=16k size=256m");
    let mut control = setup.clone();
    control.tunables.push(("antic_expire", "0".to_owned()));
    Planted {
        culprits: &["thinker", "waiter"],
        also: vec!["behind-other"],
        ..setting(
            setup,
            control,
            &["waiter", "thinker"],
            &[Proof::Slower(1.3), Proof::Mean(1_000_000)],
        )
    }
}
