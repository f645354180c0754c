// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of fio as JSON of any content: refused in one line, or printed in every format,
//! and what is printed as JSON reads and prints as the same.

use crate::Target;
use crate::check::{fingerprint, one_line};
use crate::corpus::{Seed, samples};
use blklab_fiostat::{Format, ReadResult, TerseVersion};

pub(crate) const TARGET: Target = Target {
    name: "fio_result",
    feed,
    samples: results,
};

fn results() -> Vec<Seed> {
    samples(
        &[
            "testdata/fio-json",
            "testdata/fit",
            "testdata/fio-6.1/results",
        ],
        &[".json"],
    )
}

fn feed(data: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(data).ok()?;
    let read = match ReadResult::parse(text) {
        Ok(read) => read,
        Err(e) => {
            one_line(&e);
            return None;
        }
    };
    for version in (2..=5).filter_map(TerseVersion::from_number) {
        read.result
            .render(&[Format::Terse, Format::Normal], version);
    }
    // What is derived is made anew once; then it stays.
    let once = printed(&read);
    let again = ReadResult::parse(&once).expect("what was printed is a result");
    let twice = printed(&again);
    let third = ReadResult::parse(&twice).expect("what was printed is a result");
    assert_eq!(printed(&third), twice, "printed twice");
    Some(fingerprint(&once))
}

fn printed(read: &ReadResult) -> String {
    read.result.to_json(true).to_string()
}
