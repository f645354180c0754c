// SPDX-License-Identifier: MIT OR Apache-2.0
//! `read_iolog`: logs and traces replayed as fio 3.33 does.

use crate::support::{Folder, digest, root};

fn sample(name: &str) -> String {
    root()
        .join("testdata/fio/replay")
        .join(name)
        .display()
        .to_string()
}

#[test]
fn recorded_replays_are_listed_as_fio_issued_them() {
    let f = Folder::new();
    for name in ["mixed-v3", "clones", "options", "trace", "trace-be"] {
        let job = sample(&format!("{name}.fio"));
        let listed = f.run(&["workload", &job, "--output-format", "csv"]).stdout;
        let expected = std::fs::read_to_string(sample(&format!("{name}.expected.csv"))).unwrap();
        assert_eq!(listed, expected, "{name}");
    }
}

#[test]
fn traces_are_merged_by_time() {
    let f = Folder::new();
    for name in ["trace.bin", "trace-be.bin"] {
        std::fs::copy(sample(name), f.path(name)).unwrap();
    }
    f.write(
        "m.fio",
        "[m]\nread_iolog=trace.bin:trace-be.bin\nmerge_blktrace_file=m.bin\n\
         merge_blktrace_scalars=100:50\nmerge_blktrace_iters=1:2\nreplay_redirect=/dev/sda\n",
    );
    let listed = f
        .run(&["workload", "m.fio", "--output-format", "csv"])
        .stdout;
    // 13 reads, and twice 5 reads, a discard, a flush and a write.
    assert_eq!(listed.lines().count(), 1 + 13 + 2 * 8, "{listed}");
    assert!(!f.names(".").contains(&"m.bin".to_owned()));
}

/// A recording of the simulation itself, replayed: the same I/Os at the same
/// distances.
#[test]
fn what_was_written_is_replayed_at_its_times() {
    let f = Folder::new();
    let record = "[a]\nfilename=/dev/sda\nrw=randread\nsize=1m\nnumber_ios=20\ndirect=1\n\
                  rate_iops=50\nwrite_iolog=io.log\n";
    f.write("record.fio", record);
    f.ok(&["run", "record.fio", "--device", "null_blk"]);
    f.write(
        "replay.fio",
        "[a]\ndirect=1\nread_iolog=io.log\nwrite_lat_log=r\nlog_offset=1\n",
    );
    f.ok(&["run", "replay.fio", "--device", "null_blk"]);
    let recorded: Vec<(u64, u64)> = f
        .read("io.log")
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let us: u64 = words.next()?.parse().ok()?;
            let offset = words.nth(2)?.parse().ok()?;
            Some((us / 1000, offset))
        })
        .collect();
    let replayed: Vec<(u64, u64)> = f
        .read("r_lat.1.log")
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(", ").collect();
            (words[0].parse().unwrap(), words[4].parse().unwrap())
        })
        .collect();
    assert_eq!(recorded.len(), 20);
    let near = |(a, b): (&(u64, u64), &(u64, u64))| a.1 == b.1 && a.0.abs_diff(b.0) <= 1;
    assert!(
        recorded.len() == replayed.len() && recorded.iter().zip(&replayed).all(near),
        "{recorded:?} {replayed:?}"
    );
}

#[test]
fn a_run_directory_has_the_log_with_it() {
    let f = Folder::new();
    std::fs::create_dir(f.path("jobs")).unwrap();
    for name in ["mixed-v3.iolog", "hand-v2.iolog"] {
        std::fs::copy(sample(name), f.path(&format!("jobs/{name}"))).unwrap();
    }
    f.write(
        "jobs/r.fio",
        "[global]\niodepth=4\nioengine=libaio\ndirect=0\n[r]\nread_iolog=mixed-v3.iolog\n[s]\n\
         read_iolog = hand-v2.iolog:mixed-v3.iolog\nnumjobs=2\n",
    );
    let first = f.ok(&["run", "jobs/r.fio", "--out", "kept"]);
    std::fs::remove_dir_all(f.path("jobs")).unwrap();
    let again = f.ok(&["run", "kept/experiment.toml", "--out", "again"]);
    assert_eq!(digest(&first), digest(&again));
    let logs = |folder: &str| -> Vec<String> {
        let mut names = f.names(folder);
        names.retain(|name| name.ends_with(".iolog"));
        names
    };
    assert_eq!(logs("kept").len(), 2);
    assert_eq!(logs("kept"), logs("again"));
}

#[test]
fn bad_logs_are_refused_with_their_line() {
    let f = Folder::new();
    f.write("j.fio", "[r]\nread_iolog=l\n");
    for (log, expected) in [
        (
            "fio version 2 iolog\nx add\nx read 0 4096\n",
            "l:3: x is not open",
        ),
        (
            "0, 0, 4096\n",
            "l:1: not an iolog that fio 3.33 replays: the first line is 'fio version 2 iolog' or \
             'fio version 3 iolog'",
        ),
        ("eat\x07", "l: "),
    ] {
        f.write("l", log);
        for command in ["run", "workload"] {
            let done = f.run(&[command, "j.fio"]);
            assert_eq!(done.code, Some(2), "{}", done.stderr);
            let first = done.stderr.trim_start_matches("blklab: ");
            assert!(first.starts_with(expected), "{command}: {first}");
            assert_eq!(first.lines().count(), 1, "{first}");
        }
    }
    f.write("d.fio", "[r]\nread_iolog=/dev/null\n");
    let done = f.run(&["run", "d.fio"]);
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr
            .contains("read_iolog=/dev/null: not a regular file")
    );
}
