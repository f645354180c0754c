// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `blklab`.

use std::process::ExitCode;

fn main() -> ExitCode {
    blklab_cli::main(blklab::scheduler::Schedulers::default())
}
