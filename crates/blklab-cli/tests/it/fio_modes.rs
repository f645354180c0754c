// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows and worker threads on the simulated machine.

use crate::support::Folder;

/// The fields of fio's terse lines, one line a job.
fn terse(f: &Folder, job: &str, args: &[&str]) -> Vec<Vec<String>> {
    f.write("m.fio", job);
    let mut all = vec!["run", "m.fio", "--output-format", "terse"];
    all.extend(args);
    f.run(&all)
        .stdout
        .lines()
        .filter(|line| line.starts_with("3;"))
        .map(|line| line.split(';').map(str::to_owned).collect())
        .collect()
}

/// IOPS of reads per job.
fn iops(f: &Folder, job: &str) -> Vec<f64> {
    terse(f, job, &["--device", "null_blk"])
        .iter()
        .map(|fields| fields[7].parse().unwrap())
        .collect()
}

/// fio 3.33 with the null engine: 1941, 9702 and 19406 IOPS.
#[test]
fn jobs_of_a_flow_issue_by_weight() {
    let f = Folder::new();
    for sleep in ["", "flow_sleep=100\n"] {
        let job = format!(
            "[global]\nioengine=null\nsize=100g\nruntime=1\ntime_based\nflow_id=1\n{sleep}[a]\n\
             flow=1\n[b]\nflow=5\n[c]\nflow=10\n"
        );
        let iops = iops(&f, &job);
        for (at, weight) in [(1, 5.0), (2, 10.0)] {
            let ratio = iops[at] / iops[0];
            assert!((ratio / weight - 1.0).abs() < 0.02, "{sleep} {iops:?}");
        }
    }
}

/// fio's t0014: when a job has ended, the others share by their weights.
#[test]
fn what_an_ended_job_has_issued_no_longer_counts() {
    let f = Folder::new();
    let job = "[global]\nioengine=null\nsize=100g\nruntime=2\ntime_based\n[a]\nflow=1\n[b]\n\
               flow=2\n[c]\nflow=3\nruntime=1\n";
    let iops = iops(&f, job);
    assert!((iops[1] / iops[0] - 2.0).abs() < 0.05, "{iops:?}");
}

/// The job hands I/Os over at its rate, whatever the disk does; waiting for a
/// worker counts as latency, not as completion latency.
#[test]
fn workers_keep_the_rate_of_arrivals() {
    let f = Folder::new();
    let job = |mode: &str| {
        format!(
            "[a]\nioengine=psync\nrw=randread\nfilename=/dev/sda\ndirect=1\nsize=450g\n\
             runtime=5\ntime_based\nrate_iops=100\niodepth=8\nio_submit_mode={mode}\n"
        )
    };
    let reads = |mode: &str| -> f64 {
        terse(&f, &job(mode), &["--device", "sata-7200-2008"])[0][7]
            .parse()
            .unwrap()
    };
    // The disk does about 80 a second one by one, more when it can sort.
    let (inline, offload) = (reads("inline"), reads("offload"));
    assert!(inline < 95.0 && offload > 98.0, "{inline} {offload}");
}

#[test]
fn every_engine_works_behind_workers() {
    let f = Folder::new();
    for engine in ["libaio", "io_uring", "posixaio", "sync", "null", "mmap"] {
        let job = format!(
            "[global]\nioengine={engine}\nrw=randrw\nsize=1m\nfsync=10\nnorandommap\niodepth=4\n\
             io_submit_mode=offload\nserialize_overlap=1\nfilename=data\n[a]\nnumjobs=2\n"
        );
        let jobs = terse(&f, &job, &["--kernel", "6.1"]);
        let bytes: u64 = jobs
            .iter()
            .map(|j| j[5].parse::<u64>().unwrap() + j[46].parse::<u64>().unwrap())
            .sum();
        assert_eq!(bytes, 2048, "{engine}");
    }
}
