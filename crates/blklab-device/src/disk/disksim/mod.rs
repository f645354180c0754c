// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disks described in the files of DiskSim 4.0.
//!
//! A disk of the DiskSim distribution (or one that its extraction tool DIXtrac
//! has measured) is a `.diskspecs` file with the controller's parameters, which
//! names a `.model` file with geometry and mechanics, which names a `.seek` file
//! with measured seek times unless an equation is used. A `.parv` file of the
//! same name describes the system around it; only the time per sector on the
//! slowest bus is used of that. Texts come from whoever calls: a model reads no
//! files.
//!
//! Taken over: rotation, zones with their spares and slips, skews, seeks of every
//! kind, settling, head switch, and of the controller what [`controller`] says.
//! Left out: remapped defects, errors of the rotation speed, access times that are
//! constant or do without rotation, *read any free blocks* (no disk with a
//! validation trace keeps what passes before the sectors that are wanted), *allow
//! almost read hits* and the sneaky ones (alone, a command has nothing to sneak
//! past), and write-on-arrival.

mod controller;
mod layout;
mod text;

use super::geometry::{Geometry, Layout, ZoneSpec};
use super::mechanism::Mechanism;
use super::params::cylinders;
use super::seek::{SeekCurve, SeekTable};
use super::{Disk, Parts};
use crate::device::Device;
use crate::error::DeviceError;
use crate::info::ReadText;
use crate::param::{Kind, ParamInfo, Values, param};
use text::{Block, File, Value};

pub(crate) const PARAMS: &[ParamInfo] = &[param(
    "file",
    Kind::Path,
    "",
    "the .diskspecs file; relative to the experiment file, or to the working directory on \
           the command line",
)];

/// A switch to another head takes so much of what the layout leaves for it, the
/// track skew, or of a seek over one cylinder if that is less. What files say of it
/// is often less, down to a twentieth; three of the four validation traces are met
/// better the nearer this is to all of it, where no switch must come too late.
const SWITCH_PCT: u64 = 90;

/// Builds the disk that parameter `file` names.
pub(crate) fn build(
    values: &Values,
    depth: u32,
    read: &ReadText<'_>,
) -> Result<Box<dyn Device>, DeviceError> {
    let path = values.text("file");
    if path.is_empty() {
        return Err(values.bad("file", "the path of a .diskspecs file".to_owned()));
    }
    let unreadable = |name: &str, reason: String| DeviceError::BadFile {
        file: name.to_owned(),
        line: 0,
        reason: format!("cannot read: {reason}"),
    };
    let text = |name: &str| read(name).map_err(|reason| unreadable(name, reason));
    let specs_text = text(path)?;
    let specs = File {
        name: path,
        text: &specs_text,
    };
    let blocks = text::blocks(specs)?;
    let Some(controller) = blocks.iter().find(|b| b.kind == "disksim_disk") else {
        return Err(specs.error(0, "expected a block 'disksim_disk NAME { … }'".to_owned()));
    };
    let model_path = sourced(controller.text("Model"), path);
    let model_text = model_path.as_deref().map(text).transpose()?;
    let system_path = replace_extension(path, "parv");
    let system_text = read(&system_path).unwrap_or_default();
    let system = text::blocks(File {
        name: &system_path,
        text: &system_text,
    })?;
    let model_blocks = match (&model_path, &model_text) {
        (Some(name), Some(text)) => text::blocks(File { name, text })?,
        _ => blocks.clone(),
    };
    let model = controller
        .block("Model")
        .or_else(|| model_blocks.iter().find(|b| b.kind == "dm_disk"))
        .ok_or_else(|| {
            controller.bad(
                "Model",
                "'source FILE' of a file with a block 'dm_disk NAME { … }'",
            )
        })?;
    let mechanics = layout::part(model, "Mechanical Model", "dm_mech_g1")?;
    let seek_path = mechanics
        .text("Full seek curve")
        .map(|file| beside(file.trim_start_matches("source").trim(), model.file.name));
    let seek_text = match &seek_path {
        Some(path) if is_extracted(mechanics) => text(path)?,
        _ => String::new(),
    };
    let seek = File {
        name: seek_path.as_deref().unwrap_or(path),
        text: &seek_text,
    };
    let parts = parts(controller, model, mechanics, seek, bus_ms(&system)?)?;
    Ok(Box::new(Disk::new(parts, depth)))
}

/// The file that `source FILE` names, which lies in the folder of `of`.
fn sourced(value: Option<&str>, of: &str) -> Option<String> {
    let file = value?.strip_prefix("source")?.trim();
    Some(beside(file, of))
}

/// A file named in file `of`, whose folder it counts from.
fn beside(file: &str, of: &str) -> String {
    match of.rsplit_once('/') {
        Some((folder, _)) if !file.starts_with('/') => format!("{folder}/{file}"),
        _ => file.to_owned(),
    }
}

fn replace_extension(path: &str, extension: &str) -> String {
    let stem = path.strip_suffix(".diskspecs").unwrap_or(path);
    format!("{stem}.{extension}")
}

/// The slowest bus or controller on the way, ms per sector.
fn bus_ms(system: &[Block<'_>]) -> Result<f64, DeviceError> {
    let mut times = system.iter().map(|b| match b.kind {
        "disksim_bus" => b.opt("Read block transfer time"),
        "disksim_ctlr" => b.opt("Bulk sector transfer time"),
        _ => Ok(None),
    });
    times.try_fold(0.0, |slowest, ms| Ok(ms?.unwrap_or(0.0).max(slowest)))
}

fn parts(
    controller: &Block<'_>,
    model: &Block<'_>,
    mechanics: &Block<'_>,
    seek: File<'_>,
    bus_ms: f64,
) -> Result<Parts, DeviceError> {
    let zero_latency = controller.on("Immediate buffer read")?;
    Ok(Parts {
        mech: mechanism(model, mechanics, seek, zero_latency)?,
        overheads: controller::overheads(controller)?,
        bus: controller::bus(controller, bus_ms)?,
        selection: controller::selection(controller)?,
        cache: controller::read_cache(controller)?,
        prefetch_min_sectors: controller.opt("Minimum read-ahead (blks)")?.unwrap_or(0.0) as u64,
        resume_read_ahead: controller.on("Read-ahead on idle hit")?,
        least_write_move_ns: ns(controller.opt("Minimum seek delay")?.unwrap_or(0.0)),
        writes: controller::write_cache(controller)?,
        shingles: None,
    })
}

fn mechanism(
    model: &Block<'_>,
    mechanics: &Block<'_>,
    seek: File<'_>,
    zero_latency: bool,
) -> Result<Mechanism, DeviceError> {
    let rpm = mechanics.within("Rotation speed (in rpms)", 300.0, 100_000.0)?;
    let revolution_ns = (60e9 / rpm).round() as u32;
    let surfaces = model.within("Number of data surfaces", 1.0, 256.0)? as u32;
    let capacity = model.within("Block count", 1.0, 1e14)? as u64;
    let (zones, layout) = layout::zones(model, surfaces, capacity, revolution_ns)?;
    let cylinders = cylinders(&zones, surfaces);
    let table = SeekTable::new(&seek_curve(mechanics, seek, cylinders)?, cylinders);
    let head_switch_ns = ns(mechanics.number("Head switch time")?) as u32;
    let skew_ns = zones.iter().map(|z| z.track_skew_ns).min().unwrap_or(0);
    let switch_ns = u64::from(skew_ns.min(table.ns(1))) * SWITCH_PCT / 100;
    let head_switch_ns = head_switch_ns.max(switch_ns as u32);
    // Some files have a negative one; the measured disk settles no sooner
    // before a write than before a read.
    let settle_ms = mechanics.opt("Add. write settling delay")?.unwrap_or(0.0);
    let settle_ns = ns(settle_ms.min(1000.0)) as i32;
    let geometry = Geometry::new(
        &zones,
        layout,
        surfaces,
        revolution_ns,
        capacity,
        &table,
        head_switch_ns,
    );
    Ok(Mechanism::new(
        geometry,
        table,
        revolution_ns,
        head_switch_ns,
        settle_ns,
        zero_latency,
    ))
}

fn is_extracted(mechanics: &Block<'_>) -> bool {
    mechanics
        .text("Seek type")
        .is_none_or(|t| t.eq_ignore_ascii_case("extracted"))
}

/// The seek curve by its type: `linear`, `curve` (Lee and Katz) and `constant`
/// from the times of a data sheet, `hpl` the equation of the HP laboratories,
/// `hplplus10` the same behind ten measured times, `extracted` a table.
fn seek_curve(
    mechanics: &Block<'_>,
    seek: File<'_>,
    cylinders: u32,
) -> Result<SeekCurve, DeviceError> {
    let ms = |key| mechanics.within(key, 0.0, 1000.0);
    let kind = mechanics.text("Seek type").unwrap_or("extracted");
    match kind.to_ascii_lowercase().as_str() {
        "extracted" => seek_table(seek),
        "constant" => {
            let key = "Constant seek time";
            let ms = match mechanics.opt(key)? {
                Some(_) => ms(key)?,
                None => ms("Average seek time")?,
            };
            Ok(SeekCurve::Table(vec![(1, ms)]))
        }
        "linear" => {
            let points = [
                (1, ms("Single cylinder seek time")?),
                (cylinders.max(6) / 3, ms("Average seek time")?),
                (cylinders.max(6), ms("Full strobe seek time")?),
            ];
            Ok(SeekCurve::Table(points.to_vec()))
        }
        "curve" => Ok(SeekCurve::LeeKatz {
            min_ms: ms("Single cylinder seek time")?,
            avg_ms: ms("Average seek time")?,
            max_ms: ms("Full strobe seek time")?,
            cylinders: cylinders.max(6),
        }),
        "hpl" => equation(mechanics, cylinders, &[]),
        "hplplus10" => {
            let mut first = mechanics.numbers("First ten seek times")?;
            if first.is_empty() {
                first = mechanics.numbers("First 10 seek times")?;
            }
            equation(mechanics, cylinders, &first)
        }
        _ => Err(mechanics.bad(
            "Seek type",
            "linear, curve, constant, hpl, hplplus10 or extracted",
        )),
    }
}

/// `V2 + V3*sqrt(d)` below V1 cylinders, `V4 + V5*d` from there on; V6 for one
/// cylinder unless it is below zero. `first` are measured times from one
/// cylinder on.
fn equation(
    mechanics: &Block<'_>,
    cylinders: u32,
    first: &[f64],
) -> Result<SeekCurve, DeviceError> {
    let key = "HPL seek equation values";
    let values = mechanics.numbers(key)?;
    let &[limit, a_ms, b_ms, c_ms, e_ms, ref one @ ..] = values.as_slice() else {
        return Err(mechanics.bad(key, "five numbers or six"));
    };
    let curve = SeekCurve::ThreePart {
        a_ms,
        b_ms,
        limit: limit.clamp(0.0, 4e9) as u32,
        c_ms,
        e_ms,
    };
    let mut measured = first.to_vec();
    if let (true, [one, ..]) = (measured.is_empty(), one)
        && *one >= 0.0
    {
        measured.push(*one);
    }
    if measured.is_empty() {
        return Ok(curve);
    }
    let begin = measured.iter().zip(1..).map(|(ms, d)| (d, *ms));
    let rest = (measured.len() as u32 + 1..cylinders).map(|d| (d, curve.ms(d)));
    Ok(SeekCurve::Table(begin.chain(rest).collect()))
}

/// Lines of `distance, ms`; anything before the first is a heading.
fn seek_table(file: File<'_>) -> Result<SeekCurve, DeviceError> {
    let mut points: Vec<(u32, f64)> = Vec::new();
    for (i, line) in file.text.lines().enumerate() {
        let Some((distance, ms)) = line.split_once(',') else {
            continue;
        };
        let bad = |expected: &str| file.error(i + 1, format!("expected {expected}"));
        let point = (distance.trim().parse(), ms.trim().parse());
        let (Ok(distance), Ok(ms)) = point else {
            return Err(bad("'distance, milliseconds'"));
        };
        let rising = points.last().is_none_or(|last| last.0 < distance);
        if !rising || !(0.0..=1000.0).contains(&ms) {
            return Err(bad("rising distances and 0 to 1000 ms"));
        }
        points.push((distance, ms));
    }
    if points.is_empty() {
        let reason = "expected lines of 'distance, milliseconds'";
        return Err(file.error(0, reason.to_owned()));
    }
    Ok(SeekCurve::Table(points))
}

/// Nanoseconds of a time in milliseconds; none below zero.
fn ns(ms: f64) -> u64 {
    (ms.clamp(0.0, 1000.0) * 1e6).round() as u64
}
