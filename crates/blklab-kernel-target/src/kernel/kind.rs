// SPDX-License-Identifier: MIT OR Apache-2.0
//! The targets that real kernels are: what runs them, and what their clock follows.

use crate::build::Engine;
use crate::machine::Clock;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// Its name.
    pub(super) name: &'static str,
    /// What runs the kernel.
    pub(super) engine: Engine,
    /// What its clock follows.
    pub(super) clock: Clock,
}

/// A kernel that was built as a program.
pub(super) const UML: Kind = Kind {
    name: "kernel",
    engine: Engine::Uml,
    clock: Clock::Virtual,
};

/// An image that QEMU boots, instruction by instruction.
pub(super) const QEMU: Kind = Kind {
    name: "qemu",
    engine: Engine::Qemu,
    clock: Clock::Virtual,
};

/// An image that runs on the processors of this machine.
pub(super) const KVM: Kind = Kind {
    name: "kvm",
    engine: Engine::Qemu,
    clock: Clock::Real,
};
