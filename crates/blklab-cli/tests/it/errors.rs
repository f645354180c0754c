// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that can be wrong is said in one line, and leaves nothing
//! behind.

use crate::support::Folder;

/// Runs a command that must fail with one line that contains all of
/// `expected`, and must not change the folder.
fn fails(folder: &Folder, args: &[&str], expected: &[&str]) {
    let before = folder.names(".");
    let done = folder.run(args);
    let shown = format!("blklab {}\n{}", args.join(" "), done.stderr);
    assert_eq!(done.code, Some(2), "{shown}");
    assert_eq!(done.stderr.lines().count(), 1, "{shown}");
    assert!(done.stderr.starts_with("blklab: "), "{shown}");
    for part in expected {
        assert!(done.stderr.contains(part), "{shown}lacks {part:?}");
    }
    assert_eq!(done.stdout, "", "{shown}");
    assert_eq!(folder.names("."), before, "{shown}");
}

#[test]
fn files_that_are_no_experiments() {
    let f = Folder::new();
    let cases: &[(&str, &[u8], &[&str])] = &[
        ("empty.fio", b"", &["empty.fio: no job"]),
        ("empty.toml", b"", &["empty.toml: the file is empty"]),
        ("empty.json", b"\n", &["empty.json: the file is empty"]),
        (
            "binary.fio",
            b"\x7fELF\xff\xfe",
            &["binary.fio:1: not UTF-8"],
        ),
        ("binary.toml", b"a\n\xff", &["binary.toml:2: not UTF-8"]),
        (
            "a.fio",
            b"rw=read\n",
            &["a.fio:1: option <rw=read> outside"],
        ),
        (
            "b.fio",
            b"[a]\nrw=raed\n",
            &["b.fio:2: ", "rw=raed", "valid values: read"],
        ),
        (
            "c.fio",
            b"[a]\nsizee=4k\n",
            &["c.fio:2: ", "<sizee=4k>", "Did you mean size?"],
        ),
        ("d.fio", b"[a]\nsize=4q\n", &["d.fio:1: size too small"]),
        (
            "e.fio",
            b"[a]\nrw=read\n",
            &["e.fio:1: job 'a': you need to specify size="],
        ),
        (
            "f.fio",
            b"[a]\nsize=1m\nioengine=libaoi\n",
            &["f.fio:3: job 'a': ioengine: no engine is called 'libaoi'; did you mean 'libaio'?"],
        ),
        (
            "g.fio",
            b"[a]\nsize=10t\n",
            &[
                "g.fio:2: file 'a.0.0' ",
                "does not fit the disk of 476940 MiB",
            ],
        ),
        (
            "h.fio",
            b"[a]\nfilename=/dev/sda\noffset=10t\nsize=1m\n",
            &["h.fio:3: job 'a': offset 10995116277760 lies beyond the end of /dev/sda"],
        ),
        (
            "i.fio",
            b"[a]\nbs=8k\nsize=4k\n",
            &["i.fio:1: size too small"],
        ),
        (
            "j.fio",
            b"[a]\nsize=1m\nwrite_bw_log=no/x\n",
            &["j.fio:3: write_bw_log: the folder no does not exist"],
        ),
        (
            "k.fio",
            b"[a]\nsize=1m\ninclude gone\n",
            &["k.fio:3: include gone: "],
        ),
        (
            "a.toml",
            b"kernel = 5\n",
            &["a.toml:1: kernel: invalid type: integer"],
        ),
        ("b.toml", b"kernel = \n", &["b.toml:1: "]),
        (
            "c.toml",
            b"job = ''\nshed = ''\n",
            &["c.toml:2: no key is called 'shed'"],
        ),
        (
            "d.toml",
            b"job_file = 'gone.fio'\n",
            &["d.toml:1: job_file: gone.fio: cannot read"],
        ),
        ("e.toml", b"title = 'x'\n", &["e.toml: no workload"]),
        (
            "f.toml",
            b"job_file = 'job.fio'\n[tunables]\nfifo_batc = 3\n",
            &["f.toml:3: no tunable is called 'fifo_batc'; did you mean 'fifo_batch'?"],
        ),
        (
            "g.toml",
            b"job_file = 'job.fio'\n\n[device]\nname = 'sata-7200-2008'\nrpmm = 1\n",
            &["g.toml:5: ", "no parameter 'rpmm'", "'rpm'"],
        ),
        (
            "h.toml",
            b"job_file = 'job.fio'\nscheduler = 'deadlne'\n",
            &["h.toml:2: no scheduler is called 'deadlne'; did you mean 'mq-deadline'?"],
        ),
        (
            "i.toml",
            b"job = '''\n[a]\nrw=raed\n'''\n",
            &["i.toml (job):2: failed parsing rw=raed"],
        ),
        (
            "a.json",
            b"{\"job\": 5}",
            &["a.json:1: job: invalid type: integer `5`"],
        ),
        ("b.json", b"{\"job\": \"\",\n,}", &["b.json:2: "]),
        (
            "c.json",
            b"{\"processes\": [{\"name\": \"p\"}]}",
            &["c.json:1: processes[0]: missing field `pid`"],
        ),
        (
            "d.json",
            br#"{"device":{"law":"sata-7200-2008"},"processes":[{"name":"p","pid":1,
"io":{"pattern":"list","rw":"read","nsect":8,"sectors":[99999999999]}}]}"#,
            &[
                "d.json:1: process 'p': ",
                "beyond the device, which has 976773168 sectors",
            ],
        ),
    ];
    for (name, text, expected) in cases {
        f.write(name, text);
        fails(&f, &["run", name], expected);
    }
    fails(
        &f,
        &["run", "gone.fio"],
        &["gone.fio: cannot read: No such file"],
    );
    fails(
        &f,
        &["run", "."],
        &[".: not a run directory: there is no experiment.toml"],
    );
    fails(&f, &["workload", "gone.fio"], &["gone.fio: cannot read"]);
    fails(&f, &["workload", "d.json"], &["d.json:1: process 'p'"]);
}

/// What is found only when a job is set up is said with the line of the option that decides,
/// or that of the section.
#[test]
fn jobs_that_cannot_be_set_up() {
    let f = Folder::new();
    f.write("deep.inc", "rw=read\niodepth=2000000\n");
    let cases: &[(&str, &str)] = &[
        (
            "[global]\nsize=10t\n[a]\nrw=read\n[b]\nsize=1m\n",
            "x.fio:2: file 'a.0.0' of 10485760 MiB does not fit the disk",
        ),
        (
            "[a]\nsize=1m\n[b]\nrw=read\n",
            "x.fio:3: job 'b': you need to specify size=",
        ),
        (
            "[a]\nsize=1m\n[b]\nfilename=/dev/sda\nsize=1m\nnumjobs=2\noffset_increment=1t\n",
            "x.fio:7: job 'b': offset 1099511627776 lies beyond the end of /dev/sda",
        ),
        (
            "[a]\nsize=1m\ninclude deep.inc\n",
            "deep.inc:2: job 'a': iodepth=2000000: at most",
        ),
        (
            "[a]\nsize=1m\ntime_based\nruntime=4000000000\n",
            "x.fio:4: job 'a': runtime of 4000000000 s",
        ),
        (
            "[a]\nsize=1m\niodepth=4\n[b]\nsize=1m\nioengine=libaio\niodepth=1000000\nnumjobs=9\n",
            "x.fio:7: the run would take about",
        ),
        (
            "[a]\nioengine=cpuio\ncpuload=1\n",
            "x.fio:2: no job reads or writes",
        ),
        (
            "[a]\nsize=1m\nioscheduler=bfq\n[b]\nsize=1m\nioscheduler=kyber\n",
            "x.fio:6: job 'a' asks for ioscheduler=bfq, job 'b' for kyber",
        ),
        (
            "[a]\nsize=1m\n[b]\nsize=1m\nioscheduler=cfq\n",
            "x.fio:5: ioscheduler=cfq in the job file: ",
        ),
        (
            "[a]\nsize=1m\ncgroup=x\ncgroup_weight=200\n",
            "x.fio:4: job a: cgroup_weight=200: fio refuses it",
        ),
        (
            "[a]\nsize=1m\ncgroup=x\n[b]\nsize=1m\ncgroup=x/y\n",
            "x.fio:3: job a: cgroup x has x/y below it",
        ),
        (
            "[a]\nsize=1m\nwrite_lat_log=/x/y\n",
            "x.fio:3: write_lat_log=/x/y",
        ),
        ("[a]\nsize=1m\nwrite_iolog=x.fio\n", "x.fio:3: write_iolog"),
    ];
    for (text, expected) in cases {
        f.write("x.fio", text);
        fails(&f, &["run", "x.fio"], &[expected]);
    }
    f.write("x.fio", "[a]\nsize=1m\n\ncgroup=x\n");
    let old = ["run", "x.fio", "--kernel", "2.6.28"];
    fails(&f, &old, &["x.fio:4: cgroup x: kernel 2.6.28 has no"]);
    f.write("x.fio", "[a]\nsize=1m\n[b]\nrw=read\n");
    let listed = f.run(&["workload", "x.fio"]);
    let expected = "blklab: x.fio:3: b: you need to specify size=\n";
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(2), expected));
    let scenario = ["run", "dd+cat", "--set", "size=4t"];
    fails(&f, &scenario, &["dd+cat: file 'dd.0.0' of 4194304 MiB"]);
}

/// The line is that of the key that is refused, not of another of its name.
#[test]
fn keys_of_experiments_that_are_refused() {
    let f = Folder::new();
    let cases: &[(&str, &str)] = &[
        (
            "scheduler = 'bfq'\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n\
             scheduler = 'bfqq'\n",
            "x.toml:6: variant 'b': no scheduler",
        ),
        (
            "[queue]\n# nr_requests = 8\nnr_requests = 1\n",
            "x.toml:4: nr_requests=1: expected",
        ),
        (
            "device = { name = 'simdisk', rpm = 5 }\n",
            "x.toml:2: device simdisk",
        ),
        (
            "kernel = '6.1'\n[cgroup.a]\n'io.max' = 'wbps=1'\n[cgroup.b]\n'io.max' = 'wbps=x'\n",
            "x.toml:6: cgroup b: ",
        ),
        (
            "kernel = '4.19'\nscheduler = 'cfq'\n[iosched]\nslice_idle = 1\nquantim = 1\n",
            "x.toml:6: no tunable is called 'quantim'",
        ),
    ];
    for (text, expected) in cases {
        f.write("x.toml", format!("job_file = 'job.fio'\n{text}"));
        fails(&f, &["run", "x.toml"], &[expected]);
    }
    let process = |name: &str| {
        format!(
            "{{\"name\": \"{name}\", \"pid\": 1, \"io\": {{\"pattern\": \"list\", \"rw\": \"read\", \
             \"nsect\": 8, \"sectors\": [0]}},\n\"cgroup\": \"{name}\"}}"
        )
    };
    let text = format!(
        "{{\"kernel\": \"6.1\", \"cgroup\": {{\"a\": {{}}}},\n\"processes\": [\n{},\n{}]}}",
        process("a"),
        process("b")
    );
    f.write("x.json", text);
    fails(
        &f,
        &["run", "x.json"],
        &["x.json:6: process 'b': no cgroup"],
    );
}

#[test]
fn options_of_run() {
    let f = Folder::new();
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["--sched", "deadlin"],
            &["--sched deadlin: no scheduler", "'mq-deadline'?", "kyber"],
        ),
        (
            &["--kernel", "6.99"],
            &["--kernel 6.99: ", "2.6.16 to 7.3 are"],
        ),
        (
            &["--sched", "cfq"],
            &["no scheduler 'cfq'; valid: none", "(cfq: before 5.0)"],
        ),
        (
            &["--kernel", "abc"],
            &["--kernel abc: 'abc' is no kernel; "],
        ),
        (
            &["--device", "sata-7200"],
            &["--device sata-7200: ", "sata-7200-2008"],
        ),
        (&["--device", ""], &["--device: no name"]),
        (
            &["--device", "rpm=5"],
            &["--device rpm=5: a device name comes before"],
        ),
        (
            &["--device", "sata-7200-2008,rpmm=5"],
            &["no parameter 'rpmm'", "'rpm'"],
        ),
        (
            &["--device", "sata-7200-2008,rpm=0"],
            &["rpm=0", "from 1000 to 60000"],
        ),
        (
            &["--patch", "batch_pach"],
            &["--patch batch_pach: no patch", "'batch_patch'?"],
        ),
        (
            &["--patch", "batch_patch", "--kernel", "2.6.24"],
            &["does not fit kernel 2.6.24"],
        ),
        (&["--set", "foo"], &["--set foo: write KEY=VALUE"]),
        (&["--set", "=1"], &["--set =1: no key"]),
        (&["--set", "quantum="], &["--set quantum=: no value"]),
        (
            &["--kernel", "4.19", "--set", "quantim=1"],
            &["--set: nothing to set is called 'quantim'", "'quantum'?"],
        ),
        (
            &["--kernel", "4.19", "--set", "fifo_batch=1"],
            &["called 'fifo_batch'; deadline has it, but cfq runs"],
        ),
        (
            &["--kernel", "2.6.28", "--set", "low_latency=1"],
            &["called 'low_latency'; cfq of kernel 2.6.28 does not have it"],
        ),
        (
            &["--kernel", "6.1", "--set", "quantum=1"],
            &["cfq has it, which kernel 6.1 does not have; it exists before 5.0"],
        ),
        (
            &["--kernel", "6.1", "--set", "slice_idle=1"],
            &["bfq has it, but mq-deadline runs"],
        ),
        (
            &["--kernel", "rhel8", "--set", "prio_aging_expire=1"],
            &["mq-deadline of kernel rhel8 does not have it; it exists from 5.16 on"],
        ),
        (
            &["--kernel", "2.6.28", "--set", "prio_aging_expire=1"],
            &["mq-deadline has it, which kernel 2.6.28 does not have; it exists from 5.16 on"],
        ),
        (
            &["--kernel", "4.19", "--set", "quantum=x"],
            &["quantum=x: the value is not a whole number"],
        ),
        (
            &["--set", "nr_requests=99999999999"],
            &["expected a number from 4 to"],
        ),
        (
            &[
                "--kernel",
                "2.6.28",
                "--sched",
                "noop",
                "--patch",
                "drain_async",
            ],
            &["--patch drain_async: a patch of cfq, which does not run here"],
        ),
        (
            &["--kernel", "3.7", "--patch", "a+"],
            &["--patch a+: write NAME, NAME+NAME"],
        ),
        (&["--set", "hz=7"], &["hz=7: kernels have 100, 250"]),
        (&["--set", "seed=-1"], &["seed=-1: expected"]),
        (&["--memory", "lots"], &["--memory: 'lots' is not a size"]),
        (
            &["--memory", "1k"],
            &["memory=1k: expected a size from 16m"],
        ),
        (
            &["--fs", "a=b"],
            &["--fs a=b: a filesystem name comes before its options"],
        ),
        (&["--fs", ","], &["--fs: no name; blklab list filesystems"]),
        (&["--fs", "ext5"], &["--fs: no filesystem is called 'ext5'"]),
        (&["--device", ","], &["--device: no name"]),
        (
            &["--fs", "ext3,data=journal,data=ordered"],
            &["--fs: data has two values, journal and ordered"],
        ),
        (
            &["--device", "sata-7200-2008,rpm=5400,rpm=7200"],
            &["--device: rpm has two values, 5400 and 7200"],
        ),
        (&["--sched", ","], &["--sched ',': a value is empty"]),
        (
            &["--kernel", "6.1,"],
            &["--kernel '6.1,': a value is empty"],
        ),
        (&["--fio", ""], &["--fio '': a value is empty"]),
        (
            &["--cpu-cost", "0"],
            &["--cpu-cost: io_cost_ns=0: expected a number from 1 to"],
        ),
        (
            &["--set", "seed=1,,2"],
            &["--set seed=1,,2: a value is empty"],
        ),
        (&["--fio", "2.0"], &["--fio: fio 2.0: "]),
        (&["--jobs", "0"], &["--jobs 0"]),
        (&["--jobs", "x"], &["'x'", "--jobs"]),
        (&["--repeat", "0"], &["--repeat 0"]),
        (
            &["--repeat", "4000000000"],
            &["4000000000 experiments", "at most 10000"],
        ),
        (&["--seed", "18446744073709551615"], &["--seed: seed=1844"]),
        (
            &["--section", "reader"],
            &["job.fio: no section", "'readers'?"],
        ),
        (
            &["--output-format", "jsn"],
            &["--output-format: unknown output format \"jsn\""],
        ),
        (&["--terse-version", "9"], &["--terse-version 9: "]),
        (
            &["--output", "no/x"],
            &["--output: the folder no does not exist"],
        ),
        (&["--output", "."], &["--output: . is a folder"]),
        (
            &["--output", "job.fio/x"],
            &["--output: the folder job.fio does not exist"],
        ),
        (
            &["--trace", "no/x"],
            &["--trace: the folder no does not exist"],
        ),
        (
            &["--trace", "/dev/null"],
            &["--trace: /dev/null is not a regular file"],
        ),
        (&["--out", "job.fio"], &["--out: job.fio is a file"]),
        (
            &["--out", "job.fio/x"],
            &["--out: cannot make the folder job.fio/x"],
        ),
        (
            &["--trace", "a", "--trace", "b"],
            &["cannot be used multiple times"],
        ),
        (&["--repeet", "2"], &["'--repeet'", "'--repeat'"]),
    ];
    for (options, expected) in cases {
        let args: Vec<&str> = ["run", "job.fio"].iter().chain(*options).copied().collect();
        fails(&f, &args, expected);
    }
    fails(&f, &["run"], &["<FILE>..."]);
    fails(
        &f,
        &["run", "-", "-"],
        &["standard input can be read only once"],
    );
}

/// What one option says, another must not unsay.
#[test]
fn options_that_contradict_each_other() {
    let f = Folder::new();
    let cases: &[(&[&str], &str)] = &[
        (
            &["--set", "memory=1g", "--memory", "2g"],
            "--set memory=1g contradicts --memory 2g: both set memory",
        ),
        (
            &["--set", "nr_requests=64", "--set", "nr_requests=128"],
            "--set nr_requests=128 contradicts --set nr_requests=64; to compare them, write \
             --set nr_requests=V1,V2",
        ),
        (
            &["--fs", "ext3", "--set", "filesystem=ext4"],
            "--set filesystem=ext4 contradicts --fs ext3: both set filesystem",
        ),
        (
            &["--cpu-cost", "5", "--set", "io_cost_ns=6"],
            "--set io_cost_ns=6 contradicts --cpu-cost 5: both set io_cost_ns",
        ),
        (
            &["--fio", "1.24", "--set", "fio=3.33"],
            "--set fio=3.33 contradicts --fio 1.24: both set fio",
        ),
        (
            &["--seed", "1", "--set", "seed=1,2"],
            "--set seed=1,2 contradicts --seed 1: both set seed",
        ),
        (&["--seed", "1", "--seed", "2"], "cannot be used multiple"),
        (&["--memory", "1g", "--memory", "2g"], "cannot be used"),
    ];
    for (options, expected) in cases {
        let args: Vec<&str> = ["run", "job.fio"].iter().chain(*options).copied().collect();
        fails(&f, &args, &[expected]);
    }
    let agreed = ["--memory", "1g", "--set", "memory=1g", "--seed", "3"];
    f.ok(&[&["run", "job.fio"], &agreed[..]].concat());
    f.ok(&["run", "job.fio", "--seed", "3", "--set", "seed=3"]);
}

/// Input in a message is short, on one line, and does nothing to a terminal.
#[test]
fn input_in_messages_is_short_and_visible() {
    let f = Folder::new();
    let long = "y ".repeat(2000) + "\u{1b}[2J\u{202e}\n!";
    let name = "z".repeat(5000);
    let (set, key) = (format!("seed={long}"), format!("{long}=1"));
    let (fs, raid) = (format!("ext3,data={long}"), format!("{long}:2"));
    let device = format!("sata-7200-2008,rpm={long}");
    let cases: &[&[&str]] = &[
        &["run", "job.fio", "--set", &set],
        &["run", "job.fio", "--set", &key],
        &["run", "job.fio", "--set", &long],
        &["run", "job.fio", "--fs", &fs],
        &["run", "job.fio", "--fs", &long],
        &["run", "job.fio", "--md", &raid],
        &["run", "job.fio", "--md", &long],
        &["run", "job.fio", "--device", &device],
        &["run", "job.fio", "--device", &long],
        &["run", "job.fio", "--kernel", &long],
        &["run", "job.fio", "--sched", &long],
        &["run", "job.fio", "--patch", &long],
        &["run", "job.fio", "--memory", &long],
        &["run", "job.fio", "--cpu-cost", &long],
        &["run", "job.fio", "--fio", &long],
        &["run", "job.fio", "--jobs", &long],
        &["run", "job.fio", "--seed", &long],
        &["run", "job.fio", "--section", &long],
        &["run", "job.fio", "--output-format", &long],
        &["run", &name],
        &["trace", "info", &name],
        &["list", &name],
        &["list", "devices", &long],
        &["reproduce", &long],
        &["workload", &name],
        &[&long],
    ];
    for args in cases {
        let done = f.run(args);
        let line = done.stderr.trim_end_matches('\n');
        assert_eq!(done.code, Some(2), "{line}");
        assert!(
            !line.contains(|c: char| c.is_control() || c == '\u{202e}'),
            "{line}"
        );
        assert!(!line.contains(&"y ".repeat(60)), "{line}");
        assert!(!line.contains(&"z".repeat(100)), "{line}");
        assert!(line.chars().count() < 2200, "{}: {line}", line.len());
    }
    for text in [
        format!("[a]\n{long}\n"),
        format!("[a]\nrw={name}\n"),
        long.clone(),
    ] {
        f.write("long.fio", &text);
        let line = f.run(&["run", "long.fio"]).stderr;
        assert!(line.chars().count() < 600, "{line}");
        assert!(!line.contains(&"y ".repeat(60)), "{line}");
    }
}

#[test]
fn other_commands() {
    let f = Folder::new();
    f.write("log.json", r#"{"processes":[]}"#);
    f.write("sub/x.fio", "");
    let cases: &[(&[&str], &[&str])] = &[
        (&["frobnicate"], &["'frobnicate'"]),
        (&["list", "fish"], &["'fish'", "schedulers"]),
        (
            &["list", "devices", "sata"],
            &["called 'sata'", "sata-7200-2008"],
        ),
        (
            &["list", "devices", "sata-7200-208"],
            &["did you mean 'sata-7200-2008'?"],
        ),
        (
            &["list", "schedulers", "--kernel", "x"],
            &["'x' is no kernel; "],
        ),
        (&["conform", "gone"], &["gone: cannot read"]),
        (&["conform", "sub"], &["sub: no case"]),
        (
            &["conform", "job.fio"],
            &["job.fio: a fio job, not a measured case"],
        ),
        (
            &["trace", "print", "gone"],
            &["cannot open gone: No such file"],
        ),
        (
            &["trace", "print", "job.fio"],
            &["job.fio: no trace; it seems to be a fio job file: run it with `blklab run`"],
        ),
        (
            &["trace", "stats", "."],
            &[".: not a run directory: there is no experiment.toml"],
        ),
        (
            &["trace", "convert", "gone", "x.blk"],
            &["cannot open gone"],
        ),
        (&["trace", "frob"], &["'frob'"]),
    ];
    for (args, expected) in cases {
        fails(&f, args, expected);
    }
    let twice = f.run(&["trace", "print", "gone"]).stderr;
    assert_eq!(twice.matches("No such file").count(), 1, "{twice}");
    assert_eq!(f.run(&[]).code, Some(2));
}

/// A disk that is full: a limit on the size of files stands in for it.
#[test]
fn a_full_disk() {
    let f = Folder::new();
    let limited = |command: &str| format!("trap '' XFSZ; ulimit -f 16; exec blklab {command}");
    f.write(
        "job.fio",
        "[a]\nrw=randread\nsize=64m\nio_size=16m\ndirect=1\n",
    );
    for target in ["--trace x", "--trace x.txt", "--trace x.blk", "--out x"] {
        let done = f.shell(&limited(&format!("run job.fio {target}")));
        assert_eq!(done.code, Some(2), "{target}: {}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{target}: {}", done.stderr);
        assert!(
            done.stderr.contains("File too large"),
            "{target}: {}",
            done.stderr
        );
        assert_eq!(f.names("."), ["job.fio"], "{target}");
    }
    for command in [
        "run job.fio",
        "list devices",
        "--help",
        "run --help",
        "--version",
        "workload job.fio",
        "reproduce list",
        "run job.fio --output /dev/full",
    ] {
        let done = f.shell(&format!("blklab {command} > /dev/full"));
        assert_eq!(done.code, Some(2), "{command}: {}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{command}: {}", done.stderr);
        assert!(
            done.stderr.contains("No space left"),
            "{command}: {}",
            done.stderr
        );
        let named = if command.contains("--output") {
            "/dev/full"
        } else {
            "standard output"
        };
        assert!(done.stderr.contains(named), "{command}: {}", done.stderr);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let f = Folder::new();
    f.ok(&["run", "job.fio", "--trace", "t", "--output", "x"]);
    for command in [
        "run job.fio",
        "workload job.fio",
        "list devices",
        "trace print t",
        "trace stats t",
        "--help",
    ] {
        let done = f.shell(&format!(
            "(blklab {command}; echo $? >&2) | head -c 1 >/dev/null"
        ));
        assert_eq!(done.stderr, "0\n", "{command}");
    }
}

#[test]
fn device_mapper_that_cannot_be() {
    let f = Folder::new();
    let cases: &[(&str, &[&str])] = &[
        (
            "crypt",
            &["--dm", "are modelled; the target kernel has them"],
        ),
        ("cript", &["--dm", "did you mean 'crypt'?"]),
        (
            "delay,read=5",
            &["--dm", "no parameter of delay is called 'read'"],
        ),
        ("delay,read_ms=x", &["expected a number from 0 to 60000"]),
        ("crypt+striped", &["puts disks together"]),
    ];
    for (dm, expected) in cases {
        fails(&f, &["run", "job.fio", "--dm", dm], expected);
    }
    fails(
        &f,
        &["run", "job.fio", "--device", "null_blk,inside=1"],
        &["--device null_blk", "the target kernel has"],
    );
}

#[test]
fn arrays_that_cannot_be() {
    let f = Folder::new();
    let cases: &[(&str, &str, &[&str])] = &[
        ("2.6.28", "raid7:3", &["--md raid7:3", "no level is called"]),
        (
            "2.6.28",
            "raid5:3",
            &["--md raid5:3", "the target kernel has it"],
        ),
        ("2.6.28", "raid5:2", &["a number from 3 to 16"]),
        ("2.6.28", "raid0:2,bitmap=internal", &["has no bitmap"]),
        (
            "2.6.28",
            "raid10:2,layout=n3",
            &["2 members cannot hold 3 copies"],
        ),
        ("2.6.28", "raid1:1", &["--md raid1:1", "from 2 to 16"]),
        ("2.6.28", "raid0:2,chunk_kb=5", &["a power of 2"]),
        ("2.6.28", "raid1", &["'raid1' is not LEVEL:MEMBERS"]),
        ("4.19", "raid1:2", &["--md raid1:2", "up to kernel 2.6.32"]),
    ];
    for (kernel, md, expected) in cases {
        fails(
            &f,
            &["run", "job.fio", "--kernel", kernel, "--md", md],
            expected,
        );
    }
}
