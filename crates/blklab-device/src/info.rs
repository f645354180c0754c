// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of a device that can be asked for by name: a row of the registry.

use crate::device::Device;
use crate::error::DeviceError;
use crate::limits::DeviceLimits;
use crate::param::{ParamInfo, Values};

/// Most commands a device can be asked to hold (the limit of NVMe queues).
pub const MAX_QUEUE_DEPTH: u32 = 65_536;

/// One device that can be asked for by name.
#[derive(Clone, Copy, Debug)]
pub struct DeviceInfo {
    /// Name, as on the command line.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Where its figures come from.
    pub source: &'static str,
    /// Its parameters. The default of a parameter is [`DeviceInfo::default_of`].
    pub params: &'static [ParamInfo],
    /// Values of this preset that differ from the defaults of the parameters.
    pub preset: &'static [(&'static str, &'static str)],
    /// How many commands it is normally given at a time.
    pub queue_depth: u32,
    /// What it imposes on the queue, unless its parameters say otherwise; see
    /// [`limits`](crate::limits()).
    pub limits: DeviceLimits,
    pub(crate) settings: Settings,
    pub(crate) build: Build,
}

/// A device, or why there is none.
type Made = Result<Box<dyn Device>, DeviceError>;

/// Parameters that speak to the driver rather than to the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// The parameter that is the driver's name for the queue depth.
    pub(crate) depth: Option<&'static str>,
    /// Parameters that a multi-queue driver enforces itself, before the device
    /// gets a command.
    pub(crate) enforced: &'static [&'static str],
    /// What the parameters make of the limits.
    pub(crate) limits: fn(&Values, DeviceLimits) -> DeviceLimits,
}

impl Settings {
    /// None of the parameters.
    pub(crate) const NONE: Settings = Settings {
        depth: None,
        enforced: &[],
        limits: |_, limits| limits,
    };
}

/// How a device is made from its parameters and the queue depth.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Build {
    /// From parameters alone.
    Plain(fn(&Values, u32) -> Made),
    /// From files that parameters name.
    Files(fn(&Values, u32, &ReadText<'_>) -> Made),
}

/// Reads a file that a parameter names: path in, text or what is wrong out.
pub type ReadText<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

impl DeviceInfo {
    /// Whether it is described in files that a parameter must name.
    pub fn needs_files(&self) -> bool {
        matches!(self.build, Build::Files(_))
    }

    /// What a parameter is if nothing is said, as text; empty if it follows
    /// from others.
    pub fn default_of(&self, param: &ParamInfo) -> &'static str {
        let preset = self.preset.iter().find(|(name, _)| *name == param.name);
        preset.map_or(param.default, |(_, value)| value)
    }
}
