// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels, schedulers and devices that scenarios draw from.

use super::draw::Draw;
use super::setup::Setup;

/// Releases of the single-queue path.
pub(super) const OLD: &[&str] = &["2.6.18", "2.6.24", "2.6.28", "2.6.33", "3.10", "4.19"];

/// Releases whose queues are plugged until a timer or somebody unplugs them: up to 2.6.38.
pub(super) const WITH_PLUG_TIMER: &[&str] = &["2.6.18", "2.6.24", "2.6.28", "2.6.33"];

/// Releases of the multi-queue path.
pub(super) const NEW: &[&str] = &["5.4", "5.10", "6.1", "6.6", "6.12", "6.18"];

/// Releases of the multi-queue path that are drawn on only where they are asked for: rules
/// of findings were made without them.
pub(super) const UNSEEN: &[&str] = &["7.3"];

/// Whether a release has the multi-queue path.
pub(super) fn is_new(kernel: &str) -> bool {
    NEW.contains(&kernel) || UNSEEN.contains(&kernel)
}

/// An empty experiment on one of some releases, or on the one that is asked for. If that is
/// none of them, the experiment says so.
pub(super) fn on(draw: &mut Draw, kernels: &[&'static str], scheduler: &'static str) -> Setup {
    let drawn = draw.one(kernels);
    let asked = draw.kernel();
    let fits = |asked: &str| {
        kernels.contains(&asked) || (is_new(asked) && kernels.iter().any(|k| is_new(k)))
    };
    Setup {
        kernel: asked.unwrap_or(drawn),
        scheduler,
        runtime_ms: draw.number(400..=800),
        seed: draw.number(0..=1_000_000),
        is_impossible: asked.is_some_and(|asked| !fits(asked)),
        ..Setup::default()
    }
}

/// An experiment on any release, with a scheduler of those named: for the single-queue
/// path and for the multi-queue path.
pub(super) fn on_any(draw: &mut Draw, old: &[&'static str], new: &[&'static str]) -> Setup {
    let is_old = draw.once_in(2) && !old.is_empty();
    if draw.kernel().map_or(is_old, |asked| !is_new(asked)) {
        let scheduler = draw.one(old);
        on(draw, OLD, scheduler)
    } else {
        let scheduler = draw.one(new);
        on(draw, NEW, scheduler)
    }
}

/// A device that does one thing at a time, in time that depends on the size alone:
/// 0.1 to 0.6 ms for a command and up to 0.5 us for a sector.
pub(super) fn serial(setup: &mut Setup, draw: &mut Draw, depth: u64) {
    setup.device = vec![
        ("name", "serial".to_owned()),
        ("read_ns", (draw.number(10..=60) * 10_000).to_string()),
        ("ns_per_sector", draw.number(0..=500).to_string()),
        ("queue_depth", depth.to_string()),
    ];
}

/// A device that works on all its commands at a time, each in 60 to 250 us.
pub(super) fn parallel(setup: &mut Setup, draw: &mut Draw, depth: u64) {
    setup.device = vec![
        ("name", "parallel".to_owned()),
        ("read_ns", (draw.number(6..=25) * 10_000).to_string()),
        ("queue_depth", depth.to_string()),
    ];
}

/// A device by name.
pub(super) fn named(setup: &mut Setup, name: &'static str) {
    setup.device = vec![("name", name.to_owned())];
}
