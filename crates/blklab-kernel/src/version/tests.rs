// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn releases_go_up_and_the_single_queue_path_ends_with_4_20() {
    let all: Vec<KernelVersion> = releases().collect();
    assert!(all.is_sorted());
    let ends = |v: &[KernelVersion]| (v[0].to_string(), v[v.len() - 1].to_string());
    assert_eq!(ends(&all), ("2.6.16".to_owned(), "7.3".to_owned()));
    let old: Vec<KernelVersion> = single_queue_releases().collect();
    assert_eq!(ends(&old), ("2.6.16".to_owned(), "4.20".to_owned()));
    assert_eq!(all.len() - old.len(), 20 + 20 + 4);
}

#[test]
fn is_from_is_the_order_of_releases() {
    let points = ["2.6.28.10", "3.0.101", "6.12.117"].map(KernelVersion::row);
    let all: Vec<KernelVersion> = releases().chain(points).collect();
    for v in &all {
        for other in &all {
            assert_eq!(v.is_from(*other), v >= other, "{v} from {other}");
        }
    }
}

#[test]
fn a_change_is_in_its_release_and_in_the_point_releases_that_have_it() {
    let stable = ["6.1.55", "6.5.5"].map(KernelVersion::row);
    let has = |text: &str| {
        let kernel: KernelVersion = text.parse().expect("a version");
        kernel.has_change(KernelVersion::new(6, 6), &stable)
    };
    for with in [
        "6.1.55",
        "6.1.112",
        "6.5.13",
        "6.6",
        "6.6.1",
        "6.7",
        "6.1.55-1.el9",
    ] {
        assert!(has(with), "{with}");
    }
    for without in [
        "6.0",
        "6.1",
        "6.1.54",
        "6.1.0-13-amd64",
        "6.2",
        "6.4.16",
        "6.5.4",
    ] {
        assert!(!has(without), "{without}");
    }
}

#[test]
fn a_row_names_every_release_as_it_is_printed() {
    for v in releases() {
        assert_eq!(KernelVersion::row(&v.to_string()), v);
    }
    assert_eq!(releases().last(), Some(KernelVersion::NEWEST));
}

#[test]
fn a_row_names_a_point_release() {
    assert_eq!(KernelVersion::row("2.6.33.1").point(), 1);
    let v = KernelVersion::row("6.12.117");
    assert_eq!((v.numbers(), v.point()), ([6, 12, 0], 117));
    assert_eq!(v.to_string(), "6.12.117");
}

#[test]
#[should_panic(expected = "is written like")]
fn a_row_with_the_name_of_a_distribution_is_refused() {
    KernelVersion::row("4.18.0-425.el8");
}

#[test]
fn versions_parse_order_and_print() {
    let v = |s: &str| s.parse::<KernelVersion>().expect(s);
    assert!(v("2.6.39") < v("3.0"));
    assert!(v("2.6.28") < v("2.6.28.10") && v("2.6.28.10") < v("2.6.29"));
    assert!(v("6.12.9") < v("6.12.10") && v("6.12.117") < v("6.13"));
    assert_eq!(v("6.12.0"), v("6.12"));
    assert_eq!(v("6.12.117").series(), v("6.12"));
    for bad in [
        "",
        "2",
        "2.6",
        "4.x",
        "4.1.2.3",
        "2.6.1.2.3",
        "6.1 x",
        "1.2.13",
    ] {
        let error = bad.parse::<KernelVersion>().expect_err(bad).to_string();
        assert!(error.contains("is no kernel; "), "{error}");
    }
    for old in ["2.4.20", "2.6.9", "2.6.9-89.EL"] {
        let error = old.parse::<KernelVersion>().expect_err(old).to_string();
        assert!(error.contains("is older than 2.6.16"), "{error}");
    }
    assert!("2.6.40".parse::<KernelVersion>().is_err());
    let long = format!("6.1.0-{}", "9".repeat(59));
    assert!(long.parse::<KernelVersion>().is_err());
}

#[test]
fn kernels_of_others_go_by_their_release_and_keep_their_names() {
    for (name, release) in [
        ("2.6.32-754.el6.x86_64", "2.6.32"),
        ("2.6.32.12-0.7-default", "2.6.32.12"),
        ("3.10.0-1160.el7.x86_64", "3.10"),
        ("6.6.13-200.fc39", "6.6.13"),
        ("6.8.12-4-pve", "6.8.12"),
        ("6.6.87.2-microsoft-standard-WSL2", "6.6.87"),
        ("5.10.43-android12-9-00001-g0123456", "5.10.43"),
    ] {
        let kernel: KernelVersion = name.parse().expect(name);
        assert_eq!(kernel.to_string(), name);
        assert_eq!(kernel.release().to_string(), release);
        assert_eq!(kernel, KernelVersion::row(release));
        let note = kernel.note().expect(name);
        let says = format!("kernel {name} is modelled as mainline {release}: ");
        assert!(note.starts_with(&says), "{note}");
    }
    for plain in ["6.12.117", "2.6.28", "6.12.0", "2.6.28.10"] {
        let kernel: KernelVersion = plain.parse().expect(plain);
        assert_eq!((kernel.to_string().as_str(), kernel.note()), (plain, None));
    }
}

#[test]
fn what_is_newer_goes_by_the_newest() {
    for (name, named) in [("7.4", "7.4"), ("7.4.0-rc3", "7.4"), ("8.1.2", "8.1.2")] {
        let kernel: KernelVersion = name.parse().expect(name);
        assert_eq!(kernel.release(), KernelVersion::NEWEST);
        assert_eq!(kernel.named().to_string(), named);
        assert_eq!(kernel.to_string(), name);
        let note = kernel.note().expect(name);
        assert!(note.contains("is newer than 7.3"), "{note}");
    }
    let stable: KernelVersion = "7.3.9".parse().expect("a release");
    assert_eq!((stable.release(), stable.note()), (stable, None));
    // No release of an older series is newer than all.
    assert!(
        !"5.25"
            .parse::<KernelVersion>()
            .expect("written well")
            .is_modelled()
    );
}

#[test]
fn a_wrong_name_gets_the_nearest() {
    for (wrong, near) in [
        ("rhl8", "rhel8"),
        ("debain-12", "debian-12"),
        ("ubuntu-24.4", "ubuntu-24.04"),
        ("6.12x", "6.12"),
        ("sles15-sp7", "sles-15-sp5"),
    ] {
        let error = wrong.parse::<KernelVersion>().expect_err(wrong).to_string();
        assert!(
            error.contains(&format!("did you mean '{near}'?")),
            "{error}"
        );
    }
}
