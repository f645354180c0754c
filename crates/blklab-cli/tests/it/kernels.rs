// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels by the names that `uname -r` prints.

use crate::support::{Folder, digest};
use blklab::run_directory::RunDir;

const EL8: &str = "4.18.0-425.el8";
const FEDORA: &str = "6.6.13-200.fc39";

/// A text in one line of single blanks.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_kernel_of_others_runs_as_its_mainline_release_and_says_so() {
    let f = Folder::new();
    let mainline = f.ok(&["run", "job.fio", "--kernel", "6.6.13"]);
    let text = f.ok(&["run", "job.fio", "--kernel", FEDORA, "--out", "out"]);
    assert_eq!(digest(&text), digest(&mainline));
    assert!(text.contains("kernel 6.6.13-200.fc39"), "{text}");
    let note = "note: kernel 6.6.13-200.fc39 is modelled as mainline 6.6.13: what its builder";
    assert_eq!(one_line(&text).matches(note).count(), 1, "{text}");
    assert!(!mainline.contains("is modelled as mainline"), "{mainline}");

    let dir = RunDir::open(&f.path("out"), &blklab::targets::catalogue())
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(dir.record.kernel, FEDORA);
    assert_eq!(dir.experiment.kernel.to_string(), FEDORA);
    let again = f.ok(&["run", "out"]);
    assert_eq!(digest(&again), digest(&mainline));
    assert!(again.contains("kernel 6.6.13-200.fc39"), "{again}");
    let info = f.ok(&["trace", "info", "out/events.blk"]);
    assert!(info.contains(FEDORA), "{info}");
}

#[test]
fn a_distribution_sets_what_it_has_and_says_so() {
    let f = Folder::new();
    let by_hand = f.ok(&["run", "job.fio", "--kernel", "5.12", "--set", "hz=1000"]);
    for (name, file) in [("rhel8", "named"), ("rocky-8", "alias"), (EL8, "uname")] {
        let text = f.ok(&["run", "job.fio", "--kernel", name, "--out", file]);
        assert_eq!(digest(&text), digest(&by_hand), "{name}");
        let line = one_line(&text);
        assert!(
            line.contains("rhel8 sets hz=1000, scheduler=mq-deadline"),
            "{text}"
        );
        assert!(
            line.contains("is that of Red Hat Enterprise Linux 8, modelled as"),
            "{text}"
        );
        assert!(
            line.contains("block layer 5.12, page cache 5.12, filesystems 5.5"),
            "{text}"
        );
        assert!(line.contains("rhel8's installer makes xfs"), "{text}");
        let saved = f.read(&format!("{file}/experiment.toml"));
        let kept = if name == EL8 { EL8 } else { "rhel8" };
        assert!(saved.contains(&format!("kernel = \"{kept}\"")), "{saved}");
        assert!(saved.contains("hz = 1000"), "{saved}");
        assert!(saved.contains("scheduler = \"mq-deadline\""), "{saved}");
        let again = f.ok(&["run", file]);
        assert_eq!(digest(&again), digest(&by_hand), "{name}");
        assert!(one_line(&again).contains("rhel8 sets hz=1000"), "{again}");
    }
}

#[test]
fn what_the_user_says_goes_before_a_distribution() {
    let f = Folder::new();
    let on = |args: &[&str]| one_line(&f.ok(&[&["run", "job.fio", "--kernel"], args].concat()));
    let own = on(&["rhel8", "--set", "hz=250", "--sched", "none"]);
    assert!(
        own.contains("rhel8 has hz=1000: the experiment says 250"),
        "{own}"
    );
    assert!(
        own.contains("rhel8 has scheduler=mq-deadline: the experiment says none"),
        "{own}"
    );
    f.write(
        "e.toml",
        "kernel = 'rhel9'\nhz = 100\njob_file = 'job.fio'\n",
    );
    let file = one_line(&f.ok(&["run", "e.toml"]));
    assert!(
        file.contains("rhel9 has hz=1000: the experiment says 100"),
        "{file}"
    );
    let moved = one_line(&f.ok(&["run", "e.toml", "--kernel", "debian-12"]));
    assert!(
        moved.contains("debian-12 has hz=250: the experiment says 100"),
        "{moved}"
    );
}

#[test]
fn rules_of_udev_choose_the_scheduler_by_the_disk() {
    let f = Folder::new();
    for (device, scheduler) in [
        ("sata-7200-2008", "bfq"),
        ("sata-ssd", "mq-deadline"),
        ("nvme-consumer", "none"),
    ] {
        let text = f.ok(&["run", "job.fio", "--kernel", "sles-15", "--device", device]);
        let says = format!("scheduler={scheduler}");
        assert!(one_line(&text).contains(&says), "{device}: {text}");
    }
}

#[test]
fn a_kernel_newer_than_all_runs_as_the_newest() {
    let f = Folder::new();
    let newest = f.ok(&["run", "job.fio", "--kernel", "7.3"]);
    let text = f.ok(&["run", "job.fio", "--kernel", "7.4.0-rc3"]);
    assert_eq!(digest(&text), digest(&newest));
    assert!(
        one_line(&text).contains("kernel 7.4.0-rc3 is newer than 7.3"),
        "{text}"
    );
}

#[test]
fn a_wrong_name_is_refused_with_the_nearest() {
    let f = Folder::new();
    for (wrong, near) in [("rhl8", "rhel8"), ("debain12", "debian-12")] {
        let refused = f.run(&["run", "job.fio", "--kernel", wrong]);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        let says = format!("did you mean '{near}'?");
        assert!(refused.stderr.contains(&says), "{}", refused.stderr);
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    }
}

#[test]
fn the_list_says_how_each_is_known() {
    let f = Folder::new();
    let all = f.ok(&["list", "kernels"]);
    for word in [
        "(measured)",
        "(from source)",
        "(interpolated)",
        "rhel8",
        "debian-13",
        "(assumed)",
    ] {
        assert!(all.contains(word), "{word}: {all}");
    }
    let rhel8 = one_line(&f.ok(&["list", "kernels", "rhel8"]));
    for text in [
        "from build 348 as mainline 5.12 (documented: source of 4.18.0-348.2.1.el8_5",
        "hz 1000 (documented: kernel-x86_64.config",
        "preemption voluntary (documented",
    ] {
        assert!(rhel8.contains(text), "{text}: {rhel8}");
    }
    let between = one_line(&f.ok(&["list", "kernels", "6.5"]));
    assert!(
        between.contains("interpolated: as 6.1 with changes on the way to 6.12"),
        "{between}"
    );
    let uname = one_line(&f.ok(&["list", "kernels", "5.14.0-427.13.1.el9_4.x86_64"]));
    assert!(uname.contains("is rhel9"), "{uname}");
    let json = f.ok(&["list", "kernels", "rhel9", "--output-format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json[0]["name"], "rhel9");
    let wrong = f.run(&["list", "kernels", "rhel99"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
}

#[test]
fn kernels_of_a_matrix_are_told_apart_by_their_names() {
    let f = Folder::new();
    let kernels = format!("6.6,{FEDORA},rhel8,6.6.20");
    let table = f.ok(&["run", "job.fio", "--kernel", &kernels]);
    for label in ["v6.6 ", "v6.6.13-200.fc39 ", "\nrhel8 ", "v6.6.20 "] {
        assert!(table.contains(label), "{label}: {table}");
    }
    assert_eq!(table.matches("is modelled as mainline").count(), 1);
}

#[test]
fn a_file_names_a_kernel_and_its_variants() {
    let f = Folder::new();
    f.write(
        "e.toml",
        "kernel = '5.10.0-28-cloud-amd64'\njob_file = 'job.fio'\n\
         [[variant]]\nname = 'old'\nkernel = '2.6.32-754.el6.x86_64'\n",
    );
    let text = f.ok(&["run", "e.toml"]);
    assert!(
        text.contains("2.6.32-754.el6.x86_64 is modelled as mainline 2.6.32:"),
        "{text}"
    );
    let listed = f.ok(&[
        "list",
        "schedulers",
        "--kernel",
        "5.14.0-362.24.1.el9_3.x86_64",
    ]);
    assert!(listed.contains("bfq"), "{listed}");
}

#[test]
fn changes_of_a_series_up_to_a_point_release() {
    let f = Folder::new();
    let changed = |kernel: &str| f.ok(&["list", "changes", kernel]);
    let point = "2.6.33.1";
    assert!(changed("2.6.33").contains(point));
    assert!(changed("2.6.33.7").contains(point));
    assert!(changed("6.12.117+deb12-amd64").contains("every bio is plugged"));
    let none = f.run(&["list", "changes", "6.4.2"]);
    assert_eq!(none.code, Some(2), "{}", none.stderr);
}

#[test]
fn point_releases_are_within_the_bounds_of_their_series() {
    let f = Folder::new();
    f.write("files.fio", "[a]\nrw=write\nbs=64k\nsize=1m\nend_fsync=1\n");
    let newest = f.ok(&["run", "files.fio", "--kernel", "6.18"]);
    let point = f.ok(&["run", "files.fio", "--kernel", "6.18.44-fc-v669"]);
    assert_eq!(digest(&point), digest(&newest));
    let array = |kernel: &str| f.ok(&["run", "files.fio", "--md", "raid1:2", "--kernel", kernel]);
    assert!(!array("2.6.28.10").contains("is modelled as that of"));
    assert!(array("2.6.32.71").contains("md of kernel 2.6.32.71 is modelled as that of 2.6.28"));
}

#[test]
fn what_names_no_kernel_is_refused_in_a_line() {
    let f = Folder::new();
    for bad in ["4.18.0 el8", "4.18.0-425,xl8", "6.1.0-13\u{1b}[m", "4..18"] {
        let done = f.run(&["run", "job.fio", "--kernel", bad]);
        assert_eq!(done.code, Some(2), "{bad}");
        assert_eq!(done.stderr.trim_end().lines().count(), 1, "{}", done.stderr);
        assert!(done.stderr.contains("is no kernel; "), "{}", done.stderr);
    }
}
