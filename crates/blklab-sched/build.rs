// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts the sources of the schedulers into the library: a table of paths below `src` and
//! texts, ordered by path.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let var = |name| env::var_os(name).ok_or(io::ErrorKind::NotFound);
    let src = Path::new(&var("CARGO_MANIFEST_DIR")?).join("src");
    println!("cargo::rerun-if-changed={}", src.display());
    let mut paths = Vec::new();
    collect(&src, &mut paths)?;
    paths.sort();
    let mut table = String::from("&[\n");
    for path in paths {
        let below = path.strip_prefix(&src).map_err(io::Error::other)?;
        let below = below.display().to_string().replace('\\', "/");
        table += &format!("({below:?}, include_str!({path:?})),\n");
    }
    table += "]\n";
    fs::write(Path::new(&var("OUT_DIR")?).join("sources.rs"), table)
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|end| end == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}
