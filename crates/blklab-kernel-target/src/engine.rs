// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs a machine: its kernel itself, as a program, or QEMU.

use crate::build::Engine;
use crate::machine::{Ended, Machine};
use crate::qemu;
use blklab_types::Error;
use std::sync::atomic::AtomicBool;

impl Machine<'_> {
    /// Runs it to its end. Setting `stop` from outside ends it early.
    ///
    /// # Errors
    /// If the kernel dies, takes too long, breaks the protocol or is stopped.
    pub fn run(self, stop: &AtomicBool) -> Result<Ended, Error> {
        match self.kernel.engine {
            Engine::Uml => self.run_as_program(stop),
            Engine::Qemu => qemu::run(&self, stop),
        }
    }
}
