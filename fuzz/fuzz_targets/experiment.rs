// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiment files, TOML and JSON: nothing panics; an experiment that passes
//! its check can be written, and what was written reads as the same.

#![no_main]

use blklab_experiment::{Experiment, ExperimentError, Source, Workload, parse};
use libfuzzer_sys::fuzz_target;

fn read(source: Source, text: &str) -> Result<Experiment, ExperimentError> {
    parse("e", source, text, &|name| {
        Ok((name.to_owned(), "[a]\nsize=1m\n".to_owned()))
    })
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let source = if text.starts_with('{') {
        Source::Json
    } else {
        Source::Toml
    };
    let e = match read(source, text) {
        Ok(e) => e,
        Err(e) => {
            assert_eq!(e.to_string().lines().count(), 1, "one line: {e}");
            return;
        }
    };
    if let Err(e) = e.check() {
        assert_eq!(e.to_string().lines().count(), 1, "one line: {e}");
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
