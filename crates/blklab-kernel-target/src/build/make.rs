// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel, built.

use super::apt::{Apt, Package};
use super::cache::{About, Built, Cache, Engine, unremoved};
use super::command::{Step, Watch, output, run};
use super::key::Key;
use super::overlay;
use super::recipe::{self, canonical, no_tree, unwritten};
use super::source::Source;
use super::tools;
use crate::failed::failed;
use blklab_types::{Error, Hz};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package of the shell and tools of the machine.
const BUSYBOX: &str = "busybox-static";
/// Where it has them.
const BUSYBOX_PATHS: [&str; 2] = ["usr/bin/busybox", "bin/busybox"];

/// Where one kernel is built.
pub(super) struct Site {
    pub(super) folder: PathBuf,
    /// The tree that is built.
    tree: PathBuf,
    pub(super) log: PathBuf,
}

impl Site {
    pub(super) fn new(cache: &Cache, name: &str) -> Result<Site, Error> {
        let folder = cache.build().join(name);
        std::fs::create_dir_all(&folder).map_err(|e| unwritten(&folder, &e))?;
        Ok(Site {
            tree: folder.join("source"),
            log: folder.join("log"),
            folder,
        })
    }

    fn objects(&self) -> PathBuf {
        self.folder.join("objects")
    }

    fn make(&self) -> Command {
        let mut make = make_in(&self.tree);
        make.arg("ARCH=um")
            .arg(format!("O={}", self.objects().display()));
        make
    }
}

/// make in a folder of a kernel, whoever calls us: that may be a make itself.
pub(super) fn make_in(folder: &Path) -> Command {
    let mut make = Command::new("make");
    make.arg("-C").arg(folder);
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "ARCH", "CROSS_COMPILE"] {
        make.env_remove(name);
    }
    make
}

/// Builds a kernel with so many ticks a second, unless the cache has it.
///
/// # Errors
/// If something is missing on this machine, the source cannot be had, or it cannot be
/// built.
pub fn build(
    cache: &Cache,
    source: &Source,
    hz: Hz,
    watch: &mut Watch<'_>,
) -> Result<Built, Error> {
    tools::check_to_build()?;
    let _alone = cache.lock(Engine::Uml, watch)?;
    match source {
        Source::Release(release) => of_release(cache, release, hz, watch),
        Source::Tree(tree) => of_tree(cache, &canonical(tree)?, hz, watch),
    }
}

/// The kernel of a source with so many ticks a second, if the cache has it: nothing is fetched or built.
///
/// # Errors
/// If a folder cannot be read, or is no kernel's tree.
pub fn built(cache: &Cache, source: &Source, hz: Hz) -> Result<Option<Built>, Error> {
    match source {
        Source::Release(release) => Ok(cache.of_release(release, hz)),
        Source::Tree(tree) => {
            let tree = canonical(tree)?;
            let key = key_of_tree(&tree, &overlay::files(&tree)?, hz);
            Ok(cache.with_key(Engine::Uml, &key.to_string()))
        }
    }
}

fn key_of_tree(tree: &Path, files: &BTreeSet<PathBuf>, hz: Hz) -> Key {
    let mut key = Key::default();
    overlay::add_to(&mut key, tree, files);
    recipe::add_to(&mut key, hz);
    key
}

fn of_release(cache: &Cache, release: &str, hz: Hz, watch: &mut Watch<'_>) -> Result<Built, Error> {
    let site = Site::new(cache, &format!("release-{release}"))?;
    // What an earlier build has logged says nothing about this one.
    let _ = std::fs::remove_file(&site.log);
    (watch.step)(Step::Fetching);
    let apt = Apt::new(cache.apt(Engine::Uml))?;
    let package = apt.find(&format!("linux-source-{release}"), &site.log, watch)?;
    let source = format!("{} {}", package.name, package.version);
    let mut key = Key::default();
    key.add(source.as_bytes());
    recipe::add_to(&mut key, hz);
    if let Some(there) = cache.with_key(Engine::Uml, &key.to_string()) {
        return Ok(there);
    }
    let busybox = busybox(&apt, &site, watch)?;
    unpack(&apt, &package, &site, watch)?;
    recipe::apply(&site.tree, &site.tree, hz)?;
    let what = What { source, key, hz };
    let built = compile(cache, &site, &what, &busybox, watch)?;
    // It is large, and can be had again.
    std::fs::remove_dir_all(&site.folder).map_err(|e| unremoved(&site.folder, &e))?;
    Ok(built)
}

fn of_tree(cache: &Cache, tree: &Path, hz: Hz, watch: &mut Watch<'_>) -> Result<Built, Error> {
    let files = overlay::files(tree)?;
    let mut name = Key::default();
    name.add(tree.as_os_str().as_encoded_bytes());
    if hz != recipe::HZ {
        // All of it depends on the tick: what was built with another is of no use.
        name.add(&hz.0.to_le_bytes());
    }
    let key = key_of_tree(tree, &files, hz);
    if let Some(there) = cache.with_key(Engine::Uml, &key.to_string()) {
        return Ok(there);
    }
    let site = Site::new(cache, &format!("tree-{name}"))?;
    let _ = std::fs::remove_file(&site.log);
    (watch.step)(Step::Fetching);
    let busybox = busybox(&Apt::new(cache.apt(Engine::Uml))?, &site, watch)?;
    overlay::link(tree, &files, &site.tree)?;
    recipe::apply(tree, &site.tree, hz)?;
    let source = tree.display().to_string();
    // What it leaves makes the next build short.
    compile(cache, &site, &What { source, key, hz }, &busybox, watch)
}

/// What is built.
struct What {
    /// A package with its version, or a folder.
    source: String,
    /// What names source and recipe.
    key: Key,
    hz: Hz,
}

/// Fetches the source and unpacks it.
fn unpack(apt: &Apt, package: &Package, site: &Site, watch: &mut Watch<'_>) -> Result<(), Error> {
    let fetched = apt.download(package, &site.log, watch)?;
    (watch.step)(Step::Unpacking);
    let folder = site.folder.join("package");
    for old in [&folder, &site.tree, &site.objects()] {
        if old.exists() {
            std::fs::remove_dir_all(old).map_err(|e| unremoved(old, &e))?;
        }
    }
    extract(&fetched, &folder, site, watch)?;
    std::fs::remove_file(&fetched).map_err(|e| unremoved(&fetched, &e))?;
    let archive = folder.join(format!("usr/src/{}.tar.xz", package.name));
    std::fs::create_dir_all(&site.tree).map_err(|e| unwritten(&site.tree, &e))?;
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(&site.tree).arg("--strip-components=1");
    tar.arg("-xf").arg(&archive);
    run(&mut tar, &site.log, watch, &mut |_, _| {})?;
    std::fs::remove_dir_all(&folder).map_err(|e| unremoved(&folder, &e))
}

/// The files of a package, below a folder.
pub(super) fn extract(
    deb: &Path,
    folder: &Path,
    site: &Site,
    watch: &mut Watch<'_>,
) -> Result<(), Error> {
    let mut extract = Command::new("dpkg-deb");
    extract.arg("-x").arg(deb).arg(folder);
    run(&mut extract, &site.log, watch, &mut |_, _| {})
}

/// The shell and tools of the machine, fetched once.
pub(super) fn busybox(apt: &Apt, site: &Site, watch: &mut Watch<'_>) -> Result<PathBuf, Error> {
    let kept = apt.folder().join("busybox");
    if kept.exists() {
        return Ok(kept);
    }
    let package = apt.find(BUSYBOX, &site.log, watch)?;
    let fetched = apt.download(&package, &site.log, watch)?;
    let folder = site.folder.join("package");
    extract(&fetched, &folder, site, watch)?;
    let there = BUSYBOX_PATHS.map(|path| folder.join(path));
    let Some(program) = there.iter().find(|path| path.exists()) else {
        return Err(failed(&format!("the package {BUSYBOX} has no busybox")));
    };
    let new = apt.folder().join(".new-busybox");
    let copied = std::fs::copy(program, &new).and_then(|_| std::fs::rename(&new, &kept));
    copied.map_err(|e| unwritten(&kept, &e))?;
    std::fs::remove_dir_all(&folder).map_err(|e| unremoved(&folder, &e))?;
    Ok(kept)
}

fn compile(
    cache: &Cache,
    site: &Site,
    what: &What,
    busybox: &Path,
    watch: &mut Watch<'_>,
) -> Result<Built, Error> {
    let objects = site.objects();
    std::fs::create_dir_all(&objects).map_err(|e| unwritten(&objects, &e))?;
    let wanted = site.folder.join("wanted-config");
    std::fs::write(&wanted, recipe::CONFIG).map_err(|e| unwritten(&wanted, &e))?;
    (watch.step)(Step::compiled(0));
    let mut configure = site.make();
    configure.arg(format!("KCONFIG_ALLCONFIG={}", wanted.display()));
    run(
        configure.arg("allnoconfig"),
        &site.log,
        watch,
        &mut |_, _| {},
    )?;
    let config = objects.join(".config");
    check_config(site, &config)?;
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut make = site.make();
    make.arg(format!("-j{jobs}")).arg("linux");
    let mut nr_files = 0;
    run(&mut make, &site.log, watch, &mut |line, watch| {
        if line.trim_start().starts_with("CC ") {
            nr_files += 1;
            (watch.step)(Step::compiled(nr_files));
        }
    })?;
    let release = output(site.make().args(["-s", "kernelversion"]))?;
    let about = About {
        release: release.trim().to_owned(),
        source: what.source.clone(),
        key: what.key.to_string(),
        recipe: recipe::name(what.hz),
        hz: what.hz.0,
    };
    let linux = objects.join("linux");
    cache.keep(
        &about,
        &[(&linux, "linux"), (&config, "config"), (busybox, "busybox")],
    )
}

/// Refuses a tree that does not know what we need.
fn check_config(site: &Site, config: &Path) -> Result<(), Error> {
    let text = std::fs::read_to_string(config).unwrap_or_default();
    let has = |option: &str| text.lines().any(|line| line == option);
    match recipe::ESSENTIAL.iter().find(|option| !has(option)) {
        Some(option) => Err(no_tree(&site.tree, &format!("it does not take {option}"))),
        None => Ok(()),
    }
}
