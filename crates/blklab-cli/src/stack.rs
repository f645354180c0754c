// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options that choose the block stack of an experiment, as `run` and
//! `workload` take them.

mod options;

use anyhow::Result;
use blklab::ExperimentError;
use blklab::matrix::{Overrides, Refused};
use options::Given;

/// What the options say, and which of them says it.
pub(crate) struct Chosen {
    /// What is chosen on top of the files.
    pub(crate) overrides: Overrides,
    /// The options behind its settings, in the same order.
    given: Vec<Given>,
}

impl Chosen {
    /// An error of the matrix with the option that it is about.
    pub(crate) fn told(&self, refused: Refused) -> ExperimentError {
        options::told(refused, &self.given)
    }

    /// The options behind the settings that have several values.
    pub(crate) fn varied(&self) -> impl Iterator<Item = &'static str> {
        let several = self.given.iter().filter(|g| g.setting.values.len() > 1);
        several.map(|g| g.option)
    }
}

/// The texts of these options, each as often as it was given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stack<'a> {
    pub(crate) kernel: &'a [String],
    pub(crate) sched: &'a [String],
    pub(crate) device: &'a [String],
    pub(crate) md: &'a [String],
    pub(crate) set: &'a [String],
    pub(crate) memory: Option<&'a String>,
    pub(crate) cpu_cost: &'a [String],
    pub(crate) fio: &'a [String],
    pub(crate) fs: &'a [String],
    pub(crate) patch: &'a [String],
    pub(crate) seed: Option<u64>,
    pub(crate) repeat: u32,
    pub(crate) sections: &'a [String],
}

impl Stack<'_> {
    /// What they say on top of experiment files.
    pub(crate) fn chosen(&self) -> Result<Chosen> {
        let mut devices = Vec::new();
        for text in self.device {
            devices.extend(options::parse_devices(text)?);
        }
        let mut arrays = Vec::new();
        for text in self.md {
            arrays.extend(options::parse_arrays(text)?);
        }
        let patches = self.patch.iter().map(|text| options::parse_patches(text));
        let given = self.settings()?;
        let overrides = Overrides {
            kernels: options::parse_values("--kernel", self.kernel)?,
            schedulers: options::parse_values("--sched", self.sched)?,
            devices,
            arrays,
            settings: given.iter().map(|g| g.setting.clone()).collect(),
            patches: patches.collect::<Result<Vec<_>, _>>()?,
            seed: self.seed,
            repeat: self.repeat,
            sections: self.sections.to_vec(),
        };
        options::check_contradictions(&overrides, &given)?;
        Ok(Chosen { overrides, given })
    }

    fn settings(&self) -> Result<Vec<Given>> {
        let mut settings = Vec::new();
        let mut short = |option: &'static str, key: &str, texts: &[String]| {
            if !texts.is_empty() {
                let values = options::parse_values(option, texts)?;
                settings.push(Given::new(option, key, values));
            }
            anyhow::Ok(())
        };
        short(
            "--memory",
            "memory",
            self.memory.map_or(&[], std::slice::from_ref),
        )?;
        short("--cpu-cost", "io_cost_ns", self.cpu_cost)?;
        short("--fio", "fio", self.fio)?;
        let filesystems = self.fs.iter().map(|text| options::parse_filesystems(text));
        let filesystems = filesystems.collect::<Result<Vec<_>, _>>()?.concat();
        if !filesystems.is_empty() {
            settings.push(Given::new("--fs", "filesystem", filesystems));
        }
        for text in self.set {
            settings.push(options::parse_setting(text)?);
        }
        Ok(settings)
    }
}
