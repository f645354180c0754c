// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel that an experiment runs on: of its release, or of a folder.

use crate::build::{Built, Cache, Source, Watch, build, built};
use crate::failed::failed;
use blklab_experiment::Experiment;
use blklab_types::Error;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

/// What the kernel of an experiment is built from.
///
/// # Errors
/// If there is no source of its release.
pub(super) fn wanted(e: &Experiment) -> Result<Source, Error> {
    if !e.kernel_source.is_empty() {
        return Ok(Source::Tree(PathBuf::from(&e.kernel_source)));
    }
    let series = e.kernel.series().to_string();
    Source::release(&series).map_err(|err| err.about("kernel"))
}

/// Kernels that were made ready, so that nobody looks twice: a folder may change while
/// experiments on it run.
#[derive(Debug, Default)]
pub(super) struct Kernels(Mutex<Vec<(Source, Built)>>);

impl Kernels {
    /// Builds the kernel of an experiment, unless there is one.
    ///
    /// # Errors
    /// If it cannot be built, or is not of the release that the experiment names.
    pub(super) fn prepare(
        &self,
        e: &Experiment,
        stop: &AtomicBool,
        told: &mut dyn FnMut(String),
    ) -> Result<(), Error> {
        let source = wanted(e)?;
        if self.known(&source).is_some() {
            return Ok(());
        }
        let cache = Cache::of_user()?;
        let there = built(&cache, &source)?;
        let kernel = match there {
            Some(kernel) => kernel,
            None => build(
                &cache,
                &source,
                &mut Watch {
                    step: &mut |step| told(format!("kernel {}: {step}", e.kernel)),
                    stop,
                },
            )?,
        };
        self.keep(source, kernel);
        Ok(())
    }

    /// The kernel of an experiment.
    ///
    /// # Errors
    /// If none was built, or it is not of the release that the experiment names.
    pub(super) fn get(&self, e: &Experiment) -> Result<Built, Error> {
        let source = wanted(e)?;
        let kernel = match self.known(&source) {
            Some(kernel) => kernel,
            None => built(&Cache::of_user()?, &source)?
                .ok_or_else(|| failed(&format!("kernel {} was not built yet", e.kernel)))?,
        };
        if kernel.is_of_tree() || kernel.is_of(&e.kernel.to_string()) {
            self.keep(source, kernel.clone());
            return Ok(kernel);
        }
        Err(failed(&format!(
            "the kernel is to be {}, and the source of this series is {}",
            e.kernel, kernel.release
        )))
    }

    fn known(&self, source: &Source) -> Option<Built> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|(of, _)| of == source);
        found.map(|(_, kernel)| kernel.clone())
    }

    fn keep(&self, source: Source, kernel: Built) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.iter().any(|(of, _)| *of == source) {
            known.push((source, kernel));
        }
    }
}
