// SPDX-License-Identifier: MIT OR Apache-2.0
//! Our numbers and those that btt prints, to the digit.
//!
//! Where the two define a number differently, the test says by how much; see
//! `docs/metrics.md`.

use blklab_analysis::collect::StatsCollector;
use blklab_analysis::stats::TraceStats;
use blklab_analysis::text::{TextOptions, render};
use blklab_formats::blktrace::{BlktraceReader, BlktraceStream};
use blklab_testkit::Blktrace;
use blklab_trace::{Action, Event, Item, TraceSink, TraceSource};
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Puts all events on `sda`: btt takes majors 253 and 254 for md or dm. Times
/// count from the first event, as in the files that btt is given.
struct OnSda<S> {
    inner: S,
    genesis: Option<Time>,
}

impl<S: TraceSink> TraceSink for OnSda<S> {
    fn event(&mut self, event: &Event) {
        let genesis = *self.genesis.get_or_insert(event.time);
        let dev = Dev { major: 8, minor: 0 };
        let time = Time(event.time.since(genesis).ns());
        self.inner.event(&Event {
            dev,
            time,
            ..*event
        });
    }
    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        self.inner.process(Time::ZERO, pid, comm);
    }
}

/// The lines of btt's report, by section and first words.
type Report = BTreeMap<String, Vec<String>>;

fn sections(text: &str) -> Report {
    let mut report = Report::new();
    let mut title = String::new();
    for line in text.lines() {
        if let Some(t) = line.strip_prefix("==================== ") {
            title = t.trim_end_matches([' ', '=']).into();
        } else if !line.trim().is_empty() {
            report.entry(title.clone()).or_default().push(line.into());
        }
    }
    report
}

/// Runs btt on a binary trace.
fn btt(binary: &[u8]) -> Option<(Blktrace, Report)> {
    let release = Blktrace::installed()?;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.bin"), binary).unwrap();
    let run = Command::new("btt")
        .args(["-A", "-i", "t.bin", "-o", "out"])
        .current_dir(dir.path())
        .output();
    let run = run.unwrap_or_else(|e| panic!("btt: {e}"));
    assert!(run.status.success() && run.stderr.is_empty(), "{run:?}");
    let report = std::fs::read_to_string(dir.path().join("out.avg")).unwrap();
    Some((release, sections(&report)))
}

/// The line of `section` that begins with `key`, its columns.
fn row(report: &Report, section: &str, key: &str) -> Option<Vec<String>> {
    let lines = report.get(section)?;
    let line = lines.iter().find(|l| l.trim_start().starts_with(key))?;
    Some(line.split_whitespace().map(String::from).collect())
}

fn stats_of(events: &[Event], names: &[(Pid, String)]) -> TraceStats {
    let mut collector = StatsCollector::new();
    for (pid, comm) in names {
        collector.process(Time::ZERO, *pid, comm);
    }
    for event in events {
        collector.event(event);
    }
    collector.finish()
}

/// A recorded trace, on `sda`.
struct Recorded {
    case: String,
    events: Vec<Event>,
    names: Vec<(Pid, String)>,
}

/// Reads a compressed trace.
fn read_trace(path: &Path, case: &str) -> Recorded {
    let file = std::fs::File::open(path).unwrap();
    let mut reader = BlktraceReader::from_stream(zstd::stream::Decoder::new(file).unwrap(), case);
    let mut events = OnSda {
        inner: Vec::new(),
        genesis: None,
    };
    let mut names = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        match item {
            Item::Process { pid, comm, .. } => names.push((pid, comm.into())),
            Item::Event(event) => events.event(&event),
            Item::Message(..) | Item::Kernel(_) | Item::Stack { .. } | Item::NewRecording => {}
        }
    }
    Recorded {
        case: case.into(),
        events: events.inner,
        names,
    }
}

/// The traces in a directory.
fn traces_in(directory: &Path) -> Vec<Recorded> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    let case = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        Some(name.strip_suffix(".blktrace.0.zst")?.to_string())
    };
    paths
        .iter()
        .filter_map(|path| Some(read_trace(path, &case(path)?)))
        .collect()
}

/// Traces of one directory of measured cases, if it is there.
fn recorded(directory: &str) -> Vec<Recorded> {
    blklab_testkit::shared(directory).map_or_else(Vec::new, |d| traces_in(&d))
}

fn binary(events: &[Event], names: &[(Pid, String)]) -> Vec<u8> {
    let mut stream = BlktraceStream::new(Vec::new());
    for (pid, comm) in names {
        stream.process(Time::ZERO, *pid, comm);
    }
    for event in events {
        stream.event(event);
    }
    stream.finish().unwrap()
}

const PHASES: [&str; 9] = [
    "Q2Q", "Q2G", "S2G", "G2I", "Q2M", "I2D", "M2D", "D2C", "Q2C",
];

/// The number in the column `idx` of a row, 0 if there is no row.
fn number(row: Option<&Vec<String>>, idx: usize) -> u64 {
    row.map_or(0, |r| r[idx].parse().unwrap())
}

/// Compares the sections about devices; `(  8,  0)` is three words.
fn check_devices(case: &str, ours: &Report, theirs: &Report, device: &str) {
    let both = |section| (row(ours, section, device), row(theirs, section, device));
    for section in [
        "Device Merge Information",
        "Active Requests At Q Information",
    ] {
        let (a, b) = both(section);
        assert_eq!(a, b, "{case}: {section}");
    }
    for section in ["Device Q2Q Seek Information", "Device D2D Seek Information"] {
        // Number and mean; btt's median is not one.
        let (a, b) = both(section);
        assert_eq!(a.unwrap()[4..6], b.unwrap()[4..6], "{case}: {section}");
    }
    // btt has no column for M2D, the last but one.
    let (Some(mut a), Some(b)) = both("Device Overhead") else {
        // It shows only devices with an insert.
        return;
    };
    a.remove(a.len() - 2);
    assert_eq!(a, b, "{case}: overhead");
}

/// `of` is the release that made the report.
fn check_recorded(trace: &Recorded, theirs: &Report, of: Blktrace) {
    let Recorded {
        case,
        events,
        names,
    } = trace;
    let stats = stats_of(events, names);
    assert_eq!(stats.unmatched.events, [], "{case}");
    let text = render(&stats, TextOptions { all: true });
    assert!(text.lines().all(|l| l.chars().count() <= 80));
    let ours = sections(&text);
    let device = &stats.devices[0];
    // btt loses bios that were split, and takes the merge of two requests
    // that the trace shows for one of a bio.
    let is_split = device.nr_splits > 0;
    let nr_shown = device.nr_request_merges - device.nr_silent_merges;
    for phase in PHASES {
        let a = row(&ours, "All Devices", phase);
        let b = row(theirs, "All Devices", phase);
        match phase {
            "Q2G" if is_split && of != Blktrace::V1_2 => {}
            "Q2Q" | "Q2G" | "S2G" => assert_eq!(a, b, "{case}: {phase}"),
            _ if is_split => {}
            "Q2M" if nr_shown > 0 => {
                assert_eq!(
                    number(b.as_ref(), 4),
                    number(a.as_ref(), 4) + nr_shown,
                    "{case}"
                );
            }
            "M2D" if nr_shown > 0 => assert!(number(b.as_ref(), 4) >= number(a.as_ref(), 4)),
            _ => assert_eq!(a, b, "{case}: {phase}"),
        }
    }
    if !is_split && nr_shown == 0 {
        check_devices(case, &ours, theirs, "(  8,  0)");
    }
    if device.plugs.nr_unplugs + device.plugs.nr_timer_unplugs > 0 {
        assert_eq!(
            ours["Plug Information"],
            theirs["Plug Information"][..6],
            "{case}"
        );
    }
    // For btt the last period ends with the last C, even if more is under way.
    let is_whole = stats.unmatched.unfinished_requests == 0;
    if !is_split && is_whole && device.activity.nr_periods > 1 {
        let a = row(&ours, "I/O Active Period Information", "(");
        assert_eq!(
            a,
            row(theirs, "I/O Active Period Information", "("),
            "{case}"
        );
    }
}

/// The samples of the project, against stored reports.
#[test]
fn samples() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/blktrace");
    let traces = traces_in(&directory);
    assert_eq!(traces.len(), 4);
    for trace in &traces {
        let report = directory.join(format!("{}.btt.txt", trace.case));
        let report = sections(&std::fs::read_to_string(report).unwrap());
        check_recorded(trace, &report, Blktrace::V1_2);
        let splits = trace.events.iter().any(|e| e.action == Action::Split);
        if let Some((release, fresh)) = btt(&binary(&trace.events, &trace.names)) {
            let agreed = |report: Report| -> Report {
                let rows = report.into_iter().map(|(section, rows)| {
                    let kept = if splits {
                        release.rows_with_splits(&rows)
                    } else {
                        rows
                    };
                    (section, kept)
                });
                rows.collect()
            };
            assert_eq!(
                agreed(fresh),
                agreed(report),
                "{}: the file we write reads the same",
                trace.case
            );
        }
    }
}

#[test]
fn linux_6_1() {
    let traces = recorded("truth/traces");
    for trace in &traces {
        let Some((release, report)) = btt(&binary(&trace.events, &trace.names)) else {
            return;
        };
        check_recorded(trace, &report, release);
    }
    assert!(traces.is_empty() || traces.len() > 10);
}

/// A single-queue kernel: merges of requests show no event, a pool of
/// requests runs out, and the trace ends with much under way.
#[test]
fn linux_2_6_28() {
    for trace in &recorded("truth-2628/traces") {
        let Some((release, report)) = btt(&binary(&trace.events, &trace.names)) else {
            return;
        };
        check_recorded(trace, &report, release);
        let stats = stats_of(&trace.events, &trace.names);
        assert!(stats.unmatched.unfinished_bios > 1_000);
        assert!(stats.all.s2g.count() > 10);
    }
}

/// Traces whose cause is known, of 6.12, 6.18 and 2.6.28.
#[test]
fn traces_of_the_oracle() {
    let Some(folder) = blklab_testkit::shared("data/oracle") else {
        return;
    };
    let mut nr_compared = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path().join("trace.blktrace.0.zst");
        if !path.exists() {
            continue;
        }
        let trace = read_trace(&path, &path.display().to_string());
        // Of a part of a longer trace btt leaves out other things than we do.
        if !stats_of(&trace.events, &trace.names)
            .unmatched
            .events
            .is_empty()
        {
            continue;
        }
        let Some((release, report)) = btt(&binary(&trace.events, &trace.names)) else {
            return;
        };
        check_recorded(&trace, &report, release);
        nr_compared += 1;
    }
    assert!(nr_compared > 0);
}

/// A small generator of numbers, the same on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }
}

/// I/Os of three processes on two disks: waits for requests, merges at both
/// ends, requests given back, plugging. No two events have the same time.
fn made_up() -> (Vec<Event>, Vec<(Pid, String)>) {
    let mut n = Numbers(7);
    let mut events = Vec::new();
    let mut start = 0;
    for io in 0..3_000_u64 {
        // Every hundredth comes after all before it are done.
        start += 1 + n.below(700_000) + if io % 100 == 99 { 40_000_000 } else { 0 };
        let dev = Dev {
            major: 8,
            minor: 16 * n.below(2) as u16,
        };
        let pid = 100 + n.below(3) as u32;
        let rwbs = if n.below(3) == 0 {
            blklab_trace::Rwbs::READ
        } else {
            blklab_trace::Rwbs::WRITE
        };
        // Room on both sides, so that only what should merge does.
        let sector = 1000 * (1 + n.below(1 << 20) * 4_096 + io);
        let mut time = start;
        let mut put = |action, step: u64, sector, nr_sectors: u32, pid| {
            time += 1 + step;
            let is_unplug = action == Action::Unplug;
            events.push(Event {
                time: Time(time),
                sector: if is_unplug { 0 } else { sector },
                arg: u64::from(is_unplug),
                bytes: if is_unplug { 0 } else { nr_sectors * 512 },
                pid,
                dev,
                from_dev: Dev::default(),
                error: 0,
                cpu: 0,
                rwbs: if is_unplug {
                    blklab_trace::Rwbs::NONE
                } else {
                    rwbs
                },
                action,
            });
        };
        put(Action::Queue, 0, sector, 8, pid);
        if n.below(4) == 0 {
            put(Action::SleepRequest, n.below(900), sector, 8, pid);
        }
        put(Action::GetRequest, n.below(90_000), sector, 8, pid);
        put(Action::Insert, n.below(9_000), sector, 8, pid);
        let (mut first, mut end) = (sector, sector + 8);
        for _ in 0..n.below(4) {
            let merger = 100 + n.below(3) as u32;
            if n.below(2) == 0 {
                put(Action::Queue, n.below(50_000), end, 16, merger);
                put(Action::BackMerge, n.below(2_000), end, 16, merger);
                end += 16;
            } else {
                first -= 8;
                put(Action::Queue, n.below(50_000), first, 8, merger);
                put(Action::FrontMerge, n.below(2_000), first, 8, merger);
            }
        }
        let length = (end - first) as u32;
        put(Action::Issue, n.below(3_000_000), first, length, 0);
        put(Action::Complete, n.below(20_000_000), first, length, 0);
    }
    events.sort_by_key(|e| e.time);
    let genesis = events[0].time.0;
    let mut next = 0;
    for event in &mut events {
        event.time.0 = (event.time.0 - genesis).max(next);
        next = event.time.0 + 1;
    }
    let names = [
        (0, "swapper"),
        (100, "alpha"),
        (101, "beta"),
        (102, "gamma"),
    ];
    (
        events,
        names.map(|(pid, comm)| (pid, comm.to_string())).to_vec(),
    )
}

#[test]
fn a_made_up_trace() {
    let (events, names) = made_up();
    let stats = stats_of(&events, &names);
    assert!(stats.nr_events > 15_000);
    assert_eq!((stats.devices.len(), stats.processes.len()), (2, 3));
    assert_eq!(
        stats.unmatched,
        blklab_analysis::stats::UnmatchedStats::default()
    );
    assert!(stats.all.s2g.count() > 500 && stats.all.q2m.count() > 3_000);
    let text = render(&stats, TextOptions { all: true });
    assert!(text.lines().all(|l| l.chars().count() <= 80));
    let ours = sections(&text);
    let Some((_, theirs)) = btt(&binary(&events, &names)) else {
        return;
    };
    for phase in PHASES {
        let (a, b) = (
            row(&ours, "All Devices", phase),
            row(&theirs, "All Devices", phase),
        );
        assert_eq!(a, b, "{phase}");
    }
    for device in ["(  8,  0)", "(  8, 16)"] {
        check_devices("made up", &ours, &theirs, device);
        let section = "I/O Active Period Information";
        assert_eq!(
            row(&ours, section, device),
            row(&theirs, section, device),
            "{device}"
        );
    }
    // With -A there is a table per phase, all in one section: ours has S2G
    // and M2D, btt's Q2A and those of dm.
    for key in ["alpha", "beta", "gamma"] {
        let rows = |report: &Report| -> Vec<Vec<String>> {
            let lines = report["Per Process"].iter().filter(|l| l.starts_with(key));
            lines
                .map(|l| {
                    l.rsplit(' ')
                        .filter(|w| !w.is_empty())
                        .take(4)
                        .map(String::from)
                        .collect()
                })
                .collect()
        };
        let (mut a, b) = (rows(&ours), rows(&theirs));
        assert_eq!((a.len(), b.len()), (9, 8), "{key}");
        // M2D is the seventh.
        a.remove(6);
        assert_eq!(a, b, "{key}");
    }
}

#[test]
fn statistics_are_json() {
    let (events, names) = made_up();
    let json = serde_json::to_value(stats_of(&events, &names)).unwrap();
    assert_eq!(json["devices"][0]["dev"], "8,16");
    assert_eq!(json["processes"][0]["comm"], "alpha");
    assert_eq!(json["all"]["q2c"]["percentiles"][6][0], 50.0);
    assert!(json["all"]["q2c"]["count"].as_u64().unwrap() > 5_000);
    assert_eq!(json["unmatched"]["unfinished_bios"], 0);
}
