// SPDX-License-Identifier: MIT OR Apache-2.0
//! `iostat -o JSON`: the same columns as keys.

use crate::number::sound;
use crate::table::{Row, Span, Table};
use blklab_types::Error;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Output {
    sysstat: Sysstat,
}

#[derive(Deserialize)]
struct Sysstat {
    hosts: Vec<Host>,
}

#[derive(Deserialize)]
struct Host {
    statistics: Vec<Statistics>,
}

#[derive(Deserialize)]
struct Statistics {
    #[serde(default)]
    disk: Vec<BTreeMap<String, Value>>,
}

/// All tables of a text.
pub(crate) fn tables(text: &str) -> Result<Vec<Table>, Error> {
    let output: Output = serde_json::from_str(text)
        .map_err(|e| Error::new(format!("iostat: no JSON of sysstat: {e}")))?;
    let hosts = output.sysstat.hosts.into_iter();
    // What iostat ran with it does not say. Its first table is the mean since the start, unless it
    // was told to leave that out.
    let of_host = |host: Host| {
        let statistics = host.statistics.into_iter().enumerate();
        statistics.map(|(i, s)| Table {
            span: if i == 0 {
                Span::SinceStart
            } else {
                Span::Interval
            },
            rows: s.disk.iter().filter_map(row).collect(),
        })
    };
    Ok(hosts.flat_map(of_host).collect())
}

fn row(disk: &BTreeMap<String, Value>) -> Option<(String, Row)> {
    let device = disk.get("disk_device")?.as_str()?.to_owned();
    let figures = disk
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), sound(value.as_f64()?)?)));
    Some((device, figures.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_columns() {
        let text = r#"{"sysstat":{"hosts":[{"nodename":"a","statistics":[
            {"disk":[{"disk_device":"nvme0n1","r/s":8120.0,"r_await":0.11,"util":98.4}]}]}]}}"#;
        let tables = tables(text).unwrap();
        assert_eq!(tables[0].rows[0].0, "nvme0n1");
        assert_eq!(tables[0].rows[0].1["r_await"], 0.11);
    }
}
