// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of an experiment file, made of any bytes.

use blklab::experiment::Catalogue;
use blklab::kernel::KernelVersion;

/// Devices: laws, disks, controllers, flash drives.
const DEVICES: [&str; 10] = [
    "sata-7200-2008",
    "serial",
    "parallel",
    "null_blk",
    "cciss",
    "san-lun",
    "ssd-x25m",
    "samsung-980-pro",
    "st2000dm006",
    "sata-ssd",
];
/// Settings of the queue, and values that make them matter.
const QUEUE: [(&str, &[&str]); 5] = [
    ("nr_requests", &["4", "5", "16", "128"]),
    ("max_sectors_kb", &["4", "36", "512"]),
    ("max_segments", &["1", "2", "31"]),
    ("nomerges", &["0", "1"]),
    ("read_ahead_kb", &["0", "4", "128"]),
];
/// Likewise of the machine.
const MACHINE: [(&str, &[&str]); 6] = [
    ("dirty_ratio", &["1", "10", "40"]),
    ("dirty_background_ratio", &["1", "5"]),
    ("dirty_writeback_centisecs", &["1", "10", "500"]),
    ("dirty_at_start_mb", &["1", "9"]),
    ("memory", &["'76m'", "'84m'", "'128m'", "'256m'"]),
    ("cpus", &["1", "2", "4"]),
];
const PATTERNS: [&str; 9] = [
    "read",
    "write",
    "randread",
    "randwrite",
    "rw",
    "randrw",
    "trim",
    "randtrim",
    "randtrimwrite",
];
/// So many of them do not trim.
const NO_TRIMS: usize = 6;
const BLOCKS: [&str; 5] = ["4k", "8k", "20k", "64k", "256k"];
/// Options of a job that change how its I/O reaches the queue.
const OPTIONS: [&str; 14] = [
    "fsync=1",
    "fsync=7",
    "fdatasync=3",
    "sync=1",
    "thinktime=300",
    "thinktime=9000",
    "startdelay=30ms",
    "prioclass=3",
    "prioclass=1",
    "numjobs=3",
    "end_fsync=1",
    "invalidate=0",
    "nrfiles=6",
    "unlink=1",
];
/// Sections of a job file, each of up to three processes (`numjobs`), and I/Os of each
/// process, at most.
const SECTIONS_MAX: u64 = 3;
const IOS_MAX: u64 = 40;
/// Scenarios with parameters that make them short.
const SCENARIOS: [&str; 7] = [
    "name = 'dd'\nsize = '6m'\nbs = '64k'",
    "name = 'dd'\nsize = '3m'\nbs = '256k'\ndirect = 1",
    "name = 'dd+ls'\nsize = '9m'\nreaders = 3\nreads = 4",
    "name = 'dd+ssh'\nsize = '9m'\nreaders = 2\nread_size = '64k'\nfile_size = '1m'",
    "name = 'dd+cat'\nsize = '9m'\nstart = 0\nfiles = 9\ninode_blocks = 5\ndirectory_blocks = 2",
    "name = 'pvfs-bench'\nops = 30\nbs = '16k'\nmode = 'aio16'\naio_threads = 3",
    "name = 'pvfs-bench'\nops = 30\nbs = '64k'\nmode = 'alt-aio'\nregions = 3",
];
/// What is written to files of control groups, of the legacy hierarchy and of the unified one.
const LEGACY: [&str; 2] = ["'blkio.weight' = 100", "'blkio.weight' = 900"];
const UNIFIED: [&str; 4] = [
    "'io.bfq.weight' = 300",
    "'io.bfq.weight' = 10",
    "'io.max' = 'rbps=1048576 wiops=50'",
    "'io.max' = 'wbps=524288'",
];
/// Arrays of disks, which kernels to 2.6.32 can have.
const ARRAYS: [&str; 3] = [
    "level = 'raid1'\nmembers = 2",
    "level = 'raid0'\nmembers = 3\nchunk_kb = 8",
    "level = 'raid0'\nmembers = 2",
];

/// Bytes that choices are taken from; zeros follow the last.
pub(crate) struct Tape<'a>(std::slice::Iter<'a, u8>);

impl<'a> Tape<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Tape<'a> {
        Tape(data.iter())
    }

    /// An experiment file: a release and a scheduler that it has, settings, a device or an
    /// array of them, patches that may fit, control groups, and a load. Not each is possible.
    pub(crate) fn experiment(&mut self, catalogue: &Catalogue) -> String {
        let releases: Vec<_> = blklab_kernel::releases().collect();
        let kernel = self.one_of(&releases);
        let mut schedulers = catalogue.schedulers();
        schedulers.retain(|s| s.since <= kernel && kernel < s.until);
        let scheduler = self.one_of(&schedulers);
        let on_disk = self.below(2) == 0;
        let mut text = format!("kernel = '{kernel}'\nscheduler = '{}'\n", scheduler.name);
        text += &self.patches(kernel, scheduler.name);
        if !on_disk {
            text += &format!("filesystem = '{}'\n", self.filesystem(catalogue));
        }
        let groups = self.groups(kernel);
        let is_scenario = self.below(4) == 0;
        if !is_scenario {
            let jobs: String = (0..=self.below(SECTIONS_MAX))
                .map(|n| self.job(n, on_disk, &groups))
                .collect();
            text += &format!("job = \"\"\"\n{jobs}\"\"\"\n");
        }
        text += "[tunables]\n";
        for t in scheduler.tunables.iter().filter(|t| t.is_in(kernel)) {
            if self.below(4) == 0 {
                text += &format!("{} = {}\n", t.name, self.value(t.default, t.range));
            }
        }
        text += &self.settings("queue", &QUEUE);
        text += &self.settings("vm", &MACHINE);
        text += &format!("[device]\nname = '{}'\n", self.one_of(&DEVICES));
        if self.below(3) == 0 {
            text += &format!("queue_depth = {}\n", self.one_of(&["1", "2", "7", "31"]));
        }
        if kernel < KernelVersion::v2_6(33) && self.below(3) == 0 {
            text += &format!("[md]\n{}\n", self.one_of(&ARRAYS));
        }
        for (name, files) in &groups {
            text += &format!("[cgroup.'{name}']\n{files}\n");
        }
        if is_scenario {
            text += &format!("[scenario]\n{}\n", self.one_of(&SCENARIOS));
        }
        text
    }

    fn byte(&mut self) -> u64 {
        self.0.next().map_or(0, |b| u64::from(*b))
    }

    /// A number below `n`.
    fn below(&mut self, n: u64) -> u64 {
        (self.byte() << 8 | self.byte()) % n
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// A table of some of these.
    fn settings(&mut self, table: &str, all: &[(&str, &[&str])]) -> String {
        let mut text = format!("[{table}]\n");
        for (key, values) in all {
            if self.below(3) == 0 {
                text += &format!("{key} = {}\n", self.one_of(values));
            }
        }
        text
    }

    /// At most one, of those that may fit.
    fn patches(&mut self, kernel: KernelVersion, scheduler: &str) -> String {
        let fits = |p: &&blklab_kernel::Patch| {
            p.since <= kernel && kernel < p.until && p.scheduler.is_none_or(|s| s == scheduler)
        };
        let patches: Vec<_> = blklab_kernel::PATCHES.iter().filter(fits).collect();
        if patches.is_empty() || self.below(3) > 0 {
            return String::new();
        }
        format!("patches = ['{}']\n", self.one_of(&patches).name)
    }

    /// Up to two control groups, one of which may be in the other, where the kernel can have
    /// any.
    fn groups(&mut self, kernel: KernelVersion) -> Vec<(&'static str, &'static str)> {
        let names = ["a", self.one_of(&["b", "a/b"])];
        let files: &[&str] = match kernel {
            k if k < KernelVersion::v2_6(33) => return Vec::new(),
            k if k < KernelVersion::new(5, 0) => &LEGACY,
            _ => &UNIFIED,
        };
        let number = self.below(8).saturating_sub(5) as usize;
        let with_files = names[..number].iter().map(|n| (*n, self.one_of(files)));
        with_files.collect()
    }

    fn job(&mut self, n: u64, on_disk: bool, groups: &[(&str, &str)]) -> String {
        // Files cannot be trimmed.
        let patterns = if on_disk {
            &PATTERNS[..]
        } else {
            &PATTERNS[..NO_TRIMS]
        };
        let mut job = format!(
            "[j{n}]\nrw={}\nbs={}\n",
            self.one_of(patterns),
            self.one_of(&BLOCKS)
        );
        job += &format!(
            "number_ios={}\nsize={}m\n",
            1 + self.below(IOS_MAX),
            1 + self.below(4)
        );
        if on_disk {
            job += "filename=/dev/sda\n";
        }
        match self.below(3) {
            0 => job += "ioengine=psync\n",
            1 => job += "ioengine=psync\ndirect=1\n",
            _ => {
                job += &format!(
                    "ioengine=libaio\ndirect=1\niodepth={}\n",
                    1 + self.below(20)
                );
            }
        }
        if !groups.is_empty() && self.below(2) == 0 {
            job += &format!("cgroup={}\n", self.one_of(groups).0);
        }
        for _ in 0..self.below(3) {
            job += self.one_of(&OPTIONS);
            job += "\n";
        }
        job
    }

    /// One of all, and some of its options that take words.
    fn filesystem(&mut self, catalogue: &Catalogue) -> String {
        let name = self.one_of(&catalogue.filesystems());
        let mut text = name.to_owned();
        for option in catalogue.filesystem_rows(name).expect("it is listed") {
            let words = option.words();
            if !words.is_empty() && self.below(4) == 0 {
                let word = &words[self.below(words.len() as u64) as usize];
                text += &format!(":{}={word}", option.name());
            }
        }
        text
    }

    /// A value of a tunable, at an end of its range or near its default.
    fn value(&mut self, default: i64, range: (i64, i64)) -> i64 {
        let near = match self.below(5) {
            0 => range.0,
            1 => range.0.saturating_add(1),
            2 => default / 3,
            3 => default,
            _ => default.saturating_mul(5),
        };
        near.clamp(range.0, range.1)
    }
}
