// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run directory runs again, bit for bit: from another folder, and without
//! the files and variables that the run came from.

use crate::support::{Folder, digest, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs with a run directory, then runs each run directory again from `/` with
/// an empty environment, after everything else is gone.
fn runs_again(f: &Folder, args: &[&str], environment: &[(&str, &str)]) {
    let all = [&["run"], args, &["--out", "out"]].concat();
    let mut first = f.command(&all);
    first.envs(environment.iter().copied());
    let first = first.output().expect("blklab starts");
    let said = String::from_utf8_lossy(&first.stderr);
    assert!(first.status.success(), "{args:?}: {said}");
    let kept = tempfile::tempdir().expect("a temporary folder");
    let out = kept.path().join("moved");
    std::fs::rename(f.path("out"), &out).expect("the run directory moves");
    for name in f.names(".") {
        let path = f.path(&name);
        let is_dir = path.symlink_metadata().expect("it is there").is_dir();
        if is_dir {
            std::fs::remove_dir_all(&path).expect("a folder");
        } else {
            std::fs::remove_file(&path).expect("a file");
        }
    }
    let dirs = run_directories(&out);
    assert!(!dirs.is_empty(), "{args:?}");
    for dir in dirs {
        let recorded = std::fs::read_to_string(dir.join("result.json")).expect("a result");
        let (_, recorded) = recorded
            .split_once("\"digest\": \"")
            .expect("with a digest");
        let again = Command::new(env!("CARGO_BIN_EXE_blklab"))
            .arg("run")
            .arg(dir.join("experiment.toml"))
            .env_clear()
            .current_dir("/")
            .output()
            .expect("blklab starts");
        let said = String::from_utf8_lossy(&again.stderr);
        assert!(
            again.status.success(),
            "{args:?}, {}: {said}",
            dir.display()
        );
        let text = String::from_utf8(again.stdout).expect("text");
        assert_eq!(
            digest(&text),
            &recorded[..16],
            "{args:?}, {}",
            dir.display()
        );
    }
}

/// Folders with an experiment, at or below `dir`.
fn run_directories(dir: &Path) -> Vec<PathBuf> {
    if dir.join("experiment.toml").is_file() {
        return vec![dir.to_path_buf()];
    }
    let entries = std::fs::read_dir(dir).expect("a folder");
    let below = entries.map(|e| e.expect("an entry").path());
    below
        .filter(|p| p.is_dir())
        .flat_map(|p| run_directories(&p))
        .collect()
}

/// Sizes and times of a job file or experiment made small.
fn shrink(text: &str) -> String {
    let small = |line: &str| {
        let key = line.split(['=', ' ']).next().unwrap_or_default();
        match key {
            "size" | "filesize" | "io_size" => format!("{key}=1m"),
            "runtime" => "runtime=50ms".to_owned(),
            "ramp_time" => "ramp_time=10ms".to_owned(),
            "startdelay" => "startdelay=0".to_owned(),
            "loops" => "loops=1".to_owned(),
            _ => line.to_owned(),
        }
    };
    text.lines().map(|line| small(line) + "\n").collect()
}

/// Names of the experiments and job files of a folder, sorted.
fn names_of_jobs(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let names = entries.map(|e| e.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.into_string().expect("plain characters"))
        .filter(|name| name.ends_with(".toml") || name.ends_with(".fio"))
        .collect();
    names.sort();
    names
}

/// Copies the experiments and job files of a folder to one below `f`, with
/// small sizes.
fn copy_small(from: &Path, f: &Folder, below: &str) {
    for name in names_of_jobs(from) {
        let text = std::fs::read_to_string(from.join(&name)).expect("a text");
        f.write(&format!("{below}/{name}"), shrink(&text));
    }
}

#[test]
fn every_example() {
    let examples = root().join("examples");
    let names = names_of_jobs(&examples);
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        let f = Folder::new();
        copy_small(&examples, &f, ".");
        runs_again(&f, &[&name], &[]);
    }
}

#[test]
fn every_study() {
    let studies = root().join("crates/blklab-fidelity/studies");
    let mut tried = 0;
    for entry in std::fs::read_dir(&studies).expect("a folder") {
        let folder = entry.expect("an entry").path();
        if !folder.is_dir() {
            continue;
        }
        let experiments = names_of_jobs(&folder)
            .into_iter()
            .filter(|name| name.ends_with(".toml"))
            .filter(|name| !["study.toml", "testbeds.toml", "varies.toml"].contains(&&**name));
        for name in experiments {
            let f = Folder::new();
            for shared in ["ltt-2009-ssh", "ltt-2009-ls", "cfq-quantum-2010"] {
                copy_small(&studies.join(shared), &f, shared);
            }
            copy_small(&folder, &f, "study");
            let name = &format!("study/{name}");
            // Scenarios have their sizes in a table, and defaults that are large.
            if f.read(name).contains("scenario") {
                continue;
            }
            runs_again(&f, &[name], &[]);
            tried += 1;
        }
    }
    assert!(tried >= 5, "{tried} experiments of studies");
}

#[test]
fn every_scenario() {
    let small: &[&[&str]] = &[
        &["dd", "--set", "size=4m"],
        &["dd+ls", "--set", "size=4m"],
        &["dd+ssh", "--set", "size=4m", "--set", "readers=3"],
        &["dd+cat", "--set", "size=4m"],
        &["pvfs-bench", "--set", "size=4m"],
        &["aio-batch", "--set", "size=4m"],
        &[
            "compilebench",
            "--fs",
            "ext3",
            "--set",
            "initial=1",
            "--set",
            "runs=0",
        ],
    ];
    let f = Folder::new();
    let listed = f.ok(&["list", "scenarios", "--output-format", "json"]);
    assert_eq!(listed.matches("\"summary\"").count(), small.len());
    for args in small {
        let name = args[0];
        assert!(listed.contains(&format!("\"{name}\"")), "{name}");
        let f = Folder::new();
        // Parameters that a scenario does not have are not there to be small.
        let details = f.ok(&["list", "scenarios", name]);
        let mut own = vec![name];
        for pair in args[1..].chunks(2) {
            let key = pair[1].split('=').next().unwrap_or_default();
            if pair[0] != "--set" || details.contains(&format!("  {key} = ")) {
                own.extend(pair);
            }
        }
        runs_again(&f, &own, &[]);
    }
}

#[test]
fn measured_cases() {
    for folder in ["testdata/fio-6.1/cases", "testdata/legacy/cases"] {
        let folder = root().join(folder);
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let name = entry.expect("an entry").file_name();
            let text = std::fs::read_to_string(folder.join(&name)).expect("a text");
            let name = name.to_str().expect("plain characters");
            let f = Folder::new();
            f.write(name, shrink(&text));
            runs_again(&f, &[name], &[]);
        }
    }
}

/// Included files, variables, words, comments, chosen sections.
#[test]
fn job_files_that_refer_to_others() {
    let f = Folder::new();
    f.write(
        "jobs/common.inc",
        "direct=1 ; no cache\n# more\ninclude deep/more ; x\n",
    );
    f.write(
        "jobs/deep/more",
        "size=${SIZE} # of each\ninclude jobs/last\n",
    );
    f.write("jobs/last", "bs=2*$pagesize\n");
    f.write(
        "jobs/a.fio",
        "[global]\ninclude common.inc\n[one]\nrw=${RW}\nfilename=${DIR}/file\n\
         [two]\nrw=randread\nnrfiles=2\n[gone]\ninclude no/such/file\n",
    );
    let set = [("SIZE", "256k"), ("RW", "randwrite"), ("DIR", "/mnt/x y")];
    let args = ["jobs/a.fio", "--section", "one", "--section", "two"];
    runs_again(&f, &args, &set);

    // The same job named by an experiment file.
    let f = Folder::new();
    f.write("jobs/common.inc", "direct=1\n");
    f.write(
        "jobs/a.fio",
        "[global]\ninclude common.inc\n[one]\nrw=read\nsize=${SIZE}\n",
    );
    f.write("e/a.toml", "job_file = '../jobs/a.fio'\nid = 'x'\n");
    let matrix = ["e/a.toml", "--sched", "bfq,kyber", "--repeat", "2"];
    runs_again(&f, &matrix, &[("SIZE", "128k")]);
}

/// What no job file can hold is said before the run.
#[test]
fn a_variable_that_no_job_file_can_hold() {
    let f = Folder::new();
    f.write("v.fio", "[a]\nsize=64k\nfilename=${NAME}\n");
    let mut command = f.command(&["run", "v.fio", "--out", "out"]);
    let output = command.env("NAME", "a;b").output().expect("blklab starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("v.fio:3: 'filename=a;b' cannot be written"),
        "{said}"
    );
    assert_eq!(f.names("."), ["job.fio", "v.fio"]);
}

/// A disk that DiskSim's files describe, named from the working folder and
/// from an experiment file.
#[test]
fn devices_described_in_files() {
    let disk = |f: &Folder, folder: &str| {
        for end in ["diskspecs", "model", "parv", "seek"] {
            let name = format!("atlas10k.{end}");
            let text = std::fs::read(root().join("testdata/device/disksim").join(&name));
            f.write(
                &format!("{folder}/{name}"),
                text.expect("a part of the disk"),
            );
        }
    };
    let f = Folder::new();
    disk(&f, "disks");
    let device = "disksim,file=disks/atlas10k.diskspecs";
    runs_again(&f, &["job.fio", "--device", device], &[]);

    let f = Folder::new();
    disk(&f, "disks");
    f.write(
        "e/a.toml",
        "job_file = '../job.fio'\n[device]\nname = 'disksim'\n\
         file = '../disks/atlas10k.diskspecs'\n",
    );
    runs_again(&f, &["e/a.toml"], &[]);
}

/// A run directory replaces only another one, and never what it is made from.
#[test]
fn a_run_directory_replaces_only_another() {
    let f = Folder::new();
    f.ok(&["run", "job.fio", "--out", "out"]);
    f.ok(&["run", "job.fio", "--out", "out", "--sched", "bfq"]);
    let fails = |args: &[&str], expected: &str| {
        let done = f.run(args);
        assert_eq!(done.code, Some(2), "{args:?}");
        assert!(done.stderr.contains(expected), "{args:?}: {}", done.stderr);
    };
    fails(
        &["run", "job.fio", "--out", "."],
        "--out: ./job.fio exists, and is not of a run directory",
    );
    assert_eq!(f.read("job.fio"), crate::support::JOB);
    fails(
        &["run", "out/experiment.toml", "--out", "out"],
        "--out: out/job.fio would replace out/job.fio, which this command reads",
    );
    f.write("mine/result.json", "{}");
    fails(
        &["run", "job.fio", "--out", "mine"],
        "mine/result.json exists",
    );
    assert_eq!(f.names("mine"), ["result.json"]);
}
