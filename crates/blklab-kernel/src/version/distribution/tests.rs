// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use std::collections::BTreeSet;

fn kernel(name: &str) -> KernelVersion {
    name.parse().expect(name)
}

fn distribution(name: &str) -> Option<&'static str> {
    Some(kernel(name).distribution()?.name)
}

#[test]
fn names_are_unique_and_rows_are_complete() {
    let mut seen = BTreeSet::new();
    for d in DISTRIBUTIONS {
        for name in d.names() {
            assert!(seen.insert(name.replace('-', "")), "{name} names two");
            assert_eq!(distribution(name), Some(d.name));
        }
        assert_eq!(distribution(d.example), Some(d.name), "{}", d.example);
        assert!(d.levels.windows(2).all(|w| w[0].build < w[1].build));
        let facts = [
            (d.hz.source, d.hz.basis),
            (d.preemption.source, d.preemption.basis),
            (d.schedulers.source, d.schedulers.basis),
            (d.filesystem.source, d.filesystem.basis),
        ];
        assert!(facts.iter().all(|(source, _)| !source.is_empty()));
        assert!(d.release.series() == d.release, "{}", d.name);
        assert!(kernel(d.name).is_modelled(), "{}", d.name);
    }
}

#[test]
fn what_uname_prints_is_told_to_its_distribution() {
    for (name, whose) in [
        ("6.1.0-13-amd64", Some("debian-12")),
        ("6.1.0-13-cloud-arm64", Some("debian-12")),
        ("5.10.0-28-686-pae", Some("debian-11")),
        ("6.12.117+deb12-amd64", Some("debian-13")),
        ("6.12.41+deb13-amd64", Some("debian-13")),
        ("6.8.0-45-generic", Some("ubuntu-24.04")),
        ("5.15.0-91-generic", Some("ubuntu-22.04")),
        ("4.18.0-425.el8.x86_64", Some("rhel8")),
        ("4.18.0-425.el8", Some("rhel8")),
        ("5.14.0-427.13.1.el9_4.x86_64", Some("rhel9")),
        ("6.12.0-55.el10", Some("rhel10")),
        ("5.14.21-150500.55-default", Some("sles-15-sp5")),
        ("6.4.0-150600.21-default", Some("sles-15-sp6")),
        ("6.1.102-111.182.amzn2023.x86_64", Some("amazon-2023")),
        // Others are what their numbers say.
        ("5.10.220-209.869.amzn2.x86_64", None),
        ("5.15.0-200.131.27.el8uek.x86_64", None),
        ("5.4.17-2136.315.5.el8uek.x86_64", None),
        ("5.10.43-android12-9-00001-ga123456", None),
        ("5.15.153.1-microsoft-standard-WSL2", None),
        ("6.8.12-4-pve", None),
        ("6.10.3-arch1-1", None),
        ("6.6.13-200.fc39.x86_64", None),
        ("6.5.0-41-generic", None),
        ("5.14.21-150400.24.55-default", None),
        ("3.10.0-1160.el7.x86_64", None),
        ("6.8.0-45-lowlatency", None),
    ] {
        assert_eq!(distribution(name), whose, "{name}");
        assert_eq!(kernel(name).to_string(), name);
        assert!(kernel(name).note().is_some(), "{name} has no note");
    }
}

#[test]
fn a_build_goes_by_what_it_had() {
    for (name, release) in [
        ("rhel8", "5.12"),
        ("4.18.0-80.el8.x86_64", "5.0"),
        ("4.18.0-147.3.1.el8_1.x86_64", "5.0"),
        ("4.18.0-305.el8.x86_64", "5.8"),
        ("4.18.0-553.el8_10.x86_64", "5.12"),
        ("5.14.0-427.13.1.el9_4.x86_64", "5.16"),
        ("5.14.0-570.el9.x86_64", "6.8"),
        ("rhel9", "6.8"),
        // Their names count the fixes of stable kernels.
        ("6.12.41+deb13-amd64", "6.12.41"),
        ("6.1.102-111.182.amzn2023.x86_64", "6.1.102"),
        ("5.14.21-150500.55-default", "5.14.21"),
        ("debian-12", "6.1"),
        ("debian12", "6.1"),
    ] {
        assert_eq!(kernel(name).release().to_string(), release, "{name}");
    }
    assert!(!kernel("rhel8").has_single_queue());
    assert_eq!(kernel("rhel8").named().to_string(), "4.18");
    assert_eq!(kernel("6.12.41+deb13-amd64").named().to_string(), "6.12.41");
    assert_eq!(kernel("ROCKY9").to_string(), "rhel9");
}

#[test]
fn parts_go_by_their_own_release() {
    let rhel8 = kernel("rhel8");
    for (part, release) in [
        (Part::Block, "5.12"),
        (Part::PageCache, "5.12"),
        (Part::Filesystems, "5.5"),
        (Part::Processor, "4.18"),
    ] {
        assert_eq!(rhel8.in_part(part).to_string(), release, "{part:?}");
    }
    let trixie = kernel("6.12.41+deb13-amd64");
    assert_eq!(trixie.in_part(Part::PageCache).to_string(), "6.12.41");
    let mainline = kernel("6.12");
    assert_eq!(mainline.in_part(Part::Filesystems), mainline);
    let note = rhel8.note().expect("it has one");
    assert!(note.contains("filesystems 5.5"), "{note}");
}
