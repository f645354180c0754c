// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings that events of other parts of the kernel lead to, each in a trace that is made
//! up to have it: lines as the kernel prints them.

use blklab_analysis::findings::slow::{Lives, Which};
use blklab_analysis::findings::{Confidence, Context, Finding, Reading, Report, Search};
use blklab_formats::TraceFile;
use blklab_formats::ftrace::FtraceReader;
use blklab_trace::TraceSource as _;

/// The kinds that these traces have.
pub(crate) const KINDS: [&str; 8] = [
    "journal-commit",
    "log-force",
    "cgroup-cost",
    "journal-full",
    "dirty-limit",
    "wbt",
    "command-fault",
    "cpu-wait",
];

/// A process: its name and number.
type Who = (&'static str, u32);

const DB: Who = ("db", 77);
const JOURNAL: Who = ("jbd2/sda1-8", 9);

/// Lines of `trace_pipe` with their times in us.
#[derive(Default)]
struct Lines(Vec<(u64, String)>);

impl Lines {
    fn event(&mut self, us: u64, who: Who, event: &str) {
        let (comm, pid) = who;
        let time = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        self.0
            .push((us, format!("{comm}-{pid} [000] ..... {time}: {event}\n")));
    }

    /// A request from Q to C; it is issued as soon as it is there.
    fn io(&mut self, who: Who, rw: &str, at: (u64, u64), from: u64, to: u64) {
        let (sector, nr) = at;
        let place = format!("{sector} + {nr}");
        let bytes = nr * 512;
        self.event(
            from,
            who,
            &format!("block_bio_queue: 8,0 {rw} {place} [{}]", who.0),
        );
        self.event(
            from,
            who,
            &format!("block_getrq: 8,0 {rw} {place} [{}]", who.0),
        );
        for name in ["insert", "issue"] {
            let text = format!(
                "block_rq_{name}: 8,0 {rw} {bytes} () {place} be,0,4 [{}]",
                who.0
            );
            self.event(from, who, &text);
        }
        let done = format!("block_rq_complete: 8,0 {rw} () {place} be,0,4 [0]");
        self.event(to, ("<idle>", 0), &done);
    }

    /// An fsync that waits for a commit: when each of its steps begins, and its end.
    fn fsync(&mut self, tid: u64, steps: [u64; 5], record: Option<u64>) {
        let [start, locking, flushing, logging, end] = steps;
        let enter = "ext4_sync_file_enter: dev 8,1 ino 12 parent 2 datasync 0 ";
        self.event(start - 10, DB, enter);
        for (us, step) in [
            (start, "start_commit"),
            (locking, "commit_locking"),
            (flushing, "commit_flushing"),
            (logging, "commit_logging"),
        ] {
            let text = format!("jbd2_{step}: dev 8,1 transaction {tid} sync 0");
            self.event(us, JOURNAL, &text);
        }
        let sector = 100_000 + tid * 16;
        self.io(JOURNAL, "WS", (sector, 8), logging + 5, logging + 300);
        if let Some(record) = record {
            self.io(JOURNAL, "FWFS", (sector + 8, 8), record, end - 20);
        }
        let ticks = (end - logging) / 4000;
        let stats = format!(
            "jbd2_run_stats: dev 8,1 tid {tid} wait 1 request_delay 0 running 5 locked 0 \
             flushing 0 logging {ticks} handle_count 4 blocks 2 blocks_logged 3"
        );
        self.event(end - 2, JOURNAL, &stats);
        let text = format!("jbd2_end_commit: dev 8,1 transaction {tid} sync 0 head 1");
        self.event(end, JOURNAL, &text);
        self.event(end + 30, DB, "ext4_sync_file_exit: dev 8,1 ino 12 ret 0");
    }

    fn report(self, context: &str) -> Report {
        self.search(Search::all(Context::parse(context).expect("a context")))
    }

    fn search(mut self, mut search: Search) -> Report {
        self.0.sort_by_key(|(us, _)| *us);
        let text: String = self.0.into_iter().map(|(_, line)| line).collect();
        let mut reader = FtraceReader::new(text.as_bytes(), "text");
        reader.send_all(&mut search).expect("a trace");
        let counts = reader.counts();
        assert!(counts.kernel_events > 0, "{text}");
        assert!(counts.is_clean() && counts.other_events == 0, "{counts:?}");
        search.finish(Reading::default())
    }
}

fn first<'a>(report: &'a Report, kind: &str) -> &'a Finding {
    let shown: Vec<_> = report.findings.iter().map(|f| (f.kind, &f.what)).collect();
    let first = report.findings.first();
    first
        .filter(|f| f.kind == kind)
        .unwrap_or_else(|| panic!("{kind}: {shown:#?}"))
}

/// What the evidence of the first instance says.
fn evidence(f: &Finding) -> Vec<String> {
    let instance = f.first.as_ref().expect("an instance");
    let shown = |e: &blklab_analysis::findings::Evidence| match &e.text {
        Some(text) => text.split(':').next().unwrap_or_default().to_owned(),
        None => e.event.action.letters().to_owned(),
    };
    instance.evidence.iter().map(shown).collect()
}

/// A partition's journal, whose requests are the disk's.
fn with_remap(lines: &mut Lines) {
    let remap = "block_bio_remap: 8,0 WS 100016 + 8 <- (8,1) 97968";
    lines.event(1, JOURNAL, remap);
}

#[test]
fn an_fsync_waits_for_the_flush_of_the_commit_record() {
    let mut lines = Lines::default();
    with_remap(&mut lines);
    for n in 0..10 {
        let t = 10_000 + n * 30_000;
        lines.io(DB, "WS", (8000 + n * 8, 8), t, t + 500);
        let start = t + 600;
        let steps = [0, 5, 20, 60, 15_000].map(|us| start + us);
        lines.fsync(n + 1, steps, Some(start + 500));
    }
    let report = lines.report("");
    let f = first(&report, "journal-commit");
    assert_eq!((f.victims[0].pid, f.causes[0].pid), (DB.1, JOURNAL.1));
    assert_eq!((f.count, f.total_ns), (10, Some(150_000_000)));
    assert!(f.how.contains("96 % for the commit record"), "{}", f.how);
    // A tick is 4 ms, since logging takes as many.
    assert!(f.how.contains("up to 4.00 ms for a handle"), "{}", f.how);
    assert!(f.cause.as_ref().is_some_and(|c| c.contains("flushed")));
    assert_eq!(f.dev.to_string(), "8,0");
    assert!(report.findings.iter().all(|f| f.kind != "flush"));
    let shown = evidence(f);
    for name in [
        "ext4_sync_file_enter",
        "jbd2_commit_logging",
        "jbd2_end_commit",
        "D",
    ] {
        assert!(shown.iter().any(|e| e == name), "{name}: {shown:?}");
    }
}

#[test]
fn an_fsync_waits_for_handles_that_somebody_has_open() {
    let mut lines = Lines::default();
    with_remap(&mut lines);
    for n in 0..10 {
        let t = 10_000 + n * 30_000;
        let start = t + 600;
        let steps = [0, 5, 9_000, 9_050, 10_000].map(|us| start + us);
        lines.fsync(n + 1, steps, Some(start + 9_400));
        let handle = format!(
            "jbd2_handle_stats: dev 8,1 tid {} type 6 line_no 1 interval 2 sync 0 \
             requested_blocks 8 dirtied_blocks 4",
            n + 1
        );
        lines.event(start + 8_990, ("rm", 55), &handle);
    }
    let f = &lines.report("").findings[0];
    assert_eq!(f.kind, "journal-commit");
    let cause = f.cause.as_deref().unwrap_or_default();
    assert_eq!(
        cause,
        "handles that process 55 keeps open".replace("process 55", "rm (55)")
    );
    assert!(f.how.contains("90 % for handles"), "{}", f.how);
}

#[test]
fn commits_that_are_quick_are_no_finding() {
    let mut lines = Lines::default();
    with_remap(&mut lines);
    for n in 0..10 {
        let start = 10_000 + n * 30_000;
        let steps = [0, 5, 20, 60, 700].map(|us| start + us);
        lines.fsync(n + 1, steps, Some(start + 400));
    }
    let report = lines.report("");
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
}

const READER: Who = ("reader", 33);
const WRITER: Who = ("writer", 44);

/// Reads of one process, one at a time, each done after 100 us.
fn reads(lines: &mut Lines, from: u64, n: u64) {
    for k in 0..n {
        let t = from + k * 5000;
        lines.io(READER, "R", ((k * 7919 % 1000) * 1000, 8), t, t + 100);
    }
}

#[test]
fn tasks_wait_for_room_in_the_log_of_xfs() {
    let mut lines = Lines::default();
    let ticket = "dev 8:0 t_ocnt 2 t_cnt 2 t_curr_res 170 t_unit_res 170 reserveq empty";
    reads(&mut lines, 1000, 20);
    for n in 0..5 {
        let t = 10_000 + n * 20_000;
        lines.event(t, WRITER, &format!("xfs_log_grant_sleep: {ticket}"));
        lines.event(t + 8000, WRITER, &format!("xfs_log_grant_wake: {ticket}"));
    }
    let report = lines.report("");
    let f = first(&report, "journal-full");
    assert_eq!((f.victims[0].pid, f.total_ns), (WRITER.1, Some(40_000_000)));
    assert_eq!(evidence(f), ["xfs_log_grant_sleep", "xfs_log_grant_wake"]);
}

/// Writes, each followed by an fsync of XFS that waits for the log's write; `with_log` with the
/// events that the log has from 5.14 on.
fn xfs_fsyncs(with_log: bool) -> Report {
    let mut lines = Lines::default();
    let worker = ("kworker/u8:1", 5);
    for n in 0..10_u64 {
        let t = 10_000 + n * 30_000;
        lines.io(DB, "WS", (8000 + n * 8, 8), t, t + 300);
        lines.event(t + 310, DB, "xfs_file_fsync: dev 8:0 ino 0x84");
        let force = "xfs_log_force: dev 8:0 lsn 0x0 caller xfs_fsync_flush_log+0x5f";
        lines.event(t + 312, DB, force);
        if with_log {
            let iclog = |step: &str, state: &str| {
                format!(
                    "xlog_iclog_{step}: dev 8:0 state XLOG_STATE_{state} refcnt 0 offset 32256 \
                     lsn {:#x} flags XLOG_ICL_NEED_FLUSH|XLOG_ICL_NEED_FUA caller xlog_sync+0x1",
                    0x7_0000_5408 + n
                )
            };
            lines.event(t + 1_300, worker, &iclog("write", "SYNCING"));
            lines.event(t + 1_350, DB, &iclog("wait_on", "SYNCING"));
            lines.event(t + 15_310, worker, &iclog("sync_done", "SYNCING"));
            lines.event(t + 15_320, worker, &iclog("clean", "CALLBACK"));
        }
        let sector = 100_000 + n * 64;
        lines.io(worker, "FWFSM", (sector, 64), t + 1_301, t + 15_300);
    }
    lines.report("")
}

#[test]
fn an_fsync_of_xfs_waits_for_the_log() {
    let report = xfs_fsyncs(true);
    let f = first(&report, "log-force");
    assert_eq!((f.victims[0].pid, f.count), (DB.1, 10));
    assert_eq!(
        (f.total_ns, f.confidence),
        (Some(150_080_000), Confidence::Certain)
    );
    assert!(f.how.contains("93 % for that write"), "{}", f.how);
    assert!(f.how.contains("6 % until"), "{}", f.how);
    let shown = evidence(f);
    for name in [
        "xfs_log_force",
        "xlog_iclog_wait_on",
        "D",
        "xlog_iclog_clean",
    ] {
        assert!(shown.iter().any(|e| e == name), "{name}: {shown:?}");
    }
    assert_eq!(f.causes[0].pid, 5);
    assert!(f.explains.contains(&"flush"), "{:?}", f.explains);
    // Older kernels say only who asks for it.
    let report = xfs_fsyncs(false);
    let f = first(&report, "log-force");
    assert_eq!((f.victims[0].pid, f.count), (DB.1, 10));
    assert_eq!(
        (f.total_ns, f.confidence),
        (Some(149_880_000), Confidence::Likely)
    );
}

#[test]
fn who_asks_for_the_log_and_goes_on_does_not_wait() {
    let mut lines = Lines::default();
    let worker = ("kworker/0:1", 5);
    for n in 0..10_u64 {
        let t = 10_000 + n * 30_000;
        // The log's own worker, and a task that reads meanwhile.
        for (us, who) in [(0, worker), (1, READER)] {
            let force = "xfs_log_force: dev 8:0 lsn 0x0 caller xfs_log_worker+0x2f";
            lines.event(t + us, who, force);
        }
        lines.io(worker, "FWFSM", (100_000 + n * 64, 64), t + 10, t + 900);
        reads(&mut lines, t + 20, 2);
    }
    let report = lines.report("");
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
}

/// Reads that wait for a share of the device: 10 ms from Q to G each.
fn costly(rate: &str, disk: &str) -> Report {
    let mut lines = Lines::default();
    let activate = format!(
        "iocost_iocg_activate: [{disk}:/batch] now=1:2 vrate=137438 period=22->22 vtime=0->5 \
         weight=50/50 hweight=6553/6553"
    );
    lines.event(500, READER, &activate);
    let rate = format!("iocost_ioc_vrate_adj: [{disk}] {rate}");
    for n in 0..20 {
        let (t, sector) = (1000 + n * 15_000, (n * 7919 % 1000) * 1000);
        lines.event(t, ("<idle>", 0), &rate);
        let place = format!("{sector} + 8");
        let queue = format!("block_bio_queue: 8,0 R {place} [reader]");
        lines.event(t + 1000, READER, &queue);
        lines.event(
            t + 11_000,
            READER,
            &format!("block_getrq: 8,0 R {place} [reader]"),
        );
        for name in ["insert", "issue"] {
            let text = format!("block_rq_{name}: 8,0 R 4096 () {place} be,0,4 [reader]");
            lines.event(t + 11_001, READER, &text);
        }
        let done = format!("block_rq_complete: 8,0 R () {place} be,0,4 [0]");
        lines.event(t + 11_101, ("<idle>", 0), &done);
    }
    lines.report("")
}

#[test]
fn a_control_group_waits_for_its_share() {
    let short =
        "vrate=137438->68719 busy=4 missed_ppm=900000:0 rq_wait_pct=0 lagging=1 shortages=1";
    // A disk whose number is not fixed is the only one.
    for disk in ["sda", "vdb"] {
        let report = costly(short, disk);
        let f = first(&report, "cgroup-cost");
        assert_eq!((f.victims[0].pid, f.count), (READER.1, 20));
        assert_eq!(f.total_ns, Some(200_000_000));
        let cause = f.cause.as_deref().unwrap_or_default();
        assert!(cause.contains("/batch, which has 9 % by weight"), "{cause}");
        assert!(f.how.contains("50 % of what its model says"), "{}", f.how);
        assert!(f.how.contains("90 % of reads"), "{}", f.how);
        let shown = evidence(f);
        assert!(
            shown.contains(&"iocost_ioc_vrate_adj".to_owned()),
            "{shown:?}"
        );
    }
    let another = costly(short, "sdb");
    assert!(another.findings.iter().all(|f| f.kind != "cgroup-cost"));
    let idle = "vrate=137438->137438 busy=0 missed_ppm=0:0 rq_wait_pct=0 lagging=0 shortages=0";
    let idle = costly(idle, "sda");
    assert!(idle.findings.iter().all(|f| f.kind != "cgroup-cost"));
}

/// A pause in balance_dirty_pages.
fn pause(lines: &mut Lines, us: u64, who: Who, ms: i64, pages: u64) {
    let text = format!(
        "balance_dirty_pages: bdi 8:0: limit=28000 setpoint=21000 dirty=26000 bdi_setpoint=900 \
         bdi_dirty=880 dirty_ratelimit=1020 task_ratelimit=512 dirtied={pages} \
         dirtied_pause={pages} paused=0 pause={ms} period={ms} think=0 cgroup_ino=1"
    );
    lines.event(us, who, &text);
}

#[test]
fn a_small_writer_is_held_back_for_a_large_one() {
    let mut lines = Lines::default();
    reads(&mut lines, 1000, 20);
    for n in 0..10 {
        pause(&mut lines, n * 250_000, WRITER, 200, 1000);
        pause(&mut lines, n * 250_000 + 10, DB, 150, 8);
        // Not held back: it has gone slowly enough.
        pause(&mut lines, n * 250_000 + 20, JOURNAL, -3, 8);
    }
    let report = lines.report("");
    let f = first(&report, "dirty-limit");
    let victims: Vec<u32> = f.victims.iter().map(|p| p.pid).collect();
    assert_eq!((victims, f.total_ns), (vec![DB.1], Some(1_500_000_000)));
    assert_eq!(f.causes[0].pid, WRITER.1);
    // Alone, the large one does what the device can.
    let mut alone = Lines::default();
    for n in 0..10 {
        pause(&mut alone, n * 250_000, WRITER, 200, 1000);
    }
    let report = alone.report("");
    let f = first(&report, "dirty-limit");
    assert_eq!(f.weight, blklab_analysis::findings::Weight::OwnChoice);
    // Short pauses are how write-back works.
    let mut short = Lines::default();
    for n in 0..10 {
        pause(&mut short, n * 250_000, WRITER, 10, 1000);
    }
    assert!(short.report("").findings.is_empty());
}

#[test]
fn writes_wait_while_wbt_is_scaled_down() {
    let mut lines = Lines::default();
    let step = |step: i32, limits: [u32; 3]| {
        let [background, normal, max] = limits;
        format!(
            "wbt_step: 8:0: scale down: step={step}, window=57735us, background={background}, \
             normal={normal}, max={max}"
        )
    };
    let worker = ("kworker/0:1", 5);
    reads(&mut lines, 500, 60);
    lines.event(1000, worker, &step(2, [1, 2, 4]));
    let stat = "wbt_stat: 8:0: rmean=81000000, rmin=76000000, rmax=90000000, rsamples=3, \
                wmean=1, wmin=1, wmax=1, wsamples=9";
    lines.event(1001, worker, stat);
    for n in 0..20 {
        let (t, sector) = (2000 + n * 10_000, 500_000 + n * 1000);
        let place = format!("{sector} + 8");
        lines.event(
            t,
            WRITER,
            &format!("block_bio_queue: 8,0 WS {place} [writer]"),
        );
        lines.event(
            t + 6000,
            WRITER,
            &format!("block_getrq: 8,0 WS {place} [writer]"),
        );
        for name in ["insert", "issue"] {
            let text = format!("block_rq_{name}: 8,0 WS 4096 () {place} be,0,4 [writer]");
            lines.event(t + 6001, WRITER, &text);
        }
        let done = format!("block_rq_complete: 8,0 WS () {place} be,0,4 [0]");
        lines.event(t + 6101, ("<idle>", 0), &done);
    }
    let report = lines.report("");
    let f = first(&report, "wbt");
    assert_eq!((f.victims[0].pid, f.count), (WRITER.1, 20));
    assert_eq!(f.causes[0].pid, READER.1);
    assert!(
        f.what.contains("1 write of write-back and 2 others"),
        "{}",
        f.what
    );
    assert!(f.how.contains("76.0 ms the fastest"), "{}", f.how);
    assert!(
        evidence(f).contains(&"wbt_step".to_owned()),
        "{:?}",
        evidence(f)
    );
}

#[test]
fn a_command_times_out_and_is_tried_again() {
    let mut lines = Lines::default();
    reads(&mut lines, 1000, 20);
    let command = |sector: u64, opcode: u8| {
        let [.., a, b, c, d] = sector.to_be_bytes();
        format!(
            "host_no=0 channel=0 id=0 lun=0 data_sgl=1 prot_sgl=0 prot_op=SCSI_PROT_NORMAL \
             driver_tag=1 scheduler_tag=1 cmnd=(READ_10 lba={sector} txlen=8 protect=0 \
             raw={opcode:02x} 00 {a:02x} {b:02x} {c:02x} {d:02x} 00 00 08 00)"
        )
    };
    for n in 0..2_u64 {
        let (t, sector) = (200_000 + n * 2_000_000, 70_000 + n * 5000);
        let text = command(sector, 0x28);
        lines.io(DB, "R", (sector, 8), t, t + 1_000_000);
        lines.event(t + 1, DB, &format!("scsi_dispatch_cmd_start: {text}"));
        let worker = ("kworker/0:1H", 6);
        let timeout = format!(
            "scsi_dispatch_cmd_timeout: {text} result=(driver=DRIVER_OK host=DID_OK \
             message=COMMAND_COMPLETE status=SAM_STAT_GOOD) sense=(key=0x0 asc=0x0 ascq=0x0)"
        );
        lines.event(t + 900_000, worker, &timeout);
    }
    let report = lines.report("");
    let f = first(&report, "command-fault");
    assert_eq!((f.victims[0].pid, f.count), (DB.1, 2));
    assert!(f.what.contains("2 timed out"), "{}", f.what);
    // Two waits that are no chance of the device.
    assert!(report.findings.iter().all(|f| f.kind != "device-slow"));
    assert!(evidence(f).contains(&"scsi_dispatch_cmd_timeout".to_owned()));
}

#[test]
fn nvme_tries_again() {
    let mut lines = Lines::default();
    reads(&mut lines, 1000, 20);
    for n in 0..3_u64 {
        let (t, sector) = (200_000 + n * 200_000, 70_000 + n * 5000);
        lines.io(DB, "R", (sector, 8), t, t + 50_000);
        for (us, status) in [(1, 0x281), (40_000, 0)] {
            let setup = format!(
                "nvme_setup_cmd: nvme0: disk=nvme0n1, qid=1, cmdid=7, nsid=1, flags=0x0, \
                 meta=0x0, cmd=(nvme_cmd_read slba={sector}, len=7, ctrl=0x0, dsmgmt=0, reftag=0)"
            );
            lines.event(t + us, DB, &setup);
            let done = format!(
                "nvme_complete_rq: nvme0: disk=nvme0n1, qid=1, cmdid=7, res=0x0, retries=0, \
                 flags=0x0, status={status:#x}"
            );
            lines.event(t + us + 9_000, ("<idle>", 0), &done);
        }
    }
    let report = lines.report("");
    let f = first(&report, "command-fault");
    assert_eq!((f.victims[0].pid, f.count), (DB.1, 3));
    assert!(
        f.what.contains("3 failed (NVMe status 0x281)"),
        "{}",
        f.what
    );
}

#[test]
fn who_is_woken_waits_for_a_cpu() {
    let mut lines = Lines::default();
    let hog = ("hog", 99);
    let switch = |(prev, a): Who, state: &str, (next, b): Who| {
        format!(
            "sched_switch: prev_comm={prev} prev_pid={a} prev_prio=120 prev_state={state} ==> \
             next_comm={next} next_pid={b} next_prio=120"
        )
    };
    for n in 0..10 {
        let t = 10_000 + n * 30_000;
        lines.io(DB, "R", ((n * 7919 % 100) * 1000, 8), t, t + 200);
        lines.event(t + 20, DB, &switch(DB, "D", hog));
        let wakeup = "sched_wakeup: comm=db pid=77 prio=120 target_cpu=000";
        lines.event(t + 210, hog, wakeup);
        lines.event(t + 8_210, hog, &switch(hog, "R", DB));
    }
    let report = lines.report("");
    let f = first(&report, "cpu-wait");
    assert_eq!((f.victims[0].pid, f.causes[0].pid), (DB.1, hog.1));
    assert_eq!((f.count, f.total_ns), (10, Some(80_000_000)));
    assert_eq!(
        evidence(f),
        ["sched_switch", "C", "sched_wakeup", "sched_switch"]
    );
}

/// A read, with the driver's own events.
fn nvme_read(lines: &mut Lines, sector: u64, from: u64, to: u64) {
    lines.io(DB, "R", (sector, 8), from, to);
    let setup = format!(
        "nvme_setup_cmd: nvme0: disk=nvme0n1, qid=1, cmdid=7, nsid=1, flags=0x0, meta=0x0, \
         cmd=(nvme_cmd_read slba={sector}, len=7, ctrl=0x0, dsmgmt=0, reftag=0)"
    );
    lines.event(from, DB, &setup);
    let done = "nvme_complete_rq: nvme0: disk=nvme0n1, qid=1, cmdid=7, res=0x0, retries=0, \
                flags=0x0, status=0x0";
    lines.event(to - 1, ("<idle>", 0), done);
}

#[test]
fn the_driver_confirms_that_the_device_is_slow() {
    let slow = |with_driver: bool| {
        let mut lines = Lines::default();
        for n in 0..60 {
            let (t, sector) = (1000 + n * 80_000, (n * 7919 % 1000) * 1000);
            let took = if n % 20 == 19 { 60_000 } else { 100 };
            if with_driver {
                nvme_read(&mut lines, sector, t, t + took);
            } else {
                lines.io(DB, "R", (sector, 8), t, t + took);
            }
        }
        lines.event(1, DB, "xfs_file_fsync: dev 8:0 ino 0x84");
        let report = lines.report("");
        let f = first(&report, "device-slow");
        (f.confidence, f.how.clone())
    };
    let (confidence, how) = slow(true);
    assert_eq!(confidence, Confidence::Certain);
    assert!(how.contains("say the same of 3 requests"), "{how}");
    assert_eq!(slow(false).0, Confidence::Likely);
}

#[test]
fn a_life_says_what_went_on_meanwhile() {
    let mut lines = Lines::default();
    with_remap(&mut lines);
    lines.fsync(1, [10_000, 10_005, 10_020, 10_060, 30_000], Some(12_000));
    lines.io(READER, "R", (64, 8), 11_000, 29_000);
    pause(&mut lines, 15_000, WRITER, 10, 100);
    let wanted = Lives::new(Which::At(64, 1));
    lines.search(Search::with(
        vec![Box::new(wanted.clone())],
        Context::default(),
    ));
    let lives = wanted.take();
    let said: Vec<(&str, u64)> = lives[0]
        .beside
        .iter()
        .map(|b| (b.what.split(' ').next().unwrap_or_default(), b.overlap_ns))
        .collect();
    // The commit, the fsync that waits for it, the pause.
    assert_eq!(
        said,
        [
            ("db", 18_000_000),
            ("commit", 18_000_000),
            ("writer", 10_000_000)
        ]
    );
}

/// A recording of a real kernel: four files, each written and synced, on a loop device.
#[test]
fn a_recorded_fsync_waits_for_its_commits() {
    let path = "testdata/tracedat/ext4-fsync-6.18.dat.zst";
    let path = blklab_testkit::root().join(path);
    let mut file = TraceFile::open(&path).expect("a trace");
    let mut search = Search::all(Context::default());
    file.send_all(&mut search).expect("it can be read");
    let counts = file.counts();
    assert!(counts.is_clean(), "{counts:?}");
    let report = search.finish(Reading::default());
    let f = first(&report, "journal-commit");
    assert_eq!((f.count, f.victims.len()), (4, 4));
    assert_eq!(f.causes[0].comm.as_deref(), Some("jbd2/loop1-8"));
    assert!(f.how.contains("99 % for the commit record"), "{}", f.how);
    assert!(f.explains.contains(&"flush"), "{:?}", f.explains);
}
