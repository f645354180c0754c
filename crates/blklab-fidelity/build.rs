// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts the files below `studies/` into the program: a table of studies with
//! the text of each file, ordered by name.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let var = |name| env::var_os(name).ok_or(io::ErrorKind::NotFound);
    let studies = Path::new(&var("CARGO_MANIFEST_DIR")?).join("studies");
    println!("cargo::rerun-if-changed={}", studies.display());
    let mut table = String::from("&[\n");
    for folder in sorted(&studies)?.iter().filter(|p| p.is_dir()) {
        let _ = writeln!(table, "({:?}, &[", name(folder));
        for file in sorted(folder)? {
            let _ = writeln!(table, "({:?}, include_str!({file:?})),", name(&file));
        }
        table += "]),\n";
    }
    table += "]\n";
    fs::write(Path::new(&var("OUT_DIR")?).join("studies.rs"), table)
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?;
    let mut paths: Vec<PathBuf> = entries.map(|e| Ok(e?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
