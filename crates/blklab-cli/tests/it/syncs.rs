// SPDX-License-Identifier: MIT OR Apache-2.0
//! Syncs on the way from a job file to the trace.

use crate::support::{Folder, root};

fn example() -> String {
    std::fs::read_to_string(root().join("examples/fdatasync.fio")).expect("the example")
}

/// RWBS columns of the events of one kind.
fn rwbs(trace: &str, action: &str) -> Vec<String> {
    let fields = trace
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>());
    let of_kind = fields.filter(|f| f.get(5) == Some(&action));
    of_kind.map(|f| f[6].to_owned()).collect()
}

#[test]
fn fdatasync_on_the_disk_is_seen_in_the_trace() {
    let f = Folder::new();
    f.write(
        "job.fio",
        example().replace("number_ios=256", "number_ios=5"),
    );
    let trace = |kernel: &str, more: &[&str]| {
        let base = ["run", "job.fio", "--kernel", kernel, "--trace", "x.txt"];
        f.ok(&[&base, more].concat());
        f.read("x.txt")
    };
    for (kernel, asks, command) in [
        ("2.6.28", "", ""),
        ("2.6.33", "FW", "FN"),
        ("2.6.37", "FWS", "FN"),
        ("3.7", "FWS", "FWS"),
        ("4.9", "FWS", "FNS"),
        ("4.19", "FWS", "FN"),
        ("6.1", "FWS", "FN"),
        ("6.18", "FWS", "FN"),
    ] {
        let text = trace(kernel, &[]);
        let number = |action, of: &str| rwbs(&text, action).iter().filter(|x| *x == of).count();
        let expected = if asks.is_empty() { 0 } else { 4 };
        assert_eq!(number("Q", asks), expected, "{kernel}\n{text}");
        assert_eq!(number("D", command), expected, "{kernel}\n{text}");
    }
    // Nothing to flush: no flush.
    let text = trace("6.1", &["--device", "nvme-datacenter"]);
    assert!(rwbs(&text, "Q").iter().all(|x| x == "WS"), "{text}");

    f.write(
        "job.fio",
        example()
            .replace("fdatasync=1", "sync=dsync")
            .replace("number_ios=256", "number_ios=5"),
    );
    let text = trace("6.1", &["--device", "nvme-consumer"]);
    assert_eq!(
        rwbs(&text, "D").iter().filter(|x| *x == "WFS").count(),
        5,
        "{text}"
    );
}

#[test]
fn the_documented_latencies_of_fdatasync_come_out() {
    let f = Folder::new();
    let mean = |after: u32, device: &str| {
        let job = example().replace("fdatasync=1", &format!("fdatasync={after}"));
        f.write("job.fio", &job);
        let args = ["run", "job.fio", "--kernel", "6.1", "--sched", "none"];
        let more = ["--device", device, "--output-format", "json"];
        let json: serde_json::Value =
            serde_json::from_str(&f.ok(&[&args[..], &more].concat())).expect("JSON");
        let ns = json["jobs"][0]["sync"]["lat_ns"]["mean"]
            .as_f64()
            .expect("a mean");
        assert!(ns >= 1000.0, "a system call: {ns}");
        format!("{:.3} ms", ns / 1e6)
    };
    let page = std::fs::read_to_string(root().join("docs/page-cache.md")).expect("the page");
    for device in ["sata-7200-2008", "sata-7200-2008,write_cache=off"] {
        let of = [1, 8, 64].map(|after| mean(after, device));
        let name = if device.contains(',') {
            format!("`{device}`")
        } else {
            format!("`{device}`, mean")
        };
        let row = format!("| {name} | {} |", of.join(" | "));
        assert!(page.contains(&row), "docs/page-cache.md lacks\n{row}");
    }
}
