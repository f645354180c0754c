// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel's tree, as far as an experiment needs to know it: its release.

use blklab_kernel::KernelVersion;
use blklab_types::{Error, shown};
use std::path::Path;

/// Most of a Makefile that is read: a kernel's says its release in the first lines.
const LINES_MAX: usize = 100;

/// The release of a kernel's tree: VERSION, PATCHLEVEL and SUBLEVEL of its Makefile.
///
/// # Errors
/// If there is no such Makefile.
pub(crate) fn release(tree: &Path) -> Result<KernelVersion, Error> {
    let file = tree.join("Makefile");
    let shown = shown(&file.display().to_string()).to_string();
    let text = std::fs::read_to_string(&file).map_err(|e| {
        let what = format!("{shown} cannot be read: {e}");
        let error = Error::new(what).of_kind(e.kind().into());
        error.about("kernel_source")
    })?;
    release_in(&text).map_err(|e| {
        let what = format!("{shown}: {}", e.what);
        Error::new(what).about("kernel_source")
    })
}

/// The release that a Makefile says.
fn release_in(text: &str) -> Result<KernelVersion, Error> {
    let value = |name: &str| {
        let mut lines = text.lines().take(LINES_MAX);
        lines.find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    let no_kernel = || Error::new("not the Makefile of a kernel: it has no VERSION, PATCHLEVEL");
    let version = value("VERSION").ok_or_else(no_kernel)?;
    let level = value("PATCHLEVEL").ok_or_else(no_kernel)?;
    let sub = value("SUBLEVEL").filter(|sub| !sub.is_empty());
    let sub = sub.map_or(String::new(), |sub| format!(".{sub}"));
    let extra = value("EXTRAVERSION").unwrap_or_default();
    let release = format!("{version}.{level}{sub}{extra}");
    release.parse().map_err(|_| {
        let what = format!("'{}' is no release of a kernel", shown(&release));
        Error::new(what)
    })
}

#[cfg(test)]
mod tests {
    use super::{release, release_in};
    use std::path::Path;

    #[test]
    fn a_makefile_says_its_release() {
        let text = "# SPDX\nVERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION =\nNAME = x\n";
        assert_eq!(release_in(text).expect("a release").to_string(), "7.3.4");
        let text = "VERSION = 7\nPATCHLEVEL = 4\nSUBLEVEL = 0\nEXTRAVERSION = -rc2\n";
        let candidate = release_in(text).expect("a release").to_string();
        assert!(candidate.starts_with("7.4"), "{candidate}");
    }

    #[test]
    fn other_makefiles_are_refused() {
        for text in ["", "all:\n\tcc x.c\n", "VERSION = a\nPATCHLEVEL = b\n"] {
            release_in(text).expect_err(text);
        }
        let error = release(Path::new("/nowhere")).expect_err("there is none");
        assert!(error.to_string().contains("/nowhere/Makefile"), "{error}");
    }
}
