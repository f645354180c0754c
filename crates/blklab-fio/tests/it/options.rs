// SPDX-License-Identifier: MIT OR Apache-2.0
//! No option is ignored without a word: one that is said to act changes the
//! settings, one that does not says so or has a reason why it cannot matter.

use blklab_fio::option::{ALL, ENGINES, Effect, Kind, OptionSpec};
use blklab_fio::parse::{Fixed, JobFile, ParseOptions, parse};

fn read(lines: &str) -> Result<JobFile, String> {
    let text = format!("[other]\nsize=1m\n[a]\nsize=1m\n{lines}\n");
    parse("a.fio", &text, &ParseOptions::default(), &Fixed::default()).map_err(|e| e.to_string())
}

/// Everything but the names of the options given.
fn settings(lines: &str) -> String {
    let Ok(file) = read(lines) else {
        return "refused".to_owned();
    };
    let mut jobs = file.jobs;
    let mut job = jobs.remove(1);
    job.settings.given.clear();
    format!(
        "{:?} {:?} {:?} {}",
        job.settings,
        job.files,
        job.rate_bps,
        jobs.len()
    )
}

/// A value that is not the default, and what has to stand beside it.
fn value_of(spec: &OptionSpec) -> (String, &'static str) {
    let special = match spec.name {
        "bssplit" | "cmdprio_bssplit" => Some(("4k/50:8k/50", "")),
        "ignore_error" => Some(("EIO", "")),
        "steadystate" => Some(("iops:5%", "new_group\nsteadystate_duration=9")),
        "steadystate_ramp_time" => {
            Some(("3", "new_group\nsteadystate=bw:9\nsteadystate_duration=9"))
        }
        "steadystate_duration" => Some(("9", "new_group\nsteadystate=bw:9")),
        "read_iolog" => None,
        "time_based" => Some(("1", "runtime=5")),
        "zonesize" => Some(("64k", "zonemode=strided")),
        "zonerange" => Some(("128k", "zonemode=strided\nzonesize=64k")),
        "zonemode" => Some(("strided", "zonesize=64k")),
        "buffered" => Some(("0", "")),
        "startdelay" | "runtime" => Some(("7", "")),
        "loops" | "numjobs" => Some(("3", "")),
        "openfiles" => Some(("2", "nrfiles=3")),
        "file_service_type" => Some(("random", "")),
        "filename_format" => Some(("x.$jobnum", "")),
        "unified_rw_reporting" => Some(("both", "")),
        "kb_base" => Some(("1000", "")),
        "iodepth_batch" | "iodepth_low" => Some(("3", "iodepth=8\nioengine=libaio")),
        "rwmixread" | "rwmixwrite" => Some(("70", "")),
        "cgroup_weight" => Some(("200", "")),
        "flow" | "flow_id" => Some(("3", "")),
        "thinktime_blocks_type" => Some(("issue", "")),
        "sync_file_range" => Some(("write:3", "")),
        "overwrite" | "file_append" => Some(("1", "rw=write")),
        "softrandommap" => Some(("1", "")),
        "bsrange" => Some(("4k-8k", "")),
        "random_distribution" => Some(("zipf:1.2", "")),
        "ba" => Some(("8k", "rw=randread")),
        "latency_percentile" => Some(("50", "")),
        _ => None,
    };
    if let Some((value, beside)) = special {
        return (value.to_owned(), beside);
    }
    let value = match spec.kind {
        Kind::Text | Kind::OptionalText => "other".to_owned(),
        Kind::Pattern { .. } => "0xff".to_owned(),
        Kind::Keyword(words) => {
            let other = words
                .iter()
                .rev()
                .find(|w| **w != spec.default && **w != "zbd");
            (*other.unwrap_or(&words[0])).to_owned()
        }
        Kind::Multi(words) => words[0].to_owned(),
        Kind::Int { min, .. } => (min.max(1) + 1).to_string(),
        Kind::Long { .. } | Kind::ZoneSize => "12k".to_owned(),
        Kind::Time { .. } => "3".to_owned(),
        Kind::Bool | Kind::Flag if spec.default == "1" => "0".to_owned(),
        Kind::Bool | Kind::Flag => "1".to_owned(),
        Kind::Floats { .. } => "0.5".to_owned(),
        Kind::Ranges => "4k-8k".to_owned(),
        Kind::Deprecated { .. } => "1".to_owned(),
    };
    (value, "")
}

/// What is wrong with one option, beside `around`.
fn fault(spec: &OptionSpec, around: &str) -> Option<String> {
    let (value, beside) = value_of(spec);
    let around = format!("{around}{beside}\n");
    let line = format!("{}={value}", spec.name);
    let with = format!("{around}{line}");
    let file = match (read(&with), spec.effect) {
        (Err(error), Effect::Refused(why)) if error.contains(why) => return None,
        (Ok(_), Effect::Refused(_)) => return Some(format!("{line} is accepted")),
        (Err(_), _) if matches!(spec.kind, Kind::Deprecated { .. }) => return None,
        (Err(error), _) => return Some(error),
        (Ok(file), _) => file,
    };
    let noted = |text: &str| {
        let mut own = file.notes.iter().filter(|n| n.option == spec.name);
        own.any(|n| n.text == text)
    };
    match spec.effect {
        Effect::Shapes if settings(&with) == settings(&around) => {
            Some(format!("{line} changes nothing"))
        }
        Effect::Unsupported(text) if !noted(text) => Some(format!("{line} is not noted")),
        _ => None,
    }
}

fn check(faults: impl Iterator<Item = Option<String>>) {
    let faults: Vec<String> = faults.flatten().collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_option_acts_or_says_what_it_does() {
    // What fio replays shapes nothing without a log.
    let replays = |name: &str| {
        ["read_iolog", "replay_", "merge_blktrace"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    let own = ALL.iter().filter(|spec| !replays(spec.name));
    check(own.map(|spec| fault(spec, "")));
}

#[test]
fn every_option_of_a_simulated_engine_acts_or_says_what_it_does() {
    let simulated = ENGINES.iter().filter(|engine| engine.is_simulated());
    check(simulated.flat_map(|engine| {
        let around = format!("ioengine={}\n", engine.name);
        let own = engine.options.iter();
        own.map(move |spec| fault(spec, &around))
    }));
}

#[test]
fn every_option_has_a_reason() {
    let engines = ENGINES.iter().flat_map(|engine| engine.options);
    for spec in ALL.iter().chain(engines) {
        assert!(!spec.effect.reason().is_empty(), "{}", spec.name);
    }
}

#[test]
fn a_class_without_a_level_has_the_best_one() {
    let prio = |lines| {
        let jobs = read(lines).expect("jobs").jobs;
        (jobs[1].ioprio().value() >> 13, jobs[1].ioprio().level)
    };
    assert_eq!(prio("prioclass=1"), (1, 0));
    assert_eq!(prio("prioclass=2"), (2, 0));
    assert_eq!(prio("prio=3"), (2, 3));
    assert_eq!(prio("prioclass=2\nprio=7"), (2, 7));
    assert_eq!(prio(""), (0, 0));
}
