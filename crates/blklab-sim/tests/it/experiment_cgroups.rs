// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups in experiment files, settings and fio jobs.

use blklab_experiment::{Experiment, Source, Workload, parse};
use blklab_fio::parse::{Fixed, ParseOptions};
use blklab_sim::catalogue;
use blklab_types::Error;
use blklab_types::IoMax;

const MQ: &str = "kernel = '6.12'\nscheduler = 'mq-deadline'\n";
const CFQ: &str = "kernel = '4.19'\nscheduler = 'cfq'\n";

/// A file with a workload, which comes last.
fn read(head: &str, tables: &str) -> Result<Experiment, Error> {
    let text = format!("{head}job = '''\n[a]\nsize=1m\n'''\n{tables}");
    let no_files = |_: &str| Err(Error::new("no files here"));
    let e = parse("e.toml", Source::Toml, &text, &no_files, &catalogue())?;
    e.check(&catalogue()).map_err(|err| Error {
        file: Some("e.toml".to_owned()),
        ..err
    })?;
    Ok(e)
}

fn names(e: &Experiment) -> Vec<&str> {
    e.cgroups.iter().map(|g| g.name.as_str()).collect()
}

#[test]
fn files_are_written_as_the_kernels() {
    let tables = "[cgroup.a]\n'io.max' = 'rbps=1048576 wiops=120 riops=max'\n\
                  [cgroup.'x/y']\nio.max = 'wbps=1'\nio.bfq.weight = 300\n";
    let e = read(MQ, tables).unwrap();
    assert_eq!(names(&e), ["a", "x", "x/y"]);
    let a = IoMax {
        read_bytes_per_s: Some(1_048_576),
        write_ios_per_s: Some(120),
        ..IoMax::default()
    };
    assert_eq!(e.cgroups[0].limits(), Some(a));
    assert_eq!(e.cgroups[1].limits(), None);
    assert_eq!(e.cgroups[2].bfq_weight, Some(300));
    assert_eq!(e.cgroups[2].parent(), Some("x"));
    // `default N` is the kernel's other way to write a weight.
    let e = read(CFQ, "[cgroup.a]\nblkio.weight = 'default 300'\n").unwrap();
    assert_eq!(e.cgroups[0].blkio_weight, Some(300));
}

#[test]
fn they_are_saved_and_read_again() {
    let tables = "[cgroup.a]\nio.max = 'rbps=5 wiops=7'\n[cgroup.'x.y/z']\nio.weight = 30\n";
    let e = read(MQ, tables).unwrap();
    let text = e.to_toml("a.fio", &catalogue()).unwrap();
    let job = |_: &str| Ok(("a.fio".to_owned(), "[a]\nsize=1m\n".to_owned()));
    let again = parse("e.toml", Source::Toml, &text, &job, &catalogue()).unwrap();
    assert_eq!(again.cgroups, e.cgroups);
    assert_eq!(again.to_toml("a.fio", &catalogue()).unwrap(), text);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let line = |n: usize, what: &str| format!("e.toml:{n}: cgroup a: {what}");
    // The tables begin on line 7.
    let cases = [
        (
            MQ,
            "io.max = 'rbps'",
            line(8, "io.max: 'rbps' is not KEY=VALUE; write rbps=, wbps="),
        ),
        (
            MQ,
            "io.max = 'rbps=0'",
            line(8, "io.max: 'rbps=0' has no such value; write"),
        ),
        (
            MQ,
            "\nio.max = 'rps=1'",
            line(9, "io.max: no limit is called 'rps'; did you mean 'rbps'?"),
        ),
        (MQ, "io.max = ''", line(8, "io.max: no limit; write")),
        (
            MQ,
            "io.bfq.weight = 0",
            line(8, "io.bfq.weight = 0: expected a number from 1 to 1000"),
        ),
        (
            MQ,
            "io.weight = 10001",
            line(8, "io.weight = 10001: expected a number from 1 to 10000"),
        ),
        (
            "kernel = '6.12'\nscheduler = 'bfq'\n",
            "io.weight = 1001",
            "e.toml: cgroup a: io.weight = 1001: bfq takes weights from 1 to 1000".to_owned(),
        ),
        (
            MQ,
            "io.latency = '5'",
            line(8, "io.latency = 5: expected target=MICROSECONDS"),
        ),
        (
            MQ,
            "io.prio.class = 'rt'",
            line(8, "io.prio.class: no policy is called 'rt'"),
        ),
        (
            MQ,
            "io.max = 'rbps=1'\nblkio.bfq.weight = 5",
            "e.toml: cgroup a: io.max is of the unified hierarchy, and blkio files".to_owned(),
        ),
        (
            MQ,
            "io.wieght = 50",
            line(
                8,
                "no file is called 'io.wieght'; did you mean 'io.weight'?",
            ),
        ),
        (
            MQ,
            "memory.high = 1048576",
            "e.toml: cgroup a: memory.high is not modelled; the target kernel has it".to_owned(),
        ),
        (
            MQ,
            "'io.cost.qos' = 'enable=1'",
            "e.toml: cgroup a: io.cost.qos is a file of the root group, which is called /"
                .to_owned(),
        ),
        (
            CFQ,
            "blkio.bfq.weight = 50",
            "e.toml: cgroup a: blkio.bfq.weight is not modelled before 5.0".to_owned(),
        ),
        (
            CFQ,
            "blkio.weight = 5",
            line(8, "blkio.weight = 5: expected a number from 10 to 1000"),
        ),
    ];
    for (head, files, expected) in cases {
        let err = read(head, &format!("[cgroup.a]\n{files}\n"))
            .unwrap_err()
            .to_string();
        assert!(err.starts_with(&expected), "{err}\nnot {expected}");
        assert_eq!(err.lines().count(), 1, "{err}");
    }
    let err = read(MQ, "[cgroup.'a//b']\n").unwrap_err().to_string();
    let expected = "e.toml:7: cgroup a//b: 'a//b' is no name of a control group; write a, or a/b";
    assert!(err.starts_with(expected), "{err}");
}

#[test]
fn kernels_without_a_file_refuse_it() {
    let cases = [
        (
            CFQ,
            "io.max = 'rbps=1'",
            "io.max: kernel 4.19: it is modelled from 5.0 on; earlier kernels have limits in \
             blkio.throttle",
        ),
        (
            CFQ,
            "io.bfq.weight = 1",
            "io.bfq.weight: kernel 4.19: it is BFQ's, from 5.0 on; weights of earlier kernels are",
        ),
        (
            "kernel = '5.3'\nscheduler = 'none'\n",
            "io.prio.class = 'idle'",
            "io.prio.class: kernel 5.3 does not have it; it exists from 5.14 on",
        ),
        (
            "kernel = '6.1'\nscheduler = 'none'\n",
            "io.prio.class = 'promote-to-rt'",
            "io.prio.class = promote-to-rt: kernel 6.1 does not have it; it exists from 6.5 on",
        ),
        (
            MQ,
            "blkio.weight = 10",
            "blkio.weight: kernel 6.12: it is CFQ's, to 4.20; weights of later kernels are",
        ),
        (
            "kernel = '3.8'\nscheduler = 'cfq'\n",
            "blkio.leaf_weight = 10",
            "blkio.leaf_weight: kernel 3.8: it is CFQ's, from 3.9 to 4.20; weights of later",
        ),
        (
            "kernel = '2.6.38'\nscheduler = 'cfq'\n",
            "blkio.weight = 99",
            "blkio.weight = 99: expected a number from 100 to 1000 in kernel 2.6.38",
        ),
        (
            "kernel = '2.6.28'\nscheduler = 'cfq'\n",
            "",
            "kernel 2.6.28 has no control groups for I/O: they came with 2.6.33",
        ),
    ];
    for (head, files, expected) in cases {
        let err = read(head, &format!("[cgroup.a]\n{files}\n"))
            .unwrap_err()
            .to_string();
        let expected = format!("e.toml: cgroup a: {expected}");
        assert!(err.starts_with(&expected), "{err}\nnot {expected}");
    }
}

#[test]
fn settings_change_single_limits() {
    let mut e = read(MQ, "[cgroup.a]\nio.max = 'rbps=5 wiops=7'\n").unwrap();
    e.set("cgroup.a.io.max", "wiops=max riops=9", &catalogue())
        .unwrap();
    e.set("cgroup.b.c/d.io.bfq.weight", "12", &catalogue())
        .unwrap();
    assert_eq!(e.cgroups[0].files()[0].1, "rbps=5 riops=9");
    assert_eq!(names(&e), ["a", "b.c", "b.c/d"]);
    assert!(
        e.can_set("cgroup.a.io.max", &catalogue())
            && !e.can_set("cgroup.a.blkio.weight", &catalogue())
    );
    let err = e
        .set("cgroup.a", "1", &catalogue())
        .unwrap_err()
        .to_string();
    assert!(
        err.starts_with("cgroup.a: write cgroup.NAME.FILE=VALUE"),
        "{err}"
    );
}

fn jobs(text: &str) -> Vec<blklab_fio::job::Job> {
    let parsed = blklab_fio::parse::parse("j", text, &ParseOptions::default(), &Fixed::default());
    parsed.unwrap().jobs
}

#[test]
fn fio_makes_the_groups_of_its_jobs() {
    let text = "[global]\nsize=1m\n[one]\ncgroup=/a/b\n[two]\ncgroup=c\n[free]\n";
    let e = read(MQ, "").unwrap().with_cgroups_of(&jobs(text)).unwrap();
    assert_eq!(names(&e), ["a", "a/b", "c"]);
    let weighted = text.replace("/a/b\n", "/a/b\ncgroup_weight=300\n");
    let e = read(CFQ, "")
        .unwrap()
        .with_cgroups_of(&jobs(&weighted))
        .unwrap();
    assert_eq!(e.cgroups[1].blkio_weight, Some(300));
    let wrong = |text: &str| {
        let e = read(MQ, "[cgroup.'a/b']\n").unwrap();
        e.with_cgroups_of(&jobs(text)).unwrap_err().to_string()
    };
    assert_eq!(
        wrong("[one]\nsize=1m\ncgroup=c\ncgroup_weight=300\n"),
        "j:4: job one: cgroup_weight=300: fio refuses it on the unified hierarchy, which kernels have here \
         from 5.0 on; use cgroup.c.io.bfq.weight=300"
    );
    assert_eq!(
        wrong("[one]\nsize=1m\ncgroup_weight=300\n"),
        "j:3: job one: cgroup_weight without cgroup"
    );
    assert_eq!(
        wrong("[one]\nsize=1m\ncgroup=a\n"),
        "j:3: job one: cgroup a has a/b below it; the kernel lets groups without children alone hold \
         processes"
    );
}

#[test]
fn processes_are_in_groups_that_exist() {
    let mut e = read(MQ, "[cgroup.fast]\n").unwrap();
    let text = "processes = [{ name = 'p', pid = 7, cgroup = 'fats', io = { pattern = 'list', \
                rw = 'read', nsect = 8, sectors = [0] } }]";
    let no_files = |_: &str| Err(Error::new("no files here"));
    let of_processes = parse("p.toml", Source::Toml, text, &no_files, &catalogue()).unwrap();
    let Workload::Processes(_) = &of_processes.workload else {
        panic!("processes");
    };
    e.workload = of_processes.workload;
    assert_eq!(
        e.check(&catalogue()).unwrap_err().what,
        "process 'p': no cgroup is called 'fats'; did you mean 'fast'? valid: fast"
    );
}

#[test]
fn weights_that_nobody_looks_at_are_noted() {
    let e = read(MQ, "[cgroup.a]\nio.bfq.weight = 7\n").unwrap();
    assert_eq!(
        e.notes(&catalogue()),
        [
            "cgroup a: mq-deadline does not look at weights of groups, and io.cost is not switched on"
        ]
    );
}
