// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measured machines: does a whole kernel under a known load take as long?
//!
//! A folder holds `results.csv`, a row for each case; `results/CASE.json` names
//! the case's job file in `jobs/`, or the sizes of a program of plain
//! `pwrite()` calls. The real kernel is deterministic but its single times are
//! not repeatable: a shift of the start by a few milliseconds moves them.
//! So a case runs with several seeds, which shift the starts of the jobs, and
//! medians over the seeds are compared.

use super::measured_on::LINUX_2_6_28;
use super::table::rows;
use blklab::analysis::Spread;
use blklab::metric::{self, Numbers};
use blklab::run::{Collect, RunOptions, run};
use blklab::targets::{Planner, Sim};
use blklab_experiment::{DeviceSpec, Experiment, Workload};
use blklab_fiostat::Ddir;
use blklab_types::Error;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The table of a folder.
const TABLE: &str = "results.csv";

/// A figure of a case: here over all seeds, and as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What it is.
    pub name: &'static str,
    /// Unit of the values.
    pub unit: &'static str,
    /// Measured.
    pub measured: f64,
    /// Median over the seeds.
    pub median: f64,
    /// Smallest of all seeds.
    pub lowest: f64,
    /// Largest of all seeds.
    pub highest: f64,
    /// Median over measured value.
    pub ratio: f64,
    /// The ratios that count as agreement; none if the figure is not judged.
    pub allowed: Option<[f64; 2]>,
}

impl Figure {
    fn new(name: &'static str, unit: &'static str, measured: f64, values: Vec<f64>) -> Figure {
        let spread = Spread::new(values);
        Figure {
            name,
            unit,
            measured,
            median: spread.median,
            lowest: spread.min,
            highest: spread.max,
            ratio: spread.median / measured,
            allowed: None,
        }
    }

    fn allowed(self, low: f64, high: f64) -> Figure {
        Figure {
            allowed: Some([low, high]),
            ..self
        }
    }

    /// Whether it agrees; figures that are not judged do.
    pub fn is_within(&self) -> bool {
        let ratio = self.ratio;
        self.allowed
            .is_none_or(|[low, high]| (low..=high).contains(&ratio))
    }
}

/// Outcome of one case.
#[derive(Clone, Debug, Serialize)]
pub struct MachineReport {
    /// Name of the case.
    pub id: String,
    /// Seeds that it ran with.
    pub seeds: u32,
    /// Why it did not run.
    pub skipped: Option<String>,
    /// Its figures; none if it did not run.
    pub figures: Vec<Figure>,
    /// Whether all that are judged agree.
    pub within: bool,
}

/// A case: its row of the table, and what it runs.
#[derive(Clone, Debug)]
pub struct MachineCase {
    /// Name of the case.
    pub id: String,
    row: BTreeMap<String, String>,
    file: String,
    workload: Workload,
    fio: &'static str,
}

/// What one run took.
struct Took {
    writer: Numbers,
    readers: Numbers,
    /// The readers that started beside the writer.
    contended: Numbers,
}

impl Took {
    /// A metric of some of its jobs. NaN if there are none: no bound allows that.
    fn value(&self, jobs: fn(&Took) -> &Numbers, name: &str) -> f64 {
        let wanted = metric::find(name).expect("a metric");
        let value = wanted.metric.of_jobs(jobs(self));
        value.map_or(f64::NAN, |v| wanted.convert(v))
    }
}

/// Whether a folder holds measured machines; a set of cases may have a table of that name, too.
pub fn is_machine(path: &Path) -> bool {
    path.join(TABLE).is_file() && !path.join(super::CASES).is_dir()
}

/// The cases of a folder, in order of its table.
///
/// # Errors
/// If the table, a description or a job file cannot be read or makes no sense.
pub fn machine_cases(dir: &Path) -> Result<Vec<MachineCase>, Error> {
    let table = dir.join(TABLE);
    let text = read(&table)?;
    let shown = table.display().to_string();
    let needed = ["case", "scheduler", "target", "queue_depth", "changed"];
    let rows = rows(&shown, &text, &needed, ": not a table of measured machines")?;
    rows.into_iter()
        .map(|row| MachineCase::new(dir, row.fields))
        .collect()
}

fn read(path: &Path) -> Result<String, Error> {
    let shown = path.display().to_string();
    std::fs::read_to_string(path)
        .map_err(|e| Error::new(format!("cannot read: {e}")).in_file(&shown))
}

impl MachineCase {
    fn new(dir: &Path, row: BTreeMap<String, String>) -> Result<MachineCase, Error> {
        let id = row.get("case").cloned().unwrap_or_default();
        let described = dir.join("results").join(format!("{id}.json"));
        let file = described.display().to_string();
        let text = read(&described)?;
        let about = |what: &str| Error::new(what).in_file(&file);
        let json: serde_json::Value =
            serde_json::from_str(&text).map_err(|e| about(&format!("not JSON: {e}")))?;
        let (workload, fio) = if let Some(job) = json["job_file"].as_str() {
            let path: PathBuf = dir.join("jobs").join(job);
            let name = path.display().to_string();
            let text = read(&path)?;
            (Workload::Fio { name, text }, &LINUX_2_6_28.fio)
        } else {
            let number = |key| json["pwrite"][key].as_u64();
            let (Some(writes), Some(bytes)) = (number("writes"), number("bs")) else {
                return Err(about("neither job_file nor pwrite with writes and bs"));
            };
            let size = writes.saturating_mul(bytes);
            let text = format!("[pwrite]\nioengine=psync\nrw=write\nbs={bytes}\nsize={size}\n");
            let name = format!("{id}.fio");
            (Workload::Fio { name, text }, &LINUX_2_6_28.fio_of_programs)
        };
        Ok(MachineCase {
            id,
            row,
            file,
            workload,
            fio,
        })
    }

    fn text(&self, key: &str) -> &str {
        self.row.get(key).map_or("", String::as_str)
    }

    /// A measured value; none if the case does not have it.
    fn number(&self, key: &str) -> Option<f64> {
        self.text(key).parse().ok()
    }

    /// The experiment that repeats the case.
    ///
    /// # Errors
    /// If something of it is not known here.
    pub fn experiment(&self) -> Result<Experiment, Error> {
        let machine = &*LINUX_2_6_28;
        let catalogue = &blklab_sim::catalogue();
        let mut e = Experiment::new(&self.id, self.workload.clone());
        e.choose_kernel(machine.kernel.parse()?, catalogue);
        e.choose_scheduler(self.text("scheduler"), catalogue)?;
        e.device = self.device()?;
        if self.text("target").contains("raid1") {
            e.md = Some(blklab_experiment::MdSpec::parse(&["raid1:2"])?);
        }
        e.set("queue_depth", self.text("queue_depth"), catalogue)?;
        e.set(
            "memory",
            &format!("{}m", self.text("memory_mib")),
            catalogue,
        )?;
        e.set("filesystem", &self.filesystem()?, catalogue)?;
        e.set("fio", self.fio, catalogue)?;
        e.set("page_cost_ns", &machine.page_cost_ns.to_string(), catalogue)?;
        e.set("cpus", &machine.cpus.to_string(), catalogue)?;
        for change in self.text("changed").split_whitespace() {
            let (key, value) = change.split_once('=').unwrap_or((change, ""));
            e.set(key, value, catalogue)?;
        }
        e.check(catalogue)?;
        Ok(e)
    }

    fn device(&self) -> Result<DeviceSpec, Error> {
        let order = match self.text("device_order") {
            "fifo" => "fifo",
            "shortest positioning" => "sptf",
            other => {
                let what = format!("{}: device_order '{other}' is not known", self.id);
                return Err(Error::new(what).in_file(&self.file));
            }
        };
        let cache = self.text("write_cache_sectors").to_owned();
        Ok(DeviceSpec {
            name: LINUX_2_6_28.device.clone(),
            params: vec![
                ("order".to_owned(), order.to_owned()),
                ("write_cache_sectors".to_owned(), cache),
            ],
        })
    }

    /// The filesystem with the options of its mount.
    fn filesystem(&self) -> Result<String, Error> {
        let name = self.text("fs");
        let mut spec = format!("{name}:{}", LINUX_2_6_28.filesystem_options);
        if name != "ext2" {
            spec += &format!(":{}", LINUX_2_6_28.journal_options);
        }
        for option in self.text("mount").split([',', ' ']) {
            let part = match option.split_once('=').unwrap_or((option, "")) {
                ("defaults" | "" | "rw", _) => continue,
                ("noatime", _) => "atime=never".to_owned(),
                ("relatime", _) => "atime=relative".to_owned(),
                ("commit", seconds) => format!("commit_s={seconds}"),
                ("data" | "barrier", _) => option.to_owned(),
                _ => {
                    let what = format!("{}: mount option '{option}' is not known", self.id);
                    return Err(Error::new(what).in_file(&self.file));
                }
            };
            spec.push(':');
            spec.push_str(&part);
        }
        Ok(spec)
    }

    /// Runs the case with seeds from 0 on and compares it. A case that the
    /// model cannot run is a skip, not an error.
    ///
    /// # Errors
    /// If a run ends early or its job is impossible.
    pub fn run(
        &self,
        seeds: u32,
        threads: usize,
        stop: &Arc<AtomicBool>,
    ) -> Result<MachineReport, Error> {
        let skip = |what: String| MachineReport {
            id: self.id.clone(),
            seeds: 0,
            skipped: Some(what),
            figures: Vec::new(),
            within: true,
        };
        let experiment = match self.experiment() {
            Ok(e) => e,
            Err(e) => return Ok(skip(e.what)),
        };
        let all: Vec<u32> = (0..seeds).collect();
        let took = blklab::parallel::map(&all, threads, |seed| {
            let mut e = experiment.clone();
            e.seed = u64::from(*seed);
            took(&e, stop)
        });
        let took = took.into_iter().collect::<Result<Vec<_>, _>>()?;
        let figures = self.figures(&took);
        Ok(MachineReport {
            id: self.id.clone(),
            seeds,
            skipped: None,
            within: figures.iter().all(Figure::is_within),
            figures,
        })
    }

    fn figures(&self, took: &[Took]) -> Vec<Figure> {
        let mut figures = Vec::new();
        let mut add = |name, unit, measured: Option<f64>, value: &dyn Fn(&Took) -> f64, allowed| {
            let Some(measured) = measured else { return };
            let figure = Figure::new(name, unit, measured, took.iter().map(value).collect());
            figures.push(match allowed {
                Some((low, high)) => figure.allowed(low, high),
                None => figure,
            });
        };
        let factor = Some((1.0 / 1.5, 1.5));
        let tenth = Some((0.9, 1.1));
        let seconds = |key| self.number(key).map(|ms| ms / 1e3);
        add(
            "contended median",
            "ms",
            self.number("contended_runt_median_ms"),
            &|t| t.value(|t| &t.contended, "runt_median_ms"),
            Some((0.75, 1.25)),
        );
        add(
            "longest reader",
            "ms",
            self.number("runt_max_ms"),
            &|t| t.value(|t| &t.readers, "runt_max_ms"),
            factor,
        );
        add(
            "shortest reader",
            "ms",
            self.number("runt_min_ms"),
            &|t| t.value(|t| &t.readers, "runt_min_ms"),
            None,
        );
        let writer = &|t: &Took| t.value(|t| &t.writer, "runt_max_s");
        let longest = &|t: &Took| t.value(|t| &t.writer, "clat_max_s");
        add("writer", "s", seconds("writer_ms"), writer, tenth);
        let measured = seconds("writer_max_write_ms");
        add("longest write", "s", measured, longest, None);
        add("pwrite", "s", self.number("pwrite_s"), writer, tenth);
        let measured = self.number("pwrite_max_s");
        add("longest pwrite", "s", measured, longest, factor);
        figures
    }
}

/// Runs once.
fn took(e: &Experiment, stop: &Arc<AtomicBool>) -> Result<Took, Error> {
    let options = RunOptions {
        stop: Arc::clone(stop),
        collect: Collect::Watches,
        ..RunOptions::default()
    };
    let planner = Planner::new(Sim::default());
    let output = run(&planner.plan(e)?, &options)?;
    if output.interrupted {
        return Err(Error::new(format!("{}: interrupted", e.id)));
    }
    let is_writer = |j: &&blklab::targets::JobResult| j.stat.dir(Ddir::Write).total_ios > 0;
    let writer = output.jobs.iter().find(is_writer).ok_or_else(|| {
        let what = format!("{}: no job of the case writes", e.id);
        Error::new(what)
    })?;
    let writer_us = writer.stat.dir(Ddir::Write).runtime_ms * 1000;
    let readers = || output.jobs.iter().filter(|j| !is_writer(j));
    let contended = readers().filter(|j| j.job.start_delay_us < writer_us);
    Ok(Took {
        writer: Numbers::new([writer], Some(Ddir::Write)),
        readers: Numbers::new(readers(), Some(Ddir::Read)),
        contended: Numbers::new(contended, Some(Ddir::Read)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_median_over_the_seeds() {
        let f = Figure::new("writer", "s", 100.0, vec![130.0, 90.0, 95.0]);
        assert_eq!((f.median, f.lowest, f.highest), (95.0, 90.0, 130.0));
        assert!(f.is_within(), "not judged");
        assert!(f.clone().allowed(0.9, 1.1).is_within());
        assert!(!f.allowed(0.96, 1.1).is_within());
    }

    fn case(changes: &[(&str, &str)]) -> MachineCase {
        let mut row: BTreeMap<String, String> = [
            ("case", "c"),
            ("scheduler", "cfq"),
            ("target", "raid1 of two disks"),
            ("queue_depth", "1"),
            ("device_order", "fifo"),
            ("write_cache_sectors", "16384"),
            ("memory_mib", "1024"),
            ("fs", "ext3"),
            ("mount", "data=writeback,noatime"),
            ("changed", "quantum=1 dirty_ratio=40"),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
        for (k, v) in changes {
            row.insert((*k).to_owned(), (*v).to_owned());
        }
        let text = "[w]\nrw=write\nsize=1m\n".to_owned();
        MachineCase {
            id: "c".to_owned(),
            row,
            file: "c.json".to_owned(),
            workload: Workload::Fio {
                name: "c.fio".to_owned(),
                text,
            },
            fio: "1.24",
        }
    }

    #[test]
    fn a_row_becomes_an_experiment() {
        let e = case(&[]).experiment().unwrap();
        assert_eq!(
            (e.kernel.to_string().as_str(), e.fio.to_string().as_str()),
            ("2.6.28", "1.24")
        );
        assert!(e.md.is_some() && e.device.name == "simdisk-2628");
        assert_eq!(e.device.params[0].1, "fifo");
        assert_eq!(e.device.params[1].1, "16384");
        assert_eq!(e.queue.queue_depth, Some(1));
        assert_eq!(e.vm.memory_bytes, Some(1 << 30));
        assert_eq!(e.vm.dirty_ratio, Some(40));
        assert_eq!(e.tunables, [("quantum".to_owned(), 1)]);
        assert_eq!(e.filesystem.option("data"), Some("writeback"));
        assert_eq!(e.filesystem.option("atime"), Some("never"));
        assert_eq!(e.filesystem.option("journal_place"), Some("front"));
        let ext2 = case(&[
            ("fs", "ext2"),
            ("mount", "defaults"),
            ("target", "one disk"),
        ]);
        let e = ext2.experiment().unwrap();
        assert!(e.md.is_none() && e.filesystem.name == "ext2");
        assert_eq!(e.filesystem.option("journal_place"), None);
    }

    #[test]
    fn what_the_model_does_not_have_is_a_skip_with_a_reason() {
        for (change, reason) in [
            (("scheduler", "bfq"), "bfq"),
            (("mount", "user_xattr"), "mount option 'user_xattr'"),
            (("device_order", "elevator"), "device_order 'elevator'"),
            (("changed", "quantums=1"), "quantums"),
        ] {
            let report = case(&[change]).run(1, 1, &Arc::default()).unwrap();
            let why = report.skipped.expect("skipped");
            assert!(why.contains(reason), "{why}");
        }
    }
}
