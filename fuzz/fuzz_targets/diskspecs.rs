// SPDX-License-Identifier: MIT OR Apache-2.0
//! See `exercise/disks.rs`.
#![no_main]

#[path = "../exercise/disks.rs"]
#[allow(dead_code)]
mod disks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    disks::diskspecs(data);
});
