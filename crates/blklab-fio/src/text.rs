// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the text of a job file to sections of option lines: comments, blank
//! lines, section headers, `include`.
//!
//! Behaviour of fio 3.33: a comment starts at the first `;` or `#` anywhere,
//! a section's name is what follows `[` without the line's last character,
//! and the name of an included file starts eight characters into the line.

use crate::error::JobFileError;
use crate::surroundings::{ParseOptions, Surroundings};
use blklab_types::{Error, Place, shown};
use std::borrow::Cow;

/// Longest section name.
const NAME_BYTES_MAX: usize = 255;
/// How deeply files may include each other.
const INCLUDE_DEPTH_MAX: usize = 16;
/// How many lines all included files of a job file may have.
const LINES_MAX: usize = 1_000_000;

/// How much text all included files of a job file may have together.
const INCLUDED_BYTES_MAX: usize = 16 << 20;

/// One option line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) place: Place,
    pub(crate) text: String,
    /// Whether messages keep the text to themselves.
    pub(crate) is_kept: bool,
}

/// One section as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) lines: Vec<Line>,
}

impl Section {
    /// Whether the section changes the template instead of making a job.
    pub(crate) fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }

    /// Whether its lines count.
    fn is_wanted(&self, options: &ParseOptions) -> bool {
        self.is_global() || options.sections.is_empty() || options.sections.contains(&self.name)
    }
}

/// The sections of a file.
#[derive(Debug)]
pub(crate) struct Sections {
    /// Those that are wanted, with what they include in place.
    pub(crate) wanted: Vec<Section>,
    /// The names of all that could make jobs.
    pub(crate) names: Vec<String>,
}

/// Where option lines go while a file is read.
#[derive(Clone, Copy)]
enum Open {
    Nothing,
    Skipped,
    Section(usize),
}

/// Splits a file into the sections that are wanted: lines of others are
/// skipped.
///
/// # Errors
/// Options before the first section, and whatever is wrong with an include.
pub(crate) fn sections(
    file: &str,
    text: &str,
    options: &ParseOptions,
    around: &dyn Surroundings,
) -> Result<Sections, JobFileError> {
    let mut out: Vec<Section> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut open = Open::Nothing;
    let mut included = Included {
        around,
        lines_total: 0,
        bytes_total: 0,
    };
    for (number, line) in text.lines().enumerate() {
        let line = clean(line);
        let place = Place {
            file: file.to_owned(),
            line: number as u32 + 1,
        };
        if line.is_empty() {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let section = Section {
                name: section_name(header),
                place,
                lines: Vec::new(),
            };
            if !section.is_global() && !names.contains(&section.name) {
                names.push(section.name.clone());
            }
            open = if section.is_wanted(options) {
                out.push(section);
                Open::Section(out.len() - 1)
            } else {
                Open::Skipped
            };
            continue;
        }
        match open {
            Open::Nothing => {
                let line = if options.keeps_text {
                    Cow::Borrowed("…")
                } else {
                    shown(line)
                };
                return Err(JobFileError::at(
                    &place,
                    format!("fio: option <{line}> outside of [] job section"),
                ));
            }
            Open::Skipped => {}
            Open::Section(at) => {
                let line = Line {
                    place,
                    text: line.to_owned(),
                    is_kept: options.keeps_text,
                };
                included.add_line(line, 0, &mut out[at].lines)?;
            }
        }
    }
    Ok(Sections { wanted: out, names })
}

/// Files that a job file includes, as far as they have been read.
struct Included<'a> {
    around: &'a dyn Surroundings,
    lines_total: usize,
    bytes_total: usize,
}

impl Included<'_> {
    /// Adds an option line, or the lines of the file it includes.
    fn add_line(
        &mut self,
        line: Line,
        depth: usize,
        out: &mut Vec<Line>,
    ) -> Result<(), JobFileError> {
        self.lines_total += 1;
        if self.lines_total > LINES_MAX {
            return Err(JobFileError::at(
                &line.place,
                format!("more than {LINES_MAX} option lines"),
            ));
        }
        if !line.text.starts_with("include") {
            out.push(line);
            return Ok(());
        }
        if depth == INCLUDE_DEPTH_MAX {
            return Err(JobFileError::at(
                &line.place,
                format!("files include each other more than {INCLUDE_DEPTH_MAX} deep"),
            ));
        }
        let wanted = line.text.get(8..).unwrap_or("");
        let (file, text) = self.read(wanted, &line.place.file).map_err(|why| {
            let wanted = if line.is_kept {
                Cow::Borrowed("…")
            } else {
                shown(wanted)
            };
            JobFileError::at(&line.place, format!("include {wanted}: {}", why.what))
        })?;
        for (number, text) in text.lines().enumerate() {
            let text = clean(text);
            let place = Place {
                file: file.clone(),
                line: number as u32 + 1,
            };
            if text.starts_with('[') {
                return Err(JobFileError::at(
                    &place,
                    "No new sections in included files",
                ));
            }
            if !text.is_empty() {
                let line = Line {
                    place,
                    text: text.to_owned(),
                    is_kept: true,
                };
                self.add_line(line, depth + 1, out)?;
            }
        }
        Ok(())
    }

    /// Name and text of an included file, looked for as given and then beside
    /// the file that includes it.
    fn read(&mut self, wanted: &str, from: &str) -> Result<(String, String), Error> {
        let (name, text) = match (self.around.read(wanted), from.rsplit_once('/')) {
            (Ok(text), _) => (wanted.to_owned(), text),
            (Err(why), None) => return Err(why),
            (Err(why), Some((directory, _))) => {
                let beside = format!("{directory}/{wanted}");
                let text = self.around.read(&beside).map_err(|_| why)?;
                (beside, text)
            }
        };
        self.bytes_total += text.len();
        if self.bytes_total > INCLUDED_BYTES_MAX {
            return Err(Error::new(format!(
                "with it, more than {} MiB are included",
                INCLUDED_BYTES_MAX >> 20
            )));
        }
        Ok((name, text))
    }
}

/// A line without comment and without blanks at both ends.
pub(crate) fn clean(line: &str) -> &str {
    let line = line.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let line = &line[..line.find([';', '#']).unwrap_or(line.len())];
    line.trim_end_matches(|c: char| c.is_ascii_whitespace() || c.is_ascii_control())
}

/// The header's text without its last character.
fn section_name(header: &str) -> String {
    let mut end = header.len().min(NAME_BYTES_MAX);
    while !header.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = header[..end].to_owned();
    name.pop();
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::Fixed;

    fn read(text: &str) -> Result<Vec<Section>, JobFileError> {
        let read = sections("x.fio", text, &ParseOptions::default(), &Fixed::default());
        Ok(read?.wanted)
    }

    #[test]
    fn comments_and_blanks_go() {
        let out = read("; one\n\n  [a b] \n\trw=read ; x\n  bs = 4k#y\n[c\n").expect("well formed");
        assert_eq!(out.len(), 2);
        assert_eq!(out[0].name, "a b");
        let texts: Vec<&str> = out[0].lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["rw=read", "bs = 4k"]);
        assert_eq!(out[1].name, "");
        assert_eq!(out[0].lines[1].place.line, 5);
    }

    #[test]
    fn options_need_a_section() {
        let error = read("rw=read\n[a]\n").expect_err("no section");
        assert_eq!(
            error.to_string(),
            "x.fio:1: fio: option <rw=read> outside of [] job section"
        );
    }

    #[test]
    fn includes_are_spliced_in_and_may_not_loop() {
        let around = Fixed {
            files: vec![
                ("d/inc".into(), "bs=8k\ninclude more\n".into()),
                ("d/more".into(), "size=1m".into()),
                ("loop".into(), "include loop\n".into()),
                ("sect".into(), "[b]\n".into()),
            ],
            ..Fixed::default()
        };
        let read = |file, text| sections(file, text, &ParseOptions::default(), &around);
        let out = read("d/x.fio", "[a]\nrw=read\ninclude inc\nrw=write\n").expect("files exist");
        let out = out.wanted;
        let texts: Vec<&str> = out[0].lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["rw=read", "bs=8k", "size=1m", "rw=write"]);
        assert!(read("x", "[a]\ninclude loop\n").is_err());
        assert!(read("x", "[a]\ninclude sect\n").is_err());
        assert!(read("x", "[a]\ninclude none\n").is_err());
    }
}
