// SPDX-License-Identifier: MIT OR Apache-2.0
//! The studies are sound, and their verdicts follow from the values.

use super::*;

#[test]
fn every_study_is_sound() {
    for name in names() {
        let study = study(name).unwrap();
        assert!(
            !study.numbers.is_empty() && !study.title.is_empty(),
            "{name}"
        );
        let cells = cells_of(0, &study, 2).unwrap();
        assert_eq!(cells.len(), nr_runs(std::slice::from_ref(&study), 2));
    }
    assert!(study("nope").unwrap_err().to_string().contains("valid: "));
}

#[test]
fn verdicts_follow_from_medians() {
    let study = study("cfq-quantum-2010").unwrap();
    let of = |factors: [f64; 4]| {
        let values = study.numbers.iter().zip(factors);
        let values = values.map(|(n, f)| vec![n.published * f, n.published * f * 1.01, 1e9]);
        Reproduction::new(std::slice::from_ref(&study), &[values.collect()])
    };
    let all = of([1.0; 4]);
    assert_eq!(all.summary.numbers, 4);
    assert_eq!(all.summary.predicted_within, all.summary.predicted);
    assert_eq!(all.summary.orderings_hold, 1);
    // The posted form far too high: not within, and out of order.
    let high = of([1.0, 2.0, 1.0, 1.0]);
    assert_eq!(high.summary.predicted_within + 1, high.summary.predicted);
    assert_eq!(high.summary.orderings_hold, 0);
    let nothing = Reproduction::new(std::slice::from_ref(&study), &[vec![Vec::new(); 4]]);
    assert_eq!(nothing.summary.predicted_within, 0);
    assert_eq!(nothing.summary.orderings_hold, 0);
}

#[test]
fn a_study_runs() {
    let studies = [study("cfq-quantum-2010").unwrap()];
    let stop = Arc::new(AtomicBool::new(false));
    let all = reproduce(&studies, 1, 2, &stop, || {}).unwrap();
    assert!(all.numbers.iter().all(|n| n.ours.is_some()));
    assert_eq!(all.summary.orderings_hold, 1, "{all:?}");
}
