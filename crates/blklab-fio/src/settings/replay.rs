// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options about replaying recorded I/O.

/// Kinds of I/O that a replay leaves out (`replay_skip`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skip {
    /// Reads.
    pub reads: bool,
    /// Writes.
    pub writes: bool,
    /// Trims.
    pub trims: bool,
    /// Syncs.
    pub syncs: bool,
}

/// How recorded I/O is replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayOptions {
    /// Logs between colons (`read_iolog`); the clones of a job take them in
    /// turn.
    pub logs: Option<String>,
    /// fio would read the log bit by bit.
    pub chunked: bool,
    /// Without the recorded pauses.
    pub no_stall: bool,
    /// Rate of the replay in percent of the recorded one.
    pub time_scale: u32,
    /// One file for all.
    pub redirect: Option<String>,
    /// Offsets are rounded down to multiples, 0 for none; a power of two.
    pub align: u32,
    /// Offsets are divided by this, 0 for 1.
    pub scale: u32,
    /// What is left out.
    pub skip: Skip,
    /// The traces are merged (and fio would write the result there).
    pub merge_file: Option<String>,
    /// Percentage of its times per trace to merge; empty for 100.
    pub merge_percents: Vec<f64>,
    /// How often each trace to merge is played; empty for once.
    pub merge_rounds: Vec<f64>,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        ReplayOptions {
            logs: None,
            chunked: false,
            no_stall: false,
            time_scale: 100,
            redirect: None,
            align: 0,
            scale: 1,
            skip: Skip::default(),
            merge_file: None,
            merge_percents: Vec::new(),
            merge_rounds: Vec::new(),
        }
    }
}

impl Skip {
    /// From the words of `replay_skip`.
    pub(crate) fn parse(text: &str) -> Result<Skip, String> {
        let mut skip = Skip::default();
        for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            match word {
                "read" => skip.reads = true,
                "write" => skip.writes = true,
                "trim" => skip.trims = true,
                "sync" => skip.syncs = true,
                _ => {
                    return Err(format!(
                        "Unknown skip type: {word} (read, write, trim, sync)"
                    ));
                }
            }
        }
        Ok(skip)
    }
}
