// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the command carries in itself: examples, completions, manual pages.

use crate::support::{Folder, root};

/// Names of the commands that help shows.
fn commands(f: &Folder) -> Vec<String> {
    let help = f.ok(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").expect("a list of commands");
    let lines = list.lines().take_while(|l| !l.is_empty());
    let names = lines.filter_map(|l| l.strip_prefix("  ").filter(|l| !l.starts_with(' ')));
    let names = names.filter_map(|l| l.split_whitespace().next());
    names.filter(|n| *n != "help").map(str::to_owned).collect()
}

#[test]
fn every_example_is_carried_as_it_is() {
    let f = Folder::new();
    let list = f.ok(&["example"]);
    assert!(list.lines().all(|l| l.chars().count() <= 80), "{list}");
    let json: serde_json::Value =
        serde_json::from_str(&f.ok(&["example", "--format", "json"])).unwrap();
    let carried: Vec<&str> = json
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["name"].as_str().unwrap())
        .collect();
    let entries = std::fs::read_dir(root().join("examples")).unwrap();
    let files = entries.map(|e| e.unwrap().path()).filter(|p| p.is_file());
    let mut files: Vec<_> = files.collect();
    files.sort();
    let names: Vec<_> = files
        .iter()
        .map(|p| p.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(carried, names);
    for (name, path) in names.iter().zip(&files) {
        assert!(list.contains(&format!("{name} ")), "{list}");
        assert_eq!(
            f.run(&["example", name]).stdout,
            std::fs::read_to_string(path).unwrap()
        );
    }
}

/// All of them run where there is nothing but what the command wrote.
#[test]
fn written_examples_are_complete() {
    let f = Folder::new();
    let done = f.run(&["example", "quantum-2010.toml"]);
    assert_eq!(done.code, Some(0));
    assert!(
        done.stderr.contains("needs quantum-2010.fio beside it"),
        "{}",
        done.stderr
    );
    let written = f.ok(&["example", "quantum-2010.toml", "--out", "a/b"]);
    assert_eq!(written, "a/b/quantum-2010.toml\na/b/quantum-2010.fio\n");
    let table = f.ok(&["run", "a/b/quantum-2010.toml"]);
    assert!(table.contains("unpatched"), "{table}");
    // The same again is no harm.
    assert_eq!(
        f.ok(&["example", "quantum-2010.toml", "--out", "a/b"]),
        written
    );
}

#[test]
fn an_example_replaces_no_other_file() {
    let f = Folder::new();
    f.write("x/quantum-2010.fio", "[mine]\n");
    let done = f.run(&["example", "quantum-2010.toml", "--out", "x"]);
    assert_eq!(done.code, Some(2));
    assert_eq!(
        done.stderr,
        "blklab: x/quantum-2010.fio: exists and is another file\n"
    );
    assert_eq!(f.names("x"), ["quantum-2010.fio"]);
    assert_eq!(f.read("x/quantum-2010.fio"), "[mine]\n");
    let done = f.run(&["example", "quantum"]);
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.contains("no example is called 'quantum'"),
        "{}",
        done.stderr
    );
}

#[test]
fn completions_know_every_command_and_option() {
    let f = Folder::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = f.ok(&["completions", shell]);
        for name in commands(&f) {
            assert!(script.contains(&name), "{shell}: {name}");
        }
        assert!(script.contains("verify-digest"), "{shell}");
    }
    let script = f.ok(&["completions", "bash"]);
    f.write("blklab.bash", script);
    if blklab_testkit::has_program("bash") {
        // What a shell would offer after `blklab completions f`.
        let offered = f.shell(
            "bash -c '. ./blklab.bash; COMP_WORDS=(blklab completions f); COMP_CWORD=2; \
             _blklab blklab f completions; echo \"${COMPREPLY[@]}\"'",
        );
        assert_eq!(offered.stdout, "fish\n", "{}", offered.stderr);
    }
}

#[test]
fn manual_pages_come_from_the_command_line() {
    let f = Folder::new();
    f.ok(&["man", "--out", "man"]);
    let names = f.names("man");
    for name in commands(&f) {
        let page = format!("blklab-{name}.1");
        assert!(names.contains(&page), "{page} is missing of {names:?}");
    }
    assert!(
        names.contains(&"blklab-trace-convert.1".to_owned()),
        "{names:?}"
    );
    let page = f.read("man/blklab-run.1");
    for text in [
        ".TH blklab-run 1",
        "\\-\\-verify\\-digest",
        ".SH NOTES",
        ".SH EXAMPLES\n.nf\n",
        "blklab run job.fio \\-\\-repeat 5 \\-\\-seed 1",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    if blklab_testkit::has_program("groff") {
        for name in names {
            let done = f.shell(&format!("groff -k -man -ww -Tutf8 -z man/{name}"));
            assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{name}");
        }
    }
}
