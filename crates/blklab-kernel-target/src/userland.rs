// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first files of a machine: a shell, programs of this machine with their libraries,
//! and what it is to do.

use crate::build::{Built, Engine, find_program};
use crate::cpio::Writer;
use crate::disk::RESULTS_SECTORS;
use crate::disk::{Disk, Mark};
use crate::failed::failed;
use blklab_types::Error;
use std::collections::BTreeSet;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The script that the kernel starts. What it runs works in /work; all files that are
/// there at the end go to the disk for results.
const INIT: &str = include_str!("init.sh");
/// What stands in it for the disk for results.
const RESULTS: &str = "@RESULTS@";

/// What a machine is to have and to do.
#[derive(Clone, Debug, Default)]
pub struct Userland {
    /// Programs of this machine, and their packages in Debian: they are there under the
    /// same paths.
    pub programs: Vec<(&'static str, &'static str)>,
    /// Programs of ours, under these names.
    pub own: Vec<(&'static str, PathBuf)>,
    /// Files in /work: names and contents.
    pub files: Vec<(String, Vec<u8>)>,
    /// Modules, which are in /modules under their own names.
    pub modules: Vec<PathBuf>,
    /// What it does there, for a shell.
    pub script: String,
}

impl Userland {
    /// Writes the archive that a kernel unpacks.
    ///
    /// # Errors
    /// If a program is not there, or the archive cannot be written.
    pub(crate) fn write(&self, kernel: &Built, results: &str, to: &Path) -> Result<(), Error> {
        let mut host_files = BTreeSet::new();
        for program in &self.programs {
            with_libraries(*program, &mut host_files)?;
        }
        let written = || -> io::Result<()> {
            let file = std::fs::File::create(to)?;
            let mut archive = Writer::new(BufWriter::new(file));
            for folder in ["proc", "sys", "dev", "tmp", "run", "mnt", "work"] {
                archive.folder(folder)?;
            }
            archive.file("bin/busybox", true, &std::fs::read(kernel.busybox())?)?;
            archive.file("init", true, INIT.replace(RESULTS, results).as_bytes())?;
            for (name, mark) in Mark::ALL {
                archive.file(
                    &format!("bin/{name}"),
                    true,
                    command_for(kernel.engine, results, mark).as_bytes(),
                )?;
            }
            for (name, path) in &self.own {
                archive.file(&format!("bin/{name}"), true, &std::fs::read(path)?)?;
            }
            archive.file("script", false, self.script.as_bytes())?;
            for (name, bytes) in &self.files {
                archive.file(&format!("work/{name}"), false, bytes)?;
            }
            for path in &self.modules {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                archive.file(&format!("modules/{name}"), false, &std::fs::read(path)?)?;
            }
            for path in &host_files {
                archive.file(&path.to_string_lossy(), true, &std::fs::read(path)?)?;
            }
            archive.end()?;
            Ok(())
        };
        written().map_err(|e| {
            failed(&format!("the machine's first files cannot be written: {e}"))
                .in_file(&to.display().to_string())
        })
    }
}

/// The command that writes a mark.
fn mark_command(results: &str, mark: Mark) -> String {
    let page = Disk::page_of(RESULTS_SECTORS, mark);
    format!(
        "#!/bin/sh\nexec dd if=/dev/zero of=/dev/{results} bs=4096 count=1 seek={page} \
         oflag=direct conv=notrunc 2> /dev/null\n"
    )
}

/// The file that a machine without disks of ours notes in when its run begins.
pub(crate) const BEGUN: &str = "begun";

/// What tells of a mark. In QEMU there are no disks of ours: when a run begins is noted.
fn command_for(engine: Engine, results: &str, mark: Mark) -> String {
    match (engine, mark) {
        (Engine::Uml, mark) => mark_command(results, mark),
        (Engine::Qemu, Mark::Begin) => {
            format!("#!/bin/busybox sh\ncut -d ' ' -f 1 /proc/uptime > /work/{BEGUN}\n")
        }
        (Engine::Qemu, Mark::Align | Mark::End) => "#!/bin/busybox sh\n".to_owned(),
    }
}

/// A program and what it loads.
fn with_libraries(
    (name, package): (&str, &str),
    files: &mut BTreeSet<PathBuf>,
) -> Result<(), Error> {
    let Some(program) = find_program(name) else {
        return Err(failed(&format!(
            "a machine needs {name}, which this one does not have: apt-get install {package}"
        )));
    };
    let mut ldd = Command::new("ldd");
    let ran = ldd.arg(&program).stdin(Stdio::null()).output();
    let ran = ran.map_err(|e| failed(&format!("ldd cannot be run: {e}")))?;
    let listed = String::from_utf8_lossy(&ran.stdout);
    // What is static has none, and ldd says so by failing.
    files.extend(libraries(&listed).map(PathBuf::from));
    files.insert(program);
    Ok(())
}

/// The paths that ldd lists.
fn libraries(listed: &str) -> impl Iterator<Item = &str> {
    listed.lines().filter_map(|line| {
        let line = line.trim();
        let path = match line.split_once(" => ") {
            Some((_, path)) => path,
            None => line,
        };
        let path = path.split(" (").next().unwrap_or_default();
        path.starts_with('/').then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::{libraries, with_libraries};
    use std::collections::BTreeSet;

    #[test]
    fn libraries_are_those_that_ldd_lists() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                      \tlibaio.so.1 => /lib/x86_64-linux-gnu/libaio.so.1 (0x00007f1)\n\
                      \tlibgone.so.1 => not found\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007f3)\n";
        let paths: Vec<&str> = libraries(listed).collect();
        let expected = [
            "/lib/x86_64-linux-gnu/libaio.so.1",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(paths, expected);
        assert_eq!(libraries("\tnot a dynamic executable\n").count(), 0);
    }

    #[test]
    fn a_missing_program_is_said_with_its_package() {
        let error = with_libraries(("no-such-program", "no-such-program"), &mut BTreeSet::new());
        let error = error.expect_err("it is missing").to_string();
        assert!(
            error.ends_with("apt-get install no-such-program"),
            "{error}"
        );
    }
}
