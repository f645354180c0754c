// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `workload` lists is what `run` issues.

use crate::support::{Folder, root};
use std::collections::BTreeMap;

/// Operation, first byte and length.
type Io = (char, u64, u64);

/// The I/Os of each job in its order, as `workload` lists them.
fn listed(f: &Folder, args: &[&str]) -> BTreeMap<u32, Vec<Io>> {
    let done = f.run(&[&["workload", "--output-format", "csv"], args].concat());
    assert_eq!(done.code, Some(0), "{args:?}\n{}", done.stderr);
    let mut jobs: BTreeMap<u32, Vec<Io>> = BTreeMap::new();
    for line in done.stdout.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let op = match fields[1] {
            "read" => 'R',
            "write" => 'W',
            _ => continue,
        };
        let number = |i: usize| fields[i].parse::<u64>().expect("a number");
        let job = jobs.entry(number(0) as u32).or_default();
        job.push((op, number(2), number(3)));
    }
    jobs
}

/// The bios of each job in its order, as `run --trace` records them.
fn queued(f: &Folder, args: &[&str]) -> BTreeMap<u32, Vec<Io>> {
    let done = f.run(&[&["run", "--trace", "trace.txt"], args].concat());
    assert_eq!(done.code, Some(0), "{args:?}\n{}", done.stderr);
    let mut jobs: BTreeMap<u32, Vec<Io>> = BTreeMap::new();
    for line in f.read("trace.txt").lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, _, pid, "Q", rwbs, sector, "+", sectors, ..] = fields[..] else {
            continue;
        };
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let op = rwbs.chars().find(|c| "RW".contains(*c)).expect("data");
        let job = number(pid) as u32 - 1000;
        let io = (op, number(sector) * 512, number(sectors) * 512);
        jobs.entry(job).or_default().push(io);
    }
    jobs
}

/// Both agree, to the end unless the clock ends the jobs. Files lie somewhere on the disk, in one piece: `shift` bytes
/// behind the offset, or if none is given as far as the first I/O says.
fn agree(f: &Folder, args: &[&str], shift: Option<u64>, whole: bool) {
    let (listed, mut queued) = (listed(f, args), queued(f, args));
    assert!(!listed.is_empty(), "{args:?}");
    for (job, ios) in &mut queued {
        let first = ios[0].1 - listed[job][0].1;
        let shift = shift.unwrap_or(first);
        ios.iter_mut().for_each(|io| io.1 -= shift);
    }
    for (job, ios) in &listed {
        let bios = &queued[job];
        let differs = ios.iter().zip(bios).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{args:?}: job {job}");
        assert!(!whole || ios.len() == bios.len(), "{args:?}: job {job}");
    }
}

#[test]
fn a_listing_agrees_with_the_trace_of_a_run() {
    let f = Folder::new();
    let jobs = [
        "rw=randread\nnumber_ios=300",
        "rw=randrw\nbssplit=4k/50:16k/50\nnumber_ios=300\nioengine=libaio\niodepth=8",
        "rw=randread\nnumber_ios=100\nsize=50%\noffset=25%",
        "rw=write\nbs=64k\nsize=4m\noffset=90%",
        "rw=randwrite\nnumber_ios=100\nrandom_distribution=zipf:1.2\nnorandommap\nsize=$mb_memory*1048576",
        "rw=read\nsize=1m*$ncpus\nnumjobs=$ncpus\noffset_increment=10%",
        "rw=randread\nnumber_ios=100\nioengine=io_uring\niodepth=4\nrandrepeat=0",
    ];
    let machines: [&[&str]; 4] = [
        &[],
        &["--device", "sas-15k", "--memory", "2g", "--set", "cpus=4"],
        &["--kernel", "2.6.28", "--device", "sata-7200-2008"],
        &["--device", "null_blk,gb=3", "--seed", "7"],
    ];
    for job in jobs {
        let job = job.replace("size=1m*$ncpus", "size=$ncpus*1048576");
        f.write(
            "a.fio",
            format!("[a]\nfilename=/dev/sda\ndirect=1\n{job}\n"),
        );
        for machine in machines {
            let old = machine.contains(&"2.6.28") && job.contains("io_uring");
            if !old {
                agree(&f, &[&["a.fio"], machine].concat(), Some(0), true);
            }
        }
    }
}

#[test]
fn the_listing_of_an_example_agrees_with_its_run() {
    let f = Folder::new();
    for entry in std::fs::read_dir(root().join("examples")).expect("the examples") {
        let path = entry.expect("an entry").path();
        let name = path.display().to_string();
        // A toml of several configurations writes several traces.
        if !name.ends_with(".fio") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("text");
        // Buffered I/O is not issued as it is listed.
        if is_direct(&text) {
            agree(&f, &[&name], None, !text.contains("runtime"));
        }
    }
}

/// Whether all jobs pass by the page cache.
fn is_direct(job: &str) -> bool {
    let sections: Vec<&str> = job.split("\n[").filter(|s| s.contains(']')).collect();
    let is_direct = |section: &&str| section.contains("direct=1");
    let is_global = |section: &&&str| section.trim_start_matches('[').starts_with("global]");
    sections.iter().filter(is_global).any(is_direct) || sections.iter().all(is_direct)
}

/// A disk of 73 GB was read up to 422 GB.
#[test]
fn a_listing_stays_within_the_disk() {
    let f = Folder::new();
    f.write(
        "a.fio",
        "[a]\nfilename=/dev/sda\nrw=randread\nnumber_ios=1000\n",
    );
    let end = |args: &[&str]| {
        let ios = &listed(&f, args)[&1];
        ios.iter().map(|io| io.1 + io.2).max().expect("I/Os")
    };
    assert!(end(&["a.fio", "--device", "sas-15k"]) < 74_000_000_000);
    assert!(end(&["a.fio"]) > 400_000_000_000);
}

#[test]
fn notes_go_to_standard_error() {
    let f = Folder::new();
    f.write("a.fio", "[a]\nsize=8k\nioscheduler=bfq\n");
    let done = f.run(&["workload", "a.fio"]);
    assert_eq!(done.code, Some(0));
    assert_eq!(
        done.stderr,
        "note: the job file chose the scheduler: ioscheduler=bfq (one named for the experiment goes first)\n"
    );
}

#[test]
fn a_job_file_chooses_the_scheduler_where_nothing_else_does() {
    let f = Folder::new();
    let job = "[a]\nrw=randread\nsize=1m\ndirect=1\nioscheduler=bfq\n";
    f.write("a.fio", job);
    let text = f.ok(&["run", "a.fio"]);
    assert!(text.contains("\nbfq  "), "{text}");
    assert!(text.contains("the job file chose the scheduler"), "{text}");
    let matrix = f.ok(&["run", "a.fio", "--set", "slice_idle=0,8"]);
    assert!(matrix.contains("slice_idle=0"), "{matrix}");
    let text = f.ok(&["run", "a.fio", "--sched", "none"]);
    assert!(text.contains("\nnone  "), "{text}");
    assert!(
        text.contains("asks for ioscheduler=bfq; none ran"),
        "{text}"
    );
    let done = f.run(&["run", "a.fio", "--kernel", "2.6.28"]);
    assert_eq!(done.code, Some(2));
    for part in ["ioscheduler=bfq in the job file", "cfq"] {
        assert!(done.stderr.contains(part), "{}", done.stderr);
    }
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    f.write("a.fio", format!("{job}[b]\nsize=1m\nioscheduler=none\n"));
    let done = f.run(&["run", "a.fio"]);
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr
            .contains("job 'a' asks for ioscheduler=bfq, job 'b' for none"),
        "{}",
        done.stderr
    );
    f.write("e.toml", "job_file = \"a.fio\"\nscheduler = \"kyber\"\n");
    assert!(f.ok(&["run", "e.toml"]).contains("\nkyber  "));
}
