// SPDX-License-Identifier: MIT OR Apache-2.0
//! A copy of a kernel's tree in which its files are links: a tree of somebody else is
//! built without writing to it.

use super::command::output;
use super::key::Key;
use super::recipe::{no_tree, unwritten};
use blklab_types::Error;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files of a tree, without what a build has made there.
///
/// # Errors
/// If it cannot be read, or has a build of its own and nothing that says which files
/// are its own.
pub(super) fn files(tree: &Path) -> Result<BTreeSet<PathBuf>, Error> {
    if !tree.join("arch/um/Kconfig").exists() {
        return Err(no_tree(tree, "it has no arch/um/Kconfig"));
    }
    if tree.join(".git").exists() && super::tools::find("git").is_some() {
        let mut git = Command::new("git");
        git.arg("-C").arg(tree);
        git.args(["ls-files", "-coz", "--exclude-standard"]);
        let listed = output(&mut git)?;
        let names = listed
            .split('\0')
            .filter(|n| !n.is_empty())
            .map(PathBuf::from);
        // What is deleted and not yet committed is still listed.
        return Ok(names.filter(|n| is_file(&tree.join(n))).collect());
    }
    for made in [".config", "include/config", "include/generated"] {
        if tree.join(made).exists() {
            return Err(Error::new(format!(
                "the tree has a build of its own ({made}): make mrproper there removes it, or \
                 give a copy without it"
            ))
            .in_file(&tree.display().to_string()));
        }
    }
    let mut all = BTreeSet::new();
    walk(tree, Path::new(""), &mut all)?;
    Ok(all)
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|m| !m.is_dir())
}

fn walk(root: &Path, below: &Path, all: &mut BTreeSet<PathBuf>) -> Result<(), Error> {
    let folder = root.join(below);
    let entries = std::fs::read_dir(&folder).map_err(|e| unread(&folder, &e))?;
    for entry in entries {
        let entry = entry.map_err(|e| unread(&folder, &e))?;
        let kind = entry.file_type().map_err(|e| unread(&folder, &e))?;
        let name = below.join(entry.file_name());
        if !kind.is_dir() {
            all.insert(name);
        } else if entry.file_name() != ".git" {
            walk(root, &name, all)?;
        }
    }
    Ok(())
}

fn unread(path: &Path, e: &std::io::Error) -> Error {
    Error::new(format!("cannot be read: {e}")).in_file(&path.display().to_string())
}

/// Takes in what the files are: names, sizes, when they were changed.
pub(super) fn add_to(key: &mut Key, tree: &Path, files: &BTreeSet<PathBuf>) {
    key.add(tree.as_os_str().as_bytes());
    for name in files {
        key.add(name.as_os_str().as_bytes());
        if let Ok(metadata) = tree.join(name).metadata() {
            for number in [
                metadata.len() as i64,
                metadata.mtime(),
                metadata.mtime_nsec(),
            ] {
                key.add(&number.to_le_bytes());
            }
        }
    }
}

/// Makes the copy, or brings it up to date.
///
/// # Errors
/// If it cannot be written.
pub(super) fn link(tree: &Path, files: &BTreeSet<PathBuf>, copy: &Path) -> Result<(), Error> {
    let mut folders = BTreeSet::new();
    for name in files {
        let (to, link) = (tree.join(name), copy.join(name));
        let folder = link.parent().expect("it is below the copy").to_owned();
        if folders.insert(folder.clone()) {
            std::fs::create_dir_all(&folder).map_err(|e| unwritten(&folder, &e))?;
        }
        if std::fs::read_link(&link).is_ok_and(|there| there == to) {
            continue;
        }
        if link.symlink_metadata().is_ok() {
            // An edit of ours, which is made again, or a file that became a link.
            continue;
        }
        std::os::unix::fs::symlink(&to, &link).map_err(|e| unwritten(&link, &e))?;
    }
    remove_gone(copy, Path::new(""), files)
}

/// Removes links to what the tree does not have any more.
fn remove_gone(copy: &Path, below: &Path, files: &BTreeSet<PathBuf>) -> Result<(), Error> {
    let folder = copy.join(below);
    let entries = std::fs::read_dir(&folder).map_err(|e| unread(&folder, &e))?;
    for entry in entries.filter_map(Result::ok) {
        let name = below.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => remove_gone(copy, &name, files)?,
            Ok(kind) if kind.is_symlink() && !files.contains(&name) => {
                let link = entry.path();
                std::fs::remove_file(&link).map_err(|e| unwritten(&link, &e))?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Key, add_to, files, link};
    use std::path::{Path, PathBuf};

    fn write(at: &Path, name: &str, text: &str) {
        let file = at.join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, text).expect("a file");
    }

    #[test]
    fn a_copy_follows_its_tree() {
        let folder = tempfile::tempdir().expect("a folder");
        let (tree, copy) = (folder.path().join("tree"), folder.path().join("copy"));
        write(&tree, "arch/um/Kconfig", "config HZ");
        write(&tree, "block/bio.c", "int a;");
        write(&tree, "block/old.c", "int b;");
        let all = files(&tree).expect("a tree");
        assert_eq!(all.len(), 3);
        let key = |all: &_| {
            let mut key = Key::default();
            add_to(&mut key, &tree, all);
            key
        };
        let before = key(&all);
        link(&tree, &all, &copy).expect("a copy");
        let text = std::fs::read_to_string(copy.join("block/bio.c"));
        assert_eq!(text.expect("a link"), "int a;");

        std::fs::remove_file(tree.join("block/old.c")).expect("it was there");
        write(&tree, "block/new.c", "int c;");
        let all = files(&tree).expect("a tree");
        assert_ne!(key(&all), before);
        link(&tree, &all, &copy).expect("a copy");
        assert!(copy.join("block/new.c").exists());
        assert!(copy.join("block/old.c").symlink_metadata().is_err());
    }

    #[test]
    fn what_is_no_tree_or_was_built_in_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = files(folder.path()).expect_err("no tree").to_string();
        assert!(error.contains("no arch/um/Kconfig"), "{error}");
        write(folder.path(), "arch/um/Kconfig", "");
        write(folder.path(), ".config", "");
        let error = files(folder.path()).expect_err("a build").to_string();
        assert!(error.contains("make mrproper"), "{error}");
        let missing = files(&PathBuf::from("/no/such/tree")).expect_err("none");
        assert_eq!(missing.file.as_deref(), Some("/no/such/tree"));
    }
}
