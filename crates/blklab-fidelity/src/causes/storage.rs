// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes in page cache, filesystems and what threads of the kernel do.

use super::draw::Draw;
use super::planted::Planted;
use super::proof::Proof;
use super::setup::Setup;
use super::stacks::{NEW, named, on, on_any};

/// Devices with a cache that a flush empties.
const WITH_CACHE: &[&str] = &["sata-7200-2008", "laptop-5400", "sata-ssd"];

/// A process that appends and waits for a commit of the journal each time.
const COMMITTER: &str = "rw=write bs=4k size=64m fsync=1 fallocate=none overwrite=0";

fn cause(
    setup: Setup,
    control: Setup,
    victims: &'static [&'static str],
    proof: &'static [Proof],
) -> Planted {
    Planted {
        also: vec!["flush", "journal-chain"],
        ..Planted::new(setup, control, victims, proof)
    }
}

/// Dirty limits that are reached early, so that write-back goes on all the time.
fn early_write_back(setup: &mut Setup) {
    setup.vm = vec![
        ("dirty_background_bytes", (8 << 20).to_string()),
        ("dirty_bytes", (64 << 20).to_string()),
    ];
}

/// A commit of ext4 or ext3 waits for data that somebody else wrote, or behind it.
pub(super) fn commit_behind(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["none", "mq-deadline"]);
    let mut setup = on(draw, NEW, scheduler);
    let device = draw.one(&["sata-7200-2008", "sata-ssd", "laptop-5400"]);
    named(&mut setup, device);
    setup.filesystem = Some("ext4".to_owned());
    setup.runtime_ms = 3000;
    early_write_back(&mut setup);
    setup.job("mailer", COMMITTER);
    setup.job("bulk", "rw=write bs=1m size=8g");
    Planted {
        culprits: &["bulk", "flush", "kworker"],
        also: vec![
            "flush",
            "journal-chain",
            "reads-behind-writes",
            "no-request-free",
        ],
        ..cause(
            setup.clone(),
            setup.without("bulk"),
            &["mailer", "jbd2"],
            &[Proof::Slower(3.0)],
        )
    }
}

/// A write-ahead log with fdatasync, readers, and a backup through the page cache.
pub(super) fn wal_beside_backup(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["none", "mq-deadline"]);
    let mut setup = on(draw, &["6.1", "6.6", "6.12", "6.18"], scheduler);
    let device = draw.one(&["nvme-consumer", "nvme-datacenter", "sata-ssd"]);
    named(&mut setup, device);
    setup.filesystem = Some("ext4".to_owned());
    setup.runtime_ms = 2000;
    early_write_back(&mut setup);
    let think_us = draw.one(&[300, 500, 1000]);
    setup.job(
        "wal",
        format!("rw=write bs=8k size=1g fdatasync=1 thinktime={think_us}"),
    );
    let readers = draw.number(2..=4);
    setup.job(
        "tables",
        format!("direct=1 rw=randread bs=8k size=4g numjobs={readers}"),
    );
    setup.job("backup", "rw=write bs=1m size=16g");
    Planted {
        culprits: &["backup", "flush", "kworker"],
        also: vec![
            "reads-behind-writes",
            "no-request-free",
            "behind-other",
            "flush",
            "journal-chain",
            "deep-queue",
        ],
        ..cause(
            setup.clone(),
            setup.without("backup"),
            &["wal", "tables", "jbd2"],
            &[Proof::Slower(1.5), Proof::Longest(5.0)],
        )
    }
}

/// Flushes of a process that syncs delay one that reads.
pub(super) fn flush_storm(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["none", "mq-deadline"]);
    let mut setup = on(draw, NEW, scheduler);
    let device = draw.one(&["sata-7200-2008", "laptop-5400"]);
    named(&mut setup, device);
    setup.runtime_ms = 2000;
    setup.job(
        "reader",
        "direct=1 rw=randread bs=4k size=256m thinktime=500",
    );
    // One write a sync is over before the reader notices: a flush takes long if the cache holds
    // many writes that lie apart.
    let (kb, many) = (draw.one(&[4, 16, 64]), draw.one(&[16, 32, 64]));
    setup.job(
        "syncer",
        format!("rw=randwrite bs={kb}k size=256m fdatasync={many}"),
    );
    let control = setup.without("syncer");
    Planted {
        culprits: &["syncer"],
        also: vec!["journal-chain", "reads-behind-writes"],
        ..cause(setup, control, &["reader"], &[Proof::Slower(4.5)])
    }
}

/// Writes that each have to be safe before the next (O_DSYNC).
pub(super) fn forced_writes(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["none", "mq-deadline"]);
    let mut setup = on(draw, NEW, scheduler);
    let device = draw.one(WITH_CACHE);
    named(&mut setup, device);
    setup.runtime_ms = 2000;
    let kb = draw.one(&[4, 16]);
    setup.job(
        "database",
        format!("direct=1 sync=dsync rw=randwrite bs={kb}k size=128m"),
    );
    let control = setup.with_queue("write_cache", "write through");
    cause(setup, control, &["database"], &[Proof::Slower(2.0)])
}

/// Syncs of an older kernel whose barriers drain the queue.
pub(super) fn barriers(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["noop", "deadline"]);
    let mut setup = on(draw, &["2.6.28", "2.6.33"], scheduler);
    let device = draw.one(&["sata-7200-2008", "laptop-5400"]);
    named(&mut setup, device);
    setup.runtime_ms = 3000;
    setup.filesystem = Some("ext3:barrier=1".to_owned());
    setup.job("mailer", COMMITTER);
    let mut control = setup.clone();
    control.filesystem = Some("ext3:barrier=0".to_owned());
    cause(
        setup,
        control,
        &["mailer", "kjournald"],
        &[Proof::Slower(1.5)],
    )
}

/// A commit of an older ext4 writes what others have written before.
pub(super) fn ordered_data(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["noop", "deadline"]);
    let mut setup = on(draw, &["3.10", "4.19"], scheduler);
    let device = draw.one(&["sata-7200-2008", "laptop-5400"]);
    named(&mut setup, device);
    setup.runtime_ms = 3000;
    setup.filesystem = Some("ext4:delalloc=0".to_owned());
    setup.job("mailer", COMMITTER);
    // Nearly as much as the disk takes: what comes during a commit makes the next one long.
    let (kb, mb) = (draw.one(&[64, 256]), draw.one(&[40, 50, 60]));
    setup.job("bulk", format!("rw=write bs={kb}k size=8g rate={mb}m"));
    Planted {
        culprits: &["bulk", "flush", "jbd2"],
        also: vec![
            "flush",
            "journal-chain",
            "reads-behind-writes",
            "no-request-free",
        ],
        ..cause(
            setup.clone(),
            setup.without("bulk"),
            &["mailer", "jbd2"],
            &[Proof::Slower(2.0)],
        )
    }
}

/// A writer that is held back since its limit of dirty pages is small.
pub(super) fn dirty_limit(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["none", "mq-deadline"]);
    let mut setup = on(draw, NEW, scheduler);
    let device = draw.one(&["sata-7200-2008", "sata-ssd"]);
    named(&mut setup, device);
    setup.runtime_ms = 2000;
    let rw = draw.one(&["write", "randwrite"]);
    setup.job("editor", format!("rw={rw} bs=64k size=1g thinktime=1000"));
    let control = setup.clone();
    let mb = draw.one(&[4_u64, 8, 16]);
    setup.vm = vec![
        ("dirty_background_bytes", (mb << 19).to_string()),
        ("dirty_bytes", (mb << 20).to_string()),
    ];
    cause(setup, control, &["editor"], &[Proof::Slower(3.0)])
}

/// A journal that is too small for what changes: writers wait for room.
pub(super) fn journal_full(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["none", "mq-deadline"]);
    let mut setup = on(draw, NEW, scheduler);
    let device = draw.one(&["sata-7200-2008", "laptop-5400"]);
    named(&mut setup, device);
    setup.runtime_ms = 4000;
    let files = draw.one(&[2000, 4000]);
    setup.job(
        "untar",
        format!("rw=write bs=4k filesize=4k nrfiles={files} create_on_open=1 openfiles=16 fallocate=none"),
    );
    let mut control = setup.clone();
    setup.filesystem = Some("ext4:journal_blocks=1024:data=journal".to_owned());
    control.filesystem = Some("ext4:data=journal".to_owned());
    Planted {
        // To make room, blocks are written where they belong, one by one.
        also: vec!["flush", "journal-chain", "missed-merge", "deep-queue"],
        ..cause(setup, control, &["untar"], &[Proof::Slower(1.5)])
    }
}

/// A sequential reader whose read-ahead is too small to keep the device busy.
pub(super) fn small_readahead(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["noop", "deadline"], &["none", "mq-deadline"]);
    setup.device = vec![
        ("name", "parallel".to_owned()),
        ("read_ns", (draw.number(15..=60) * 10_000).to_string()),
        ("ns_per_sector", draw.number(20..=100).to_string()),
        ("queue_depth", "32".to_owned()),
    ];
    let kb = draw.one(&[4, 8, 16]);
    setup.job("import", format!("rw=read bs={kb}k size=512m"));
    let control = setup.with_queue("read_ahead_kb", 512);
    let setup = setup.with_queue("read_ahead_kb", draw.one(&[4, 8, 16]));
    cause(setup, control, &["import"], &[Proof::LessDone(1.5)])
}

/// Short runs of reads, each of which begins far more read-ahead than it needs.
pub(super) fn large_readahead(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["noop", "deadline"], &["none", "mq-deadline"]);
    // Its transfer is what takes long, not its beginning.
    setup.device = vec![
        ("name", "serial".to_owned()),
        ("read_ns", (draw.number(5..=15) * 10_000).to_string()),
        ("ns_per_sector", draw.number(1500..=4000).to_string()),
        ("queue_depth", "32".to_owned()),
    ];
    setup.runtime_ms = 2000;
    let run = draw.one(&[4, 8]);
    setup.job(
        "records",
        format!("rw=randread:{run} bs=16k size=8g fadvise_hint=0"),
    );
    let control = setup.with_queue("read_ahead_kb", 16);
    let setup = setup.with_queue("read_ahead_kb", draw.one(&[2048, 4096]));
    cause(setup, control, &["records"], &[Proof::LessDone(1.5)])
}

/// A file that is read from its end to its beginning.
pub(super) fn reversed(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["noop", "deadline"], &["none", "mq-deadline"]);
    let device = draw.one(&["sata-7200-2008", "laptop-5400", "sas-10k"]);
    named(&mut setup, device);
    let (sectors, count) = (draw.one(&[16_u64, 64, 128]), draw.number(60..=150));
    let start = draw.number(10_000..=100_000) * 1024;
    let process = |is_backward: bool| {
        let ops: Vec<String> = (0..count)
            .map(|i| if is_backward { count - 1 - i } else { i })
            .map(|i| format!("[\"read\", [\"sync\"], {}, {sectors}]", start + i * sectors))
            .collect();
        format!(
            "\n[[processes]]\nname = \"player\"\npid = 101\nio = {{ pattern = \"mixed\", ops = [{}] }}\n",
            ops.join(", ")
        )
    };
    let mut control = setup.clone();
    setup.processes = process(true);
    control.processes = process(false);
    cause(setup, control, &["player"], &[Proof::Later(2.0)])
}

/// Discards of a device that takes long for them, beside a reader.
pub(super) fn behind_discards(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["none", "mq-deadline"]);
    let mut setup = on(draw, NEW, scheduler);
    let (us, ms) = (draw.number(8..=30) * 10, draw.number(3..=30));
    setup.device = vec![
        ("name", "measured".to_owned()),
        ("channels", draw.one(&[1_u64, 2]).to_string()),
        ("queue_depth", "32".to_owned()),
        ("read", format!("{us}us")),
        ("write", format!("{us}us")),
        ("discard", format!("{ms}ms")),
    ];
    setup.runtime_ms = 1500;
    setup.job(
        "reader",
        "direct=1 rw=randread bs=4k size=256m thinktime=500",
    );
    let (kb, many) = (draw.one(&[64, 512]), draw.one(&[4, 8]));
    setup.job(
        "trimmer",
        format!(
            "filename=/dev/sda direct=1 rw=randtrim bs={kb}k offset=2g size=1g ioengine=libaio \
             iodepth={many} startdelay=400ms"
        ),
    );
    Planted {
        culprits: &["trimmer"],
        also: vec!["small-discards", "deep-queue"],
        ..cause(
            setup.clone(),
            setup.without("trimmer"),
            &["reader"],
            &[Proof::Slower(4.0)],
        )
    }
}

/// A thread of the kernel has work that takes long, beside a reader: the inode tables of a new
/// ext4. It is drawn as a process of the thread's name that does what the thread does.
pub(super) fn lazy_initialisation(draw: &mut Draw) -> Planted {
    thread_beside_reader(draw, "ext4lazyinit", "rw=write bs=512k iodepth=4")
}

/// The same of an array that is rebuilt, as a member sees it.
pub(super) fn resync(draw: &mut Draw) -> Planted {
    thread_beside_reader(draw, "md0_resync", "rw=read bs=512k iodepth=8")
}

/// The same of a filesystem that is checked for damage.
pub(super) fn scrub(draw: &mut Draw) -> Planted {
    thread_beside_reader(draw, "scrub", "rw=randread bs=256k iodepth=16")
}

fn thread_beside_reader(draw: &mut Draw, thread: &'static str, does: &str) -> Planted {
    let mut setup = on_any(draw, &["noop"], &["none"]);
    let device = draw.one(&["sata-7200-2008", "laptop-5400", "sas-10k"]);
    named(&mut setup, device);
    setup.runtime_ms = 2500;
    setup.job(
        "reader",
        "direct=1 rw=randread bs=4k size=1g thinktime=2000",
    );
    setup.job(thread, format!("direct=1 size=8g ioengine=libaio {does}"));
    let control = setup.without(thread);
    let culprits: &'static [&'static str] = match thread {
        "ext4lazyinit" => &["ext4lazyinit"],
        "md0_resync" => &["md0_resync"],
        _ => &["scrub"],
    };
    Planted {
        culprits,
        also: vec!["deep-queue", "seek-storm"],
        ..cause(setup, control, &["reader"], &[Proof::Slower(5.0)])
    }
}
