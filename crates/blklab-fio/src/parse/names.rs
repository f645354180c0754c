// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of a job's own files.

use super::Surroundings;
use crate::job::Job;

/// Names of the files of a job without `filename`.
pub(super) fn own_file_names(job: &Job, around: &dyn Surroundings) -> Vec<String> {
    let directory = match &job.settings.directory {
        Some(list) => {
            let names: Vec<&str> = list.split(':').collect();
            format!("{}/", names[job.subjob as usize % names.len()])
        }
        None => String::new(),
    };
    if job.settings.nrfiles == 1 && around.is_device(&job.section) {
        return vec![format!("{directory}{}", job.section)];
    }
    let format = match job.settings.filename_format.as_str() {
        "" => "$jobname.$jobnum.$filenum",
        format => format,
    };
    let named = replace_word(
        &replace_word(format, "$clientuid", ""),
        "$jobname",
        &job.section,
    );
    let numbered = replace_word(&named, "$jobnum", &job.subjob.to_string());
    (0..job.settings.nrfiles)
        .map(|file| {
            format!(
                "{directory}{}",
                replace_word(&numbered, "$filenum", &file.to_string())
            )
        })
        .collect()
}

/// Every occurrence of a word replaced, whatever its case.
fn replace_word(text: &str, word: &str, by: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    while let Some(at) = lower[from..].find(word) {
        out.push_str(&text[from..from + at]);
        out.push_str(by);
        from += at + word.len();
    }
    out.push_str(&text[from..]);
    out
}
