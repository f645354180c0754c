// SPDX-License-Identifier: MIT OR Apache-2.0
//! `KEY=VALUE` settings: tunables of the scheduler, files of the queue,
//! memory and vm.

use crate::experiment::{QueueSettings, SEED_MAX};
use crate::{Experiment, ExperimentError, Workload};
use blklab_block::QUEUE_TUNABLES;
use blklab_fio::release::Release;
use blklab_kernel::{KernelVersion, Tunable, Unit, existence, tunables_of};
use blklab_types::{Hz, choices, nearest_name, shown};

const FIRST: KernelVersion = KernelVersion::v2_6(16);

/// Settings of the machine and of `/proc/sys/vm`. `memory` takes a size. A default
/// outside the range is that of what is not set. Releases of the files: mm/
/// page-writeback.c, kernel/sysctl.c; of defaults: `blklab_fs::Features`.
pub const MACHINE_TUNABLES: &[Tunable] = &[
    Tunable {
        name: "memory",
        unit: Unit::KiB,
        default: 8 << 20,
        range: (16 << 10, 1 << 40),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "memory of the machine (a size such as 2g)",
    },
    Tunable {
        name: "dirty_ratio",
        unit: Unit::Count,
        default: 40,
        range: (0, 100),
        since: FIRST,
        until: KernelVersion::v2_6(22),
        help: "percent of memory dirty at which writers are held back",
    },
    Tunable {
        name: "dirty_ratio",
        unit: Unit::Count,
        default: 10,
        range: (0, 100),
        since: KernelVersion::v2_6(22),
        until: KernelVersion::v2_6(30),
        help: "percent of memory dirty at which writers are held back",
    },
    Tunable {
        name: "dirty_ratio",
        unit: Unit::Count,
        default: 20,
        range: (0, 100),
        since: KernelVersion::v2_6(30),
        until: KernelVersion::FOREVER,
        help: "percent of memory dirty at which writers are held back",
    },
    Tunable {
        name: "dirty_background_ratio",
        unit: Unit::Count,
        default: 10,
        range: (0, 100),
        since: FIRST,
        until: KernelVersion::v2_6(22),
        help: "percent of memory dirty at which background writing starts",
    },
    Tunable {
        name: "dirty_background_ratio",
        unit: Unit::Count,
        default: 5,
        range: (0, 100),
        since: KernelVersion::v2_6(22),
        until: KernelVersion::v2_6(30),
        help: "percent of memory dirty at which background writing starts",
    },
    Tunable {
        name: "dirty_background_ratio",
        unit: Unit::Count,
        default: 10,
        range: (0, 100),
        since: KernelVersion::v2_6(30),
        until: KernelVersion::FOREVER,
        help: "percent of memory dirty at which background writing starts",
    },
    Tunable {
        name: "dirty_bytes",
        unit: Unit::Count,
        default: 0,
        range: (8192, 1 << 40),
        since: KernelVersion::v2_6(29),
        until: KernelVersion::FOREVER,
        help: "bytes dirty at which writers are held back, in place of dirty_ratio",
    },
    Tunable {
        name: "dirty_background_bytes",
        unit: Unit::Count,
        default: 0,
        range: (1, 1 << 40),
        since: KernelVersion::v2_6(29),
        until: KernelVersion::FOREVER,
        help: "bytes dirty at which background writing starts, in place of the ratio",
    },
    Tunable {
        name: "dirty_writeback_centisecs",
        unit: Unit::Count,
        default: 500,
        range: (0, i32::MAX as i64),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "period of periodic writing, in 1/100 s",
    },
    Tunable {
        name: "io_cost_ns",
        unit: Unit::Count,
        default: 1000,
        range: (1, 1_000_000_000),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "processor time of one I/O in fio and its system call, in ns",
    },
    Tunable {
        name: "switch_cost_ns",
        unit: Unit::Count,
        default: 2000,
        range: (0, 1_000_000_000),
        since: KernelVersion::new(5, 0),
        until: KernelVersion::FOREVER,
        help: "time to get going after a sleep, where tasks share a processor, in ns",
    },
    Tunable {
        name: "interrupt_cost_ns",
        unit: Unit::Count,
        default: 0,
        range: (0, 1_000_000_000),
        since: KernelVersion::new(5, 0),
        until: KernelVersion::FOREVER,
        help: "time of an interrupt of the device, where tasks share a processor, in ns",
    },
    Tunable {
        name: "dispatch_cost_ns",
        unit: Unit::Count,
        default: 0,
        range: (0, 1_000_000_000),
        since: KernelVersion::new(5, 0),
        until: KernelVersion::FOREVER,
        help: "time of a request from scheduler to driver, where tasks share a processor, in ns",
    },
    Tunable {
        name: "driver_copy_ns",
        unit: Unit::Count,
        default: 0,
        range: (0, 1_000_000_000),
        since: KernelVersion::new(5, 0),
        until: KernelVersion::FOREVER,
        help: "time of a page that null_blk with memory_backed copies, in ns",
    },
    Tunable {
        name: "writeout_cost_ns",
        unit: Unit::Count,
        default: 0,
        range: (0, 1_000_000_000),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "processor time of a page written from the page cache to the disk, in ns",
    },
    Tunable {
        name: "call_cost_ns",
        unit: Unit::Count,
        default: 0,
        range: (0, 1_000_000_000),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "processor time of one direct I/O that counts as its latency, in ns",
    },
    Tunable {
        name: "reap_cost_ns",
        unit: Unit::Count,
        default: 0,
        range: (0, 1_000_000_000),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "processor time of one completion of an asynchronous I/O in fio, in ns",
    },
    Tunable {
        name: "job_start_ns",
        unit: Unit::Count,
        default: 0,
        range: (0, 1_000_000_000),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "from the start of a fio job to that of the next, in ns",
    },
    Tunable {
        name: "look_cost_ns",
        unit: Unit::Count,
        default: 0,
        range: (0, 1_000_000_000),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "processor time of fio's main process, every 10 ms, in ns; 0: it sleeps",
    },
    Tunable {
        name: "cpu_cost_percent",
        unit: Unit::Count,
        default: 100,
        range: (1, 100_000),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "all processor times, in percent of those of a 2.4 GHz machine of 2008",
    },
    Tunable {
        name: "page_cost_ns",
        unit: Unit::Count,
        default: 1000,
        range: (0, 1_000_000_000),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "processor time of a buffered page beside its copying, in ns",
    },
    Tunable {
        name: "cpus",
        unit: Unit::Count,
        default: 2,
        range: (1, 4096),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "processors; with one, tasks compete for it (to 4.20: kernel threads only)",
    },
    Tunable {
        name: "adjacent_pages_percent",
        unit: Unit::Count,
        default: 0,
        range: (0, 100),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "pages right behind the one before in memory, one segment with it, in percent",
    },
    Tunable {
        name: "dirty_expire_centisecs",
        unit: Unit::Count,
        default: 3000,
        range: (0, i32::MAX as i64),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "age at which periodic writing takes a file, in 1/100 s",
    },
];

/// A size with an optional suffix k, m, g, t (powers of 1024), in bytes.
///
/// # Errors
/// If it is no size.
pub fn parse_size(text: &str) -> Result<u64, ExperimentError> {
    let bad = || {
        ExperimentError::new(format!(
            "'{}' is not a size; write it like 2g, 512m or 8589934592",
            shown(text)
        ))
    };
    let lower = text.to_ascii_lowercase();
    let body = lower
        .strip_suffix("ib")
        .or(lower.strip_suffix('b'))
        .unwrap_or(&lower);
    let (digits, shift) = match body.char_indices().last() {
        Some((i, 'k')) => (&body[..i], 10),
        Some((i, 'm')) => (&body[..i], 20),
        Some((i, 'g')) => (&body[..i], 30),
        Some((i, 't')) => (&body[..i], 40),
        _ => (body, 0),
    };
    let n: u64 = digits.parse().map_err(|_| bad())?;
    n.checked_mul(1 << shift).ok_or_else(bad)
}

pub(crate) fn parse_hz(hz: u32) -> Result<Hz, ExperimentError> {
    match hz {
        100 | 250 | 300 | 1000 => Ok(Hz(hz)),
        _ => Err(
            ExperimentError::new(format!("hz={hz}: kernels have 100, 250, 300 or 1000"))
                .about("hz"),
        ),
    }
}

fn in_range(t: &Tunable, value: i64) -> Result<i64, ExperimentError> {
    if value < t.range.0 || value > t.range.1 {
        return Err(blklab_kernel::TunableError::Range(t.name, value, t.range).into());
    }
    Ok(value)
}

/// What an experiment file says about the queue, by name.
fn of_queue(q: &QueueSettings) -> [(&'static str, Option<u32>); 11] {
    [
        ("nr_requests", q.nr_requests),
        ("max_sectors_kb", q.max_sectors.map(|s| s.div_ceil(2))),
        ("max_segments", q.max_segments),
        ("rotational", q.rotational.map(u32::from)),
        ("nomerges", q.nomerges.map(u32::from)),
        ("queue_depth", q.queue_depth),
        ("read_ahead_kb", q.read_ahead_kb),
        ("write_cache", q.write_cache.map(u32::from)),
        ("wbt_lat_usec", q.wbt_lat_usec),
        ("partition_start", q.partition_start),
        ("partition_sectors", q.partition_sectors),
    ]
}

/// Tests what an experiment file says about the queue.
pub(crate) fn check_queue(q: &QueueSettings) -> Result<(), ExperimentError> {
    for (name, value) in of_queue(q) {
        // The last row of a name has the widest range.
        let t = QUEUE_TUNABLES.iter().rfind(|t| t.name == name);
        if let (Some(value), Some(t)) = (value, t) {
            in_range(t, i64::from(value))?;
        }
    }
    Ok(())
}

/// The row of a table about a release, or why there is none.
fn row_of(
    table: &'static [Tunable],
    key: &str,
    kernel: KernelVersion,
) -> Option<Result<&'static Tunable, ExperimentError>> {
    let exists = existence(table, key)?;
    let row = tunables_of(table, kernel).find(|t| t.name == key);
    Some(row.ok_or_else(|| {
        let what = format!("{key}: kernel {kernel} does not have it; it exists {exists}");
        ExperimentError::new(what).about(key)
    }))
}

/// A setting that the kernel does not have, as [`Experiment::absent`] finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Where experiment files have it: `queue` or `vm`.
    pub table: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The releases that have it, in words.
    pub exists: String,
}

/// What is written to `queue/write_cache`, or 1 and 0 for it (block/blk-sysfs.c,
/// `queue_wc_store`).
pub(crate) fn parse_write_cache(text: &str) -> Result<bool, ExperimentError> {
    match text {
        "write back" | "1" => Ok(true),
        "write through" | "none" | "0" => Ok(false),
        other => {
            let what = format!(
                "write_cache={}: expected 'write back' or 'write through'",
                shown(other)
            );
            Err(ExperimentError::new(what).about("queue.write_cache"))
        }
    }
}

/// A file of the queue that makes no difference in the model.
pub(crate) fn has_no_effect(name: &str) -> bool {
    matches!(name, "rq_affinity" | "iostats" | "add_random")
}

impl Experiment {
    /// Applies one `KEY=VALUE`: a file of the queue, a setting of the
    /// machine, `hz`, `fio`, `seed`, or a tunable of the scheduler.
    ///
    /// # Errors
    /// If nothing has that name, or the value is not possible.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ExperimentError> {
        let number = || -> Result<i64, ExperimentError> {
            value.parse().map_err(|_| {
                ExperimentError::new(format!(
                    "{key}={}: the value is not a whole number",
                    shown(value)
                ))
                .about(key)
            })
        };
        if let Some(rest) = key.strip_prefix("cgroup.") {
            return self.set_cgroup(rest, value);
        }
        match key {
            "memory" => {
                let bytes = parse_size(value).map_err(|e| e.about(key))?;
                let (low, high) = MACHINE_TUNABLES[0].range;
                let kib = i64::try_from(bytes >> 10).unwrap_or(i64::MAX);
                if kib < low || kib > high {
                    let what = format!(
                        "memory={}: expected a size from {}m to {}g",
                        shown(value),
                        low >> 10,
                        high >> 20
                    );
                    return Err(ExperimentError::new(what).about(key));
                }
                self.vm.memory_bytes = Some(bytes);
                return Ok(());
            }
            "filesystem" => return self.choose_filesystem(value),
            "hz" => {
                self.hz = parse_hz(u32::try_from(number()?).unwrap_or(0))?;
                return Ok(());
            }
            "fio" => {
                let release = value.parse::<Release>();
                self.fio = release.map_err(|e| ExperimentError::new(e.to_string()).about(key))?;
                return Ok(());
            }
            "seed" => {
                self.seed = u64::try_from(number()?).map_err(|_| {
                    let what = format!(
                        "seed={}: expected a number from 0 to {SEED_MAX}",
                        shown(value)
                    );
                    ExperimentError::new(what).about(key)
                })?;
                return Ok(());
            }
            _ => {}
        }
        if let Workload::Scenario(s) = &mut self.workload
            && s.has(key)
        {
            return s
                .set(key, value)
                .map_err(|what| ExperimentError::new(what).about(key));
        }
        if let Some(row) = row_of(QUEUE_TUNABLES, key, self.kernel) {
            let t = row?;
            let value = match key {
                "write_cache" => i64::from(parse_write_cache(value)?),
                _ => number()?,
            };
            let value = u32::try_from(in_range(t, value)?).unwrap_or(u32::MAX);
            self.set_queue(t.name, value);
            return Ok(());
        }
        if let Some(row) = row_of(MACHINE_TUNABLES, key, self.kernel) {
            let value = in_range(row?, number()?)?.unsigned_abs();
            self.set_vm(key, value);
            return Ok(());
        }
        let (scheduler, tunables) = self.scheduler()?;
        if !tunables.names().any(|name| name == key) {
            return Err(self.unknown_key(key, scheduler.tunables));
        }
        let number = number()?;
        self.tunables.retain(|(k, _)| k != key);
        self.tunables.push((key.to_owned(), number));
        Ok(())
    }

    /// Applies a setting of the machine that an experiment file has. Whether the
    /// kernel has it is for [`Experiment::check`] to say: another may be chosen.
    pub(crate) fn set_in_file(&mut self, key: &str, value: &str) -> Result<(), ExperimentError> {
        let row = MACHINE_TUNABLES.iter().rfind(|t| t.name == key);
        let (Some(row), Ok(number)) = (row.filter(|t| t.name != "memory"), value.parse()) else {
            return self.set(key, value);
        };
        self.set_vm(row.name, in_range(row, number)?.unsigned_abs());
        Ok(())
    }

    /// Whether [`Experiment::set`] knows the key for this kernel and scheduler.
    pub fn can_set(&self, key: &str) -> bool {
        if let Some(rest) = key.strip_prefix("cgroup.") {
            return self.can_set_cgroup(rest);
        }
        let in_table = |table| tunables_of(table, self.kernel).any(|t| t.name == key);
        matches!(key, "memory" | "hz" | "fio" | "seed" | "filesystem")
            || self.has_parameter(key)
            || in_table(QUEUE_TUNABLES)
            || in_table(MACHINE_TUNABLES)
            || self
                .scheduler()
                .is_ok_and(|(_, t)| t.names().any(|name| name == key))
    }

    /// Why [`Experiment::set`] refuses a key that it knows: the kernel or the
    /// scheduler does not have it. A remark for those who run without it.
    pub fn runs_without(&self, key: &str) -> String {
        let exists = existence(QUEUE_TUNABLES, key).or_else(|| existence(MACHINE_TUNABLES, key));
        match exists {
            Some(exists) => format!(
                "kernel {} ran without {key}, which exists {exists}",
                self.kernel
            ),
            None => format!(
                "{} ran without {key}, which it does not have",
                self.scheduler
            ),
        }
    }

    /// The settings of the queue and the machine that the kernel does not have,
    /// and that would make a difference if it had.
    pub fn absent(&self) -> Vec<Absent> {
        let known =
            |table| move |name: &str| tunables_of(table, self.kernel).any(|t| t.name == name);
        let (in_queue, in_vm) = (known(QUEUE_TUNABLES), known(MACHINE_TUNABLES));
        let of = |table, rows: &'static [Tunable], name| Absent {
            table,
            name,
            exists: existence(rows, name).unwrap_or_default(),
        };
        let queue = of_queue(&self.queue).into_iter().filter(|(name, value)| {
            // What a file of the queue says is the case without it.
            let off = match *name {
                "rotational" => Some(1),
                _ => Some(0),
            };
            value.is_some() && *value != off && !in_queue(name)
        });
        let vm = [
            ("dirty_bytes", self.vm.dirty_bytes.is_some()),
            (
                "dirty_background_bytes",
                self.vm.dirty_background_bytes.is_some(),
            ),
            ("switch_cost_ns", self.vm.switch_cost_ns.is_some()),
            ("interrupt_cost_ns", self.vm.interrupt_cost_ns.is_some()),
            ("dispatch_cost_ns", self.vm.dispatch_cost_ns.is_some()),
            ("driver_copy_ns", self.vm.driver_copy_ns.is_some()),
        ];
        let vm = vm.into_iter().filter(|(name, set)| *set && !in_vm(name));
        let queue = queue.map(|(name, _)| of("queue", QUEUE_TUNABLES, name));
        queue
            .chain(vm.map(|(name, _)| of("vm", MACHINE_TUNABLES, name)))
            .collect()
    }

    /// Forgets the settings that the kernel does not have; a remark says so.
    pub fn drop_absent(&mut self) {
        for Absent { name, .. } in self.absent() {
            self.remarks.push(self.runs_without(name));
            let (q, vm) = (&mut self.queue, &mut self.vm);
            match name {
                "rotational" => q.rotational = None,
                "nomerges" => q.nomerges = None,
                "write_cache" => q.write_cache = None,
                "wbt_lat_usec" => q.wbt_lat_usec = None,
                "dirty_bytes" => vm.dirty_bytes = None,
                "dirty_background_bytes" => vm.dirty_background_bytes = None,
                "switch_cost_ns" => vm.switch_cost_ns = None,
                "interrupt_cost_ns" => vm.interrupt_cost_ns = None,
                "dispatch_cost_ns" => vm.dispatch_cost_ns = None,
                "driver_copy_ns" => vm.driver_copy_ns = None,
                other => unreachable!("{other} is in every release"),
            }
        }
    }

    fn has_parameter(&self, key: &str) -> bool {
        matches!(&self.workload, Workload::Scenario(s) if s.has(key))
    }

    fn unknown_key(&self, key: &str, sched: &[Tunable]) -> ExperimentError {
        let of = |table: &[Tunable]| {
            let there = table.iter().filter(|t| t.is_in(self.kernel));
            there.map(|t| t.name).collect::<Vec<_>>().join(", ")
        };
        let own = match of(sched) {
            names if names.is_empty() => "none".to_owned(),
            names => names,
        };
        let tables = [sched, QUEUE_TUNABLES, MACHINE_TUNABLES];
        let all = tables.iter().flat_map(|t| t.iter().map(|t| t.name));
        let owner = self
            .schedulers
            .iter()
            .find(|s| s.tunables.iter().any(|t| t.name == key));
        let hint = match (nearest_name(key, all), owner) {
            (_, Some(owner)) if owner.name == self.scheduler => {
                format!(
                    "{} of kernel {} does not have it; it exists {}; ",
                    owner.name,
                    self.kernel,
                    existence(owner.tunables, key).unwrap_or_default()
                )
            }
            (_, Some(owner)) => format!("{} has it, but {} runs; ", owner.name, self.scheduler),
            (Some(near), None) => format!("did you mean '{near}'? "),
            (None, None) => String::new(),
        };
        let parameters = match &self.workload {
            Workload::Scenario(s) => {
                let names: Vec<&str> = s.values().map(|(name, _)| name).collect();
                format!("of {}: {}; ", s.spec().name, names.join(", "))
            }
            _ => String::new(),
        };
        let tables = QUEUE_TUNABLES.iter().chain(MACHINE_TUNABLES);
        let there = tables.filter(|t| t.is_in(self.kernel)).map(|t| t.name);
        let more = ["hz", "fio", "seed", "filesystem", "cgroup.NAME.FILE"];
        let others: Vec<&str> = there.chain(more).collect();
        ExperimentError::new(format!(
            "nothing to set is called '{}'; {hint}{parameters}of {}: {own}; of the queue and the \
             machine: {}; blklab list tunables shows them",
            shown(key),
            self.scheduler,
            choices(key, &others)
        ))
        .about(key)
    }

    fn set_queue(&mut self, name: &str, value: u32) {
        let q = &mut self.queue;
        match name {
            "nr_requests" => q.nr_requests = Some(value),
            "max_sectors_kb" => q.max_sectors = Some(value * 2),
            "max_segments" => q.max_segments = Some(value),
            "rotational" => q.rotational = Some(value != 0),
            "nomerges" => q.nomerges = Some(value as u8),
            "queue_depth" => q.queue_depth = Some(value),
            "read_ahead_kb" => q.read_ahead_kb = Some(value),
            "write_cache" => q.write_cache = Some(value != 0),
            "wbt_lat_usec" => q.wbt_lat_usec = Some(value),
            name if has_no_effect(name) => {
                self.remarks
                    .push(format!("queue: {name} makes no difference in the model"));
            }
            "partition_start" => q.partition_start = (value > 0).then_some(value),
            "partition_sectors" => q.partition_sectors = Some(value),
            other => unreachable!("queue setting {other} is in the table but not here"),
        }
    }

    fn set_vm(&mut self, name: &str, large: u64) {
        let vm = &mut self.vm;
        let value = u32::try_from(large).unwrap_or(u32::MAX);
        match name {
            "dirty_bytes" => vm.dirty_bytes = Some(large),
            "dirty_background_bytes" => vm.dirty_background_bytes = Some(large),
            "dirty_ratio" => vm.dirty_ratio = Some(value),
            "dirty_background_ratio" => vm.dirty_background_ratio = Some(value),
            "dirty_writeback_centisecs" => vm.dirty_writeback_centisecs = Some(value),
            "io_cost_ns" => vm.io_cost_ns = Some(value),
            "switch_cost_ns" => vm.switch_cost_ns = Some(value),
            "interrupt_cost_ns" => vm.interrupt_cost_ns = Some(value),
            "dispatch_cost_ns" => vm.dispatch_cost_ns = Some(value),
            "driver_copy_ns" => vm.driver_copy_ns = Some(value),
            "writeout_cost_ns" => vm.writeout_cost_ns = Some(value),
            "call_cost_ns" => vm.call_cost_ns = Some(value),
            "reap_cost_ns" => vm.reap_cost_ns = Some(value),
            "job_start_ns" => vm.job_start_ns = Some(value),
            "look_cost_ns" => vm.look_cost_ns = Some(value),
            "cpu_cost_percent" => vm.cpu_cost_percent = Some(value),
            "page_cost_ns" => vm.page_cost_ns = Some(value),
            "cpus" => vm.cpus = Some(value),
            "adjacent_pages_percent" => vm.adjacent_pages_percent = Some(value),
            "dirty_expire_centisecs" => vm.dirty_expire_centisecs = Some(value),
            other => unreachable!("vm setting {other} is in the table but not here"),
        }
    }
}
