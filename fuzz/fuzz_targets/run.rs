// SPDX-License-Identifier: MIT OR Apache-2.0
//! See `exercise/runs.rs`.
#![no_main]

#[path = "../exercise/runs.rs"]
mod runs;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    runs::run_twice(data);
});
