// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a machine is told to do: the disk prepared, settings written to their files, then
//! the load under blktrace.

use super::filesystem::MOUNTED_AT;
use super::groups;
use super::job_logs::REPLAYED;
use super::kind::KVM;
use super::late::lateness;
use super::parts::Parts;
use super::place::Place;
use super::prepare;
use super::stack::{Bottom, Stack};
use super::task::{JOBS, Task};
use blklab_experiment::settings::Home;
use blklab_experiment::{Catalogue, Experiment, Facts};
use blklab_types::{Error, PAGE_BYTES, Span};
use std::fmt::Write as _;

/// Commands that a disk takes at once, at most: the ring of virtio_uml has no more.
pub(super) const DEPTH_MAX: u32 = 256;

/// A reading of the clock moves the clock of arch/um a grain on.
const CLOCK_GRAIN_NS: u64 = 256;

blklab_kernel::features! {
    /// What a release does of what has a price of its own.
    struct Unpriced {
        /// Readings of the clock for an I/O: five in fio and one in the block layer, as the
        /// intervals between reads one after another say on 6.12.
        clock_readings: u64 = 6,
    }

    /// What changed, release by release.
    #[cfg(test)]
    const CHANGES = {
        "7.2": "the clock is read when the driver starts a request, as the intervals between reads say \
                on 7.3 with psync, libaio and io_uring", "block/blk-mq.c" => { clock_readings: 7 }
    };
}

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
        settings: &["io_cost_ns", "call_cost_ns"],
        of: |e, _| beside_readings(e, e.io_cost() + e.call_cost()),
    },
    Price {
        parameter: "direct_page",
        settings: &["direct_page_cost_ns"],
        of: |e, _| e.direct_page_cost(),
    },
    Price {
        parameter: "cached",
        settings: &["io_cost_ns"],
        of: |e, _| beside_readings(e, e.io_cost()),
    },
    Price {
        parameter: "page",
        settings: &["page_cost_ns"],
        of: |e, _| e.page_cost() + e.copy_time(PAGE_BYTES),
    },
    Price {
        parameter: "further_page",
        settings: &["further_page_cost_ns"],
        of: |e, _| e.further_page_cost() + e.copy_time(PAGE_BYTES),
    },
    Price {
        parameter: "writeout",
        settings: &["writeout_cost_ns"],
        of: |e, _| e.writeout_cost(),
    },
    Price {
        parameter: "copy",
        settings: &["driver_copy_ns"],
        of: |e, _| e.driver_copy(),
    },
    // The time of a request on its whole way is its submitter's, as in the simulation.
    Price {
        parameter: "getrq",
        settings: &["request_cost_ns", "sched_cost_ns"],
        of: |e, facts| e.request_cost() + facts.sched_cost,
    },
    Price {
        parameter: "insert",
        settings: &["insert_cost_ns"],
        of: |e, _| e.insert_cost(),
    },
    Price {
        parameter: "issue",
        settings: &["dispatch_cost_ns"],
        of: |e, _| e.dispatch_cost(),
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

/// I/Os that all processes of a trace may have under way.
const AIO_MAX: u32 = 1 << 24;

/// A price of which readings of the clock are part.
fn beside_readings(e: &Experiment, price: Span) -> Span {
    let readings_ns = Unpriced::of(e.kernel).clock_readings * CLOCK_GRAIN_NS;
    Span(price.ns().saturating_sub(readings_ns))
}

/// The prices of what a program itself does for an I/O.
const OF_PROGRAMS: &[&str] = &["bio", "direct_page"];

/// What the kernel's command line says of an experiment. Processes have the time of
/// programs in their pauses.
pub(super) fn arguments(e: &Experiment, facts: &Facts, has_processes: bool) -> Vec<String> {
    let depth = facts.queue_depth().unwrap_or(1).min(DEPTH_MAX);
    let mut arguments = vec![
        format!("virtio_blk.queue_depth={depth}"),
        // Readings of the clock are part of an I/O in fio, which has a price.
        "processor_cost.clock=0".to_owned(),
    ];
    for price in PRICES {
        if has_processes && OF_PROGRAMS.contains(&price.parameter) {
            continue;
        }
        let ns = (price.of)(e, facts).ns();
        if ns > 0 {
            arguments.push(format!("processor_cost.{}={ns}", price.parameter));
        }
    }
    if e.seed > 0 {
        // A kernel stirs its command line into its random numbers.
        arguments.push(format!("blklab.seed={}", e.seed));
    }
    arguments
}

/// What the kernel would learn from the device's own driver: files of a disk's queue, and
/// what is written there.
fn of_device(disk: &Bottom, catalogue: &Catalogue) -> Result<Vec<(String, String)>, Error> {
    let facts = disk.e.queue_facts(catalogue)?;
    Ok(vec![
        (
            queue(disk, "rotational"),
            u32::from(facts.rotational).to_string(),
        ),
        (
            queue(disk, "max_sectors_kb"),
            (facts.max_sectors / 2).to_string(),
        ),
        (
            queue(disk, "read_ahead_kb"),
            (facts.read_ahead_bytes >> 10).to_string(),
        ),
    ])
}

/// A file of a disk's queue.
fn queue(disk: &Bottom, name: &str) -> String {
    format!("/sys/block/{}/queue/{name}", disk.device.name)
}

/// Files of the disks' queues and of the machine, and what is written there.
fn settings(catalogue: &Catalogue, stack: &Stack) -> Result<Vec<(String, String)>, Error> {
    let mut all: Vec<(String, String)> = Vec::new();
    for disk in stack.disks() {
        for (file, text) in settings_of(disk, catalogue)? {
            if all.iter().all(|(other, _)| *other != file) {
                all.push((file, text));
            }
        }
    }
    Ok(all)
}

/// The same as far as one disk sees it.
fn settings_of(disk: &Bottom, catalogue: &Catalogue) -> Result<Vec<(String, String)>, Error> {
    let e = &disk.e;
    let facts = e.queue_facts(catalogue)?;
    let mut all = vec![(queue(disk, "scheduler"), e.scheduler.clone())];
    let rows = e.settings(catalogue);
    let told = rows.iter().filter(|s| s.home != Home::Cgroup);
    all.extend(told.filter_map(|s| {
        let file = s.file(e.kernel, &disk.device.name, "")?;
        // The depth of the disk is a parameter of its driver.
        let is_driver = file.contains("/device/");
        (!is_driver).then_some(())?;
        let text = s.written(e)?;
        if disk.is_modelled && s.name() == "nr_requests" && facts.queue_depth > DEPTH_MAX {
            // It follows the depth, which is not had.
            let number = text.parse().unwrap_or(DEPTH_MAX);
            return Some((file, number.min(DEPTH_MAX).to_string()));
        }
        Some((file, text))
    }));
    all.sort_by_key(|(file, _)| follows_depth(file));
    Ok(all)
}

/// Whether a file's value is one that the kernel sets anew when `nr_requests` is written, as
/// `async_depth` is: what is set of it counts as written last.
fn follows_depth(file: &str) -> bool {
    file.contains("/iosched/") || file.ends_with("/async_depth")
}

/// Everything that the machine does. `made` makes the disk, where the kernel does that.
///
/// # Errors
/// If the device is not possible.
pub(super) fn script(
    e: &Experiment,
    catalogue: &Catalogue,
    stack: &Stack,
    task: &Task,
    made: &str,
) -> Result<String, Error> {
    let top = stack.top_path();
    let mut s = String::new();
    // What the kernel does not take is written down.
    s.push_str("put() { echo \"$2\" > \"$1\" || echo \"$1 $2\" >> refused; }\n");
    s.push_str("fail() { echo \"$*\" > failed; exit 1; }\n");
    s.push_str(prepare::STEP);
    s.push_str(made);
    for disk in stack.disks() {
        // Nothing is to be left in a scheduler of what comes before.
        let _ = writeln!(s, "echo none > {}", queue(disk, "scheduler"));
        let learnt = if disk.is_modelled {
            of_device(disk, catalogue)?
        } else {
            Vec::new()
        };
        for (file, text) in learnt {
            let _ = writeln!(s, "put {file} '{text}'");
        }
    }
    s.push_str("align\n");
    s.push_str(&stack.script());
    if let (Some(kb), false) = (e.queue.read_ahead_kb, stack.layers().is_empty()) {
        // What lies on disks reads ahead by itself.
        let _ = writeln!(s, "put /sys/block/{}/queue/read_ahead_kb {kb}", stack.top());
    }
    match &task.place {
        Place::Parts(parts) => write_parts(&mut s, stack, parts),
        Place::Volume(volume, found) => {
            prepare::mount(&mut s, volume, &top, &found.folders);
            prepare::lay_out(&mut s);
        }
    }
    for (file, text) in settings(catalogue, stack)? {
        if let Some(queue) = file.strip_suffix("/discard_max_bytes") {
            // More than the device's is the device's; newer kernels refuse it.
            let _ = writeln!(
                s,
                "read MOST < {queue}/discard_max_hw_bytes\n\
                 [ '{text}' -ge \"$MOST\" ] || put {file} '{text}'"
            );
            continue;
        }
        let _ = writeln!(s, "put {file} '{text}'");
    }
    if task.has_processes() {
        // Room for all that its processes have under way.
        let _ = writeln!(s, "put /proc/sys/fs/aio-max-nr {AIO_MAX}");
    }
    groups::make(&mut s, stack.top(), &e.cgroups);
    // Long enough for the timers of what was read before, half a minute: kblockd, which they
    // wake, is then level with all others. Nobody waits so long on a clock that is real.
    let rest_s = if e.target == KVM.name { 1 } else { 40 };
    let _ = writeln!(
        s,
        "align\nsync\necho 3 > /proc/sys/vm/drop_caches\nsleep {rest_s}"
    );
    let folder = match task.place {
        Place::Parts(_) => "/work",
        Place::Volume(..) => MOUNTED_AT,
    };
    let late = match lateness(e) {
        Span::ZERO => String::new(),
        by => format!("sleep 0.{:09}\n", by.ns()),
    };
    let load = task.command(&top);
    let _ = writeln!(
        s,
        "blktrace{} -b 1024 -n 16 > blktrace.log 2>&1 &\n\
         BLKTRACE=$!\n\
         sleep 1\n\
         begin\n\
         {late}\
         cd {folder}\n\
         {load} &\n\
         LOAD=$!\n\
         wait $LOAD\n\
         cd /work\n\
         echo $LOAD > load.pid\n\
         sleep 0.2\n\
         kill -INT $BLKTRACE\n\
         wait $BLKTRACE\n\
         end\n\
         rm -f {JOBS} {REPLAYED}*\n\
         find . -type l -delete",
        stack
            .devices()
            .map(|d| format!(" -d /dev/{}", d.name))
            .collect::<String>()
    );
    groups::keep_results(&mut s, &e.cgroups);
    Ok(s)
}

/// Files that are parts of the device on top.
fn write_parts(s: &mut String, stack: &Stack, parts: &Parts) {
    for (i, part) in parts.parts.iter().enumerate() {
        let device = stack.part(s, i, part.start, part.sectors);
        link(s, &part.name, &device);
    }
    let top = stack.top_path();
    for name in parts.whole.iter().filter(|name| **name != top) {
        link(s, name, &top);
    }
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
    use super::{CHANGES, Unpriced, follows_depth};
    use blklab_kernel::KernelVersion;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::v2_6(16)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, Unpriced::of);
    }

    #[test]
    fn what_nr_requests_sets_anew_is_written_behind_it() {
        let mut files = [
            "/sys/block/vda/queue/iosched/async_depth",
            "/sys/block/vda/queue/async_depth",
            "/sys/block/vda/queue/scheduler",
            "/sys/block/vda/queue/nr_requests",
        ];
        files.sort_by_key(|file| follows_depth(file));
        assert!(files[0].ends_with("scheduler") && files[1].ends_with("nr_requests"));
    }
}
