// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of a DiskSim disk, of any content: refused in one line, or a disk
//! that serves requests.

use crate::Target;
use crate::check::{fingerprint, one_line};
use crate::corpus::Seed;
use blklab_device::{build, parse_trace, replay};

pub(crate) const TARGET: Target = Target {
    name: "diskspecs",
    feed: diskspecs,
    samples,
};

/// Requests served: enough to touch cache and mechanics.
const REQUESTS_MAX: usize = 64;
/// For inputs without a trace of their own.
const TRACE: &str = "R Miss 0 8 100 0\nW Miss 5000 16 100 10\nR Hit 8 8 100 0\n";

/// Five texts divided by NUL: the .diskspecs, .model, .seek and .parv files,
/// and a trace of measured requests.
fn diskspecs(data: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(data).ok()?;
    let mut texts = text.split('\0');
    let mut next = || texts.next().unwrap_or_default();
    let (specs, model, seek, system, requests) = (next(), next(), next(), next(), next());
    let read = |name: &str| {
        let extension = name.rsplit('.').next().unwrap_or_default();
        match extension {
            "diskspecs" => Ok(specs.to_owned()),
            "seek" => Ok(seek.to_owned()),
            "parv" => Ok(system.to_owned()),
            _ => Ok(model.to_owned()),
        }
    };
    let requests = match parse_trace("fuzz.trace", requests) {
        Ok(requests) => requests,
        Err(e) => {
            one_line(&e);
            parse_trace("fuzz.trace", TRACE).expect("a trace")
        }
    };
    let params = [("file".to_owned(), "fuzz.diskspecs".to_owned())];
    match build("disksim", &params, 4, &read) {
        Ok(mut disk) => {
            let distance = replay(disk.as_mut(), &requests[..requests.len().min(REQUESTS_MAX)]);
            assert!(distance.mean_ms[1].is_finite());
            Some(fingerprint(&(distance.mean_ms, requests)))
        }
        Err(e) => {
            one_line(&e);
            None
        }
    }
}

/// Disks of which all files are carried, with the first requests: more say nothing more.
fn samples() -> Vec<Seed> {
    let disk = |name: &str| {
        let path = |end| format!("testdata/device/disksim/{name}.{end}");
        let ends = ["diskspecs", "model", "seek", "parv", "trace"];
        let mut seed = Seed::joined(name, &ends.map(path));
        let lines = seed.bytes.iter().enumerate().filter(|(_, b)| **b == b'\n');
        let begin = seed.bytes.iter().rposition(|b| *b == 0).unwrap_or(0);
        let of_trace = lines.map(|(at, _)| at).filter(|at| *at > begin);
        if let Some(end) = of_trace.take(REQUESTS_MAX).last() {
            seed.bytes.truncate(end + 1);
        }
        seed
    };
    ["atlas10k", "cheetah4LP", "ibm18es"].map(disk).to_vec()
}
