// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folders of the jobs' files on a filesystem, and where the jobs find them.

use super::filesystem::MOUNTED_AT;
use super::parts::check_name;
use blklab_fio::parse::JobFile;
use blklab_target::files::is_device;
use blklab_types::Error;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Folders at the root that belong to the machine.
const OWN: [&str; 13] = [
    "bin", "dev", "etc", "fs", "init", "lib", "lib64", "proc", "run", "sbin", "sys", "usr", "work",
];

/// What jobs find on a filesystem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Folders {
    /// Folders of files, without a slash in front; those above others first.
    folders: BTreeSet<String>,
    /// Of these, the ones that jobs call by a path from the root.
    from_root: BTreeSet<String>,
    /// Files in the root itself.
    in_root: BTreeSet<String>,
    /// Names under which jobs know the whole disk.
    whole: BTreeSet<String>,
}

impl Folders {
    /// Those of jobs.
    ///
    /// # Errors
    /// If a name cannot be had.
    pub(super) fn new(jobs: &JobFile) -> Result<Folders, Error> {
        let mut all = Folders::default();
        for job in jobs.jobs.iter().filter(|job| !job.is_diskless()) {
            for name in &job.files {
                check_name(name).map_err(|e| e.at(&job.place))?;
                if is_device(name) {
                    if job.settings.rw.writes || job.settings.rw.trims {
                        return Err(Error::not_modelled(format!(
                            "job '{}' writes to {name}, on which the filesystem lies",
                            job.name
                        ))
                        .at(job.place_of(&["filename"])));
                    }
                    all.whole.insert(name.clone());
                    continue;
                }
                all.add(name).map_err(|e| e.at(&job.place))?;
            }
        }
        Ok(all)
    }

    fn add(&mut self, name: &str) -> Result<(), Error> {
        let path = name.trim_start_matches('/');
        let is_from_root = path.len() < name.len();
        let Some((folder, _)) = path.rsplit_once('/') else {
            if is_from_root {
                self.in_root.insert(path.to_owned());
            }
            return Ok(());
        };
        let parts: Vec<&str> = folder
            .split('/')
            .filter(|p| !matches!(*p, "" | "."))
            .collect();
        let folder = parts.join("/");
        if folder.is_empty() {
            return Ok(());
        }
        if is_from_root {
            if let Some(own) = OWN.iter().find(|own| parts.first() == Some(own)) {
                return Err(Error::not_modelled(format!(
                    "file '{name}': /{own} belongs to the machine of the target kernel"
                )));
            }
            self.from_root.insert(folder.clone());
        }
        self.folders.insert(folder);
        Ok(())
    }

    /// What a shell does to have them.
    pub(super) fn write(&self, s: &mut String, top: &str) {
        for folder in &self.folders {
            let _ = writeln!(s, "mkdir -p '{MOUNTED_AT}/{folder}'");
        }
        // A folder above others has them.
        let is_below = |folder: &str| {
            let above = folder.match_indices('/').map(|(end, _)| &folder[..end]);
            above
                .into_iter()
                .any(|above| self.from_root.contains(above))
        };
        for folder in self.from_root.iter().filter(|folder| !is_below(folder)) {
            let _ = writeln!(
                s,
                "mkdir -p '/{folder}'\n\
                 step 'mounting /{folder}' mount -o bind '{MOUNTED_AT}/{folder}' '/{folder}'"
            );
        }
        for file in &self.in_root {
            let _ = writeln!(s, "ln -s '{MOUNTED_AT}/{file}' '/{file}'");
        }
        for name in self.whole.iter().filter(|name| *name != top) {
            if let Some((folder, _)) = name.rsplit_once('/') {
                let _ = writeln!(s, "mkdir -p '{folder}'");
            }
            let _ = writeln!(s, "ln -s {top} '{name}'");
        }
    }
}
