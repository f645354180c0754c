// SPDX-License-Identifier: MIT OR Apache-2.0
//! One story: `run`, `why`, its what-if, `compare`, the re-enactment and `report` say the same
//! of the same runs, on drawn mixed loads.

use crate::support::Folder;
use serde_json::Value;

/// Drawn with a seed, the same on every machine.
struct Draw(u64);

impl Draw {
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        all[(self.0 >> 33) as usize % all.len()]
    }
}

/// A log that is made safe, readers and a writer, on a device and under two schedulers.
struct Load {
    job: String,
    device: &'static str,
    schedulers: [&'static str; 2],
}

fn drawn(seed: u64) -> Load {
    let mut draw = Draw(seed);
    let fsync = draw.of(&[1, 4, 8]);
    let (read_bs, read_depth) = (draw.of(&["4k", "16k", "64k"]), draw.of(&[4, 16, 32]));
    let (write_bs, write_depth) = (draw.of(&["16k", "64k", "256k"]), draw.of(&[8, 32]));
    let job = format!(
        "[wal]\nrw=write\nbs=4k\nsize=512k\nfsync={fsync}\n\
         [readers]\nrw=randread\nbs={read_bs}\nsize=256m\nio_size=2m\nioengine=libaio\n\
         iodepth={read_depth}\ndirect=1\n\
         [backup]\nrw=write\nbs={write_bs}\nsize=8m\nioengine=libaio\n\
         iodepth={write_depth}\ndirect=1\n"
    );
    Load {
        job,
        device: draw.of(&["sata-7200-2008", "sata-ssd,queue_depth=4", "sata-ssd"]),
        schedulers: draw.of(&[
            ["none", "mq-deadline"],
            ["mq-deadline", "bfq"],
            ["kyber", "mq-deadline"],
        ]),
    }
}

fn json(f: &Folder, args: &[&str]) -> Value {
    let text = f.ok(&[args, &["--output-format", "json"]].concat());
    serde_json::from_str(&text).expect("JSON")
}

fn number(v: &Value) -> f64 {
    v.as_f64().unwrap_or_else(|| panic!("{v} is no number"))
}

/// The metric of a job in a run directory.
fn measured(f: &Folder, run: &str, job: &str, direction: &str, column: &str) -> f64 {
    let text = f.read(&format!("runs/{run}/result.json"));
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let rows = result["blklab"]["metrics"]["jobs"]
        .as_array()
        .expect("rows")
        .clone();
    let is_it = |r: &&Value| r["level"] == "job" && r["job"] == job && r["direction"] == direction;
    number(&rows.iter().find(is_it).expect("a row")[column])
}

/// Whether two figures are the same but for rounding.
fn is_same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs())
}

fn check(seed: u64) {
    let f = Folder::new();
    let load = drawn(seed);
    f.write("m.fio", &load.job);
    let [before, after] = load.schedulers;
    let both = format!("{before},{after}");
    let printed = f.ok(&[
        "run",
        "m.fio",
        "--device",
        load.device,
        "--sched",
        &both,
        "--out",
        "runs",
    ]);
    let say = |what: &str| format!("load {seed} ({both} on {}): {what}\n{printed}", load.device);
    // The application's figure heads the answer of why, and is the run's own.
    let syncs = [before, after].map(|s| measured(&f, s, "wal", "sync", "clat_p999_ns"));
    let told = json(
        &f,
        &[
            "why",
            &format!("runs/{before}"),
            "--what-if",
            &format!("sched={after}"),
        ],
    );
    let application = &told["application"];
    assert_eq!(application["figure"], "sync p99.9 of wal", "{}", say("why"));
    assert!(
        is_same(number(&application["value"]), syncs[0]),
        "{}",
        say("why")
    );
    // The report and its verdict have the same figures, and the better one is better.
    let report = json(&f, &["report", "runs"]);
    let rows = report["verdict"]["rows"].as_array().expect("rows");
    for (row, sync) in rows.iter().zip(syncs) {
        assert!(is_same(number(&row["value"]), sync), "{}", say("report"));
    }
    let rates = [before, after].map(|s| measured(&f, s, "wal", "sync", "iops"));
    let [first, best] = ["first", "best"].map(|key| report["verdict"][key].as_u64());
    let shorter = usize::from(syncs[1] < syncs[0]);
    let expected = (!is_same(syncs[0], syncs[1])).then_some(shorter as u64);
    assert_eq!(first, expected, "{}", say("the verdict's first"));
    // Who makes less than half of the other's calls in the same time is not best.
    let expected = expected.filter(|_| rates[shorter] >= 0.5 * rates[1 - shorter]);
    assert_eq!(best, expected, "{}", say("the verdict's best"));
    // So has compare, and its ratio is theirs.
    let compared = json(&f, &["compare", "runs"]);
    let changes = compared[0]["rows"].as_array().expect("rows");
    let change = |who: &str, direction: &str, metric: &str| {
        let row = changes
            .iter()
            .find(|r| r["who"] == who && r["direction"] == direction);
        let all = row.expect("a row")["changes"]
            .as_array()
            .expect("metrics")
            .clone();
        all.into_iter()
            .find(|c| c["metric"] == metric)
            .expect("a metric")
    };
    let sync = change("wal", "sync", "clat_p999_ns");
    assert!(
        is_same(number(&sync["before"]), syncs[0]),
        "{}",
        say("compare")
    );
    assert!(
        is_same(number(&sync["after"]), syncs[1]),
        "{}",
        say("compare")
    );
    // What-if ran the same two experiments.
    let seen = &told["applications"][0];
    assert!(
        is_same(number(&seen["value"]), syncs[1]),
        "{}",
        say("what-if")
    );
    // Its sentence is about these calls, and says what their figures say.
    let (faster, more) = (syncs[0] / syncs[1], rates[1] / rates[0]);
    let verdict = &told["what_if"]["trials"][0]["verdict"];
    assert_eq!(
        verdict["by"],
        "sync p99.9 of wal",
        "{}",
        say("the sentence")
    );
    let helps = verdict["helps"].as_bool().expect("it is judged");
    if helps {
        assert!(faster.max(more) >= 1.2, "{}", say("it helps nobody"));
    }
    if faster >= 1.2 && more >= 1.0 || more >= 1.2 && faster >= 1.0 {
        assert!(helps, "{}", say("it helps"));
    }
    if faster < 1.0 && more < 1.0 {
        assert!(!helps, "{}", say("it does not help"));
    }
    let requests = &told["what_if"]["trials"][0]["requests"];
    assert!(
        requests["helps"].is_boolean() && requests["by"].is_null(),
        "{}",
        say("requests")
    );
    // The model that ran is the model that re-enacts.
    let agreement = &told["re_enacted"]["agreement"];
    let [same, of] = ["in_order", "dispatches"].map(|key| number(&agreement[key]));
    assert!(same >= 0.95 * of, "{}", say(&agreement.to_string()));
}

/// The loads are as many as take less than a minute in a debug build.
#[test]
fn commands_say_the_same_of_twenty_loads() {
    for seed in 1..=20 {
        check(seed);
    }
}
