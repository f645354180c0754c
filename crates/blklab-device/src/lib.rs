// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device models: commands in, completion times out.
//!
//! [`Device`] is the seam to the driver, [`build`] makes a device by name:
//! an exact law, a preset of the rotating disk, a disk described in files, an
//! array with a write cache or an SSD, with parameters by name over the defaults. [`ALL`] lists what there is.
//!
//! All models are deterministic and draw no random numbers; whatever decides
//! the order of commands is computed in whole nanoseconds. Floating-point
//! numbers appear where tables are made at construction, and in the law `seek`,
//! whose definition uses them.

mod array;
mod device;
mod disk;
mod error;
mod flash;
mod info;
mod interrupt;
mod law;
mod limits;
mod param;
mod registry;
mod ssd;
mod validate;

#[cfg(test)]
mod contract;
#[cfg(test)]
mod host;
#[cfg(test)]
mod reference;

pub use device::{CmdId, Command, Device, DeviceCx, Done, EIO};
pub use error::DeviceError;
pub use info::{DeviceInfo, MAX_QUEUE_DEPTH, ReadText};
pub use interrupt::interrupted;
pub use limits::{DeviceLimits, Driver};
pub use param::{Kind, ParamInfo};
pub use registry::{
    ALL, Params, build, find, is_path, limits, number, parse_spec, queue_depth,
    without_driver_limits,
};
pub use validate::{Distance, Measured, parse_trace, replay};
