// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device of an experiment.

use crate::limits::{device_refused, queue_depth};
use blklab_device::{Device, ReadText};
use blklab_experiment::{Experiment, NAMED_BYTES_MAX, read_named};
use blklab_types::Error;
use std::cell::RefCell;
use std::path::Path;

/// A device and the files that describe it: names and texts.
pub(crate) type Described = (Box<dyn Device>, Vec<(String, String)>);

/// Makes the device, reading the files that describe it.
///
/// # Errors
/// If there is no such device, it cannot have these parameters, or a file
/// of it cannot be read or used.
pub fn build_device(e: &Experiment) -> Result<Box<dyn Device>, Error> {
    build_with(e, &read_device_file)
}

/// Makes the device, and returns the files that describe it with it: names and
/// texts, in the order in which they are read.
///
/// # Errors
/// As [`build_device`].
pub(crate) fn build_device_with_files(e: &Experiment) -> Result<Described, Error> {
    let files = RefCell::new(Vec::new());
    let device = build_with(e, &|path| {
        let text = read_device_file(path)?;
        files.borrow_mut().push((path.to_owned(), text.clone()));
        Ok(text)
    })?;
    Ok((device, files.into_inner()))
}

fn build_with(e: &Experiment, read: &ReadText<'_>) -> Result<Box<dyn Device>, Error> {
    let (name, params) = (&e.device.name, &e.device.params);
    let depth = queue_depth(e)?;
    if e.kernel.has_single_queue() {
        return blklab_device::build(name, params, depth, read).map_err(device_refused);
    }
    blklab_device::without_driver_limits(name, params)
        .and_then(|params| blklab_device::build(name, &params, depth, read))
        .map_err(device_refused)
}

fn read_device_file(path: &str) -> Result<String, String> {
    read_named(Path::new(path), NAMED_BYTES_MAX).map_err(|e| e.what)
}
