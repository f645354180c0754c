// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments that differ, kept as files: `ID.toml` with its job `ID.fio`, and what
//! differed in `ID.txt`.

use super::case::Case;
use super::pair::Compared;
use blklab_types::Error;
use std::path::{Path, PathBuf};

/// Where a case was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The experiment file.
    pub file: PathBuf,
}

/// Keeps a case in a folder, which is made if it is not there.
///
/// # Errors
/// If it cannot be written.
pub fn keep(folder: &Path, case: &Case, compared: &Compared) -> Result<Kept, Error> {
    std::fs::create_dir_all(folder).map_err(|e| unwritten(folder, &e))?;
    let name = format!("{}-{}", case.kernel, case.id);
    let write = |ending: &str, text: &str| {
        let path = folder.join(format!("{name}.{ending}"));
        std::fs::write(&path, text).map_err(|e| unwritten(&path, &e))?;
        Ok::<PathBuf, Error>(path)
    };
    write("fio", &case.job_text())?;
    let Compared {
        sentence, given, ..
    } = compared;
    let mut words = format!(
        "{}\n{sentence}\n{}\n",
        compared.verdict.words(),
        given.words()
    );
    for f in compared.outside() {
        words.push_str(&format!(
            "{}[{}] {} {}: kernel {:.1} {}, sim {:.1}\n",
            f.job, f.n, f.rw, f.name, f.kernel, f.unit, f.sim
        ));
    }
    write("txt", &words)?;
    let file = write("toml", &case.text(Some(&format!("{name}.fio"))))?;
    Ok(Kept { file })
}

fn unwritten(path: &Path, e: &std::io::Error) -> Error {
    Error::new(format!("cannot be written: {e}")).in_file(&path.display().to_string())
}
