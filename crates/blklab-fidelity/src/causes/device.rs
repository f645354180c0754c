// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes below the queue: the device, its driver, what it is asked to discard.

use super::change::Change;
use super::draw::Draw;
use super::planted::Planted;
use super::proof::Proof;
use super::setup::Setup;
use super::stacks::{on, on_any, parallel};

/// Schedulers that hand over what they have.
const PLAIN: (&[&str], &[&str]) = (&["noop", "deadline"], &["none", "mq-deadline"]);

/// A device that works on several commands at a time, whose times are drawn from quantiles.
fn measured(setup: &mut Setup, channels: u64, quantiles: String) {
    setup.device = vec![
        ("name", "measured".to_owned()),
        ("channels", channels.to_string()),
        ("queue_depth", "32".to_owned()),
        ("read", quantiles.clone()),
        ("write", quantiles),
    ];
}

/// Two parts of the commands, in thousandths, and their quickest and slowest in us.
fn quantiles(normal: [u64; 2], slow: [u64; 2], part: u64) -> String {
    let percent = |n: u64| format!("{}.{}", n / 10, n % 10);
    let (end, begin) = (percent(1000 - part), percent(1001 - part));
    let [quick, usual] = normal;
    let [long, longest] = slow;
    format!("0:{quick}us/{end}:{usual}us/{begin}:{long}us/100:{longest}us")
}

/// One to three processes that each wait for their I/Os.
fn few(setup: &mut Setup, draw: &mut Draw, most: u64) {
    let many = draw.number(1..=most);
    for name in ["first", "second", "third"].iter().take(many as usize) {
        let rw = draw.one(&["randread", "randwrite", "randrw"]);
        let kb = draw.one(&[4, 16]);
        setup.job(name, format!("direct=1 rw={rw} bs={kb}k size=128m"));
    }
}

/// A device that takes long for some requests, whatever it has to do.
pub(super) fn device_slow(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, PLAIN.0, PLAIN.1);
    setup.runtime_ms = draw.number(1500..=3000);
    let (us, ms) = (draw.number(8..=30) * 10, draw.number(3..=15) * 10);
    let part = draw.number(5..=30);
    let channels = draw.number(4..=16);
    few(&mut setup, draw, 3);
    let mut control = setup.clone();
    measured(&mut control, channels, format!("{us}us"));
    let tail = [ms * 1000, (ms + 20) * 1000];
    let slow = quantiles([us, us + 20], tail, part);
    measured(&mut setup, channels, slow);
    Planted {
        setup,
        control,
        victims: &["first", "second", "third"],
        culprits: &[],
        also: vec![],
        proof: &[Proof::Slower(1.5)],
        change: None,
    }
}

/// A limit of the rate below the kernel: what is above it waits the same time.
pub(super) fn rate_capped(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, PLAIN.0, PLAIN.1);
    setup.runtime_ms = draw.number(1500..=3000);
    let (us, ms) = (draw.number(8..=30) * 10, draw.number(15..=60));
    let part = draw.number(35..=70) * 10;
    few(&mut setup, draw, 3);
    let mut control = setup.clone();
    measured(&mut control, 32, format!("{us}us"));
    let capped = quantiles([us, us + 20], [ms * 1000, ms * 1010], part);
    measured(&mut setup, 32, capped);
    Planted {
        setup,
        control,
        victims: &["first", "second", "third"],
        culprits: &[],
        also: vec![],
        proof: &[Proof::Slower(4.0)],
        change: None,
    }
}

/// Nobody runs the queue for a while, though the device has nothing to do.
pub(super) fn held_back(draw: &mut Draw) -> Planted {
    idle_device(draw, |every, ns| Change::Stall { every, ns })
}

/// The driver gives a request back though the device has nothing to do.
pub(super) fn requeued(draw: &mut Draw) -> Planted {
    idle_device(draw, |every, ns| Change::Requeue { every, ns })
}

fn idle_device(draw: &mut Draw, change: impl Fn(u64, u64) -> Change) -> Planted {
    let mut setup = on_any(draw, PLAIN.0, PLAIN.1);
    parallel(&mut setup, draw, 32);
    let rw = draw.one(&["randread", "randwrite", "randrw"]);
    setup.job("victim", format!("direct=1 rw={rw} bs=4k size=128m"));
    let (every, ms) = (draw.number(5..=60), draw.number(3..=40));
    Planted {
        control: setup.clone(),
        setup,
        victims: &["victim"],
        culprits: &[],
        also: vec![],
        proof: &[Proof::Slower(1.3), Proof::Longest(8.0)],
        change: Some(change(every, ms * 1_000_000)),
    }
}

/// Discards in many small pieces beside a process that reads.
pub(super) fn small_discards(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, &["noop", "deadline"], &["none"]);
    parallel(&mut setup, draw, 32);
    setup.job("reader", "direct=1 rw=randread bs=4k size=128m");
    let count = draw.number(80..=600);
    let sectors = draw.one(&[8, 16, 64, 128]);
    let step = draw.one(&[256_u64, 1024, 20_000]);
    Planted {
        control: setup.clone(),
        setup,
        victims: &[],
        culprits: &[],
        also: vec![],
        proof: &[Proof::Constructed],
        change: Some(Change::Trim {
            count,
            sectors,
            step,
        }),
    }
}

/// A device that stops altogether for a while.
pub(super) fn stalling_device(draw: &mut Draw) -> Planted {
    let mut setup = on_any(draw, PLAIN.0, PLAIN.1);
    parallel(&mut setup, draw, 32);
    setup.runtime_ms = 1500;
    few(&mut setup, draw, 3);
    let (every_ms, ms) = (draw.number(200..=600), draw.number(40..=150));
    Planted {
        control: setup.clone(),
        setup,
        victims: &["first", "second", "third"],
        culprits: &[],
        also: vec![],
        proof: &[Proof::Longest(10.0), Proof::Slower(1.3)],
        change: Some(Change::Freeze {
            every_ns: every_ms * 1_000_000,
            ns: ms * 1_000_000,
        }),
    }
}

/// A flash drive that has to move pages before it can write.
pub(super) fn garbage_collection(draw: &mut Draw) -> Planted {
    let mut setup = on(draw, super::stacks::NEW, "none");
    setup.device = vec![
        ("name", "samsung-980-pro".to_owned()),
        ("state", "full".to_owned()),
    ];
    setup.runtime_ms = 1000;
    setup.job("reader", "direct=1 rw=randread bs=4k size=1g");
    let kb = draw.one(&[4, 16]);
    setup.job(
        "writer",
        format!("direct=1 rw=randwrite bs={kb}k size=8g ioengine=libaio iodepth=4"),
    );
    let mut control = setup.clone();
    control.device[1].1 = "fresh".to_owned();
    Planted {
        setup,
        control,
        victims: &["reader", "writer"],
        culprits: &["writer"],
        also: vec!["deep-queue", "reads-behind-writes"],
        proof: &[Proof::Slower(1.5)],
        change: None,
    }
}
