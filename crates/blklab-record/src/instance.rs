// SPDX-License-Identifier: MIT OR Apache-2.0
//! An instance of tracefs: buffers and enabled events of one recorder.

use crate::RecordError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// How the names of our instances begin.
const PREFIX: &str = "blklab-";

/// Names that are tried; somebody else may just take one.
const TRIES: u32 = 100;

/// An instance, locked while it is ours; it is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Instance {
    path: PathBuf,
    /// Its folder, locked.
    _lock: File,
    is_removed: bool,
}

/// Locks the folder of an instance; none if somebody has it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let folder = File::open(path)?;
    match folder.try_lock() {
        Ok(()) => Ok(Some(folder)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(e)) => Err(e),
    }
}

/// Removes instances whose recorder is gone; returns their names.
///
/// # Errors
/// If there is one that cannot be removed, or they cannot be listed.
pub fn clean(tracefs: &Path) -> Result<Vec<String>, RecordError> {
    let folder = tracefs.join("instances");
    let fail = |e: &io::Error| {
        let hint = match e.kind() {
            io::ErrorKind::PermissionDenied => "; recording needs root: run it with sudo",
            _ => "",
        };
        RecordError::new(format!("cannot read {}: {e}{hint}", folder.display()))
    };
    let mut removed = Vec::new();
    for entry in fs::read_dir(&folder).map_err(|e| fail(&e))? {
        let entry = entry.map_err(|e| fail(&e))?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = entry.path();
        if !name.starts_with(PREFIX) {
            continue;
        }
        // One that is gone by now was removed by its recorder.
        let Ok(Some(_lock)) = lock(&path) else {
            continue;
        };
        match remove(&path) {
            Ok(()) => removed.push(name),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(RecordError::at("remove", &path, &e)),
        }
    }
    removed.sort_unstable();
    Ok(removed)
}

/// Writes to a file of the kernel, which is there or not.
fn put(path: &Path, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(value.as_bytes())
}

/// Stops an instance and removes it.
fn remove(path: &Path) -> io::Result<()> {
    // An instance that still records goes all the same; this makes it cheaper.
    let _ = put(&path.join("tracing_on"), "0");
    let _ = put(&path.join("events/enable"), "0");
    fs::remove_dir(path)
}

impl Instance {
    /// Makes a new one, once those that were left behind are removed.
    pub(crate) fn create(tracefs: &Path) -> Result<Instance, RecordError> {
        clean(tracefs)?;
        let pid = std::process::id();
        for n in 0..TRIES {
            let path = tracefs.join("instances").join(format!("{PREFIX}{pid}-{n}"));
            match fs::create_dir(&path) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(not_made(&path, &e)),
            }
            // Between the two, another one's cleaning may have taken it for left behind.
            let Ok(Some(folder)) = lock(&path) else {
                continue;
            };
            let inode = folder.metadata().map(|m| m.ino()).ok();
            if inode.is_some() && fs::metadata(&path).map(|m| m.ino()).ok() == inode {
                return Ok(Instance {
                    path,
                    _lock: folder,
                    is_removed: false,
                });
            }
        }
        Err(RecordError::new(format!(
            "cannot make an instance below {}: all names are taken",
            tracefs.join("instances").display()
        )))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes to one of its files.
    pub(crate) fn set(&self, name: &str, value: &str) -> Result<(), RecordError> {
        let path = self.file(name);
        put(&path, value).map_err(|e| {
            RecordError::new(format!("cannot write {value:?} to {}: {e}", path.display()))
        })
    }

    pub(crate) fn read(&self, name: &str) -> Result<String, RecordError> {
        let path = self.file(name);
        fs::read_to_string(&path).map_err(|e| RecordError::at("read", &path, &e))
    }

    /// Removes it; its files must be closed.
    pub(crate) fn remove(mut self) -> Result<(), RecordError> {
        self.is_removed = true;
        remove(&self.path).map_err(|e| RecordError::at("remove", &self.path, &e))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if !self.is_removed {
            // Whoever records next tries again.
            let _ = remove(&self.path);
        }
    }
}

fn not_made(path: &Path, e: &io::Error) -> RecordError {
    let why = match e.kind() {
        io::ErrorKind::PermissionDenied => "; recording needs root: run it with sudo",
        io::ErrorKind::OutOfMemory => "; a smaller buffer may do",
        _ => "",
    };
    RecordError::new(format!("cannot make {}: {e}{why}", path.display()))
}
