// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the machines were like on which measurements were made: the files
//! `machines/*.toml`, which say where each constant comes from.

use blklab::kernel::KernelVersion;
use blklab_experiment::{DeviceSpec, Experiment};
use blklab_fio::job::Job;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The machine of measured fio jobs.
pub(super) static LINUX_6_1: LazyLock<FioMachine> =
    LazyLock::new(|| read(include_str!("../../machines/linux-6.1.toml")));

/// The machine of whole measured kernels.
pub(super) static LINUX_2_6_28: LazyLock<KernelMachine> =
    LazyLock::new(|| read(include_str!("../../machines/linux-2.6.28.toml")));

fn read<T: DeserializeOwned>(text: &str) -> T {
    toml::from_str(text).expect("a test reads every file of machines/")
}

/// How often `null_blk` with `mbps` renews its budget.
const NULL_BLK_TICK_NS: u32 = 20_000_000;

/// Buffers of this size and more get huge pages (`transparent_hugepage` always).
const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// Times in ns of processor; see the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FioMachine {
    cpus: u32,
    processor_time: bool,
    io_cost_ns: u32,
    call_cost_ns: u32,
    look_cost_ns: u32,
    look_cost_per_job_ns: u32,
    start_look_cost_ns: u32,
    cpu_turns: bool,
    reap_cost_ns: u32,
    page_cost_reading_ns: u32,
    page_cost_writing_ns: u32,
    null_blk_tick_phase_ns: u32,
    null_blk_gb: u32,
    job_start_ns: u32,
    io_u_setup_ns: u32,
    buffer_page_ns: u32,
    job_setup_ns: u32,
    /// What differs between kernels, by the first release that it is of.
    #[serde(deserialize_with = "by_release")]
    release: BTreeMap<KernelVersion, Release>,
}

fn by_release<'de, D: Deserializer<'de>>(
    d: D,
) -> Result<BTreeMap<KernelVersion, Release>, D::Error> {
    let named = BTreeMap::<String, Release>::deserialize(d)?;
    let parsed = named.into_iter().map(|(name, release)| {
        let first = name.parse().map_err(D::Error::custom)?;
        Ok((first, release))
    });
    parsed.collect()
}

/// Times of a kernel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    interrupt_cost_ns: u32,
    wake_cost_ns: u32,
    switch_cost_ns: u32,
    worker_cost_ns: u32,
    first_call_ns: u32,
    /// Where kblockd hands over what tasks insert; elsewhere tasks do so mostly.
    hand_over_gap_ns: Option<u32>,
    /// Where it is not that of other releases.
    page_cost_writing_ns: Option<u32>,
    /// Where it is not that of any page.
    further_page_cost_ns: Option<u32>,
    driver_copy_ns: u32,
    writeout_cost_ns: u32,
    /// How long after a tick of the kernel the first job is released, where it is not at one.
    release_after_tick_ns: Option<u32>,
    /// Sectors of a rotating `simdisk` that are read without the medium when the first job
    /// begins, where they are not those of other releases.
    scanned_sectors: Option<u32>,
    /// By scheduler.
    insert_cost_ns: BTreeMap<String, u32>,
    dispatch_cost_ns: BTreeMap<String, u32>,
    direct_page_cost: PageCost,
}

/// A page of a direct I/O, by what the buffers lie in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PageCost {
    ordinary_ns: u32,
    huge_ns: u32,
}

impl PageCost {
    /// Of the direct I/Os of a case.
    fn of_jobs(&self, jobs: &[Job]) -> u32 {
        let is_huge = |j: &Job| {
            let s = &j.settings;
            s.direct && s.largest_bs() * u64::from(s.iodepth) >= HUGE_PAGE_BYTES
        };
        if jobs.iter().any(is_huge) {
            self.huge_ns
        } else {
            self.ordinary_ns
        }
    }
}

impl FioMachine {
    /// The times of a kernel: of the last release that was measured up to it, or else of
    /// the first.
    fn of_release(&self, kernel: KernelVersion) -> &Release {
        let measured = self.release.range(..=kernel).next_back();
        let measured = measured.or_else(|| self.release.first_key_value());
        measured.expect("the file has a release").1
    }

    /// Gives an experiment that a real kernel runs the prices of the machine, as far as the
    /// kernel takes them.
    pub(super) fn give_kernel(&self, e: &mut Experiment, jobs: &[Job]) {
        self.give_prices(e, jobs);
        let device = &mut e.device;
        let has = |key: &str| device.params.iter().any(|(name, _)| name == key);
        if device.name == "null_blk" {
            // What was measured had the kernel's own, too, of another size than it has by
            // itself.
            if !has("gb") {
                let gb = self.null_blk_gb.to_string();
                device.params.push(("gb".to_owned(), gb));
            }
            e.queue.inside.get_or_insert(true);
        }
    }

    /// What a real kernel pays, too.
    fn give_prices(&self, e: &mut Experiment, jobs: &[Job]) {
        let writes = |j: &Job| !j.settings.direct && j.settings.rw.writes;
        let release = self.of_release(e.kernel);
        let page_cost_ns = if jobs.iter().any(writes) {
            let own = release.page_cost_writing_ns;
            own.unwrap_or(self.page_cost_writing_ns)
        } else {
            self.page_cost_reading_ns
        };
        let vm = &mut e.vm;
        vm.cpus.get_or_insert(self.cpus);
        vm.io_cost_ns.get_or_insert(self.io_cost_ns);
        vm.page_cost_ns.get_or_insert(page_cost_ns);
        vm.further_page_cost_ns = vm.further_page_cost_ns.or(release.further_page_cost_ns);
        vm.switch_cost_ns.get_or_insert(release.switch_cost_ns);
        vm.interrupt_cost_ns
            .get_or_insert(release.interrupt_cost_ns);
        vm.wake_cost_ns.get_or_insert(release.wake_cost_ns);
        vm.worker_cost_ns.get_or_insert(release.worker_cost_ns);
        vm.direct_page_cost_ns
            .get_or_insert_with(|| release.direct_page_cost.of_jobs(jobs));
        vm.call_cost_ns.get_or_insert(self.call_cost_ns);
        if let Some(cost) = release.insert_cost_ns.get(&e.scheduler) {
            vm.insert_cost_ns.get_or_insert(*cost);
        }
        if let Some(cost) = release.dispatch_cost_ns.get(&e.scheduler) {
            vm.dispatch_cost_ns.get_or_insert(*cost);
        }
        vm.processor_time.get_or_insert(self.processor_time);
        vm.driver_copy_ns.get_or_insert(release.driver_copy_ns);
        vm.writeout_cost_ns.get_or_insert(release.writeout_cost_ns);
    }

    /// Gives an experiment what the machine was like, unless it says otherwise.
    pub(super) fn give(&self, e: &mut Experiment, jobs: &[Job]) {
        let named = processors_named(e, jobs);
        e.vm.cpus.get_or_insert(self.cpus.max(named));
        self.give_prices(e, jobs);
        let release = self.of_release(e.kernel);
        let look_cost_ns = self.look_cost_ns + self.look_cost_per_job_ns * jobs.len() as u32;
        let vm = &mut e.vm;
        vm.job_start_ns.get_or_insert(self.job_start_ns);
        vm.io_u_setup_ns.get_or_insert(self.io_u_setup_ns);
        vm.buffer_page_ns.get_or_insert(self.buffer_page_ns);
        vm.job_setup_ns.get_or_insert(self.job_setup_ns);
        vm.hand_over_gap_ns = vm.hand_over_gap_ns.or(release.hand_over_gap_ns);
        vm.first_call_ns.get_or_insert(release.first_call_ns);
        vm.reap_cost_ns.get_or_insert(self.reap_cost_ns);
        vm.look_cost_ns.get_or_insert(look_cost_ns);
        vm.start_look_cost_ns.get_or_insert(self.start_look_cost_ns);
        vm.wake_up_ns.get_or_insert(
            release.interrupt_cost_ns + release.wake_cost_ns + release.switch_cost_ns,
        );
        vm.cpu_turns.get_or_insert(self.cpu_turns);
        vm.uptime_ns = vm.uptime_ns.or(release.release_after_tick_ns);
        let begins_ns = vm.uptime_ns.unwrap_or(0);
        self.give_device(&mut e.device, release, begins_ns);
    }

    /// What the machine's disks were like when the first job began, so long after the
    /// machine's start.
    fn give_device(&self, device: &mut DeviceSpec, release: &Release, begins_ns: u32) {
        let has = |key: &str| device.params.iter().any(|(name, _)| name == key);
        let given = if device.name == "null_blk" && has("mbps") {
            let renewed_ns = self.null_blk_tick_phase_ns.saturating_add(begins_ns);
            Some(("tick_phase_ns", renewed_ns % NULL_BLK_TICK_NS))
        } else if device.name == "simdisk" && is_platter(device) {
            release.scanned_sectors.map(|sectors| ("scanned", sectors))
        } else {
            None
        };
        if let Some((key, value)) = given.filter(|(key, _)| !has(key)) {
            device.params.push((key.to_owned(), value.to_string()));
        }
    }
}

/// Whether a `simdisk` rotates.
fn is_platter(device: &DeviceSpec) -> bool {
    let mut params = device.params.iter();
    params.any(|(name, value)| name == "mode" && value == "1")
}

/// Processors that a case says its machine had: those that its jobs are bound to, and one for
/// each hardware queue of its device.
fn processors_named(e: &Experiment, jobs: &[Job]) -> u32 {
    let bound = jobs.iter().flat_map(|j| &j.settings.affinity.cpus);
    let bound = bound.max().map_or(0, |cpu| u32::from(*cpu) + 1);
    let params = e.device.params.iter();
    let queues = params.filter(|(name, _)| name == "submit_queues");
    let queues = queues.filter_map(|(_, value)| value.parse().ok()).max();
    bound.max(queues.unwrap_or(0))
}

/// Settings of experiments as they are written in an experiment; see the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KernelMachine {
    pub(super) kernel: String,
    pub(super) cpus: u32,
    pub(super) device: String,
    pub(super) fio: String,
    pub(super) fio_of_programs: String,
    pub(super) page_cost_ns: u32,
    pub(super) filesystem_options: String,
    /// Options of one with a journal, beside those.
    pub(super) journal_options: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_experiment::Workload;
    use blklab_fio::parse::{Fixed, ParseOptions, parse};

    #[test]
    fn the_files_of_machines_are_read() {
        assert_eq!(LINUX_6_1.cpus, 1);
        assert_eq!(
            LINUX_6_1
                .of_release(KernelVersion::new(6, 2))
                .dispatch_cost_ns["bfq"],
            2700
        );
        assert_eq!(LINUX_2_6_28.device, "simdisk-2628");
    }

    #[test]
    fn a_release_has_what_was_measured_of_it() {
        let given = |kernel, params: &[(&str, &str)]| {
            let mut e = Experiment::new("e", Workload::Processes(Vec::new()));
            e.kernel = kernel;
            e.device = DeviceSpec {
                name: "simdisk".to_owned(),
                params: params
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
            };
            let text = "[a]\nrw=write\nsize=1m\n";
            let file = parse("a.fio", text, &ParseOptions::default(), &Fixed::default());
            LINUX_6_1.give(&mut e, &file.expect("a job file").jobs);
            let scanned = e
                .device
                .params
                .into_iter()
                .find(|(name, _)| name == "scanned");
            (e.vm.page_cost_ns, scanned.map(|(_, value)| value))
        };
        let (old, new) = (KernelVersion::new(5, 10), KernelVersion::new(6, 1));
        let platter = [("mode", "1")];
        assert_eq!(given(new, &platter), (Some(10_200), None));
        assert_eq!(given(old, &platter), (Some(11_300), Some("0".to_owned())));
        assert_eq!(given(old, &[("mode", "0")]).1, None, "it does not rotate");
        let of_case = [("mode", "1"), ("scanned", "24")];
        assert_eq!(given(old, &of_case).1, Some("24".to_owned()));
    }

    #[test]
    fn jobs_begin_where_ticks_are_not() {
        let given = |kernel, params: &[(&str, &str)]| {
            let mut e = Experiment::new("e", Workload::Processes(Vec::new()));
            e.kernel = kernel;
            e.device.name = "null_blk".to_owned();
            e.device.params = params
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            LINUX_6_1.give(&mut e, &[]);
            let mut params = e.device.params.into_iter();
            let phase = params.rfind(|(name, _)| name == "tick_phase_ns");
            (e.vm.uptime_ns, phase.map(|(_, value)| value))
        };
        let (old, new) = (KernelVersion::new(5, 10), KernelVersion::new(6, 1));
        assert_eq!(given(old, &[]), (Some(2_800_000), None));
        assert_eq!(given(new, &[]), (None, None));
        // The budget is renewed as long after the release as before.
        let renewed = |kernel| given(kernel, &[("mbps", "50")]).1;
        assert_eq!(renewed(new).as_deref(), Some("7400000"));
        assert_eq!(renewed(old).as_deref(), Some("10200000"));
    }

    #[test]
    fn a_case_names_its_processors() {
        let named = |bound: &str, device: &[(&str, &str)]| {
            let mut e = Experiment::new("e", Workload::Processes(Vec::new()));
            e.device.params = device
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let text = format!("[a]\nsize=1m\n{bound}");
            let file = parse("a.fio", &text, &ParseOptions::default(), &Fixed::default());
            let file = file.expect("a job file");
            LINUX_6_1.give(&mut e, &file.jobs);
            e.vm.cpus
        };
        assert_eq!(named("", &[]), Some(1));
        assert_eq!(named("cpus_allowed=2-3\n", &[]), Some(4));
        assert_eq!(named("", &[("submit_queues", "2")]), Some(2));
    }
}
