// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of jobs that are bound to processors.

use blklab_experiment::Experiment;
use blklab_fio::job::Job;

/// Says so if the machine lacks processors that jobs are bound to.
pub(super) fn note(e: &Experiment, jobs: &[Job]) -> Option<String> {
    let allowed = jobs.iter().flat_map(|j| &j.settings.affinity.cpus);
    let highest = *allowed.max()?;
    let cpus = e.nr_cpus();
    if e.kernel.has_single_queue() {
        return Some(format!(
            "cpus_allowed: kernel {} is modelled without processors for its tasks, so that it does \
             nothing",
            e.kernel
        ));
    }
    (u32::from(highest) >= cpus).then(|| {
        format!(
            "cpus_allowed: the machine has {cpus} processor{}, and a job is bound to number \
             {highest}, for which fio would not start; here it is number {} (cpus={} has them all)",
            if cpus == 1 { "" } else { "s" },
            u32::from(highest) % cpus.max(1),
            u32::from(highest) + 1
        )
    })
}
