// SPDX-License-Identifier: MIT OR Apache-2.0
//! The smallest experiment that still differs in the same way, with the kernel's bios given to
//! the models, too.

use super::case::Case;
use super::pair::{Compared, Pair};
use blklab_types::Error;

/// Runs of both targets that a case is shrunk with at most.
pub const RUNS_MAX: usize = 60;

/// I/Os of a job below which it is not made shorter.
const IOS_MIN: u64 = 4;

/// Options without which a job is none, or another one.
const NEEDED: [&str; 5] = ["rw", "bs", "filename", "direct", "number_ios"];

/// Makes a case smaller as long as it differs in the same way. What it came to when it was
/// compared is `found`; the result is the smallest case, and what that came to.
///
/// # Errors
/// If a target fails.
pub fn shrink(pair: &Pair, case: &Case, found: Compared) -> Result<(Case, Compared), Error> {
    let mut best = (case.clone(), found);
    let mut runs = 0;
    let mut from = 0;
    loop {
        let all = smaller(&best.0);
        let Some(next) = all.get(from) else {
            return Ok(best);
        };
        from += 1;
        let Ok(e) = next.experiment(pair.catalogue()) else {
            continue;
        };
        if pair.check(&e).is_err() {
            continue;
        }
        if runs == RUNS_MAX {
            return Ok(best);
        }
        runs += 1;
        let Some(compared) = pair.compare(&e)? else {
            return Ok(best);
        };
        let is_alike = compared.verdict == best.1.verdict
            && compared.given.is_same() == best.1.given.is_same();
        if is_alike {
            // What failed before is likely to fail again: on from the same place.
            best = (next.clone(), compared);
            from -= 1;
        }
    }
}

/// Cases with something less, the largest steps first.
fn smaller(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Case)| {
        let mut next = case.clone();
        change(&mut next);
        if next != *case {
            all.push(next);
        }
    };
    if case.jobs.len() > 1 {
        for i in 0..case.jobs.len() {
            with(&|c| {
                c.jobs.remove(i);
            });
        }
    }
    for part in [8, 2] {
        with(&|c| fewer(c, part));
    }
    with(&|c| c.tunables.clear());
    with(&|c| c.queue.clear());
    with(&|c| {
        c.device = "null_blk".to_owned();
        c.params.retain(|(key, _)| key == "queue_depth");
    });
    for i in 0..case.tunables.len() {
        with(&|c| {
            c.tunables.remove(i);
        });
    }
    for i in 0..case.queue.len() {
        with(&|c| {
            c.queue.remove(i);
        });
    }
    for i in 0..case.params.len() {
        with(&|c| {
            c.params.remove(i);
        });
    }
    for j in 0..case.jobs.len() {
        for i in 0..case.jobs[j].1.len() {
            if !NEEDED.contains(&case.jobs[j].1[i].0.as_str()) {
                with(&|c| {
                    c.jobs[j].1.remove(i);
                });
            }
        }
    }
    with(&|c| c.seed = 0);
    all
}

/// Makes all jobs shorter.
fn fewer(case: &mut Case, part: u64) {
    for (_, own) in &mut case.jobs {
        for (_, value) in own.iter_mut().filter(|(key, _)| key == "number_ios") {
            if let Ok(number) = value.parse::<u64>()
                && number / part >= IOS_MIN
            {
                *value = (number / part).to_string();
            }
        }
    }
}
