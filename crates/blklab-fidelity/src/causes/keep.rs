// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wrong answers, kept as files: `ID.FORM.txt` is the trace, `ID.context.txt` what is known
//! beside it, `ID.toml` the experiment, `ID.control-N.toml` it without a cause, and
//! `ID.FORM.planted.txt` what was planted, and what was said.

use super::{Examined, Form};
use blklab_types::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Keeps a scenario in a folder, which is made if it is not there: the forms of its trace that
/// got a wrong answer. Returns the traces.
///
/// # Errors
/// If it cannot be written.
pub fn keep(folder: &Path, one: &Examined) -> Result<Vec<PathBuf>, Error> {
    let wrong = || one.answers.iter().filter(|a| one.is_wrong(a.form));
    if wrong().next().is_none() {
        return Ok(Vec::new());
    }
    std::fs::create_dir_all(folder).map_err(|e| unwritten(folder, &e))?;
    let write = |name: String, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|e| unwritten(&path, &e))?;
        Ok::<PathBuf, Error>(path)
    };
    write(format!("{}.toml", one.id), &one.experiment)?;
    for (nr, control) in one.controls.iter().enumerate() {
        write(format!("{}.control-{}.toml", one.id, nr + 1), control)?;
    }
    write(format!("{}.context.txt", one.id), &one.context)?;
    let mut traces = Vec::new();
    for answered in wrong() {
        let name = answered.form.name();
        traces.push(write(format!("{}.{name}.txt", one.id), &answered.trace)?);
        write(
            format!("{}.{name}.planted.txt", one.id),
            &words(one, answered.form),
        )?;
    }
    Ok(traces)
}

/// What was planted and what was said, in lines.
pub fn words(one: &Examined, form: Form) -> String {
    let mut text = String::new();
    let mut line = |s: String| writeln!(text, "{s}").expect("a string takes everything");
    if one.planted.is_empty() {
        line("planted: nothing".to_owned());
    }
    for j in one.judged.iter().filter(|j| j.form == form) {
        line(format!("planted: {}: {:?}", j.class, j.fate));
    }
    let answers = one.answers.iter().filter(|a| a.form == form);
    for answered in answers {
        line(format!("answer: {}", answered.why.verdict.sentence));
        for f in &answered.why.findings {
            line(format!(
                "said: {} ({}): {} Suffers: {}. Causes: {}.",
                f.kind,
                f.confidence.word(),
                f.what,
                f.victim_names(),
                f.cause_names()
            ));
        }
    }
    for s in one.said.iter().filter(|s| s.form == form && !s.right) {
        line(format!("wrong: {}", s.kind));
    }
    text
}

fn unwritten(path: &Path, e: &std::io::Error) -> Error {
    Error::new(format!("cannot be written: {e}")).in_file(&path.display().to_string())
}
