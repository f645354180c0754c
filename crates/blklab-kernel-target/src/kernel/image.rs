// SPDX-License-Identifier: MIT OR Apache-2.0
//! The image that an experiment runs on: one that is there, or that Debian has.

use crate::build::prepare_simdisk as build_simdisk;
use crate::build::{Built, Cache, Engine, FLAVOUR, Source, Watch, fetch};
use blklab_experiment::Experiment;
use blklab_types::{Error, ErrorKind};
use std::sync::atomic::AtomicBool;

/// The image of an experiment; none if it has to be fetched first.
///
/// # Errors
/// If it is not there, and its name is not that of a release that could be fetched.
pub(super) fn in_cache(e: &Experiment) -> Result<Option<Built>, Error> {
    match get(e) {
        Ok(image) => Ok(Some(image)),
        Err(err) => {
            let is_missing = err.kind == ErrorKind::UnknownName;
            let is_release = Source::release(&e.kernel.to_string()).is_ok();
            if is_missing && is_release {
                return Ok(None);
            }
            Err(err)
        }
    }
}

/// The image of an experiment.
///
/// # Errors
/// If it is not there.
pub(super) fn get(e: &Experiment) -> Result<Built, Error> {
    Cache::of_user()?.find_for(Engine::Qemu, &e.kernel.to_string())
}

/// Builds our own module for an image, unless it is there.
///
/// # Errors
/// If it cannot be built.
pub(super) fn prepare_simdisk(
    image: &Built,
    stop: &AtomicBool,
    told: &mut dyn FnMut(String),
) -> Result<(), Error> {
    let mut watch = Watch {
        step: &mut |step| told(format!("kernel {}: {step}", image.release)),
        stop,
    };
    build_simdisk(&Cache::of_user()?, image, &mut watch)
}

/// Fetches the image of an experiment, unless it is there.
///
/// # Errors
/// If it cannot be had.
pub(super) fn prepare(
    e: &Experiment,
    stop: &AtomicBool,
    told: &mut dyn FnMut(String),
) -> Result<Built, Error> {
    if let Some(there) = in_cache(e)? {
        return Ok(there);
    }
    let mut watch = Watch {
        step: &mut |step| told(format!("kernel {}: {step}", e.kernel)),
        stop,
    };
    fetch(
        &Cache::of_user()?,
        &e.kernel.to_string(),
        FLAVOUR,
        &mut watch,
    )
}
