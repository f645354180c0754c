// SPDX-License-Identifier: MIT OR Apache-2.0
//! What kernels are called.

/// The name of a kernel as `uname -r` prints it: `4.18.0-425.el8`. Short enough to be
/// copied with the release (`__NEW_UTS_LEN` is 64).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    bytes: [u8; Name::MAX],
    len: u8,
}

impl Name {
    /// Most characters of a name.
    pub(crate) const MAX: usize = 64;

    /// None of its own: it is called by its numbers.
    pub(crate) const NONE: Name = Name {
        bytes: [0; Name::MAX],
        len: 0,
    };

    /// A name, if it is short enough.
    pub(crate) fn new(text: &str) -> Option<Name> {
        let mut name = Name::NONE;
        name.bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        name.len = u8::try_from(text.len()).ok()?;
        Some(name)
    }

    /// Its text; empty if there is none.
    pub(crate) fn as_str(&self) -> &str {
        let text = std::str::from_utf8(&self.bytes[..usize::from(self.len)]);
        text.expect("it was made of a text")
    }
}

/// The numbers at the beginning of a kernel's name, and what is behind them: of
/// `4.18.0-425.el8` 4, 18 and 0, and `-425.el8`. None if it does not begin with two to
/// four numbers, or what follows them is no suffix.
pub(crate) fn split(text: &str) -> Option<(Vec<u16>, &str)> {
    let is_of_numbers = |c: char| c.is_ascii_digit() || c == '.';
    let end = text.find(|c| !is_of_numbers(c)).unwrap_or(text.len());
    let (numbers, suffix) = text.split_at(end);
    let numbers: Result<Vec<u16>, _> = numbers.split('.').map(str::parse).collect();
    let numbers = numbers.ok().filter(|n| (2..=4).contains(&n.len()))?;
    let is_suffix = suffix.starts_with(['-', '+', '_', '~'])
        && suffix
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-+_~.".contains(&b));
    (suffix.is_empty() || is_suffix).then_some((numbers, suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_from_what_follows() {
        assert_eq!(split("6.12.117"), Some((vec![6, 12, 117], "")));
        assert_eq!(split("4.18.0-425.el8"), Some((vec![4, 18, 0], "-425.el8")));
        assert_eq!(split("6.12-rc3"), Some((vec![6, 12], "-rc3")));
        for bad in [
            "",
            "6",
            "6.",
            "6.1.",
            "6.x",
            "6.1 ",
            "6.1-a b",
            "1.2.3.4.5",
            "70000.1",
            "6.1rc1",
        ] {
            assert_eq!(split(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_name_holds_what_uname_prints() {
        let longest = "6".repeat(64);
        assert_eq!(Name::new(&longest).expect("it fits").as_str(), longest);
        assert_eq!(Name::new(&"6".repeat(65)), None);
        assert_eq!(Name::NONE.as_str(), "");
    }
}
