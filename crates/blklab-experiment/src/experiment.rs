// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment value.

use crate::input::{NAMED_BYTES_MAX, read_named};
use crate::{Absent, Cgroup, ExperimentError, FilesystemSpec, MdSpec, no_such};
use blklab_block::sq::Fetch;
use blklab_block::{QueueLimits, mq, sq};
use blklab_device::{Device, Driver, ReadText};
use blklab_fio::release::Release;
use blklab_kernel::{Evidence, KernelVersion, Patches, Tunables};
use blklab_sched::{Scheduler, Schedulers};
use blklab_types::{Hz, Span, shown};
use blklab_workload::Process;
use blklab_workload::scenario::{self, Scenario};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::fmt;
use std::path::Path;

/// What issues the I/O.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// Processes that submit bios without files.
    Processes(Vec<Process>),
    /// A fio job file: its name for messages, and its text.
    Fio {
        /// Name for messages and relative includes.
        name: String,
        /// The text.
        text: String,
    },
    /// A built-in scenario.
    Scenario(Scenario),
}

/// The disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// Name of a law or preset.
    pub name: String,
    /// Parameters that differ from the preset, in order.
    pub params: Vec<(String, String)>,
}

/// As the command line takes it: `NAME,key=value…`.
impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let mut params = self.params.iter();
        params.try_for_each(|(key, value)| write!(f, ",{key}={value}"))
    }
}

/// Files of `/sys/block/X/queue` and the driver's settings. `None` is the
/// default of the kernel or device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// Requests per pool.
    pub nr_requests: Option<u32>,
    /// Largest request in sectors.
    pub max_sectors: Option<u32>,
    /// Most segments of a request.
    pub max_segments: Option<u32>,
    /// Whether the device seeks.
    pub rotational: Option<bool>,
    /// Merging switched off (1, 2).
    pub nomerges: Option<u8>,
    /// Commands at the device.
    pub queue_depth: Option<u32>,
    /// When the driver looks at the next request.
    pub fetch: Fetch,
    /// Largest readahead window in KiB.
    pub read_ahead_kb: Option<u32>,
    /// Whether the kernel takes the device's cache for a volatile one, which it
    /// flushes.
    pub write_cache: Option<bool>,
    /// Read latency that write-back throttling aims at, in us; 0 turns it off.
    pub wbt_lat_usec: Option<u32>,
    /// First sector of the partition that is used; the whole disk if none.
    pub partition_start: Option<u32>,
    /// Its length in sectors; to the end of the disk if none.
    pub partition_sectors: Option<u32>,
}

/// Memory and `/proc/sys/vm`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vm {
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// `dirty_ratio` in percent.
    pub dirty_ratio: Option<u32>,
    /// `dirty_background_ratio` in percent.
    pub dirty_background_ratio: Option<u32>,
    /// `dirty_bytes`, which takes the place of `dirty_ratio`.
    pub dirty_bytes: Option<u64>,
    /// `dirty_background_bytes`, which takes the place of
    /// `dirty_background_ratio`.
    pub dirty_background_bytes: Option<u64>,
    /// `dirty_writeback_centisecs`.
    pub dirty_writeback_centisecs: Option<u32>,
    /// `dirty_expire_centisecs`.
    pub dirty_expire_centisecs: Option<u32>,
    /// Processor time of one I/O in fio and its system call.
    pub io_cost_ns: Option<u32>,
    /// Time that a task or kernel thread takes to get going after a sleep, on a
    /// machine with one processor (5.0 and later).
    pub switch_cost_ns: Option<u32>,
    /// Processor time of an interrupt of the device, on such a machine.
    pub interrupt_cost_ns: Option<u32>,
    /// Processor time of a request from the scheduler to the driver, on such a
    /// machine.
    pub dispatch_cost_ns: Option<u32>,
    /// Processor time of a page that the driver copies, on such a machine.
    pub driver_copy_ns: Option<u32>,
    /// Processor time of one direct I/O in its system call: part of its latency.
    pub call_cost_ns: Option<u32>,
    /// Processor time of one completion of an asynchronous I/O in fio and its
    /// system call.
    pub reap_cost_ns: Option<u32>,
    /// From the start of a fio job to that of the next.
    pub job_start_ns: Option<u32>,
    /// Processor time of fio's main process whenever it looks after its jobs.
    pub look_cost_ns: Option<u32>,
    /// All processor times in percent of their defaults.
    pub cpu_cost_percent: Option<u32>,
    /// Processor time of a page that is read or written, beside its copying.
    pub page_cost_ns: Option<u32>,
    /// Processor time of a page that is written from the page cache to the disk.
    pub writeout_cost_ns: Option<u32>,
    /// Processors.
    pub cpus: Option<u32>,
    /// Share of pages that lie in memory right behind the page before.
    pub adjacent_pages_percent: Option<u32>,
}

/// A number that somebody published for a configuration of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Scheduler it was measured with; any if not given.
    #[serde(default)]
    pub scheduler: Option<String>,
    /// Queue depth it was measured with; any if not given.
    #[serde(default)]
    pub queue_depth: Option<u32>,
    /// Patches that were on, in any order.
    #[serde(default)]
    pub patches: Vec<String>,
    /// read or write.
    pub direction: String,
    /// Shortest run time of a job, ms.
    #[serde(default)]
    pub runt_min_ms: Option<u64>,
    /// Longest run time of a job, ms.
    #[serde(default)]
    pub runt_max_ms: Option<u64>,
    /// Bandwidth of the group, MB/s.
    #[serde(default)]
    pub bandwidth_mb_s: Option<f64>,
    /// Where it was published, and what differs from the experiment.
    #[serde(default)]
    pub source: String,
}

impl Published {
    /// Whether it is about this experiment.
    pub fn fits(&self, e: &Experiment) -> bool {
        let depth = e.queue_depth().ok();
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names.dedup();
            names
        };
        sorted(&self.patches) == sorted(&e.patches)
            && self.scheduler.as_ref().is_none_or(|s| *s == e.scheduler)
            && self.queue_depth.is_none_or(|d| depth == Some(d))
    }
}

/// One of several configurations that an experiment file compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// What tables call it.
    pub name: String,
    /// Kernel release, if it is another.
    pub kernel: Option<KernelVersion>,
    /// I/O scheduler, if it is another.
    pub scheduler: Option<String>,
    /// Patches beside those of the file.
    pub patches: Vec<String>,
    /// Settings, as [`Experiment::set`] takes them, in order.
    pub settings: Vec<(String, String)>,
}

/// One experiment, complete.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The file it was read from, for messages; empty if none.
    pub file: String,
    /// Short name.
    pub id: String,
    /// What it shows, in a line.
    pub title: String,
    /// Kernel release.
    pub kernel: KernelVersion,
    /// Ticks per second.
    pub hz: Hz,
    /// I/O scheduler.
    pub scheduler: String,
    /// Whether it was chosen, or is the kernel's default.
    pub scheduler_chosen: bool,
    /// The scheduler's tunables that were set, in order.
    pub tunables: Vec<(String, i64)>,
    /// Patches that are switched on.
    pub patches: Vec<String>,
    /// Queue and driver.
    pub queue: QueueSettings,
    /// The disk.
    pub device: DeviceSpec,
    /// An array of such disks in its place.
    pub md: Option<MdSpec>,
    /// What the files lie on.
    pub filesystem: FilesystemSpec,
    /// Memory.
    pub vm: Vm,
    /// The release of fio that job files follow.
    pub fio: Release,
    /// Seed of everything random in the models.
    pub seed: u64,
    /// What issues the I/O.
    pub workload: Workload,
    /// Only these sections of the fio job file; all if empty.
    pub sections: Vec<String>,
    /// Control groups, parents first.
    pub cgroups: Vec<Cgroup>,
    /// Numbers published for it.
    pub published: Vec<Published>,
    /// Configurations to compare; itself alone if there are none.
    pub variants: Vec<Variant>,
    /// What a reader of the result should know about how it was made.
    pub remarks: Vec<String>,
    /// The schedulers that it can choose from.
    pub schedulers: Schedulers,
}

/// Largest seed: experiment files in TOML hold no larger number.
pub(crate) const SEED_MAX: u64 = i64::MAX as u64;

/// The newest release that is modelled.
pub(crate) const DEFAULT_KERNEL: KernelVersion = KernelVersion::new(6, 18);

/// The kernel of measured cases (files with `seconds` or `trace`) that name
/// none: Linux 6.1 of Debian 12.
pub(crate) const MEASURED_KERNEL: KernelVersion = KernelVersion::new(6, 1);

impl Experiment {
    /// An experiment with defaults for everything but the workload: the newest
    /// kernel with its default scheduler, a 7200 rpm SATA disk.
    pub fn new(id: &str, workload: Workload) -> Experiment {
        Experiment {
            file: String::new(),
            id: id.to_owned(),
            title: String::new(),
            kernel: DEFAULT_KERNEL,
            hz: Hz(250),
            scheduler: blklab_sched::default_of(DEFAULT_KERNEL, 1).to_owned(),
            scheduler_chosen: false,
            tunables: Vec::new(),
            patches: Vec::new(),
            queue: QueueSettings::default(),
            device: DeviceSpec {
                name: "sata-7200-2008".to_owned(),
                params: Vec::new(),
            },
            md: None,
            filesystem: FilesystemSpec::default(),
            vm: Vm::default(),
            fio: Release::default(),
            seed: 0,
            workload,
            sections: Vec::new(),
            cgroups: Vec::new(),
            published: Vec::new(),
            variants: Vec::new(),
            remarks: Vec::new(),
            schedulers: Schedulers::default(),
        }
    }

    /// A built-in scenario on the kernel that it ran on.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn of_scenario(name: &str) -> Result<Experiment, ExperimentError> {
        let Some(scenario) = Scenario::named(name) else {
            let names: Vec<&str> = scenario::ALL.iter().map(|s| s.name).collect();
            return Err(
                ExperimentError::new(no_such("scenario", name, &names)).about("scenario.name")
            );
        };
        let spec = scenario.spec();
        let mut e = Experiment::new(name, Workload::Scenario(scenario));
        spec.summary.clone_into(&mut e.title);
        e.choose_kernel(spec.kernel.parse()?);
        e.set("fio", spec.fio)?;
        Ok(e)
    }

    /// The experiment in one of its configurations.
    ///
    /// # Errors
    /// If a setting of it is not possible.
    pub fn with_variant(&self, v: &Variant) -> Result<Experiment, ExperimentError> {
        let mut e = self.clone();
        e.variants.clear();
        if let Some(kernel) = v.kernel {
            e.choose_kernel(kernel);
        }
        if let Some(scheduler) = &v.scheduler {
            e.choose_scheduler(scheduler)?;
        }
        e.patches.extend(v.patches.iter().cloned());
        for (key, value) in &v.settings {
            e.set(key, value)?;
        }
        Ok(e)
    }

    /// Another kernel, and its default scheduler unless one was chosen.
    pub fn choose_kernel(&mut self, v: KernelVersion) {
        self.kernel = v;
        self.default_scheduler();
    }

    /// Another device; on some the kernel uses another default scheduler.
    ///
    /// Its `queue_depth` and `fetch` are not parameters of the device but of its
    /// driver; where they are not given, they stay as they are.
    ///
    /// # Errors
    /// If one of these two has a value that it does not take.
    pub fn choose_device(&mut self, device: DeviceSpec) -> Result<(), ExperimentError> {
        let is_driver = |(key, _): &(String, String)| key == "queue_depth" || key == "fetch";
        let (of_driver, params) = device.params.into_iter().partition(is_driver);
        let of_driver: Vec<(String, String)> = of_driver;
        for (key, value) in of_driver {
            self.set_driver(&key, &value)
                .map_err(|e| e.about(format!("device.{key}")))?;
        }
        self.device = DeviceSpec {
            name: device.name,
            params,
        };
        self.default_scheduler();
        Ok(())
    }

    fn set_driver(&mut self, key: &str, value: &str) -> Result<(), ExperimentError> {
        if key == "queue_depth" {
            return self.set(key, value);
        }
        self.queue.fetch = match value {
            "peek_then_check" => Fetch::PeekThenCheck,
            "check_then_peek" => Fetch::CheckThenPeek,
            other => {
                return Err(ExperimentError::new(format!(
                    "device: fetch '{}' is neither peek_then_check nor check_then_peek",
                    shown(other)
                )));
            }
        };
        Ok(())
    }

    fn default_scheduler(&mut self) {
        if !self.scheduler_chosen {
            let (name, params) = (&self.device.name, &self.device.params);
            let hw_queues = blklab_device::limits(name, params).map_or(1, |l| l.hw_queues);
            blklab_sched::default_of(self.kernel, hw_queues).clone_into(&mut self.scheduler);
        }
    }

    /// Another scheduler; what was set for the old one and is unknown to the
    /// new one goes.
    ///
    /// # Errors
    /// If the kernel does not have it.
    pub fn choose_scheduler(&mut self, name: &str) -> Result<(), ExperimentError> {
        let scheduler = self.schedulers.find(name, self.kernel)?;
        name.clone_into(&mut self.scheduler);
        self.scheduler_chosen = true;
        let known = Tunables::defaults(scheduler.tunables, self.kernel);
        self.tunables
            .retain(|(k, _)| known.names().any(|name| name == k));
        Ok(())
    }

    /// The scheduler and the values of its tunables.
    ///
    /// # Errors
    /// If the kernel has no such scheduler, or it no such tunable.
    pub fn scheduler(&self) -> Result<(&'static Scheduler, Tunables), ExperimentError> {
        let scheduler = self.schedulers.find(&self.scheduler, self.kernel)?;
        let mut tunables = Tunables::defaults(scheduler.tunables, self.kernel);
        for (name, value) in &self.tunables {
            tunables.set(name, *value)?;
        }
        Ok((scheduler, tunables))
    }

    /// The patches that are switched on.
    ///
    /// # Errors
    /// If one is unknown or does not fit the kernel, the scheduler or another.
    pub fn patches(&self) -> Result<Patches, ExperimentError> {
        let patches = Patches::new(&self.patches, self.kernel)?;
        let of_another = |s: &str| s != self.scheduler;
        if let Some(p) = patches.iter().find(|p| p.scheduler.is_some_and(of_another)) {
            return Err(ExperimentError::new(format!(
                "patch '{}' is one of the scheduler {}, not of {}",
                p.name,
                p.scheduler.unwrap_or_default(),
                self.scheduler
            ))
            .about("patches"));
        }
        Ok(patches)
    }

    /// Commands the driver hands to the device at most.
    ///
    /// # Errors
    /// If there is no such device, or it cannot have these parameters.
    pub fn queue_depth(&self) -> Result<u32, ExperimentError> {
        match self.queue.queue_depth {
            Some(depth) => Ok(depth),
            None => Ok(blklab_device::queue_depth(
                &self.device.name,
                &self.device.params,
            )?),
        }
    }

    /// Makes the device, reading the files that describe it.
    ///
    /// # Errors
    /// If there is no such device, it cannot have these parameters, or a file
    /// of it cannot be read or used.
    pub fn build_device(&self) -> Result<Box<dyn Device>, ExperimentError> {
        self.build_device_with(&read_device_file)
    }

    /// The files that describe the device: names and texts, in the order in
    /// which they are read.
    ///
    /// # Errors
    /// As [`Experiment::build_device`].
    pub fn device_files(&self) -> Result<Vec<(String, String)>, ExperimentError> {
        let files = RefCell::new(Vec::new());
        self.build_device_with(&|path| {
            let text = read_device_file(path)?;
            files.borrow_mut().push((path.to_owned(), text.clone()));
            Ok(text)
        })?;
        Ok(files.into_inner())
    }

    fn build_device_with(&self, read: &ReadText<'_>) -> Result<Box<dyn Device>, ExperimentError> {
        let (name, params) = (&self.device.name, &self.device.params);
        Ok(blklab_device::build(
            name,
            params,
            self.queue_depth()?,
            read,
        )?)
    }

    /// A processor time in ns as it was set, else the default, on this machine.
    fn cost_ns(&self, set: Option<u32>, default_ns: u32) -> Span {
        self.cpu_time(Span(u64::from(set.unwrap_or(default_ns))))
    }

    /// Processor time of one I/O in fio and its system call: 1 us if not set, and
    /// never nothing, so that time goes on.
    pub fn io_cost(&self) -> Span {
        self.cost_ns(self.vm.io_cost_ns, 1000).max(Span(1))
    }

    /// Time of a wake-up and context switch, where tasks share a processor: 2 us
    /// if not set.
    pub fn switch_cost(&self) -> Span {
        self.cost_ns(self.vm.switch_cost_ns, 2000)
    }

    /// Processor time of an interrupt of the device, where tasks share a
    /// processor: none if not set.
    pub fn interrupt_cost(&self) -> Span {
        self.cost_ns(self.vm.interrupt_cost_ns, 0)
    }

    /// Processor time of a request from the scheduler to the driver, where tasks
    /// share a processor: none if not set.
    pub fn dispatch_cost(&self) -> Span {
        self.cost_ns(self.vm.dispatch_cost_ns, 0)
    }

    /// Processor time of a page that the driver copies, where tasks share a
    /// processor: none if not set or the device does not keep data in memory.
    pub fn driver_copy(&self) -> Span {
        let is_on = |(name, value): &(String, String)| {
            name == "memory_backed" && !matches!(value.as_str(), "0" | "off" | "false" | "no")
        };
        match self.device.params.iter().any(is_on) {
            true => self.cost_ns(self.vm.driver_copy_ns, 0),
            false => Span::ZERO,
        }
    }

    /// Processor time of a page that is written from the page cache to the disk:
    /// none if not set.
    pub fn writeout_cost(&self) -> Span {
        self.cost_ns(self.vm.writeout_cost_ns, 0)
    }

    /// Processor time of one direct I/O in its system call, which counts as
    /// its latency: none if not set.
    pub fn call_cost(&self) -> Span {
        self.cost_ns(self.vm.call_cost_ns, 0)
    }

    /// Processor time of one completion of an asynchronous I/O: none if not set.
    pub fn reap_cost(&self) -> Span {
        self.cost_ns(self.vm.reap_cost_ns, 0)
    }

    /// From the start of a fio job to that of the next: none if not set.
    pub fn job_start(&self) -> Span {
        self.cost_ns(self.vm.job_start_ns, 0)
    }

    /// Processor time of fio's main process whenever it looks after its jobs: none
    /// if not set.
    pub fn look_cost(&self) -> Span {
        self.cost_ns(self.vm.look_cost_ns, 0)
    }

    /// Speed of copying on this machine, from that on one of 2.4 GHz in 2008.
    pub fn copy_bytes_per_s(&self, speed: u64) -> u64 {
        let percent = u128::from(self.vm.cpu_cost_percent.unwrap_or(100));
        let scaled = u128::from(speed) * 100 / percent.max(1);
        u64::try_from(scaled).unwrap_or(u64::MAX).max(1)
    }

    /// A processor time on this machine, from that on one of 2.4 GHz in 2008.
    pub fn cpu_time(&self, time: Span) -> Span {
        let percent = u128::from(self.vm.cpu_cost_percent.unwrap_or(100));
        let scaled = u128::from(time.ns()) * percent / 100;
        Span(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// Processor time of a page that is read or written through the page cache,
    /// beside its copying: 1 us if not set.
    pub fn page_cost(&self) -> Span {
        self.cost_ns(self.vm.page_cost_ns, 1000)
    }

    /// Whether the machine has one processor: kernel threads then wait while a
    /// task computes.
    pub fn one_cpu(&self) -> bool {
        self.vm.cpus == Some(1)
    }

    /// Hardware queues of the multi-queue path, each with a software queue: as
    /// many as the device has and there are processors, at most 64. Processors
    /// that share a hardware queue are not told apart.
    fn nr_hw_queues(&self, of_device: u32) -> u16 {
        let cpus = self.vm.cpus.unwrap_or(2);
        of_device.min(cpus).clamp(1, 64) as u16
    }

    /// Limits of the queue on the path that the kernel has.
    ///
    /// # Errors
    /// If a setting does not exist in this kernel, or the device cannot have its
    /// parameters.
    pub fn queue_limits(&self) -> Result<QueueLimits, ExperimentError> {
        let q = &self.queue;
        let (default, nomerges_max) = if self.kernel.has_single_queue() {
            let feat = sq::Features::of(self.kernel);
            (sq::Limits::new(self.hz).queue, feat.nomerges_max)
        } else {
            let max_sectors = mq::Features::of(self.kernel).max_sectors;
            let default = QueueLimits {
                max_sectors,
                rotational: true,
                ..mq::Limits::default().queue
            };
            (default, mq::NOMERGES_MAX)
        };
        let of_device = blklab_device::limits(&self.device.name, &self.device.params)?;
        let set = |written: Option<u32>, of_device: Option<u32>, default: u32| {
            written.or(of_device).unwrap_or(default)
        };
        let limits = QueueLimits {
            max_sectors: set(q.max_sectors, of_device.max_sectors, default.max_sectors),
            max_segments: set(q.max_segments, of_device.max_segments, default.max_segments),
            rotational: q
                .rotational
                .or(of_device.rotational)
                .unwrap_or(default.rotational),
            nomerges: q.nomerges.unwrap_or(0),
            has_flush: q.write_cache.unwrap_or(of_device.has_flush),
            has_fua: of_device.has_fua,
            partition_start: q.partition_start.map(u64::from),
        };
        if limits.nomerges > nomerges_max {
            return Err(ExperimentError::new(format!(
                "nomerges={} does not exist in kernel {}; largest value {nomerges_max}",
                limits.nomerges, self.kernel
            ))
            .about("queue.nomerges"));
        }
        Ok(limits)
    }

    /// Limits of a single queue and its driver.
    ///
    /// # Errors
    /// As [`Experiment::queue_limits`], and if a patch is unknown or does not fit.
    pub fn sq_limits(&self) -> Result<sq::Limits, ExperimentError> {
        let default = sq::Limits::new(self.hz);
        let of_device = blklab_device::limits(&self.device.name, &self.device.params)?;
        let mut limits = sq::Limits {
            queue: self.queue_limits()?,
            completion_unplugs: of_device.completion_unplugs,
            ordered_writes: of_device.ordered_writes,
            nr_requests: self.queue.nr_requests.unwrap_or(default.nr_requests),
            queue_depth: self.queue_depth()?,
            fetch: self.queue.fetch,
            ..default
        };
        limits.patch(&self.patches()?, self.hz);
        Ok(limits)
    }

    /// Limits of a multi-queue device and its driver.
    ///
    /// # Errors
    /// As [`Experiment::queue_limits`].
    pub fn mq_limits(&self) -> Result<mq::Limits, ExperimentError> {
        let of_device = blklab_device::limits(&self.device.name, &self.device.params)?;
        let depth = self.queue_depth()?;
        let nr_hw_queues = self.nr_hw_queues(of_device.hw_queues);
        Ok(mq::Limits {
            queue: self.queue_limits()?,
            queue_depth: depth,
            budget: (of_device.driver == Driver::Scsi).then_some(depth),
            nr_requests: self.queue.nr_requests,
            nr_hw_queues,
            nr_cpus: nr_hw_queues,
            wbt_lat_us: self.queue.wbt_lat_usec.map(u64::from),
            ..mq::Limits::default()
        })
    }

    /// `queue/nr_requests` as it is shown: the size of a pool, or of a hardware
    /// queue's set of tags.
    ///
    /// # Errors
    /// As [`Experiment::sq_limits`].
    pub fn nr_requests(&self) -> Result<u32, ExperimentError> {
        if self.kernel.has_single_queue() {
            return Ok(self.sq_limits()?.nr_requests);
        }
        Ok(self.mq_limits()?.nr_requests(self.scheduler != "none"))
    }

    /// What a reader of the result should know: how it was made, what the
    /// kernel makes of values out of range, and patches that are not certain.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.remarks.clone();
        if self.kernel.has_single_queue() && self.queue.wbt_lat_usec.is_some() {
            notes.push(
                "wbt_lat_usec makes no difference: write-back throttling is modelled from kernel \
                 5.0 on"
                    .to_owned(),
            );
        }
        if let Workload::Scenario(s) = &self.workload {
            let spec = s.spec();
            let mut left_out = vec![spec.left_out];
            if self.filesystem.name == "extents" {
                left_out.push(spec.left_out_on_extents);
            }
            let said = left_out.into_iter().filter(|text| !text.is_empty());
            notes.extend(said.map(str::to_owned));
        }
        if let Ok(scheduler) = self.schedulers.find(&self.scheduler, self.kernel) {
            let mut written = Tunables::defaults(scheduler.tunables, self.kernel);
            for (name, value) in &self.tunables {
                if let Ok(stored) = written.set(name, *value)
                    && stored != *value
                {
                    notes.push(format!("{name}={value}: the kernel makes it {stored}"));
                }
            }
        }
        let patches = self.patches().unwrap_or_default();
        let unsure = patches
            .iter()
            .filter(|p| p.evidence == Evidence::Reconstructed);
        notes.extend(self.md_notes());
        notes.extend(self.cgroup_notes());
        notes.extend(unsure.map(|p| {
            format!(
                "patch {} is a reconstruction: the mail that carried it was not available",
                p.name
            )
        }));
        notes
    }

    /// Refuses what cannot be run.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ExperimentError> {
        for (key, text) in [("id", &self.id), ("title", &self.title)] {
            if text.chars().any(char::is_control) {
                let what = format!("{key} has a control character; it is one line of text");
                return Err(ExperimentError::new(what).about(key));
            }
        }
        if self.seed > SEED_MAX {
            let what = format!("seed={}: expected a number from 0 to {SEED_MAX}", self.seed);
            return Err(ExperimentError::new(what).about("seed"));
        }
        if !blklab_kernel::releases().any(|v| v == self.kernel) {
            return Err(ExperimentError::new(format!(
                "kernel {} is not modelled; 2.6.16 to {DEFAULT_KERNEL} are",
                self.kernel
            ))
            .about("kernel"));
        }
        if let Some(Absent {
            table,
            name,
            exists,
        }) = self.absent().into_iter().next()
        {
            let what = format!(
                "{table}: {name}: kernel {} does not have it; it exists {exists}",
                self.kernel
            );
            return Err(ExperimentError::new(what).about(format!("{table}.{name}")));
        }
        self.scheduler()?;
        self.queue_limits()?;
        self.queue_depth()?;
        self.patches()?;
        let device = self.build_device()?;
        self.check_partition(device.capacity_sectors())?;
        self.check_md(device.capacity_sectors())?;
        self.check_cgroups()?;
        if let Workload::Processes(processes) = &self.workload {
            let capacity = self.capacity_sectors(device.capacity_sectors());
            let max_sectors = match self.kernel.has_single_queue() {
                true => self.bio_max_sectors()?,
                false => u32::MAX,
            };
            for p in processes {
                check_process(p, max_sectors, capacity)?;
            }
        }
        Ok(())
    }
}

fn read_device_file(path: &str) -> Result<String, String> {
    read_named(Path::new(path), NAMED_BYTES_MAX).map_err(|e| e.what)
}

fn check_process(
    p: &Process,
    max_sectors: u32,
    capacity: Option<u64>,
) -> Result<(), ExperimentError> {
    let fail = |what: String| {
        Err(
            ExperimentError::new(format!("process '{}': {what}", shown(&p.name)))
                .about(format!("processes.\"{}\"", p.name)),
        )
    };
    if p.name.chars().any(char::is_control) {
        return fail("its name has a control character".into());
    }
    if p.depth == 0 {
        return fail("depth is 0; it is the number of bios outstanding, at least 1".into());
    }
    if p.ioprio_level > 7 {
        return fail(format!(
            "ioprio_level {} is out of range 0..7",
            p.ioprio_level
        ));
    }
    let largest = p.io.largest_nr_sectors();
    if largest > max_sectors {
        return fail(format!(
            "a bio of {largest} sectors is larger than a request may be ({max_sectors} sectors)",
        ));
    }
    match (p.io.end_sector(), capacity) {
        (None, _) => fail("sectors run past 2^64".into()),
        (Some(end), Some(capacity)) if end > capacity => fail(format!(
            "I/O up to sector {end} lies beyond the device, which has {capacity} sectors"
        )),
        _ => Ok(()),
    }
}
