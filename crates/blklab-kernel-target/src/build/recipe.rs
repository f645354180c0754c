// SPDX-License-Identifier: MIT OR Apache-2.0
//! What makes a kernel of virtual time of a kernel's tree: options, files beside its own,
//! and edits. They are applied to a copy.

use super::key::Key;
use crate::failed::failed;
use blklab_types::{Error, Hz};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Options beside the least that a kernel can have.
pub(super) const CONFIG: &str = include_str!("../../kernel/config");

/// Options without which nothing works, and which a tree that is too old lacks.
pub(super) const ESSENTIAL: &[&str] = &[
    "CONFIG_UML_TIME_TRAVEL_SUPPORT=y",
    "CONFIG_VIRTIO_UML=y",
    "CONFIG_VIRTIO_BLK=y",
    "CONFIG_BLK_DEV_INITRD=y",
    "CONFIG_BLK_DEV_IO_TRACE=y",
];

/// Files of ours, and where they go.
const FILES: &[(&str, &str)] = &[
    (
        "arch/um/kernel/virtual_time.c",
        include_str!("../../kernel/virtual_time.c"),
    ),
    (
        "arch/um/kernel/processor_cost.c",
        include_str!("../../kernel/processor_cost.c"),
    ),
    (
        "arch/um/kernel/first_seed.c",
        include_str!("../../kernel/first_seed.c"),
    ),
    (
        "arch/um/kernel/skas/charged_syscall.c",
        include_str!("../../kernel/charged_syscall.c"),
    ),
    (
        "arch/um/os-Linux/repeatable_random.c",
        include_str!("../../kernel/repeatable_random.c"),
    ),
];

/// A change of a file of the tree, wherever the text stands in it.
struct Edit {
    file: &'static str,
    find: &'static str,
    replace: &'static str,
    /// Whether it does nothing where there is nothing to find: a repair that newer trees
    /// do not need.
    is_repair: bool,
}

impl Edit {
    /// What it puts there, for a kernel with so many ticks a second.
    fn replacement(&self, hz: Hz) -> Cow<'static, str> {
        if self.replace == OF_HZ && hz != HZ {
            return Cow::Owned(OF_HZ.replace(&HZ.0.to_string(), &hz.0.to_string()));
        }
        Cow::Borrowed(self.replace)
    }
}

/// The ticks of a second of a kernel of which nothing else is said: the distributions'.
pub const HZ: Hz = Hz(250);
/// The line that says them.
const OF_HZ: &str = "config HZ\n\tint\n\tdefault 250";

const EDITS: &[Edit] = &[
    // The files of ours: one contains time.c.
    Edit {
        file: "arch/um/kernel/Makefile",
        find: " time.o ",
        replace: " virtual_time.o processor_cost.o first_seed.o ",
        is_repair: false,
    },
    // So does this one contain syscall.c.
    Edit {
        file: "arch/um/kernel/skas/Makefile",
        find: " syscall.o",
        replace: " charged_syscall.o",
        is_repair: false,
    },
    // And this one util.c; two lists there name it.
    Edit {
        file: "arch/um/os-Linux/Makefile",
        find: " util.o",
        replace: " repeatable_random.o",
        is_repair: false,
    },
    // The tick.
    Edit {
        file: "arch/um/Kconfig",
        find: "config HZ\n\tint\n\tdefault 100",
        replace: OF_HZ,
        is_repair: false,
    },
    // 6.1 with a C library from 2.33 on, which has no such function.
    Edit {
        file: "arch/um/os-Linux/user_syms.c",
        find: "EXPORT_SYMBOL_PROTO(__xmknod);",
        replace: "",
        is_repair: true,
    },
    // 6.1, built outside its tree.
    Edit {
        file: "arch/x86/Makefile.um",
        find: "include arch/x86/Makefile_32.cpu",
        replace: "include $(srctree)/arch/x86/Makefile_32.cpu",
        is_repair: true,
    },
];

/// What names the recipe of kernels with so many ticks a second: kernels of another are
/// other kernels.
pub(super) fn add_to(key: &mut Key, hz: Hz) {
    key.add(CONFIG.as_bytes());
    for (path, text) in FILES {
        key.add(path.as_bytes());
        key.add(text.as_bytes());
    }
    for edit in EDITS {
        for text in [edit.file, edit.find, &edit.replacement(hz)] {
            key.add(text.as_bytes());
        }
    }
}

/// What names the recipe alone.
pub(super) fn name(hz: Hz) -> String {
    let mut key = Key::default();
    add_to(&mut key, hz);
    key.to_string()
}

/// Applies files and edits to a copy of a tree, for so many ticks a second. What is already so stays untouched, so
/// that it is not built again.
///
/// # Errors
/// If the tree is not that of a kernel that can do this, or cannot be written.
pub(super) fn apply(original: &Path, copy: &Path, hz: Hz) -> Result<(), Error> {
    for (path, text) in FILES {
        write_if_new(&copy.join(path), text)?;
    }
    for edit in EDITS {
        let file = original.join(edit.file);
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(_) if edit.is_repair => continue,
            Err(e) => return Err(no_tree(original, &format!("{}: {e}", edit.file))),
        };
        let replacement = edit.replacement(hz);
        if text.contains(&*replacement) && !replacement.is_empty() {
            continue;
        }
        if text.contains(edit.find) {
            let new = text.replace(edit.find, &replacement);
            write_if_new(&copy.join(edit.file), &new)?;
        } else if !edit.is_repair {
            let what = format!("{} is not as expected", edit.file);
            return Err(no_tree(original, &what));
        }
    }
    Ok(())
}

/// Not what can be built.
pub(super) fn no_tree(at: &Path, why: &str) -> Error {
    Error::new(format!(
        "no tree of a kernel that runs in virtual time ({why}); Linux 6.1 and later can"
    ))
    .in_file(&at.display().to_string())
}

fn write_if_new(path: &Path, text: &str) -> Result<(), Error> {
    let is_link = path.symlink_metadata().is_ok_and(|m| m.is_symlink());
    if !is_link && std::fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    if is_link {
        // Never through it: what it leads to is not ours.
        std::fs::remove_file(path).map_err(|e| unwritten(path, &e))?;
    }
    std::fs::write(path, text).map_err(|e| unwritten(path, &e))
}

/// The whole path of a file or folder of the user.
///
/// # Errors
/// If it is not there.
pub(super) fn canonical(path: &Path) -> Result<PathBuf, Error> {
    std::fs::canonicalize(path).map_err(|e| unread(path, &e))
}

/// A file of the user that cannot be read.
pub(super) fn unread(path: &Path, e: &std::io::Error) -> Error {
    Error::new(format!("cannot be read: {e}"))
        .of_kind(e.kind().into())
        .in_file(&path.display().to_string())
}

/// A file of the cache that cannot be written.
pub(super) fn unwritten(path: &Path, e: &std::io::Error) -> Error {
    failed(&format!("cannot be written: {e}")).in_file(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::{EDITS, HZ, apply, name};
    use blklab_types::Hz;
    use std::path::Path;

    /// A tree with what the edits look for.
    fn tree(at: &Path) {
        for edit in EDITS {
            let file = at.join(edit.file);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, format!("a{}b\n", edit.find)).expect("a file");
        }
    }

    #[test]
    fn edits_are_applied_once_and_never_through_a_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let (original, copy) = (folder.path().join("a"), folder.path().join("b"));
        tree(&original);
        for edit in EDITS {
            let link = copy.join(edit.file);
            std::fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
            std::os::unix::fs::symlink(original.join(edit.file), link).expect("a link");
        }
        apply(&original, &copy, HZ).expect("a tree");
        let text_of = |root: &Path, i: usize| {
            std::fs::read_to_string(root.join(EDITS[i].file)).expect("a file")
        };
        for (i, edit) in EDITS.iter().enumerate() {
            assert_eq!(text_of(&copy, i), format!("a{}b\n", edit.replace));
            assert_eq!(text_of(&original, i), format!("a{}b\n", edit.find));
        }
        let written = copy.join(EDITS[0].file).metadata().expect("a file");
        apply(&original, &copy, HZ).expect("the same again");
        let again = copy.join(EDITS[0].file).metadata().expect("a file");
        assert_eq!(written.modified().ok(), again.modified().ok());
        // In place, as with a tree of our own.
        apply(&copy, &copy, HZ).expect("it is as it should be");
        assert_eq!(text_of(&copy, 0), format!("a{}b\n", EDITS[0].replace));
    }

    #[test]
    fn another_tick_is_another_recipe_and_stands_in_the_tree() {
        assert_ne!(name(HZ), name(Hz(1000)));
        let folder = tempfile::tempdir().expect("a folder");
        tree(folder.path());
        apply(folder.path(), folder.path(), Hz(1000)).expect("a tree");
        let text = std::fs::read_to_string(folder.path().join("arch/um/Kconfig"));
        let text = text.expect("a file");
        assert!(text.contains("config HZ\n\tint\n\tdefault 1000"), "{text}");
    }

    #[test]
    fn what_is_no_tree_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = apply(folder.path(), folder.path(), HZ).expect_err("there is nothing");
        let error = error.to_string();
        assert!(error.contains("cannot be written"), "{error}");
    }
}
