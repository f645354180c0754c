// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `blklab` with one scheduler more.

use std::process::ExitCode;

fn main() -> ExitCode {
    blklab_cli::main(sstf::schedulers())
}
