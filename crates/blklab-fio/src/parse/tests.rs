// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole job files: what they mean and what is wrong with them.

use super::*;

fn jobs(text: &str) -> Vec<Job> {
    match parse("x.fio", text, &ParseOptions::default(), &Fixed::default()) {
        Ok(file) => file.jobs,
        Err(error) => panic!("{error}"),
    }
}

fn refused(text: &str) -> String {
    match parse("x.fio", text, &ParseOptions::default(), &Fixed::default()) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn global_sections_act_on_what_follows() {
    let jobs =
        jobs("[a]\nsize=1m\n[global]\nbs=8k\nsize=2m\n[b]\n[globalish]\nbs=16k\n[c]\nsize=4m\n");
    let sizes = |at: usize| (jobs[at].settings.bs[0], jobs[at].settings.size >> 20);
    assert_eq!(
        [sizes(0), sizes(1), sizes(2)],
        [(4096, 1), (8192, 2), (16384, 4)]
    );
}

#[test]
fn options_have_places() {
    let jobs = jobs("[global]\nbs=8k\nsize=1m\n[a]\nblocksize=4k\nnumjobs=2\n[b]\n");
    let line = |at: usize, options: &[&str]| jobs[at].place_of(options).line;
    for at in [0, 1] {
        assert_eq!(line(at, &["bs"]), 5);
        assert_eq!(line(at, &["size"]), 3);
        assert_eq!(line(at, &["offset", "numjobs"]), 6);
        assert_eq!(line(at, &["offset"]), 4);
    }
    assert_eq!((line(2, &["bs"]), line(2, &["numjobs"])), (2, 7));
}

#[test]
fn every_bad_line_of_a_section_is_reported() {
    let text = "[a]\nsizee=4k\nbs=x\nrandrepeat=3\n[b]\nfoo\n";
    assert_eq!(
        refused(text),
        "x.fio:2: Bad option <sizee=4k>. Did you mean size?\n\
         x.fio:3: fio: failed parsing bs=x: not a number\n\
         x.fio:4: fio: failed parsing randrepeat=3: randrepeat: max value out of range: 3 (1 max)\n\
         fio: job a dropped"
    );
}

#[test]
fn a_blank_before_a_number_hides_its_suffix() {
    let jobs = jobs("[a]\nsize = 128k\nbs=64\n[b]\nsize=128k \n");
    assert_eq!(jobs[0].settings.size, 128);
    assert_eq!(jobs[1].settings.size, 131_072);
}

#[test]
fn kb_base_acts_on_the_lines_above_it() {
    let jobs = jobs("[a]\nsize=1m\nkb_base=1000\n");
    assert_eq!(jobs[0].settings.size, 1_000_000);
}

#[test]
fn clones_follow_their_parent_and_count_down() {
    let jobs = jobs("[a b]\nsize=1m\nnumjobs=4\nstonewall\n[c]\nsize=1m\nstonewall\n");
    let names: Vec<&str> = jobs.iter().map(|job| job.files[0].as_str()).collect();
    assert_eq!(names, ["a b.0.0", "a b.3.0", "a b.2.0", "a b.1.0", "c.0.0"]);
    assert!(jobs[0].settings.stonewall && !jobs[1].settings.stonewall);
    assert_eq!([jobs[3].group, jobs[4].group, jobs[4].thread], [0, 1, 5]);
}

#[test]
fn file_names() {
    let with = |lines: &str| jobs(&format!("[j]\nsize=1m\n{lines}\n"))[0].files.clone();
    assert_eq!(with("filename=a:b\ndirectory=d1:d2"), ["d1/a", "d1/b"]);
    assert_eq!(with("nrfiles=2\ndirectory=d"), ["d/j.0.0", "d/j.0.1"]);
    assert_eq!(
        with("filename_format=x.$JOBNAME.$filenum.$clientuid"),
        ["x.j.0."]
    );
    let clones = jobs("[j]\nsize=1m\nnumjobs=3\ndirectory=d1:d2\n");
    assert_eq!(clones[1].files, ["d1/j.2.0"]);
    assert_eq!(clones[2].files, ["d2/j.1.0"]);
    let global = jobs("[global]\nfilename=a\n[x]\nsize=1m\nfilename=b\n");
    assert_eq!(global[0].files, ["a", "b"]);
}

#[test]
fn block_sizes_and_alignment() {
    let settings = &jobs("[a]\nsize=1m\nrw=randread\nbs=8k\nba=4k\n")[0].settings;
    assert!(settings.norandommap);
    let settings = &jobs("[a]\nsize=1m\nbsrange=2k-8k\nbs=1m\n")[0].settings;
    assert_eq!((settings.min_bs[0], settings.max_bs[0]), (2048, 8192));
}

#[test]
fn zoned_devices_are_refused_where_the_option_stands() {
    let text = "[global]\nsize=1m\n[a]\nrw=read\nzonemode=zbd\n";
    assert_eq!(
        refused(text),
        "x.fio:5: fio: failed parsing zonemode=zbd: zoned devices are not modelled; \
         zonemode=strided works on any device, and zonemode=none\nfio: job a dropped"
    );
}

#[test]
fn a_log_without_a_value_has_no_prefix() {
    let jobs = jobs("[a]\nsize=1m\nwrite_bw_log\nwrite_lat_log=x\ngroup_reporting\n");
    let reporting = &jobs[0].settings.reporting;
    assert_eq!(reporting["write_bw_log"], "");
    assert_eq!(reporting["write_lat_log"], "x");
    assert_eq!(reporting["group_reporting"], "1");
}

#[test]
fn refusals() {
    for (lines, message) in [
        (
            "size=1k",
            "fio: size too small, must not be less than minimum block size: 1024 < 4096",
        ),
        (
            "rate=1m\nrate_iops=5",
            "fio: rate and rate_iops are mutually exclusive",
        ),
        (
            "zonesize=1m",
            "fio: --zonemode=none and --zonesize are not compatible.",
        ),
        (
            "zonemode=strided",
            "fio: --zonesize must be specified when using --zonemode=strided.",
        ),
        (
            "numjobs=0",
            "error: maximum number of jobs (4096) reached: numjobs=0",
        ),
        (
            "numjobs=100000000",
            "error: maximum number of jobs (4096) reached: numjobs=100000000",
        ),
        ("nrfiles=4000000000", "more than 1048576 files"),
        ("wait_for=b", "wait_for=b: no earlier job has that name"),
    ] {
        assert_eq!(
            refused(&format!("[a]\n{lines}\n")),
            format!("x.fio:1: {message}\nfio: job a dropped")
        );
    }
    assert_eq!(refused("[global]\nbs=4k\n"), "x.fio: No job(s) defined");
}

#[test]
fn engine_options_need_their_engine() {
    assert_eq!(jobs("[a]\nsize=1m\nhipri\nioengine=io_uring\n").len(), 1);
    assert!(
        refused("[a]\nsize=1m\nhipri=1\n").contains("Bad option <hipri=1>. Did you mean prio?")
    );
}

#[test]
fn sections_can_be_chosen() {
    let options = ParseOptions {
        sections: vec!["b".into()],
        ..ParseOptions::default()
    };
    let file = parse(
        "x",
        "[a]\nnonsense\n[b]\nsize=1m\n",
        &options,
        &Fixed::default(),
    )
    .expect("a is skipped");
    assert_eq!((file.jobs.len(), file.jobs[0].thread), (1, 1));
}

#[test]
fn later_files_wait_for_earlier_ones() {
    let files = [
        ("x", "[global]\nbs=8k\n[a]\nsize=1m\n"),
        ("y", "[b]\nsize=1m\n[c]\nsize=1m\n"),
    ];
    let jobs = parse_files(&files, &ParseOptions::default(), &Fixed::default())
        .expect("well formed")
        .jobs;
    assert_eq!(jobs[1].settings.bs[0], 4096);
    assert_eq!([jobs[0].group, jobs[1].group, jobs[2].group], [0, 1, 1]);
}

#[test]
fn command_line_options_make_the_first_template() {
    let options = ParseOptions {
        template: vec!["bs=16k".into()],
        ..ParseOptions::default()
    };
    let file = parse("x", "[a]\nsize=1m\n", &options, &Fixed::default()).expect("well formed");
    assert_eq!(file.jobs[0].settings.bs[0], 16384);
}

#[test]
fn options_that_do_less_here_are_noted() {
    let file = parse(
        "x.fio",
        "[a]\nsize=1m\npre_read=1\nioengine=libhdfs\nlog_offset=1\nio_submit_mode=inline\n\
         [b]\nsize=1m\nioengine=libaio\ncmdprio_bssplit=4k/10/2/0/1\n",
        &ParseOptions::default(),
        &Fixed::default(),
    )
    .expect("well formed");
    let notes: Vec<String> = file.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [
            "x.fio:3: pre_read: files are not read before the run: their data are not in the cache",
            "x.fio:1: ioengine libhdfs: fio 3.33 does not have this engine",
            "x.fio:10: cmdprio_bssplit: fio 3.33 does not read hints of command duration limits"
        ]
    );
}
