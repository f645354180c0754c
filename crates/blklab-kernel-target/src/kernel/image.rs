// SPDX-License-Identifier: MIT OR Apache-2.0
//! The image that an experiment runs on: one that is there, or that Debian has.

use crate::build::prepare_simdisk as build_simdisk;
use crate::build::{Built, Cache, Engine, FLAVOUR, Source, Watch, fetch};
use blklab_experiment::Experiment;
use blklab_kernel::Distribution;
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
            let is_release = Source::release(&sought(e)).is_ok();
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
    check_name(e)?;
    Cache::of_user()?.find_for(Engine::Qemu, &sought(e))
}

/// Refuses the name of a distribution whose images Debian does not have.
///
/// # Errors
/// If it is one.
pub(super) fn check_name(e: &Experiment) -> Result<(), Error> {
    match named_after(e).filter(|d| !d.is_of_debian) {
        None => Ok(()),
        Some(d) => Err(Error::not_modelled(format!(
            "Debian has no image of {}; one that was added has the name that uname -r prints",
            d.name
        ))
        .about("kernel")),
    }
}

/// The distribution by whose own name the kernel is called, as `debian-12`.
fn named_after(e: &Experiment) -> Option<&'static Distribution> {
    Distribution::named(&e.kernel.to_string())
}

/// The image to look for: that of the name, or any of the release that a distribution has.
fn sought(e: &Experiment) -> String {
    match named_after(e) {
        None => e.kernel.to_string(),
        Some(d) => d.release.to_string(),
    }
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
    fetch(&Cache::of_user()?, &sought(e), FLAVOUR, &mut watch)
}
