// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filesystems: how this machine's programs make them, and with which words a kernel
//! mounts them as an experiment wants them.

mod kinds;

use crate::build::{Built, find_program, path_in_machine};
use blklab_experiment::{Experiment, FilesystemSpec, MAKE_WORDS, MOUNT_WORDS};
use blklab_types::Error;
use kinds::{ALL, Kind, RELEASES, Said};

/// Where it is mounted; jobs run there.
pub(super) const MOUNTED_AT: &str = "/fs";

/// A filesystem that is to be made and mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Volume {
    /// How people call it.
    pub(super) name: String,
    /// The name under which the kernel has it.
    pub(super) driver: &'static str,
    /// The option that builds it into a kernel.
    config: &'static str,
    /// What makes it, and its package in Debian.
    pub(super) program: (&'static str, &'static str),
    /// What that is told.
    pub(super) make: Vec<String>,
    /// What the mount is told.
    pub(super) mount: Vec<String>,
}

/// One without options that somebody chose.
fn of_kind(kind: &Kind) -> Volume {
    Volume {
        name: kind.name.to_owned(),
        driver: kind.driver,
        config: kind.config,
        program: kind.program,
        make: kind.make.iter().map(|&word| word.to_owned()).collect(),
        mount: kind.mount.iter().map(|&word| word.to_owned()).collect(),
    }
}

/// The filesystem of this name without any options; none if there is no such.
pub(super) fn without_options(name: &str) -> Option<Volume> {
    ALL.iter().find(|kind| kind.name == name).map(of_kind)
}

/// The filesystem of an experiment; none if its files are parts of the disk.
///
/// # Errors
/// If the kernel cannot have it, or not with an option.
pub(super) fn volume(e: &Experiment) -> Result<Option<Volume>, Error> {
    let spec = &e.filesystem;
    if spec.name == FilesystemSpec::default().name {
        return Ok(None);
    }
    let refused = |what: String, key: &str| Err(Error::not_modelled(what).about(key));
    let Some(kind) = ALL.iter().find(|kind| kind.name == spec.name) else {
        let what = format!(
            "the target kernel does not take the filesystem {}",
            spec.name
        );
        return refused(what, "filesystem");
    };
    let mut volume = of_kind(kind);
    for (key, value) in &spec.options {
        match key.as_str() {
            MOUNT_WORDS => {
                let words = value.split([' ', ',']).filter(|word| !word.is_empty());
                volume.mount.extend(words.map(str::to_owned));
                continue;
            }
            MAKE_WORDS => {
                volume
                    .make
                    .extend(value.split_whitespace().map(str::to_owned));
                continue;
            }
            _ => {}
        }
        let about = format!("filesystem.{key}");
        let said = kind.options.iter().find(|(name, _)| name == key);
        let Some((_, said)) = said else {
            let what = format!(
                "the target kernel does not take {key}, which only the model of {} has",
                spec.name
            );
            return refused(what, &about);
        };
        if !volume.say(*said, value) {
            let what = format!(
                "the target kernel does not take {key}={value}: its {} cannot be told so",
                spec.name
            );
            return refused(what, &about);
        }
    }
    Ok(Some(volume))
}

/// What the kernel's command line says for a filesystem: reiserfs opens the disk of its journal
/// once more to write to it, which kernels of distributions allow, and one with the least of
/// options from 6.8 on does not (block/bdev.c, `BLK_DEV_WRITE_MOUNTED`).
pub(super) fn argument(e: &Experiment) -> Option<&'static str> {
    (e.filesystem.name == "reiserfs").then_some("bdev_allow_write_mounted=1")
}

/// Refuses a release that came before the filesystem of an experiment, or has it no more:
/// it need not be built to know. Who brings a tree knows what is in it.
///
/// # Errors
/// When it came or went, and a release that has it.
pub(super) fn check_release(e: &Experiment) -> Result<(), Error> {
    let kernel = e.kernel.named();
    let name = &e.filesystem.name;
    let row = RELEASES.iter().find(|row| row.name == name);
    let Some(row) = row.filter(|_| e.kernel_source.is_empty()) else {
        return Ok(());
    };
    let when = if !kernel.is_from(row.since) {
        format!("it came with {}", row.since)
    } else if kernel.is_from(row.until) {
        format!("it went with {}", row.until)
    } else {
        return Ok(());
    };
    let (kernel, has) = (e.kernel, row.such_as);
    let what = format!("kernel {kernel} has no {name}: {when}; {has} has it");
    Err(Error::new(what).about("filesystem"))
}

impl Volume {
    /// The command that makes it on a device.
    pub(super) fn make_command(&self, on: &str) -> String {
        let program = path_in_machine(self.program.0);
        format!("{program} {} {on}", self.make.join(" "))
    }

    /// The command that mounts it.
    pub(super) fn mount_command(&self, on: &str, at: &str) -> String {
        // Else the machine's mount asks the kernel to be silent about what is wrong.
        let options: Vec<&str> = ["loud"]
            .into_iter()
            .chain(self.mount.iter().map(String::as_str))
            .collect();
        let options = options.join(",");
        format!("mount -t {} -o {options} {on} {at}", self.driver)
    }

    /// Refuses a kernel that was built without it.
    ///
    /// # Errors
    /// Its option, which is missing.
    pub(super) fn check_in(&self, kernel: &Built) -> Result<(), Error> {
        let (release, config) = (&kernel.release, self.config);
        if kernel.has_option(config) {
            return Ok(());
        }
        let what = format!(
            "Linux {release} was built without {} ({config}): it may not have it any more, or yet",
            self.name
        );
        Err(Error::not_modelled(what).about("filesystem"))
    }

    /// Refuses a machine without what makes it.
    ///
    /// # Errors
    /// The package that brings it.
    pub(super) fn check_program(&self) -> Result<(), Error> {
        let (program, package) = self.program;
        if find_program(program).is_some() {
            return Ok(());
        }
        let what = format!(
            "{} needs {program}, which this machine does not have: apt-get install {package}",
            self.name
        );
        Err(Error::new(what).about("filesystem"))
    }

    /// Whether any bytes take the same room: nothing is compressed.
    pub(super) fn takes_any_contents(&self) -> bool {
        let words = self.make.iter().chain(&self.mount);
        !words.clone().any(|word| word.contains("compress"))
    }

    /// Says an option to whom it is for; false if there are no words for it.
    fn say(&mut self, said: Said, value: &str) -> bool {
        let word = |words: &[(&str, &'static str)]| {
            let found = words.iter().find(|(of, _)| *of == value);
            found.map(|(_, word)| (*word).to_owned())
        };
        let (told, text) = match said {
            Said::Mount(text) => (&mut self.mount, Some(text.replace("{}", value))),
            Said::Words(words) => (&mut self.mount, word(words)),
            Said::Make(text) => (&mut self.make, Some(text.replace("{}", value))),
            Said::MakeWords(words) => (&mut self.make, word(words)),
            Said::Journal => (&mut self.make, journal(value)),
        };
        let Some(text) = text else {
            return false;
        };
        told.extend(text.split_whitespace().map(str::to_owned));
        true
    }
}

/// mke2fs takes the size of a journal in MiB; its blocks have 4 KiB.
fn journal(blocks: &str) -> Option<String> {
    const BLOCKS_OF_MIB: u64 = 256;
    let blocks: u64 = blocks.parse().ok()?;
    let is_whole = blocks.is_multiple_of(BLOCKS_OF_MIB);
    is_whole.then(|| format!("-J size={}", blocks / BLOCKS_OF_MIB))
}

#[cfg(test)]
mod tests {
    use super::{argument, check_release, volume};
    use blklab_experiment::{Experiment, OF_KERNELS, Workload};

    fn experiment(filesystem: &str) -> Experiment {
        let mut e = Experiment::new("e", Workload::Processes(Vec::new()));
        let catalogue = blklab_sim::catalogue();
        e.choose_filesystem(filesystem, &catalogue)
            .expect("it is known");
        e
    }

    #[test]
    fn options_are_said_in_the_words_of_mkfs_and_mount() {
        let told = |text: &str| {
            let volume = volume(&experiment(text)).expect("it can be had");
            let volume = volume.expect("it is made");
            (volume.make.join(" "), volume.mount.join(","))
        };
        let (make, mount) = told("ext4:data=writeback:barrier=0:journal_blocks=8192:atime=never");
        assert!(make.ends_with(" -J size=32"), "{make}");
        assert_eq!(mount, "noinit_itable,data=writeback,barrier=0,noatime");
        let (make, mount) = told("xfs:agcount=8:barrier=1:mount=noalign wsync:mkfs=-i size=1024");
        assert!(make.ends_with("-d agcount=8 -i size=1024"), "{make}");
        assert_eq!(mount, "noalign,wsync");
    }

    #[test]
    fn what_only_a_model_has_is_refused_by_name() {
        for (text, expected) in [
            (
                "ext3:creator_pid=7",
                "creator_pid, which only the model of ext3 has",
            ),
            ("xfs:barrier=0", "barrier=0: its xfs cannot be told so"),
            ("ext4:journal_blocks=1025", "journal_blocks=1025"),
            ("btrfs-0.16", "the filesystem btrfs-0.16"),
        ] {
            let error = volume(&experiment(text)).expect_err("it is refused");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn a_release_without_a_filesystem_is_refused_and_one_is_named_that_has_it() {
        let said = |name: &str, kernel: &str| {
            let mut e = experiment(name);
            e.kernel = kernel.parse().expect(kernel);
            check_release(&e).err().map(|err| err.to_string())
        };
        for (name, kernel, expected) in [
            ("reiserfs", "7.3", "it went with 6.13; 6.12 has it"),
            ("bcachefs", "6.1", "it came with 6.7; 6.12 has it"),
            ("bcachefs", "7.4", "it went with 6.18; 6.12 has it"),
            ("ntfs3", "5.10", "it came with 5.15; 6.12 has it"),
        ] {
            let error = said(name, kernel).expect(name);
            let expected = format!("kernel {kernel} has no {name}: {expected}");
            assert!(error.contains(&expected), "{error}");
            assert_eq!(said(name, "6.12"), None, "{name}");
        }
        assert_eq!(said("vfat", "5.10"), None);
        let mut e = experiment("bcachefs");
        e.kernel_source = "/home/linux".to_owned();
        assert!(check_release(&e).is_ok(), "a tree may have it");
    }

    #[test]
    fn reiserfs_may_open_its_disk_twice() {
        let told = argument(&experiment("reiserfs"));
        assert_eq!(told, Some("bdev_allow_write_mounted=1"));
        assert_eq!(argument(&experiment("ext4")), None);
    }

    #[test]
    fn every_filesystem_of_kernels_can_be_made() {
        for (name, _) in OF_KERNELS {
            let volume = volume(&experiment(name)).expect("it can be had");
            assert_eq!(volume.map(|v| v.name).as_deref(), Some(*name));
        }
    }
}
