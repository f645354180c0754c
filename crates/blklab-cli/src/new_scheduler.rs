// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab new-scheduler`: a crate of the user's own with the source of a scheduler of this
//! build, ready to be changed, and a program that compares the two.

use crate::Outcome;
use crate::args::NewSchedulerArgs;
use crate::guard::{self, Guard};
use crate::output::hanging;
use anyhow::{Result, bail};
use blklab::kernel::KernelVersion;
use blklab::scheduler::sources::{ALONE, Source, source};
use blklab::types::{no_such, shown};
use std::io::Write as _;
use std::path::{Path, PathBuf};

const MANIFEST: &str = include_str!("new_scheduler/Cargo.toml.txt");
const LIBRARY: &str = include_str!("new_scheduler/lib.rs.txt");
const MAIN: &str = include_str!("new_scheduler/main.rs.txt");
const TESTS: &str = include_str!("new_scheduler/tests.rs.txt");
const JOB: &str = include_str!("new_scheduler/job.fio.txt");

/// Names of the root of `blklab-sched` that its modules use, beside those that all use.
const ROOT_NAMES: [&str; 3] = ["Built", "LockOf", "Shared"];

/// Where this crate was when the command was built: in a source tree that may be gone.
const BUILT_IN: &str = env!("CARGO_MANIFEST_DIR");

pub(crate) fn new_scheduler(a: &NewSchedulerArgs) -> Result<Outcome> {
    let Some(source) = source(&a.like) else {
        bail!("--like: {}", refusal(&a.like));
    };
    let name = a.name.clone().unwrap_or_else(|| format!("my-{}", a.like));
    check_name(&name)?;
    let built_in = Path::new(BUILT_IN).ancestors().nth(2);
    let tree = tree(a.blklab.as_deref(), built_in.unwrap_or(Path::new("/")))?;
    if a.dir.join("Cargo.toml").exists() {
        bail!(
            "{}: there is a crate already; name a new folder",
            a.dir.display()
        );
    }
    let written = files(&a.like, &name, &source, &tree);
    let mut guard = Guard::default();
    let mut places = Vec::new();
    for (path, text) in &written {
        let (folder, file) = match path.rsplit_once('/') {
            Some((folder, file)) => (a.dir.join(folder), file),
            None => (a.dir.clone(), path.as_str()),
        };
        std::fs::create_dir_all(&folder)
            .map_err(|e| anyhow::anyhow!("{}: cannot be made: {e}", folder.display()))?;
        places.push((guard.writes_same(&folder, file, text.as_bytes())?, text));
    }
    guard::write_all(&places)?;
    let mut out = std::io::stdout().lock();
    for (place, _) in &places {
        writeln!(out, "{}", place.path().display())?;
    }
    let text = format!(
        "\nChange what is in {}, then: cd {} && cargo run --quiet",
        a.dir.join("src").join(place(&source)).display(),
        a.dir.display()
    );
    hanging(&mut out, "", 0, &text)?;
    out.flush()?;
    Ok(Outcome::Done)
}

/// Why there is no copy.
fn refusal(like: &str) -> String {
    match like {
        "none" => "none is the multi-queue path without a scheduler and has no source; noop, of \
                   the single-queue path, is the least one, mq-deadline the least of the \
                   multi-queue path"
            .to_owned(),
        other => no_such("scheduler", other, &ALONE),
    }
}

fn check_name(name: &str) -> Result<()> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase());
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !starts_well || !name.chars().all(is_plain) {
        bail!(
            "--name {}: small letters, digits and -, a letter first, as my-deadline",
            shown(name)
        );
    }
    if blklab::scheduler::Schedulers::default()
        .iter()
        .any(|s| s.name == name)
    {
        bail!("--name {name}: blklab has one of that name");
    }
    Ok(())
}

/// The source tree of blklab: what is named, or where this command was built.
fn tree(named: Option<&Path>, built_in: &Path) -> Result<PathBuf> {
    let own = env!("CARGO_PKG_VERSION");
    let path = named.unwrap_or(built_in);
    if !path.join("crates/blklab/Cargo.toml").is_file() {
        match named {
            Some(path) => bail!(
                "--blklab {}: this is not a source tree of blklab (it has crates/blklab/Cargo.toml)",
                path.display()
            ),
            None => bail!(
                "--blklab DIR: name a source tree of blklab {own}, as this command was built in {} \
                 and there is none any more",
                path.display()
            ),
        }
    }
    let path = path.canonicalize()?;
    let text = std::fs::read_to_string(path.join("Cargo.toml"))?;
    if !text.contains(&format!("version = \"{own}\"")) {
        bail!(
            "--blklab {}: another version than this command, {own}: their schedulers may not fit",
            path.display()
        );
    }
    Ok(path)
}

/// Where the source of the scheduler itself is, below `src`.
fn place(source: &Source) -> String {
    let file = format!("{}.rs", source.module);
    if source.files.iter().any(|(path, _)| *path == file) {
        file
    } else {
        format!("{}/mod.rs", source.module)
    }
}

/// Paths below the folder, and texts.
fn files(like: &str, name: &str, source: &Source, tree: &Path) -> Vec<(String, String)> {
    let krate = name.replace('-', "_");
    let crates = format!("{:?}", tree.join("crates").display().to_string());
    let kernel = newest_kernel(like);
    let is_single = kernel.has_single_queue();
    let kernel = kernel.to_string();
    let filled = |text: &str| {
        text.replace("{{LIKE}}", like)
            .replace("{{NAME}}", name)
            .replace("{{CRATE}}", &krate)
            .replace("{{MODULE}}", &source.module)
            .replace("{{PLACE}}", &place(source))
            .replace("{{VERSION}}", env!("CARGO_PKG_VERSION"))
            .replace("{{CRATES}}", crates.trim_end_matches('"'))
            .replace("{{KERNEL}}", &kernel)
            .replace("{{IMPORTS}}", &imports(source))
            .replace("{{MODULES}}", &modules(source))
    };
    let job = if is_single {
        filled(JOB).replace(
            "cargo run -- JOB.fio",
            &format!("cargo run -- JOB.fio kernel={kernel}"),
        )
    } else {
        filled(JOB)
    };
    let main = if is_single {
        let kernel =
            format!("let mut settings = vec![(\"kernel\".to_owned(), {kernel:?}.to_owned()), ");
        filled(MAIN).replace("let mut settings = vec![", &kernel)
    } else {
        filled(MAIN)
    };
    let mut files = vec![
        ("Cargo.toml".to_owned(), filled(MANIFEST)),
        ("job.fio".to_owned(), job),
        ("src/lib.rs".to_owned(), filled(LIBRARY)),
        ("src/main.rs".to_owned(), main),
        ("tests/any_load.rs".to_owned(), filled(TESTS)),
    ];
    let quoted = format!("\"{like}\"");
    for (path, text) in &source.files {
        let is_own = *path == place(source) || path.starts_with(&format!("{}/", source.module));
        // It goes by its own name, in its table entry and in what it calls itself.
        let text = if is_own {
            text.replace(&quoted, &format!("\"{name}\""))
        } else {
            (*text).to_owned()
        };
        files.push((format!("src/{path}"), text));
    }
    files
}

/// A kernel that has a scheduler: the newest, which experiments have where nobody names one; of
/// those that ended one of their last.
fn newest_kernel(scheduler: &str) -> KernelVersion {
    match scheduler {
        "anticipatory" => KernelVersion::v2_6(32),
        "noop" | "deadline" | "cfq" => KernelVersion::new(4, 19),
        _ => KernelVersion::NEWEST,
    }
}

/// What its modules use of the root of the crate that they are from.
fn imports(source: &Source) -> String {
    let is_used = |name: &&&str| {
        let texts = source.files.iter().map(|(_, text)| text);
        texts
            .clone()
            .any(|text| text.contains(&format!("crate::{name}")))
    };
    let used = ROOT_NAMES.iter().filter(is_used);
    let lines = used
        .map(|name| format!("#[allow(unused_imports)]\npub(crate) use blklab_sched::{name};\n"));
    lines.collect()
}

/// Its modules; what it shares has parts for other schedulers.
fn modules(source: &Source) -> String {
    let mut text = String::new();
    for module in &source.shared {
        text += &format!("#[allow(dead_code)]\nmod {module};\n");
    }
    text + &format!("pub mod {};\n", source.module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_goes_by_its_own_name_and_has_all_of_its_source() {
        let mq_deadline = source("mq-deadline").expect("it stands alone");
        let files = files("mq-deadline", "my-dl", &mq_deadline, Path::new("/b l"));
        let text = |path: &str| &files.iter().find(|f| f.0 == path).expect(path).1;
        assert!(text("src/mq_deadline/mod.rs").starts_with("// SPDX-License-Identifier: MIT OR"));
        assert!(text("src/mq_deadline/mod.rs").contains("name: \"my-dl\","));
        assert!(!text("src/mq_deadline/mod.rs").contains("\"mq-deadline\""));
        assert!(text("src/lib.rs").contains("mod direction;\npub mod mq_deadline;\n"));
        assert!(text("Cargo.toml").contains("{ path = \"/b l/crates/blklab\" }"));
        assert!(text("src/main.rs").contains("[my_dl::ORIGINAL, my_dl::NAME]"));
        assert!(!text("src/main.rs").contains("4.19"));
        let cfq = super::files(
            "cfq",
            "my-cfq",
            &source("cfq").expect("alone"),
            Path::new("/b"),
        );
        let main = cfq
            .iter()
            .find(|f| f.0 == "src/main.rs")
            .expect("a program");
        assert!(
            main.1
                .contains("vec![(\"kernel\".to_owned(), \"4.19\".to_owned()), (")
        );
        assert!(
            files
                .iter()
                .all(|(path, text)| !text.contains("{{") || path.starts_with("tests/"))
        );
        let cut = text("tests/any_load.rs").replace("{{ pattern", "");
        assert!(!cut.contains("{{"), "{cut}");
    }

    #[test]
    fn each_copy_runs_on_a_kernel_that_has_its_original() {
        let all = blklab::scheduler::Schedulers::default();
        for like in ALONE {
            let kernel = newest_kernel(like);
            let original = all.iter().find(|s| s.name == like).expect("a scheduler");
            assert!(
                original.since <= kernel && kernel < original.until,
                "{like}"
            );
        }
    }

    #[test]
    fn a_command_whose_source_tree_is_gone_asks_for_one() {
        let gone = Path::new("/gone/blklab");
        let why = tree(None, gone).expect_err("there is none").to_string();
        assert!(why.starts_with("--blklab DIR: name a source tree of blklab "));
        assert!(why.contains("/gone/blklab") && !why.contains('\n'), "{why}");
        let there = Path::new(BUILT_IN).join("../..");
        let named = tree(Some(&there), gone).expect("it is one");
        assert_eq!(named, there.canonicalize().expect("a folder"));
    }

    #[test]
    fn what_cannot_be_copied_says_why() {
        assert!(refusal("none").contains("has no source"));
        assert!(refusal("mq-dedline").contains("did you mean 'mq-deadline'"));
        assert!(check_name("bfq").is_err() && check_name("My").is_err());
        assert!(check_name("my-bfq2").is_ok());
    }
}
