// SPDX-License-Identifier: MIT OR Apache-2.0
//! Running the command in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Random reads for a moment: 256 I/Os.
pub(crate) const JOB: &str = "[readers]\nrw=randread\nsize=1m\ndirect=1\n";

/// A folder with files in which commands run.
pub(crate) struct Folder(TempDir);

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    /// With `job.fio`.
    pub(crate) fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a temporary folder"));
        folder.write("job.fio", JOB);
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("in the folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a text file")
    }

    /// Names of the files in a folder, sorted.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|e| {
                e.expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_blklab"));
        command.args(args).current_dir(self.0.path());
        command
    }

    /// Runs blklab.
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        done(self.command(args).output().expect("blklab starts"))
    }

    /// Runs blklab, which must succeed; returns its standard output.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert_eq!(done.code, Some(0), "blklab {args:?}\n{}", done.stderr);
        assert_eq!(done.stderr, "", "blklab {args:?}");
        done.stdout
    }

    /// Runs a shell script in which `blklab` is the command.
    pub(crate) fn shell(&self, script: &str) -> Done {
        let bin = Path::new(env!("CARGO_BIN_EXE_blklab"));
        let dir = bin.parent().expect("the binary is in a folder");
        let path = format!(
            "{}:{}",
            dir.display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let output = Command::new("sh")
            .args(["-c", script])
            .env("PATH", path)
            .current_dir(self.0.path())
            .output();
        done(output.expect("a shell"))
    }
}

fn done(output: Output) -> Done {
    Done {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// The root of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The word after `digest` in the output of a run.
pub(crate) fn digest(text: &str) -> &str {
    let (_, rest) = text.split_once("digest ").expect("the run says its digest");
    rest.split_whitespace().next().expect("a number follows")
}
