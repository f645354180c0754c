// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts the example files into the program: a table of names and texts,
//! ordered by name.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let var = |name| env::var_os(name).ok_or(io::ErrorKind::NotFound);
    let examples = Path::new(&var("CARGO_MANIFEST_DIR")?).join("examples");
    println!("cargo::rerun-if-changed={}", examples.display());
    let mut paths: Vec<PathBuf> = fs::read_dir(&examples)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    paths.retain(|path| path.is_file());
    paths.sort();
    let mut table = String::from("&[\n");
    for path in paths {
        println!("cargo::rerun-if-changed={}", path.display());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        table += &format!("({name:?}, include_str!({path:?})),\n");
    }
    table += "]\n";
    fs::write(Path::new(&var("OUT_DIR")?).join("examples.rs"), table)
}
