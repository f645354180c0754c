// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of a control group that are modelled.
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/blkio-controller
//! and block/bfq-iosched.rst.

use super::io_max::{io_max_text, write_io_max};
use super::row::{Access, setting};
use super::{Form, Home, MULTI_QUEUE, Setting};
use crate::Cgroup;
use blklab_kernel::{KernelVersion, Unit};

/// The first release with control groups for I/O.
pub(crate) const FIRST: KernelVersion = KernelVersion::v2_6(33);

/// A row of a weight.
const fn weight(
    name: &'static str,
    default: i64,
    range: (i64, i64),
    get: fn(&Cgroup) -> Option<u32>,
    set: fn(&mut Cgroup, u32),
) -> Setting {
    let help = "weight of the group beside its siblings";
    setting(Unit::Count, default, range).at(
        Home::Cgroup,
        name,
        help,
        Access::GroupNumber { get, set },
    )
}

/// By name.
pub(crate) static FILES: &[Setting] = &[
    setting(Unit::Count, 0, (0, 0))
        .form(Form::Text)
        .since(MULTI_QUEUE)
        .elsewhere(
            "it is modelled from 5.0 on; the limits of earlier kernels, blkio.throttle, are not",
        )
        .manual("", "max")
        .at(
            Home::Cgroup,
            "io.max",
            "limits per second: rbps=, wbps= (bytes), riops=, wiops= (I/Os), each a number or max",
            Access::GroupText {
                get: |g| g.limits().map(|max| io_max_text(&max)),
                set: |g, text| write_io_max(&mut g.io_max, text),
            },
        ),
    // In the kernel `io.weight` belongs to io.cost, and systemd copies it.
    weight(
        "io.bfq.weight",
        100,
        (1, 1000),
        |g| g.bfq_weight,
        |g, n| g.bfq_weight = Some(n),
    )
    .or_named("io.weight")
    .since(MULTI_QUEUE)
    .elsewhere("it is BFQ's, from 5.0 on; weights of earlier kernels are blkio.weight"),
    weight(
        "blkio.weight",
        500,
        (100, 1000),
        |g| g.blkio_weight,
        |g, n| g.blkio_weight = Some(n),
    )
    .since(FIRST)
    .then(KernelVersion::new(3, 0), 500)
    .range(10, 1000)
    .help("weight of the group beside its siblings")
    .until(MULTI_QUEUE)
    .elsewhere("it is CFQ's, to 4.20; weights of later kernels are io.bfq.weight"),
    weight(
        "blkio.leaf_weight",
        500,
        (10, 1000),
        |g| g.blkio_leaf_weight,
        |g, n| g.blkio_leaf_weight = Some(n),
    )
    .help("weight of the group's own tasks beside the groups below it")
    .since(KernelVersion::new(3, 9))
    .until(MULTI_QUEUE)
    .elsewhere("it is CFQ's, from 3.9 to 4.20; weights of later kernels are io.bfq.weight"),
];
