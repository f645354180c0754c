// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a repetition with another seed has otherwise.

use blklab_engine::Stream;
use blklab_experiment::Experiment;
use blklab_sim::fio::START_JITTER_NS;
use blklab_types::Span;

/// By how much later a load begins than with the seed 0, and the model of its disk is along
/// by then: as the first job of the models.
pub(super) fn lateness(e: &Experiment) -> Span {
    match e.seed {
        0 => Span::ZERO,
        seed => Span(Stream::named(seed, "start 0").below(START_JITTER_NS)),
    }
}

#[cfg(test)]
mod tests {
    use super::lateness;
    use blklab_experiment::{Experiment, Workload};
    use blklab_types::Span;

    #[test]
    fn repetitions_begin_at_other_times() {
        let mut e = Experiment::new("e", Workload::Processes(Vec::new()));
        assert_eq!(lateness(&e), Span::ZERO);
        let mut late = [1, 2, 3].map(|seed| {
            e.seed = seed;
            lateness(&e)
        });
        late.sort_unstable();
        assert!(late[0] < late[1] && late[1] < late[2] && late[2] < Span::from_ms(10));
    }
}
