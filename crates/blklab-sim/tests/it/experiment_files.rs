// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiment files: what they may say, and how they come back.

use blklab_experiment::{DeviceSpec, Experiment, Source, Workload, parse, parse_size};
use blklab_sim::catalogue;
use blklab_types::Error;

fn read(source: Source, text: &str) -> Result<Experiment, Error> {
    let name = match source {
        Source::Toml => "e.toml",
        Source::Json => "e.json",
        Source::Fio => "e.fio",
    };
    let file = |file: &str| match file {
        "a.fio" => Ok((file.to_owned(), "[a]\nsize=1m\n".to_owned())),
        _ => Err(Error::new("no such file").in_file(file)),
    };
    parse(name, source, text, &file, &catalogue())
}

/// Reads, checks, writes, reads again: nothing may change.
fn round_trip(source: Source, text: &str) {
    let e = read(source, text).unwrap();
    e.check(&catalogue()).unwrap();
    let written = e.to_toml("a.fio", &catalogue()).unwrap();
    let again = read(Source::Toml, &written).unwrap();
    again.check(&catalogue()).unwrap();
    assert_eq!(again.to_toml("a.fio", &catalogue()).unwrap(), written);
    if let (Workload::Processes(a), Workload::Processes(b)) = (&e.workload, &again.workload) {
        assert_eq!(a, b);
    }
}

#[test]
fn a_written_experiment_reads_as_itself() {
    round_trip(Source::Toml, "job_file = 'a.fio'");
    round_trip(
        Source::Toml,
        "job_file = 'a.fio'\nsections = ['a']\nseed = 7\nkernel = '2.6.28'\nscheduler = 'noop'\n\
         [queue]\nmax_sectors = 255\n[device]\nname = 'serial'\nread_ns = 5\nqueue_depth = 4\n\
         fetch = 'check_then_peek'\n[vm]\nmemory = '1g'\ndirty_ratio = 20\n",
    );
    round_trip(
        Source::Toml,
        "job_file = 'a.fio'\nkernel = '2.6.28'\n[md]\nlevel = 'raid1'\nmembers = 3\n",
    );
    round_trip(
        Source::Toml,
        "job_file = 'a.fio'\nkernel = '2.6.28'\n[md]\nlevel = 'raid0'\nchunk_kb = 512\n",
    );
    let io = [
        r#"{"pattern":"sequential","rw":"read","start":8,"nsect":8,"count":3}"#,
        r#"{"pattern":"list","rw":"write","flags":["sync"],"nsect":8,"sectors":[0,80]}"#,
        r#"{"pattern":"mixed","ops":[["read",[],8,8],["write",["sync"],16,8,500]]}"#,
        r#"{"pattern":"script","ops":[[5,"read",[],8,8],[9,"write",["meta"],16,8]]}"#,
    ];
    for io in io {
        let process = format!(r#"{{"name":"p","pid":7,"io":{io}}}"#);
        round_trip(Source::Json, &format!(r#"{{"processes":[{process}]}}"#));
    }
}

/// Inputs that were once wrong, found by the fuzz target `experiment`.
#[test]
fn regressions() {
    let dir = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/regressions/experiment"
    );
    let mut count = 0;
    for entry in std::fs::read_dir(dir).expect("the folder is part of the project") {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for source in [Source::Toml, Source::Json] {
            let checked = read(source, &text).and_then(|e| e.check(&catalogue()).map(|()| e));
            match checked {
                Ok(_) => round_trip(source, &text),
                Err(e) => assert_eq!(e.to_string().lines().count(), 1, "{e}"),
            }
        }
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let job = "job = '''\n[a]\nsize=1m\n'''\n";
    let cases = [
        ("", "e.toml: the file is empty"),
        ("x", "e.toml:1: "),
        ("kernel = 5", "e.toml:1: kernel: invalid type: integer"),
        (
            "\nkernl = '4.19'",
            "e.toml:2: no key is called 'kernl'; did you mean 'kernel'?",
        ),
        (
            "[queue]\nnomerge = 1",
            "e.toml:2: queue: no key is called 'nomerge'; did you mean 'nomerges'?",
        ),
        (
            "job_file = 'b.fio'",
            "e.toml:1: job_file: b.fio: no such file",
        ),
        (
            "kernel = 'x'\njob_file = 'a.fio'",
            "e.toml:1: 'x' is no kernel; ",
        ),
        ("title = ''", "e.toml: no workload"),
        (
            "job = ''\njob_file = 'a.fio'",
            "e.toml:2: more than one workload",
        ),
        ("job_file = 'a.fio'\nhz = 7", "e.toml:2: hz=7: kernels have"),
        (
            "job_file = 'a.fio'\n[vm]\nfifo_batch = 1",
            "e.toml:3: vm: no setting is called 'fifo_batch'",
        ),
        (
            "job_file = 'a.fio'\n[vm]\ndirty_ratio = 200",
            "e.toml:3: dirty_ratio=200: expected a number from 0 to 100",
        ),
        (
            "job_file = 'a.fio'\n[device]\nrpm = 5",
            "e.toml:2: device: no 'name'",
        ),
        (
            "job_file = 'a.fio'\n[device]\nname = []",
            "e.toml:3: device.name: expected a number, a text",
        ),
        (
            "job_file = 'a.fio'\n[queue]\nnomerges = 7",
            "e.toml:3: nomerges=7: expected",
        ),
        (
            "[[processes]]\nname = 'x'",
            "e.toml:1: processes[0]: missing field",
        ),
    ];
    for (text, expected) in cases {
        let e = read(Source::Toml, text).unwrap_err().to_string();
        assert!(
            e.starts_with(expected),
            "{text:?} gives\n{e}\nexpected\n{expected}"
        );
        assert_eq!(e.lines().count(), 1, "{e}");
    }
    let e = read(Source::Json, "{\"job\": \"[a]\",\n\"seed\": -1}").unwrap_err();
    assert!(
        e.to_string().starts_with("e.json:2: seed: invalid value"),
        "{e}"
    );
    let e = read(Source::Json, "{\"job\": \"[a]\"} x").unwrap_err();
    assert!(e.to_string().starts_with("e.json:1: trailing"), "{e}");
    assert!(read(Source::Toml, job).is_ok());
}

#[test]
fn sizes_are_as_written_in_fio() {
    for (text, bytes) in [
        ("2g", 2 << 30),
        ("512m", 512 << 20),
        ("1KiB", 1024),
        ("7b", 7),
    ] {
        assert_eq!(parse_size(text).unwrap(), bytes, "{text}");
    }
    for text in ["", "g", "2gibib", "-1", "99999999999999t"] {
        assert!(parse_size(text).is_err(), "{text}");
    }
}

#[test]
fn settings_are_checked_as_they_are_made() {
    let mut e = read(Source::Fio, "").unwrap();
    e.choose_kernel("4.19".parse().unwrap(), &catalogue());
    let mut fails = |key, value, expected: &str| {
        let error = e.set(key, value, &catalogue()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    fails(
        "quantim",
        "1",
        "nothing to set is called 'quantim'; did you mean 'quantum'?",
    );
    fails("quantum", "x", "quantum=x: the value is not a whole number");
    fails("seed", "-1", "seed=-1: expected");
    fails("memory", "1k", "memory=1k: expected a size from 16m to");
    fails("nomerges", "3", "nomerges=3: expected a number from 0 to 2");
    e.set("quantum", "3", &catalogue()).unwrap();
    assert_eq!(e.tunables, [("quantum".to_owned(), 3)]);
}

#[test]
fn a_device_brings_what_its_driver_is_told() {
    let mut e = read(Source::Fio, "").unwrap();
    let params = [
        ("rpm", "5400"),
        ("queue_depth", "4"),
        ("fetch", "check_then_peek"),
    ];
    let params = params.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec();
    let spec = |params| DeviceSpec {
        name: "sata-7200-2008".to_owned(),
        params,
    };
    e.choose_device(spec(params), &catalogue()).unwrap();
    assert_eq!(e.device.to_string(), "sata-7200-2008,rpm=5400");
    assert_eq!(e.queue_depth(&catalogue()), Ok(4));
    assert_eq!(e.queue.fetch, Some(blklab_types::Fetch::CheckThenPeek));
    let wrong = vec![("fetch".to_owned(), "peek".to_owned())];
    let err = e.choose_device(spec(wrong), &catalogue()).unwrap_err();
    assert_eq!(
        err.what,
        "fetch=peek: expected 'peek_then_check' or 'check_then_peek'"
    );
}

#[test]
fn the_kernel_has_a_scheduler_of_its_own() {
    let mut e = read(Source::Fio, "").unwrap();
    assert_eq!(e.scheduler, "mq-deadline");
    e.choose_device(
        DeviceSpec {
            name: "nvme-consumer".to_owned(),
            params: Vec::new(),
        },
        &catalogue(),
    )
    .unwrap();
    assert_eq!(e.scheduler, "none");
    e.choose_kernel("4.19".parse().unwrap(), &catalogue());
    assert_eq!(e.scheduler, "cfq");
    e.choose_kernel("2.6.17".parse().unwrap(), &catalogue());
    assert_eq!(e.scheduler, "anticipatory");
    e.choose_scheduler("deadline", &catalogue()).unwrap();
    e.choose_kernel("3.7".parse().unwrap(), &catalogue());
    assert_eq!(e.scheduler, "deadline");
}

#[test]
fn variants_change_what_they_name() {
    let text = "kernel = '2.6.28'\njob = '[a]'\npatches = ['cached_merge_limit']\n\
        [[variant]]\nname = 'as it is'\n\
        [[variant]]\nname = 'other'\nkernel = '2.6.33'\nscheduler = 'deadline'\n\
        patches = ['batch_patch']\nset = { fifo_batch = 4, queue_depth = 1 }\n";
    let e = read(Source::Toml, text).unwrap();
    let own = e.with_variant(&e.variants[0], &catalogue()).unwrap();
    assert_eq!((own.scheduler.as_str(), own.patches.len()), ("cfq", 1));
    let other = e.with_variant(&e.variants[1], &catalogue()).unwrap();
    assert_eq!(other.kernel.to_string(), "2.6.33");
    assert_eq!(other.tunables, [("fifo_batch".to_owned(), 4)]);
    assert_eq!(other.queue.queue_depth, Some(1));
    let error = other.check(&catalogue()).unwrap_err().to_string();
    assert!(
        error.contains("'cached_merge_limit' does not fit kernel 2.6.33"),
        "{error}"
    );
    let twice = "job = '[a]'\n[[variant]]\nname = 'x'\n[[variant]]\nname = 'x'\n";
    let error = read(Source::Toml, twice).unwrap_err().to_string();
    assert_eq!(error, "e.toml:3: two variants are called 'x'");
}

#[test]
fn published_numbers_belong_to_a_configuration() {
    let text = "kernel = '2.6.33'\njob = '[a]'\n\
        [[published]]\ndirection = 'read'\npatches = ['quantum_tweak1', 'quantum_tweak2']\n\
        [[published]]\ndirection = 'read'\nscheduler = 'cfq'\n";
    let mut e = read(Source::Toml, text).unwrap();
    let fits = |e: &Experiment| -> Vec<bool> {
        let depth = e.queue_depth(&catalogue()).ok();
        e.published.iter().map(|p| p.fits(e, depth)).collect()
    };
    assert_eq!(fits(&e), [false, true]);
    e.patches = vec!["quantum_tweak2".into(), "quantum_tweak1".into()];
    assert_eq!(fits(&e), [true, false]);
    e.patches.clear();
    e.scheduler = "noop".into();
    assert_eq!(fits(&e), [false, false]);
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let e = read(Source::Json, r#"{"job":"[a]","title":"\u001b[31m"}"#).unwrap();
    let error = e.check(&catalogue()).unwrap_err().to_string();
    assert!(
        error.starts_with("title has a control character"),
        "{error}"
    );
}

#[test]
fn seeds_fit_experiment_files() {
    let e = read(Source::Json, r#"{"job":"[a]","seed":18446744073709551615}"#).unwrap();
    assert!(
        e.check(&catalogue())
            .unwrap_err()
            .to_string()
            .starts_with("seed=1844")
    );
}

#[test]
fn arrays_that_cannot_be() {
    let said = |text: &str| {
        let e = read(Source::Toml, &format!("job_file = 'a.fio'\n{text}"));
        e.and_then(|e| e.check(&catalogue()))
            .unwrap_err()
            .to_string()
    };
    let md = |keys: &str| said(&format!("kernel = '2.6.28'\n[md]\n{keys}\n"));
    for (text, expected) in [
        ("level = 'raid7'", "no level is called 'raid7'"),
        ("level = 'raid5'\nmembers = 3", "the target kernel has it"),
        ("level = 'raid1'\nmembers = 1", "from 2 to 16"),
        ("level = 'raid1'\nmembers = 17", "from 2 to 16"),
        ("level = 'raid0'\nchunk_kb = 48", "a power of 2"),
        ("level = 'raid0'\nchunk_kb = 2", "a power of 2"),
        ("members = 2", "missing field `level`"),
        ("level = 'raid1'\ndisks = 2", "no key is called 'disks'"),
    ] {
        let said = md(text);
        assert!(said.contains(expected), "{text}: {said}");
    }
    let newer = said("kernel = '4.19'\n[md]\nlevel = 'raid1'\n");
    assert!(
        newer.contains("md is modelled up to kernel 2.6.32"),
        "{newer}"
    );
    let small = "kernel = '2.6.28'\n[device]\nname = 'simdisk-2628'\n\
                 [queue]\npartition_start = 134217600\n[md]\nlevel = 'raid1'\n";
    assert!(
        said(small).contains("no room for raid1:2"),
        "{}",
        said(small)
    );
}

#[test]
fn stacks_for_real_kernels_are_read_as_they_are_saved() {
    for text in [
        "[md]\nlevel = 'raid5'\nmembers = 3\nlayout = 'left-asymmetric'\nbitmap = 'internal'",
        "dm = 'thin:chunk_kb=128+crypt:no_read_workqueue=1'",
        "[dm]\nkind = 'striped'\ndisks = 3\nchunk_kb = 16",
        "[[dm]]\nkind = 'delay'\nread_ms = 3\n[[dm]]\nkind = 'crypt'\nallow_discards = true",
        "[device]\nname = 'null_blk'\ninside = 1",
    ] {
        let e = read(Source::Toml, &format!("job_file = 'a.fio'\n{text}\n")).expect(text);
        let saved = e.to_toml("a.fio", &catalogue()).expect(text);
        let again = read(Source::Toml, &saved).expect(&saved);
        assert_eq!((&again.md, &again.dm), (&e.md, &e.dm), "{saved}");
        let inside = |e: &Experiment| e.queue.inside.unwrap_or(false);
        assert_eq!(inside(&again), inside(&e), "{saved}");
        let error = e.check(&catalogue()).expect_err(text).to_string();
        assert!(error.contains("the target kernel has"), "{error}");
    }
}

/// Superblocks of version 0.90 take the last 64 KiB of a whole number of them.
#[test]
fn capacity_and_largest_bio_of_an_array() {
    let with = |keys: &str| {
        let text = format!("job_file = 'a.fio'\nkernel = '2.6.28'\n[md]\n{keys}\n");
        read(Source::Toml, &text).unwrap()
    };
    let read_ahead = |e: &Experiment| e.queue_facts(&catalogue()).map(|q| q.read_ahead_bytes);
    let mirror = with("level = 'raid1'");
    assert_eq!(
        mirror.capacity_sectors(Some(134_217_728)),
        Some(134_217_600)
    );
    assert_eq!(mirror.capacity_sectors(Some(1000)), Some(768));
    assert_eq!(
        mirror.queue_facts(&catalogue()).map(|q| q.bio_max_sectors),
        Ok(255)
    );
    assert_eq!(read_ahead(&mirror), Ok(128 << 10));
    let stripes = with("level = 'raid0'\nmembers = 3\nchunk_kb = 256");
    assert_eq!(stripes.capacity_sectors(Some(2048)), Some(3 * 1536));
    assert_eq!(read_ahead(&stripes), Ok((2 * 3 * 256) << 10));
    let mut partitions = mirror;
    partitions.queue.partition_start = Some(63);
    assert_eq!(partitions.capacity_sectors(Some(1000)), Some(768));
    assert_eq!(partitions.capacity_sectors(Some(900)), Some(640));
    partitions.queue.partition_sectors = Some(300);
    assert_eq!(partitions.capacity_sectors(Some(1000)), Some(128));
    partitions.md = None;
    assert_eq!(partitions.capacity_sectors(Some(1000)), Some(363));
    assert_eq!(partitions.capacity_sectors(None), Some(363));
}

const MEASURED: &str = "title = 'two jobs'\nseconds = 4\ntrace = false\njob_file = 'a.fio'\n\
     [device]\nkind = 'null_blk'\ncompletion_nsec = 500000\n[queue]\nscheduler = 'none'\n\
     nr_requests = 64\nnomerges = 1\nwbt_lat_usec = 0\n[iosched]\nfifo_batch = 1\n\
     [vm]\ndirty_bytes = 16777216\ndirty_background_bytes = 4194304\n[fs]\ntype = 'ext4'\n";

#[test]
fn a_measured_case_is_an_experiment_of_its_kernel() {
    let e = read(Source::Toml, MEASURED).unwrap();
    assert_eq!(e.kernel.to_string(), "6.1");
    assert_eq!((e.scheduler.as_str(), e.scheduler_chosen), ("none", true));
    assert_eq!(e.tunables, [("fifo_batch".to_owned(), 1)]);
    assert_eq!(e.queue.nr_requests, Some(64));
    assert_eq!(e.queue.wbt_lat_usec, Some(0));
    assert_eq!(e.vm.dirty_bytes, Some(16 << 20));
    assert_eq!(e.vm.dirty_background_bytes, Some(4 << 20));
    assert_eq!(e.filesystem.name, "ext4");
    let text = "seconds = 1\njob_file = 'a.fio'\n[queue]\nrotational = 0\nrq_affinity = 2\n";
    let e = read(Source::Toml, text).unwrap();
    assert_eq!(e.queue.rotational, Some(false));
    assert_eq!(e.queue.rq_affinity, Some(2));
    assert_eq!(e.notes(&catalogue()), [""; 0]);
    let named = "kernel = '5.10'\nseconds = 4\njob_file = 'a.fio'";
    assert_eq!(
        read(Source::Toml, named).unwrap().kernel.to_string(),
        "5.10"
    );
}

#[test]
fn what_a_measured_case_says_twice_or_wrong_is_refused_by_name() {
    let refused = |text: &str| {
        let text = format!("seconds = 4\njob_file = 'a.fio'\n{text}");
        read(Source::Toml, &text).unwrap_err().to_string()
    };
    assert_eq!(
        refused("scheduler = 'none'\n[queue]\nscheduler = 'bfq'"),
        "e.toml:5: the scheduler is given twice: as scheduler and in [queue]"
    );
    assert_eq!(
        refused("[tunables]\nslice_idle = 0\n[iosched]\nslice_idle = 8"),
        "e.toml:6: slice_idle is given twice: in [tunables] and in [iosched]"
    );
    assert_eq!(
        refused("filesystem = 'ext4'\n[fs]\ntype = 'ext4'"),
        "e.toml:4: the filesystem is given twice: as filesystem and in [fs]"
    );
    let no_such = refused("[fs]\ntype = 'ext5'");
    assert!(no_such.starts_with("e.toml:4: "), "{no_such}");
    assert!(no_such.contains("ext5"), "{no_such}");
    let unknown = refused("[queue]\nnr_request = 64");
    assert!(unknown.contains("did you mean 'nr_requests'?"), "{unknown}");
}
