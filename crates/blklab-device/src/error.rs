// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a device's name or parameters.

use blklab_types::{choices, one_line, shown};
use std::fmt;

/// Why a device could not be built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceError {
    /// No law or preset of this name.
    UnknownDevice {
        /// The name asked for.
        name: String,
        /// The known name that looks most like it.
        nearest: Option<&'static str>,
        /// Every known name.
        known: Vec<&'static str>,
    },
    /// The device has no such parameter.
    UnknownParam {
        /// The device.
        device: &'static str,
        /// The parameter asked for.
        param: String,
        /// The known parameter that looks most like it.
        nearest: Option<&'static str>,
        /// Every parameter of the device.
        known: Vec<&'static str>,
    },
    /// The same parameter was given twice.
    RepeatedParam {
        /// The device.
        device: &'static str,
        /// The parameter.
        param: &'static str,
    },
    /// A value that the parameter does not take.
    BadValue {
        /// The device.
        device: &'static str,
        /// The parameter.
        param: &'static str,
        /// The value as written.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// Values that are fine one by one but describe no possible device.
    Impossible {
        /// The device.
        device: &'static str,
        /// What does not fit together, and what would.
        reason: String,
    },
    /// A disk description in DiskSim's format that cannot be used.
    BadFile {
        /// The file.
        file: String,
        /// Line, from 1; 0 for the file as a whole.
        line: usize,
        /// What is wrong and what would be right.
        reason: String,
    },
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownDevice {
                name,
                nearest,
                known,
            } => {
                write!(f, "no device is called '{}'", shown(name))?;
                hint(f, name, *nearest, known)
            }
            Self::UnknownParam {
                device,
                param,
                nearest,
                known,
            } => {
                write!(f, "device {device} has no parameter '{}'", shown(param))?;
                hint(f, param, *nearest, known)
            }
            Self::RepeatedParam { device, param } => {
                write!(
                    f,
                    "device {device}: parameter {} is given twice",
                    shown(param)
                )
            }
            Self::BadValue {
                device,
                param,
                value,
                expected,
            } => {
                write!(
                    f,
                    "device {device}: {param}={}: expected {expected}",
                    shown(value)
                )
            }
            Self::Impossible { device, reason } => write!(f, "device {device}: {reason}"),
            Self::BadFile {
                file,
                line: 0,
                reason,
            } => write!(f, "{}: {reason}", one_line(file)),
            Self::BadFile { file, line, reason } => {
                write!(f, "{}:{line}: {reason}", one_line(file))
            }
        }
    }
}

impl std::error::Error for DeviceError {}

fn hint(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    nearest: Option<&str>,
    known: &[&str],
) -> fmt::Result {
    if let Some(nearest) = nearest {
        write!(f, "; did you mean '{nearest}'?")?;
    }
    write!(f, " (known: {})", choices(name, known))
}
