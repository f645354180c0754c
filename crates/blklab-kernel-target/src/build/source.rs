// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a kernel is built from.

use blklab_types::{Error, shown};
use std::path::PathBuf;

/// What a kernel is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Debian's source of a release, such as `7.3`.
    Release(String),
    /// A folder with a kernel's tree, which stays as it is.
    Tree(PathBuf),
}

impl Source {
    /// The release of a text such as `7.3`.
    ///
    /// # Errors
    /// If it is none.
    pub fn release(text: &str) -> Result<Source, Error> {
        let numbers: Vec<&str> = text.split('.').collect();
        let is_number =
            |n: &&str| !n.is_empty() && n.len() <= 4 && n.bytes().all(|b| b.is_ascii_digit());
        if numbers.len() == 2 && numbers.iter().all(is_number) {
            return Ok(Source::Release(text.to_owned()));
        }
        Err(Error::new(format!(
            "'{}' is no release that Debian has a source of; write it like 7.3 or 6.12",
            shown(text)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::Source;

    #[test]
    fn a_release_has_two_numbers() {
        assert!(Source::release("6.12").is_ok());
        for bad in ["", "6", "6.12.1", "6.x", "6.12/../..", "6 12", "66666.1"] {
            let error = Source::release(bad).expect_err(bad).to_string();
            assert!(error.contains("write it like 7.3"), "{error}");
        }
    }
}
