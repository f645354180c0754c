// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images of kernels that a machine boots: of Debian's packages, or of the user.

use super::apt::{self, Apt, Package};
use super::cache::{About, Built, Cache, Engine, IMAGE, unremoved};
use super::command::{Step, Watch, run};
use super::key::Key;
use super::make::{Site, busybox, extract};
use super::modules::{BUILTIN, DEPENDENCIES, KEPT, MODULES, Modules};
use super::recipe::{HZ, canonical, unread, unwritten};
use super::source::Source;
use super::tools::{self, TO_FETCH, TO_SORT_MODULES};
use crate::failed::failed;
use blklab_types::{Error, shown};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages that newer releases have an image in parts in.
const PARTS: [&str; 3] = ["linux-binary-", "linux-modules-", "linux-base-"];

/// How modules are compressed: the ends of their names, and what takes that off.
const COMPRESSED: &[(&str, &[&str])] = &[
    ("xz", &["xz", "-d", "-q"]),
    ("zst", &["zstd", "-d", "-q", "--rm"]),
    ("gz", &["gzip", "-d", "-q"]),
];

/// The flavour of Debian's kernels that is fetched if none is asked for: the small one.
pub const FLAVOUR: &str = "cloud-amd64";

/// A kernel of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// The image.
    pub image: PathBuf,
    /// The folder of its modules, if it has any.
    pub modules: Option<PathBuf>,
}

/// Fetches Debian's image of a release, unless the cache has it. Flavours are those of
/// Debian, such as `cloud-amd64`.
///
/// # Errors
/// If something is missing on this machine, or there is no such image.
pub fn fetch(
    cache: &Cache,
    release: &str,
    flavour: &str,
    watch: &mut Watch<'_>,
) -> Result<Built, Error> {
    check_flavour(flavour)?;
    // A release is written in the same way wherever it goes.
    Source::release(release)?;
    tools::check("to fetch a kernel", &[TO_FETCH, TO_SORT_MODULES])?;
    let _alone = cache.lock(Engine::Qemu, watch)?;
    let site = Site::new(cache, &format!("image-{release}-{flavour}"))?;
    let _ = std::fs::remove_file(&site.log);
    (watch.step)(Step::Fetching);
    let apt = Apt::new(cache.apt(Engine::Qemu))?;
    let package = apt.find_image(release, flavour, &site.log, watch)?;
    let source = format!("{} {}", package.name, package.version);
    let mut key = Key::default();
    key.add(source.as_bytes());
    KEPT.iter().for_each(|name| key.add(name.as_bytes()));
    let key = key.to_string();
    if let Some(there) = cache.with_key(Engine::Qemu, &key) {
        return Ok(there);
    }
    let busybox = busybox(&apt, &site, watch)?;
    let unpacked = unpack(&apt, &package, &site, watch)?;
    let about = About {
        release: unpacked.release.clone(),
        source,
        key,
        recipe: String::new(),
        hz: HZ.0,
    };
    let built = keep(cache, &about, &unpacked, &busybox, &site, watch)?;
    std::fs::remove_dir_all(&site.folder).map_err(|e| unremoved(&site.folder, &e))?;
    Ok(built)
}

/// Keeps an image of the user, under the release that it has in it; where another image has
/// that name, under it and what names the file's bytes.
///
/// # Errors
/// If it is none, its modules have no lists, or something is missing on this machine.
pub fn add(cache: &Cache, added: &Added, watch: &mut Watch<'_>) -> Result<Built, Error> {
    let release = release_of(&added.image)?;
    let modules = match &added.modules {
        Some(folder) => Some(modules_folder(folder, &release)?),
        None => None,
    };
    let _alone = cache.lock(Engine::Qemu, watch)?;
    let site = Site::new(cache, "added")?;
    let _ = std::fs::remove_file(&site.log);
    (watch.step)(Step::Fetching);
    let busybox = busybox(&Apt::new(cache.apt(Engine::Qemu))?, &site, watch)?;
    let mut key = Key::default();
    key.add(&std::fs::read(&added.image).map_err(|e| unread(&added.image, &e))?);
    let about = About {
        release: release.clone(),
        source: canonical(&added.image)?.display().to_string(),
        key: key.to_string(),
        recipe: String::new(),
        hz: HZ.0,
    };
    let unpacked = Unpacked {
        release,
        image: added.image.clone(),
        modules,
    };
    keep(cache, &about, &unpacked, &busybox, &site, watch)
}

/// Where an image is from: its package, of any version, or its file.
fn origin(source: &str) -> &str {
    if source.starts_with('/') {
        return source;
    }
    source.split(' ').next().unwrap_or(source)
}

/// The name under which an image is kept: its release, unless one from elsewhere has it.
fn name_for(cache: &Cache, about: &About) -> String {
    let all = cache.kernels_of(Engine::Qemu);
    let there = all.iter().find(|image| image.name == about.release);
    let is_others = there.is_some_and(|image| origin(&image.source) != origin(&about.source));
    if is_others {
        format!("{}-{}", about.release, about.key)
    } else {
        about.release.clone()
    }
}

/// The parts of an image, before they are kept.
struct Unpacked {
    /// As `uname -r` prints it.
    release: String,
    image: PathBuf,
    modules: Option<PathBuf>,
}

fn check_flavour(flavour: &str) -> Result<(), Error> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !flavour.is_empty() && flavour.chars().all(is_plain) {
        return Ok(());
    }
    Err(Error::new(format!(
        "'{}' is no flavour of Debian's kernels; write it like cloud-amd64, amd64 or rt-amd64",
        shown(flavour)
    )))
}

fn unpack(
    apt: &Apt,
    package: &Package,
    site: &Site,
    watch: &mut Watch<'_>,
) -> Result<Unpacked, Error> {
    let release = package.name.strip_prefix(apt::IMAGE);
    let release = release.expect("it was found by this").to_owned();
    let mut packages = vec![package.clone()];
    for part in PARTS {
        packages.extend(apt.beside(package, &format!("{part}{release}"))?);
    }
    let folder = site.folder.join("package");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| unremoved(&folder, &e))?;
    }
    for package in &packages {
        let fetched = apt.download(package, &site.log, watch)?;
        (watch.step)(Step::Unpacking);
        extract(&fetched, &folder, site, watch)?;
        std::fs::remove_file(&fetched).map_err(|e| unremoved(&fetched, &e))?;
    }
    // What has /lib as a link has all of it below /usr.
    let roots = [folder.join("usr"), folder.clone()];
    let below = |root: &PathBuf| root.join("lib/modules").join(&release);
    let root = roots
        .iter()
        .find(|root| below(root).join("kernel").exists());
    let root =
        root.ok_or_else(|| failed(&format!("the package {} has no modules", package.name)))?;
    let mut depmod = Command::new("depmod");
    depmod.arg("-b").arg(root).arg(&release);
    run(&mut depmod, &site.log, watch, &mut |_, _| {})?;
    let images = [
        folder.join(format!("boot/vmlinuz-{release}")),
        below(root).join("vmlinuz"),
    ];
    let image = images.iter().find(|path| path.exists());
    let image =
        image.ok_or_else(|| failed(&format!("the package {} has no image", package.name)))?;
    Ok(Unpacked {
        image: image.clone(),
        modules: Some(below(root)),
        release,
    })
}

/// Puts the parts into the cache.
fn keep(
    cache: &Cache,
    about: &About,
    unpacked: &Unpacked,
    busybox: &Path,
    site: &Site,
    watch: &mut Watch<'_>,
) -> Result<Built, Error> {
    let copy = |from: &Path, to: PathBuf| {
        let copied = std::fs::copy(from, &to);
        copied.map_err(|e| unwritten(&to, &e))
    };
    let name = name_for(cache, about);
    cache.keep_as(Engine::Qemu, &name, about, &mut |new| {
        copy(&unpacked.image, new.join(IMAGE))?;
        copy(busybox, new.join("busybox"))?;
        let Some(from) = &unpacked.modules else {
            return Ok(());
        };
        let to = new.join(MODULES);
        std::fs::create_dir_all(&to).map_err(|e| unwritten(&to, &e))?;
        let (files, list) = Modules::read(from)?.kept();
        let mut copies = Vec::with_capacity(files.len());
        for file in files {
            // As they are called in the list.
            let name = file
                .file_name()
                .and_then(|n| n.to_str())
                .unwrap_or_default();
            let copied = to.join(name.replace('-', "_"));
            copy(&file, copied.clone())?;
            copies.push(copied);
        }
        decompress(&copies, site, watch)?;
        let written = std::fs::write(new.join(DEPENDENCIES), list);
        written.map_err(|e| unwritten(&new.join(DEPENDENCIES), &e))?;
        if from.join(BUILTIN).exists() {
            copy(&from.join(BUILTIN), new.join(BUILTIN))?;
        }
        Ok(())
    })
}

fn decompress(files: &[PathBuf], site: &Site, watch: &mut Watch<'_>) -> Result<(), Error> {
    for (end, program) in COMPRESSED {
        let mut found = files
            .iter()
            .filter(|f| f.extension().is_some_and(|e| e == *end));
        let Some(first) = found.next() else {
            continue;
        };
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(first).args(found);
        run(&mut command, &site.log, watch, &mut |_, _| {})?;
    }
    Ok(())
}

/// The folder of a kernel's modules: itself, or one that they were installed below.
fn modules_folder(folder: &Path, release: &str) -> Result<PathBuf, Error> {
    let below = folder.join("lib/modules").join(release);
    let candidates = [folder.to_owned(), below];
    let found = candidates
        .into_iter()
        .find(|f| f.join(DEPENDENCIES).exists());
    found.ok_or_else(|| {
        Error::new(format!(
            "there is no {DEPENDENCIES} of Linux {release}, which make modules_install or depmod \
             makes"
        ))
        .in_file(&folder.display().to_string())
    })
}

/// The release that an image has in it.
///
/// Source: Documentation/arch/x86/boot.rst of Linux: 0xaa55 at 0x1fe, "HdrS" at 0x202, and
/// at 0x20e where the version is, counted from 0x200.
fn release_of(image: &Path) -> Result<String, Error> {
    const BYTES: u64 = 1 << 17;
    let file = std::fs::File::open(image).map_err(|e| unread(image, &e))?;
    let mut begin = Vec::new();
    let read = file.take(BYTES).read_to_end(&mut begin);
    read.map_err(|e| unread(image, &e))?;
    release_in(&begin).ok_or_else(|| {
        Error::new("no image of a kernel for x86 (a bzImage, as arch/x86/boot/bzImage is)")
            .in_file(&image.display().to_string())
    })
}

fn release_in(begin: &[u8]) -> Option<String> {
    let word = |at: usize| Some(u16::from_le_bytes([*begin.get(at)?, *begin.get(at + 1)?]));
    if word(0x1fe)? != 0xaa55 || begin.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let version = begin.get(0x200 + usize::from(word(0x20e)?)..)?;
    let is_part = |b: &&u8| b.is_ascii_alphanumeric() || b"._+~-".contains(b);
    let release: Vec<u8> = version.iter().take_while(is_part).copied().collect();
    // It becomes the name of a folder.
    let begins = release.first().is_some_and(u8::is_ascii_digit) && release.len() < 100;
    String::from_utf8(release).ok().filter(|_| begins)
}

#[cfg(test)]
mod tests {
    use super::{About, Cache, Engine, HZ, check_flavour, modules_folder, name_for, release_in};

    /// The begin of an image whose version lies there.
    fn image(version: &[u8], at: u16) -> Vec<u8> {
        let mut bytes = vec![0; 0x400];
        bytes[0x1fe..0x200].copy_from_slice(&[0x55, 0xaa]);
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x20e..0x210].copy_from_slice(&at.to_le_bytes());
        let start = 0x200 + usize::from(at);
        if let Some(place) = bytes.get_mut(start..start + version.len()) {
            place.copy_from_slice(version);
        }
        bytes
    }

    #[test]
    fn an_image_says_its_release() {
        let text = b"6.12.117+deb13-cloud-amd64 (builder@example) #1 SMP\0";
        let release = release_in(&image(text, 0x80));
        assert_eq!(release.as_deref(), Some("6.12.117+deb13-cloud-amd64"));
        for bad in [
            &b""[..],
            b"ELF",
            &image(b"../../etc", 0x80),
            &image(b"6.12", 0xffff),
            &image(b"6.12", 0x80)[..0x208],
        ] {
            assert_eq!(release_in(bad), None);
        }
    }

    #[test]
    fn modules_need_their_list() {
        let folder = tempfile::tempdir().expect("a folder");
        let below = folder.path().join("lib/modules/6.12");
        std::fs::create_dir_all(&below).expect("a folder");
        let error = modules_folder(folder.path(), "6.12").expect_err("there is no list");
        assert!(
            error.to_string().contains("no modules.dep of Linux 6.12"),
            "{error}"
        );
        std::fs::write(below.join("modules.dep"), "").expect("a file");
        assert_eq!(modules_folder(folder.path(), "6.12").ok(), Some(below));
    }

    #[test]
    fn images_of_one_release_from_elsewhere_are_kept_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(folder.path().to_owned());
        let keep = |source: &str, key: &str| {
            let about = About {
                release: "6.12.1".to_owned(),
                source: source.to_owned(),
                key: key.to_owned(),
                recipe: String::new(),
                hz: HZ.0,
            };
            let name = name_for(&cache, &about);
            let kept = cache.keep_as(Engine::Qemu, &name, &about, &mut |_| Ok(()));
            kept.expect("it is kept").name
        };
        assert_eq!(keep("linux-image-6.12.1 6.12.1-1", "aa"), "6.12.1");
        assert_eq!(keep("/home/x/bzImage", "bb"), "6.12.1-bb");
        // A newer version of the package takes the place of the older one.
        assert_eq!(keep("linux-image-6.12.1 6.12.1-2", "cc"), "6.12.1");
        assert_eq!(cache.kernels_of(Engine::Qemu).len(), 2);
        let found = |name: &str| cache.find_for(Engine::Qemu, name).expect("it is there");
        assert_eq!(found("6.12.1").key, "cc");
        assert_eq!(found("6.12.1-bb").source, "/home/x/bzImage");
    }

    #[test]
    fn flavours_are_plain_words() {
        assert!(check_flavour("rt-amd64").is_ok());
        for bad in ["", "../x", "a b", "amd64;"] {
            assert!(check_flavour(bad).is_err(), "{bad}");
        }
    }
}
