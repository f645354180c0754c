// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes in the shape of I/O: its size, place, order, and what belongs together.

use super::change::Change;
use super::draw::Draw;
use super::planted::Planted;
use super::proof::Proof;
use super::stacks::{NEW, OLD, named, on, on_any, parallel, serial};

/// Contiguous small I/O, submitted together, that may not be merged.
pub(super) fn missed_merge(draw: &mut Draw) -> Planted {
    let mut setup = on(
        draw,
        &[
            "2.6.38", "3.10", "4.19", "5.4", "5.10", "6.1", "6.12", "6.18",
        ],
        "",
    );
    setup.scheduler = if OLD.contains(&setup.kernel) || setup.kernel == "2.6.38" {
        draw.one(&["noop", "deadline"])
    } else {
        draw.one(&["none", "mq-deadline"])
    };
    let depth = draw.one(&[1, 4, 31]);
    serial(&mut setup, draw, depth);
    let (kb, batch) = (draw.one(&[4, 8, 16]), draw.one(&[8, 16]));
    let rw = draw.one(&["read", "write"]);
    setup.job(
        "stream",
        format!(
            "direct=1 rw={rw} bs={kb}k size=512m ioengine=libaio iodepth={batch} \
             iodepth_batch={batch} iodepth_batch_complete_min={batch}"
        ),
    );
    let control = setup.clone();
    Planted {
        setup: setup.with_queue("nomerges", 2),
        control,
        victims: &["stream"],
        culprits: &[],
        also: vec!["deep-queue", "no-request-free", "submit-blocked"],
        proof: &[Proof::MoreCommands(2.0)],
        change: None,
    }
}

/// Large I/O and a small limit.
pub(super) fn split(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["none", "mq-deadline"]);
    let mut setup = on(draw, NEW, scheduler);
    let depth = draw.one(&[4, 16, 31]);
    serial(&mut setup, draw, depth);
    let (kb, limit) = (draw.one(&[512, 1024]), draw.one(&[32, 64, 128]));
    let rw = draw.one(&["randread", "randwrite"]);
    setup.job("large", format!("direct=1 rw={rw} bs={kb}k size=512m"));
    let control = setup.with_queue("max_sectors_kb", 1024);
    Planted {
        setup: setup.with_queue("max_sectors_kb", limit),
        control,
        victims: &[],
        culprits: &[],
        also: vec!["deep-queue"],
        proof: &[Proof::MoreCommands(3.0)],
        change: None,
    }
}

/// A sequential reader without read-ahead.
pub(super) fn no_readahead(draw: &mut Draw) -> Planted {
    let mut setup = on_any(
        draw,
        &["noop", "deadline", "cfq"],
        &["none", "mq-deadline", "kyber"],
    );
    if draw.once_in(2) {
        parallel(&mut setup, draw, 32);
    } else {
        serial(&mut setup, draw, 8);
    }
    let kb = draw.one(&[4, 16, 64]);
    setup.job("import", format!("rw=read bs={kb}k size=256m"));
    let control = setup.clone();
    Planted {
        setup: setup.with_queue("read_ahead_kb", 0),
        control,
        victims: &["import"],
        culprits: &[],
        also: vec![],
        proof: &[Proof::LessDone(1.2)],
        change: None,
    }
}

/// Writes that are no multiple of 4 KiB, or begin inside of one.
pub(super) fn misaligned(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["noop", "deadline"], &["none", "mq-deadline"]);
    serial(&mut setup, draw, 8);
    let bytes = draw.one(&[512_u64, 1024, 2048, 3072, 5120, 6144, 9216]);
    setup.job(
        "writer",
        format!("direct=1 rw=randwrite bs={bytes} size=64m"),
    );
    setup.job(
        "reader",
        "direct=1 rw=randread bs=4k size=256m thinktime=2000",
    );
    let mut control = setup.without("writer");
    control.job("writer", "direct=1 rw=randwrite bs=4k size=64m");
    Planted {
        setup,
        control,
        victims: &[],
        culprits: &[],
        also: vec![],
        proof: &[Proof::Constructed],
        change: None,
    }
}

/// Syncs on a device whose cache has to be emptied.
pub(super) fn flush(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["none", "mq-deadline"]);
    let mut setup = on(draw, NEW, scheduler);
    let device = draw.one(&["sata-7200-2008", "laptop-5400", "sata-7200-2008-1tb"]);
    named(&mut setup, device);
    setup.runtime_ms = 1500;
    let kb = draw.one(&[4, 8, 16, 64]);
    let rw = draw.one(&["write", "randwrite"]);
    setup.job("database", format!("rw={rw} bs={kb}k size=64m fdatasync=1"));
    let control = setup.with_queue("write_cache", "write through");
    Planted {
        setup,
        control,
        victims: &["database"],
        culprits: &[],
        also: vec!["journal-chain"],
        // Without flushes the sync waits for the write into the cache alone.
        proof: &[Proof::LessDone(2.0)],
        change: None,
    }
}

/// Syncs of a file in a journal: the data, then the journal's blocks.
pub(super) fn journal_chain(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["none", "mq-deadline"]);
    let mut setup = on(draw, NEW, scheduler);
    let us = draw.number(12..=40) * 100;
    setup.device = vec![
        ("name", "parallel".to_owned()),
        ("read_ns", "200000".to_owned()),
        ("write_ns", (us * 1000).to_string()),
        ("queue_depth", "32".to_owned()),
    ];
    setup = setup.with_queue("write_cache", "write through");
    setup.runtime_ms = 1500;
    let mut control = setup.clone();
    setup.filesystem = Some("ext4".to_owned());
    let job = "rw=write bs=4k size=64m fsync=1 fallocate=none overwrite=0";
    setup.job("database", job);
    control.job("database", job);
    Planted {
        setup,
        control,
        victims: &["database"],
        culprits: &[],
        also: vec![],
        proof: &[Proof::LessDone(1.5)],
        change: None,
    }
}

/// A small read of which it depends what is read next, on both of its sides.
pub(super) fn dependent_read(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["noop", "deadline"], &["none", "mq-deadline"]);
    parallel(&mut setup, draw, 4);
    let start = draw.number(1..=1000) * 4096;
    let data = draw.one(&[96_u64, 128, 256]);
    let mut ops = Vec::new();
    for i in 0..draw.number(10..=40) {
        let at = start + i * 4096;
        for (sector, sectors) in [(at, 8), (at - data, data), (at + 8, data)] {
            ops.push(format!("[\"read\", [\"sync\"], {sector}, {sectors}]"));
        }
    }
    let process = |more: &str| {
        format!(
            "\n[[processes]]\nname = \"reader\"\npid = 101\n{more}\
             io = {{ pattern = \"mixed\", ops = [{}] }}\n",
            ops.join(", ")
        )
    };
    let mut control = setup.clone();
    setup.processes = process("");
    // All three at a time: the last two do not wait for the first.
    control.processes = process("depth = 3\nrefill = \"all\"\n");
    Planted {
        setup,
        control,
        victims: &["reader"],
        culprits: &[],
        also: vec![],
        proof: &[Proof::Later(1.5)],
        change: None,
    }
}

/// A process whose last request never comes back.
pub(super) fn never_completed(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["noop", "deadline"], &["none", "mq-deadline"]);
    parallel(&mut setup, draw, 16);
    let ms = draw.number(200..=500);
    let rw = draw.one(&["randread", "randwrite"]);
    setup.runtime_ms = 2000;
    setup.job(
        "hung",
        format!("direct=1 rw={rw} bs=4k size=128m runtime={ms}ms"),
    );
    setup.job(
        "other",
        "direct=1 rw=randread bs=4k size=128m thinktime=500",
    );
    Planted {
        control: setup.clone(),
        setup,
        victims: &["hung"],
        culprits: &[],
        also: vec![],
        proof: &[Proof::Constructed],
        change: Some(Change::LoseLast("hung")),
    }
}

/// Requests that the device ends with an error.
pub(super) fn io_error(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["noop", "deadline"], &["none", "mq-deadline"]);
    parallel(&mut setup, draw, 16);
    let rw = draw.one(&["randread", "randwrite"]);
    setup.job("unlucky", format!("direct=1 rw={rw} bs=4k size=128m"));
    let of_thousand = draw.number(2..=30);
    Planted {
        control: setup.clone(),
        setup,
        victims: &["unlucky"],
        culprits: &[],
        also: vec![],
        proof: &[Proof::Constructed],
        change: Some(Change::Fail("unlucky", of_thousand)),
    }
}

/// Sequential readers far from each other on a disk.
pub(super) fn seek_storm(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["noop", "deadline"], &["none", "mq-deadline"]);
    let device = draw.one(&["sata-7200-2008", "laptop-5400", "sas-10k"]);
    named(&mut setup, device);
    setup.runtime_ms = 2500;
    let (kb, direct) = (draw.one(&[64, 128, 256]), draw.one(&[0, 1]));
    for name in ["first", "second", "third"] {
        if name != "third" || draw.once_in(3) {
            setup.job(name, format!("direct={direct} rw=read bs={kb}k size=8g"));
        }
    }
    Planted {
        control: setup.without("second").without("third"),
        setup,
        victims: &["first", "second"],
        culprits: &["first", "second", "third"],
        also: vec![],
        // Two get less together than half of what one gets alone: it is the way from one to the
        // other that takes the time. Where windows of read-ahead are long, they only share.
        proof: &[Proof::Slower(4.0), Proof::LessDone(2.0)],
        change: None,
    }
}

/// I/O a little larger than what goes into one request: a large part and a small rest.
pub(super) fn tails(draw: &mut Draw) -> Planted {
    let scheduler = draw.one(&["none", "mq-deadline"]);
    let mut setup = on(draw, NEW, scheduler);
    let depth = draw.one(&[4, 16]);
    serial(&mut setup, draw, depth);
    let limit = draw.one(&[128, 256, 512]);
    let (more, rw) = (draw.one(&[4, 8]), draw.one(&["randread", "randwrite"]));
    let kb = limit + more;
    setup.job("large", format!("direct=1 rw={rw} bs={kb}k size=512m"));
    let control = setup.with_queue("max_sectors_kb", 1024);
    Planted {
        setup: setup.with_queue("max_sectors_kb", limit),
        control,
        victims: &[],
        culprits: &[],
        also: vec![],
        proof: &[Proof::MoreCommands(1.8)],
        change: None,
    }
}
