// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be chosen, read off the tables that the models themselves use.

mod distributions;

use blklab_experiment::settings::{self, Setting};
use blklab_experiment::{DM_KINDS, DmParam};
use blklab_experiment::{OF_KERNELS, can_be_without, change_name};
use blklab_fio::option::{self as fio_option, ENGINES, OptionSpec, Queueing};
use blklab_formats::FORMATS;
use blklab_kernel::{
    Change, Evidence, KernelVersion, Knowledge, PATCHES, PRESETS, Tunable, default_scheduler,
};
use blklab_sched::Schedulers;
use blklab_sim::{catalogue_with, device_rows, filesystem_rows, scheduler_rows};
use blklab_workload::scenario;
use serde::Serialize;

/// One thing that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// What it is, in a line or two.
    pub summary: String,
    /// Further facts: name and text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<(String, String)>,
    /// Its parameters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
}

/// A parameter of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its default, as text.
    pub default: String,
    /// What it takes.
    pub range: String,
    /// What it does.
    pub help: String,
}

fn entry(name: &str, summary: impl Into<String>) -> Entry {
    Entry {
        name: name.to_owned(),
        summary: summary.into(),
        details: Vec::new(),
        params: Vec::new(),
    }
}

/// The parameters that rows of settings describe, in all kernels or in one.
fn params(rows: &[Setting], kernel: Option<KernelVersion>) -> Vec<Param> {
    let in_kernel = move |t: &&Tunable| kernel.is_none_or(|v| t.is_in(v));
    let of_row = |row: &Setting| -> Vec<Param> {
        if row.takes().is_empty() {
            return row
                .rows()
                .iter()
                .filter(in_kernel)
                .map(tunable_param)
                .collect();
        }
        vec![Param {
            name: row.name().to_owned(),
            default: match row.default_doc() {
                text if text.is_empty() => "as others say".to_owned(),
                text => text,
            },
            range: row.takes().to_owned(),
            help: row.doc().to_owned(),
        }]
    };
    rows.iter().flat_map(of_row).collect()
}

fn tunable_param(t: &Tunable) -> Param {
    Param {
        name: t.name.to_owned(),
        default: shown_default(t),
        range: match releases(t) {
            Some(releases) => format!("{}, {} to {}; {releases}", t.unit, t.range.0, t.range.1),
            None => format!("{}, {} to {}", t.unit, t.range.0, t.range.1),
        },
        help: t.help.to_owned(),
    }
}

/// The default as text; one outside the range is that of what is not set.
fn shown_default(t: &Tunable) -> String {
    let default = t.default_value();
    default.map_or("unset".to_owned(), |n| n.to_string())
}

/// Which releases a row is about, if not all.
fn releases(t: &Tunable) -> Option<String> {
    let from = t.since > PRESETS[0].version;
    let to = t.until < KernelVersion::FOREVER;
    match (from, to) {
        (false, false) => None,
        (true, false) => Some(format!("from {}", t.since)),
        (false, true) => Some(format!("before {}", t.until)),
        (true, true) => Some(format!("from {}, before {}", t.since, t.until)),
    }
}

/// The releases of a range, in words.
fn from_until(since: KernelVersion, until: KernelVersion) -> String {
    if until == KernelVersion::FOREVER {
        format!("from {since}")
    } else {
        format!("from {since}, before {until}")
    }
}

fn exists(kernel: Option<KernelVersion>, since: KernelVersion, until: KernelVersion) -> bool {
    kernel.is_none_or(|v| v.is_within(since, until))
}

/// I/O schedulers, of all kernels or of one.
pub fn schedulers(schedulers: Schedulers, kernel: Option<KernelVersion>) -> Vec<Entry> {
    let all = schedulers
        .iter()
        .filter(|s| exists(kernel, s.since, s.until));
    all.map(|s| Entry {
        details: vec![("kernels".into(), from_until(s.since, s.until))],
        params: params(&scheduler_rows(s), kernel),
        ..entry(s.name, s.summary)
    })
    .collect()
}

/// Tunables of schedulers, settings of the queue, the machine and the experiment,
/// and files of control groups.
pub fn tunables(schedulers: Schedulers, kernel: Option<KernelVersion>) -> Vec<Entry> {
    let schedulers = schedulers.iter();
    let schedulers = schedulers.filter(|s| exists(kernel, s.since, s.until));
    let of_schedulers = schedulers.flat_map(scheduler_rows);
    let others = settings::all().chain(settings::cgroup_files()).cloned();
    let entries = |s: Setting| -> Vec<Entry> {
        let in_kernel = |t: &&Tunable| kernel.is_none_or(|v| t.is_in(v));
        let rows = s.rows().iter().filter(in_kernel);
        if s.is_text() {
            rows.map(|_| text_setting(&s, kernel)).collect()
        } else {
            rows.map(|t| tunable(s.owner(), t, kernel)).collect()
        }
    };
    of_schedulers.chain(others).flat_map(entries).collect()
}

/// The releases of a row, where those of all kernels are listed.
fn told_releases(t: &Tunable, kernel: Option<KernelVersion>) -> String {
    match releases(t).filter(|_| kernel.is_none()) {
        Some(releases) => format!("; {releases}"),
        None => String::new(),
    }
}

fn tunable(owner: &str, t: &Tunable, kernel: Option<KernelVersion>) -> Entry {
    let of = told_releases(t, kernel);
    let default = shown_default(t);
    Entry {
        details: vec![
            ("unit".into(), t.unit.to_string()),
            ("default".into(), default.clone()),
            ("range".into(), format!("{} to {}", t.range.0, t.range.1)),
            ("kernels".into(), from_until(t.since, t.until)),
        ],
        ..entry(
            &format!("{owner}/{}", t.name),
            format!("{} ({}, default {default}{of})", t.help, t.unit),
        )
    }
}

fn text_setting(s: &Setting, kernel: Option<KernelVersion>) -> Entry {
    let (row, default) = (&s.rows()[0], s.default_doc());
    let (help, of) = (row.help, told_releases(row, kernel));
    Entry {
        details: vec![
            ("unit".into(), "text".into()),
            ("default".into(), default.clone()),
        ],
        ..entry(
            &format!("{}/{}", s.owner(), s.name()),
            format!("{help} (default {default}{of})"),
        )
    }
}

/// The settings of `[queue]` or `[vm]` as the manual's table has them.
pub fn settings_table(owner: &str) -> String {
    let mut text = "| key | meaning | default |\n|---|---|---|\n".to_owned();
    for s in settings::all().filter(|s| s.home.owner() == owner) {
        let (doc, default) = (s.doc(), s.default_doc());
        text += &format!("| `{}` | {doc} | {default} |\n", s.name());
    }
    text
}

/// Device models and presets.
pub fn devices() -> Vec<Entry> {
    let all = blklab_device::ALL.iter();
    all.map(|d| Entry {
        details: vec![
            ("source".into(), d.source.to_owned()),
            ("queue depth".into(), d.queue_depth.to_string()),
        ],
        params: params(&device_rows(d), None),
        ..entry(d.name, d.summary)
    })
    .collect()
}

/// Kernel presets, then distributions; releases between them are accepted as well. Each
/// shows how it is known, and a release what changed since the preset before it.
pub fn kernels(of: Schedulers) -> Vec<Entry> {
    let presets = PRESETS.iter().map(|p| {
        let known = Knowledge::of_release(p.version);
        release(of, p.version, format!("{} ({})", p.summary, known.word()))
    });
    presets.chain(distributions::all()).collect()
}

/// One kernel in full, whether lists show it or not.
pub fn kernel(of: Schedulers, kernel: KernelVersion) -> Entry {
    if let Some(d) = kernel.distribution() {
        return distributions::of_kernel(d, kernel);
    }
    let release_of = kernel.release();
    let preset = PRESETS.iter().find(|p| p.version == release_of);
    let known = Knowledge::of_release(release_of);
    let summary = match preset {
        Some(p) => format!("{} ({})", p.summary, known.word()),
        None => format!("mainline {release_of} ({})", known.word()),
    };
    let mut entry = release(of, release_of, summary);
    entry.name = kernel.to_string();
    entry
        .details
        .extend(kernel.note().map(|note| ("note".to_owned(), note)));
    entry
}

/// A release: how it is known, its schedulers, what changed since the preset before it.
fn release(of: Schedulers, version: KernelVersion, summary: String) -> Entry {
    let names: Vec<String> = schedulers(of, Some(version))
        .into_iter()
        .map(|e| e.name)
        .collect();
    let default = |hw_queues| default_scheduler(version, hw_queues);
    let default = match (default(1), default(2)) {
        (one, several) if one == several => one.to_owned(),
        (one, several) => format!("{one}; {several} with several hardware queues"),
    };
    let mut details = vec![
        ("known".into(), Knowledge::of_release(version).to_string()),
        (
            "schedulers".into(),
            format!("{} (default {default})", names.join(", ")),
        ),
    ];
    let versions = PRESETS.iter().map(|p| p.version);
    let before = versions.take_while(|v| *v < version).last();
    let is_new = |c: &Change| before.is_some_and(|b| c.release > b) && c.release <= version;
    for (owner, c) in catalogue_with(of).changes() {
        if is_new(c) {
            let text = format!("{}: {} ({})", c.release, c.what, c.source);
            details.push((owner.to_owned(), text));
        }
    }
    Entry {
        details,
        ..entry(&version.to_string(), summary)
    }
}

/// What changed, release by release, oldest first; of one release, or of all.
pub fn changes(of: Schedulers, kernel: Option<KernelVersion>) -> Vec<Entry> {
    let mut all = catalogue_with(of).changes();
    all.retain(|(_, c)| kernel.is_none_or(|k| c.is_in_series_of(k)));
    all.sort_by_key(|(_, c)| c.release);
    let row = |(owner, c): (&str, &Change)| {
        let mut details = vec![("source".into(), c.source.to_owned())];
        if can_be_without(c) {
            details.push(("without".into(), change_name(owner, c)));
        }
        if !c.stable.is_empty() {
            let points: Vec<String> = c.stable.iter().map(KernelVersion::to_string).collect();
            details.push(("also from".into(), points.join(", ")));
        }
        Entry {
            details,
            ..entry(&c.release.to_string(), format!("{owner}: {}", c.what))
        }
    };
    all.into_iter().map(row).collect()
}

/// What runs experiments.
pub fn targets() -> Vec<Entry> {
    let all = crate::targets::TARGETS.iter();
    all.map(|t| entry(t.name, t.summary)).collect()
}

/// Historical patches.
pub fn patches(kernel: Option<KernelVersion>) -> Vec<Entry> {
    let all = PATCHES.iter().filter(|p| exists(kernel, p.since, p.until));
    all.map(|p| {
        let evidence = match p.evidence {
            Evidence::Source => "read from released source",
            Evidence::Mail => "read from the mail that carried it",
            Evidence::Reconstructed => "reconstructed: the mail that carried it was not available",
        };
        let mut details = vec![
            ("fits".into(), from_until(p.since, p.until)),
            (
                "scheduler".into(),
                p.scheduler.unwrap_or("every").to_owned(),
            ),
            ("evidence".into(), evidence.to_owned()),
            ("source".into(), p.source.to_owned()),
        ];
        if !p.needs.is_empty() {
            details.push(("beside".into(), format!("one of {}", p.needs.join(", "))));
        }
        Entry {
            details,
            ..entry(p.name, p.summary)
        }
    })
    .collect()
}

/// Built-in scenarios.
pub fn scenarios() -> Vec<Entry> {
    let all = scenario::ALL.iter();
    all.map(|s| Entry {
        details: vec![
            ("source".into(), s.source.to_owned()),
            ("kernel".into(), s.kernel.to_owned()),
            ("fio".into(), s.fio.to_owned()),
        ],
        params: s
            .parameters
            .iter()
            .map(|p| Param {
                name: p.name.to_owned(),
                default: p.default.to_owned(),
                range: p.kind.to_string(),
                help: p.help.to_owned(),
            })
            .collect(),
        ..entry(s.name, s.summary)
    })
    .collect()
}

/// Filesystems and their options.
pub fn filesystems() -> Vec<Entry> {
    let all = blklab_fs::ALL.iter();
    all.map(|kind| {
        let page = kind.page.map(|page| format!("docs/filesystems/{page}.md"));
        Entry {
            details: page.into_iter().map(|p| ("options".into(), p)).collect(),
            params: params(&filesystem_rows(kind), None),
            ..entry(kind.name, kind.summary)
        }
    })
    .chain(OF_KERNELS.iter().map(|(name, summary)| {
        entry(
            name,
            format!("{summary} (not modelled: real kernels alone)"),
        )
    }))
    .collect()
}

/// Devices of device mapper, which targets have that are kernels.
pub fn dm() -> Vec<Entry> {
    let param = |p: &DmParam| Param {
        name: p.name.to_owned(),
        default: p.default.to_owned(),
        range: p.takes.words(),
        help: p.help.to_owned(),
    };
    let all = DM_KINDS.iter();
    all.map(|kind| Entry {
        params: kind.params.iter().map(param).collect(),
        ..entry(kind.name, kind.help)
    })
    .collect()
}

/// Trace formats that are written and not read, in the words of [`FORMATS`].
const WRITTEN: &[(&str, &str)] = &[
    (
        "csv",
        "NAME.csv: a row for each event, request or bio; written",
    ),
    #[cfg(feature = "parquet")]
    (
        "parquet",
        "NAME.parquet: the same rows in columns, gzip inside; written",
    ),
    (
        "perfetto",
        "NAME.pftrace, NAME.perfetto-trace: for Perfetto; written",
    ),
];

/// Trace formats.
pub fn formats() -> Vec<Entry> {
    let read = FORMATS.iter().map(|f| entry(f.name, f.summary));
    let written = WRITTEN.iter().map(|(name, summary)| entry(name, *summary));
    read.chain(written).collect()
}

/// Kinds of findings of `blklab why`.
pub fn findings() -> Vec<Entry> {
    let finding = |k: &blklab_analysis::findings::Kind| Entry {
        details: k
            .rule
            .parts()
            .map(|(part, text)| (part.to_owned(), format!("{text}.")))
            .collect(),
        ..entry(k.name, k.what)
    };
    blklab_analysis::findings::ALL.iter().map(finding).collect()
}

/// I/O engines of fio jobs and how they are run.
pub fn engines() -> Vec<Entry> {
    ENGINES
        .iter()
        .map(|e| {
            let how = match e.queueing {
                Queueing::Synchronous => "one request at a time, done when the call returns",
                Queueing::Asynchronous => "requests are queued up to iodepth",
                Queueing::ByDepth => "done at once at iodepth 1, queued above",
                Queueing::NoData => "moves no data: its jobs are left out",
                Queueing::NotModelled => "not simulated",
            };
            entry(e.name, how)
        })
        .collect()
}

/// Options of fio jobs: what each does here. Those of one engine are called
/// `ENGINE.OPTION` where another engine has the same.
pub fn fio_options() -> Vec<Entry> {
    let option = |name: String, spec: &OptionSpec| {
        let effect = spec.effect;
        let mut e = entry(&name, format!("{}: {}", effect.class(), effect.reason()));
        if !spec.alias.is_empty() {
            e.details.push(("also".to_owned(), spec.alias.to_owned()));
        }
        if !spec.default.is_empty() {
            e.details
                .push(("default".to_owned(), spec.default.to_owned()));
        }
        e
    };
    let all = fio_option::ALL.iter().map(|s| option(s.name.to_owned(), s));
    let engines = ENGINES.iter().flat_map(|engine| {
        let own = engine.options.iter();
        own.map(move |spec| (format!("{}.{}", engine.name, spec.name), spec))
    });
    all.chain(engines.map(|(name, spec)| option(name, spec)))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_filesystem_says_what_it_is_and_every_option_what_it_takes() {
        for fs in super::filesystems() {
            assert!(!fs.summary.is_empty(), "{}", fs.name);
            for p in fs.params {
                assert!(!p.range.is_empty(), "{}: {}", fs.name, p.name);
            }
        }
    }
}
