// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's packages, fetched by apt's own tools in a folder of ours.
//!
//! Nothing is installed, and nothing of the machine's own state of apt is changed. The
//! mirror, and how it is reached, are those of the machine.

use super::command::{Watch, output, run};
use super::recipe::unwritten;
use crate::failed::failed;
use blklab_types::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Releases that may have a package, in the order in which they are looked through, each
/// with whether it has backports: names that stay when a release becomes old.
const RELEASES: &[(&str, bool)] = &[
    ("stable", true),
    ("oldstable", true),
    ("oldoldstable", false),
    ("testing", false),
    ("unstable", false),
];

/// Debian's keys, where its package has them.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// What fetches a single file as apt does.
const HELPER: &str = "/usr/lib/apt/apt-helper";

/// How the packages of images begin.
pub(super) const IMAGE: &str = "linux-image-";

/// Asks a suite for a package.
type Ask<'a> = dyn FnMut(&str, &mut Watch<'_>) -> Result<Option<Package>, Error> + 'a;

/// A package that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// Where it was found.
    suite: String,
}

/// apt with a state of our own.
pub(super) struct Apt {
    folder: PathBuf,
    mirror: String,
}

impl Apt {
    /// Sets the folder up.
    ///
    /// # Errors
    /// If it cannot be made, or the machine knows no mirror of Debian.
    pub(super) fn new(folder: PathBuf) -> Result<Apt, Error> {
        for below in ["lists/partial", "archives/partial", "etc"] {
            let path = folder.join(below);
            std::fs::create_dir_all(&path).map_err(|e| unwritten(&path, &e))?;
        }
        let status = folder.join("status");
        std::fs::write(&status, "").map_err(|e| unwritten(&status, &e))?;
        Ok(Apt {
            folder,
            mirror: mirror()?,
        })
    }

    /// Where its state is.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn sources(&self, suite: &str) -> PathBuf {
        self.folder.join(format!("etc/{suite}.list"))
    }

    /// A tool of apt that looks at one suite.
    fn tool(&self, name: &str, suite: &str) -> Command {
        let at = |path: &str| self.folder.join(path).display().to_string();
        let mut command = Command::new(name);
        for (key, value) in [
            (
                "Dir::Etc::SourceList",
                self.sources(suite).display().to_string(),
            ),
            ("Dir::Etc::SourceParts", "/dev/null".to_owned()),
            ("Dir::State", at("")),
            ("Dir::State::Lists", at("lists")),
            ("Dir::State::Status", at("status")),
            ("Dir::Cache", at("")),
            ("Acquire::Languages", "none".to_owned()),
            (
                "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled",
                "false".to_owned(),
            ),
            ("Acquire::AllowReleaseInfoChange", "true".to_owned()),
            // Folders of ours need not be readable for apt's own user.
            ("APT::Sandbox::User", "root".to_owned()),
            ("APT::Get::List-Cleanup", "false".to_owned()),
        ] {
            command.arg("-o").arg(format!("{key}={value}"));
        }
        command
    }

    /// Looks for a package, suite by suite.
    ///
    /// # Errors
    /// If no suite has it.
    pub(super) fn find(
        &self,
        name: &str,
        log: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<Package, Error> {
        self.search(
            &format!("package {name}"),
            log,
            watch,
            &mut |suite, watch| {
                let version = self.version(name, suite, log, watch)?;
                Ok(version.map(|version| Package {
                    name: name.to_owned(),
                    version,
                    suite: suite.to_owned(),
                }))
            },
        )
    }

    /// Looks for the newest image of a release in a flavour such as `cloud-amd64`, suite by
    /// suite.
    ///
    /// # Errors
    /// If no suite has one.
    pub(super) fn find_image(
        &self,
        release: &str,
        flavour: &str,
        log: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<Package, Error> {
        let what = format!("image of Linux {release} ({flavour})");
        self.search(&what, log, watch, &mut |suite, watch| {
            self.update(suite, log, watch)?;
            let begin = format!("{IMAGE}{release}.");
            let names = output(self.tool("apt-cache", suite).args(["pkgnames", &begin]))?;
            let Some(name) = newest_image(&names, release, flavour) else {
                return Ok(None);
            };
            let shown = output(self.tool("apt-cache", suite).args(["madison", name]))?;
            Ok(newest(&shown).map(|version| Package {
                name: name.to_owned(),
                version: version.to_owned(),
                suite: suite.to_owned(),
            }))
        })
    }

    /// A package of the suite and version of another, if there is one of that name.
    ///
    /// # Errors
    /// If apt cannot be asked.
    pub(super) fn beside(&self, package: &Package, name: &str) -> Result<Option<Package>, Error> {
        let mut tool = self.tool("apt-cache", &package.suite);
        let shown = output(tool.args(["madison", name]))?;
        let version = newest(&shown).filter(|version| *version == package.version);
        Ok(version.map(|version| Package {
            name: name.to_owned(),
            version: version.to_owned(),
            suite: package.suite.clone(),
        }))
    }

    /// Asks each suite, in turn, until one has it.
    fn search(
        &self,
        what: &str,
        log: &Path,
        watch: &mut Watch<'_>,
        ask: &mut Ask<'_>,
    ) -> Result<Package, Error> {
        let mut unreached = None;
        let mut looked_at = Vec::new();
        for (release, has_backports) in RELEASES {
            let codename = match self.codename(release, log, watch) {
                Ok(codename) => codename,
                Err(e) if e.kind == ErrorKind::Interrupted => return Err(e),
                // A mirror need not have all of them.
                Err(e) => {
                    unreached = Some(e);
                    continue;
                }
            };
            let backports = has_backports.then(|| format!("{codename}-backports"));
            for suite in std::iter::once(codename).chain(backports) {
                match ask(&suite, watch) {
                    Ok(Some(package)) => return Ok(package),
                    Ok(None) => looked_at.push(suite),
                    Err(e) if e.kind == ErrorKind::Interrupted => return Err(e),
                    Err(e) => unreached = Some(e),
                }
            }
        }
        let mut what = format!("Debian has no {what}");
        if !looked_at.is_empty() {
            what = format!("{what} in {}", looked_at.join(", "));
        }
        if let Some(e) = unreached {
            what = format!("{what}; {}", e.what);
        }
        Err(Error::new(what))
    }

    /// The name that a release keeps. Mirrors may be behind with what they have under the
    /// others.
    fn codename(&self, release: &str, log: &Path, watch: &mut Watch<'_>) -> Result<String, Error> {
        let file = self.folder.join("etc/Release");
        let _ = std::fs::remove_file(&file);
        let address = format!(
            "{}/dists/{release}/Release",
            self.mirror.trim_end_matches('/')
        );
        let mut helper = Command::new(HELPER);
        helper.args(["-o", "APT::Sandbox::User=root", "download-file", &address]);
        run(helper.arg(&file), log, watch, &mut |_, _| {})?;
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        codename_of(&text)
            .ok_or_else(|| failed(&format!("{address} is no description of a release")))
    }

    /// The newest version of a package in a suite, if it has it.
    fn version(
        &self,
        name: &str,
        suite: &str,
        log: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<Option<String>, Error> {
        self.update(suite, log, watch)?;
        let shown = output(self.tool("apt-cache", suite).args(["madison", name]))?;
        Ok(newest(&shown).map(str::to_owned))
    }

    /// Learns what a suite has.
    fn update(&self, suite: &str, log: &Path, watch: &mut Watch<'_>) -> Result<(), Error> {
        let signed = if Path::new(KEYRING).exists() {
            format!("[signed-by={KEYRING}] ")
        } else {
            String::new()
        };
        let line = format!("deb {signed}{} {suite} main\n", self.mirror);
        let sources = self.sources(suite);
        std::fs::write(&sources, line).map_err(|e| unwritten(&sources, &e))?;
        let update = &mut self.tool("apt-get", suite);
        run(update.arg("update"), log, watch, &mut |_, _| {})
    }

    /// Fetches a package.
    ///
    /// # Errors
    /// If that fails.
    pub(super) fn download(
        &self,
        package: &Package,
        log: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<PathBuf, Error> {
        let folder = self.folder.join("archives");
        let mut command = self.tool("apt-get", &package.suite);
        let named = format!("{}={}", package.name, package.version);
        command.current_dir(&folder).args(["download", &named]);
        run(&mut command, log, watch, &mut |_, _| {})?;
        // Its name has the version with what a path cannot have written otherwise.
        let begins = format!("{}_", package.name);
        let entries = std::fs::read_dir(&folder).map_err(|e| unwritten(&folder, &e))?;
        let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
        let has_version = |name: &String| {
            let version = package.version.replace(':', "%3a");
            name.starts_with(&begins) && name[begins.len()..].starts_with(&version)
        };
        let found = names.into_iter().find(has_version);
        found
            .map(|name| folder.join(name))
            .ok_or_else(|| failed(&format!("apt-get has fetched no {named}")))
    }
}

/// The lasting name that a description of a release gives. It becomes part of paths.
fn codename_of(release: &str) -> Option<String> {
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("Codename:"))?
        .trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
}

/// The newest version that `apt-cache madison` shows, which it shows first.
fn newest(madison: &str) -> Option<&str> {
    let version = madison.lines().next()?.split('|').nth(1)?.trim();
    (!version.is_empty()).then_some(version)
}

/// Of names of packages the newest image of a release in a flavour.
fn newest_image<'a>(names: &'a str, release: &str, flavour: &str) -> Option<&'a str> {
    let versions = names.lines().filter_map(|name| {
        let rest = name.trim().strip_prefix(IMAGE)?.strip_suffix(flavour)?;
        let version = rest.strip_suffix('-')?;
        let points = version.strip_prefix(release)?.strip_prefix('.')?;
        // Of another flavour whose name ends in the same way: rt-amd64 is not amd64.
        let is_version = points
            .split('-')
            .skip(1)
            .all(|part| part.bytes().all(|b| b.is_ascii_digit()));
        is_version.then(|| (numbers(points), name.trim()))
    });
    versions.max().map(|(_, name)| name)
}

/// The numbers in a version, in their order.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// The mirror of Debian that the machine uses.
fn mirror() -> Result<String, Error> {
    let format = "$(CREATED_BY)|$(ORIGIN)|$(RELEASE)|$(COMPONENT)|$(REPO_URI)";
    let shown = output(Command::new("apt-get").args(["indextargets", "--format", format]))?;
    mirror_of(&shown).ok_or_else(|| {
        failed("the sources of apt on this machine name no mirror of Debian, which has the sources of kernels")
    })
}

/// Of the lines of `apt-get indextargets`, one of a whole release: not of its updates or
/// its security. Before the first update nobody knows who is behind a mirror.
fn mirror_of(targets: &str) -> Option<String> {
    targets.lines().find_map(|line| {
        let [by, origin, release, component, uri] = line.split('|').collect::<Vec<_>>()[..] else {
            return None;
        };
        let is_debian = origin == "Debian" || origin.is_empty() || origin == "$(ORIGIN)";
        let is_whole = !release.contains(['-', '/']);
        let fits = by == "Packages" && component == "main" && is_debian && is_whole;
        fits.then(|| uri.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::{codename_of, mirror_of, newest, newest_image};

    #[test]
    fn the_newest_image_of_a_flavour_is_chosen_by_its_numbers() {
        let names = "linux-image-6.12.95+deb13-amd64\n\
                     linux-image-6.12.117+deb13-amd64\n\
                     linux-image-6.12.117+deb13-amd64-unsigned\n\
                     linux-image-6.12.118+deb13-rt-amd64\n\
                     linux-image-6.12.118+deb13-cloud-amd64\n";
        let newest = |release: &str, flavour: &str| newest_image(names, release, flavour);
        assert_eq!(
            newest("6.12", "amd64"),
            Some("linux-image-6.12.117+deb13-amd64")
        );
        assert_eq!(
            newest("6.12", "rt-amd64"),
            Some("linux-image-6.12.118+deb13-rt-amd64")
        );
        assert_eq!(newest("6.1", "amd64"), None);
        let old = "linux-image-6.1.0-47-cloud-amd64\nlinux-image-6.1.0-50-cloud-amd64\n";
        let found = newest_image(old, "6.1", "cloud-amd64");
        assert_eq!(found, Some("linux-image-6.1.0-50-cloud-amd64"));
        assert_eq!(newest_image(old, "6.1", "amd64"), None);
    }

    #[test]
    fn the_mirror_is_that_of_a_whole_release_of_debian() {
        let targets = "\
Packages|Else|nodistro|main|http://b.example/\n\
Packages|Debian|bookworm-updates|main|http://a.example/debian/\n\
DEP-11|Debian|bookworm|main|http://a.example/debian/\n\
Packages|Debian|bookworm|contrib|http://c.example/debian/\n\
Packages|Debian|bookworm|main|http://a.example/debian/\n";
        assert_eq!(
            mirror_of(targets).as_deref(),
            Some("http://a.example/debian/")
        );
        assert_eq!(
            mirror_of("Packages|Else|noble|main|http://b.example/"),
            None
        );
        let unknown = "Packages|$(ORIGIN)|trixie|main|http://a.example/";
        assert!(mirror_of(unknown).is_some());
    }

    #[test]
    fn a_release_has_a_name_that_stays() {
        let text = "Origin: Debian\nSuite: stable\nCodename: trixie\nDate: today\n";
        assert_eq!(codename_of(text).as_deref(), Some("trixie"));
        assert_eq!(codename_of("Codename: ../x\n"), None);
        assert_eq!(codename_of("<html>"), None);
    }

    #[test]
    fn the_newest_version_stands_first() {
        let shown = "linux-source-6.12 | 6.12.117-1 | http://a.example trixie/main\n\
                     linux-source-6.12 | 6.12.107-1 | http://a.example trixie/main\n";
        assert_eq!(newest(shown), Some("6.12.117-1"));
        assert_eq!(newest(""), None);
    }
}
