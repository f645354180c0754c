// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job file that stands alone: what it includes is in place, variables and
//! words have their values, and comments are gone. Read again anywhere, it
//! makes the same jobs.

use super::{Fixed, JobFile, Surroundings};
use crate::error::JobFileError;
use crate::expand::expand;
use crate::text::{Section, clean};
use blklab_types::shown;

/// Gives another value to an option: its name and its value as written.
pub type Rename<'a> = dyn FnMut(&str, &str) -> Result<Option<String>, String> + 'a;

impl JobFile {
    /// The text of the sections that were wanted, for somebody without the files
    /// and variables that it refers to. `rename` may replace values, such as names
    /// of files that move along.
    ///
    /// # Errors
    /// `rename`'s error, or a value of a variable that no job file can hold: one
    /// with a comment sign, a line feed, or blanks at its end.
    pub fn spell_out(
        &self,
        around: &dyn Surroundings,
        rename: &mut Rename<'_>,
    ) -> Result<String, JobFileError> {
        spell_out(&self.sections, around, rename)
    }
}

fn spell_out(
    sections: &[Section],
    around: &dyn Surroundings,
    rename: &mut Rename<'_>,
) -> Result<String, JobFileError> {
    let mut out = String::new();
    for section in sections {
        out.push('[');
        out.push_str(&section.name);
        out.push_str("]\n");
        for line in &section.lines {
            let spelled = spell_line(&line.text, around, rename)
                .map_err(|why| JobFileError::at(&line.place, why))?;
            out.push_str(&spelled);
            out.push('\n');
        }
    }
    Ok(out)
}

fn spell_line(
    line: &str,
    around: &dyn Surroundings,
    rename: &mut Rename<'_>,
) -> Result<String, String> {
    let mut spelled = expand(line, around)?;
    if let Some((name, value)) = spelled.split_once('=')
        && let Some(value) = rename(name.trim_end(), value)?
    {
        spelled = format!("{name}={value}");
    }
    // Nothing may be left that another reading would take for something else.
    let stands_alone = clean(&spelled) == spelled
        && !spelled.contains('\n')
        && !spelled.starts_with('[')
        && expand(&spelled, &Fixed::default()).as_ref() == Ok(&spelled);
    if !stands_alone {
        return Err(format!(
            "'{}' cannot be written into a job file, in which ; and # begin comments",
            shown(&spelled)
        ));
    }
    Ok(spelled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{ParseOptions, parse};

    fn around() -> Fixed {
        Fixed {
            environment: [
                ("BS", "8k"),
                ("NAME", "x y"),
                ("LIST", "a;b"),
                ("LINES", "4k\nrw=write"),
                ("NESTED", "${BS}"),
            ]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .to_vec(),
            files: [
                ("d/common.inc", "direct=1 # no cache\ninclude deep/more\n"),
                ("d/deep/more", "; ${NOT}\nbs=${BS}\n"),
                ("deep/more", "bs=16k\n"),
            ]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .to_vec(),
            devices: Vec::new(),
        }
    }

    fn spell(text: &str, sections: &[&str]) -> Result<String, JobFileError> {
        let options = ParseOptions {
            sections: sections.iter().map(|s| (*s).to_owned()).collect(),
            ..ParseOptions::default()
        };
        let read = crate::text::sections("d/x.fio", text, &options, &around())?;
        spell_out(&read.wanted, &around(), &mut |_, _| Ok(None))
    }

    #[test]
    fn includes_variables_words_and_comments() {
        let text = "; head\n[global]\ninclude common.inc ; the rest\nsize=256*$pagesize\n\
                    [a b]\n\trw=randread # x\nfilename=${NAME}${GONE}\n[skipped]\ninclude gone\n";
        let spelled = spell(text, &["a b"]).expect("all of it is there");
        assert_eq!(
            spelled,
            "[global]\ndirect=1\nbs=16k\nsize=1048576\n[a b]\nrw=randread\nfilename=x y\n"
        );
        let options = ParseOptions::default();
        let again = parse("y.fio", &spelled, &options, &Fixed::default()).expect("it stands alone");
        let chosen = ParseOptions {
            sections: vec!["a b".to_owned()],
            ..options
        };
        let first = parse("d/x.fio", text, &chosen, &around()).expect("a job file");
        let shown = |jobs: &[crate::job::Job]| format!("{:?}", jobs[0].settings);
        assert_eq!(shown(&first.jobs), shown(&again.jobs));
        let again = again.spell_out(&Fixed::default(), &mut |_, _| Ok(None));
        assert_eq!(again.expect("it stands alone"), spelled);
    }

    #[test]
    fn names_of_files_move_along() {
        let text = "[a]\nread_iolog=logs/x\nsize=1m\n";
        let read = crate::text::sections("x", text, &ParseOptions::default(), &around());
        let spelled = spell_out(&read.expect("a job file").wanted, &around(), &mut |k, v| {
            Ok((k == "read_iolog").then(|| v.replace("logs/", "")))
        });
        assert_eq!(spelled.expect("a job file"), "[a]\nread_iolog=x\nsize=1m\n");
    }

    #[test]
    fn what_a_job_file_cannot_hold_is_refused() {
        for variable in ["LIST", "LINES", "NESTED"] {
            let text = format!("[a]\nsize=1m\nfilename=${{{variable}}}\n");
            let error = spell(&text, &[]).expect_err("no job file holds it");
            assert_eq!(error.problems[0].place.line, 3, "{error}");
            assert!(error.to_string().contains("cannot be written"), "{error}");
        }
        // As it stands, without a closing brace, it means itself.
        assert!(spell("[a]\nfilename=x${BS\n", &[]).is_ok());
    }
}
