// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of a control group. What no model looks at is for real kernels alone.
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/blkio-controller
//! and block/bfq-iosched.rst.

use super::io_cost::{model_text, qos_text, write_latency, write_model, write_qos};
use super::io_max::{io_max_text, write_io_max};
use super::row::{Access, setting};
use super::{Form, Home, MULTI_QUEUE, Setting};
use crate::Cgroup;
use blklab_kernel::{KernelVersion, Unit};
use blklab_types::{PrioPolicy, no_such, shown};

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

/// A row of a file that has a text of its own.
const fn text(
    name: &'static str,
    help: &'static str,
    since: KernelVersion,
    get: fn(&Cgroup) -> Option<String>,
    set: fn(&mut Cgroup, &str) -> Result<(), String>,
) -> Setting {
    setting(Unit::Count, 0, (0, 0))
        .form(Form::Text)
        .since(since)
        .manual("", "the kernel's own")
        .at(Home::Cgroup, name, help, Access::GroupText { get, set })
}

/// The first release that knows `promote-to-rt`, and by `none-to-rt` means the same.
pub(crate) const PROMOTES: KernelVersion = KernelVersion::new(6, 5);

/// What `io.prio.class` is called.
const PRIO: [(&str, PrioPolicy); 5] = [
    ("no-change", PrioPolicy::NoChange),
    ("promote-to-rt", PrioPolicy::PromoteToRt),
    ("none-to-rt", PrioPolicy::NoneToRt),
    ("restrict-to-be", PrioPolicy::RestrictToBe),
    ("idle", PrioPolicy::Idle),
];

fn prio_name(policy: PrioPolicy) -> &'static str {
    let found = PRIO.iter().find(|(_, known)| *known == policy);
    found.map_or("no-change", |(name, _)| name)
}

fn write_prio(prio: &mut Option<PrioPolicy>, text: &str) -> Result<(), String> {
    let text = text.trim();
    let Some((_, policy)) = PRIO.iter().find(|(name, _)| *name == text) else {
        let names = PRIO.map(|(name, _)| name);
        return Err(format!(
            "io.prio.class: {}",
            no_such("policy", text, &names)
        ));
    };
    *prio = Some(*policy);
    Ok(())
}

/// A limit per second; 0: none.
fn write_limit(limit: &mut Option<u64>, text: &str) -> Result<(), String> {
    let number: Option<u64> = text.trim().parse().ok();
    let number = number.ok_or_else(|| {
        format!(
            "blkio.throttle: '{}' is no number; write so many bytes or I/Os per second, 0 for no \
             limit",
            shown(text)
        )
    })?;
    *limit = (number > 0).then_some(number);
    Ok(())
}

/// A row of a file whose text no model looks at: a real kernel reads it.
macro_rules! of_a_kernel {
    ($name:literal, $help:literal, $from:expr) => {
        setting(Unit::Count, 0, (0, 0))
            .form(Form::Text)
            .since($from)
            .manual("", "the kernel's own")
            .at(
                Home::Cgroup,
                $name,
                $help,
                Access::GroupText {
                    get: |g| g.unmodelled($name).map(str::to_owned),
                    set: |g, text| write_line(&mut g.unmodelled, $name, text),
                },
            )
    };
}

/// Keeps the text of a file, which is a line.
fn write_line(
    all: &mut Vec<(&'static str, String)>,
    name: &'static str,
    text: &str,
) -> Result<(), String> {
    // It stands in quotes of a shell, too.
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '\'' | '\\') || c == ' ';
    if text.trim().is_empty() || !text.chars().all(is_plain) {
        return Err(format!(
            "{name} = {}: expected a line such as the kernel takes",
            shown(text)
        ));
    }
    all.retain(|(known, _)| *known != name);
    all.push((name, text.trim().to_owned()));
    Ok(())
}

/// By name.
pub(crate) static FILES: &[Setting] = &[
    setting(Unit::Count, 0, (0, 0))
        .form(Form::Text)
        .since(MULTI_QUEUE)
        .elsewhere("it is modelled from 5.0 on; earlier kernels have limits in blkio.throttle")
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
    weight(
        "io.bfq.weight",
        100,
        (1, 1000),
        |g| g.bfq_weight,
        |g, n| g.bfq_weight = Some(n),
    )
    .since(MULTI_QUEUE)
    .elsewhere("it is BFQ's, from 5.0 on; weights of earlier kernels are blkio.weight"),
    weight(
        "io.weight",
        100,
        (1, 10_000),
        |g| g.cost_weight,
        |g, n| g.cost_weight = Some(n),
    )
    .since(MULTI_QUEUE)
    .elsewhere(
        "it is io.cost's and BFQ's, from 5.0 on; weights of earlier kernels are blkio.weight",
    ),
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
    text(
        "io.latency",
        "target=MICROSECONDS: groups beside it with looser targets are held back when it is missed",
        KernelVersion::new(4, 19),
        |g| g.latency_us.map(|us| format!("target={us}")),
        |g, text| write_latency(&mut g.latency_us, text),
    ),
    text(
        "io.prio.class",
        "priority class of what the group issues: no-change, promote-to-rt (6.5), none-to-rt, \
         restrict-to-be, idle",
        KernelVersion::new(5, 14),
        |g| g.prio.map(|policy| prio_name(policy).to_owned()),
        |g, text| write_prio(&mut g.prio, text),
    ),
    text(
        "io.cost.qos",
        "of the root group, /: enable=1 and when to throttle, as rpct=95 rlat=10000 min=50 max=150",
        KernelVersion::new(5, 4),
        |g| g.cost_qos.as_ref().map(qos_text),
        |g, text| write_qos(&mut g.cost_qos, text),
    ),
    text(
        "io.cost.model",
        "of the root group, /: ctrl=user and costs of the device, as rbps= rseqiops= rrandiops=",
        KernelVersion::new(5, 4),
        |g| g.cost_model.as_ref().map(model_text),
        |g, text| write_model(&mut g.cost_model, text),
    ),
    of_a_kernel!(
        "memory.high",
        "bytes of memory, page cache included, above which the group is slowed down; real kernels \
         alone",
        KernelVersion::new(4, 5)
    ),
    of_a_kernel!(
        "memory.max",
        "bytes of memory that the group may have; real kernels alone",
        KernelVersion::new(4, 5)
    ),
    text(
        "blkio.throttle.read_bps_device",
        "bytes read per second, of the first version of control groups; 0: no limit",
        KernelVersion::v2_6(37),
        |g| g.throttle.read_bytes_per_s.map(|n| n.to_string()),
        |g, text| write_limit(&mut g.throttle.read_bytes_per_s, text),
    ),
    text(
        "blkio.throttle.write_bps_device",
        "bytes written per second, as with that",
        KernelVersion::v2_6(37),
        |g| g.throttle.write_bytes_per_s.map(|n| n.to_string()),
        |g, text| write_limit(&mut g.throttle.write_bytes_per_s, text),
    ),
    text(
        "blkio.throttle.read_iops_device",
        "reads per second, as that",
        KernelVersion::v2_6(37),
        |g| g.throttle.read_ios_per_s.map(|n| n.to_string()),
        |g, text| write_limit(&mut g.throttle.read_ios_per_s, text),
    ),
    text(
        "blkio.throttle.write_iops_device",
        "writes per second, as that",
        KernelVersion::v2_6(37),
        |g| g.throttle.write_ios_per_s.map(|n| n.to_string()),
        |g, text| write_limit(&mut g.throttle.write_ios_per_s, text),
    ),
    weight(
        "blkio.bfq.weight",
        100,
        (1, 1000),
        |g| g.bfq_weight_v1,
        |g, n| g.bfq_weight_v1 = Some(n),
    )
    .since(KernelVersion::new(4, 12))
    .help("weight under BFQ, of the first version of control groups"),
];
