// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options that choose the block stack of an experiment, as `run` and
//! `workload` take them.

use anyhow::Result;
use blklab::matrix::{self, Overrides, Setting};

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
    pub(crate) fn overrides(&self) -> Result<Overrides> {
        let mut devices = Vec::new();
        for text in self.device {
            devices.extend(matrix::parse_devices(text)?);
        }
        let mut arrays = Vec::new();
        for text in self.md {
            arrays.extend(matrix::parse_arrays(text)?);
        }
        let patches = self.patch.iter().map(|text| matrix::parse_patches(text));
        Ok(Overrides {
            kernels: matrix::parse_values("--kernel", self.kernel)?,
            schedulers: matrix::parse_values("--sched", self.sched)?,
            devices,
            arrays,
            settings: self.settings()?,
            patches: patches.collect::<Result<Vec<_>, _>>()?,
            seed: self.seed,
            repeat: self.repeat,
            sections: self.sections.to_vec(),
        })
    }

    fn settings(&self) -> Result<Vec<Setting>> {
        let mut settings = Vec::new();
        let mut short = |option: &'static str, key: &str, texts: &[String]| {
            if !texts.is_empty() {
                let values = matrix::parse_values(option, texts)?;
                settings.push(Setting::of_option(option, key, values));
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
        let filesystems = self.fs.iter().map(|text| matrix::parse_filesystems(text));
        let filesystems = filesystems.collect::<Result<Vec<_>, _>>()?.concat();
        if !filesystems.is_empty() {
            settings.push(Setting::of_option("--fs", "filesystem", filesystems));
        }
        for text in self.set {
            settings.push(matrix::parse_setting(text)?);
        }
        Ok(settings)
    }
}
