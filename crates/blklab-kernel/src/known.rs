// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the rules of a release are known.

use crate::KernelVersion;
use std::fmt;

/// How the rules of a release are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// Its behaviour was measured: where.
    Measured(&'static str),
    /// Its source was read, or a specification made of it: what of it.
    Read(&'static str),
    /// Neither: it has what the releases around it have, and each change from the release
    /// to which the history of the files assigns it.
    Interpolated {
        /// The nearest older release that is known better.
        after: KernelVersion,
        /// The nearest newer one.
        before: Option<KernelVersion>,
    },
}

impl fmt::Display for Knowledge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Knowledge::Measured(what) => write!(f, "measured: {what}"),
            Knowledge::Read(what) => write!(f, "from source: {what}"),
            Knowledge::Interpolated { after, before } => {
                write!(f, "interpolated: as {after}")?;
                if let Some(before) = before {
                    write!(f, " with changes on the way to {before}")?;
                }
                f.write_str(", of which the history of the files tells the release")
            }
        }
    }
}

const LEGACY: &str = "event logs of its schedulers (testdata/legacy)";
const SPECIFICATION: &str = "specification of the block layer and CFQ, without measurements";

/// The releases that are known by more than their neighbours, oldest first.
const KNOWN: &[(&str, Knowledge)] = &[
    ("2.6.16", Knowledge::Read(SPECIFICATION)),
    ("2.6.17", Knowledge::Read(SPECIFICATION)),
    ("2.6.18", Knowledge::Read(SPECIFICATION)),
    ("2.6.20", Knowledge::Read(SPECIFICATION)),
    ("2.6.24", Knowledge::Measured(LEGACY)),
    ("2.6.26", Knowledge::Measured(LEGACY)),
    (
        "2.6.28",
        Knowledge::Measured(
            "event logs of its schedulers (testdata/legacy), ten jobs on a whole machine \
             (docs/fidelity-2628.md)",
        ),
    ),
    ("2.6.29", Knowledge::Read(SPECIFICATION)),
    ("2.6.30", Knowledge::Read(SPECIFICATION)),
    ("2.6.31", Knowledge::Read(SPECIFICATION)),
    ("2.6.32", Knowledge::Read(SPECIFICATION)),
    ("2.6.33", Knowledge::Measured(LEGACY)),
    ("2.6.34", Knowledge::Read(SPECIFICATION)),
    ("3.7", Knowledge::Read(SPECIFICATION)),
    ("4.19", Knowledge::Measured(LEGACY)),
    (
        "5.10",
        Knowledge::Measured("its schedulers; the rest from the source of 5.10.223"),
    ),
    (
        "5.15",
        Knowledge::Read("mq-deadline; the rest is interpolated between 5.10 and 6.1"),
    ),
    ("6.1", Knowledge::Measured("84 fio jobs (docs/fidelity.md)")),
    (
        "6.12",
        Knowledge::Measured("54 fio jobs (docs/fidelity.md)"),
    ),
    ("7.3", Knowledge::Measured("49 fio jobs (docs/fidelity.md)")),
];

impl Knowledge {
    /// How the rules of a release are known: those of its series.
    pub fn of_release(release: KernelVersion) -> Knowledge {
        let series = release.series();
        let known = || {
            KNOWN
                .iter()
                .map(|(text, how)| (KernelVersion::row(text), *how))
        };
        if let Some((_, how)) = known().find(|(v, _)| *v == series) {
            return how;
        }
        let older = known().map(|(v, _)| v).take_while(|v| *v < series).last();
        Knowledge::Interpolated {
            after: older.unwrap_or(KernelVersion::v2_6(16)),
            before: known().map(|(v, _)| v).find(|v| *v > series),
        }
    }

    /// What a reader of a result should know if the release was not measured.
    pub fn caution(&self, release: KernelVersion) -> Option<String> {
        let from = match self {
            Knowledge::Measured(_) => return None,
            Knowledge::Read(what) => format!("source ({what})"),
            Knowledge::Interpolated { after, before } => match before {
                Some(before) => format!("{after} and {before}"),
                None => after.to_string(),
            },
        };
        Some(format!(
            "extrapolated from {from}: Linux {} was not measured",
            release.series()
        ))
    }

    /// The word that tables show.
    pub fn word(&self) -> &'static str {
        match self {
            Knowledge::Measured(_) => "measured",
            Knowledge::Read(_) => "from source",
            Knowledge::Interpolated { .. } => "interpolated",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_says_what_it_rests_on() {
        let caution = |text: &str| {
            let release: KernelVersion = text.parse().expect("a release");
            Knowledge::of_release(release).caution(release)
        };
        assert_eq!(caution("6.12.41"), None);
        assert_eq!(
            caution("6.8").as_deref(),
            Some("extrapolated from 6.1 and 6.12: Linux 6.8 was not measured")
        );
        let read = caution("3.7").expect("not measured");
        assert!(
            read.starts_with("extrapolated from source (specification"),
            "{read}"
        );
    }

    #[test]
    fn every_release_says_how_it_is_known() {
        assert!(KNOWN.is_sorted_by_key(|(text, _)| KernelVersion::row(text)));
        let word = |text: &str| Knowledge::of_release(KernelVersion::row(text)).word();
        for (text, expected) in [
            ("2.6.28", "measured"),
            ("2.6.32", "from source"),
            ("4.4", "interpolated"),
            ("6.12.41", "measured"),
            ("6.5", "interpolated"),
        ] {
            assert_eq!(word(text), expected, "{text}");
        }
        let between = Knowledge::of_release(KernelVersion::row("6.5")).to_string();
        assert!(
            between.contains("as 6.1 with changes on the way to 6.12"),
            "{between}"
        );
    }
}
