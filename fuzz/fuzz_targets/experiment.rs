// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiment files, TOML and JSON: nothing panics; an experiment that passes
//! its check can be written, and what was written reads as the same. Lines
//! behind a null byte are options of the command line, `set KEY=VALUE` and so
//! on: what they make of the experiment is refused in one line or passes its
//! check.

#![no_main]

use blklab::matrix::{self, Overrides};
use blklab_experiment::{Experiment, ExperimentError, Source, Workload, parse};
use libfuzzer_sys::fuzz_target;

fn read(source: Source, text: &str) -> Result<Experiment, ExperimentError> {
    parse("e", source, text, &|name| {
        Ok((name.to_owned(), "[a]\nsize=1m\n".to_owned()))
    })
}

/// The options that lines ask for.
fn overrides(lines: &str) -> Result<Overrides, ExperimentError> {
    let mut o = Overrides {
        repeat: 1,
        ..Overrides::default()
    };
    for line in lines.lines() {
        let (option, value) = line.split_once(' ').unwrap_or((line, ""));
        let list = || matrix::parse_values("--option", &[value.to_owned()]);
        match option {
            "set" => o.settings.push(matrix::parse_setting(value)?),
            "fs" => {
                let values = matrix::parse_filesystems(value)?;
                let setting = matrix::Setting::of_option("--fs", "filesystem", values);
                o.settings.push(setting);
            }
            "device" => o.devices.extend(matrix::parse_devices(value)?),
            "md" => o.arrays.extend(matrix::parse_arrays(value)?),
            "patch" => o.patches.push(matrix::parse_patches(value)?),
            "kernel" => o.kernels.extend(list()?),
            "sched" => o.schedulers.extend(list()?),
            _ => {}
        }
    }
    Ok(o)
}

fn one_line(e: &ExperimentError) {
    assert_eq!(e.to_string().lines().count(), 1, "one line: {e}");
}

fn exercise_overrides(e: &Experiment, lines: &str) {
    let cells = overrides(lines).and_then(|o| {
        let numbers = [o.devices.len(), o.arrays.len(), o.kernels.len(), o.schedulers.len()];
        let values = o.settings.iter().map(|s| s.values.len());
        let patches = o.patches.iter().map(Vec::len);
        let factors = numbers.into_iter().chain(values).chain(patches);
        // Large matrices take long, and show nothing more.
        match factors.map(|n| n.max(1)).fold(1, usize::saturating_mul) {
            0..=16 => matrix::expand(std::slice::from_ref(e), &o),
            _ => Ok(Vec::new()),
        }
    });
    match cells {
        Err(err) => one_line(&err),
        Ok(cells) => cells.iter().for_each(|c| {
            c.experiment.check().expect("expand checks what it makes");
        }),
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
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
            return;
        }
    };
    if !lines.is_empty() {
        exercise_overrides(&e, lines);
    }
    if let Err(e) = e.check() {
        one_line(&e);
        return;
    }
    let Ok(written) = e.to_toml("job.fio") else {
        // A number that TOML does not have.
        return;
    };
    let again = read(Source::Toml, &written).expect("what was written is an experiment");
    again.check().expect("and a possible one");
    assert_eq!(again.to_toml("job.fio").expect("still TOML"), written);
    assert_eq!(
        format!("{:?}", again.limits().ok()),
        format!("{:?}", e.limits().ok())
    );
    if let (Workload::Processes(a), Workload::Processes(b)) = (&e.workload, &again.workload) {
        assert_eq!(a, b);
    }
});
