// SPDX-License-Identifier: MIT OR Apache-2.0
#![no_main]

use blklab_exercise::fuzzer;

libfuzzer_sys::fuzz_target!(init: fuzzer::begin("sums"), |data: &[u8]| fuzzer::feed(data));
