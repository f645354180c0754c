// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options that choose the block stack of an experiment, as `run` and
//! `workload` take them; fuzzing, which has no arguments, makes them of lines.

mod options;

use anyhow::Result;
use blklab::matrix::{Overrides, Refused};
use blklab::types::Error;
use options::Given;

/// What the options say, and which of them says it.
pub struct Chosen {
    /// What is chosen on top of the files.
    pub overrides: Overrides,
    /// The options behind its settings, in the same order.
    given: Vec<Given>,
}

impl Chosen {
    /// An error of the matrix with the option that it is about.
    pub fn told(&self, refused: Refused) -> Error {
        options::told(refused, &self.given)
    }

    /// The options behind the settings that have several values.
    pub fn varied(&self) -> impl Iterator<Item = &'static str> {
        let several = self.given.iter().filter(|g| g.setting.values.len() > 1);
        several.map(|g| g.option)
    }
}

/// The texts of these options, each as often as it was given.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stack<'a> {
    /// `--kernel`.
    pub kernel: &'a [String],
    /// `--sched`.
    pub sched: &'a [String],
    /// `--target`.
    pub target: &'a [String],
    /// `--kernel-source`.
    pub kernel_source: &'a [String],
    /// `--device`.
    pub device: &'a [String],
    /// `--md`.
    pub md: &'a [String],
    /// `--dm`.
    pub dm: &'a [String],
    /// `--set`.
    pub set: &'a [String],
    /// `--memory`.
    pub memory: Option<&'a String>,
    /// `--cpu-cost`.
    pub cpu_cost: &'a [String],
    /// `--fio`.
    pub fio: &'a [String],
    /// `--fs`.
    pub fs: &'a [String],
    /// `--patch`.
    pub patch: &'a [String],
    /// `--seed`.
    pub seed: Option<u64>,
    /// `--repeat`.
    pub repeat: u32,
    /// `--repeat-exact`.
    pub repeat_exact: bool,
    /// `--section`.
    pub sections: &'a [String],
}

impl Stack<'_> {
    /// What they say on top of experiment files.
    ///
    /// # Errors
    /// The first option that makes no sense, or that contradicts another.
    pub fn chosen(&self) -> Result<Chosen> {
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
            repeat_exact: self.repeat_exact,
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
        short("--target", "target", self.target)?;
        short("--kernel-source", "kernel_source", self.kernel_source)?;
        short(
            "--memory",
            "memory",
            self.memory.map_or(&[], std::slice::from_ref),
        )?;
        short("--cpu-cost", "io_cost_ns", self.cpu_cost)?;
        short("--fio", "fio", self.fio)?;
        let dm = self.dm.iter().flat_map(|text| options::split_dm(text));
        let dm: Vec<String> = dm.collect();
        if !dm.is_empty() {
            settings.push(Given::new("--dm", "dm", dm));
        }
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
