// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of a DiskSim disk, of any content: refused in one line, or a disk
//! that serves requests. Shared by the fuzz target and by the test that
//! replays what it found.

use blklab_device::{build, parse_trace, replay};

/// Requests served: enough to touch cache and mechanics.
const REQUESTS_MAX: usize = 64;
/// For inputs without a trace of their own.
const TRACE: &str = "R Miss 0 8 100 0\nW Miss 5000 16 100 10\nR Hit 8 8 100 0\n";

/// Five texts divided by NUL: the .diskspecs, .model, .seek and .parv files,
/// and a trace of measured requests. Says whether they are a disk.
pub(crate) fn diskspecs(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else {
        return false;
    };
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
            one_line(&e.to_string());
            parse_trace("fuzz.trace", TRACE).expect("a trace")
        }
    };
    let params = [("file".to_owned(), "fuzz.diskspecs".to_owned())];
    match build("disksim", &params, 4, &read) {
        Ok(mut disk) => {
            let distance = replay(disk.as_mut(), &requests[..requests.len().min(REQUESTS_MAX)]);
            assert!(distance.mean_ms[1].is_finite());
            true
        }
        Err(e) => {
            one_line(&e.to_string());
            false
        }
    }
}

fn one_line(message: &str) {
    assert!(message.lines().count() <= 1, "one line: {message}");
}
