// SPDX-License-Identifier: MIT OR Apache-2.0
//! The studies are sound, and their verdicts follow from the values.

use super::*;

fn all_studies() -> Vec<Study> {
    names().into_iter().map(|n| study(n).unwrap()).collect()
}

#[test]
fn every_study_is_sound() {
    for study in all_studies() {
        let name = &study.name;
        assert!(
            !study.title.is_empty() && !study.source.is_empty(),
            "{name}"
        );
        assert!(!study.measures.is_empty(), "{name}");
        let plan = Plan::new(std::slice::from_ref(&study), 2).unwrap();
        let configurations: usize = study.parts.iter().map(Part::nr_variants).sum();
        assert!((1..=2 * configurations).contains(&plan.nr_runs()), "{name}");
    }
    assert!(study("nope").unwrap_err().to_string().contains("valid: "));
}

#[test]
fn every_metric_that_a_study_can_ask_for_is_documented() {
    let text = std::fs::read_to_string(blklab_testkit::root().join("docs/reproduce.md"));
    let text = text.expect("the document");
    for metric in blklab::metric::all() {
        let is_of_disk = matches!(metric.source, blklab::metric::Source::Disk(_));
        assert!(
            is_of_disk || text.contains(&format!("`{}`", metric.key)),
            "{}",
            metric.key
        );
    }
}

#[test]
fn seeds_vary_the_state_of_the_machine_where_a_study_says_so() {
    let study = study("pvfs2-2006").unwrap();
    let varies = study.varies.as_ref().unwrap();
    assert_eq!(varies.draw(0), []);
    assert_ne!(varies.draw(1), varies.draw(2));
    assert_eq!(varies.draw(1), varies.draw(1));
    let plan = Plan::new(std::slice::from_ref(&study), 3).unwrap();
    let states = |seed| {
        let cells = plan.cells.iter().filter(move |c| c.experiment.seed == seed);
        cells.map(|c| (c.experiment.uptime().0, c.experiment.dirty_at_start_bytes()))
    };
    assert!(states(0).all(|state| state == (0, 0)));
    // All configurations of a seed are compared in the same state.
    let first = states(1).next().unwrap();
    assert!(first.0 > 0 && states(1).all(|state| state == first));
    assert!(states(2).all(|state| state != first));
}

#[test]
fn studies_share_runs_of_the_same_experiment() {
    let both = ["ltt-2009-ssh", "ltt-2009-patch"].map(|n| study(n).unwrap());
    let runs = |s: &[Study]| Plan::new(s, 3).unwrap().nr_runs();
    // CFQ at depth 31 on the array is in both.
    assert_eq!(runs(&both), runs(&both[..1]) + runs(&both[1..]) - 3);
}

/// The value that an experiment has at `table.key`.
fn value_at(e: &blklab_experiment::Experiment, key: &str) -> Option<String> {
    let text = e.to_toml("job.fio", &blklab_sim::catalogue()).unwrap();
    let top: toml::Table = text.parse().unwrap();
    let (table, key) = key.split_once('.')?;
    let value = top.get(table)?.get(key)?;
    Some(
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned),
    )
}

#[test]
fn every_fitted_parameter_is_in_the_file_with_its_value() {
    let parameters = calibration().unwrap();
    let studies = all_studies();
    for p in &parameters {
        let same = |o: &&Parameter| o.name == p.name;
        assert_eq!(parameters.iter().filter(same).count(), 1, "{}", p.name);
        for name in &p.studies {
            let study = study(name).unwrap();
            let mut places = 0;
            for part in &study.parts {
                for v in 0..part.nr_variants() {
                    let e = part.variant(v).unwrap();
                    if p.scheduler.as_ref().is_some_and(|s| *s != e.scheduler) {
                        continue;
                    }
                    let found = value_at(&e, &p.key);
                    places += usize::from(found.is_some());
                    assert!(found.is_none_or(|v| v == p.value), "{name}: {}", p.key);
                }
            }
            assert!(places > 0, "{name} has no {}", p.key);
        }
        let numbers = studies.iter().flat_map(|s| &s.numbers);
        let fitted = numbers.filter(|n| n.calibrated.as_ref() == Some(&p.name));
        let published: Vec<f64> = fitted.map(|n| n.published).collect();
        // A later report may quote the same run.
        let same = published.iter().all(|n| *n == p.published);
        assert!(same && !published.is_empty(), "{}", p.name);
    }
    for study in &studies {
        let named = study.numbers.iter().filter_map(|n| n.calibrated.as_ref());
        for name in named {
            let found = parameters.iter().find(|p| p.name == *name);
            let studies = found.map(|p| &p.studies);
            assert!(studies.is_some_and(|s| s.contains(&study.name)), "{name}");
        }
    }
}

/// What requests and schedulers take unless it is set was fitted in this study.
#[test]
fn processor_times_are_those_of_their_study() {
    let study = study("nvme-schedulers-2024").unwrap();
    for part in &study.parts {
        for v in 0..part.nr_variants() {
            let fitted = part.variant(v).unwrap();
            let mut usual = fitted.clone();
            (usual.vm.request_cost_ns, usual.vm.sched_cost_ns) = (None, None);
            let catalogue = blklab_sim::catalogue();
            let times = |e: &blklab_experiment::Experiment| {
                (e.request_cost(), e.facts(&catalogue).sched_cost)
            };
            assert_eq!(times(&usual), times(&fitted), "{}", fitted.scheduler);
        }
    }
}

/// Outcome of the quantum study if our values were these parts of the
/// published ones.
fn quantum(factors: [f64; 4]) -> Reproduction {
    let study = study("cfq-quantum-2010").unwrap();
    let mut values = vec![Vec::new(); study.measures.len()];
    for (n, f) in study.numbers.iter().zip(factors) {
        values[n.measure] = vec![n.published * f, n.published * f * 1.01, 1e9];
    }
    Reproduction::new(std::slice::from_ref(&study), &[values])
}

#[test]
fn verdicts_follow_from_medians() {
    let all = quantum([1.0; 4]);
    assert_eq!(all.summary.numbers, 4);
    assert_eq!(all.summary.predicted_within, all.summary.predicted);
    assert_eq!(all.summary.orderings.orderings_hold, 1);
    assert!(all.summary.is_good());
    // The posted form far too high: not within, and out of order.
    let high = quantum([1.0, 2.0, 1.0, 1.0]);
    assert_eq!(high.summary.predicted_within + 1, high.summary.predicted);
    assert_eq!(high.summary.orderings.orderings_hold, 0);
    assert!(!high.summary.is_good());
    let study = study("cfq-quantum-2010").unwrap();
    let nothing = Reproduction::new(std::slice::from_ref(&study), &[vec![Vec::new(); 4]]);
    assert_eq!(nothing.summary.predicted_within, 0);
    assert_eq!(nothing.summary.orderings.orderings_hold, 0);
    assert_eq!(nothing.summary.orderings.orderings_undecided, 0);
}

#[test]
fn only_what_was_published_counts_towards_the_totals() {
    let mut study = study("cfq-quantum-2010").unwrap();
    let fails = Ordering {
        measures: study.orderings[0].measures.iter().rev().copied().collect(),
        ..study.orderings[0].clone()
    };
    for basis in [Basis::Expected, Basis::Contradicted] {
        study.orderings.push(Ordering {
            basis,
            ..fails.clone()
        });
    }
    let mut values = vec![Vec::new(); study.measures.len()];
    for n in &study.numbers {
        values[n.measure] = vec![n.published];
    }
    let all = Reproduction::new(std::slice::from_ref(&study), &[values]);
    let failed = Tally {
        orderings: 1,
        ..Tally::default()
    };
    assert_eq!(all.summary.orderings.orderings, 1);
    assert_eq!(all.summary.expected, failed);
    assert_eq!(all.summary.contradicted, failed);
    assert!(all.summary.is_good(), "{}", all.summary);
}

#[test]
fn what_is_called_published_was_published() {
    for study in all_studies() {
        let mut published = vec![Vec::new(); study.measures.len()];
        for n in &study.numbers {
            published[n.measure] = vec![n.published];
        }
        for o in &study.orderings {
            let name = format!("{}: {}", study.name, o.text);
            let numbers = o.measures.iter().all(|i| !published[*i].is_empty());
            let follows = numbers && outcome::ordering(&study, o, &published).holds == Some(true);
            match o.basis {
                Basis::Published => assert!(follows || !numbers && !o.remark.is_empty(), "{name}"),
                Basis::Expected => assert!(!follows && !o.remark.is_empty(), "{name}"),
                Basis::Contradicted => assert!(follows && !o.remark.is_empty(), "{name}"),
            }
        }
    }
}

#[test]
fn tolerances_are_what_they_say() {
    let allowed = |t: Tolerance| [0.49, 0.9, 1.0, 1.1, 2.1].map(|r| t.allows(r));
    assert_eq!(
        allowed(Tolerance::Factor(2.0)),
        [false, true, true, true, false]
    );
    assert_eq!(
        allowed(Tolerance::Percent(9.0)),
        [false, false, true, false, false]
    );
    assert_eq!(allowed(Tolerance::AtMost), [true, true, true, false, false]);
    assert_eq!(
        allowed(Tolerance::AtLeast),
        [false, false, true, true, true]
    );
}

/// Whether a rule holds between figures of the quantum study, by seed.
fn holds(rule: Rule, over: Statistic, figures: &[&[f64]]) -> (Option<bool>, Option<f64>) {
    let mut study = study("cfq-quantum-2010").unwrap();
    study.orderings = vec![Ordering {
        text: String::new(),
        basis: Basis::Published,
        remark: String::new(),
        measures: (0..figures.len()).collect(),
        over,
        rule,
    }];
    let mut values = vec![Vec::new(); study.measures.len()];
    for (value, f) in values.iter_mut().zip(figures) {
        *value = f.to_vec();
    }
    let all = Reproduction::new(std::slice::from_ref(&study), &[values]);
    (all.orderings[0].holds, all.orderings[0].value)
}

#[test]
fn rules_compare_what_they_say() {
    let median = Statistic::Median;
    let ratio = |a: f64| holds(Rule::Ratio(3.0, 10.0), median, &[&[a], &[2.0]]);
    assert_eq!(ratio(8.0), (Some(true), Some(4.0)));
    assert_eq!(ratio(4.0), (Some(false), Some(2.0)));
    assert_eq!(ratio(22.0).0, Some(false));
    let at_most = Rule::Value(f64::NEG_INFINITY, 4.0);
    assert_eq!(holds(at_most, median, &[&[4.0]]).0, Some(true));
    assert_eq!(
        holds(at_most, Statistic::Max, &[&[3.0, 5.0]]).0,
        Some(false)
    );
    let equal = |b: f64| holds(Rule::Equal(10.0), median, &[&[100.0], &[b]]).0;
    assert_eq!((equal(109.0), equal(89.0)), (Some(true), Some(false)));
    let rises = |f| holds(Rule::Ascending(2.0), median, &[&[1.0], &[2.5], &[f]]);
    assert_eq!(rises(6.0), (Some(true), Some(2.4)));
    assert_eq!(rises(5.0).0, Some(false));
    let steady: &[f64] = &[10.0, 10.0, 10.3];
    let cv = |seeds: usize| {
        holds(
            Rule::Ratio(3.0, f64::INFINITY),
            Statistic::Cv,
            &[&[8.0, 12.0, 10.0][..seeds], &steady[..seeds]],
        )
    };
    assert_eq!((cv(3).0, cv(2).0), (Some(true), None));
}

#[test]
fn a_study_runs() {
    let studies = [study("cfq-quantum-2010").unwrap()];
    let stop = Arc::new(AtomicBool::new(false));
    let plan = Plan::new(&studies, 1).unwrap();
    let all = plan.run(2, &stop, || {}).unwrap();
    assert!(all.numbers.iter().all(|n| n.measured.ours.is_some()));
    assert_eq!(all.summary.orderings.orderings_hold, 1, "{all:?}");
}
