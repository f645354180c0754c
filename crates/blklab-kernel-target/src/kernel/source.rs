// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel that an experiment runs on: of its release, or of a folder.

use crate::build::{Built, Cache, Source, Watch, build, built};
use crate::failed::failed;
use blklab_experiment::Experiment;
use blklab_kernel::KernelVersion;
use blklab_types::{Error, Hz};
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
    check_source(e.kernel)?;
    let series = e.kernel.named().series().to_string();
    Source::release(&series).map_err(|err| err.about("kernel"))
}

/// Refuses the kernel of a distribution whose source is not had.
fn check_source(kernel: KernelVersion) -> Result<(), Error> {
    match kernel.distribution().filter(|d| !d.is_of_debian) {
        None => Ok(()),
        Some(d) => Err(Error::not_modelled(format!(
            "{kernel} is built from a source of {} that is not had here; kernel_source takes a \
             folder with its tree",
            d.name
        ))
        .about("kernel")),
    }
}

/// What a reader of a result should know of a kernel that is called after a distribution.
pub(super) fn note(kernel: KernelVersion) -> Option<String> {
    kernel.distribution().map(|d| {
        format!(
            "kernel {kernel} stands for the source that Debian has of {}, built here: it is not \
             {}'s own build",
            kernel.named().series(),
            d.name
        )
    })
}

/// What a built kernel's release is compared with: what was given, but for the name of a
/// distribution, whose kernel has the fixes of stable kernels that Debian's source has now.
fn wanted_release(kernel: KernelVersion) -> String {
    match kernel.distribution() {
        None => kernel.to_string(),
        Some(_) => kernel.named().series().to_string(),
    }
}

/// Kernels that were made ready, so that nobody looks twice: a folder may change while
/// experiments on it run. Kernels of a source differ by their ticks.
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
        if self.known(&source, e.hz).is_some() {
            return Ok(());
        }
        let cache = Cache::of_user()?;
        let there = built(&cache, &source, e.hz)?;
        let kernel = match there {
            Some(kernel) => kernel,
            None => build(
                &cache,
                &source,
                e.hz,
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
        let kernel = match self.known(&source, e.hz) {
            Some(kernel) => kernel,
            None => built(&Cache::of_user()?, &source, e.hz)?
                .ok_or_else(|| failed(&format!("kernel {} was not built yet", e.kernel)))?,
        };
        if kernel.is_of_tree() || kernel.is_of(&wanted_release(e.kernel)) {
            self.keep(source, kernel.clone());
            return Ok(kernel);
        }
        Err(failed(&format!(
            "the kernel is to be {}, and the source of this series is {}",
            e.kernel, kernel.release
        )))
    }

    fn known(&self, source: &Source, hz: Hz) -> Option<Built> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known
            .iter()
            .find(|(of, kernel)| of == source && kernel.hz == hz);
        found.map(|(_, kernel)| kernel.clone())
    }

    fn keep(&self, source: Source, kernel: Built) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |of: &Source, other: &Built| *of == source && other.hz == kernel.hz;
        if !known.iter().any(|(of, other)| is_same(of, other)) {
            known.push((source, kernel));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_experiment::Workload;

    fn source_of(kernel: &str) -> Result<Source, Error> {
        let mut e = Experiment::new("x", Workload::Processes(Vec::new()));
        e.kernel = kernel.parse().expect(kernel);
        wanted(&e)
    }

    #[test]
    fn a_kernel_is_built_from_the_source_that_its_name_says() {
        for (kernel, series) in [
            ("debian-12", "6.1"),
            ("6.1.0-13-amd64", "6.1"),
            ("6.12.41+deb13-amd64", "6.12"),
            ("7.3.4", "7.3"),
            ("7.4", "7.4"),
        ] {
            let source = Source::Release(series.to_owned());
            assert_eq!(source_of(kernel).expect(kernel), source, "{kernel}");
        }
        for (kernel, name) in [
            ("rhel8", "rhel8"),
            ("5.14.0-427.13.1.el9_4.x86_64", "rhel9"),
            ("ubuntu-24.04", "ubuntu-24.04"),
        ] {
            let error = source_of(kernel).expect_err(kernel).to_string();
            let says = format!("{kernel} is built from a source of {name} that is not had");
            assert!(error.contains(&says), "{error}");
        }
    }

    #[test]
    fn a_kernel_called_after_a_distribution_says_what_it_is() {
        let note_of = |name: &str| note(name.parse().expect(name));
        let text = note_of("debian-12").expect("a note");
        assert!(
            text.contains("the source that Debian has of 6.1, built here"),
            "{text}"
        );
        assert_eq!(note_of("6.1"), None);
    }

    #[test]
    fn any_build_of_its_series_is_a_distributions() {
        let release = |name: &str| wanted_release(name.parse().expect(name));
        assert_eq!(release("debian-12"), "6.1");
        assert_eq!(release("6.1.0-13-amd64"), "6.1");
        assert_eq!(release("6.12.117"), "6.12.117");
    }
}
