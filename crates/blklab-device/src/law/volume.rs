// SPDX-License-Identifier: MIT OR Apache-2.0
//! Law `volume`: a latency and a limit of the rate, as volumes of clouds and disks
//! of virtual machines have them.
//!
//! ```text
//! begin = when it comes, but not before the command before it has had its share
//! share = max(I/Os / iops, bytes / rate)
//! end   = begin + (read_us or write_us, times the next of its percentiles)
//! ```
//!
//! A command counts as one I/O for each `io_bytes` begun. Below the limit commands
//! take the latency; at the limit Q of them in flight take Q shares, each as long
//! as the others: under throttling the latency is flat. While credits last, up to
//! `burst_ios`, which come back at `iops` when they are not used, `burst_iops` and
//! `burst_mb_per_s` are the limits.

use super::parallel::InFlight;
use super::percentiles::Percentiles;
use crate::device::{Command, Device, DeviceCx, EIO};
use crate::error::DeviceError;
use crate::info::{Build, DeviceInfo, Settings};
use crate::limits::{DeviceLimits, Driver};
use crate::param::{Kind, ParamInfo, TIME_US, Values, param};
use blklab_types::{DiscardLimits, Op, SECTOR_BYTES, Span, Time, Unit};

const IOPS: Kind = Kind::Count {
    min: 0,
    max: 100_000_000,
};
const RATE: Kind = Kind::Real {
    min: 0.0,
    max: 1_000_000.0,
};

#[rustfmt::skip]
pub(crate) const PARAMS: &[ParamInfo] = &[
    param("capacity_sectors", Kind::Sectors { min: 1_000, max: 1 << 40 }, "100GiB", "size"),
    param("read_us", TIME_US, "500", "time of a read below the limits"),
    param("write_us", TIME_US, "500", "the same of a write"),
    param("read_percentiles", Kind::Text, "", "how times of reads differ: percents and thousandths of read_us, as in 0:500,50:850,99:4000,100:30000; none: not at all"),
    param("write_percentiles", Kind::Text, "", "the same of writes and write_us"),
    param("flush_us", TIME_US, "0", "the same of a flush and of a discard, which count for no limit"),
    param("iops", IOPS, "3000", "I/Os per second; 0: no limit").in_unit(Unit::PerS),
    param("mb_per_s", RATE, "125", "rate in 10^6 B/s; 0: no limit").in_unit(Unit::MbPerS),
    param("io_bytes", Kind::Bytes { min: 512, max: 1 << 30 }, "256KiB", "largest command that counts as one I/O"),
    param("burst_iops", IOPS, "0", "I/Os per second while credits last; 0: as iops").in_unit(Unit::PerS),
    param("burst_mb_per_s", RATE, "0", "rate while credits last; 0: as mb_per_s").in_unit(Unit::MbPerS),
    param("burst_ios", Kind::Count { min: 0, max: 1_000_000_000 }, "0", "most credits, in I/Os; all are there at the begin"),
];

/// Reads and writes of 4 KiB at depth 1 on an EBS volume below its limits, 16,000 of each:
/// reads 410 us at the median, 1.43, 3.31 and 5.22 ms at 90, 99 and 99.9 %, writes 556 us
/// at the median and 592 on the average (buildkite/elastic-ci-stack-for-aws#682). What lies
/// between is drawn so that the means are those; beyond 99.9 %, and of writes beyond the
/// median, it is assumed. Thousandths of the means.
const EBS_READS: &str = "0:440,25:540,50:626,75:730,85:1040,90:2140,99:5010,99.9:7890,100:30000";
const EBS_WRITES: &str = "0:700,25:830,50:939,75:1000,90:1150,99:2150,99.9:4200,100:15000";

/// A volume by its limits: AWS EBS gp3 as it comes.
pub(crate) const GP3: DeviceInfo = DeviceInfo {
    name: "gp3",
    summary: "AWS EBS gp3 volume as it comes, 100 GiB: 3000 I/Os and 125 MiB per second",
    source: "AWS documentation: limits, and that up to 256 KiB count as one I/O; times of one I/O at \
             a time below the limits: buildkite/elastic-ci-stack-for-aws#682",
    params: PARAMS,
    preset: &[
        ("read_us", "655"),
        ("write_us", "592"),
        ("read_percentiles", EBS_READS),
        ("write_percentiles", EBS_WRITES),
        ("mb_per_s", "131.072"),
    ],
    queue_depth: 1023,
    limits: DeviceLimits {
        driver: Driver::Nvme,
        hw_queues: 128,
        max_segments: Some(127),
        max_sectors: Some(512),
        rotational: Some(false),
        has_flush: false,
        ..DeviceLimits::NONE
    },
    settings: Settings::NONE,
    build: Build::Plain(build),
};

/// The law itself.
pub(crate) const VOLUME: DeviceInfo = DeviceInfo {
    name: "volume",
    summary: "a latency and a limit of the rate, as volumes of clouds have them",
    source: "law: flat latency under throttling, credits for bursts",
    preset: &[],
    limits: DeviceLimits {
        rotational: Some(false),
        ..DeviceLimits::NONE
    },
    queue_depth: 128,
    ..GP3
};

/// AWS EBS gp2, 100 GiB.
pub(crate) const GP2: DeviceInfo = DeviceInfo {
    name: "gp2",
    summary: "AWS EBS gp2 volume, 100 GiB: 300 I/Os per second, 3000 while credits last",
    source: "AWS documentation: 3 I/Os per second and GiB, bursts of 3000 with 5.4 million \
             credits, 128 MiB/s; times as gp3",
    preset: &[
        ("read_us", "655"),
        ("write_us", "592"),
        ("read_percentiles", EBS_READS),
        ("write_percentiles", EBS_WRITES),
        ("iops", "300"),
        ("mb_per_s", "134.217"),
        ("burst_iops", "3000"),
        ("burst_ios", "5400000"),
    ],
    ..GP3
};

/// Google Cloud pd-ssd, 500 GiB.
pub(crate) const PD_SSD: DeviceInfo = DeviceInfo {
    name: "pd-ssd",
    summary: "Google Cloud pd-ssd, 500 GiB: 15,000 I/Os and 240 MiB per second",
    source: "Google Cloud documentation: 30 I/Os and 0.48 MiB per second and GiB; read_us and \
             write_us are typical, not measured, and spread as those of gp3 (assumed)",
    preset: &[
        ("capacity_sectors", "500GiB"),
        ("read_us", "700"),
        ("write_us", "800"),
        ("read_percentiles", EBS_READS),
        ("write_percentiles", EBS_WRITES),
        ("iops", "15000"),
        ("mb_per_s", "251.658"),
        ("io_bytes", "1GiB"),
    ],
    // 1 GiB in steps of 4 KiB is what `lsblk --discard` shows there.
    limits: DeviceLimits {
        discard: Some(DiscardLimits {
            max_sectors: 1 << 21,
            granularity_sectors: 8,
        }),
        ..VOLUME.limits
    },
    queue_depth: 128,
    ..GP3
};

/// Azure Premium SSD P20.
pub(crate) const AZURE_P20: DeviceInfo = DeviceInfo {
    name: "azure-p20",
    summary: "Azure Premium SSD P20, 512 GiB: 2300 I/Os per second, 3500 while credits last",
    source: "Azure documentation: 2300 I/Os and 150 MB per second, bursts of 3500 and 170 for 30 \
             minutes, 256 KiB count as one I/O; read_us and write_us are typical, not measured, and spread \
             as those of gp3 (assumed)",
    preset: &[
        ("capacity_sectors", "512GiB"),
        ("read_us", "1500"),
        ("write_us", "1800"),
        ("read_percentiles", EBS_READS),
        ("write_percentiles", EBS_WRITES),
        ("iops", "2300"),
        ("mb_per_s", "150"),
        ("burst_iops", "3500"),
        ("burst_mb_per_s", "170"),
        ("burst_ios", "2160000"),
    ],
    // What it says of discards is not at hand.
    limits: VOLUME.limits,
    ..PD_SSD
};

/// A disk of a virtual machine on a fast drive of its host.
pub(crate) const VIRTIO_BLK: DeviceInfo = DeviceInfo {
    name: "virtio-blk",
    summary: "disk of a virtual machine (QEMU, virtio-blk, one I/O thread) on NVMe, 100 GiB",
    source: "typical: 100 us and 40 us with the way through the host, 120,000 I/Os per second of \
             one I/O thread, 3200 MB/s of the host's drive (nvme-datacenter); Linux \
             drivers/block/virtio_blk.c (limits)",
    preset: &[
        ("read_us", "100"),
        ("write_us", "40"),
        ("flush_us", "500"),
        ("iops", "120000"),
        ("mb_per_s", "3200"),
        ("io_bytes", "1GiB"),
    ],
    queue_depth: 256,
    limits: DeviceLimits {
        driver: Driver::Virtio,
        max_segments: Some(254),
        rotational: Some(false),
        // `max-discard-sectors` of QEMU's device as it comes.
        discard: Some(DiscardLimits {
            max_sectors: i32::MAX as u32 >> 9,
            granularity_sectors: 1,
        }),
        ..DeviceLimits::NONE
    },
    ..GP3
};

/// Limits of the rate; 0: none.
#[derive(Clone, Copy, Debug)]
struct Limits {
    iops: u64,
    bytes_per_s: u64,
}

impl Limits {
    /// What a command takes of them.
    fn share(self, ios: u64, bytes: u64) -> Span {
        let part = |n: u64, per_s: u64| match per_s {
            0 => 0,
            _ => (u128::from(n) * 1_000_000_000 / u128::from(per_s)) as u64,
        };
        Span(part(ios, self.iops).max(part(bytes, self.bytes_per_s)))
    }
}

#[derive(Clone)]
struct Volume {
    capacity_sectors: u64,
    read: Span,
    write: Span,
    reads: Percentiles,
    writes: Percentiles,
    flush: Span,
    io_bytes: u64,
    limits: Limits,
    burst: Limits,
    /// Credits and the most there can be, in I/Os of 10^-9, and when they were
    /// counted.
    credits: u64,
    most_credits: u64,
    counted: Time,
    /// When the last command has had its share.
    free: Time,
    in_flight: InFlight,
}

/// One I/O of credits.
const CREDIT: u64 = 1_000_000_000;

impl Volume {
    /// When a command begins.
    fn begin(&mut self, now: Time, bytes: u64) -> Time {
        let ios = bytes.div_ceil(self.io_bytes).max(1);
        let begin = now.max(self.free);
        let earned = u128::from((begin - self.counted).ns()) * u128::from(self.limits.iops);
        let credits = u128::from(self.credits) + earned;
        self.credits = credits.min(u128::from(self.most_credits)) as u64;
        self.counted = begin;
        let limits = if self.credits >= ios * CREDIT {
            self.credits -= ios * CREDIT;
            self.burst
        } else {
            self.limits
        };
        self.free = begin + limits.share(ios, bytes);
        begin
    }
}

impl Device for Volume {
    fn copy(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        if cmd.exceeds(self.capacity_sectors) {
            cx.fail(cmd.id, EIO);
            return;
        }
        let bytes = u64::from(cmd.nr_sectors) * SECTOR_BYTES;
        let end = match cmd.op {
            Op::Read => self.begin(cx.now, bytes) + self.reads.next(self.read),
            Op::Write => self.begin(cx.now, bytes) + self.writes.next(self.write),
            Op::Flush | Op::Discard => cx.now + self.flush,
        };
        self.in_flight.push(cx, cmd.id, cx.now, end);
    }

    fn wake(&mut self, cx: &mut DeviceCx<'_>, _token: u64) {
        self.in_flight.pop(cx);
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(self.capacity_sectors)
    }
}

pub(crate) fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    let time = |name| Span(values.int(name));
    let limits = Limits {
        iops: values.int("iops"),
        bytes_per_s: (values.real("mb_per_s") * 1e6) as u64,
    };
    let burst = Limits {
        iops: values.int("burst_iops"),
        bytes_per_s: (values.real("burst_mb_per_s") * 1e6) as u64,
    };
    let unless_none = |burst: u64, steady: u64| if burst == 0 { steady } else { burst };
    let most_credits = values.int("burst_ios") * CREDIT;
    if most_credits > 0 && limits.iops == 0 {
        return Err(values.bad("burst_ios", "0 where iops sets no limit".into()));
    }
    Ok(Box::new(Volume {
        capacity_sectors: values.int("capacity_sectors"),
        read: time("read_us"),
        write: time("write_us"),
        reads: Percentiles::of_param(values, "read_percentiles", 0)?,
        writes: Percentiles::of_param(values, "write_percentiles", u64::MAX)?,
        flush: time("flush_us"),
        io_bytes: values.int("io_bytes"),
        limits,
        burst: Limits {
            iops: unless_none(burst.iops, limits.iops),
            bytes_per_s: unless_none(burst.bytes_per_s, limits.bytes_per_s),
        },
        credits: most_credits,
        most_credits,
        counted: Time::ZERO,
        free: Time::ZERO,
        in_flight: InFlight::with_depth(depth),
    }))
}

#[cfg(test)]
mod tests {
    use crate::host::Host;
    use blklab_types::{BioFlags, Op, Time};

    /// When `n` commands of so many sectors, handed over at once, are done, us.
    fn ends(spec: &str, n: u64, sectors: u32) -> Vec<u64> {
        let mut host = Host::build(spec, 64);
        for i in 0..n {
            host.submit(Op::Read, BioFlags::NONE, i * 4096, sectors);
        }
        host.drain().iter().map(|f| f.ended.ns() / 1000).collect()
    }

    #[test]
    fn the_latency_is_flat_at_the_limit() {
        let spec = "volume,read_us=500,iops=1000,mb_per_s=0";
        assert_eq!(ends(spec, 3, 8), [500, 1500, 2500]);
        // 512 KiB count as two I/Os.
        assert_eq!(ends(spec, 2, 1024), [500, 2500]);
        // 4096 B at 4.096 MB/s take as long as one I/O, 8192 twice.
        let spec = "volume,read_us=500,iops=1000,mb_per_s=4.096";
        assert_eq!(ends(spec, 2, 16), [500, 2500]);
        assert_eq!(
            ends("volume,read_us=500,iops=0,mb_per_s=0", 2, 8),
            [500, 500]
        );
    }

    /// 16,000 I/Os of each kind at depth 1: buildkite/elastic-ci-stack-for-aws#682.
    #[test]
    fn gp3_has_the_tail_of_a_measured_volume() {
        for (op, mean_us, percentiles) in [
            (Op::Read, 655, &[(50, 410), (90, 1430), (99, 3310)][..]),
            (Op::Write, 592, &[(50, 556)]),
        ] {
            let mut host = Host::build("gp3,iops=0,mb_per_s=0", 1);
            let mut us: Vec<u64> = (0..16_000)
                .map(|i| {
                    host.submit(op, BioFlags::NONE, i * 8, 8);
                    let done = host.drain()[0];
                    done.ended.since(done.submitted).ns() / 1000
                })
                .collect();
            us.sort_unstable();
            let near = |what: &str, got: u64, expected: u64| {
                assert!(
                    got.abs_diff(expected) * 20 <= expected,
                    "{op:?} {what}: {got} us"
                );
            };
            near("mean", us.iter().sum::<u64>() / 16_000, mean_us);
            for (percent, expected) in percentiles {
                near("percentile", us[16_000 * percent / 100], *expected);
            }
        }
    }

    #[test]
    fn credits_are_used_up_and_come_back() {
        let spec = "volume,read_us=0,iops=1000,mb_per_s=0,burst_iops=10000,burst_ios=2";
        // Two at 0.1 ms; in the 0.2 ms a fifth of a credit has come back, at most.
        assert_eq!(ends(spec, 4, 8), [0, 100, 200, 1200]);
        let mut host = Host::build(spec, 64);
        for _ in 0..3 {
            host.submit(Op::Write, BioFlags::NONE, 0, 8);
        }
        host.drain();
        // Nothing is left at 200 us but 0.2; one and more is there at 1200.
        host.run_until(Time(2_000_000));
        host.submit(Op::Write, BioFlags::NONE, 0, 8);
        host.submit(Op::Write, BioFlags::NONE, 0, 8);
        let last = host.drain();
        assert_eq!(last[1].submitted, Time(2_000_000));
    }

    #[test]
    fn credits_need_a_rate_at_which_they_come_back() {
        let (info, params) = crate::parse_spec("volume,iops=0,burst_ios=5").expect("a spec");
        let made = crate::build(info.name, &params, 1, &|_| Err(String::new()));
        assert_eq!(
            made.map(|_| ()).expect_err("refused").to_string(),
            "device volume: burst_ios=5: expected 0 where iops sets no limit"
        );
    }
}
