// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modules that a machine loads before it does anything.

use crate::build::{Built, Loading};
use crate::failed::failed;
use blklab_types::Error;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A module with parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Load {
    name: &'static str,
    parameters: Vec<(&'static str, u64)>,
    /// Whether a kernel need not have it: what needs it says so.
    is_optional: bool,
}

impl Load {
    pub(super) fn new(name: &'static str) -> Load {
        Load {
            name,
            parameters: Vec::new(),
            is_optional: false,
        }
    }

    /// The same with a parameter.
    pub(super) fn with(mut self, parameter: &'static str, value: u64) -> Load {
        self.parameters.push((parameter, value));
        self
    }

    /// The same, unless the kernel has no such module.
    pub(super) fn if_there(mut self) -> Load {
        self.is_optional = true;
        self
    }
}

/// What is loaded, and how.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Loads {
    /// The files, in their order.
    pub(super) files: Vec<PathBuf>,
    /// What loads them, for a shell. `fail` ends the run if one cannot be loaded.
    pub(super) script: String,
    /// Parameters of what is part of the image, for the kernel's command line.
    pub(super) arguments: Vec<String>,
}

impl Loads {
    /// Parameters of what a kernel has built in.
    pub(super) fn built_in(wanted: &[Load]) -> Loads {
        let mut loads = Loads::default();
        for load in wanted {
            loads.give(load);
        }
        loads
    }

    fn give(&mut self, load: &Load) {
        let parameters = load.parameters.iter();
        let argument = |(key, value): &(&str, u64)| format!("{}.{key}={value}", load.name);
        self.arguments.extend(parameters.map(argument));
    }

    /// Finds modules of a kernel.
    ///
    /// # Errors
    /// If the kernel does not have one of them.
    pub(super) fn find(kernel: &Built, wanted: &[Load]) -> Result<Loads, Error> {
        let modules = kernel.modules()?;
        let mut loads = Loads::default();
        let load = "load() { insmod \"$@\" || fail \"$1 cannot be loaded\"; }\n";
        loads.script.push_str(load);
        let mut seen = BTreeSet::new();
        for load in wanted {
            match modules.loading(load.name) {
                None if load.is_optional => {}
                None => {
                    let what = format!("Linux {} has no module {}", kernel.release, load.name);
                    return Err(failed(&what));
                }
                Some(Loading::Builtin) => loads.give(load),
                Some(Loading::Files(files)) => {
                    for (i, file) in files.iter().enumerate() {
                        let is_itself = i + 1 == files.len();
                        let parameters = if is_itself { &load.parameters[..] } else { &[] };
                        if seen.insert(file.clone()) {
                            loads.add(file, parameters);
                        }
                    }
                }
            }
        }
        Ok(loads)
    }

    fn add(&mut self, file: &Path, parameters: &[(&'static str, u64)]) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let _ = write!(self.script, "load /modules/{name}");
        for (key, value) in parameters {
            let _ = write!(self.script, " {key}={value}");
        }
        self.script.push('\n');
        self.files.push(file.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::{Load, Loads};
    use crate::build::Cache;

    #[test]
    fn what_is_part_of_the_image_gets_its_parameters_at_the_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let kernel = Cache::image_for_tests(folder.path());
        let driver = Load::new("null_blk").with("nr_devices", 0);
        // Nobody has said what the image has.
        let found = Loads::find(&kernel, std::slice::from_ref(&driver)).expect("it is built in");
        assert_eq!(found.arguments, ["null_blk.nr_devices=0"]);
        assert!(found.files.is_empty());
        let lists = folder.path().join("images/6.12.1");
        let list = "modules/configfs.ko:\nmodules/null_blk.ko: modules/configfs.ko\n";
        std::fs::write(lists.join("modules.dep"), list).expect("a file");
        std::fs::write(lists.join("modules.builtin"), "").expect("a file");
        let found = Loads::find(&kernel, &[driver.clone(), driver]).expect("it has a file");
        assert!(found.arguments.is_empty());
        let lines: Vec<&str> = found.script.lines().skip(1).collect();
        let expected = [
            "load /modules/configfs.ko",
            "load /modules/null_blk.ko nr_devices=0",
        ];
        assert_eq!(lines, expected);
        let missing = Loads::find(&kernel, &[Load::new("f2fs")]).expect_err("it has none");
        assert_eq!(missing.to_string(), "Linux 6.12.1 has no module f2fs");
        let optional = Loads::find(&kernel, &[Load::new("f2fs").if_there()]);
        assert!(optional.expect("it need not").files.is_empty());
    }
}
