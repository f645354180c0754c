// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiment files, TOML and JSON: nothing panics; an experiment that passes
//! its check can be written, and what was written reads as the same. Lines
//! behind a null byte are options of the command line, `set KEY=VALUE` and so
//! on: what they make of the experiment is refused in one line or can be planned.

use crate::Target;
use crate::check::{fingerprint, one_line};
use crate::corpus::{Seed, samples};
use blklab::matrix;
use blklab::targets::{Planner, Sim, catalogue};
use blklab_cli::stack::{Chosen, Stack};
use blklab_experiment::{Experiment, Source, Workload, parse};
use blklab_types::Error;

pub(crate) const TARGET: Target = Target {
    name: "experiment",
    feed,
    samples: files,
};

fn files() -> Vec<Seed> {
    let mut all = samples(
        &["examples", "crates/blklab-fidelity/studies/*"],
        &[".toml"],
    );
    all.extend(samples(&["testdata/legacy/cases"], &[".toml", ".json"]));
    all
}

fn read(source: Source, text: &str) -> Result<Experiment, Error> {
    let file = |name: &str| Ok((name.to_owned(), "[a]\nsize=1m\n".to_owned()));
    parse("e", source, text, &file, &catalogue())
}

/// The options that lines ask for: a name and a text each.
fn chosen(lines: &str) -> anyhow::Result<Chosen> {
    let texts = |option: &str| -> Vec<String> {
        let given = lines.lines().filter_map(|line| line.split_once(' '));
        let texts = given.filter(|(name, _)| *name == option);
        texts.map(|(_, text)| text.to_owned()).collect()
    };
    Stack {
        kernel: &texts("kernel"),
        sched: &texts("sched"),
        device: &texts("device"),
        md: &texts("md"),
        dm: &texts("dm"),
        set: &texts("set"),
        fs: &texts("fs"),
        patch: &texts("patch"),
        repeat: 1,
        ..Stack::default()
    }
    .chosen()
}

fn with_options(e: &Experiment, lines: &str) {
    let chosen = match chosen(lines) {
        Ok(chosen) => chosen,
        Err(e) => return one_line(&e),
    };
    let o = &chosen.overrides;
    let numbers = [
        o.devices.len(),
        o.arrays.len(),
        o.kernels.len(),
        o.schedulers.len(),
    ];
    let values = o.settings.iter().map(|s| s.values.len());
    let patches = o.patches.iter().map(Vec::len);
    let factors = numbers.into_iter().chain(values).chain(patches);
    // Large matrices take long, and show nothing more.
    if factors.map(|n| n.max(1)).fold(1, usize::saturating_mul) > 16 {
        return;
    }
    let planner = Planner::new(Sim::default());
    let refused = match matrix::expand(std::slice::from_ref(e), o, &planner) {
        Err(refused) => Some(refused),
        Ok(cells) => matrix::plans(&cells, o, &planner).err(),
    };
    if let Some(refused) = refused {
        one_line(&chosen.told(refused));
    }
}

fn feed(data: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(data).ok()?;
    let (text, lines) = text.split_once('\0').unwrap_or((text, ""));
    let source = if text.starts_with('{') {
        Source::Json
    } else {
        Source::Toml
    };
    let e = match read(source, text) {
        Ok(e) => e,
        Err(e) => {
            one_line(&e);
            return None;
        }
    };
    if !lines.is_empty() {
        with_options(&e, lines);
    }
    if let Err(e) = e.check(&catalogue()) {
        one_line(&e);
        return None;
    }
    let Ok(written) = e.to_toml("job.fio", &catalogue()) else {
        // A number that TOML does not have.
        return None;
    };
    let again = read(Source::Toml, &written).expect("what was written is an experiment");
    again.check(&catalogue()).expect("and a possible one");
    assert_eq!(
        again.to_toml("job.fio", &catalogue()).expect("still TOML"),
        written
    );
    assert_eq!(
        format!("{:?}", again.queue_facts(&catalogue()).ok()),
        format!("{:?}", e.queue_facts(&catalogue()).ok())
    );
    if let (Workload::Processes(a), Workload::Processes(b)) = (&e.workload, &again.workload) {
        assert_eq!(a, b);
    }
    Some(fingerprint(&written))
}
