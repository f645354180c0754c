// SPDX-License-Identifier: MIT OR Apache-2.0
//! See `exercise/traces.rs`.
#![no_main]

#[path = "../exercise/traces.rs"]
#[allow(dead_code)]
mod traces;

libfuzzer_sys::fuzz_target!(|data: &[u8]| traces::ctf(data));
