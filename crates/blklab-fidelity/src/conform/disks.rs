// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measured disks: how far are the model's response times from the real ones?
//!
//! A disk is a `.diskspecs` file of DiskSim; the requests measured on the real
//! drive are in the `.trace` file beside it. See [`blklab_device::replay`] for
//! the figure.

use blklab_experiment::{DeviceSpec, Experiment, Workload};
use blklab_types::Error;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Outcome of one disk.
#[derive(Clone, Debug, Serialize)]
pub struct DiskReport {
    /// Name of the disk: that of its file.
    pub id: String,
    /// Requests in the trace.
    pub requests: usize,
    /// Root mean square of the horizontal distance between the distributions
    /// of response times, ms.
    pub rms_ms: f64,
    /// DiskSim's own, as published, for the disks of its validation set, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disksim_rms_ms: Option<f64>,
    /// Mean response time measured on the disk, ms.
    pub measured_mean_ms: f64,
    /// Mean response time simulated, ms.
    pub simulated_mean_ms: f64,
}

/// DiskSim's own distances (manual of DiskSim 4.0, section on validation): what the
/// name of a disk's file contains, without punctuation, and us.
const DISKSIM: [(&str, u16); 10] = [
    ("atlas10k", 268),
    ("atlasiii", 378),
    ("barracuda", 349),
    ("cheetah4lp", 318),
    ("cheetah9lp", 107),
    ("c2247", 90),
    ("c2490", 254),
    ("c3323", 306),
    ("ibm18es", 135),
    ("rz26", 340),
];

fn disksim_rms_ms(id: &str) -> Option<f64> {
    let letters = id.chars().filter(char::is_ascii_alphanumeric);
    let name: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    let named = DISKSIM.iter().find(|(part, _)| name.contains(part));
    named.map(|(_, us)| f64::from(*us) / 1000.0)
}

/// Whether a path is the description of a disk.
pub(super) fn is_disk(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "diskspecs")
}

/// The trace of a disk.
pub(super) fn trace_of(disk: &Path) -> PathBuf {
    disk.with_extension("trace")
}

/// Runs the trace of one disk.
///
/// # Errors
/// If the disk or its trace cannot be read or used.
pub fn run_disk(disk: &Path) -> Result<DiskReport, Error> {
    let id = disk.file_stem().unwrap_or_default().to_string_lossy();
    let mut e = Experiment::new(&id, Workload::Processes(Vec::new()));
    e.device = DeviceSpec {
        name: "disksim".to_owned(),
        params: vec![("file".to_owned(), disk.display().to_string())],
    };
    let mut device = blklab_sim::build_device(&e)?;
    let trace = trace_of(disk);
    let shown = trace.display().to_string();
    let text = std::fs::read_to_string(&trace)
        .map_err(|e| Error::new(format!("cannot read the disk's trace: {e}")).in_file(&shown))?;
    let requests = blklab_device::parse_trace(&shown, &text);
    let requests = requests.map_err(blklab_sim::device_refused)?;
    let distance = blklab_device::replay(device.as_mut(), &requests);
    Ok(DiskReport {
        disksim_rms_ms: disksim_rms_ms(&id),
        id: id.into_owned(),
        requests: distance.requests,
        rms_ms: distance.rms_ms,
        measured_mean_ms: distance.mean_ms[0],
        simulated_mean_ms: distance.mean_ms[1],
    })
}

#[cfg(test)]
mod tests {
    use super::disksim_rms_ms;

    #[test]
    fn names_of_files_find_the_published_figure() {
        for (name, us) in [
            ("atlas10k", 268),
            ("cheetah4LP", 318),
            ("hp_c2490a", 254),
            ("ibm18es", 135),
            ("atlas_III", 378),
        ] {
            assert_eq!(disksim_rms_ms(name), Some(f64::from(us) / 1000.0), "{name}");
        }
        assert_eq!(disksim_rms_ms("my-disk"), None);
    }
}
