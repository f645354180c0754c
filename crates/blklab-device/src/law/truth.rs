// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices of the cases measured on Linux 6.1: every `[device]` table makes
//! a device, with the depth and the queue limits that the kernel showed.

use crate::{Driver, Params, build, limits, queue_depth};
use serde_json::Value as Json;
use std::fs;
use toml::{Table, Value};

/// Name and parameters of a `[device]` table.
fn device_of(case: &Table) -> (String, Params) {
    let mut table = case["device"].as_table().expect("a table").clone();
    let kind = table.remove("kind").expect("a kind");
    let text = |v: Value| match v {
        Value::String(s) => s,
        other => other.to_string(),
    };
    let params = table.into_iter().map(|(k, v)| (k, text(v))).collect();
    (text(kind), params)
}

#[test]
fn every_measured_device_is_made_with_its_limits() {
    let Some(truth) = blklab_testkit::shared("truth") else {
        return;
    };
    let mut made = 0;
    for entry in fs::read_dir(truth.join("cases")).expect("the cases") {
        let path = entry.expect("an entry").path();
        let case: Table = fs::read_to_string(&path)
            .expect("text")
            .parse()
            .expect("a case");
        let (kind, params) = device_of(&case);
        let name = path.display();
        let depth = queue_depth(&kind, &params).unwrap_or_else(|e| panic!("{name}: {e}"));
        let given = case["device"].get(if kind == "simdisk" {
            "depth"
        } else {
            "hw_queue_depth"
        });
        assert_eq!(Some(i64::from(depth)), given.and_then(Value::as_integer));
        let device = build(&kind, &params, depth, &|_| Err("no files".to_owned()))
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(device.capacity_sectors().is_some(), "{name}");

        let ours = limits(&kind, &params).unwrap_or_else(|e| panic!("{name}: {e}"));
        let result = truth
            .join("results")
            .join(path.file_name().expect("a name"));
        let result = fs::read_to_string(result.with_extension("json")).expect("the result");
        let result: Json = serde_json::from_str(&result).expect("JSON");
        let queue = &result["effective_queue"];
        let shown = |key: &str| queue[key].as_str().expect("a setting").to_owned();
        assert_eq!(
            shown("rotational") == "1",
            ours.rotational == Some(true),
            "{name}"
        );
        assert_eq!(
            shown("write_cache") == "write back",
            ours.has_flush,
            "{name}"
        );
        assert_eq!(shown("fua") == "1", ours.has_fua, "{name}");
        let sectors = ours.max_sectors.map(|n| (n / 2).to_string());
        assert_eq!(Some(shown("max_sectors_kb")), sectors, "{name}");
        let segments = ours.max_segments.map(|n| n.to_string());
        assert_eq!(Some(shown("max_segments")), segments, "{name}");
        assert!(ours.hw_queues == 1 && ours.driver != Driver::Scsi, "{name}");
        made += 1;
    }
    println!("{made} devices");
}
