// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels that were built or fetched, in a folder of the user's cache.
//!
//! ```text
//! kernels/7.3.4-1f0c…/   linux, config, busybox, kernel.toml
//! images/7.3.4+deb13…/   vmlinuz, modules, modules.dep, modules.builtin, busybox, kernel.toml
//! programs/…             programs of ours for machines
//! build/…                sources and objects while a kernel is built
//! apt/, apt-images/      the state of apt, for what is built and for what is fetched
//! ```
//!
//! A kernel is complete or not there: its folder gets its name at the end.

use super::command::{Step, Watch};
use super::modules::{MODULES, Modules};
use super::own_module;
use super::recipe::{self, unwritten};
use crate::failed::failed;
use blklab_types::{Error, ErrorKind, Hz, no_such};
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What says what a kernel is.
const ABOUT: &str = "kernel.toml";
/// A kernel that is a program.
const PROGRAM: &str = "linux";
/// A kernel that a machine boots.
pub(super) const IMAGE: &str = "vmlinuz";
/// How a folder is called before it is complete.
const NEW: &str = ".new-";
/// Between two tries to be the only one who builds.
const PATIENCE: Duration = Duration::from_millis(200);

/// What runs a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// User Mode Linux: a kernel that was built as a program.
    Uml,
    /// QEMU: an image that a machine boots.
    Qemu,
}

impl Engine {
    /// All of them.
    pub const ALL: [Engine; 2] = [Engine::Uml, Engine::Qemu];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Uml => "uml",
            Engine::Qemu => "qemu",
        }
    }

    /// The key that errors are about if a kernel is not there, which hints are found by.
    const fn key(self) -> &'static str {
        match self {
            Engine::Uml => "built kernel",
            Engine::Qemu => "kernel image",
        }
    }

    /// What is said where there is no kernel at all.
    const fn none_yet(self) -> &'static str {
        match self {
            Engine::Uml => "no kernel was built yet",
            Engine::Qemu => "no image of a kernel was fetched yet",
        }
    }

    /// The folder below the root of the cache that has its kernels.
    const fn folder(self) -> &'static str {
        match self {
            Engine::Uml => "kernels",
            Engine::Qemu => "images",
        }
    }
}

/// The folder of all kernels.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// What is written beside a kernel.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct About {
    /// Its release, as `7.3.4`.
    pub(super) release: String,
    /// What it was built from: a package with its version, or a folder.
    pub(super) source: String,
    /// What names source and recipe together.
    pub(super) key: String,
    /// What names the recipe; empty where it was not yet written.
    #[serde(default)]
    pub(super) recipe: String,
    /// Ticks per second that it was built with; of images it is not known.
    #[serde(default = "usual_hz", skip_serializing_if = "is_usual_hz")]
    pub(super) hz: u32,
}

const fn usual_hz() -> u32 {
    recipe::HZ.0
}

/// As serde asks.
fn is_usual_hz(hz: &u32) -> bool {
    *hz == usual_hz()
}

/// A kernel that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// Its name in the cache.
    pub name: String,
    /// Its release, as `7.3.4`.
    pub release: String,
    /// What it was built from.
    pub source: String,
    /// What runs it.
    pub engine: Engine,
    /// Ticks per second that it was built with; of images it is not known.
    pub hz: Hz,
    /// What names source and recipe together.
    pub(super) key: String,
    /// What names the recipe.
    recipe: String,
    folder: PathBuf,
}

impl Built {
    /// The program, or the image.
    pub fn program(&self) -> PathBuf {
        self.folder.join(match self.engine {
            Engine::Uml => PROGRAM,
            Engine::Qemu => IMAGE,
        })
    }

    /// Its modules, where it is an image.
    ///
    /// # Errors
    /// If the lists of them cannot be read.
    pub(crate) fn modules(&self) -> Result<Modules, Error> {
        let mut modules = Modules::read(&self.folder)?;
        if let Some(file) = own_module::built(&self.folder) {
            modules.add(own_module::NAME, file);
        }
        Ok(modules)
    }

    /// Its folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether our own module was built for it.
    pub(crate) fn has_simdisk(&self) -> bool {
        own_module::built(&self.folder).is_some()
    }

    /// The shell and tools of the machine that it runs.
    pub fn busybox(&self) -> PathBuf {
        self.folder.join("busybox")
    }

    /// Whether it was built with an option, such as `CONFIG_EXT4_FS`. Who has no record of
    /// its options may have all.
    pub fn has_option(&self, option: &str) -> bool {
        let Ok(config) = std::fs::read_to_string(self.folder.join("config")) else {
            return true;
        };
        let is_set = |line: &str| line.strip_prefix(option).is_some_and(|rest| rest == "=y");
        config.lines().any(is_set)
    }

    /// Bytes of its files.
    pub fn bytes(&self) -> u64 {
        bytes_in(&self.folder) + bytes_in(&self.folder.join(MODULES))
    }

    /// Whether it was built from somebody's folder.
    pub fn is_of_tree(&self) -> bool {
        self.source.starts_with('/')
    }

    /// Whether it was built as kernels are built now.
    pub(super) fn is_current(&self) -> bool {
        self.recipe == recipe::name(self.hz)
    }

    /// What orders kernels by when they were built.
    fn age(&self) -> (Option<SystemTime>, String) {
        let about = self.folder.join(ABOUT).metadata();
        let built = about.and_then(|m| m.modified()).ok();
        (built, self.name.clone())
    }

    /// Whether it is of a release such as `7.3` or `7.3.4`.
    pub fn is_of(&self, release: &str) -> bool {
        let rest = self.release.strip_prefix(release);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '+']))
    }
}

impl Cache {
    /// The user's: `$XDG_CACHE_HOME/blklab`, or `~/.cache/blklab`.
    ///
    /// # Errors
    /// If the user has no home.
    pub fn of_user() -> Result<Cache, Error> {
        let absolute = |name: &str| {
            let value = std::env::var_os(name).map(PathBuf::from);
            value.filter(|path| path.is_absolute())
        };
        let home = || absolute("HOME").map(|home| home.join(".cache"));
        match absolute("XDG_CACHE_HOME").or_else(home) {
            Some(folder) => Ok(Cache::at(folder.join("blklab"))),
            None => Err(Error::new(
                "there is no place for kernels: neither XDG_CACHE_HOME nor HOME is set",
            )),
        }
    }

    /// One in a folder.
    pub fn at(root: PathBuf) -> Cache {
        Cache { root }
    }

    /// Where kernels that were built are kept.
    pub fn folder(&self) -> PathBuf {
        self.folder_of(Engine::Uml)
    }

    fn folder_of(&self, engine: Engine) -> PathBuf {
        self.root.join(engine.folder())
    }

    #[cfg(test)]
    pub(crate) fn image_for_tests(root: &Path) -> Built {
        let about = About {
            release: "6.12.1".to_owned(),
            source: "linux-image".to_owned(),
            key: "aa".to_owned(),
            recipe: String::new(),
            hz: recipe::HZ.0,
        };
        let kept = Cache::at(root.to_owned());
        let kept = kept.keep_as(Engine::Qemu, "6.12.1", &about, &mut |_| Ok(()));
        kept.expect("it is kept")
    }

    /// The state of apt: one for each engine, so that a fetch need not wait for a build.
    pub(super) fn apt(&self, engine: Engine) -> PathBuf {
        self.root.join(match engine {
            Engine::Uml => "apt",
            Engine::Qemu => "apt-images",
        })
    }

    /// Programs of ours for machines.
    pub(super) fn programs(&self) -> PathBuf {
        self.root.join("programs")
    }

    pub(super) fn build(&self) -> PathBuf {
        self.root.join("build")
    }

    /// The kernels that were built, by name.
    pub fn kernels(&self) -> Vec<Built> {
        self.kernels_of(Engine::Uml)
    }

    /// The kernels that there are for an engine, by name.
    pub fn kernels_of(&self, engine: Engine) -> Vec<Built> {
        let entries = std::fs::read_dir(self.folder_of(engine));
        let entries = entries.into_iter().flatten();
        let folders = entries.filter_map(|e| Some(e.ok()?.path()));
        let mut all: Vec<Built> = folders.filter_map(|f| read(&f, engine)).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The kernel of a release's own source with so many ticks a second, as it is built
    /// now: of several the one built last.
    pub(super) fn of_release(&self, release: &str, hz: Hz) -> Option<Built> {
        let all = self.kernels().into_iter();
        let is_as_built_now = |k: &Built| k.hz == hz && k.is_current();
        let fits = |k: &Built| k.is_of(release) && !k.is_of_tree() && is_as_built_now(k);
        all.filter(fits).max_by_key(Built::age)
    }

    /// The kernel of a release, or of a name: of several the one built last.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(&self, wanted: &str) -> Result<Built, Error> {
        self.find_for(Engine::Uml, wanted)
    }

    /// The kernel of a release, or of a name, for an engine: of several the one that came
    /// last.
    ///
    /// # Errors
    /// If there is none.
    pub fn find_for(&self, engine: Engine, wanted: &str) -> Result<Built, Error> {
        let all = self.kernels_of(engine);
        let named = all.iter().find(|k| k.name == wanted);
        let newest = || {
            all.iter()
                .filter(|k| k.is_of(wanted))
                .max_by_key(|k| k.age())
        };
        if let Some(kernel) = named.or_else(newest) {
            return Ok(kernel.clone());
        }
        let what = if all.is_empty() {
            engine.none_yet().to_owned()
        } else {
            let names: Vec<&str> = all.iter().map(|k| k.name.as_str()).collect();
            no_such(engine.key(), wanted, &names)
        };
        let error = Error::new(what).of_kind(ErrorKind::UnknownName);
        Err(error.about(engine.key()))
    }

    /// Removes a kernel.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, kernel: &Built) -> Result<(), Error> {
        // It is gone at once, whatever happens to the rest.
        let dying = self.folder_of(kernel.engine);
        let dying = dying.join(format!("{NEW}removed-{}", kernel.name));
        let gone = std::fs::rename(&kernel.folder, &dying);
        gone.and_then(|()| std::fs::remove_dir_all(&dying))
            .map_err(|e| unremoved(&kernel.folder, &e))
    }

    pub(super) fn with_key(&self, engine: Engine, key: &str) -> Option<Built> {
        let mut all = self.kernels_of(engine).into_iter();
        all.find(|k| k.key == key)
    }

    /// Keeps a kernel that was built: copies its files, and gives the folder its name.
    ///
    /// # Errors
    /// If there is no room.
    pub(super) fn keep(&self, about: &About, files: &[(&Path, &str)]) -> Result<Built, Error> {
        let name = format!("{}-{}", about.release, about.key);
        self.keep_as(Engine::Uml, &name, about, &mut |new| {
            for (from, to) in files {
                let to = new.join(to);
                std::fs::copy(from, &to).map_err(|e| unwritten(&to, &e))?;
            }
            Ok(())
        })
    }

    /// Keeps a kernel under a name: `fill` puts its files into a folder, which gets its
    /// name when that is done.
    ///
    /// # Errors
    /// If there is no room, or `fill` fails.
    pub(super) fn keep_as(
        &self,
        engine: Engine,
        name: &str,
        about: &About,
        fill: &mut dyn FnMut(&Path) -> Result<(), Error>,
    ) -> Result<Built, Error> {
        let new = self.folder_of(engine).join(format!("{NEW}{name}"));
        // What a build left that was killed here.
        let _ = std::fs::remove_dir_all(&new);
        std::fs::create_dir_all(&new).map_err(|e| unwritten(&new, &e))?;
        fill(&new)?;
        let text = toml::to_string(about).map_err(|e| failed(&e.to_string()))?;
        let file = new.join(ABOUT);
        std::fs::write(&file, text).map_err(|e| unwritten(&file, &e))?;
        let folder = self.folder_of(engine).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::rename(&new, &folder).map_err(|e| unwritten(&folder, &e))?;
        let kept = read(&folder, engine);
        kept.ok_or_else(|| failed("a kernel that was just kept is not there"))
    }

    /// Waits until nobody else builds or fetches for an engine, and keeps others waiting
    /// until the file is dropped.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub(super) fn lock(&self, engine: Engine, watch: &mut Watch<'_>) -> Result<File, Error> {
        for folder in [self.folder_of(engine), self.build()] {
            std::fs::create_dir_all(&folder).map_err(|e| unwritten(&folder, &e))?;
        }
        let path = self.build().join(match engine {
            Engine::Uml => "lock",
            Engine::Qemu => "lock-images",
        });
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(|e| unwritten(&path, &e))?;
        let mut waits = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(e)) => return Err(unwritten(&path, &e)),
            }
            if !waits {
                (watch.step)(Step::Waiting);
                waits = true;
            }
            watch.go_on()?;
            std::thread::sleep(PATIENCE);
        }
    }
}

/// Bytes of the files of a folder, without those below.
fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let all = entries.filter_map(|e| e.ok()?.metadata().ok());
    all.filter(std::fs::Metadata::is_file)
        .map(|m| m.len())
        .sum()
}

fn read(folder: &Path, engine: Engine) -> Option<Built> {
    let name = folder.file_name()?.to_str()?;
    if name.starts_with(NEW) {
        return None;
    }
    let text = std::fs::read_to_string(folder.join(ABOUT)).ok()?;
    let about: About = toml::from_str(&text).ok()?;
    Some(Built {
        name: name.to_owned(),
        release: about.release,
        source: about.source,
        engine,
        hz: Hz(about.hz),
        key: about.key,
        recipe: about.recipe,
        folder: folder.to_owned(),
    })
}

pub(super) fn unremoved(path: &Path, e: &std::io::Error) -> Error {
    failed(&format!("cannot be removed: {e}")).in_file(&path.display().to_string())
}

#[cfg(test)]
mod tests;
