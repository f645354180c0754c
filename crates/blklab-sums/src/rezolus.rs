// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rezolus: percentiles of block I/O, as a query of its metrics gives them in JSON. The names
//! are `blockio_latency` (from issue to end; later `blockio_device_latency`),
//! `blockio_queue_latency` and `blockio_total_latency`, in ns, each of an operation `op`
//! (github.com/iopsystems/rezolus, src/agent/samplers/blockio).

use crate::number::{ns_text, sound};
use crate::reading::{Reading, SUMS, Subject, WHO, record};
use blklab_types::Error;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Percentile (as it is written) and value in ns, by metric and operation.
type Series = BTreeMap<String, BTreeMap<String, f64>>;

/// Depth of JSON that is looked into.
const DEPTH_MAX: u32 = 32;

/// Reads it.
pub(crate) fn read(text: &str) -> Result<Reading, Error> {
    let value: Value =
        serde_json::from_str(text).map_err(|e| Error::new(format!("Rezolus: no JSON: {e}")))?;
    let mut series = Series::new();
    collect(&value, 0, &mut series);
    if series.is_empty() {
        return Err(Error::new(
            "Rezolus: no percentile of blockio_latency, blockio_queue_latency or \
             blockio_device_latency: query one of them",
        ));
    }
    let subjects = series.iter().map(|(name, percentiles)| {
        let mut subject = Subject::new(name.as_str());
        for (percentile, ns) in percentiles {
            subject.figure(format!("p{percentile}_ns"), *ns);
        }
        let texts = percentiles
            .iter()
            .map(|(p, ns)| format!("p{p} {}", ns_text(*ns)));
        subject.show(place(name), texts.collect::<Vec<_>>().join(", "));
        subject
    });
    Ok(Reading {
        what: "Rezolus",
        form: SUMS,
        subjects: subjects.collect(),
        notes: vec![
            "blockio_latency is blockio_device_latency under its older name: from issue to end; what \
             waits before is blockio_queue_latency"
                .to_owned(),
        ],
        cannot: vec![WHO, "which device: all of the machine are together"],
        record: record(None),
    })
}

/// Which part of a request's life a metric is.
fn place(name: &str) -> &'static str {
    if name.contains("queue") {
        "in queue"
    } else if name.contains("total") {
        "both"
    } else {
        "at device"
    }
}

fn is_metric(name: &str) -> bool {
    name.starts_with("blockio") && name.contains("latency")
}

/// All percentiles in a value and below.
fn collect(value: &Value, depth: u32, series: &mut Series) {
    if depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::Array(values) => values.iter().for_each(|v| collect(v, depth + 1, series)),
        Value::Object(object) => {
            labelled(object, series);
            for (key, value) in object {
                keyed(key, value, series);
                collect(value, depth + 1, series);
            }
        }
        _ => {}
    }
}

/// A series of a query: `metric` with its labels, and `value` or `values`.
fn labelled(object: &Map<String, Value>, series: &mut Series) {
    let Some(labels) = object.get("metric").and_then(Value::as_object) else {
        return;
    };
    let label = |names: &[&str]| {
        let mut found = names.iter().filter_map(|name| labels.get(*name)?.as_str());
        found.next()
    };
    let Some(name) = label(&["__name__", "metric"]).filter(|name| is_metric(name)) else {
        return;
    };
    let Some(percentile) = label(&["percentile", "quantile"]) else {
        return;
    };
    let single = object.get("value").and_then(last_of_pair);
    let many = object.get("values").and_then(Value::as_array);
    let worst = many.into_iter().flatten().filter_map(last_of_pair);
    let Some(ns) = single.into_iter().chain(worst).reduce(f64::max) else {
        return;
    };
    let op = label(&["op"]).unwrap_or("all");
    insert(series, name, op, percentile, ns);
}

/// `[TIME, VALUE]`, the value as text or number.
fn last_of_pair(pair: &Value) -> Option<f64> {
    as_number(pair.as_array()?.last()?)
}

fn as_number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    sound(number)
}

/// `"blockio/read/latency/p99": 1234`, and `"blockio_latency/read/p999"`.
fn keyed(key: &str, value: &Value, series: &mut Series) {
    let Some(ns) = as_number(value).filter(|_| is_metric(key)) else {
        return;
    };
    let Some((rest, percentile)) = key.rsplit_once('/') else {
        return;
    };
    let percentile = percentile.strip_prefix('p').unwrap_or(percentile);
    if percentile.is_empty() || !percentile.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return;
    }
    let ops = ["read", "write", "flush", "discard"];
    let op = rest.split(['/', '_']).find(|word| ops.contains(word));
    insert(series, rest, op.unwrap_or("all"), percentile, ns);
}

/// Keeps the largest of all times.
fn insert(series: &mut Series, name: &str, op: &str, percentile: &str, ns: f64) {
    let of = series.entry(format!("{name} of {op}")).or_default();
    let kept = of.entry(percentile.to_owned()).or_insert(ns);
    *kept = kept.max(ns);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_queries_and_plain_keys() {
        let text = r#"{"status":"success","data":{"result":[
            {"metric":{"__name__":"blockio_queue_latency","op":"read","percentile":"99"},
             "values":[[1,"1000"],[2,"4500000"]]}]},
            "blockio/write/latency/p999": 120000000, "cpu/usage/p99": 5}"#;
        let reading = read(text).unwrap();
        let names: Vec<&str> = reading.subjects.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "blockio/write/latency of write",
                "blockio_queue_latency of read"
            ]
        );
        assert_eq!(reading.subjects[1].shows[0].about, "in queue");
        assert_eq!(reading.subjects[1].shows[0].text, "p99 4.50 ms");
    }

    #[test]
    fn json_without_them_is_refused() {
        assert!(read(r#"{"blockio_latency": {}}"#).is_err());
        assert!(read("blockio_latency").is_err());
    }
}
