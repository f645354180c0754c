// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a change would have made of a trace: its processes run again in the models, as they
//! were and with something changed.

pub use blklab_whatif::{
    Change, Device, Figures, Known, Row, Stage, Trial, Verdict, WhatIf, parse,
};

use crate::TraceFile;
use blklab_analysis::lifecycle::Lifecycles;
use blklab_formats::FormatError;
use blklab_infer::Collector;
use blklab_trace::{Actions, TraceSource as _};
use blklab_whatif::Commands;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The machine of a trace and its processes, or why there are none: in a clause. Setting
/// `stop` ends runs early.
///
/// # Errors
/// If the trace cannot be read.
pub fn stage<'a>(
    input: &mut TraceFile,
    known: Known<'a>,
    stop: Arc<AtomicBool>,
) -> Result<Result<Stage<'a>, String>, FormatError> {
    let dev = match known.survey.disk(known.lost) {
        Ok((dev, _)) => dev,
        Err(why) => return Ok(Err(why)),
    };
    let mut both = (Collector::default(), Lifecycles::new(Commands::default()));
    input.send_all(&mut both)?;
    let (collector, lives) = both;
    let (commands, _) = lives.finish();
    let kinds = input.header().map_or(Actions::ALL, |h| h.recorded);
    let recorded = match collector.finish(kinds, Some(dev)) {
        Ok(recorded) => recorded,
        Err(e) => return Ok(Err(e.to_string())),
    };
    Ok(Stage::new(recorded, &commands, known, stop))
}
