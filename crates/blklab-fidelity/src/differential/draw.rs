// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments drawn at random.

use super::case::{Case, Job, Row};
use crate::causes::Draw;
use blklab_device::Driver;

/// What is drawn from.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Release.
    pub kernel: String,
    /// One of these schedulers.
    pub schedulers: Vec<String>,
}

/// A device, and what may be drawn of it.
struct DeviceRow {
    name: &'static str,
    /// Parameters: name, and values of which one is drawn.
    params: &'static [(&'static str, &'static [&'static str])],
    /// Depths to choose from.
    depths: &'static [u64],
    /// Sectors of it that jobs use, in MiB.
    mib: u64,
    /// How long an I/O takes there, in us: the slower, the fewer of them.
    us: u64,
}

impl DeviceRow {
    /// Whether Linux has it behind a SCSI driver, which asks for its own budget; the target
    /// kernel has virtio_blk.
    fn is_scsi(&self) -> bool {
        let limits = blklab_device::limits(self.name, &[]);
        limits.is_ok_and(|limits| limits.driver == Driver::Scsi)
    }
}

const MICROSECONDS: &[&str] = &["100us", "200us", "500us", "1ms", "3ms", "5ms"];

const DEVICES: &[DeviceRow] = &[
    DeviceRow {
        name: "null_blk",
        params: &[("completion_nsec", MICROSECONDS)],
        depths: &[1, 2, 4, 16, 31, 64, 128],
        mib: 4096,
        us: 1000,
    },
    DeviceRow {
        name: "scsi_debug",
        params: &[("ndelay", MICROSECONDS)],
        depths: &[1, 4, 16, 32, 192],
        mib: 2048,
        us: 1000,
    },
    DeviceRow {
        name: "simdisk",
        params: &[
            ("mode", &["0"]),
            ("fixed_ns", &["100us", "200us", "1ms", "4ms"]),
            ("sector_ns", &["0", "100", "5000"]),
        ],
        depths: &[1, 4, 8, 31],
        mib: 2048,
        us: 2000,
    },
    DeviceRow {
        name: "simdisk",
        params: &[("mode", &["1"]), ("order", &["0", "1"])],
        depths: &[1, 4, 31],
        mib: 2048,
        us: 12_000,
    },
    DeviceRow {
        name: "parallel",
        params: &[
            ("read_ns", MICROSECONDS),
            ("write_ns", MICROSECONDS),
            ("ns_per_sector", &["0", "50"]),
        ],
        depths: &[4, 32, 64],
        mib: 4096,
        us: 1500,
    },
    DeviceRow {
        name: "serial",
        params: &[
            ("read_ns", MICROSECONDS),
            ("write_ns", MICROSECONDS),
            ("ns_per_sector", &["0", "1000"]),
        ],
        depths: &[1, 2, 8, 32],
        mib: 4096,
        us: 4000,
    },
    DeviceRow {
        name: "sata-7200-2008",
        params: &[],
        depths: &[1, 4, 31],
        mib: 65_536,
        us: 12_000,
    },
    DeviceRow {
        name: "sata-ssd",
        params: &[],
        depths: &[1, 8, 32],
        mib: 16_384,
        us: 300,
    },
    DeviceRow {
        name: "ssd-x25m",
        params: &[],
        depths: &[1, 32],
        mib: 16_384,
        us: 300,
    },
    DeviceRow {
        name: "nvme-consumer",
        params: &[],
        depths: &[2, 16, 64, 256],
        mib: 65_536,
        us: 100,
    },
    DeviceRow {
        name: "nvme-datacenter",
        params: &[],
        depths: &[16, 64, 256],
        mib: 65_536,
        us: 100,
    },
    DeviceRow {
        name: "emmc-5.1",
        params: &[],
        depths: &[1],
        mib: 16_384,
        us: 500,
    },
    DeviceRow {
        name: "virtio-blk",
        params: &[],
        depths: &[16, 128, 256],
        mib: 16_384,
        us: 150,
    },
];

/// A tunable, and values within its range.
type Tunable = (&'static str, &'static [&'static str]);

/// Tunables by scheduler.
fn tunables(scheduler: &str) -> &'static [Tunable] {
    match scheduler {
        "mq-deadline" => &[
            ("read_expire", &["1", "20", "100", "1000"]),
            ("write_expire", &["1", "50", "500", "10000"]),
            ("writes_starved", &["0", "1", "4", "8"]),
            ("front_merges", &["0"]),
            ("fifo_batch", &["1", "4", "64"]),
            ("prio_aging_expire", &["10", "500"]),
        ],
        "kyber" => &[
            ("read_lat_nsec", &["100000", "500000", "8000000"]),
            ("write_lat_nsec", &["200000", "1000000", "40000000"]),
        ],
        "bfq" => &[
            ("slice_idle", &["0", "2", "16"]),
            ("low_latency", &["0"]),
            ("max_budget", &["512", "4096"]),
            ("timeout_sync", &["10", "40", "250"]),
            ("strict_guarantees", &["1"]),
            ("fifo_expire_sync", &["10", "500"]),
            ("back_seek_max", &["0", "1024"]),
            ("back_seek_penalty", &["1", "8"]),
        ],
        _ => &[],
    }
}

/// Settings of the queue.
const QUEUE: &[Tunable] = &[
    ("max_sectors_kb", &["16", "64", "128", "512", "1024"]),
    ("nomerges", &["1", "2"]),
    ("rotational", &["0", "1"]),
];

/// Depths of schedulers.
const NR_REQUESTS: &[u64] = &[8, 16, 32, 64, 128, 256];

const BLOCK_SIZES: &[&str] = &["4k", "4k", "4k", "8k", "16k", "64k", "128k", "256k", "1m"];
const DIRECTIONS: &[&str] = &[
    "read",
    "write",
    "randread",
    "randread",
    "randwrite",
    "randrw",
    "rw",
];

/// I/Os of all jobs of a case, where the device is not slow.
const IOS: u64 = 3000;
/// Processor time of an I/O in fio: more than its readings of the clock take on the kernel.
const IO_COST_NS: &str = "3000";
/// Virtual time that they may take, in us.
const TIME_US: u64 = 6_000_000;

/// The experiment of a seed with a number.
pub fn draw(wanted: &Wanted, seed: u64, number: u64) -> Case {
    let mut d = Draw::new(seed, "differential", number);
    let devices: Vec<&DeviceRow> = DEVICES.iter().filter(|row| !row.is_scsi()).collect();
    let device = d.one(&devices);
    let at = d.number(0..=wanted.schedulers.len() as u64 - 1) as usize;
    let scheduler = wanted.schedulers[at].clone();
    let mut case = Case {
        id: format!("random-{seed}-{number}"),
        kernel: wanted.kernel.clone(),
        device: device.name.to_owned(),
        ..Case::default()
    };
    let row = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    for (name, values) in device.params {
        case.params.push(row(name, d.one(values)));
    }
    let depth = d.one(device.depths);
    case.params.push(row("queue_depth", &depth.to_string()));
    for (name, values) in tunables(&scheduler) {
        if d.once_in(4) {
            case.tunables.push(row(name, d.one(values)));
        }
    }
    for (name, values) in QUEUE {
        if d.once_in(5) {
            case.queue.push(row(name, d.one(values)));
        }
    }
    // Without a scheduler it is the depth of the device.
    if scheduler != "none" && d.once_in(3) {
        let number = d.one(NR_REQUESTS).to_string();
        case.queue.push(row("nr_requests", &number));
    }
    case.scheduler = scheduler;
    case.vm = vec![row("io_cost_ns", IO_COST_NS)];
    case.global = vec![
        row("filename", "/dev/sda"),
        row("direct", "1"),
        row("randrepeat", "1"),
        row("norandommap", ""),
    ];
    let nr_jobs = d.one(&[1, 1, 2, 2, 3, 4]);
    let ios = (TIME_US / device.us).min(IOS) / nr_jobs;
    // Which of several processes that start at one instant runs first is up to the scheduler
    // of processes.
    let is_apart = !d.once_in(6);
    for n in 0..nr_jobs {
        let job = job(&mut d, n, device.mib, ios, is_apart);
        case.jobs.push(job);
    }
    case
}

fn job(d: &mut Draw, n: u64, mib: u64, ios: u64, is_apart: bool) -> Job {
    let mut own: Vec<Row> = Vec::new();
    let mut put = |key: &str, value: String| own.push((key.to_owned(), value));
    let rw = d.one(DIRECTIONS);
    put("rw", rw.to_owned());
    if rw.ends_with("rw") && d.once_in(2) {
        put("rwmixread", d.number(10..=90).to_string());
    }
    put("bs", d.one(BLOCK_SIZES).to_owned());
    let engine = d.one(&["psync", "sync", "libaio", "libaio", "io_uring"]);
    put("ioengine", engine.to_owned());
    let is_asynchronous = matches!(engine, "libaio" | "io_uring");
    if is_asynchronous {
        let depth = d.one(&[1_u64, 2, 4, 8, 16, 32, 64]);
        put("iodepth", depth.to_string());
        if depth >= 8 && d.once_in(4) {
            put("iodepth_batch_submit", d.one(&["2", "4", "8"]).to_owned());
        }
    }
    let start = d.number(0..=3) * mib / 4;
    put("offset", format!("{start}m"));
    let size = (mib / 4).min(d.one(&[16, 256, 4096]));
    put("size", format!("{size}m"));
    put(
        "number_ios",
        d.number(ios.min(30)..=ios.max(30)).to_string(),
    );
    if d.once_in(5) {
        put("thinktime", d.one(&["100", "700", "3000"]).to_owned());
    } else if d.once_in(6) {
        put("rate_iops", d.one(&["100", "700", "3000"]).to_owned());
    }
    if n > 0 && is_apart {
        // fio looks whether others are due 200 ms after it has started a job: it gives that one
        // 100 ms to prepare itself, and sleeps as long when it has released it. So each look
        // starts one.
        put("startdelay", format!("{}ms", 200 * n - 100));
    }
    if d.once_in(8) {
        put("prioclass", d.one(&["1", "2", "3"]).to_owned());
    }
    if !is_apart && d.once_in(3) {
        put("numjobs", d.number(2..=3).to_string());
    }
    (format!("job{n}"), own)
}
