// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units of settings, tunables, parameters of devices and options of filesystems.

use blklab_experiment::{Setting, settings};
use blklab_kernel::Unit;
use blklab_sim::{device_rows, filesystem_rows, scheduler_rows};

/// Ends of names, and the unit that each promises: the first that fits.
const ENDS: [(&str, Unit); 24] = [
    ("_centisecs", Unit::Centisecs),
    ("_ms", Unit::Ms),
    ("_us", Unit::Us),
    ("_usec", Unit::Us),
    ("_ns", Unit::Ns),
    ("_nsec", Unit::Ns),
    ("_ps", Unit::Ps),
    ("_bytes", Unit::Bytes),
    ("_kb", Unit::KiB),
    ("_mb", Unit::MiB),
    ("_mib", Unit::MiB),
    ("_gb", Unit::GiB),
    ("_sectors", Unit::Sectors),
    ("_blocks", Unit::Blocks),
    ("_mb_per_s", Unit::MbPerS),
    ("_per_s", Unit::PerS),
    ("_iops", Unit::PerS),
    ("_s", Unit::S),
    ("_rpm", Unit::Rpm),
    ("_percent", Unit::Percent),
    ("_pct", Unit::Percent),
    // Of mke2fs: bytes of the disk to an inode.
    ("_inode_ratio", Unit::Bytes),
    ("_ratio", Unit::Percent),
    ("_ns_per_sector", Unit::Ns),
];

/// Every row that there is.
fn rows() -> impl Iterator<Item = Setting> {
    let own = settings::all().cloned();
    let schedulers = blklab_sched::ALL.iter().flat_map(scheduler_rows);
    let devices = blklab_device::ALL.iter().flat_map(device_rows);
    let filesystems = blklab_fs::ALL.iter().flat_map(filesystem_rows);
    own.chain(schedulers).chain(devices).chain(filesystems)
}

#[test]
fn units_are_those_that_names_promise() {
    let mut promised = ENDS.map(|_| 0);
    for setting in rows() {
        let name = format!("_{}", setting.name());
        let Some(i) = ENDS.iter().position(|(end, _)| name.ends_with(end)) else {
            continue;
        };
        for row in setting.rows() {
            assert_eq!(row.unit, ENDS[i].1, "{} of {}", row.name, setting.owner());
        }
        promised[i] += 1;
    }
    for ((end, _), n) in ENDS.iter().zip(promised) {
        assert!(n > 0, "nothing ends in {end}");
    }
}
