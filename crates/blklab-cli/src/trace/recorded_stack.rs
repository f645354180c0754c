// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine that a trace is from: what is said of it, and what the trace shows.

use crate::again::Known;
use crate::args::{ReadArgs, StackArgs, ToFioArgs};
use crate::stack::{Chosen, Stack};
use anyhow::{Result, anyhow, bail};
use blklab::experiment::{Experiment, Workload};
use blklab::findings::Context;
use blklab::matrix;
use blklab::run_directory::{RunDir, is_trace};
use blklab::scheduler::Schedulers;
use blklab::targets::Planner;
use blklab::to_fio::{DeviceFit, Summary, set_device, shown_stack};

/// What `--device` says for one that is fitted to the trace.
const FIT: &str = "fit";

/// The machine that a job runs on.
pub(super) struct On {
    pub(super) experiment: Experiment,
    /// Its device, where it was fitted to the trace.
    pub(super) fit: Option<DeviceFit>,
    /// What was assumed, in sentences.
    pub(super) assumed: Vec<String>,
}

impl On {
    /// Kernel, scheduler, device.
    pub(super) fn text(&self) -> String {
        let e = &self.experiment;
        let device = match self.fit {
            Some(_) => "a device fitted to the trace",
            None => &e.device.name,
        };
        format!("kernel {}, {}, {device}", e.kernel, e.scheduler)
    }
}

/// What the options say of the machine.
pub(super) struct Asked<'a> {
    given: Given,
    pub(super) says_something: bool,
    chosen: Chosen,
    planner: &'a Planner,
}

enum Given {
    /// The machine, whole.
    All(Box<Experiment>),
    /// All but the device.
    AllButDevice(Box<Experiment>),
    /// What is known of it.
    Some(Context),
}

impl<'a> Asked<'a> {
    /// Reads the options; the trace is not needed.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub(super) fn new(
        a: &ToFioArgs,
        planner: &'a Planner,
        schedulers: Schedulers,
    ) -> Result<Asked<'a>> {
        let catalogue = planner.catalogue();
        let run = Some(&a.file).filter(|file| !is_trace(file));
        let base = match a.stack.as_ref().or(run) {
            Some(dir) if dir.is_dir() => {
                let dir = RunDir::open(dir, catalogue)?;
                dir.check_events()?;
                Some(dir.experiment)
            }
            Some(file) => Some(blklab::experiment::load(file, catalogue)?),
            None => None,
        };
        let says_something = base.is_some()
            || a.kernel.is_some()
            || a.sched.is_some()
            || a.device.is_some()
            || !a.set.is_empty()
            || !a.context.is_empty();
        if let (Some(_), Some(path)) = (&base, a.context.first()) {
            bail!(
                "--context {}: the stack is known whole already (--stack, or a run directory)",
                path.display()
            );
        }
        let device = a.device.as_ref().filter(|d| *d != FIT);
        if let (Some(_), Some(path)) = (device, a.context.first()) {
            bail!(
                "--context {} goes with a device that is fitted, not with --device: name the \
                 stack with --kernel, --sched and --set",
                path.display()
            );
        }
        let fits = device.is_none() && (base.is_none() || a.device.is_some());
        // Where the machine is pieced together, kernel and scheduler belong to what is known.
        let pieced = fits && base.is_none();
        let mut chosen = Stack {
            kernel: a.kernel.as_slice(),
            sched: a.sched.as_slice(),
            device: device.map_or(&[], std::slice::from_ref),
            set: &a.set,
            repeat: 1,
            ..Stack::default()
        }
        .chosen()?;
        let overrides = &chosen.overrides;
        let several = [
            (overrides.kernels.len(), "--kernel"),
            (overrides.schedulers.len(), "--sched"),
            (overrides.devices.len(), "--device"),
        ];
        let several = several.into_iter().filter(|(n, _)| *n > 1);
        let several = several.map(|(_, option)| option);
        if let Some(option) = several.chain(chosen.varied()).next() {
            bail!("{option}: one value; a trace is from one stack");
        }
        let given = match base {
            _ if pieced => {
                let known = StackArgs {
                    read: ReadArgs::default(),
                    context: a.context.clone(),
                    kernel: a.kernel.clone(),
                    sched: a.sched.clone(),
                    set: Vec::new(),
                };
                chosen.overrides.kernels.clear();
                chosen.overrides.schedulers.clear();
                Given::Some(Known::new(&a.file, &known, schedulers)?.context().clone())
            }
            Some(base) if fits => Given::AllButDevice(Box::new(base)),
            base => {
                let none = Workload::Processes(Vec::new());
                let base = base.unwrap_or_else(|| Experiment::new("job", none));
                Given::All(Box::new(base))
            }
        };
        let asked = Asked {
            given,
            says_something,
            chosen,
            planner,
        };
        if let Given::All(e) | Given::AllButDevice(e) = &asked.given {
            asked.with_options(e)?;
        }
        Ok(asked)
    }

    /// The machine; or why there is none, which is no error: in a clause.
    ///
    /// # Errors
    /// If the options do not go with it.
    pub(super) fn stack(
        &self,
        trace: &Summary,
        schedulers: Schedulers,
    ) -> Result<Result<On, String>> {
        let on = match &self.given {
            Given::All(e) => On {
                experiment: self.with_options(e)?,
                fit: None,
                assumed: Vec::new(),
            },
            Given::AllButDevice(e) => {
                let fit = trace
                    .recorded
                    .device()
                    .map_err(|why| anyhow!("--device fit: {why}"))?;
                let mut experiment = self.with_options(e)?;
                set_device(&mut experiment, &fit);
                On {
                    experiment,
                    fit: Some(fit),
                    assumed: Vec::new(),
                }
            }
            Given::Some(context) => match shown_stack(trace, context, schedulers) {
                Ok(shown) => On {
                    experiment: self.with_options(&shown.experiment)?,
                    fit: Some(shown.device),
                    assumed: shown.assumed,
                },
                Err(e) => return Ok(Err(e.to_string())),
            },
        };
        Ok(Ok(on))
    }

    fn with_options(&self, base: &Experiment) -> Result<Experiment> {
        let base = Experiment {
            workload: Workload::Processes(Vec::new()),
            variants: Vec::new(),
            ..base.clone()
        };
        let (chosen, overrides) = (&self.chosen, &self.chosen.overrides);
        let cells =
            matrix::expand(&[base], overrides, self.planner).map_err(|err| chosen.told(err))?;
        let first = cells.into_iter().next();
        let first = first.expect("an experiment makes at least one cell");
        matrix::survey(&first, overrides, self.planner).map_err(|err| chosen.told(err))?;
        Ok(first.experiment)
    }
}
