// SPDX-License-Identifier: MIT OR Apache-2.0
//! Distributions as lists show them: each fact with how it is known and where it stands.

use super::{Entry, entry};
use blklab_kernel::{DISTRIBUTIONS, Distribution, Fact, KernelVersion, Level};
use std::fmt::Display;

/// All, in their order.
pub(super) fn all() -> impl Iterator<Item = Entry> {
    DISTRIBUTIONS.iter().map(in_full)
}

/// That of a kernel, under the name that was given.
pub(super) fn of_kernel(d: &Distribution, kernel: KernelVersion) -> Entry {
    let mut of_d = in_full(d);
    if kernel.to_string() != d.name {
        of_d.details.insert(0, ("is".to_owned(), d.name.to_owned()));
        of_d.name = kernel.to_string();
    }
    of_d.details
        .extend(kernel.note().map(|note| ("note".to_owned(), note)));
    of_d
}

fn in_full(d: &Distribution) -> Entry {
    let names: Vec<&str> = d.names().skip(1).collect();
    let mut details = vec![
        (
            "kernel".to_owned(),
            format!("{}, as {}", d.release, d.example),
        ),
        ("also".to_owned(), names.join(", ")),
    ];
    details.retain(|(_, text)| !text.is_empty());
    let levels = d.levels.iter().map(|level| level_in_words(d, level));
    details.extend(levels.map(|text| ("block layer".to_owned(), text)));
    let released = |fact: &Fact<KernelVersion>| told(fact, format!("as mainline {}", fact.value));
    details.extend([
        ("page cache".to_owned(), released(&d.page_cache)),
        ("filesystems".to_owned(), released(&d.filesystems)),
        ("tasks".to_owned(), released(&d.processor)),
        ("hz".to_owned(), told(&d.hz, d.hz.value)),
        (
            "preemption".to_owned(),
            told(&d.preemption, d.preemption.value) + "; the models know it by release alone",
        ),
        (
            "scheduler".to_owned(),
            told(&d.schedulers, d.schedulers.value.words()),
        ),
        (
            "filesystem".to_owned(),
            told(&d.filesystem, d.filesystem.value) + "; taken only where it is asked for",
        ),
    ]);
    let remarks = d.remarks.iter().map(|r| told(r, r.value));
    details.extend(remarks.map(|text| ("remark".to_owned(), text)));
    Entry {
        details,
        ..entry(d.name, summary(d))
    }
}

/// What it is, and what it sets, in a line.
fn summary(d: &Distribution) -> String {
    let newest = d.newest();
    let seeks = d.schedulers.value.seeks;
    let scheduler = seeks.map_or(String::new(), |name| format!(", {name} on disks that seek"));
    format!(
        "{}: block layer of {} ({}), hz {}{scheduler}",
        d.title, newest.rules.value, newest.rules.basis, d.hz.value
    )
}

fn level_in_words(d: &Distribution, level: &Level) -> String {
    let text = match d.levels.len() {
        1 => format!("as mainline {}", level.rules.value),
        _ => format!(
            "from build {} as mainline {}",
            level.build, level.rules.value
        ),
    };
    told(&level.rules, text)
}

/// A fact with its mark and its source.
fn told<T>(fact: &Fact<T>, text: impl Display) -> String {
    format!("{text} ({}: {})", fact.basis, fact.source)
}
