// SPDX-License-Identifier: MIT OR Apache-2.0
//! Distributions told by what `uname -r` prints.

/// Machines that Debian builds kernels for: the last word of their names.
const MACHINES_OF_DEBIAN: &[&str] = &[
    "amd64",
    "arm64",
    "686",
    "pae",
    "armmp",
    "lpae",
    "marvell",
    "riscv64",
    "powerpc64le",
    "s390x",
    "loongson",
    "malta",
    "octeon",
];

/// How the names of a distribution's kernels end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Uname {
    /// The word `el8` between dots, perhaps with the minor release, `el8_7`: so not `el8uek`.
    Word(&'static str),
    /// These letters behind the last hyphen.
    Flavour(&'static str),
    /// A machine that Debian builds for behind the last hyphen.
    Machine,
    /// These digits begin the word behind the first hyphen, and `default` is the last.
    Default(&'static str),
}

impl Uname {
    pub(super) fn fits(self, suffix: &str) -> bool {
        let last = suffix.rsplit('-').next().unwrap_or_default();
        match self {
            Uname::Word(word) => suffix.split(['.', '-', '+']).any(|part| {
                let rest = part.strip_prefix(word);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
            }),
            Uname::Flavour(flavour) => last == flavour,
            Uname::Machine => MACHINES_OF_DEBIAN.contains(&last),
            Uname::Default(digits) => {
                let mut words = suffix.split(['.', '-']).skip(1);
                words.next() == Some(digits) && last == "default"
            }
        }
    }
}

/// The number behind the first hyphen, by which builds are counted.
pub(super) fn build_number(suffix: &str) -> Option<u32> {
    let text = suffix.strip_prefix('-')?;
    let end = text.find(|c: char| !c.is_ascii_digit());
    text[..end.unwrap_or(text.len())].parse().ok()
}
