// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block stack of a recorded machine: what its context says, what its trace
//! shows, and what has to be assumed.

use crate::survey::DiskSurvey;
use blklab_analysis::findings::{Context, counted};
use blklab_experiment::{
    Catalogue, Cgroup, DeviceSpec, Experiment, QueueFacts, Workload, settings,
};
use blklab_sched::Schedulers;
use blklab_types::Error;
use std::collections::BTreeMap;

/// A block stack to re-enact a trace in.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Kernel, scheduler, queue, depth.
    pub experiment: Experiment,
    /// What was assumed because nobody said it, in sentences.
    pub assumed: Vec<String>,
    /// Whether times of the trace are those of the model's clock: of a simulated run.
    pub is_own_run: bool,
    /// Whether nothing came before the trace, as in a simulated run.
    pub begins_idle: bool,
    /// The schedulers that there are.
    pub schedulers: Schedulers,
}

/// The kernel driver behind a name of a device; only SCSI counts commands beside its
/// tags.
fn is_scsi(device: Option<&str>) -> bool {
    device.is_none_or(|d| d.starts_with("sd") || d.starts_with("hd") || d.starts_with("sr"))
}

/// The schedulers to try: the one that is known, else all of the kernel.
///
/// # Errors
/// If the kernel is not known: in a clause.
pub fn candidates(
    context: &Context,
    schedulers: Schedulers,
    tries: bool,
) -> Result<Vec<&'static str>, Error> {
    let Some(kernel) = context.kernel() else {
        return Err(Error::new("the kernel is not known"));
    };
    match context.scheduler().filter(|_| !tries) {
        Some(name) => match schedulers.find(name, kernel) {
            Some(scheduler) => Ok(vec![scheduler.name]),
            None => Err(Error::new(format!(
                "Linux {kernel} has no scheduler {name}"
            ))),
        },
        None => Ok(schedulers.in_release(kernel).map(|s| s.name).collect()),
    }
}

impl Stack {
    /// The stack that a run was made with.
    pub fn of_run(e: &Experiment, schedulers: Schedulers) -> Stack {
        Stack {
            experiment: e.clone(),
            assumed: Vec::new(),
            is_own_run: true,
            begins_idle: true,
            schedulers,
        }
    }

    /// Whether it makes a difference which sync writes are direct ones: to CFQ, which
    /// idles for them, and to write-back throttling, which lets them pass.
    pub fn reads_direct_writes(&self) -> bool {
        let e = &self.experiment;
        if e.kernel.has_single_queue() {
            e.scheduler == "cfq"
        } else {
            e.scheduler != "bfq" && e.queue.wbt_lat_usec != Some(0)
        }
    }

    /// The stack of a context under a scheduler.
    ///
    /// # Errors
    /// If there is no such stack: in a clause.
    pub fn of_context(
        context: &Context,
        scheduler: &str,
        schedulers: Schedulers,
        disk: &DiskSurvey,
    ) -> Result<Stack, Error> {
        let Some(kernel) = context.kernel() else {
            return Err(Error::new("the kernel is not known"));
        };
        let catalogue = &blklab_sim::catalogue_with(schedulers);
        let mut e = Experiment::new("trace", Workload::Processes(Vec::new()));
        e.choose_kernel(kernel, catalogue);
        let mut assumed: Vec<String> = kernel.note().into_iter().collect();
        let single = e.kernel.has_single_queue();
        let scsi = is_scsi(context.device());
        // Of these only what driver and queue make of them counts: nothing is served.
        let name = match () {
            () if single || scsi => "sata-7200-2008",
            () if disk.nr_fua > 0 => "nvme-consumer",
            () => "null_blk",
        };
        e.device = DeviceSpec {
            name: name.to_owned(),
            params: Vec::new(),
        };
        if !single {
            // One hardware queue: a trace does not show which one a request is in.
            e.vm.cpus = Some(1);
            // What the recorded kernel took lies in the times of its bios.
            e.vm.processor_time = Some(false);
        }
        e.choose_scheduler(scheduler, catalogue)?;
        e.queue.queue_depth = Some(depth(context, &mut assumed, single, disk));
        let usual = e.queue_facts(catalogue)?;
        requests(&mut e, context, &mut assumed, disk, &usual);
        limits(&mut e, context, &mut assumed, disk, &usual);
        tunables(&mut e, context, catalogue)?;
        if !single {
            groups(&mut e, context, catalogue, &mut assumed);
        }
        if !disk.left_over.is_empty() {
            assumed.push(match disk.left_over.len() {
                1 => "the request that was under way when the trace begins came then".to_owned(),
                n => format!("{n} requests that were under way when the trace begins came then"),
            });
        }
        if single && disk.nr_discards > 0 {
            return Err(Error::new(
                "it has discards, which the model of this kernel leaves out",
            ));
        }
        Ok(Stack {
            experiment: e,
            assumed,
            is_own_run: false,
            begins_idle: false,
            schedulers,
        })
    }
}

/// Commands that the device takes at a time.
fn depth(context: &Context, assumed: &mut Vec<String>, single: bool, disk: &DiskSurvey) -> u32 {
    if let Some(depth) = context.queue_depth() {
        return u32::try_from(depth).unwrap_or(u32::MAX).clamp(1, 1024);
    }
    // The single-queue driver looks at one request more than the device takes.
    let most = disk
        .depth_max
        .saturating_sub(u32::from(single))
        .clamp(1, 1024);
    let without = context.scheduler_is(&["none"]) == Some(true) && !single;
    let tags = context.queue("nr_requests").filter(|_| without);
    let depth = tags.map_or(most, |n| {
        u32::try_from(n).unwrap_or(u32::MAX).clamp(1, 1024)
    });
    let commands = counted(depth.into(), "commands");
    assumed.push(match tags {
        Some(_) => format!("the device takes {commands}: nr_requests, without a scheduler"),
        None => format!("the device takes {commands}: the most that it had at a time"),
    });
    depth
}

/// Requests that there may be at a time: as many as the trace shows, if nobody says it
/// and they are more than the kernel's default.
fn requests(
    e: &mut Experiment,
    context: &Context,
    assumed: &mut Vec<String>,
    disk: &DiskSurvey,
    usual: &QueueFacts,
) {
    if let Some(n) = context.queue("nr_requests") {
        e.queue.nr_requests = settable(e, "nr_requests", n);
    } else if !e.kernel.has_single_queue() && disk.requests_max > usual.nr_requests {
        let most = disk.requests_max;
        e.queue.nr_requests = settable(e, "nr_requests", most.into());
        assumed.extend(e.queue.nr_requests.map(|n| {
            if n == most {
                format!("nr_requests is {n}: the most that there were at a time")
            } else {
                format!("nr_requests is {n}, what can be set next to the {most} that there were")
            }
        }));
    }
}

/// The value next to `n` that a setting of the queue takes in the release of `e`; none if the
/// release does not have it. What a trace shows is no value that somebody set: it may lie
/// outside of what can be set.
fn settable(e: &Experiment, name: &str, n: u64) -> Option<u32> {
    let (low, high) = settings::find(name)?.row_in(e.kernel)?.range;
    let n = i64::try_from(n).unwrap_or(i64::MAX).clamp(low, high);
    u32::try_from(n).ok()
}

/// Limits of the queue: those that are known, raised to what the trace shows.
fn limits(
    e: &mut Experiment,
    context: &Context,
    assumed: &mut Vec<String>,
    disk: &DiskSurvey,
    usual: &QueueFacts,
) {
    let number = |name: &str| context.queue(name).and_then(|n| u32::try_from(n).ok());
    let shown = u32::try_from(disk.sectors_max).unwrap_or(u32::MAX);
    e.queue.max_sectors = match number("max_sectors_kb") {
        Some(kb) => Some(kb.saturating_mul(2).max(8)),
        None if disk.nr_split > 0 && shown >= 8 => {
            assumed.push(format!("no request is larger than {} KiB", shown / 2));
            Some(shown)
        }
        None => Some(usual.max_sectors.max(shown)),
    };
    let segments = number("max_segments").unwrap_or(128);
    e.queue.max_segments = Some(segments.clamp(1, 65_535));
    if let Some(rotates) = context.rotates() {
        e.queue.rotational = Some(rotates);
    }
    if let Some(n) = number("nomerges") {
        e.queue.nomerges = Some(n.min(2) as u8);
    }
    if let Some(n) = number("rq_affinity") {
        e.queue.rq_affinity = Some(n.min(2) as u8);
    }
    if let Some(us) = number("wbt_lat_usec") {
        e.queue.wbt_lat_usec = Some(us);
    }
    let discards = context.queue("discard_max_bytes").filter(|n| *n > 0);
    if !e.kernel.has_single_queue() && discards.is_some() {
        e.queue.discard_max_bytes = discards;
    }
    e.queue.write_cache = match context.has_write_cache() {
        Some(has) => Some(has),
        // Flushes that are queued and reach the device say that it has a cache.
        None => Some(disk.nr_forced > 0),
    }
    // Before there was the setting, only the device could say that it has a cache.
    .filter(|has| !has || settable(e, "write_cache", 1).is_some());
}

/// Tunables of the scheduler, as far as the model has them.
fn tunables(
    e: &mut Experiment,
    context: &Context,
    catalogue: &Catalogue,
) -> Result<(), blklab_types::Error> {
    let (_, known) = e.scheduler(catalogue)?;
    let usual: BTreeMap<&str, i64> = known.names().map(|name| (name, known.get(name))).collect();
    let mut written = Vec::new();
    for (key, value) in context.facts() {
        // To write a default can change it: 125 ms are 32 ticks of 250 a second, not 31.
        if let Some(name) = key.strip_prefix("queue/iosched/")
            && let Ok(value) = value.parse()
            && usual.get(name).is_some_and(|usual| *usual != value)
        {
            written.push((name.to_owned(), value));
        }
    }
    e.tunables.extend(written);
    e.scheduler(catalogue).map(|_| ())
}

/// Files of control groups that make a scheduler treat requests otherwise; limits and io.cost
/// hold bios back before they have one.
const GROUP_FILES: [&str; 4] = [
    "io.bfq.weight",
    "blkio.bfq.weight",
    "io.weight",
    "io.prio.class",
];

/// Control groups, as far as schedulers look at them.
fn groups(e: &mut Experiment, context: &Context, catalogue: &Catalogue, assumed: &mut Vec<String>) {
    for file in GROUP_FILES {
        for (group, text) in context.of_groups(file) {
            if group == Cgroup::ROOT {
                continue;
            }
            // The first line is of all devices.
            let line = text.lines().next().unwrap_or_default();
            let value = line.strip_prefix("default ").unwrap_or(line);
            if e.set(&format!("cgroup.{group}.{file}"), value, catalogue)
                .is_err()
            {
                let group = blklab_types::shown(group);
                assumed.push(format!(
                    "{file} of the control group {group} is the default"
                ));
            }
        }
    }
}
