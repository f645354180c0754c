// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every row of the table: set, read from files, saved, listed, refused.

use blklab_experiment::settings::{Home, Setting, all, cgroup_files, find};
use blklab_experiment::{Experiment, FilesystemSpec, Source, Workload, parse};
use blklab_kernel::{KernelVersion, PRESETS, Tunable, releases};
use blklab_sched::Schedulers;
use blklab_sim::{catalogue, device_rows, filesystem_rows, scheduler_rows};
use blklab_types::Error;

fn on(kernel: KernelVersion) -> Experiment {
    let workload = Workload::Fio {
        name: "a.fio".to_owned(),
        text: "[a]\nsize=1m\n".to_owned(),
    };
    let mut e = Experiment::new("a", workload);
    e.choose_kernel(kernel, &catalogue());
    e
}

/// Values that a row takes, as they are written: all where there are few.
fn values(s: &Setting, row: &Tunable) -> Vec<String> {
    let (low, high) = row.range;
    match s.name() {
        "fio" => vec!["1.24".into(), "3.33".into()],
        "filesystem" => vec!["ext3:data=journal".into(), "extents".into()],
        "memory" => vec![format!("{low}k"), format!("{high}k")],
        _ => match s.words() {
            words if words.is_empty() => vec![high.to_string(), low.to_string()],
            words => words,
        },
    }
}

fn read(text: &str) -> Experiment {
    let file = |name: &str| Ok((name.to_owned(), "[a]\nsize=1m\n".to_owned()));
    parse("e.toml", Source::Toml, text, &file, &catalogue())
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// What is set is what a saved experiment says, and what comes back from it.
#[test]
fn every_setting_survives_being_saved() {
    for kernel in PRESETS.iter().map(|p| p.version) {
        for s in all() {
            let Some(row) = s.row_in(kernel) else {
                continue;
            };
            // These name a folder of the machine, kinds of devices, and changes of releases.
            let has_values = !["kernel_source", "dm", "without"].contains(&s.name());
            for value in values(s, row).into_iter().filter(|_| has_values) {
                let mut e = on(kernel);
                e.set(s.name(), &value, &catalogue())
                    .unwrap_or_else(|err| panic!("{kernel} {}={value}: {err}", s.name()));
                let again = read(&e.to_toml("a.fio", &catalogue()).expect("it can be written"));
                let of = format!("{}={value} on {kernel}", s.name());
                let spoken =
                    |e: &Experiment| e.to_toml("a.fio", &catalogue()).expect("it can be written");
                assert_eq!(spoken(&again), spoken(&e), "{of}");
                if s.home == Home::Machine {
                    assert_eq!(s.stored(&again), s.stored(&e), "{of}");
                }
            }
        }
    }
}

/// The same for what schedulers, devices, filesystems and control groups have.
#[test]
fn what_models_and_groups_have_survives_being_saved() {
    let spoken = |e: &Experiment| e.to_toml("a.fio", &catalogue()).expect("it can be written");
    let check = |e: &mut Experiment, key: &str, value: &str| {
        let before = spoken(e);
        e.set(key, value, &catalogue())
            .unwrap_or_else(|err| panic!("{key}={value}: {err}"));
        let after = spoken(e);
        assert_ne!(after, before, "{key}={value} changes nothing");
        assert_eq!(spoken(&read(&after)), after, "{key}={value}");
        assert!(e.can_set(key, &catalogue()), "{key}");
    };
    for kernel in PRESETS.iter().map(|p| p.version) {
        for scheduler in Schedulers::default().in_release(kernel) {
            let mut e = on(kernel);
            e.choose_scheduler(scheduler.name, &catalogue())
                .expect("a scheduler");
            let rows = scheduler_rows(scheduler);
            for s in rows.iter().filter(|s| s.row_in(kernel).is_some()) {
                check(&mut e, s.name(), "3");
            }
        }
    }
    let newest = releases().last().expect("a release");
    for kind in blklab_fs::ALL {
        let mut e = on(newest);
        e.choose_filesystem(kind.name, &catalogue())
            .expect("a filesystem");
        for s in filesystem_rows(kind) {
            let row = s.row_in(newest).expect("it has all options");
            let key = format!("filesystem.{}", s.name());
            for value in values(&s, row) {
                check(&mut e, &key, &value);
            }
            let err = e.set(&key, "a lot", &catalogue()).unwrap_err();
            assert!(err.what.contains("expected "), "{err}");
            assert!(!s.rows()[0].help.is_empty() && !s.default_doc().is_empty());
        }
    }
    for device in blklab_device::ALL {
        let mut e = on(newest);
        e.device.name = device.name.to_owned();
        for s in device_rows(device) {
            // What it means is for the device to say.
            check(&mut e, &format!("device.{}", s.name()), "777");
        }
    }
    for kernel in ["2.6.33", "3.9", "6.1"] {
        let kernel = kernel.parse().expect("a release");
        // Those of the root group alone are refused of any other.
        for s in cgroup_files().filter(|s| !s.name().starts_with("io.cost.")) {
            let mut e = on(kernel);
            let key = format!("cgroup.a.{}", s.name());
            let value = match s.name() {
                "io.latency" => "target=500",
                "io.cost.qos" => "enable=1",
                "io.prio.class" => "idle",
                name if name.starts_with("blkio.") => "500",
                _ if s.is_text() => "rbps=5",
                _ => "500",
            };
            assert_eq!(
                e.can_set(&key, &catalogue()),
                s.row_in(kernel).is_some(),
                "{key}"
            );
            check_group(&mut e, &key, value, s.row_in(kernel).is_some());
        }
    }
}

fn check_group(e: &mut Experiment, key: &str, value: &str, exists: bool) {
    e.set(key, value, &catalogue())
        .expect("a file that is modelled");
    let checked = e.check(&catalogue());
    // Real kernels have more files than the models.
    let is_known = |e: Error| e.what.contains("the target kernel has it");
    let is_taken = checked.map_or_else(is_known, |()| true);
    assert_eq!(is_taken, exists, "{key}");
    let text = e.to_toml("a.fio", &catalogue()).expect("it can be written");
    assert_eq!(read(&text).cgroups, e.cgroups, "{key}");
}

#[test]
fn parameters_and_options_are_named_with_their_owner() {
    let mut e = on(releases().last().expect("a release"));
    e.set("device.rpm", "5400", &catalogue())
        .expect("a parameter");
    e.set("device.queue_depth", "3", &catalogue())
        .expect("the driver's");
    assert_eq!(e.device.to_string(), "sata-7200-2008,rpm=5400");
    assert_eq!(e.queue_depth(&catalogue()), Ok(3));
    let refused = e.set("device.rmp", "5400", &catalogue()).unwrap_err();
    assert!(
        refused
            .what
            .starts_with("no parameter of sata-7200-2008 is called 'rmp'; did you mean 'rpm'?"),
        "{refused}"
    );
    e.set("filesystem", "ext3", &catalogue())
        .expect("a filesystem");
    e.set("filesystem.commit_s", "30", &catalogue())
        .expect("an option");
    e.set("filesystem.commit_s", "60", &catalogue())
        .expect("an option");
    assert_eq!(e.filesystem.to_string(), "ext3:commit_s=60");
    let refused = e.set("filesystem.commit_s", "0", &catalogue()).unwrap_err();
    assert_eq!(
        refused.what,
        "commit_s=0: expected a number from 1 to 3600 s"
    );
    assert_eq!(&*refused.key, "filesystem.commit_s");
}

#[test]
fn files_and_options_read_the_same_and_refuse_the_same() {
    let newest = releases().last().expect("a release");
    for s in all().filter(|s| matches!(s.home, Home::Queue | Home::Machine)) {
        let Some(row) = s.row_in(newest) else {
            continue;
        };
        let table = s.home.table();
        let text =
            |value: &str| format!("job_file = 'a.fio'\n[{table}]\n{} = '{value}'\n", s.name());
        for value in values(s, row) {
            let mut e = on(newest);
            e.set(s.name(), &value, &catalogue()).expect("a value");
            assert_eq!(s.stored(&read(&text(&value))), s.stored(&e), "{}", s.name());
        }
        let bad = "x";
        let told = on(newest).set(s.name(), bad, &catalogue()).unwrap_err();
        let file = |name: &str| Ok((name.to_owned(), String::new()));
        let in_file = parse("e.toml", Source::Toml, &text(bad), &file, &catalogue()).unwrap_err();
        assert_eq!(told.what, in_file.what);
        assert_eq!(in_file.line, Some(3), "{in_file}");
    }
}

/// What a file says is tested again when its kernel is known.
#[test]
fn a_value_of_later_releases_is_refused_by_earlier_ones() {
    let with = |kernel: &str| {
        let text = format!("kernel = '{kernel}'\njob_file = 'a.fio'\n[queue]\nnomerges = 2\n");
        read(&text).check(&catalogue())
    };
    assert_eq!(with("2.6.34"), Ok(()));
    assert_eq!(
        with("2.6.33").unwrap_err().to_string(),
        "nomerges=2: expected a number from 0 to 1 in kernel 2.6.33"
    );
}

#[test]
fn a_partition_from_sector_0_on_is_the_whole_disk() {
    let mut e = on("4.19".parse().expect("a release"));
    e.set("partition_start", "0", &catalogue())
        .expect("a value");
    assert_eq!(
        blklab_sim::queue_limits(&e)
            .expect("limits")
            .partition_start,
        None
    );
}

#[test]
fn the_values_of_nomerges_are_those_of_the_queue() {
    for kernel in releases().filter(|v| v.has_single_queue()) {
        let row = find("nomerges").and_then(|s| s.row_in(kernel));
        let of_queue = blklab_block::sq::Features::of(kernel).nomerges_max;
        assert_eq!(
            row.map_or(0, |t| t.range.1),
            i64::from(of_queue),
            "{kernel}"
        );
    }
}

#[test]
fn names_and_values_of_filesystems_are_checked() {
    let spec = FilesystemSpec::parse("ext3:data=writeback:commit_s=30", &catalogue()).unwrap();
    assert_eq!(spec.option("data"), Some("writeback"));
    assert_eq!(spec.number("commit_s"), Some(30));
    let fails = |text: &str, with: &str| {
        let e = FilesystemSpec::parse(text, &catalogue())
            .unwrap_err()
            .to_string();
        assert!(e.contains(with), "{e}");
    };
    fails("ext5", "did you mean 'ext2'? valid: ext2, ext3, ext4");
    fails(
        "extents:data=ordered",
        "no option of extents is called 'data'; valid: parts",
    );
    fails("ext2:data=ordered", "no option of ext2 is called 'data'");
    fails(
        "ext3:data=both",
        "expected one of ordered, writeback, journal",
    );
    fails("ext3:commit_s=0", "expected a number from 1 to 3600");
    fails("ext3:inode_ratio=512", "expected a number from 1024");
    fails("ext3:data", "expected key=value");
}
