// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a machine is told to do: settings written to their files, then fio under
//! blktrace.

use super::parts::Parts;
use super::stack::Stack;
use blklab_experiment::settings::Home;
use blklab_experiment::{Catalogue, Experiment, Facts};
use blklab_types::{Error, Span};
use std::fmt::Write as _;

/// Commands that a disk takes at once, at most: the ring of virtio_uml has no more.
pub(super) const DEPTH_MAX: u32 = 256;

/// The price of passing a tracepoint.
pub(super) struct Price {
    /// The parameter of our part of the kernel.
    parameter: &'static str,
    /// Settings that it is made of.
    pub(super) settings: &'static [&'static str],
    of: fn(&Experiment, &Facts) -> Span,
}

/// What the simulation charges, at the tracepoint where the kernel does it.
pub(super) const PRICES: &[Price] = &[
    Price {
        parameter: "bio",
        settings: &["io_cost_ns"],
        of: |e, _| e.io_cost(),
    },
    Price {
        parameter: "insert",
        settings: &["sched_cost_ns", "insert_cost_ns"],
        of: |e, facts| facts.sched_cost + e.insert_cost(),
    },
    Price {
        parameter: "issue",
        settings: &["request_cost_ns", "dispatch_cost_ns"],
        of: |e, _| e.request_cost() + e.dispatch_cost(),
    },
    Price {
        parameter: "complete",
        settings: &["interrupt_cost_ns"],
        of: |e, _| e.interrupt_cost(),
    },
    Price {
        parameter: "switch",
        settings: &["switch_cost_ns"],
        of: |e, _| e.switch_cost(),
    },
    Price {
        parameter: "wake",
        settings: &["wake_cost_ns"],
        of: |e, _| e.wake_cost(),
    },
    Price {
        parameter: "worker",
        settings: &["worker_cost_ns"],
        of: |e, _| e.worker_cost(),
    },
];

/// What the kernel's command line says of an experiment.
pub(super) fn arguments(e: &Experiment, facts: &Facts) -> Vec<String> {
    let depth = facts.queue_depth().unwrap_or(1).min(DEPTH_MAX);
    let mut arguments = vec![format!("virtio_blk.queue_depth={depth}")];
    for price in PRICES {
        let ns = (price.of)(e, facts).ns();
        if ns > 0 {
            arguments.push(format!("processor_cost.{}={ns}", price.parameter));
        }
    }
    arguments
}

/// Files of the disk's queue, and what is written there.
fn settings(
    e: &Experiment,
    catalogue: &Catalogue,
    disk: &str,
) -> Result<Vec<(String, String)>, Error> {
    let facts = e.queue_facts(catalogue)?;
    let queue = |name: &str| format!("/sys/block/{disk}/queue/{name}");
    // What the kernel would learn from the device's own driver.
    let mut all = vec![
        (queue("rotational"), u32::from(facts.rotational).to_string()),
        (queue("max_sectors_kb"), (facts.max_sectors / 2).to_string()),
        (
            queue("read_ahead_kb"),
            (facts.read_ahead_bytes >> 10).to_string(),
        ),
        (queue("scheduler"), e.scheduler.clone()),
    ];
    let rows = e.settings(catalogue);
    let told = rows.iter().filter(|s| s.home != Home::Cgroup);
    all.extend(told.filter_map(|s| {
        let file = s.file(e.kernel, disk, "")?;
        // The depth of the disk is a parameter of its driver.
        let is_driver = file.contains("/device/");
        (!is_driver).then_some(())?;
        let text = s.written(e)?;
        if s.name() == "nr_requests" && facts.queue_depth > DEPTH_MAX {
            // It follows the depth, which is not had.
            let number = text.parse().unwrap_or(DEPTH_MAX);
            return Some((file, number.min(DEPTH_MAX).to_string()));
        }
        Some((file, text))
    }));
    Ok(all)
}

/// What fio is given: nothing is changed but what belongs to this machine.
pub(super) fn job_text(spelled_out: &str) -> String {
    /// The results are put together here, and there is one clock.
    const OURS: [&str; 2] = ["group_reporting", "clocksource"];
    let is_ours = |line: &&str| {
        let key = line.split('=').next().unwrap_or_default().trim();
        OURS.contains(&key)
    };
    let mut text = "[global]\nclocksource=clock_gettime\n".to_owned();
    for line in spelled_out.lines().filter(|line| !is_ours(line)) {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Everything that the machine does.
///
/// # Errors
/// If the device is not possible.
pub(super) fn script(
    e: &Experiment,
    catalogue: &Catalogue,
    stack: &Stack,
    parts: &Parts,
) -> Result<String, Error> {
    let top = stack.top_path();
    let mut s = String::new();
    // What the kernel does not take is written down.
    s.push_str("put() { echo \"$2\" > \"$1\" || echo \"$1 $2\" >> refused; }\n");
    for (i, part) in parts.parts.iter().enumerate() {
        let number = i + 1;
        let _ = writeln!(
            s,
            "addpart {top} {number} {} {} || exit 1",
            part.start, part.sectors
        );
        link(&mut s, &part.name, &format!("{top}{number}"));
    }
    for name in parts.whole.iter().filter(|name| **name != top) {
        link(&mut s, name, &top);
    }
    for (file, text) in settings(e, catalogue, stack.top())? {
        if let Some(queue) = file.strip_suffix("/discard_max_bytes") {
            // More than the device's is the device's; newer kernels refuse it.
            let most = format!("$(cat {queue}/discard_max_hw_bytes)");
            let _ = writeln!(s, "[ '{text}' -ge \"{most}\" ] || put {file} '{text}'");
            continue;
        }
        let _ = writeln!(s, "put {file} '{text}'");
    }
    s.push_str("sync\necho 3 > /proc/sys/vm/drop_caches\nsleep 1\n");
    let _ = writeln!(
        s,
        "blktrace -d {top} -o trace -b 1024 -n 16 > blktrace.log 2>&1 &\n\
         BLKTRACE=$!\n\
         sleep 1\n\
         fio --output-format=json+ --output=fio.json job.fio\n\
         echo $? > fio.status\n\
         sleep 0.2\n\
         kill -INT $BLKTRACE\n\
         wait $BLKTRACE\n\
         rm -f job.fio\n\
         find . -type l -delete"
    );
    Ok(s)
}

/// Makes a name lead to a device.
fn link(s: &mut String, name: &str, device: &str) {
    if let Some((folder, _)) = name.rsplit_once('/')
        && !folder.is_empty()
    {
        let _ = writeln!(s, "mkdir -p '{folder}'");
    }
    let _ = writeln!(s, "ln -s {device} '{name}'");
}

#[cfg(test)]
mod tests {
    use super::job_text;

    #[test]
    fn a_job_keeps_everything_but_its_clock_and_its_grouping() {
        let text = "[a]\nrw=read\ngroup_reporting\nclocksource=cpu\nsize=1m\n";
        let expected = "[global]\nclocksource=clock_gettime\n[a]\nrw=read\nsize=1m\n";
        assert_eq!(job_text(text), expected);
    }
}
