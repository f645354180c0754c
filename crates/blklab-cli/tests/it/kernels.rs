// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels by the names that `uname -r` prints.

use crate::support::{Folder, digest};
use blklab::run_directory::RunDir;

const EL8: &str = "4.18.0-425.el8";

#[test]
fn a_distributions_kernel_runs_as_its_mainline_release_and_says_so() {
    let f = Folder::new();
    let mainline = f.ok(&["run", "job.fio", "--kernel", "4.18"]);
    let text = f.ok(&["run", "job.fio", "--kernel", EL8, "--out", "out"]);
    assert_eq!(digest(&text), digest(&mainline));
    assert!(text.contains("kernel 4.18.0-425.el8"), "{text}");
    let lines: Vec<&str> = text.split_whitespace().collect();
    let note = "note: kernel 4.18.0-425.el8 is modelled as mainline 4.18: what its builder";
    assert_eq!(lines.join(" ").matches(note).count(), 1, "{text}");
    assert!(!mainline.contains("is modelled as mainline"), "{mainline}");

    let dir = RunDir::open(&f.path("out"), &blklab::targets::catalogue())
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(dir.record.kernel, EL8);
    assert_eq!(dir.experiment.kernel.to_string(), EL8);
    let again = f.ok(&["run", "out"]);
    assert_eq!(digest(&again), digest(&mainline));
    assert!(again.contains("kernel 4.18.0-425.el8"), "{again}");
    let info = f.ok(&["trace", "info", "out/events.blk"]);
    assert!(info.contains(EL8), "{info}");
}

#[test]
fn kernels_of_a_matrix_are_told_apart_by_their_names() {
    let f = Folder::new();
    let kernels = format!("4.18,{EL8},4.18.20");
    let table = f.ok(&["run", "job.fio", "--kernel", &kernels]);
    for label in ["v4.18 ", "v4.18.0-425.el8 ", "v4.18.20 "] {
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
    for bad in [
        "4.18.0 el8",
        "el8",
        "4.18.0-425,el8",
        "6.1.0-13\u{1b}[m",
        "4..18",
    ] {
        let done = f.run(&["run", "job.fio", "--kernel", bad]);
        assert_eq!(done.code, Some(2), "{bad}");
        assert_eq!(done.stderr.trim_end().lines().count(), 1, "{}", done.stderr);
        assert!(
            done.stderr.contains("is not a kernel version"),
            "{}",
            done.stderr
        );
    }
}
