// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of runs, read by the tools of the blktrace package and by our own.

use crate::support::Folder;
use blklab_testkit::Blktrace;

const JOBS: &[(&str, &str)] = &[
    (
        "aio",
        "[a]\nrw=randrw\nsize=2m\nioengine=libaio\niodepth=16\ndirect=1\n",
    ),
    (
        "buffered",
        "[a]\nrw=write\nsize=4m\nfsync=32\n[b]\nrw=read\nsize=2m\n",
    ),
    (
        "mmap",
        "[a]\nrw=randrw\nsize=1m\nioengine=mmap\n[b]\nrw=randwrite\nsize=1m\nioengine=posixaio\niodepth=4\n",
    ),
];

#[test]
fn blkparse_and_btt_read_them() {
    let Some(release) = Blktrace::installed() else {
        return;
    };
    let f = Folder::new();
    let old = ["2.6.16", "2.6.28", "2.6.33", "3.7", "4.19"].map(|v| (v, ["noop", "deadline"]));
    let new = ["5.10", "6.1", "6.18"].map(|v| (v, ["none", "mq-deadline"]));
    for (kernel, scheds) in old.into_iter().chain(new) {
        for sched in scheds {
            for (name, job) in JOBS {
                f.write("job.fio", job);
                f.ok(&[
                    "run",
                    "job.fio",
                    "--kernel",
                    kernel,
                    "--sched",
                    sched,
                    "--trace",
                    "t",
                    "--set",
                    "queue_depth=2",
                ]);
                let real = f.shell("blkparse -i t");
                assert_eq!(real.code, Some(0), "{}", real.stderr);
                let theirs = release.text(&real.stdout);
                let ours = f.ok(&["trace", "print", "t"]);
                assert!(ours.lines().count() > 100, "{kernel} {sched} {name}");
                if let Some((n, (a, b))) = theirs
                    .lines()
                    .zip(ours.lines())
                    .enumerate()
                    .find(|(_, (a, b))| a != b)
                {
                    panic!(
                        "{kernel} {sched} {name}: line {}\nblkparse {a}\nblklab   {b}",
                        n + 1
                    );
                }
                assert!(theirs == ours, "{kernel} {sched} {name}: lengths differ");
                let btt = f.shell("blkparse -q -i t -d t.bin -O >/dev/null && btt -i t.bin");
                assert_eq!(btt.code, Some(0), "{kernel} {sched} {name}: {}", btt.stderr);
                assert!(btt.stdout.contains("Q2C"), "{kernel} {sched} {name}");
            }
        }
    }
}

#[test]
fn every_form_holds_the_same_events() {
    let f = Folder::new();
    // Both jobs on one processor, so that its file has all of the trace.
    let job = JOBS[1]
        .1
        .replace("[b]", "cpus_allowed=0\n[b]\ncpus_allowed=0");
    f.write("job.fio", job);
    f.ok(&["run", "job.fio", "--trace", "t"]);
    let names = |pattern: &str| {
        let all = f.names(".");
        all.into_iter()
            .filter(|n| n.starts_with(pattern))
            .collect::<Vec<_>>()
    };
    assert_eq!(names("t"), ["t.blktrace.0"]);
    let events = |file: &str| {
        let text = f.ok(&["trace", "print", "-q", file]);
        let events = text.lines().filter(|l| !l.starts_with("Input file "));
        events.map(str::to_owned).collect::<Vec<_>>()
    };
    let original = events("t");
    assert_eq!(events("t.blktrace.0"), original);
    for (from, to) in [
        ("t", "u.blk"),
        ("u.blk", "v.txt"),
        ("v.txt", "w"),
        ("w", "x.txt"),
    ] {
        let done = f.run(&["trace", "convert", from, to]);
        assert_eq!(done.code, Some(0), "{from} to {to}: {}", done.stderr);
        assert_eq!(events(to), original, "{from} to {to}");
    }
    f.ok(&["run", "job.fio", "--trace", "direct.blk"]);
    assert_eq!(events("direct.blk"), original);
    f.ok(&["run", "job.fio", "--trace", "n.blktrace.0"]);
    assert_eq!(names("n"), ["n.blktrace.0"]);
    let stats = f.ok(&["trace", "stats", "t"]);
    assert!(stats.contains("Q2C") && stats.contains("D2C"), "{stats}");
    let json = f.ok(&["trace", "stats", "u.blk", "--output-format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["nr_events"].as_u64() > Some(100));
    assert!(f.ok(&["trace", "info", "t"]).contains("damage    none"));
}

/// A trace in all its forms below `f`, longer than what is read at once: names.
fn forms(f: &Folder) -> [&'static str; 3] {
    f.write("job.fio", "[a]\nrw=randread\nsize=4m\ndirect=1\n");
    f.ok(&["run", "job.fio", "--trace", "t"]);
    for to in ["t.blk", "t.txt"] {
        let done = f.run(&["trace", "convert", "t", to]);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
    }
    ["t.blktrace.0", "t.blk", "t.txt"]
}

/// Every command reads all of a pipe, a FIFO and standard input.
#[test]
fn pipes_are_read_whole() {
    let f = Folder::new();
    let blklab = env!("CARGO_BIN_EXE_blklab");
    let has_zstd = blklab_testkit::has_program("zstd");
    for file in forms(&f) {
        let bytes = std::fs::metadata(f.path(file)).unwrap().len();
        assert!(bytes > 150_000 || file == "t.blk", "{file}: {bytes}");
        let without_name = |text: String| {
            let lines = text.lines().filter(|l| !l.contains(" file "));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        for command in ["print -q", "stats", "info"] {
            let words: Vec<&str> = ["trace"]
                .into_iter()
                .chain(command.split(' '))
                .chain([file])
                .collect();
            let expected = without_name(f.ok(&words));
            assert!(expected.len() > 5, "{command} {file}");
            let mut pipes = vec![
                format!("cat {file} | {blklab} trace {command} -"),
                format!("cat {file} | {blklab} trace {command} /dev/stdin"),
                format!("{blklab} trace {command} - < {file}"),
                format!("rm -f p; mkfifo p; cat {file} > p & {blklab} trace {command} p"),
            ];
            if has_zstd {
                pipes.push(format!("zstd -qc {file} | {blklab} trace {command} -"));
            }
            for piped in pipes {
                let out = f.shell(&piped);
                assert_eq!((out.code, &*out.stderr), (Some(0), ""), "{piped}");
                assert_eq!(without_name(out.stdout), expected, "{piped}");
            }
        }
        for to in ["c.blk", "c.txt", "c"] {
            let direct = format!("{blklab} trace convert {file} {to}");
            let piped = format!("cat {file} | {blklab} trace convert - d{to}");
            assert_eq!(f.shell(&direct).code, Some(0), "{direct}");
            assert_eq!(f.shell(&piped).code, Some(0), "{piped}");
            let events = |name: &str| without_name(f.ok(&["trace", "print", "-q", name]));
            assert_eq!(events(&format!("d{to}")), events(to), "{piped}");
        }
    }
    // Job and experiment files too.
    let direct = f.ok(&["workload", "job.fio"]);
    let piped = f.shell(&format!("cat job.fio | {blklab} workload -"));
    assert_eq!(piped.stdout, direct, "{}", piped.stderr);
    let piped = f.shell(&format!("cat job.fio | {blklab} run -"));
    assert_eq!(piped.code, Some(0), "{}", piped.stderr);
    let fifo = "mkfifo j; cat job.fio > j & ".to_owned();
    let piped = f.shell(&format!("{fifo}{blklab} run j"));
    assert_eq!(piped.code, Some(0), "{}", piped.stderr);
}

/// Text of blkparse keeps its times, and its statistics count from its first
/// event.
#[test]
fn printed_times_stay() {
    let f = Folder::new();
    let line = |rest: &str| format!("  8,0    1        {rest}\n");
    let text = [
        line("7     4.803090086  4175  Q   W 18540712 + 8 [pdflush]"),
        line("8     4.803190086  4175  D   W 18540712 + 8 [pdflush]"),
        line("9     5.803190086     0  C   W 18540712 + 8 [0]"),
    ];
    f.write("t.txt", text.concat());
    let times = |text: String| {
        let events = text.lines().filter(|l| l.contains("18540712"));
        let time = |l: &str| l.split_whitespace().nth(3).unwrap().to_owned();
        events.map(time).collect::<Vec<_>>()
    };
    let expected = ["4.803090086", "4.803190086", "5.803190086"];
    assert_eq!(times(f.ok(&["trace", "print", "t.txt"])), expected);
    f.run(&["trace", "convert", "t.txt", "u.txt"]);
    assert_eq!(times(f.ok(&["trace", "print", "u.txt"])), expected);
    let printed = f.ok(&["trace", "print", "t.txt"]);
    assert!(printed.contains("(R/W): 0KiB/s / 4KiB/s"), "{printed}");
    let info = f.ok(&["trace", "info", "t.txt"]);
    assert!(info.contains("span      1.000100000 s"), "{info}");
}

/// Sections of the statistics: those that are asked for, all of them, and in JSON.
#[test]
fn sections_of_statistics() {
    let f = Folder::new();
    f.write("job.fio", JOBS[1].1);
    f.ok(&["run", "job.fio", "--trace", "t.blk"]);
    let shown = |args: &[&str]| {
        let text = f.ok(&[&["trace", "stats", "t.blk"], args].concat());
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{args:?}: {line}");
        }
        text
    };
    let plain = shown(&[]);
    let by = shown(&["--by", "process,direction,size,window=100ms"]);
    for head in [
        "By Process",
        "By Direction",
        "By Size",
        "By Window Of 100ms (Q)",
    ] {
        let head = format!("= {head} =");
        assert!(by.contains(&head) && !plain.contains(&head), "{by}");
    }
    assert!(!by.contains("Device Overhead"), "{by}");
    let histogram = shown(&["--histogram", "Q2C,d2c"]);
    assert!(histogram.contains("Histogram Of Q2C") && histogram.contains("Histogram Of D2C"));
    let queue = shown(&["--queue"]);
    assert!(
        queue.contains("Idle With Work Queued") && queue.contains("Flushes"),
        "{queue}"
    );
    let all = shown(&["--all"]);
    assert!(all.starts_with(&plain) && all.contains(&queue) && all.contains(&histogram[..40]));
    let json = f.ok(&["trace", "stats", "t.blk", "--output-format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let queued = |v: &serde_json::Value| v["queued"]["count"].as_u64().unwrap();
    let nr: u64 = json["processes"][0]["queued"]
        .as_object()
        .unwrap()
        .values()
        .map(|d| d["count"].as_u64().unwrap())
        .sum();
    for table in json["by"].as_array().unwrap() {
        let rows = table["rows"].as_array().unwrap();
        let sum: u64 = rows.iter().map(queued).sum();
        assert!(sum >= nr, "{table}");
    }
    assert_eq!(json["by"].as_array().unwrap().len(), 4);
    assert!(json["queues"][0]["depth_at_q"]["count"].as_u64() >= Some(nr));
    assert_eq!(json["histograms"].as_array().unwrap().len(), 9);
    for (args, why) in [
        (["--by", "who"], "expected process, direction, size"),
        (["--by", "window=5"], "expected a time with its unit"),
        (["--histogram", "x2y"], "expected all, or one of"),
    ] {
        let done = f.run(&[&["trace", "stats", "t.blk"], &args[..]].concat());
        assert_eq!(done.code, Some(2));
        assert!(done.stderr.contains(why), "{}", done.stderr);
    }
}

/// Tables and traces for other programs: written from a trace and by a run, replaced,
/// refused where rows mean nothing.
#[test]
fn tables_and_traces_for_others() {
    let f = Folder::new();
    f.write("job.fio", JOBS[1].1);
    f.ok(&["run", "job.fio", "--trace", "t.blk"]);
    let written = |args: &[&str]| {
        let done = f.run(args);
        assert_eq!(done.code, Some(0), "{args:?}: {}", done.stderr);
    };
    for (to, rows, head) in [
        ("t.csv", None, &b"recording,number,time_ns"[..]),
        ("i.csv", Some("ios"), b"recording,request,device"),
        ("b.csv", Some("bios"), b"recording,device,pid"),
        ("t.parquet", Some("events"), b"PAR1"),
        ("t.pftrace", None, b"\n"),
        ("t.perfetto-trace", None, b"\n"),
        ("t.iolog", None, b"fio version 3 iolog\n"),
    ] {
        let mut convert = vec!["trace", "convert", "t.blk", to];
        let run_to = format!("r-{to}");
        let mut run = vec!["run", "job.fio", "--trace", &run_to];
        if let Some(rows) = rows {
            convert.extend(["--rows", rows]);
            run.extend(["--trace-rows", rows]);
        }
        written(&convert);
        // One takes the place of another.
        written(&convert);
        written(&run);
        let bytes = std::fs::read(f.path(to)).unwrap();
        assert!(bytes.starts_with(head), "{to}");
        assert!(bytes == std::fs::read(f.path(&run_to)).unwrap(), "{to}");
    }
    let log = f.ok(&["trace", "info", "t.iolog"]);
    assert!(log.contains("fio-iolog"), "{log}");
    for args in [
        &["trace", "convert", "t.blk", "u.txt", "--rows", "ios"][..],
        &["run", "job.fio", "--trace", "u", "--trace-rows", "bios"],
    ] {
        let refused = f.run(args);
        assert_eq!(refused.code, Some(2));
        assert!(refused.stderr.contains("have rows"), "{}", refused.stderr);
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    }
    assert!(!f.names(".").iter().any(|n| n.starts_with('u')));
}

/// A copy that is without some events says so.
#[test]
fn convert_says_what_it_leaves_out() {
    let f = Folder::new();
    let line = |us: u32, name: &str, rest: &str| {
        format!("     jbd2/sda1-8-300     [000] .....    10.{us:06}: {name}: {rest}\n")
    };
    let block = line(100, "block_bio_queue", "8,1 WS 2048 + 8 [jbd2/sda1-8]");
    let commit = |us| line(us, "jbd2_start_commit", "dev 8,1 transaction 42 sync 0");
    f.write("block.txt", &block);
    f.write("both.txt", format!("{}{block}{}", commit(50), commit(200)));
    for (from, to, said) in [
        ("block.txt", "a.csv", None),
        ("both.txt", "b.txt", None),
        ("both.txt", "b.csv", Some("without 2 events of other parts")),
        ("both.txt", "b.blk", Some("(jbd2_start_commit)")),
        ("both.txt", "b", Some("only NAME.txt has a place")),
    ] {
        let done = f.run(&["trace", "convert", from, to]);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let notes: Vec<&str> = done
            .stderr
            .lines()
            .filter(|l| !l.starts_with("wrote "))
            .collect();
        assert_eq!(notes.len(), usize::from(said.is_some()), "{to}: {notes:?}");
        assert!(said.is_none_or(|s| notes[0].contains(s)), "{to}: {notes:?}");
    }
}

/// What is no trace of ours, and the input itself, stay as they are.
#[test]
fn convert_replaces_traces_only() {
    let f = Folder::new();
    forms(&f);
    let refused = |from: &str, to: &str, why: &str| {
        let done = f.run(&["trace", "convert", from, to]);
        assert_eq!(done.code, Some(2), "{from} {to}");
        assert!(done.stderr.contains(why), "{from} {to}: {}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    };
    f.shell("ln t.blk hard.blk; ln -s t.blk soft.blk; ln -s t.blktrace.0 v.blktrace.0");
    f.write("notes.txt", "to do\n");
    f.shell("echo precious > other; ln -s other w.blk.partial");
    refused(
        "t.blk",
        "t.blk",
        "t.blk would replace t.blk, which this command reads",
    );
    refused(
        "t.blk",
        "hard.blk",
        "hard.blk would replace t.blk, which this command reads",
    );
    refused("t.blk", "soft.blk", "soft.blk would replace t.blk, which");
    refused("t", "t", "t.blktrace.0 would replace t.blktrace.0, which");
    refused("t", "v", "v.blktrace.0 would replace t.blktrace.0, which");
    refused("t.txt", "soft.blk", "soft.blk is not a regular file");
    refused("t", "notes.txt", "notes.txt exists and is no trace");
    refused("t", "-", "convert writes files");
    refused("t", "u.txt.gz", "written uncompressed");
    refused("t", "none/u.txt", "the folder none does not exist");
    let done = f.run(&["trace", "convert", "t", "w.blk"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(f.shell("cat other").stdout, "precious\n");
    // A trace takes the place of another one.
    let done = f.run(&["trace", "convert", "t.blk", "t.txt"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let left = f.names(".");
    assert!(!left.iter().any(|n| n.ends_with(".partial")), "{left:?}");
}

/// A blktrace is all its files: those of a former one neither count as part of
/// the new one nor hide that the input is among them.
#[test]
fn a_blktrace_takes_the_place_of_all_files_of_another() {
    let f = Folder::new();
    forms(&f);
    f.shell("cp t.blktrace.0 old.blktrace.1; cp t.blktrace.0 old.blktrace.17");
    let input = f.run(&["trace", "convert", "old.blktrace.1", "old"]);
    assert_eq!(input.code, Some(2));
    assert!(
        input
            .stderr
            .contains("old.blktrace.1 would replace old.blktrace.1, which"),
        "{}",
        input.stderr
    );
    let done = f.run(&["trace", "convert", "t.txt", "old.blktrace.0"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let left = f.names(".");
    let left: Vec<&String> = left.iter().filter(|n| n.starts_with("old")).collect();
    assert_eq!(left, ["old.blktrace.0"]);
}

/// Ctrl-C while a pipe delivers nothing: the program ends and leaves nothing.
#[test]
fn an_interrupted_convert_leaves_nothing() {
    let f = Folder::new();
    forms(&f);
    for to in [
        "o.blk",
        "o.txt",
        "o",
        "o.csv",
        "o.parquet",
        "o.pftrace",
        "o.iolog",
    ] {
        let out = f.shell(&format!(
            "mkfifo p; (cat t.blktrace.0; sleep 60) > p & feeder=$!
             {blklab} trace convert p {to} & pid=$!
             n=0; until ls o*.partial >/dev/null 2>&1 || [ $n = 200 ]; do sleep 0.05; n=$((n+1)); done
             ls o*.partial; kill -INT $pid; wait $pid; echo code $?
             kill $feeder; rm p; ls",
            blklab = env!("CARGO_BIN_EXE_blklab"),
        ));
        let lines: Vec<&str> = out.stdout.lines().collect();
        assert!(lines[0].ends_with(".partial"), "{to}: {out:?}");
        assert_eq!(lines[1], "code 130", "{to}: {out:?}");
        assert!(
            !lines[2..].iter().any(|l| l.starts_with('o')),
            "{to}: {out:?}"
        );
    }
}

/// The disk is full: the message names the file, and nothing is left.
#[test]
fn a_full_disk_is_said_with_the_file() {
    let f = Folder::new();
    forms(&f);
    let blklab = env!("CARGO_BIN_EXE_blklab");
    for (to, named) in [
        ("o.txt", "o.txt"),
        ("o", "o.blktrace.0"),
        ("o.blk", "o.blk"),
        ("o.csv", "o.csv"),
        ("o.parquet", "o.parquet"),
        ("o.pftrace", "o.pftrace"),
        ("o.iolog", "o.iolog"),
    ] {
        // A limit on the size of files answers a write as a full disk does.
        let out = f.shell(&format!(
            "trap '' XFSZ; ulimit -f 4; {blklab} trace convert t.txt {to}"
        ));
        assert_eq!(out.code, Some(2), "{to}: {out:?}");
        assert!(
            out.stderr.contains(&format!("{named}: File too large")),
            "{out:?}"
        );
        assert_eq!(out.stderr.lines().count(), 1, "{out:?}");
        assert!(!f.names(".").iter().any(|n| n.starts_with('o')), "{to}");
    }
    let full = f.shell(&format!("{blklab} trace print t > /dev/full"));
    assert_eq!(full.code, Some(2));
    assert!(
        full.stderr.contains("cannot write to standard output"),
        "{full:?}"
    );
}

/// Folders of LTTng stand wherever a file does.
#[test]
fn folders_of_lttng() {
    let f = Folder::new();
    let sample = |name: &str| {
        let path = crate::support::root().join("testdata/ctf").join(name);
        path.to_string_lossy().into_owned()
    };
    let (little, big) = (sample("le-compact"), sample("be-compact"));
    let info = f.ok(&["trace", "info", &little]);
    for line in [
        "kernel    6.1.0-18-amd64",
        "format    ctf",
        "lost by the recorder: 3",
    ] {
        assert!(info.contains(line), "{info}");
    }
    // Lost events are said on stderr.
    let stdout = |args: &[&str]| {
        let done = f.run(args);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        done.stdout
    };
    let stats = stdout(&["trace", "stats", &little]);
    assert_eq!(stats, stdout(&["trace", "stats", &big]));
    stdout(&["trace", "convert", &little, "copy.blk"]);
    // Summaries name the file.
    let events = |name: &str| {
        let printed = stdout(&["trace", "print", name]);
        // What other parts of the kernel did has no place in the copy.
        let events = printed.lines().filter(|line| !line.contains("  m   N "));
        let events = events.take_while(|line| line.starts_with("  8,0"));
        // Times count from the first record of the file, of whatever kind.
        let without_time = |line: &str| {
            let words = line.split_whitespace().enumerate();
            let words = words.filter(|(place, _)| *place != 3);
            words.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
        };
        events.map(without_time).collect::<Vec<_>>()
    };
    let copied = events("copy.blk");
    assert_eq!(copied.len(), 226);
    assert!(copied == events(&big), "the copy differs");
    assert!(stdout(&["why", &little]).contains("io-error on 8,0"));
    let again = stdout(&["run", "--trace-in", &big, "--kernel", "6.1"]);
    assert!(again.contains("postgres (1204)"), "{again}");
    // Other programs have files of that name.
    f.write("other/metadata", "name: other");
    let done = f.run(&["trace", "info", "other"]);
    assert!(done.stderr.contains("other"), "{}", done.stderr);
    assert!(!done.stderr.contains("metadata"), "{}", done.stderr);
    f.write("empty/metadata", "/* CTF 1.8 */ trace { };");
    let done = f.run(&["trace", "info", "empty"]);
    assert_eq!(done.code, Some(2));
    let expected = "empty/metadata:1: the block 'trace' has no byte_order";
    assert!(done.stderr.contains(expected), "{}", done.stderr);
}

/// Of the kernel's numbers 2143 to 2145 are left out.
const LEFT_OUT: &str = "\
  8,0    1     2139     0.000000000  4175  Q   W 1000 + 8 [dd]
  8,0    1     2140     0.000002000  4175  G   W 1000 + 8 [dd]
  8,0    1     2141     0.000003000  4175  I   W 1000 + 8 [dd]
  8,0    1     2142     0.000004000  4175  D   W 1000 + 8 [dd]
  8,0    1     2146     0.000900000     0  C   W 1000 + 8 [0]
";

#[test]
fn a_copy_says_what_its_original_lacks() {
    let f = Folder::new();
    f.write("in.txt", LEFT_OUT);
    for (name, keeps) in [
        ("x.blk", true),
        ("x.txt", true),
        ("x.csv", false),
        ("x", false),
    ] {
        let done = f.run(&["trace", "convert", "in.txt", name]);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let says = done.stderr.contains("NAME.blk has a place for that");
        assert_eq!(says, !keeps, "{name}: {}", done.stderr);
    }
    for copy in ["in.txt", "x.blk", "x.txt"] {
        let info = f.ok(&["trace", "info", copy]);
        assert!(
            info.contains("that something is absent: 3 left out"),
            "{copy}: {info}"
        );
    }
    let numbers = |name: &str| {
        let text = f.read(name);
        let lines = text.lines().take_while(|line| line.contains("8,0"));
        let number = |line: &str| line.split_whitespace().nth(2).map(str::to_owned);
        lines.filter_map(number).collect::<Vec<String>>()
    };
    assert_eq!(numbers("x.txt"), numbers("in.txt"));
    // Rows of research traces cannot say what was lost, and neither can their copies.
    f.write("rows.csv", "419,W,8192,16384,1577808144360767\n");
    f.run(&["trace", "convert", "rows.csv", "rows.blk"]);
    for name in ["rows.csv", "rows.blk"] {
        let info = f.ok(&["trace", "info", name]);
        assert!(
            info.contains("the format does not say what was lost"),
            "{info}"
        );
    }
}

#[test]
fn names_in_a_trace_do_not_steer_the_terminal() {
    let f = Folder::new();
    let trace = LEFT_OUT.replace("0.000900000", "5.000900000");
    f.write("in.txt", trace.replace("[dd]", "[\u{1b}[31mred\u{7}]"));
    for args in [
        &["report", "in.txt", "-o", "r.html"][..],
        &["why", "in.txt"],
        &["trace", "slow", "in.txt"],
        &["trace", "life", "in.txt", "#1"],
        &["trace", "stats", "in.txt", "--by", "process"],
        &["trace", "info", "in.txt"],
        &["compare", "in.txt", "in.txt"],
        &["trace", "to-fio", "in.txt"],
    ] {
        let done = f.run(args);
        let is_steering = |c: char| c.is_control() && c != '\n';
        let all = done.stdout + &done.stderr + &f.read("r.html");
        assert!(!all.contains(is_steering), "{args:?}: {all}");
    }
}

#[test]
fn an_empty_trace_is_an_error() {
    let f = Folder::new();
    f.write("t.blktrace.0", "");
    for args in [
        &["why", "t"][..],
        &["trace", "info", "t"],
        &["trace", "print", "t"],
        &["trace", "convert", "t", "o.blk"],
        &["report", "t", "-o", "r.html"],
        &["compare", "t", "t"],
    ] {
        let done = f.run(args);
        assert_eq!(done.code, Some(2), "{args:?}: {}", done.stdout);
        assert!(done.stderr.contains("t: an empty trace"), "{}", done.stderr);
    }
    assert!(!f.path("o.blk").exists());
}

/// A table without titles is read by the columns that are named, by every command that reads
/// traces; what is no column is refused in one line.
#[test]
fn columns_of_own_scripts_are_named() {
    let f = Folder::new();
    let rows: String = (0..40)
        .map(|n| format!("{}.5 my app 77 8:16 write {} 8192 250\n", n + 1, n * 4096))
        .collect();
    f.write("own.txt", rows);
    let columns = ["--columns", "time comm pid dev op sector bytes lat_us"];
    let commands: [&[&str]; 6] = [
        &["trace", "info", "own.txt"],
        &["trace", "stats", "own.txt"],
        &["trace", "slow", "own.txt"],
        &["why", "own.txt"],
        &["report", "own.txt", "-o", "page.html"],
        &["compare", "own.txt", "own.txt"],
    ];
    for command in commands {
        f.ok(&[command, &columns].concat());
        assert_eq!(f.run(command).code, Some(2), "{command:?}");
    }
    let info = f.ok(&[commands[0], &columns].concat());
    assert!(info.contains("Q 40  D 40  C 40"), "{info}");
    let refused = f.run(&["why", "own.txt", "--columns", "time op lat_us cmd"]);
    assert_eq!(refused.code, Some(2));
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("no column is called 'cmd'"));
}

/// What is written for Perfetto and as Parquet is read again, with the same events.
#[test]
fn tables_and_packets_are_read_back() {
    let f = Folder::new();
    f.write("job.fio", JOBS[1].1);
    f.ok(&["run", "job.fio", "--trace", "t.blk"]);
    let printed = f.ok(&["trace", "print", "--quiet", "t.blk"]);
    for copy in ["t.pftrace", "t.parquet"] {
        assert_eq!(f.run(&["trace", "convert", "t.blk", copy]).code, Some(0));
        assert!(
            f.ok(&["trace", "print", "--quiet", copy]) == printed,
            "{copy}"
        );
    }
}
