// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folders of sysfs whose files are read, whatever these are.

use std::fs;
use std::path::Path;

/// The files of a folder that can be read, by name.
pub(crate) fn files(folder: &Path) -> Vec<(String, String)> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<(String, String)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let is_file = entry.file_type().ok()?.is_file();
            let value = is_file.then(|| fs::read_to_string(entry.path()).ok())??;
            Some((entry.file_name().into_string().ok()?, value))
        })
        .collect();
    files.sort_unstable();
    files
}
