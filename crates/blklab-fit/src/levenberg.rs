// SPDX-License-Identifier: MIT OR Apache-2.0
//! Towards the least squares from far away, by Levenberg and Marquardt's method (the crate
//! `rmpfit`): for reads, of which chance moves little.

use crate::drive::Drive;
use crate::squares::{PULL, Problem};
use rmpfit::{MPConfig, MPFitter, MPMaxFev, MPPar, MPResult, MPSide};

/// How far off a parameter alone is tried after a search, and how much less is worth another.
const PROBE: f64 = 0.2;
const CLEARLY_LESS: f64 = 0.97;

/// Most times that it begins again from what was found so.
const PROBES_MAX: usize = 3;

/// How a search goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    /// Most steps.
    pub(crate) steps: usize,
    /// Width of the steps by which slopes are taken.
    pub(crate) width: f64,
    /// Whether it begins again from where one parameter alone makes squares clearly less: slopes
    /// do not show what lies behind a step, as where the host limits the rate.
    pub(crate) probes: bool,
}

/// Looks for the least squares. Says what they are.
pub(crate) fn search(problem: &Problem<'_>, how: How) -> (Drive, f64) {
    let begin = problem.begin();
    let (mut best, mut least) = (begin.drive.clone(), begin.squares());
    if problem.nr() == 0 {
        return (best, least);
    }
    let mut fitter = Fitter::new(problem, how);
    let mut at = begin.at;
    let rounds = if how.probes { PROBES_MAX } else { 0 };
    for round in 0..=rounds {
        if fitter.mpfit(&mut at).is_err() {
            break;
        }
        let found = problem.place(&at, 0);
        if found.squares() < least {
            (best, least) = (found.drive.clone(), found.squares());
        }
        if round == rounds {
            break;
        }
        let probes = problem.stepped_places(&found, &[PROBE, -PROBE], |_| 0);
        let nearest = probes
            .into_iter()
            .min_by(|a, b| a.squares().total_cmp(&b.squares()));
        let Some(probe) = nearest.filter(|p| p.squares() < least * CLEARLY_LESS) else {
            break;
        };
        at.clone_from(&probe.at);
        (best, least) = (probe.drive.clone(), probe.squares());
    }
    (best, least)
}

struct Fitter<'a> {
    problem: &'a Problem<'a>,
    width: f64,
    limits: Vec<MPPar>,
    config: MPConfig,
}

impl<'a> Fitter<'a> {
    fn new(problem: &'a Problem<'a>, how: How) -> Fitter<'a> {
        let limits = problem.limits().iter().map(|(low, high)| MPPar {
            limited_low: true,
            limited_up: true,
            limit_low: *low,
            limit_up: *high,
            side: MPSide::User,
            ..MPPar::new()
        });
        Fitter {
            problem,
            width: how.width,
            limits: limits.collect(),
            config: MPConfig {
                ftol: 1e-3,
                xtol: 1e-3,
                gtol: 1e-6,
                step_factor: 1.0,
                max_iter: how.steps,
                max_fev: MPMaxFev::Limited(4 * how.steps + 4),
                ..MPConfig::new()
            },
        }
    }
}

impl MPFitter for Fitter<'_> {
    fn eval(&mut self, at: &[f64], residuals: &mut [f64]) -> MPResult<()> {
        let left = self.problem.place(at, 0).left;
        let all = left.into_iter().chain(at.iter().map(|x| PULL * x));
        residuals
            .iter_mut()
            .zip(all)
            .for_each(|(to, from)| *to = from);
        Ok(())
    }

    fn number_of_points(&self) -> usize {
        self.problem.nr_residuals() + self.problem.nr()
    }

    fn config(&self) -> &MPConfig {
        &self.config
    }

    fn parameters(&self) -> &[MPPar] {
        &self.limits
    }

    fn jacobian(
        &mut self,
        at: &[f64],
        residuals: &mut [f64],
        columns: &mut [Option<Vec<f64>>],
    ) -> MPResult<()> {
        let slopes = self
            .problem
            .slopes_up(&self.problem.place(at, 0), self.width);
        for (i, column) in columns.iter_mut().enumerate() {
            let Some(column) = column else { continue };
            let rows = slopes[i].len();
            column[..rows].copy_from_slice(&slopes[i]);
            column[rows..].fill(0.0);
            column[rows + i] = PULL;
        }
        self.eval(at, residuals)
    }
}
