// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that describe a device: refused in one line, or a device that experiments can
//! have, and the file that is written of it says the same.

use crate::Target;
use crate::check::{fingerprint, one_line};
use crate::corpus::{Seed, samples};
use blklab_experiment::{DeviceSpec, Experiment, Workload, load_device};
use blklab_fit::{Line, device_file};
use blklab_types::Error;

pub(crate) const TARGET: Target = Target {
    name: "device_file",
    feed,
    samples: files,
};

fn files() -> Vec<Seed> {
    samples(&["testdata/fit"], &[".toml"])
}

fn read(text: &[u8]) -> Result<DeviceSpec, Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("device.toml");
    std::fs::write(&path, text).expect("it can be written");
    let mut spec = load_device(&path, &blklab::targets::catalogue())?;
    // Names of files count from the folder, which goes.
    let folder = folder.path().display().to_string();
    for (_, value) in &mut spec.params {
        *value = value.replace(&folder, "folder");
    }
    Ok(spec)
}

fn feed(data: &[u8]) -> Option<u64> {
    let spec = match read(data) {
        Ok(spec) => spec,
        Err(e) => {
            one_line(&e);
            return None;
        }
    };
    let catalogue = blklab::targets::catalogue();
    let mut e = Experiment::new("fuzz", Workload::Processes(Vec::new()));
    match e
        .choose_device(spec.clone(), &catalogue)
        .and_then(|()| e.check(&catalogue))
    {
        Ok(()) => writes(&spec),
        Err(e) => one_line(&e),
    }
    Some(fingerprint(&spec))
}

/// What is possible can be written, and is the same.
fn writes(spec: &DeviceSpec) {
    let line = |(key, value): &(String, String)| Line {
        key: key.clone(),
        value: value.clone(),
        remark: "as it was".to_owned(),
    };
    let lines: Vec<Line> = spec.params.iter().map(line).collect();
    let text = device_file(&spec.name, &["A device.".to_owned()], &lines);
    let again = read(text.as_bytes()).unwrap_or_else(|e| panic!("no device: {e}\n{text}"));
    let texts = |spec: &DeviceSpec| {
        let mut params = spec.params.clone();
        params.sort();
        (spec.name.clone(), params)
    };
    assert_eq!(texts(&again).0, texts(spec).0);
    assert_eq!(texts(&again).1.len(), texts(spec).1.len());
}
