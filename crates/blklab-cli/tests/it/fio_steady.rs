// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio jobs that end at a steady state.

use crate::support::Folder;
use serde_json::Value;

const GLOBAL: &str = "[global]\nioengine=libaio\ndirect=1\nrw=randread\nsize=64m\ntime_based\n\
                      runtime=12\nrate_iops=100\nnorandommap\n";

/// A run with fio's text.
const NORMAL: [&str; 6] = [
    "run",
    "s.fio",
    "--device",
    "null_blk",
    "--output-format",
    "normal",
];

/// The jobs of fio's JSON.
fn jobs(f: &Folder, job: &str) -> Vec<Value> {
    f.write("s.fio", format!("{GLOBAL}{job}"));
    let args = [
        "run",
        "s.fio",
        "--device",
        "null_blk",
        "--output-format",
        "json",
    ];
    let root: Value = serde_json::from_str(&f.ok(&args)).expect("JSON");
    root["jobs"].as_array().expect("jobs").clone()
}

/// Run time of the reads, ms.
fn runtime_ms(job: &Value) -> u64 {
    job["read"]["runtime"].as_u64().expect("a run time")
}

fn iops(job: &Value) -> Vec<u64> {
    let list = job["steadystate"]["data"]["iops"].as_array().expect("list");
    list.iter().map(|n| n.as_u64().expect("a count")).collect()
}

/// Two equal jobs, reported together, measured from the second second on.
#[test]
fn a_group_ends_when_its_rate_is_steady() {
    let f = Folder::new();
    let job = "group_reporting\nsteadystate=iops:5%\nss_dur=3\nss_ramp=1\n[a]\nnumjobs=2\n";
    let jobs = jobs(&f, job);
    let [job] = &jobs[..] else {
        panic!("one entry: {jobs:?}")
    };
    assert!(runtime_ms(job).abs_diff(4_000) < 20, "{}", runtime_ms(job));
    let steady = &job["steadystate"];
    let keys: Vec<&String> = steady.as_object().expect("an object").keys().collect();
    let fio_3_33 = [
        "ss",
        "duration",
        "attained",
        "criterion",
        "max_deviation",
        "slope",
        "data",
    ];
    assert_eq!(keys, fio_3_33);
    let data: Vec<&String> = steady["data"].as_object().expect("data").keys().collect();
    assert_eq!(data, ["bw_mean", "iops_mean", "iops", "bw"]);
    assert_eq!(steady["ss"], "iops:5.000000%");
    assert_eq!(
        (&steady["duration"], &steady["attained"]),
        (&3.into(), &1.into())
    );
    assert!(iops(job).iter().all(|n| n.abs_diff(200) <= 2), "{steady}");
    let mean = steady["data"]["bw_mean"].as_u64().expect("a mean");
    assert!(mean.abs_diff(200 * 4096) <= 2 * 4096, "{mean}");

    let text = f.run(&NORMAL).stdout;
    let line = text.lines().find(|line| line.contains("steadystate"));
    let line = line.expect("a line on the steady state");
    assert!(
        line.starts_with(
            "  steadystate  : attained=yes, bw=800KiB/s (800kB/s), iops=200, iops mean dev=0."
        ),
        "{line}"
    );
}

/// The rate doubles in the third second: only then is it steady.
#[test]
fn a_change_of_the_rate_is_waited_out() {
    let f = Folder::new();
    let job = "group_reporting\nsteadystate=iops_slope:1%\nss_dur=3\n\
               [late]\nstartdelay=2500ms\n[first]\n";
    let jobs = jobs(&f, job);
    assert!(iops(&jobs[0]).iter().all(|n| n.abs_diff(200) <= 2));
    assert!(runtime_ms(&jobs[0]).abs_diff(5_000) < 20, "{jobs:?}");
}

/// A limit of nothing is never met, and a window that is not full shows zeros.
#[test]
fn jobs_that_are_not_steady_run_to_their_end() {
    let f = Folder::new();
    let job = "runtime=4\nss_dur=3\n[never]\nsteadystate=bw_slope:0\n[soon]\nnew_group\n\
               steadystate=bw:1k\n[short]\nnew_group\nsteadystate=bw:10%\nss_dur=6\n";
    let jobs = jobs(&f, job);
    let attained: Vec<_> = jobs.iter().map(|j| &j["steadystate"]["attained"]).collect();
    assert_eq!(attained, [0, 1, 0], "{jobs:?}");
    let ends: Vec<u64> = jobs.iter().map(|j| runtime_ms(j).div_ceil(100)).collect();
    assert!(ends[0] >= 40 && ends[2] >= 40 && ends[1] <= 31, "{ends:?}");
    assert_eq!(iops(&jobs[2])[4..], [0, 0]);
    assert_eq!(jobs[2]["steadystate"]["criterion"], "0.000000%");
    assert_eq!(jobs[1]["steadystate"]["ss"], "bw:1024.000000");
}

/// Looks begin anew when the ramp time is over.
#[test]
fn ramp_times_do_not_count() {
    let f = Folder::new();
    let job = "ramp_time=1500ms\nsteadystate=iops:2\nss_dur=2\n[a]\n";
    let jobs = jobs(&f, job);
    assert_eq!(jobs[0]["steadystate"]["attained"], 1);
    assert!(runtime_ms(&jobs[0]).abs_diff(2_000) < 20, "{jobs:?}");
}

#[test]
fn mistakes_are_refused() {
    let f = Folder::new();
    for (lines, message) in [
        (
            "steadystate=iops\n",
            "threshold must be specified in addition to criterion",
        ),
        (
            "steadystate=iops:x\n",
            "IOPS threshold postfix parsing failed",
        ),
        ("steadystate=bw:x\n", "BW threshold postfix parsing failed"),
        (
            "steadystate=bw:x%\n",
            "could not parse steadystate threshold percentage",
        ),
        (
            "ss_dur=3\n[b]\nss_dur=4\n",
            "must be consistent within reporting groups",
        ),
        ("ss_dur=100d\n", "at most 1000000 s"),
    ] {
        f.write("s.fio", format!("{GLOBAL}[a]\n{lines}"));
        let run = f.run(&["run", "s.fio"]);
        assert_eq!(run.code, Some(2), "{lines}");
        assert!(run.stderr.contains(message), "{lines}: {}", run.stderr);
    }
}

#[test]
fn a_criterion_without_a_duration_is_told_of() {
    let f = Folder::new();
    f.write(
        "s.fio",
        format!("{GLOBAL}runtime=1\n[a]\nsteadystate=iops:5%\n"),
    );
    let run = f.run(&["run", "s.fio", "--device", "null_blk"]);
    let all = format!("{}{}", run.stdout, run.stderr);
    assert!(
        all.contains("steadystate_duration is below one second"),
        "{all}"
    );
    let text = f.run(&NORMAL).stdout;
    assert!(
        text.contains("issued rwts") && !text.contains("steadystate  :"),
        "{text}"
    );
}
