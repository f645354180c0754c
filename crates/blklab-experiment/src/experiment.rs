// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment value.

use crate::input::{NAMED_BYTES_MAX, read_named};
use crate::settings::{self, Home};
use crate::{
    Absent, Cgroup, ExperimentError, FilesystemSpec, MdSpec, QueueSettings, TraceSpec, Vm, no_such,
};
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
    /// The bios of a trace, run again.
    Trace(TraceSpec),
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

/// A device and the files that describe it: names and texts.
pub type Described = (Box<dyn Device>, Vec<(String, String)>);

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
    /// What is not a parameter of the device but a setting of its driver
    /// ([`Home::Driver`]) stays as it is where it is not given.
    ///
    /// # Errors
    /// If one of those has a value that it does not take.
    pub fn choose_device(&mut self, device: DeviceSpec) -> Result<(), ExperimentError> {
        let mut params = device.params;
        for setting in Home::Driver.settings() {
            let is_it = |(key, _): &(String, String)| key == setting.name();
            if let Some((_, value)) = params.iter().find(|p| is_it(p)) {
                setting.set_in_file(self, value)?;
                params.retain(|p| !is_it(p));
            }
        }
        self.device = DeviceSpec {
            name: device.name,
            params,
        };
        self.default_scheduler();
        Ok(())
    }

    pub(crate) fn default_scheduler(&mut self) {
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

    /// Makes the device, and returns the files that describe it with it: names and
    /// texts, in the order in which they are read.
    ///
    /// # Errors
    /// As [`Experiment::build_device`].
    pub fn build_device_with_files(&self) -> Result<Described, ExperimentError> {
        let files = RefCell::new(Vec::new());
        let device = self.build_device_with(&|path| {
            let text = read_device_file(path)?;
            files.borrow_mut().push((path.to_owned(), text.clone()));
            Ok(text)
        })?;
        Ok((device, files.into_inner()))
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

    /// A processor time in ns, on this machine.
    fn cost(&self, ns: u32) -> Span {
        self.cpu_time(Span(u64::from(ns)))
    }

    /// Processor time of one I/O in fio and its system call: 1 us if not set, and
    /// never nothing, so that time goes on.
    pub fn io_cost(&self) -> Span {
        self.cost(self.vm.io_cost_ns(self.kernel)).max(Span(1))
    }

    /// Time of a wake-up and context switch, where tasks share a processor: 2 us
    /// if not set.
    pub fn switch_cost(&self) -> Span {
        self.cost(self.vm.switch_cost_ns(self.kernel))
    }

    /// Processor time of an interrupt of the device, where tasks share a
    /// processor: none if not set.
    pub fn interrupt_cost(&self) -> Span {
        self.cost(self.vm.interrupt_cost_ns(self.kernel))
    }

    /// Processor time of a request from the scheduler to the driver, where tasks
    /// share a processor: none if not set.
    pub fn dispatch_cost(&self) -> Span {
        self.cost(self.vm.dispatch_cost_ns(self.kernel))
    }

    /// Processor time of a page that the driver copies, where tasks share a
    /// processor: none if not set or the device does not keep data in memory.
    pub fn driver_copy(&self) -> Span {
        let is_on = |(name, value): &(String, String)| {
            name == "memory_backed" && !matches!(value.as_str(), "0" | "off" | "false" | "no")
        };
        if self.device.params.iter().any(is_on) {
            self.cost(self.vm.driver_copy_ns(self.kernel))
        } else {
            Span::ZERO
        }
    }

    /// Processor time of a page that is written from the page cache to the disk:
    /// none if not set.
    pub fn writeout_cost(&self) -> Span {
        self.cost(self.vm.writeout_cost_ns(self.kernel))
    }

    /// Processor time of one direct I/O in its system call, which counts as
    /// its latency: none if not set.
    pub fn call_cost(&self) -> Span {
        self.cost(self.vm.call_cost_ns(self.kernel))
    }

    /// Processor time of one completion of an asynchronous I/O: none if not set.
    pub fn reap_cost(&self) -> Span {
        self.cost(self.vm.reap_cost_ns(self.kernel))
    }

    /// From the start of a fio job to that of the next: none if not set.
    pub fn job_start(&self) -> Span {
        self.cost(self.vm.job_start_ns(self.kernel))
    }

    /// Processor time of fio's main process whenever it looks after its jobs: none
    /// if not set.
    pub fn look_cost(&self) -> Span {
        self.cost(self.vm.look_cost_ns(self.kernel))
    }

    /// Speed of copying on this machine, from that on one of 2.4 GHz in 2008.
    pub fn copy_bytes_per_s(&self, speed: u64) -> u64 {
        let percent = u128::from(self.vm.cpu_cost_percent(self.kernel));
        let scaled = u128::from(speed) * 100 / percent.max(1);
        u64::try_from(scaled).unwrap_or(u64::MAX).max(1)
    }

    /// A processor time on this machine, from that on one of 2.4 GHz in 2008.
    pub fn cpu_time(&self, time: Span) -> Span {
        let percent = u128::from(self.vm.cpu_cost_percent(self.kernel));
        let scaled = u128::from(time.ns()) * percent / 100;
        Span(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// Processor time of a page that is read or written through the page cache,
    /// beside its copying: 1 us if not set.
    pub fn page_cost(&self) -> Span {
        self.cost(self.vm.page_cost_ns(self.kernel))
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
        let cpus = self.vm.cpus(self.kernel);
        of_device.min(cpus).clamp(1, 64) as u16
    }

    /// First sector of the partition in use, if it is not the whole disk.
    fn partition_start(&self) -> Option<u64> {
        let start = self.queue.partition_start.filter(|start| *start > 0);
        start.map(u64::from)
    }

    /// Limits of the queue on the path that the kernel has.
    ///
    /// # Errors
    /// If a setting does not exist in this kernel, or the device cannot have its
    /// parameters.
    pub fn queue_limits(&self) -> Result<QueueLimits, ExperimentError> {
        let q = &self.queue;
        let default = if self.kernel.has_single_queue() {
            sq::Limits::new(self.hz).queue
        } else {
            let max_sectors = mq::Features::of(self.kernel).max_sectors;
            QueueLimits {
                max_sectors,
                rotational: true,
                ..mq::Limits::default().queue
            }
        };
        let of_device = blklab_device::limits(&self.device.name, &self.device.params)?;
        let set = |written: Option<u32>, of_device: Option<u32>, default: u32| {
            written.or(of_device).unwrap_or(default)
        };
        Ok(QueueLimits {
            max_sectors: set(q.max_sectors, of_device.max_sectors, default.max_sectors),
            max_segments: set(q.max_segments, of_device.max_segments, default.max_segments),
            rotational: q
                .rotational
                .or(of_device.rotational)
                .unwrap_or(default.rotational),
            nomerges: q.nomerges.unwrap_or(0),
            has_flush: q.write_cache.unwrap_or(of_device.has_flush),
            has_fua: of_device.has_fua,
            partition_start: self.partition_start(),
        })
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
            fetch: self.queue.fetch.unwrap_or_default(),
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
        let idle = settings::all().filter(|s| !s.matters() && s.stored(self).is_some());
        notes.extend(idle.map(|s| {
            let (owner, name) = (s.home.owner(), s.name());
            format!("{owner}: {name} makes no difference in the model")
        }));
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
        self.check_on(|| Ok(self.build_device()?.capacity_sectors()))
    }

    /// The same, on a disk whose size somebody else knows: it is asked when all
    /// else is known to be right.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check_on(
        &self,
        capacity_sectors: impl FnOnce() -> Result<Option<u64>, ExperimentError>,
    ) -> Result<(), ExperimentError> {
        for (key, text) in [("id", &self.id), ("title", &self.title)] {
            if text.chars().any(char::is_control) {
                let what = format!("{key} has a control character; it is one line of text");
                return Err(ExperimentError::new(what).about(key));
            }
        }
        if self.seed > settings::SEED_MAX {
            let (seed, max) = (self.seed, settings::SEED_MAX);
            let what = format!("seed={seed}: expected a number from 0 to {max}");
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
        self.settings().iter().try_for_each(|s| s.check(self))?;
        self.scheduler()?;
        self.queue_limits()?;
        self.queue_depth()?;
        self.patches()?;
        let disk = capacity_sectors()?;
        self.check_partition(disk)?;
        self.check_md(disk)?;
        self.check_cgroups()?;
        if let Workload::Processes(processes) = &self.workload {
            let capacity = self.capacity_sectors(disk);
            let max_sectors = if self.kernel.has_single_queue() {
                self.bio_max_sectors()?
            } else {
                u32::MAX
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
