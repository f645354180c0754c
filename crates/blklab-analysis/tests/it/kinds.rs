// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small trace for each kind of finding, made up to have it and nothing worse.

use blklab_analysis::findings::{ALL, Context, Reading, Report, Search};
use blklab_formats::blkparse::BlkparseReader;
use blklab_trace::TraceSource as _;
use std::collections::BTreeSet;

/// Lines of blkparse with their times in us.
#[derive(Default)]
struct Lines(Vec<(u64, String)>);

/// One request: who, what, where, and when in us.
struct Io {
    who: (u32, &'static str),
    rw: &'static str,
    at: (u64, u64),
    /// Q, I, D, C.
    times: [u64; 4],
}

impl Lines {
    fn line(&mut self, us: u64, rest: &str) {
        self.0.push((us, rest.to_owned()));
    }

    fn event(&mut self, us: u64, pid: u32, action: &str, rw: &str, at: (u64, u64), comm: &str) {
        self.line(
            us,
            &format!("{pid} {action} {rw} {} + {} [{comm}]", at.0, at.1),
        );
    }

    fn io(&mut self, io: &Io) {
        let ((pid, comm), [q, i, d, c]) = (io.who, io.times);
        self.event(q, pid, "Q", io.rw, io.at, comm);
        self.event(q, pid, "G", io.rw, io.at, comm);
        self.event(i, pid, "I", io.rw, io.at, comm);
        self.event(d, pid, "D", io.rw, io.at, comm);
        self.event(c, 0, "C", io.rw, io.at, "0");
    }

    fn report(mut self, context: &str) -> Report {
        self.0.sort_by_key(|(us, _)| *us);
        let mut text = String::new();
        for (n, (us, rest)) in self.0.iter().enumerate() {
            let (s, us) = (us / 1_000_000, us % 1_000_000);
            text += &format!("8,0 0 {} {s}.{us:06}000 {rest}\n", n + 1);
        }
        let mut search = Search::all(Context::parse(context).expect("a context"));
        let mut reader = BlkparseReader::new(text.as_bytes(), "text");
        reader.send_all(&mut search).expect("a trace");
        search.finish(Reading::default())
    }
}

/// Requests one at a time, each from an idle device in 100 us.
fn alone(lines: &mut Lines, who: (u32, &'static str), rw: &'static str, from: u64, n: u64) {
    for k in 0..n {
        let t = from + k * 5000;
        let at = ((k * 7919 % 1000) * 1000, 8);
        lines.io(&Io {
            who,
            rw,
            at,
            times: [t, t, t + 1, t + 101],
        });
    }
}

/// A queue of one process, `depth` deep, on a device that serves one in 500 us.
fn deep(lines: &mut Lines, who: (u32, &'static str), rw: &'static str, depth: u64, n: u64) {
    for k in 0..n {
        let d = 500 * k;
        let q = d.saturating_sub(500 * depth);
        let at = (1_000_000 + (k * 7919 % 1000) * 1000, 8);
        lines.io(&Io {
            who,
            rw,
            at,
            times: [q, q, d, d + 500],
        });
    }
}

/// Two streams of 128 KiB reads, two of each in turn: a read behind its own stream's takes
/// 1 ms, one behind the other's so many us.
fn turns(lines: &mut Lines, turn_us: u64) {
    let mut t = 0;
    for k in 0..60_u64 {
        let of_b = (k / 2) % 2;
        let step = k / 4 * 2 + k % 2;
        let took = if k % 2 == 0 {
            turn_us + k * 797 % (turn_us / 2)
        } else {
            1000 + k * 97 % 300
        };
        lines.io(&Io {
            who: if of_b == 1 { B } else { A },
            rw: "R",
            at: (of_b * 10_000_000 + step * 256, 256),
            times: [t, t, t + 1, t + 1 + took],
        });
        t += took + 2;
    }
}

fn kinds(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(|f| f.kind).collect()
}

const A: (u32, &str) = (1, "a");
const B: (u32, &str) = (2, "b");

/// The traces: the kind that must come first, its context, its lines, who suffers.
fn samples() -> Vec<(&'static str, &'static str, Lines, u32)> {
    let mut all = Vec::new();
    let mut add = |kind, context, victim, make: &dyn Fn(&mut Lines)| {
        let mut lines = Lines::default();
        make(&mut lines);
        all.push((kind, context, lines, victim));
    };
    add("deep-queue", "", 1, &|l| deep(l, A, "R", 32, 200));
    // A device that would take 31, and is given four of a process's 32.
    let limited = "queue/scheduler=cfq\ndevice/queue_depth=31";
    add("shallow-dispatch", limited, 1, &|l| {
        for k in 0..400_u64 {
            let d = 2000 + 25 * k;
            let q = d - 25 * k.min(32);
            l.io(&Io {
                who: A,
                rw: "R",
                at: ((k * 7919 % 1000) * 1000, 8),
                times: [q, q, d, d + 100],
            });
        }
    });
    add("commit-behind", "", 1, &commits_behind_a_flusher);
    // An elevator that goes on upwards while b waits below.
    add("overtaken", "queue/scheduler=mq-deadline", 2, &|l| {
        deep(l, A, "R", 8, 1500);
        for k in 0..2 {
            let t = 10_250 + k * 350_000;
            let times = [t, t, t + 300_000, t + 300_250];
            l.io(&Io {
                who: B,
                rw: "R",
                at: (8 * k, 8),
                times,
            });
        }
    });
    add("seek-storm", "queue/rotational=1", 2, &|l| {
        turns(l, 10_000);
    });
    add("writes-starved", "queue/scheduler=mq-deadline", 2, &|l| {
        deep(l, A, "R", 8, 300);
        for k in 0..4 {
            let t = 10_000 + k * 35_000;
            let times = [t, t, t + 30_250, t + 30_750];
            l.io(&Io {
                who: B,
                rw: "WS",
                at: (k * 4000, 8),
                times,
            });
        }
    });
    add("reads-behind-writes", "queue/scheduler=noop", 2, &|l| {
        deep(l, A, "W", 64, 300);
        for k in 0..4 {
            let t = 10_000 + k * 35_000;
            let times = [t, t, t + 30_250, t + 30_750];
            l.io(&Io {
                who: B,
                rw: "R",
                at: (k * 4000, 8),
                times,
            });
        }
    });
    let crowded = |l: &mut Lines| {
        deep(l, A, "R", 64, 300);
        for k in 0..4 {
            let t = 10_000 + k * 35_000;
            let times = [t, t, t + 30_250, t + 30_750];
            l.io(&Io {
                who: B,
                rw: "R",
                at: (k * 4000, 8),
                times,
            });
        }
    };
    add("behind-other", "queue/scheduler=mq-deadline", 2, &crowded);
    add("slice", "queue/scheduler=bfq", 2, &crowded);
    add("bfq-queue-merge", "queue/scheduler=bfq", 2, &|l| {
        crowded(l);
        l.line(50, "0 m N bfq2S scheduling merge with queue 1");
        l.line(60, "0 m N bfq2S merging with queue 1");
    });
    add("idling", "queue/scheduler=cfq", 2, &|l| {
        for k in 0..20 {
            let t = k * 10_000;
            l.io(&Io {
                who: A,
                rw: "R",
                at: (k * 8, 8),
                times: [t, t, t + 1, t + 101],
            });
            let times = [t + 50, t + 50, t + 8000, t + 8100];
            l.io(&Io {
                who: B,
                rw: "R",
                at: (900_000 + k * 999, 8),
                times,
            });
        }
    });
    add("plug-timer", "kernel=2.6.28", 1, &|l| {
        for k in 0..20 {
            let t = k * 10_000;
            l.io(&Io {
                who: A,
                rw: "R",
                at: (k * 999, 8),
                times: [t, t, t + 3010, t + 3110],
            });
            l.line(t + 3000, "0 UT N [swapper] 1");
        }
    });
    add("held-back", "queue/scheduler=none", 1, &|l| {
        for k in 0..20 {
            let t = k * 10_000;
            l.io(&Io {
                who: A,
                rw: "R",
                at: (k * 999, 8),
                times: [t, t, t + 5000, t + 5100],
            });
        }
    });
    add("flush", "queue/write_cache=write back", 1, &|l| {
        for k in 0..20 {
            let t = k * 30_000;
            l.io(&Io {
                who: A,
                rw: "WS",
                at: (k * 8, 8),
                times: [t, t, t + 1, t + 101],
            });
            let (j, at) = ((9, "jbd2/sda-8"), (500_000 + k * 8, 8));
            l.event(t + 120, 9, "Q", "FWFSM", at, j.1);
            l.event(t + 121, 9, "G", "FWFSM", at, j.1);
            l.line(t + 125, "7 D FN [kworker/0:1H]");
            l.line(t + 15_125, "0 C FN 0 [0]");
            l.event(t + 15_130, 7, "I", "WFSM", at, "kworker/0:1H");
            l.event(t + 15_131, 7, "D", "WFSM", at, "kworker/0:1H");
            l.event(t + 17_131, 0, "C", "WFSM", at, "0");
            // It goes on right after the commit.
            let times = [t + 17_200, t + 17_200, t + 17_201, t + 17_301];
            l.io(&Io {
                who: A,
                rw: "WS",
                at: (800_000 + k * 999, 8),
                times,
            });
        }
    });
    add(
        "journal-chain",
        "queue/write_cache=write through",
        1,
        &|l| {
            for k in 0..10 {
                let t = k * 30_000;
                l.io(&Io {
                    who: A,
                    rw: "WS",
                    at: (k * 999, 8),
                    times: [t, t, t + 1, t + 8000],
                });
                let (who, at) = ((9, "jbd2/sda-8"), (500_000 + k * 8, 8));
                let times = [t + 8020, t + 8020, t + 8021, t + 16_000];
                l.io(&Io {
                    who,
                    rw: "WS",
                    at,
                    times,
                });
            }
        },
    );
    add("missed-merge", "queue/scheduler=none", 1, &|l| {
        for k in 0..200 {
            let t = k * 300;
            l.io(&Io {
                who: A,
                rw: "WS",
                at: (k * 8, 8),
                times: [t, t, t, t + 2400],
            });
            l.line(t, "1 U N [a] 1");
        }
    });
    add(
        "split",
        "queue/max_sectors_kb=64\nqueue/max_hw_sectors_kb=1280",
        1,
        &|l| {
            for k in 0..20 {
                let (t, begin) = (k * 10_000, k * 1024);
                l.event(t, 1, "Q", "R", (begin, 1024), "a");
                for piece in 0..8 {
                    let at = begin + piece * 128;
                    if piece < 7 {
                        l.line(t + piece * 2, &format!("1 X R {at} / {} [a]", at + 128));
                    }
                    l.event(t + piece * 2 + 1, 1, "G", "R", (at, 128), "a");
                    l.event(t + piece * 2 + 1, 1, "D", "R", (at, 128), "a");
                    l.event(t + 500 + piece * 500, 0, "C", "R", (at, 128), "0");
                }
            }
        },
    );
    add("no-readahead", "queue/read_ahead_kb=0", 1, &|l| {
        for k in 0..100 {
            let t = k * 510;
            l.io(&Io {
                who: A,
                rw: "R",
                at: (k * 8, 8),
                times: [t, t, t + 1, t + 501],
            });
        }
    });
    add("dependent-read", "", 1, &|l| {
        for k in 0..4 {
            let (t, at) = (k * 10_000, 98_400 + k * 4096);
            l.io(&Io {
                who: A,
                rw: "R",
                at: (at, 8),
                times: [t, t, t + 1, t + 701],
            });
            let times = [t + 750, t + 760, t + 770, t + 1300];
            l.io(&Io {
                who: A,
                rw: "RA",
                at: (at - 16, 16),
                times,
            });
            let times = [t + 755, t + 765, t + 1310, t + 1900];
            l.io(&Io {
                who: A,
                rw: "RA",
                at: (at + 8, 16),
                times,
            });
        }
    });
    add("misaligned", "queue/physical_block_size=4096", 1, &|l| {
        for k in 0..20 {
            let t = k * 5000;
            l.io(&Io {
                who: A,
                rw: "WS",
                at: (k * 64 + 1, 8),
                times: [t, t, t + 1, t + 101],
            });
        }
    });
    add("small-discards", "", 0, &|l| {
        for k in 0..100 {
            let t = k * 1000;
            l.io(&Io {
                who: A,
                rw: "D",
                at: (k * 1024, 8),
                times: [t, t, t + 1, t + 101],
            });
        }
    });
    add("no-request-free", "queue/nr_requests=4", 2, &|l| {
        deep(l, A, "W", 4, 300);
        for k in 0..4 {
            let t = 10_000 + k * 35_000;
            l.event(t, 2, "Q", "R", (k * 4000, 8), "b");
            l.event(t, 2, "S", "R", (k * 4000, 8), "b");
            l.event(t + 30_000, 2, "G", "R", (k * 4000, 8), "b");
            l.event(t + 30_000, 2, "I", "R", (k * 4000, 8), "b");
            l.event(t + 30_250, 2, "D", "R", (k * 4000, 8), "b");
            l.event(t + 30_750, 0, "C", "R", (k * 4000, 8), "0");
        }
    });
    // A process asks for one request after the other, of which there are four.
    add("submit-blocked", "queue/nr_requests=4", 1, &|l| {
        for k in 0..200_u64 {
            let (q, at) = (k * 100, ((k * 7919 % 1000) * 1000, 8));
            let g = q + 95;
            l.event(q, 1, "Q", "R", at, "a");
            l.event(g, 1, "G", "R", at, "a");
            l.event(g, 1, "I", "R", at, "a");
            l.event(g + 1, 1, "D", "R", at, "a");
            l.event(g + 395, 0, "C", "R", at, "0");
        }
    });
    // Runs of 16 KiB, then 256 KiB ahead, then elsewhere.
    add("readahead-unused", "queue/read_ahead_kb=4096", 1, &|l| {
        for k in 0..40_u64 {
            let (t, at) = (k * 5000, (k * 7919 % 40) * 100_000);
            for (from, sectors, us) in [(0, 32, 0), (32, 512, 200)] {
                let d = t + us;
                l.io(&Io {
                    who: A,
                    rw: "RA",
                    at: (at + from, sectors),
                    times: [d, d, d + 1, d + 1 + sectors * 2 + k * 97 % 500],
                });
            }
        }
    });
    // As many writes are at the device as mq-deadline leaves tags for, of 64.
    let few = "queue/scheduler=mq-deadline\nqueue/nr_requests=64\nqueue/wbt_lat_usec=0\n\
               queue/iosched/async_depth=4";
    add("async-depth", few, 2, &|l| {
        deep(l, A, "W", 4, 300);
        for k in 0..4 {
            let (t, at) = (10_000 + k * 35_000, (k * 4000, 8));
            for (us, pid, action, comm) in [
                (t, 2, "Q", "b"),
                (t + 30_000, 2, "G", "b"),
                (t + 30_000, 2, "I", "b"),
                (t + 30_250, 2, "D", "b"),
                (t + 30_750, 0, "C", "0"),
            ] {
                l.event(us, pid, action, "WS", at, comm);
            }
        }
    });
    add("device-slow", "", 1, &|l| {
        alone(l, A, "R", 0, 100);
        for k in 0..4 {
            let t = 600_000 + k * 200_000;
            l.io(&Io {
                who: A,
                rw: "R",
                at: (k * 999, 8),
                times: [t, t, t + 1, t + 90_001 + k * 9000],
            });
        }
    });
    add("rate-capped", "", 1, &|l| {
        alone(l, A, "R", 0, 20);
        for k in 0..20 {
            let t = 200_000 + k * 50_000;
            let rw = if k % 2 == 0 { "R" } else { "WS" };
            l.io(&Io {
                who: A,
                rw,
                at: (k * 99_999, 8),
                times: [t, t, t + 1, t + 44_001 + k * 10],
            });
        }
    });
    add("write-order", "queue/zoned=host-managed", 1, &|l| {
        l.io(&Io {
            who: A,
            rw: "WS",
            at: (0, 256),
            times: [0, 1, 400, 500],
        });
        l.io(&Io {
            who: A,
            rw: "WS",
            at: (256, 256),
            times: [10, 11, 100, 200],
        });
    });
    add("io-error", "", 1, &|l| {
        l.io(&Io {
            who: A,
            rw: "R",
            at: (0, 8),
            times: [0, 0, 1, 100],
        });
        l.event(200, 1, "Q", "R", (64, 8), "a");
        l.event(200, 1, "G", "R", (64, 8), "a");
        l.event(201, 1, "D", "R", (64, 8), "a");
        l.line(300, "0 C R 64 + 8 [65531]");
    });
    add("false-latency", "", 1, &|l| {
        l.event(0, 1, "I", "WS", (64, 16), "a");
        l.event(1, 1, "D", "WS", (64, 16), "a");
        l.event(90_000_000, 0, "C", "R", (64, 16), "0");
    });
    add("never-completed", "", 1, &|l| {
        l.event(0, 1, "Q", "R", (5_000_000, 8), "a");
        l.event(1, 1, "G", "R", (5_000_000, 8), "a");
        l.event(2, 1, "D", "R", (5_000_000, 8), "a");
        alone(l, B, "R", 1000, 300);
    });
    add("limited-passthrough", "", 0, &|l| {
        l.line(0, "1 m N bfq [bfq_limit_depth] wr_busy 0 sync 0 depth 8");
        l.line(8, "1 D R 24 [dmraid]");
        l.line(20, "0 C R [0]");
    });
    add("requeued", "", 1, &|l| {
        for k in 0..10_u64 {
            let (t, at) = (k * 10_000, (k * 8000, 8));
            for (us, pid, action, comm) in [
                (t, 1, "Q", "a"),
                (t, 1, "G", "a"),
                (t + 1, 1, "I", "a"),
                (t + 2, 1, "D", "a"),
                (t + 3, 1, "R", "0"),
                (t + 3100, 9, "D", "kworker/0:1H"),
                (t + 3101, 9, "R", "0"),
                (t + 6200, 9, "D", "kworker/0:1H"),
                (t + 6300, 0, "C", "0"),
            ] {
                l.event(us, pid, action, "R", at, comm);
            }
        }
    });
    let throttled = "queue/nr_requests=256\nqueue/wbt_lat_usec=2000";
    add("wbt-likely", throttled, 2, &|l| {
        l.0 = writes_wait_for_a_request(30_000).0;
    });
    add("readahead-thrown-away", "", 1, &|l| {
        for k in 0..40_u64 {
            let t = k * 20_000;
            let at = (k % 20 * 9000, 256);
            l.io(&Io {
                who: A,
                rw: "RA",
                at,
                times: [t, t, t + 1, t + 900],
            });
        }
    });
    let groups = "queue/nr_requests=256\ncgroup.web.io.latency=8:0 target=2000";
    add("cgroup-latency", groups, 2, &|l| {
        l.0 = writes_wait_for_a_request(30_000).0;
    });
    let shares = "queue/nr_requests=256\nio.cost.qos=8:0 enable=1";
    add("cgroup-share", shares, 2, &|l| {
        l.0 = writes_wait_for_a_request(30_000).0;
    });
    add("read-modify-write", "", 5, &|l| {
        for k in 0..8_u64 {
            let (t, at) = (k * 40_000, (k * 8000, 8));
            let who = (5, "md0_raid5");
            for (rw, t) in [("R", t), ("WS", t + 8200)] {
                let times = [t, t, t + 1, t + 8100];
                l.io(&Io { who, rw, at, times });
            }
        }
    });
    add(
        "cgroup-limit",
        "cgroup.batch.io.max=8:0 riops=100",
        1,
        &|l| {
            for k in 0..5 {
                let t = k * 100_000;
                let who = (77, "kworker/0:1");
                l.io(&Io {
                    who,
                    rw: "R",
                    at: (k * 4000, 8),
                    times: [t + 100, t + 100, t + 101, t + 201],
                });
                for n in 0..8 {
                    let q = t + 220 + n * 120;
                    l.io(&Io {
                        who: A,
                        rw: "R",
                        at: (k * 999 + n * 64, 8),
                        times: [q, q, q, q + 100],
                    });
                }
                l.line(
                    t + 1300,
                    "0 m N throtl [R] bio. bdisp=40960 sz=4096 bps=1 iodisp=10 iops=100 queued=0/0",
                );
                l.line(t + 100_090, "0 m N throtl bios disp=1");
            }
        },
    );
    all
}

#[test]
fn each_kind_is_found_first_in_its_trace() {
    // Those made of events of other parts of the kernel have theirs in `beside`, others in
    // `mailed`.
    let elsewhere = crate::beside::KINDS
        .into_iter()
        .chain(crate::mailed::KINDS)
        .chain(crate::excerpts::KINDS)
        .chain(crate::stacks::KINDS)
        .chain(crate::verdicts::KINDS);
    let mut seen: BTreeSet<&str> = elsewhere.collect();
    let mut wrong = Vec::new();
    for (kind, context, lines, victim) in samples() {
        let report = lines.report(context);
        seen.insert(kind);
        let first = report.findings.first();
        let sufferer = first.and_then(|f| f.victims.first()).map_or(0, |p| p.pid);
        if first.map(|f| f.kind) != Some(kind) || sufferer != victim {
            wrong.push(format!(
                "{kind}: {:?}, {sufferer} suffers: {:#?}",
                kinds(&report),
                first.map(|f| (&f.what, &f.how))
            ));
        }
    }
    let all: BTreeSet<&str> = ALL.iter().map(|k| k.name).collect();
    assert_eq!(all, seen, "every kind has its trace");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn loads_with_nothing_wrong_have_no_finding() {
    let mut light = Lines::default();
    alone(&mut light, A, "R", 0, 300);
    alone(&mut light, B, "WS", 2500, 300);
    // A device that works on 32 at a time: depth costs nothing.
    let mut parallel = Lines::default();
    for k in 0..400_u64 {
        let t = k * 4;
        let at = ((k * 7919 % 1000) * 1000, 8);
        parallel.io(&Io {
            who: A,
            rw: "R",
            at,
            times: [t, t, t + 1, t + 101],
        });
    }
    // Read-ahead that works: two windows under way, contiguous and large.
    let mut sequential = Lines::default();
    for k in 0..100_u64 {
        let t = k * 1000;
        sequential.io(&Io {
            who: A,
            rw: "RA",
            at: (k * 256, 256),
            times: [t, t, t + 1, t + 1500],
        });
    }
    // Write-back behind itself: nobody waits.
    let mut background = Lines::default();
    deep(&mut background, A, "W", 64, 300);
    // Streams that take turns on a device that does not seek.
    let mut flash = Lines::default();
    turns(&mut flash, 1000);
    for (name, lines) in [
        ("flash", flash),
        ("light", light),
        ("parallel", parallel),
        ("sequential", sequential),
        ("background", background),
    ] {
        let report = lines.report("queue/max_sectors_kb=1280\nqueue/scheduler=mq-deadline");
        assert_eq!(kinds(&report), [""; 0], "{name}");
    }
}

/// The table of the manual is made of the rows; `UPDATE_GOLDEN=1` writes it anew.
#[test]
fn the_manual_has_every_kind_with_its_rule() {
    const HEAD: &str = "| kind | what it is | condition | threshold | exception |\n";
    let path = blklab_testkit::root().join("docs/why.md");
    let manual = std::fs::read_to_string(&path).expect("the manual");
    let mut table = "|---|---|---|---|---|\n".to_owned();
    for kind in ALL {
        let rule = kind.rule;
        let cells = [kind.what, rule.condition, rule.threshold, rule.exception];
        table += &format!("| `{}` | {} |\n", kind.name, cells.join(" | "));
    }
    let (before, rest) = manual.split_once(HEAD).expect("the table");
    let (_, after) = rest.split_once("\n\n").expect("what follows it");
    let new = format!("{before}{HEAD}{table}\n{after}");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &new).expect("written");
        return;
    }
    assert!(
        new == manual,
        "docs/why.md is out of date: UPDATE_GOLDEN=1 writes it"
    );
}

/// Large writes of a flusher keep the device busy for 15 of 15.4 ms; a commit, of which the
/// flush takes 40 us, waits behind them.
fn commits_behind_a_flusher(l: &mut Lines) {
    alone(l, B, "R", 0, 12);
    for cycle in 0..40_u64 {
        let t = 100_000 + cycle * 15_400;
        write_back(l, t, cycle, 30);
        let times = [t + 200, t + 200, t + 201, t + 8_000];
        let (rw, at) = ("WS", (500_000 + cycle * 8, 8));
        let who = A;
        l.io(&Io { who, rw, at, times });
        commit(l, cycle, [t + 8_010, t + 12_000, t + 15_500]);
    }
}

/// Write-back of so many large requests, each of which takes 500 us.
fn write_back(l: &mut Lines, t: u64, cycle: u64, nr: u64) {
    for k in 0..nr {
        l.io(&Io {
            who: (3, "kworker/u8:1"),
            rw: "W",
            at: (10_000_000 + (cycle * 30 + k) * 4096, 1024),
            times: [t, t + 1, t + 2 + k * 10, t + 500 * (k + 1)],
        });
    }
}

/// A commit from its first write on: when that begins and ends, and when the record ends.
fn commit(l: &mut Lines, cycle: u64, [begin, logged, end]: [u64; 3]) {
    let place = |k: u64| 1_000 + cycle * 64 + k;
    let journal = (9, "jbd2/sda1-8");
    l.io(&Io {
        who: journal,
        rw: "WS",
        at: (place(0), 16),
        times: [begin, begin, begin + 1, logged],
    });
    let record = (place(16), 8);
    let q = logged + 10;
    l.event(q, 9, "Q", "FWFS", record, journal.1);
    l.event(q, 9, "G", "FWFS", record, journal.1);
    l.line(q + 1, "9 D FN [jbd2/sda1-8]");
    l.line(q + 41, "0 C FN 0 [0]");
    l.event(q + 50, 9, "D", "WFS", record, journal.1);
    l.event(end, 0, "C", "WFS", record, "0");
}

/// A flusher writes for others: whoever left what it writes is to blame, where the context says
/// who that is.
#[test]
fn who_left_what_is_written_back_is_named() {
    let found = |context: &str| {
        let mut lines = Lines::default();
        commits_behind_a_flusher(&mut lines);
        let report = lines.report(context);
        let first = &report.findings[0];
        (first.what.clone(), first.causes[0].to_string())
    };
    let (what, cause) = found("buffered_writers=backup");
    assert_eq!(cause, "backup (written back by kworker/u8:1 (3))");
    assert!(
        what.contains("behind I/O of backup (written back by"),
        "{what}"
    );
    assert!(what.contains("the longest fsync takes 15.4 ms"), "{what}");
    let (_, cause) = found("");
    assert_eq!(cause, "kworker/u8:1 (3)");
}

/// Commits of 1.3 ms of which 0.5 ms are for others: nobody would call them long without, and so
/// no flush is why.
#[test]
fn commits_that_are_long_for_others_alone() {
    let mut lines = Lines::default();
    // What a write takes by itself.
    alone(&mut lines, B, "WS", 0, 400);
    for cycle in 0..200_u64 {
        let t = 3_000_000 + cycle * 1_450;
        write_back(&mut lines, t, cycle, 1);
        let times = [t - 150, t - 150, t - 149, t - 10];
        let (who, rw, at) = (A, "WS", (500_000 + cycle * 8, 8));
        lines.io(&Io { who, rw, at, times });
        commit(&mut lines, cycle, [t + 3, t + 600, t + 1_280]);
    }
    let report = lines.report("");
    assert_eq!(
        report.findings[0].kind,
        "commit-behind",
        "{:?}",
        kinds(&report)
    );
    assert!(!kinds(&report).contains(&"flush"));
}

/// Write-back of one process keeps the device busy; sync writes of another wait so long
/// from Q to G.
fn writes_wait_for_a_request(wait_us: u64) -> Lines {
    let mut l = Lines::default();
    deep(&mut l, A, "W", 8, 300);
    for k in 0..4 {
        let t = 10_000 + k * 35_000;
        let g = t + wait_us;
        for (us, pid, action, comm) in [
            (t, 2, "Q", "b"),
            (g, 2, "G", "b"),
            (g, 2, "I", "b"),
            (g + 250, 2, "D", "b"),
            (g + 750, 0, "C", "0"),
        ] {
            l.event(us, pid, action, "WS", (k * 4000, 8), comm);
        }
    }
    l
}

#[test]
fn writes_that_wait_while_requests_are_free_wait_for_wbt() {
    let cause = |context: &str| {
        let report = writes_wait_for_a_request(30_000).report(context);
        let found = |kind| report.findings.iter().find(|f| f.kind == kind);
        let all = [
            "wbt-likely",
            "cgroup-share",
            "cgroup-latency",
            "no-request-free",
        ];
        let f = all.into_iter().find_map(found);
        let f = f.expect("it is found");
        assert_eq!(f.victims[0].pid, 2);
        (f.cause.clone(), f.remedies[0].to_string())
    };
    let wbt = "write-back throttling (wbt)";
    for (groups, expected) in [
        ("io.cost.qos=8:0 enable=1 ctrl=user", Some("io.cost")),
        ("io.cost.qos=8:0 enable=0 ctrl=auto", None),
        (
            "cgroup.web.io.latency=8:0 target=2000",
            Some("io.latency of web (8:0 target=2000)"),
        ),
        ("cgroup.web.io.latency=8:0 target=0", None),
    ] {
        let said = cause(&format!("queue/nr_requests=256\n{groups}")).0;
        assert_eq!(said.as_deref(), expected, "{groups}");
    }
    let (said, remedy) = cause("queue/nr_requests=256\nqueue/wbt_lat_usec=2000");
    assert_eq!(said.as_deref(), Some(wbt));
    assert!(remedy.starts_with("queue/wbt_lat_usec = 0"), "{remedy}");
    // wbt is off, nobody says that it is on, or as many are in use as there are.
    for other in [
        "queue/nr_requests=256\nqueue/wbt_lat_usec=0",
        "queue/nr_requests=256",
        "queue/nr_requests=8\nqueue/wbt_lat_usec=2000",
    ] {
        assert_ne!(cause(other).0.as_deref(), Some(wbt), "{other}");
    }
}

#[test]
fn requests_at_the_limit_of_the_trace_are_no_missed_merge() {
    let write_back = |largest: u64| {
        let mut l = Lines::default();
        for k in 0..40_u64 {
            let (t, sectors) = (k / 4 * 10_000 + k % 4, if k == 39 { largest } else { 1024 });
            let times = [t, t, t + 30, t + 1000 + k % 4 * 1000];
            l.io(&Io {
                who: A,
                rw: "W",
                at: (k * 1024, sectors),
                times,
            });
        }
        kinds(&l.report(""))
    };
    assert_eq!(write_back(1024), [""; 0]);
    // A larger one shows that there is no limit of 512 KiB.
    assert_eq!(write_back(2048), ["missed-merge"]);
}

#[test]
fn messages_tell_the_scheduler_that_idles() {
    let trace = |messages: bool| {
        let mut l = Lines::default();
        for k in 0..8_u64 {
            let (t, who) = (k * 9000, [A, B][k as usize % 2]);
            let times = [t, t, t + 8300, t + 8600];
            let at = (k * 9999, 8);
            l.io(&Io {
                who,
                rw: "WS",
                at,
                times,
            });
            if messages {
                l.line(t + 8601, "0 m N cfq1S arm_idle: 8");
            }
        }
        l.report("").findings.swap_remove(0)
    };
    assert_eq!(trace(false).kind, "held-back");
    let idling = trace(true);
    assert_eq!(idling.kind, "idling");
    assert!(idling.how.starts_with("cfq idles"), "{}", idling.how);
}

#[test]
fn a_limit_is_told_by_messages_that_name_no_process() {
    let mut l = Lines::default();
    for k in 0..5_u64 {
        let t = k * 10_000;
        let held = "throtl /test1 [R] bio. bdisp=8192 sz=4096 bps=1048576 iodisp=2 \
                    iops=4294967295 queued=0/0";
        l.line(t, &format!("0 m N {held}"));
        let (who, at) = ((77, "kworker/0:2"), (k * 8000, 8));
        let times = [t + 3900, t + 3900, t + 3901, t + 4100];
        l.io(&Io {
            who,
            rw: "R",
            at,
            times,
        });
    }
    let report = l.report("");
    let f = &report.findings[0];
    assert_eq!((f.kind, f.count), ("cgroup-limit", 5));
    let cause = "its control group's own limit (bps=1048576 of /test1)";
    assert_eq!(f.cause.as_deref(), Some(cause));
    assert!(
        f.what.contains("that kworker/0:2 (77) then submits"),
        "{}",
        f.what
    );
}

/// A process reads in bursts, each begun by a worker for it.
fn bursts(n: u64, first_of: (u32, &'static str)) -> Lines {
    let mut l = Lines::default();
    for k in 0..n {
        let t = k * 100_000;
        l.io(&Io {
            who: first_of,
            rw: "R",
            at: (k * 4000, 8),
            times: [t + 100, t + 100, t + 101, t + 201],
        });
        for i in 0..8 {
            let q = t + 220 + i * 120;
            l.io(&Io {
                who: A,
                rw: "R",
                at: (k * 999 + i * 64, 8),
                times: [q, q, q, q + 100],
            });
        }
    }
    l
}

#[test]
fn who_is_in_a_group_without_a_limit_is_not_held_by_one() {
    let limits = "cgroup.batch.io.max=8:0 riops=100\ncgroup.web.io.max=8:0 riops=7\n";
    for (member, cause) in [
        ("cgroup./.processes=1", None),
        ("cgroup.other.processes=1 5", None),
        ("cgroup.batch/a.processes=1", Some("batch: 8:0 riops=100)")),
        ("cgroup.web.processes=99", Some("web: 8:0 riops=7)")),
    ] {
        let report = bursts(6, (77, "kworker/0:1")).report(&format!("{limits}{member}"));
        let found = report.findings.iter().find(|f| {
            let is_held = f.victims.iter().any(|v| v.pid == 1);
            f.kind == "cgroup-limit" && is_held
        });
        assert_eq!(found.is_some(), cause.is_some(), "{member}");
        if let (Some(f), Some(cause)) = (found, cause) {
            let said = f.cause.as_deref().unwrap_or_default();
            assert!(said.ends_with(cause), "{member}: {said}");
            let only = member.contains("batch");
            assert_eq!(only, !said.contains("web"), "{member}: {said}");
        }
    }
}

#[test]
fn bursts_that_a_worker_begins_are_a_limit_where_there_is_one() {
    let worker = (77, "kworker/0:1");
    let limited = "cgroup.batch.io.max=8:0 riops=100";
    let report = bursts(6, worker).report(limited);
    let f = &report.findings[0];
    assert_eq!((f.kind, f.victims[0].pid), ("cgroup-limit", 1));
    assert_eq!(f.missing, ["blk-throttle's messages"]);
    // From the last bio of a burst to the worker's of the next.
    assert_eq!((f.count, f.worst_ns), (5, Some(99_040_000)));
    for (lines, context) in [
        (bursts(6, worker), ""),
        (bursts(6, B), limited),
        (bursts(3, worker), limited),
    ] {
        let report = lines.report(context);
        assert!(!kinds(&report).contains(&"cgroup-limit"), "{context}");
    }
}

/// The finding of a kind in a report.
fn found<'a>(report: &'a Report, kind: &str) -> Option<&'a blklab_analysis::findings::Finding> {
    report.findings.iter().find(|f| f.kind == kind)
}

#[test]
fn a_rest_behind_each_large_piece_is_a_split() {
    let cut = |rest: u64| {
        let mut l = Lines::default();
        for k in 0..40_u64 {
            let (t, at) = (k * 3000, k * 4096);
            let end = at + 512 + rest;
            l.event(t, 1, "Q", "R", (at, 512 + rest), "a");
            l.line(t + 1, &format!("1 X R {at} / {} [a]", at + 512));
            l.event(t + 2, 1, "G", "R", (at, 512), "a");
            l.event(t + 3, 1, "D", "R", (at, 512), "a");
            l.event(t + 4, 1, "G", "R", (at + 512, end - at - 512), "a");
            l.event(t + 5, 1, "D", "R", (at + 512, end - at - 512), "a");
            l.event(t + 900, 0, "C", "R", (at, 512), "0");
            l.event(t + 1900, 0, "C", "R", (at + 512, end - at - 512), "0");
        }
        l.report("queue/max_sectors_kb=256")
    };
    let said = cut(8);
    let f = found(&said, "split").expect("it is found");
    assert!(f.what.contains("rest of 8 sectors"), "{}", f.what);
    assert!(found(&cut(448), "split").is_none(), "two halves are none");
}

#[test]
fn a_disk_waits_for_a_revolution_at_each_step_backward() {
    let steps = |n: u64, context: &str| {
        let mut l = Lines::default();
        for k in 0..n {
            let t = k * 8500;
            l.io(&Io {
                who: A,
                rw: "R",
                at: (1_000_000 - k * 64, 64),
                times: [t, t, t + 1, t + 8400],
            });
        }
        kinds(&l.report(context)).contains(&"reversed")
    };
    assert!(steps(40, "queue/rotational=1"));
    assert!(!steps(40, "queue/rotational=0"));
    assert!(!steps(10, "queue/rotational=1"), "too few");
}

#[test]
fn read_ahead_of_a_page_or_two_is_too_short() {
    let reads = |context: &str| {
        let mut l = Lines::default();
        for k in 0..200_u64 {
            let t = k * 260;
            l.io(&Io {
                who: A,
                rw: "RA",
                at: (k * 8, 8),
                times: [t, t, t + 1, t + 300],
            });
        }
        l.report(context)
    };
    let short = reads("queue/read_ahead_kb=4\nqueue/scheduler=none");
    let f = found(&short, "no-readahead").expect("it is found");
    assert_eq!(f.cause.as_deref(), Some("read_ahead_kb = 4"));
    let long = reads("queue/read_ahead_kb=128\nqueue/scheduler=none");
    assert!(found(&long, "no-readahead").is_none());
}

#[test]
fn what_a_seek_and_a_revolution_take_is_no_slow_device() {
    let slow = |ms: u64, rotational: u8| {
        let mut l = Lines::default();
        alone(&mut l, A, "R", 0, 100);
        for k in 0..4 {
            let t = 600_000 + k * 200_000;
            l.io(&Io {
                who: A,
                rw: "R",
                at: (k * 999, 8),
                times: [t, t, t + 1, t + ms * 1000 + k * 900],
            });
        }
        let report = l.report(&format!("queue/rotational={rotational}"));
        found(&report, "device-slow").is_some()
    };
    assert!(slow(22, 0));
    assert!(!slow(22, 1));
    assert!(slow(90, 1));
}

#[test]
fn d_and_c_alone_do_not_show_whose_a_request_is() {
    let mut l = Lines::default();
    for k in 0..20_u64 {
        l.event(k * 1000, 1, "D", "R", (k * 5000, 8), "a");
        l.event(k * 1000 + 500, 0, "C", "R", (k * 5000, 8), "0");
    }
    for k in 0..300_u64 {
        let d = 30_000 + k * 500;
        // The one behind a queue is handed on by whoever has a request that ends.
        let pid = if k % 3 == 0 { 0 } else { 1 };
        l.event(d, pid, "D", "R", ((k * 7919 % 1000) * 1000, 8), "a");
        l.event(
            d + 500 * 16,
            0,
            "C",
            "R",
            ((k * 7919 % 1000) * 1000, 8),
            "0",
        );
    }
    let report = l.report("queue/scheduler=none\ndevice/queue_depth=32");
    let f = found(&report, "deep-queue").expect("it is found");
    assert!(f.victims.iter().all(|p| p.pid != 0), "{:?}", f.victims);
    assert!(f.confidence < blklab_analysis::findings::Confidence::Certain);
    let parts: Vec<_> = report.verdict.not_visible.iter().map(|n| n.part).collect();
    assert!(
        parts.contains(&blklab_analysis::findings::verdict::Part::Owners),
        "{parts:?}"
    );
}
