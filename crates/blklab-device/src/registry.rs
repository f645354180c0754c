// SPDX-License-Identifier: MIT OR Apache-2.0
//! All devices by name: laws and presets, their parameters and sources.

use crate::array;
use crate::device::Device;
use crate::disk::{disksim, presets};
use crate::error::DeviceError;
use crate::flash::{mobile, presets as flash};
use crate::info::{Build, DeviceInfo, MAX_QUEUE_DEPTH, ReadText, Settings};
use crate::law::{
    fitted, iocost_drives, measured, null_blk, parallel, scsi_debug, seek, serial, simdisk,
    simdisk_cached, volume,
};
use crate::limits::DeviceLimits;
use crate::param::{Kind, ParamInfo, Values};
use crate::ssd;
use blklab_types::nearest_name;

/// Every device.
pub const ALL: &[DeviceInfo] = &joined::<{ MODELS.len() + iocost_drives::DRIVES.len() }>();

/// The drives known by six numbers behind the others.
const fn joined<const N: usize>() -> [DeviceInfo; N] {
    let mut all = [MODELS[0]; N];
    let mut i = 0;
    while i < N {
        all[i] = if i < MODELS.len() {
            MODELS[i]
        } else {
            iocost_drives::DRIVES[i - MODELS.len()]
        };
        i += 1;
    }
    all
}

const MODELS: &[DeviceInfo] = &[
    DeviceInfo {
        name: "serial",
        summary: "fixed time per command plus time per sector, one at a time",
        source: "exact law of the legacy scheduler measurements",
        params: serial::PARAMS,
        preset: &[],
        queue_depth: 1,
        limits: DeviceLimits::NONE,
        settings: Settings::NONE,
        build: Build::Plain(serial::build),
    },
    DeviceInfo {
        name: "parallel",
        summary: "fixed time per command plus time per sector, in parallel",
        source: "exact law of the legacy scheduler measurements",
        params: serial::PARALLEL_PARAMS,
        preset: &[("read_ns", "150000"), ("write_ns", "300000")],
        queue_depth: 32,
        limits: DeviceLimits::NONE,
        settings: Settings::NONE,
        build: Build::Plain(parallel::build),
    },
    DeviceInfo {
        name: "seek",
        summary: "seek by square root of the distance, one at a time",
        source: "exact law of the legacy scheduler measurements",
        params: seek::PARAMS,
        preset: &[],
        queue_depth: 1,
        limits: DeviceLimits::NONE,
        settings: Settings::NONE,
        build: Build::Plain(seek::build),
    },
    DeviceInfo {
        name: "measured",
        summary: "quantiles of measured service times, one command or several at a time",
        source: "its parameters, as fitted to a trace by trace to-fio or why",
        params: measured::PARAMS,
        preset: &[],
        queue_depth: 32,
        limits: measured::LIMITS,
        settings: Settings::NONE,
        build: Build::Plain(measured::build),
    },
    DeviceInfo {
        name: "null_blk",
        summary: "the kernel's null block device: one time for every command, in parallel",
        source: "law of the measurements on Linux 6.1",
        params: null_blk::PARAMS,
        preset: &[],
        queue_depth: 64,
        limits: null_blk::LIMITS,
        settings: null_blk::SETTINGS,
        build: Build::Plain(null_blk::build),
    },
    DeviceInfo {
        name: "simdisk",
        summary: "simulated disk: mode 0 fixed times, mode 1 a platter of 4 GiB with read-ahead",
        source: "law of the measurements on Linux 6.1",
        params: simdisk::PARAMS,
        preset: &[],
        queue_depth: 31,
        limits: simdisk::LIMITS,
        settings: simdisk::SETTINGS,
        build: Build::Plain(simdisk::build),
    },
    DeviceInfo {
        name: "scsi_debug",
        summary: "the kernel's simulated SCSI disk: one time for every command, in parallel",
        source: "law of the measurements on Linux 6.1",
        params: scsi_debug::PARAMS,
        preset: &[],
        queue_depth: 192,
        limits: scsi_debug::LIMITS,
        settings: scsi_debug::SETTINGS,
        build: Build::Plain(scsi_debug::build),
    },
    DeviceInfo {
        name: "simdisk-2628",
        summary: "simulated disk: a platter of 64 GiB with read-ahead and write cache",
        source: "law of the measurements on Linux 2.6.28",
        params: simdisk_cached::PARAMS,
        preset: &[],
        queue_depth: 31,
        limits: DeviceLimits::NONE,
        settings: simdisk_cached::SETTINGS,
        build: Build::Plain(simdisk_cached::build),
    },
    DeviceInfo {
        name: "fitted",
        summary: "times by direction and size, as seen in a trace, so many commands at a time",
        source: "fitted to a trace by `blklab why`",
        params: fitted::PARAMS,
        preset: &[],
        queue_depth: 32,
        limits: fitted::LIMITS,
        settings: fitted::SETTINGS,
        build: Build::Plain(fitted::build),
    },
    DeviceInfo {
        name: "disksim",
        summary: "a disk described in DiskSim's files (.diskspecs, .model, .seek)",
        source: "DiskSim 4.0 (Carnegie Mellon University), parameter files",
        params: disksim::PARAMS,
        preset: &[],
        queue_depth: 1,
        limits: DeviceLimits::NONE,
        settings: Settings::NONE,
        build: Build::Files(disksim::build),
    },
    presets::SATA_7200_2008,
    presets::SATA_7200_2008_250G,
    presets::SATA_7200_2008_1TB,
    presets::ST2000DM006,
    presets::SMR_8TB,
    presets::LAPTOP_5400,
    presets::SAS_10K,
    presets::SAS_15K,
    presets::ATLAS_10K_V,
    presets::ATLAS_10K,
    presets::CHEETAH_9LP,
    presets::CHEETAH_4LP,
    presets::IBM_18ES,
    presets::ATLAS_III,
    presets::BARRACUDA_4LP,
    presets::HP_C3323A,
    presets::HP_C2490A,
    presets::DEC_RZ26,
    array::CCISS,
    array::SAN_LUN,
    ssd::SSD_X25M,
    ssd::SSD_2010,
    flash::NVME_DATACENTER,
    flash::NVME_CONSUMER,
    flash::SATA_SSD,
    flash::SAMSUNG_980_PRO,
    flash::SAMSUNG_970_PRO,
    flash::MICRON_7300_PRO,
    flash::SAMSUNG_850_EVO,
    flash::SAMSUNG_860_EVO,
    mobile::UFS,
    mobile::EMMC,
    mobile::SD_CARD,
    volume::VOLUME,
    volume::GP3,
    volume::GP2,
    volume::PD_SSD,
    volume::AZURE_P20,
    volume::VIRTIO_BLK,
    iocost_drives::IOCOST,
];

/// Finds a device by name.
///
/// # Errors
///
/// If there is none; the error names all of them and the most similar one.
pub fn find(name: &str) -> Result<&'static DeviceInfo, DeviceError> {
    ALL.iter()
        .find(|d| d.name == name)
        .ok_or_else(|| DeviceError::UnknownDevice {
            name: name.to_owned(),
            nearest: nearest_name(name, ALL.iter().map(|d| d.name)),
            known: ALL.iter().map(|d| d.name).collect(),
        })
}

/// Whether a parameter of a device is the path of a file.
pub fn is_path(device: &str, param: &str) -> bool {
    let params = find(device).map_or(&[][..], |d| d.params);
    let is_path = |p: &ParamInfo| p.name == param && matches!(p.kind, Kind::Path);
    params.iter().any(is_path)
}

/// How many commands a device is given at a time: what the driver's own
/// parameter for it says, or the usual depth.
///
/// # Errors
///
/// If the device or a parameter does not exist, or a value is not possible.
pub fn queue_depth(name: &str, params: &[(String, String)]) -> Result<u32, DeviceError> {
    let info = find(name)?;
    let values = Values::parse(info.name, info.params, info.preset, params)?;
    let given = info.settings.depth.and_then(|param| values.opt(param));
    Ok(given.map_or(info.queue_depth, |depth| {
        u32::try_from(depth).unwrap_or(MAX_QUEUE_DEPTH)
    }))
}

/// A whole number that a parameter of a device comes to, in its base unit: nanoseconds, a
/// count, the place in a list of choices, 1 for what is on; none if it was left open.
///
/// # Errors
///
/// If the device or a parameter does not exist, or a value is not possible.
pub fn number(
    name: &str,
    params: &[(String, String)],
    param: &str,
) -> Result<Option<u64>, DeviceError> {
    let info = find(name)?;
    let values = Values::parse(info.name, info.params, info.preset, params)?;
    Ok(values.opt(param))
}

/// What a device with these parameters imposes on the queue.
///
/// # Errors
///
/// If the device or a parameter does not exist, or a value is not possible.
pub fn limits(name: &str, params: &[(String, String)]) -> Result<DeviceLimits, DeviceError> {
    let info = find(name)?;
    let values = Values::parse(info.name, info.params, info.preset, params)?;
    Ok((info.settings.limits)(&values, info.limits))
}

/// The parameters without those that a multi-queue driver enforces before the
/// device gets a command, and that its queue knows of from [`limits()`].
///
/// # Errors
///
/// If the device does not exist.
pub fn without_driver_limits(
    name: &str,
    params: &[(String, String)],
) -> Result<Params, DeviceError> {
    let enforced = find(name)?.settings.enforced;
    let kept = params
        .iter()
        .filter(|(key, _)| !enforced.contains(&key.as_str()));
    Ok(kept.cloned().collect())
}

/// Builds a device by name with parameters over its defaults.
///
/// `queue_depth` is how many commands the driver holds at most; queues are
/// sized for it, so that nothing is allocated while commands flow. Files that
/// parameters name are read through `read`.
///
/// # Errors
///
/// If the device or a parameter does not exist, a value is not possible, or
/// the values together describe no device.
pub fn build(
    name: &str,
    params: &[(String, String)],
    queue_depth: u32,
    read: &ReadText<'_>,
) -> Result<Box<dyn Device>, DeviceError> {
    let info = find(name)?;
    if !(1..=MAX_QUEUE_DEPTH).contains(&queue_depth) {
        return Err(DeviceError::Impossible {
            device: info.name,
            reason: format!("queue depth {queue_depth}: expected 1 to {MAX_QUEUE_DEPTH}"),
        });
    }
    let values = Values::parse(info.name, info.params, info.preset, params)?;
    match info.build {
        Build::Plain(build) => build(&values, queue_depth),
        Build::Files(build) => build(&values, queue_depth, read),
    }
}

/// Parameters as given: names and values.
pub type Params = Vec<(String, String)>;

/// Splits `name,key=value,key=value` as written on a command line.
///
/// # Errors
///
/// If a part after the name has no `=`.
pub fn parse_spec(text: &str) -> Result<(&'static DeviceInfo, Params), DeviceError> {
    let mut parts = text.split(',').map(str::trim);
    let info = find(parts.next().unwrap_or_default())?;
    let mut params = Vec::new();
    for part in parts {
        let Some((key, value)) = part.split_once('=') else {
            return Err(DeviceError::Impossible {
                device: info.name,
                reason: format!("'{part}' is not of the form parameter=value"),
            });
        };
        params.push((key.trim().to_owned(), value.trim().to_owned()));
    }
    Ok((info, params))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_FILES: fn(&str) -> Result<String, String> = |_| Err("no files here".to_owned());

    fn params(text: &[(&str, &str)]) -> Vec<(String, String)> {
        text.iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    fn error(name: &str, given: &[(&str, &str)]) -> String {
        build(name, &params(given), 1, &NO_FILES)
            .map(|_| ())
            .expect_err("refused")
            .to_string()
    }

    #[test]
    fn every_device_builds_with_its_defaults_and_names_are_unique() {
        for (i, info) in ALL.iter().enumerate() {
            assert!(
                info.needs_files() || build(info.name, &[], info.queue_depth, &NO_FILES).is_ok(),
                "{}",
                info.name
            );
            assert!(ALL[..i].iter().all(|other| other.name != info.name));
            for (name, _) in info.preset {
                assert!(
                    info.params.iter().any(|p| p.name == *name),
                    "{}: {name}",
                    info.name
                );
            }
        }
    }

    #[test]
    fn defaults_written_out_are_accepted() {
        for info in ALL {
            let all: Vec<(String, String)> = info
                .params
                .iter()
                .map(|p| (p.name.to_owned(), info.default_of(p).to_owned()))
                .filter(|(_, value)| !value.is_empty())
                .collect();
            let built = build(info.name, &all, 1, &NO_FILES);
            assert!(built.is_ok() || info.needs_files(), "{}", info.name);
        }
    }

    #[test]
    fn errors_say_what_would_be_right() {
        let text = error("serail", &[]);
        assert!(text.contains("did you mean 'serial'?"), "{text}");
        assert!(text.contains("known: "), "{text}");
        let text = error("serial", &[("read", "1")]);
        assert!(text.contains("did you mean 'read_ns'?"), "{text}");
        let text = error("serial", &[("read_ns", "2 hours")]);
        assert_eq!(
            text,
            "device serial: read_ns=2 hours: expected a time from 0 to 3600s \
             (plain numbers are ns; or ns, us, ms, s)"
        );
        let text = error("seek", &[("order", "closest")]);
        assert_eq!(
            text,
            "device seek: order=closest: expected one of fifo, nearest"
        );
        let text = error("seek", &[("a_ns", "1"), ("a_ns", "2")]);
        assert_eq!(text, "device seek: parameter a_ns is given twice");
        let none = build("serial", &[], 0, &NO_FILES)
            .map(|_| ())
            .expect_err("refused")
            .to_string();
        assert_eq!(none, "device serial: queue depth 0: expected 1 to 65536");
    }

    #[test]
    fn a_spec_is_a_name_and_parameters() {
        let (info, given) = parse_spec("serial,read_ns=2ms, ns_per_sector=0").expect("valid");
        assert_eq!(info.name, "serial");
        assert_eq!(given, params(&[("read_ns", "2ms"), ("ns_per_sector", "0")]));
        let text = parse_spec("serial,2ms")
            .map(|_| ())
            .expect_err("refused")
            .to_string();
        assert_eq!(
            text,
            "device serial: '2ms' is not of the form parameter=value"
        );
    }
}
