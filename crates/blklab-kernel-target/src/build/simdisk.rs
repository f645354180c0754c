// SPDX-License-Identifier: MIT OR Apache-2.0
//! Our own module `simdisk` for an image of Debian: built against the headers of the very
//! image, once, and kept beside it.
//!
//! Headers, the tools of their build and the libraries that these need are fetched into a
//! folder of ours; nothing is installed. The compiler is this machine's. It may be older
//! than the kernel's: what only that one understands is left away.

use super::apt::{Apt, IMAGE as IMAGE_PACKAGE, Package};
use super::cache::{Built, Cache, Engine, unremoved};
use super::command::{Step, Watch, output, run};
use super::make::{Site, extract, make_in};
use super::own_module::{NAME, SOURCE, built, file_name};
use super::recipe::{unread, unwritten};
use super::tools::{self, TO_FETCH};
use crate::failed::failed;
use blklab_types::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that build it.
const TO_BUILD: &[(&str, &str)] = &[("gcc", "gcc"), ("ld", "binutils"), ("make", "make")];
/// Libraries that the tools of a kernel's build need: each by the names that it has had.
const LIBRARIES: &[&[&str]] = &[
    &["libc6"],
    &["libelf1t64", "libelf1"],
    &["zlib1g"],
    &["libzstd1"],
];
/// The loader of programs, among them.
const LOADERS: [&str; 2] = [
    "usr/lib64/ld-linux-x86-64.so.2",
    "lib64/ld-linux-x86-64.so.2",
];
const LIBRARY_FOLDERS: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
/// Tools of the build, below its folder. Where there is one for each kind of machine, the
/// first is what the second chooses among them.
const TOOLS: &[(&str, &str)] = &[
    ("scripts/basic/fixdep", ""),
    ("scripts/genksyms/genksyms", ""),
    ("scripts/gendwarfksyms/gendwarfksyms", ""),
    ("scripts/recordmcount", ""),
    ("scripts/mod/modpost", "scripts/mod/modpost.real-lsb-64"),
    ("tools/objtool/objtool", "tools/objtool/objtool.real-x86"),
    ("tools/bpf/resolve_btfids/resolve_btfids", ""),
];
/// Options of the kernel that a module need not have, and of which the first needs a
/// compiler as new as the kernel's.
const WITHOUT: [&str; 2] = [
    "CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=",
    "CONFIG_DEBUG_INFO_BTF_MODULES=",
];

/// Builds the module for an image, unless it is there.
///
/// # Errors
/// If the image is not Debian's, something is missing on this machine, or it does not
/// compile.
pub(crate) fn prepare(cache: &Cache, image: &Built, watch: &mut Watch<'_>) -> Result<(), Error> {
    if built(image.folder()).is_some() {
        return Ok(());
    }
    let purpose = format!("to build {NAME}");
    tools::check(&purpose, &[TO_BUILD, TO_FETCH])?;
    let _alone = cache.lock(Engine::Qemu, watch)?;
    if built(image.folder()).is_some() {
        return Ok(());
    }
    let site = Site::new(cache, &format!("{NAME}-{}", image.name))?;
    let _ = std::fs::remove_file(&site.log);
    (watch.step)(Step::Fetching);
    let apt = Apt::new(cache.apt(Engine::Qemu))?;
    let root = site.folder.join("root");
    if root.exists() {
        std::fs::remove_dir_all(&root).map_err(|e| unremoved(&root, &e))?;
    }
    let headers = fetch(&apt, image, &root, &site, watch)?;
    use_own_libraries(&root)?;
    let made = compile(&root, &headers, &site, watch)?;
    let to = image.folder().join(file_name());
    let partial = image.folder().join(".simdisk.partial");
    std::fs::copy(&made, &partial).map_err(|e| unwritten(&partial, &e))?;
    std::fs::rename(&partial, &to).map_err(|e| unwritten(&to, &e))?;
    std::fs::remove_dir_all(&site.folder).map_err(|e| unremoved(&site.folder, &e))
}

/// Fetches what is needed, and returns the folder of the headers.
fn fetch(
    apt: &Apt,
    image: &Built,
    root: &Path,
    site: &Site,
    watch: &mut Watch<'_>,
) -> Result<PathBuf, Error> {
    let of_debian = image.source.strip_prefix(IMAGE_PACKAGE);
    let Some((release, version)) = of_debian.and_then(|rest| rest.split_once(' ')) else {
        return Err(Error::not_modelled(format!(
            "{NAME} is built for images that were fetched from Debian, not for that of {}",
            image.source
        ))
        .about("device"));
    };
    let name = format!("linux-headers-{release}");
    let package = apt.find(&name, &site.log, watch)?;
    if package.version != version {
        return Err(failed(&format!(
            "Debian has the headers of {release} in version {}, and the image is {version}: fetch \
             it again",
            package.version
        )));
    }
    let fetched = get(apt, &package, root, site, watch)?;
    for name in needed(&output(
        Command::new("dpkg-deb")
            .arg("-f")
            .arg(&fetched)
            .arg("Depends"),
    )?) {
        let found = apt.beside(&package, &name)?;
        let found =
            found.ok_or_else(|| failed(&format!("Debian has no {name} beside {release}")))?;
        get(apt, &found, root, site, watch)?;
    }
    for names in LIBRARIES {
        let mut found = apt.find(names[0], &site.log, watch);
        if let (Err(_), Some(name)) = (&found, names.get(1)) {
            found = apt.find(name, &site.log, watch);
        }
        get(apt, &found?, root, site, watch)?;
    }
    Ok(root.join("usr/src").join(name))
}

/// Fetches and unpacks a package.
fn get(
    apt: &Apt,
    package: &Package,
    root: &Path,
    site: &Site,
    watch: &mut Watch<'_>,
) -> Result<PathBuf, Error> {
    let fetched = apt.download(package, &site.log, watch)?;
    extract(&fetched, root, site, watch)?;
    Ok(fetched)
}

/// Of what a package of headers depends on, the other packages of the kernel's build.
fn needed(depends: &str) -> Vec<String> {
    let names = depends
        .split(',')
        .filter_map(|d| d.split_whitespace().next());
    let is_of_build = |name: &&str| {
        name.starts_with("linux-kbuild-")
            || name.starts_with("linux-headers-") && name.ends_with("-common")
    };
    names.filter(is_of_build).map(str::to_owned).collect()
}

/// The first of these paths below a folder that is there.
fn first_of(root: &Path, paths: &[&str]) -> Result<PathBuf, Error> {
    let mut all = paths.iter().map(|path| root.join(path));
    let found = all.find(|path| path.exists());
    found.ok_or_else(|| failed(&format!("the packages have no {}", paths[0])))
}

/// Has the tools of the build run with the libraries that were fetched with them: this
/// machine's may be older.
fn use_own_libraries(root: &Path) -> Result<(), Error> {
    let loader = first_of(root, &LOADERS)?;
    let libraries = first_of(root, &LIBRARY_FOLDERS)?;
    let all = std::fs::read_dir(root.join("usr/lib")).map_err(|e| unread(root, &e))?;
    let mut folders = all.filter_map(|e| Some(e.ok()?.path()));
    let is_build = |path: &PathBuf| path.to_string_lossy().contains("/linux-kbuild-");
    let folder = folders.find(is_build);
    let folder = folder.ok_or_else(|| failed("the packages have no tools of a kernel's build"))?;
    for (name, of_machine) in TOOLS {
        let tool = folder.join(name);
        if !tool.exists() {
            continue;
        }
        let chosen =
            Some(folder.join(of_machine)).filter(|path| !of_machine.is_empty() && path.exists());
        let own = tool.with_extension("own");
        std::fs::rename(chosen.as_ref().unwrap_or(&tool), &own).map_err(|e| unwritten(&own, &e))?;
        let text = format!(
            "#!/bin/sh\nexec '{}' --library-path '{}' '{}' \"$@\"\n",
            loader.display(),
            libraries.display(),
            own.display()
        );
        // Not through what may be a link to elsewhere.
        let _ = std::fs::remove_file(&tool);
        write_program(&tool, &text)?;
    }
    Ok(())
}

fn write_program(path: &Path, text: &str) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt as _;
    let written = std::fs::write(path, text)
        .and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)));
    written.map_err(|e| unwritten(path, &e))
}

/// Compiles the module, and returns its file.
fn compile(
    root: &Path,
    headers: &Path,
    site: &Site,
    watch: &mut Watch<'_>,
) -> Result<PathBuf, Error> {
    let makefile = headers.join("Makefile");
    let text = std::fs::read_to_string(&makefile).map_err(|e| unread(&makefile, &e))?;
    let here = format!("{}/usr/src/", root.display());
    let text = text.replace("/usr/src/", &here);
    std::fs::write(&makefile, text).map_err(|e| unwritten(&makefile, &e))?;
    let folder = site.folder.join("module");
    std::fs::create_dir_all(&folder).map_err(|e| unwritten(&folder, &e))?;
    for (name, text) in [("simdisk.c", SOURCE), ("Makefile", "obj-m := simdisk.o\n")] {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|e| unwritten(&path, &e))?;
    }
    (watch.step)(Step::Module);
    let mut make = make_in(headers);
    make.arg(format!("M={}", folder.display()))
        .arg("CC=gcc")
        .args(WITHOUT);
    run(make.arg("modules"), &site.log, watch, &mut |_, _| {})?;
    let made = folder.join("simdisk.ko");
    let mut strip = Command::new("strip");
    run(strip.arg("-g").arg(&made), &site.log, watch, &mut |_, _| {})?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::{needed, use_own_libraries};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_headers_depend_on_is_the_rest_of_the_build() {
        let depends = "linux-base (>= 4.12~), linux-headers-6.12.117+deb13-common (= 6.12.117-1), \
                       linux-image-6.12.117+deb13-cloud-amd64 (= 6.12.117-1) | linux-image-x, \
                       linux-kbuild-6.12.117+deb13, gcc-14";
        let expected = [
            "linux-headers-6.12.117+deb13-common",
            "linux-kbuild-6.12.117+deb13",
        ];
        assert_eq!(needed(depends), expected);
    }

    #[test]
    fn tools_run_with_the_libraries_beside_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let tools = root.join("usr/lib/linux-kbuild-6.12");
        for path in ["usr/lib64", "usr/lib/x86_64-linux-gnu"] {
            std::fs::create_dir_all(root.join(path)).expect("a folder");
        }
        for path in ["scripts/basic", "scripts/mod"] {
            std::fs::create_dir_all(tools.join(path)).expect("a folder");
        }
        std::fs::write(root.join("usr/lib64/ld-linux-x86-64.so.2"), "").expect("a file");
        for name in ["basic/fixdep", "mod/modpost", "mod/modpost.real-lsb-64"] {
            std::fs::write(tools.join("scripts").join(name), name).expect("a file");
        }
        use_own_libraries(root).expect("all is there");
        let text = |name: &str| std::fs::read_to_string(tools.join("scripts").join(name));
        assert!(
            text("basic/fixdep")
                .expect("a text")
                .contains("fixdep.own' \"$@\"")
        );
        assert_eq!(
            text("mod/modpost.own").expect("a text"),
            "mod/modpost.real-lsb-64"
        );
        let mode = tools
            .join("scripts/mod/modpost")
            .metadata()
            .expect("a file");
        assert_eq!(mode.permissions().mode() & 0o111, 0o111);
    }
}
