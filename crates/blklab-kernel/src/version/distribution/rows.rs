// SPDX-License-Identifier: MIT OR Apache-2.0
//! The distributions that are known. "Read" was the source that a row names; what is
//! assumed says why.

use super::uname::Uname;
use super::{Distribution, Fact, Level, Schedulers};
use crate::KernelVersion;

const fn row(release: &'static str) -> KernelVersion {
    KernelVersion::row(release)
}

/// The choice of the kernel, where no rule of udev makes another.
const fn kernels_choice(source: &'static str) -> Fact<Schedulers> {
    Fact::documented(Schedulers::OF_KERNEL, source)
}

const NO_TUNED: &str = "tuned, where it runs, sets vm.dirty_ratio=40 on servers that the name of \
                        the release tells (throughput-performance), 30 in guests \
                        (virtual-guest), and leaves the ratios otherwise (balanced)";
const TUNED: Fact<&str> =
    Fact::documented(NO_TUNED, "tuned: recommend.conf, profiles/*/tuned.conf");

const VOLUNTARY: &str = "voluntary";
const DYNAMIC: &str = "voluntary, another by preempt= (PREEMPT_DYNAMIC)";

const RHEL_SCHEDULERS: &str = "Red Hat: solution 3755961, Setting the disk scheduler (8, 10)";
const NO_RULE: &str = "no rule of udev names a scheduler; the kernel's block/elevator.c";

const EL9_CONFIG: &str = "kernel-x86_64-rhel.config of 5.14.0-362.24.1.el9_3";
const EL8_CONFIG: &str = "kernel-x86_64.config of 4.18.0-513.18.1.el8_9";
const EL8_5: &str = "source of 4.18.0-348.2.1.el8_5";

const SUSE_RULES: &str =
    "60-io-scheduler.rules of systemd in SLE 15 SP5: bfq where rotational is not 0";

/// What stands where a row of a family says nothing; every row replaces what names it.
const OF_FAMILY: Distribution = Distribution {
    name: "",
    title: "",
    also: &[],
    release: row("5.14"),
    uname: Uname::Default(""),
    example: "",
    levels: &[],
    page_cache: Fact::assumed(row("5.14"), "the release that its name says"),
    filesystems: Fact::assumed(row("5.14"), "the release that its name says"),
    processor: Fact::assumed(row("5.14"), "the release that its name says"),
    hz: Fact::assumed(
        250,
        "as the kernels of Debian and Ubuntu: no configuration was found",
    ),
    preemption: Fact::assumed(VOLUNTARY, "no configuration was found"),
    schedulers: kernels_choice(NO_RULE),
    filesystem: Fact::assumed("", ""),
    remarks: &[],
    is_of_debian: false,
};

/// What SUSE's service packs share.
const SLES_15: Distribution = Distribution {
    schedulers: Fact::documented(Schedulers { seeks: Some("bfq") }, SUSE_RULES),
    filesystem: Fact::assumed("btrfs", "SUSE's installer: btrfs for /, XFS for data"),
    remarks: &[Fact::documented(
        "disks behind virtio and Xen (vd, xvd) keep the kernel's choice",
        SUSE_RULES,
    )],
    ..OF_FAMILY
};

/// What the kernels of Debian share.
const DEBIAN: Distribution = Distribution {
    uname: Uname::Machine,
    hz: Fact::assumed(250, "as in Debian 12"),
    preemption: Fact::assumed(
        VOLUNTARY,
        "as in Debian 12, without PREEMPT_DYNAMIC, which came later",
    ),
    schedulers: kernels_choice("Debian's udev: no rule names a scheduler; block/elevator.c"),
    filesystem: Fact::documented("ext4", "Debian's installation guide, Partman"),
    is_of_debian: true,
    ..OF_FAMILY
};

/// The distributions, in the order of lists.
pub static DISTRIBUTIONS: &[Distribution] = &[
    Distribution {
        name: "debian-11",
        title: "Debian 11 (bullseye)",
        also: &["bullseye"],
        release: row("5.10"),
        example: "5.10.0-28-amd64",
        levels: &[Level::documented(
            0,
            "5.10",
            "source of 5.10.223: linux-source-5.10",
        )],
        page_cache: Fact::documented(row("5.10"), "source of 5.10.223"),
        filesystems: Fact::documented(row("5.10"), "source of 5.10.223"),
        processor: Fact::documented(row("5.10"), "source of 5.10.223"),
        ..DEBIAN
    },
    Distribution {
        name: "debian-12",
        title: "Debian 12 (bookworm)",
        also: &["bookworm"],
        release: row("6.1"),
        example: "6.1.0-13-amd64",
        levels: &[Level::measured(0, "6.1", "84 fio jobs: docs/fidelity.md")],
        page_cache: Fact::measured(row("6.1"), "docs/fidelity.md"),
        filesystems: Fact::measured(row("6.1"), "ext4: docs/fidelity.md"),
        processor: Fact::measured(row("6.1"), "docs/fidelity.md"),
        hz: Fact::documented(250, "linux-config-6.1: config.amd64_none_amd64"),
        preemption: Fact::documented(DYNAMIC, "linux-config-6.1: config.amd64_none_amd64"),
        remarks: &[Fact::documented(
            "write-back throttling and io.cost are built in, io.latency and io.prio.class are not",
            "linux-config-6.1: BLK_WBT_MQ, BLK_CGROUP_IOCOST, BLK_CGROUP_IOLATENCY, BLK_CGROUP_IOPRIO",
        )],
        ..DEBIAN
    },
    Distribution {
        name: "debian-13",
        title: "Debian 13 (trixie), and the 6.12 of Debian 12's backports",
        also: &["trixie"],
        release: row("6.12"),
        example: "6.12.41+deb13-amd64",
        levels: &[Level::measured(0, "6.12", "54 fio jobs: docs/fidelity.md")],
        page_cache: Fact::measured(row("6.12"), "docs/fidelity.md"),
        filesystems: Fact::measured(row("6.12"), "ext4: docs/fidelity.md"),
        processor: Fact::measured(row("6.12"), "docs/fidelity.md"),
        hz: Fact::documented(250, "linux-config-6.12: config.amd64_none_amd64"),
        preemption: Fact::documented(DYNAMIC, "linux-config-6.12: config.amd64_none_amd64"),
        remarks: &[Fact::documented(
            "write-back throttling and io.cost are built in, io.latency and io.prio.class are not",
            "linux-config-6.12: BLK_WBT_MQ, BLK_CGROUP_IOCOST, BLK_CGROUP_IOLATENCY, BLK_CGROUP_IOPRIO",
        )],
        ..DEBIAN
    },
    Distribution {
        name: "rhel8",
        title: "Red Hat Enterprise Linux 8; Rocky, AlmaLinux, CentOS Stream, Oracle Linux (not UEK)",
        also: &[
            "el8",
            "rocky-8",
            "almalinux-8",
            "alma-8",
            "centos-8",
            "centos-stream-8",
        ],
        release: row("4.18"),
        uname: Uname::Word("el8"),
        example: "4.18.0-553.el8_10.x86_64",
        levels: &[
            Level::documented(
                0,
                "5.0",
                "source of 4.18.0-80.11.2.el8_0: multi-queue alone, without CFQ; BFQ without injection",
            ),
            Level::documented(
                240,
                "5.8",
                "source of 4.18.0-240.el8: BFQ as of 5.2; hardware queues are run one by one",
            ),
            Level::documented(
                348,
                "5.12",
                "source of 4.18.0-348.2.1.el8_5: BFQ with wakers and without stable merges, \
                 mq-deadline without classes, plugs of 16 requests; 8.10 has the same plugs",
            ),
        ],
        page_cache: Fact::documented(row("5.12"), EL8_5),
        filesystems: Fact::documented(
            row("5.5"),
            "source of 4.18.0-348.2.1.el8_5: XFS has what came with 5.4, ext4 not what came with 5.6",
        ),
        processor: Fact::documented(row("4.18"), EL8_5),
        hz: Fact::documented(1000, EL8_CONFIG),
        preemption: Fact::documented(VOLUNTARY, EL8_CONFIG),
        schedulers: kernels_choice(RHEL_SCHEDULERS),
        filesystem: Fact::documented("xfs", "Red Hat: Managing file systems (8)"),
        remarks: &[
            TUNED,
            Fact::documented(
                "write-back throttling and io.latency are built in, io.cost is not",
                "kernel-x86_64.config of 4.18.0-513.18.1.el8_9: BLK_WBT_MQ, BLK_CGROUP_IOLATENCY",
            ),
            Fact::documented(
                "4.18.0-252 to 4.18.0-310 may give disks with shared tags no scheduler: not modelled",
                "Red Hat: solution 3755961",
            ),
        ],
        is_of_debian: false,
    },
    Distribution {
        name: "rhel9",
        title: "Red Hat Enterprise Linux 9; Rocky, AlmaLinux, CentOS Stream, Oracle Linux (not UEK)",
        also: &["el9", "rocky-9", "almalinux-9", "alma-9", "centos-stream-9"],
        release: row("5.14"),
        uname: Uname::Word("el9"),
        example: "5.14.0-503.11.1.el9_5.x86_64",
        levels: &[
            Level::documented(
                0,
                "5.16",
                "CentOS Stream 9: merge request 148, block: update to v5.16 (9.0); what 9.1 to 9.4 \
                 took on top is not in the model",
            ),
            Level::documented(
                503,
                "6.8",
                "CentOS Stream 9: merge request 3822, block: sync with v6.8 (9.5); what 9.6 and \
                 later took on top is not in the model",
            ),
        ],
        page_cache: Fact::assumed(
            row("6.0"),
            "as its XFS, which needs large folios of the page cache",
        ),
        filesystems: Fact::documented(
            row("6.0"),
            "XFS: J. Benc at DevConf.cz 2023, as The Register of 30 June 2023 has it",
        ),
        processor: Fact::assumed(row("5.14"), "the release that its name says"),
        hz: Fact::documented(1000, EL9_CONFIG),
        preemption: Fact::documented(DYNAMIC, EL9_CONFIG),
        schedulers: kernels_choice(RHEL_SCHEDULERS),
        filesystem: Fact::documented("xfs", "Red Hat: Managing file systems (9)"),
        remarks: &[
            TUNED,
            Fact::documented(
                "write-back throttling and io.latency are built in; io.cost and io.prio.class are not",
                "kernel-x86_64-rhel.config of 5.14.0-362.24.1.el9_3: BLK_WBT_MQ, \
                 BLK_CGROUP_IOLATENCY, BLK_CGROUP_IOCOST, BLK_CGROUP_IOPRIO",
            ),
        ],
        is_of_debian: false,
    },
    Distribution {
        name: "rhel10",
        title: "Red Hat Enterprise Linux 10; Rocky, AlmaLinux, CentOS Stream, Oracle Linux (not UEK)",
        also: &[
            "el10",
            "rocky-10",
            "almalinux-10",
            "alma-10",
            "centos-stream-10",
        ],
        release: row("6.12"),
        uname: Uname::Word("el10"),
        example: "6.12.0-55.el10.x86_64",
        levels: &[Level::assumed(
            0,
            "6.12",
            "the release that its name says; what 10.1 and later took is not known",
        )],
        page_cache: Fact::assumed(row("6.12"), "the release that its name says"),
        filesystems: Fact::assumed(row("6.12"), "the release that its name says"),
        processor: Fact::assumed(row("6.12"), "the release that its name says"),
        hz: Fact::assumed(1000, "as in RHEL 8 and 9"),
        preemption: Fact::assumed(DYNAMIC, "as in RHEL 9"),
        schedulers: kernels_choice(RHEL_SCHEDULERS),
        filesystem: Fact::documented("xfs", "Red Hat: Managing file systems (10)"),
        remarks: &[TUNED],
        is_of_debian: false,
    },
    Distribution {
        name: "ubuntu-22.04",
        title: "Ubuntu 22.04 LTS, and the 5.15 of 20.04 (-generic)",
        also: &["jammy"],
        release: row("5.15"),
        uname: Uname::Flavour("generic"),
        example: "5.15.0-91-generic",
        levels: &[Level::assumed(0, "5.15", "the release that its name says")],
        page_cache: Fact::assumed(row("5.15"), "the release that its name says"),
        filesystems: Fact::assumed(row("5.15"), "the release that its name says"),
        processor: Fact::assumed(row("5.15"), "the release that its name says"),
        hz: Fact::documented(
            250,
            "Launchpad bug 2051342: 250 in generic, 1000 in lowlatency",
        ),
        preemption: Fact::assumed(
            VOLUNTARY,
            "as in 24.04, before PREEMPT_DYNAMIC was built in",
        ),
        schedulers: Fact::assumed(Schedulers::OF_KERNEL, NO_RULE),
        filesystem: Fact::assumed("ext4", "Ubuntu's installer"),
        remarks: &[],
        is_of_debian: false,
    },
    Distribution {
        name: "ubuntu-24.04",
        title: "Ubuntu 24.04 LTS, and the 6.8 of 22.04 (-generic)",
        also: &["noble"],
        release: row("6.8"),
        uname: Uname::Flavour("generic"),
        example: "6.8.0-45-generic",
        levels: &[Level::assumed(0, "6.8", "the release that its name says")],
        page_cache: Fact::assumed(row("6.8"), "the release that its name says"),
        filesystems: Fact::assumed(row("6.8"), "the release that its name says"),
        processor: Fact::assumed(row("6.8"), "the release that its name says"),
        hz: Fact::documented(
            250,
            "Ubuntu's discourse 42255: HZ=250 in the generic kernel",
        ),
        preemption: Fact::documented(DYNAMIC, "Ubuntu's discourse 44834"),
        schedulers: Fact::assumed(Schedulers::OF_KERNEL, NO_RULE),
        filesystem: Fact::assumed("ext4", "Ubuntu's installer"),
        remarks: &[],
        is_of_debian: false,
    },
    Distribution {
        name: "sles-15-sp5",
        title: "SUSE Linux Enterprise 15 SP5, openSUSE Leap 15.5",
        also: &["leap-15.5"],
        release: row("5.14"),
        uname: Uname::Default("150500"),
        example: "5.14.21-150500.55.7-default",
        levels: &[Level::assumed(
            0,
            "5.14.21",
            "the release that its name says",
        )],
        ..SLES_15
    },
    Distribution {
        name: "sles-15-sp6",
        title: "SUSE Linux Enterprise 15 SP6, openSUSE Leap 15.6",
        also: &["sles-15", "leap-15.6"],
        release: row("6.4"),
        uname: Uname::Default("150600"),
        example: "6.4.0-150600.21-default",
        levels: &[Level::assumed(0, "6.4", "the release that its name says")],
        page_cache: Fact::assumed(row("6.4"), "the release that its name says"),
        filesystems: Fact::assumed(row("6.4"), "the release that its name says"),
        processor: Fact::assumed(row("6.4"), "the release that its name says"),
        schedulers: Fact::documented(
            Schedulers { seeks: Some("bfq") },
            "60-io-scheduler.rules of systemd in openSUSE Step 15 SP6 and SLE 15 SP5",
        ),
        ..SLES_15
    },
    Distribution {
        name: "amazon-2023",
        title: "Amazon Linux 2023 with its 6.1",
        also: &["amzn2023", "al2023"],
        release: row("6.1"),
        uname: Uname::Word("amzn2023"),
        example: "6.1.102-111.182.amzn2023.x86_64",
        levels: &[Level::assumed(0, "6.1", "the release that its name says")],
        page_cache: Fact::assumed(row("6.1"), "the release that its name says"),
        filesystems: Fact::assumed(row("6.1"), "the release that its name says"),
        processor: Fact::assumed(row("6.1"), "the release that its name says"),
        hz: Fact::assumed(
            250,
            "as in the 6.1 of its microVMs: firecracker, microvm-kernel-ci-x86_64-6.1.config",
        ),
        preemption: Fact::assumed(
            "none",
            "as in the 6.1 of its microVMs: firecracker, microvm-kernel-ci-x86_64-6.1.config",
        ),
        schedulers: Fact::assumed(Schedulers::OF_KERNEL, "no rule of udev was found"),
        filesystem: Fact::assumed("xfs", "its images"),
        remarks: &[],
        is_of_debian: false,
    },
];
