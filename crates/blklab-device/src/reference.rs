// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reference part of `docs/devices.md` is what the tables say, and the
//! worked example there is what the model does.

use crate::host::Host;
use crate::info::DeviceInfo;
use crate::registry::ALL;
use blklab_types::{Op, Time};
use std::fmt::Write;
use std::fs;
use std::path::Path;

const MARK: &str = "<!-- generated: UPDATE_DOCS=1 cargo test -p blklab-device reference -->\n";

/// Devices with the same table of parameters are described together.
fn reference() -> String {
    let mut text = String::new();
    let mut described: Vec<&DeviceInfo> = Vec::new();
    for info in ALL {
        let same = |other: &&&DeviceInfo| std::ptr::eq(other.params, info.params);
        let first = described.iter().find(same).map(|first| first.name);
        described.push(info);
        let _ = write!(
            text,
            "\n### `{}`\n\n{}. Source: {}. ",
            info.name, info.summary, info.source
        );
        let _ = writeln!(text, "Usual queue depth: {}.", info.queue_depth);
        let Some(first) = first else {
            text += "\n| parameter | default | values | |\n| --- | --- | --- | --- |\n";
            for p in info.params {
                let default = info.default_of(p);
                let default = if default.is_empty() {
                    "–".into()
                } else {
                    format!("`{default}`")
                };
                let _ = writeln!(
                    text,
                    "| `{}` | {default} | {} | {} |",
                    p.name,
                    p.takes(),
                    p.help
                );
            }
            continue;
        };
        let values: Vec<String> = info
            .preset
            .iter()
            .map(|(k, v)| format!("`{k}={v}`"))
            .collect();
        let differs = if values.is_empty() {
            "nothing".into()
        } else {
            values.join(", ")
        };
        let _ = writeln!(text, "Differs from `{first}` in: {differs}.");
    }
    text
}

#[test]
fn the_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/devices.md");
    let docs = fs::read_to_string(&path).expect("docs/devices.md");
    let (written, generated) = docs
        .split_once(MARK)
        .expect("the mark of the generated part");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{written}{MARK}{}", reference())).expect("written");
    } else {
        assert!(
            generated == reference(),
            "docs/devices.md: run the command in its mark"
        );
    }
}

#[test]
fn the_worked_example_is_right() {
    let mut host = Host::build("sata-7200-2008", 1);
    let read = host.one(Op::Read, 1_000_000, 8);
    assert_eq!((read.started, read.ended), (Time(150_000), Time(5_351_394)));
    host.run_until(Time(6_351_394));
    let next = host.one(Op::Read, 1_000_008, 8);
    assert_eq!((next.ended - next.submitted).ns(), 150_000 + 8 * 2_560);
}
