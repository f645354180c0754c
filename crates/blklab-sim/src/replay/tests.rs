// SPDX-License-Identifier: MIT OR Apache-2.0

use super::{Before, Dispatched, Process, Recorder, Recording, Replay, replay};
use blklab_experiment::{Experiment, Source};
use blklab_sched::Schedulers;
use blklab_trace::TraceSink as _;
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Dev, Op, Pid, Time};

/// A null device of that depth under a scheduler, with settings more.
fn experiment(kernel: &str, scheduler: &str, depth: u32, settings: &str) -> Experiment {
    let file = format!(
        "kernel = '{kernel}'\nscheduler = '{scheduler}'\njob = \"[a]\"\n\
         [device]\nkind = 'null_blk'\nhw_queue_depth = {depth}\n{settings}"
    );
    let e = blklab_experiment::parse(
        "e.toml",
        Source::Toml,
        &file,
        &|_| unreachable!(),
        &crate::catalogue(),
    );
    e.expect("an experiment")
}

/// Reads of 8 sectors: lines `time_us action pid sector`; W behind that makes it a write.
fn recording(text: &str, with_scheduler: bool) -> Recording {
    let mut recorder = Recorder::default();
    for line in text.lines() {
        let f: Vec<&str> = line.split_whitespace().collect();
        let number = |i: usize| f.get(i).map_or(0, |t| t.parse::<u64>().expect(line));
        let of_bio = !matches!(f[1], "P" | "U" | "UT");
        recorder.event(&Event {
            time: Time(1000 * number(0)),
            sector: number(3),
            arg: 0,
            bytes: if of_bio { 4096 } else { 0 },
            pid: number(2) as Pid,
            dev: Dev::default(),
            from_dev: Dev::default(),
            error: 0,
            cpu: 0,
            rwbs: match f.get(4) {
                Some(_) => Rwbs::WRITE,
                None if of_bio => Rwbs::READ,
                None => Rwbs::NONE,
            },
            action: Action::from_letters(f[1]).expect(line),
        });
    }
    recorder.finish(with_scheduler)
}

/// The sectors that the driver gets if a null device of that depth is fed with
/// a recording.
fn sectors(scheduler: &str, depth: u32, text: &str) -> Vec<u64> {
    let e = experiment("6.1", scheduler, depth, "[queue]\nnr_requests = 4");
    let recording = recording(text, scheduler != "none");
    let (done, _) = replay(&e, recording, |_| Process::default()).expect("possible");
    done.iter().map(|d| d.sector).collect()
}

#[test]
fn a_plug_without_a_scheduler_is_issued_newest_first() {
    let text = "0 Q 9 1000\n1 G 9 1000\n2 P 9\n3 Q 9 3000\n4 G 9 3000\n5 Q 9 2000\n\
                6 G 9 2000\n7 D 9 2000\n8 D 9 3000\n9 D 9 1000";
    assert_eq!(sectors("none", 8, text), [2000, 3000, 1000]);
    let slept = text
        .replace("7 D 9 2000", "7 UT 9")
        .replace("8 D 9 3000\n", "");
    assert_eq!(sectors("none", 8, &slept), [1000, 3000, 2000]);
}

/// BFQ waits for the process that was served last, which has ended: no event shows it. What
/// came then comes here when BFQ has waited enough.
#[test]
fn what_waits_for_a_process_that_has_ended_comes_after_the_last_event() {
    let text = "0 Q 8 500\n1 G 8 500\n2 I 8 500\n8 D 37 500\n20 Q 9 90000\n21 G 9 90000\n\
                22 I 9 90000\n500 C 0 500\n900 D 37 90000\n1400 C 0 90000";
    let e = experiment("5.10", "bfq", 1, "[iosched]\nstrict_guarantees = 1");
    let (done, _) = replay(&e, recording(text, true), |_| Process::default()).expect("possible");
    let sectors: Vec<u64> = done.iter().map(|d| d.sector).collect();
    assert_eq!(sectors, [500, 90000]);
    assert!(done[1].time > Time(1_400_000), "{}", done[1].time);
}

/// The worker takes one request early. Alone it is not followed by the next
/// one in order of sectors; with the others it is.
#[test]
fn kblockd_runs_where_the_recording_leaves_room() {
    let begin = "0 Q 9 500\n1 G 9 500\n2 I 9 500\n8 D 37 500\n";
    let others = "109 Q 9 900\n110 G 9 900\n111 I 9 900\n112 Q 9 700\n113 G 9 700\n\
                  114 I 9 700\n500 C 0 500\n508 D 37 600\n1000 C 0 600\n1008 D 37 900";
    let early = format!("{begin}56 Q 9 600\n57 G 9 600\n58 I 9 600\n{others}");
    assert_eq!(sectors("mq-deadline", 1, &early), [500, 600, 900]);
    let late = format!("{begin}106 Q 9 600\n107 G 9 600\n108 I 9 600\n{others}");
    assert_eq!(sectors("mq-deadline", 1, &late), [500, 600, 700]);
}

#[test]
fn who_sleeps_for_a_tag_goes_on_when_it_did() {
    // Two tags: 9 has both; 8 got one first although 9 came again before.
    let text = "0 Q 9 100\n1 G 9 100\n2 D 9 100\n20 Q 9 200\n21 G 9 200\n22 D 9 200\n\
                30 Q 8 300\n40 Q 7 400\n500 C 0 100\n510 G 8 300\n511 D 8 300\n\
                520 C 0 200\n530 G 7 400\n531 D 7 400\n900 C 0 300\n950 C 0 400";
    assert_eq!(sectors("none", 2, text), [100, 200, 300, 400]);
}

/// Three reads are at the device and a write waits for it.
const FULL: &str = "0 Q 9 100\n1 G 9 100\n2 I 9 100\n8 D 37 100\n20 Q 9 150\n\
                    21 G 9 150\n22 I 9 150\n28 D 37 150\n40 Q 9 160\n41 G 9 160\n\
                    42 I 9 160\n48 D 37 160\n190 Q 9 600 W\n191 G 9 600 W\n192 I 9 600 W\n";

#[test]
fn a_completion_before_a_bio_has_its_request_comes_before_the_bio() {
    // All four requests are in use when 8 submits its bio, but not when it looks
    // for one: it does not sleep, and nothing is handed over before it is there.
    let rest = "195 Q 8 300\n196 C 8 100\n200 G 8 300\n201 P 8\n202 U 8\n203 I 8 300\n\
                204 D 8 300\n500 C 0 150\n506 D 37 600 W";
    let order = sectors("mq-deadline", 3, &format!("{FULL}{rest}"));
    assert_eq!(order, [100, 150, 160, 300, 600]);
}

#[test]
fn kblockd_did_not_run_in_a_pause_if_there_was_something_to_hand_over() {
    let rest = "193 Q 8 300\n194 G 8 300\n195 P 8\n196 C 8 100\n203 C 8 150\n205 U 8\n\
                206 I 8 300\n207 D 8 300\n209 D 8 600 W";
    let full = FULL.replace("40 Q 9 160\n41 G 9 160\n42 I 9 160\n48 D 37 160\n", "");
    let order = sectors("mq-deadline", 2, &format!("{full}{rest}"));
    assert_eq!(order, [100, 150, 300, 600]);
}

/// One interrupt brings both completions: the hand-overs behind them are kblockd's, not the
/// one for which it would have to wait until another read is there.
#[test]
fn kblockd_runs_right_behind_the_completions_of_one_interrupt() {
    let text = "0 Q 9 500\n1 G 9 500\n2 I 9 500\n8 D 37 500\n20 Q 9 600\n21 G 9 600\n22 I 9 600\n\
                28 D 37 600\n40 Q 9 900\n41 G 9 900\n42 I 9 900\n100 Q 9 700\n101 G 9 700\n\
                102 I 9 700\n500 C 0 500\n504 C 0 600\n508 D 37 900\n510 D 37 700\n600 Q 9 950\n\
                601 G 9 950\n602 I 9 950\n1000 C 0 900\n1004 C 0 700\n1008 D 37 950";
    assert_eq!(sectors("mq-deadline", 2, text), [500, 600, 900, 700, 950]);
}

#[test]
fn completions_that_fit_no_command_end_the_oldest() {
    // The recorded driver got what the model cannot have: 150.
    let text = "0 Q 9 100\n1 G 9 100\n2 D 9 150\n20 Q 9 200\n30 C 0 150\n31 G 9 200\n\
                32 D 9 200\n60 C 0 200";
    assert_eq!(sectors("none", 1, text), [100, 200]);
}

/// A command's first sector, and whether it writes.
type Seen = (u64, bool);

fn seen(command: &Dispatched) -> Seen {
    (command.sector, command.op == Op::Write)
}

/// What a device gets one by one, each done when the next one is handed over, if `before`
/// came before what `text` says.
fn order(e: &Experiment, text: &str, before: Before) -> Vec<Seen> {
    let known = |_| Process::default();
    let mut replay = Replay::new(e, Schedulers::default(), known, None).expect("possible");
    replay.feed(recording(text, true));
    replay.begin_after(before);
    while replay.step() {}
    replay.handed_over().map(|h| seen(&h.command)).collect()
}

/// The same of a recording in which the device got what `order` says, and what is found
/// to have come before.
fn found(e: &Experiment, text: &str, order: &[Seen]) -> (Vec<Seen>, Option<Before>) {
    let recorded = recording(&with_dispatches(text, order), true);
    let (done, before) = replay(e, recorded, |_| Process::default()).expect("possible");
    (done.iter().map(seen).collect(), before)
}

/// Lines with the dispatches of an order, and with completions, one each ms.
fn with_dispatches(text: &str, order: &[Seen]) -> String {
    let mut lines: Vec<(u64, String)> = text
        .lines()
        .map(|l| {
            (
                l.split(' ').next().map_or(0, |t| t.parse().expect(l)),
                l.to_owned(),
            )
        })
        .collect();
    for (n, (sector, is_write)) in (0..).zip(order) {
        let w = if *is_write { " W" } else { "" };
        let (begin, end) = (1000 * n + 8, 1000 * (n + 1));
        lines.push((begin, format!("{begin} D 37 {sector}{w}")));
        lines.push((end, format!("{end} C 0 {sector}{w}")));
    }
    lines.sort_by_key(|(time, _)| *time);
    lines.into_iter().map(|(_, l)| l + "\n").collect()
}

/// One command after another: reads that begin in ascending order of their sectors, and
/// writes between which it goes back and forth.
fn reads_and_writes() -> String {
    let mut text = String::new();
    let mut us = 0;
    for (n, sector) in [1000, 5000, 3000, 6000, 2000, 7000, 4000, 8000]
        .iter()
        .enumerate()
    {
        for (sector, w) in [(*sector, ""), (100_000 + 1000 * n as u64, " W")] {
            let pid = if w.is_empty() { 9 } else { 8 };
            for action in ["Q", "G", "I"] {
                text += &format!("{us} {action} {pid} {sector}{w}\n");
                us += 1;
            }
        }
        us = us.max(10);
    }
    text
}

/// A command of the recording ends whatever the device has, if it has none of these.
const ANY: [Seen; 16] = [(1, false); 16];

#[test]
fn reads_before_the_trace_are_found_by_what_the_scheduler_does() {
    let settings = "[queue]\nnr_requests = 64\n[tunables]\nfifo_batch = 5\nwrites_starved = 1";
    let e = experiment("6.12", "mq-deadline", 1, settings);
    let text = reads_and_writes();
    let with_ends = with_dispatches(&text, &ANY);
    let first_tag = 0;
    let orders: Vec<_> = (0..=5)
        .map(|reads| order(&e, &with_ends, Before { reads, first_tag }))
        .collect();
    assert!(orders.iter().all(|o| o.len() == 16), "{orders:?}");
    let mut different = orders.clone();
    different.dedup();
    assert!(different.len() > 1, "reads make a difference: {orders:?}");
    for order in &orders {
        let (done, before) = found(&e, &text, order);
        assert_eq!(done, *order, "{before:?}");
        assert_eq!(before.is_none(), *order == orders[0], "{before:?}");
    }
}

/// Writes, whose depth is limited, may have two of six tags, and not every two: reads that
/// began elsewhere leave them others.
#[test]
fn the_first_tag_is_found_by_who_gets_a_request() {
    let settings = "[queue]\nnr_requests = 6\n[tunables]\nasync_depth = 2\nfifo_batch = 1";
    let e = experiment("6.12", "mq-deadline", 1, settings);
    let text = reads_and_writes();
    let with_ends = with_dispatches(&text, &ANY);
    let reads = 0;
    let of_tag = |first_tag| order(&e, &with_ends, Before { reads, first_tag });
    let other = (1..6).map(of_tag).find(|o| *o != of_tag(0));
    let other = other.expect("the first tag makes a difference");
    let (done, before) = found(&e, &text, &other);
    assert_eq!(done, other);
    let before = before.expect("another tag");
    assert!(before.first_tag > 0 && before.reads == 0, "{before}");
}
