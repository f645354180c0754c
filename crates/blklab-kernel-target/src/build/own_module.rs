// SPDX-License-Identifier: MIT OR Apache-2.0
//! Our own module beside an image: its source, and where it lies once it was built.

use super::key::Key;
use std::path::{Path, PathBuf};

/// The module's source.
pub(super) const SOURCE: &str = include_str!("../../module/simdisk.c");
/// Its name.
pub(crate) const NAME: &str = "simdisk";

/// The name of the module's file, which changes with its source.
pub(super) fn file_name() -> String {
    let mut key = Key::default();
    key.add(SOURCE.as_bytes());
    format!("{NAME}-{key}.ko")
}

/// The module of an image, if it was built.
pub(super) fn built(image: &Path) -> Option<PathBuf> {
    Some(image.join(file_name())).filter(|path| path.exists())
}
