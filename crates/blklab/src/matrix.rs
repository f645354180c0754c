// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several values for some settings: every combination is an experiment.

use blklab_experiment::{DeviceSpec, Experiment, ExperimentError};

/// What the command line says on top of experiment files. Empty lists leave
/// the file's value.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Kernel releases.
    pub kernels: Vec<String>,
    /// Schedulers.
    pub schedulers: Vec<String>,
    /// Devices with parameters.
    pub devices: Vec<DeviceSpec>,
    /// Settings, each with its values.
    pub settings: Vec<(String, Vec<String>)>,
    /// Patches, all switched on together.
    pub patches: Vec<String>,
    /// Seed of the first repetition.
    pub seed: Option<u64>,
    /// Repetitions with different seeds.
    pub repeat: u32,
}

/// One experiment of a matrix.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Names and values of what varies, in order; empty if nothing does.
    pub label: Vec<(String, String)>,
    /// Which repetition it is, from 0.
    pub repetition: u32,
    /// The experiment.
    pub experiment: Experiment,
}

impl Cell {
    /// The label in one piece: the values, with names where a value alone
    /// would not tell.
    pub fn name(&self) -> String {
        let shown = self.label.iter().map(|(key, value)| match key.as_str() {
            "scheduler" | "device" | "file" => value.clone(),
            "kernel" => format!("v{value}"),
            _ => format!("{key}={value}"),
        });
        shown.collect::<Vec<_>>().join(" ")
    }
}

/// Splits `NAME,key=value,NAME…` into devices: a part without `=` starts the
/// next device.
///
/// # Errors
/// If the first part is a parameter.
pub fn parse_devices(text: &str) -> Result<Vec<DeviceSpec>, ExperimentError> {
    let mut devices: Vec<DeviceSpec> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        match (part.split_once('='), devices.last_mut()) {
            (None, _) => devices.push(DeviceSpec {
                name: part.to_owned(),
                params: Vec::new(),
            }),
            (Some((k, v)), Some(device)) => {
                device
                    .params
                    .push((k.trim().to_owned(), v.trim().to_owned()));
            }
            (Some(_), None) => {
                return Err(ExperimentError::new(format!(
                    "--device {text}: a device name comes before its parameters, \
                     as in sata-7200-2008,rpm=5400"
                )));
            }
        }
    }
    Ok(devices)
}

/// Splits `KEY=V1,V2,…`.
///
/// # Errors
/// If there is no `=` or no value.
pub fn parse_setting(text: &str) -> Result<(String, Vec<String>), ExperimentError> {
    let (key, values) = text.split_once('=').ok_or_else(|| {
        ExperimentError::new(format!("--set {text}: write KEY=VALUE or KEY=V1,V2,…"))
    })?;
    let values: Vec<String> = values
        .split(',')
        .map(|v| v.trim().to_owned())
        .filter(|v| !v.is_empty())
        .collect();
    if values.is_empty() {
        return Err(ExperimentError::new(format!("--set {text}: no value")));
    }
    Ok((key.trim().to_owned(), values))
}

/// Every combination of the overrides for every experiment, in order: files
/// outermost, repetitions innermost.
///
/// # Errors
/// If a value does not exist or does not fit; the message names the file.
pub fn expand(
    experiments: &[Experiment],
    overrides: &Overrides,
) -> Result<Vec<Cell>, ExperimentError> {
    let mut cells = Vec::new();
    for e in experiments {
        let label = if experiments.len() > 1 {
            vec![("file".to_owned(), e.id.clone())]
        } else {
            Vec::new()
        };
        let mut base = Cell {
            label,
            repetition: 0,
            experiment: e.clone(),
        };
        base.experiment
            .patches
            .extend(overrides.patches.iter().cloned());
        if let Some(seed) = overrides.seed {
            base.experiment.seed = seed;
        }
        let of_file = combinations(base, overrides).map_err(|err| err.in_file(&e.id))?;
        for cell in &of_file {
            cell.experiment.check().map_err(|err| err.in_file(&e.id))?;
        }
        cells.extend(of_file);
    }
    Ok(cells)
}

fn combinations(base: Cell, o: &Overrides) -> Result<Vec<Cell>, ExperimentError> {
    let mut cells = vec![base];
    vary(&mut cells, "kernel", &o.kernels, |e, v| {
        e.kernel = v.parse()?;
        Ok(())
    })?;
    vary(&mut cells, "scheduler", &o.schedulers, |e, v| {
        e.scheduler.clone_from(v);
        // Tunables of the file's own scheduler do not fit another one.
        let (_, valid) = {
            let mut bare = e.clone();
            bare.tunables.clear();
            bare.scheduler()?
        };
        let names: Vec<&str> = valid.iter().map(|(t, _)| t.name).collect();
        e.tunables.retain(|(k, _)| names.contains(&k.as_str()));
        Ok(())
    })?;
    let mut out = Vec::new();
    for cell in cells {
        if o.devices.is_empty() {
            out.push(cell);
            continue;
        }
        for d in &o.devices {
            let mut c = cell.clone();
            c.experiment.device = d.clone();
            if o.devices.len() > 1 {
                let params = d.params.iter().map(|(k, v)| format!(",{k}={v}"));
                c.label.push((
                    "device".to_owned(),
                    d.name.clone() + &params.collect::<String>(),
                ));
            }
            out.push(c);
        }
    }
    let mut cells = out;
    for (key, values) in &o.settings {
        vary(&mut cells, key, values, |e, v| e.set(key, v))?;
    }
    let repeat = o.repeat.max(1);
    Ok(cells
        .into_iter()
        .flat_map(|c| {
            (0..repeat).map(move |i| {
                let mut c = c.clone();
                c.repetition = i;
                c.experiment.seed = c.experiment.seed.wrapping_add(u64::from(i));
                c
            })
        })
        .collect())
}

/// Replaces each cell by one for each value.
fn vary(
    cells: &mut Vec<Cell>,
    key: &str,
    values: &[String],
    apply: impl Fn(&mut Experiment, &String) -> Result<(), ExperimentError>,
) -> Result<(), ExperimentError> {
    if values.is_empty() {
        return Ok(());
    }
    let mut out = Vec::with_capacity(cells.len() * values.len());
    for cell in cells.iter() {
        for value in values {
            let mut c = cell.clone();
            apply(&mut c.experiment, value)?;
            if values.len() > 1 {
                c.label.push((key.to_owned(), value.clone()));
            }
            out.push(c);
        }
    }
    *cells = out;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_experiment::Workload;

    fn base() -> Experiment {
        Experiment::new("e", Workload::Processes(Vec::new()))
    }

    #[test]
    fn every_combination_with_what_varies_as_its_name() {
        let o = Overrides {
            kernels: vec!["2.6.28".into()],
            schedulers: vec!["noop".into(), "deadline".into()],
            settings: vec![("queue_depth".into(), vec!["1".into(), "31".into()])],
            devices: parse_devices("serial,read_ns=5").unwrap(),
            ..Overrides::default()
        };
        let cells = expand(&[base()], &o).unwrap();
        let names: Vec<String> = cells.iter().map(Cell::name).collect();
        assert_eq!(
            names,
            [
                "noop queue_depth=1",
                "noop queue_depth=31",
                "deadline queue_depth=1",
                "deadline queue_depth=31"
            ]
        );
        assert_eq!(cells[3].experiment.queue.queue_depth, Some(31));
        assert_eq!(cells[3].experiment.device.params.len(), 1);
    }

    #[test]
    fn repetitions_differ_in_their_seed() {
        let o = Overrides {
            repeat: 3,
            seed: Some(7),
            ..Overrides::default()
        };
        let mut e = base();
        e.device.name = "serial".into();
        let seeds: Vec<u64> = expand(&[e], &o)
            .unwrap()
            .iter()
            .map(|c| c.experiment.seed)
            .collect();
        assert_eq!(seeds, [7, 8, 9]);
    }

    #[test]
    fn what_does_not_fit_is_refused_in_words() {
        let check = |o: Overrides, expected: &str| {
            let err = expand(&[base()], &o).unwrap_err().to_string();
            assert!(err.contains(expected), "{err}");
        };
        check(
            Overrides {
                schedulers: vec!["elevator".into()],
                ..Overrides::default()
            },
            "no scheduler 'elevator'; valid: noop, deadline",
        );
        check(
            Overrides {
                kernels: vec!["2.4.20".into()],
                ..Overrides::default()
            },
            "not a kernel version",
        );
        check(
            Overrides {
                settings: vec![("fifo_batches".into(), vec!["1".into()])],
                ..Overrides::default()
            },
            "nothing to set is called 'fifo_batches'; of deadline: read_expire",
        );
        assert!(parse_devices("rpm=5400").is_err());
        assert!(parse_setting("quantum").is_err());
    }
}
