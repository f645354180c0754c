// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings by release: what is listed, refused, and left out with a note.

use crate::support::{Folder, digest, root};

const SMALL: &[&str] = &["run", "job.fio", "--kernel"];

#[test]
fn a_release_lists_its_own_settings_with_its_defaults() {
    let f = Folder::new();
    let list = |kernel: &str| {
        let args = [
            "list",
            "tunables",
            "--kernel",
            kernel,
            "--output-format",
            "json",
        ];
        let entries: serde_json::Value = serde_json::from_str(&f.ok(&args)).expect("JSON");
        let entries = entries.as_array().expect("a list").clone();
        move |name: &str| {
            let all: Vec<_> = entries.iter().filter(|e| e["name"] == name).collect();
            assert!(all.len() <= 1, "{name} twice");
            let details = all.first()?["details"].as_array()?.clone();
            let default = details.iter().find(|d| d[0] == "default")?;
            Some(default[1].as_str()?.to_owned())
        }
    };
    let expected = |text: &str| Some(text.to_owned());
    for (kernel, dirty, background) in [
        ("2.6.16", "40", "10"),
        ("2.6.21", "40", "10"),
        ("2.6.22", "10", "5"),
        ("2.6.29", "10", "5"),
        ("2.6.30", "20", "10"),
        ("4.19", "20", "10"),
        ("6.18", "20", "10"),
    ] {
        let default = list(kernel);
        assert_eq!(default("machine/dirty_ratio"), expected(dirty), "{kernel}");
        assert_eq!(
            default("machine/dirty_background_ratio"),
            expected(background),
            "{kernel}"
        );
    }
    for (name, last_without, first, default) in [
        ("machine/dirty_bytes", "2.6.28", "2.6.29", "unset"),
        (
            "machine/dirty_background_bytes",
            "2.6.28",
            "2.6.29",
            "unset",
        ),
        ("queue/nomerges", "2.6.25", "2.6.26", "0"),
        ("queue/rotational", "2.6.27", "2.6.28", "1"),
        ("queue/iostats", "2.6.28", "2.6.29", "1"),
        ("queue/add_random", "2.6.35", "2.6.36", "1"),
        ("queue/write_cache", "4.6", "4.7", "1"),
        ("queue/wbt_lat_usec", "4.9", "4.10", "0"),
        ("mq-deadline/prio_aging_expire", "5.15", "5.16", "10000"),
    ] {
        assert_eq!(list(last_without)(name), None, "{name} on {last_without}");
        assert_eq!(list(first)(name), expected(default), "{name} on {first}");
    }
    assert_eq!(list("5.0")("queue/wbt_lat_usec"), expected("75000"));
    // Without a kernel each row says which releases it is about.
    let text = f.ok(&["list", "tunables", "machine/dirty_ratio"]);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "default 40; before 2.6.22",
        "default 10; from 2.6.22, before 2.6.30",
        "default 20; from 2.6.30",
    ] {
        assert!(flat.contains(part), "{text}\nlacks {part}");
    }
}

#[test]
fn a_setting_that_the_kernel_lacks_is_refused_with_its_releases() {
    let f = Folder::new();
    for (kernel, setting, exists) in [
        ("2.6.28", "dirty_bytes=16777216", "from 2.6.29 on"),
        (
            "2.6.28",
            "dirty_background_bytes=16777216",
            "from 2.6.29 on",
        ),
        ("2.6.27", "rotational=0", "from 2.6.28 on"),
        ("2.6.25", "nomerges=1", "from 2.6.26 on"),
        ("4.9", "wbt_lat_usec=0", "from 4.10 on"),
        ("4.6", "write_cache=write through", "from 4.7 on"),
        ("4.19", "switch_cost_ns=1", "from 5.0 on"),
        ("2.6.35", "add_random=0", "from 2.6.36 on"),
    ] {
        let done = f.run(&[SMALL, &[kernel, "--set", setting]].concat());
        assert_eq!(done.code, Some(2), "{setting}");
        let name = setting.split('=').next().expect("a name");
        let told = format!("{name}: kernel {kernel} does not have it; it exists {exists}\n");
        assert!(done.stderr.ends_with(&told), "{}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    }
    let done = f.run(&[SMALL, &["2.6.32", "--set", "target_latency=100"]].concat());
    assert!(
        done.stderr.contains("it exists from 3.4 on"),
        "{}",
        done.stderr
    );

    // In a file, with the place; and where the kernel comes from the command line.
    let file =
        |kernel: &str| format!("{kernel}job_file = 'job.fio'\n[vm]\ndirty_bytes = 16777216\n");
    f.write("old.toml", file("kernel = '2.6.28'\n"));
    f.write("any.toml", file(""));
    for args in [
        &["run", "old.toml"][..],
        &["run", "any.toml", "--kernel", "2.6.28"],
    ] {
        let done = f.run(args);
        assert_eq!(done.code, Some(2), "{args:?}");
        let told = "dirty_bytes: kernel 2.6.28 does not have it; it exists from 2.6.29 on";
        assert!(done.stderr.contains(told), "{}", done.stderr);
    }
    f.ok(&["run", "old.toml", "--kernel", "2.6.29"]);
    f.write(
        "queue.toml",
        "kernel = '4.9'\njob_file = 'job.fio'\n[queue]\nwbt_lat_usec = 1000\n",
    );
    let done = f.run(&["run", "queue.toml"]);
    assert!(
        done.stderr
            .contains("wbt_lat_usec: kernel 4.9 does not have it"),
        "{}",
        done.stderr
    );
}

#[test]
fn where_kernels_are_compared_those_without_a_setting_run_without_it() {
    let f = Folder::new();
    let note = "kernel 2.6.28 ran without dirty_bytes, which exists from 2.6.29 on";
    let flat = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let both = flat(f.ok(&[SMALL, &["2.6.28,2.6.33", "--set", "dirty_bytes=16777216"]].concat()));
    assert!(both.contains(note), "{both}");
    f.write(
        "any.toml",
        "job_file = 'job.fio'\n[vm]\ndirty_bytes = 16777216\n",
    );
    let both = flat(f.ok(&["run", "any.toml", "--kernel", "2.6.28,2.6.33"]));
    assert!(both.contains(note), "{both}");
}

#[test]
fn what_is_accepted_without_effect_says_so() {
    let f = Folder::new();
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = f.ok(&[SMALL, &["4.19"]].concat());
    for (setting, note) in [
        (
            "wbt_lat_usec=1000",
            "wbt_lat_usec makes no difference: write-back throttling is modelled from kernel 5.0 on",
        ),
        (
            "iostats=0",
            "queue: iostats makes no difference in the model",
        ),
    ] {
        let set = f.ok(&[SMALL, &["4.19", "--set", setting]].concat());
        assert!(flat(&set).contains(note), "{set}");
        assert_eq!(digest(&set), digest(&plain));
    }
}

#[test]
fn a_run_directory_of_an_old_kernel_runs_again() {
    let f = Folder::new();
    for (kernel, more) in [
        ("2.6.16", &["--device", "ssd-x25m"][..]),
        ("2.6.28", &[]),
        ("6.1", &["--set", "write_cache=write through"]),
    ] {
        let out = format!("run-{kernel}");
        let first = f.ok(&[SMALL, &[kernel, "--out", &out], more].concat());
        let again = f.ok(&["run", &format!("{out}/experiment.toml")]);
        assert_eq!(digest(&first), digest(&again), "{kernel}");
    }
}

/// The tables of the manual are those of the program; `UPDATE_GOLDEN=1` writes them.
#[test]
fn the_manual_has_every_setting() {
    let path = root().join("docs/experiments.md");
    let mut text = std::fs::read_to_string(&path).expect("the manual");
    for (owner, heading) in [
        ("queue", "Settings of the queue ("),
        ("machine", "Settings of the machine ("),
    ] {
        let table = blklab::list::settings_table(owner);
        let start = text.find(heading).expect("a heading");
        let start = start + text[start..].find("\n\n| ").expect("a table") + 2;
        let end = start + text[start..].find("\n\n").expect("the end of the table") + 1;
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            text.replace_range(start..end, &table);
            std::fs::write(&path, &text).expect("the manual can be written");
            continue;
        }
        assert!(
            text[start..end] == table,
            "docs/experiments.md is out of date: UPDATE_GOLDEN=1 writes it"
        );
    }
}

#[test]
fn values_are_taken_as_people_write_them() {
    let folder = Folder::new();
    let job =
        "[a]\nrw=randread\ndirect=1\nsize=4m\nnumber_ios=8\ncgroup=g\n[b]\nrw=read\nsize=4k\n";
    folder.write("j.fio", job);
    let same = |plain: [&str; 2], written: [&str; 2]| {
        let run = |more: [&str; 2]| {
            let arguments = ["run", "j.fio", "--sched", "mq-deadline", "--out"];
            let out = folder.run(&[&arguments[..], &["out"], &more[..]].concat());
            assert_eq!(out.code, Some(0), "{more:?}: {}", out.stderr);
            let text = folder.read("out/experiment.toml");
            std::fs::remove_dir_all(folder.path("out")).expect("it was made");
            text
        };
        assert_eq!(run(plain), run(written), "{written:?}");
    };
    for (plain, written) in [
        ("dirty_bytes=67108864", "dirty_bytes=64m"),
        ("read_expire=2000", "read_expire=2s"),
        ("max_sectors_kb=1024", "max_sectors_kb=1m"),
        ("wbt_lat_usec=2000", "wbt_lat_usec=2ms"),
        (
            "cgroup.g.io.max=wbps=104857600",
            "cgroup.g.io.max=wbps=100m",
        ),
    ] {
        same(["--set", plain], ["--set", written]);
    }
    same(["--kernel", "6.12"], ["--kernel", "v6.12"]);
    same(["--section", "a"], ["--section", "a"]);
    let both = folder.run(&["run", "j.fio", "--section", "a,b"]);
    assert!(
        both.stdout.contains("2 jobs") || both.stdout.contains("job b"),
        "{}",
        both.stdout
    );
    let typo = folder.run(&["run", "j.fio", "--section", "a,c"]);
    assert_eq!(typo.code, Some(2));
    assert!(
        typo.stderr.contains("no section is called 'c'"),
        "{}",
        typo.stderr
    );
}
