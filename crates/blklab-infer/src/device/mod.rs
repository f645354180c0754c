// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device of a trace as a law: how long a command takes by direction, length, place and
//! the commands beside it.
//!
//! ```text
//! D and C of each request ─► when its service began, if `channels` serve at a time
//!                                │ for each number of channels
//!                                ▼
//!          kinds: direction, sequential or not ─► minus sectors, minus distance ─► times
//!                                │                                                  │
//!                                ▼                                                  ▼
//!              the shortest description of the recording wins            quantiles of each kind
//! ```
//!
//! The result is parameters of the device `measured`. A trace does not show when a device
//! began with a command that it was given beside others. So several numbers of channels are
//! tried, and the one counts under which the recorded completions are the least surprising:
//! the sum of the entropies of the times that remain, and of the choices that the device made
//! among waiting commands. A queue that was always as deep fits many
//! ([`DeviceFit::channels_alike`]).

mod entropy;
mod explain;
mod quantiles;
#[cfg(test)]
mod tests;

use crate::most_under_way;
use blklab_types::{Error, Op, Time};
use explain::{Explained, Law};
use std::fmt;

/// Most commands of a trace that are kept for a fit: 40 bytes each.
pub(crate) const COMMANDS_MAX: usize = 4_000_000;

/// Commands that it takes to say anything.
const COMMANDS_MIN: usize = 4;

/// Commands that numbers of channels are tried on.
const TRIED_MAX: usize = 40_000;

/// Most commands at a time that a model of a device is given.
const DEPTH_MAX: u32 = 1024;

/// Descriptions that differ by less than this for each command, in nats, are equally good.
const ALIKE: f64 = 0.03;

/// A command: from its hand-over to the device (D) to its completion (C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// D.
    pub issue: Time,
    /// C.
    pub complete: Time,
    /// First sector.
    pub sector: u64,
    /// Length; 0 for a flush.
    pub nr_sectors: u32,
    /// Direction.
    pub op: Op,
}

impl Command {
    pub(crate) fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.nr_sectors))
    }
}

/// A device that behaves like the recorded one: the device `measured` with these parameters.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceFit {
    /// Parameters and values.
    pub params: Vec<(String, String)>,
    /// Most commands that the device had at a time, at most 1024.
    pub queue_depth: u32,
    /// Commands that it was made of.
    pub nr_commands: u64,
    /// Commands that it serves at a time.
    pub channels: u32,
    /// Fewest and most channels that describe the recording about as well.
    pub channels_alike: (u32, u32),
}

impl DeviceFit {
    /// The device.
    pub const NAME: &str = "measured";

    /// As on a command line: `measured,channels=1,read=…`.
    pub fn spec(&self) -> String {
        let mut text = DeviceFit::NAME.to_owned();
        for (name, value) in &self.params {
            text.push_str(&format!(",{name}={value}"));
        }
        text
    }
}

impl fmt::Display for DeviceFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.channels_alike;
        write!(
            f,
            "fitted to {} commands: {} at a time of at most {}",
            self.nr_commands, self.channels, self.queue_depth
        )?;
        if low < high {
            write!(f, " ({low} to {high} fit as well)")?;
        }
        Ok(())
    }
}

/// The law of the device that served these commands; they may be in any order.
///
/// # Errors
/// If there are too few, in a clause.
pub fn fit(commands: &[Command]) -> Result<DeviceFit, Error> {
    let mut commands: Vec<Command> = commands
        .iter()
        .filter(|c| c.complete >= c.issue)
        .copied()
        .collect();
    commands.sort_by_key(|c| c.issue);
    if commands.len() < COMMANDS_MIN {
        return Err(Error::new(format!(
            "the trace shows {} commands from D to C, too few to know the device by",
            commands.len()
        )));
    }
    let depth = most_under_way(commands.iter().map(|c| [c.issue.0, c.complete.0]));
    let tried = &commands[..commands.len().min(TRIED_MAX)];
    let mut found: Vec<(Law, f64)> = Vec::new();
    for channels in candidates(depth) {
        for law in Law::all(channels) {
            found.push((law, Explained::new(tried, law).nats));
        }
    }
    let best = found.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let &(law, nats) = best.expect("one channel is always tried");
    let margin = ALIKE * tried.len() as f64;
    let alike = found.iter().filter(|(_, n)| *n <= nats + margin);
    let alike = alike.map(|(l, _)| l.channels);
    let (low, high) = alike.fold((law.channels, law.channels), |(low, high), n| {
        (low.min(n), high.max(n))
    });
    Ok(DeviceFit {
        params: Explained::new(&commands, law).params(),
        queue_depth: u32::try_from(depth).unwrap_or(DEPTH_MAX).min(DEPTH_MAX),
        nr_commands: commands.len() as u64,
        channels: law.channels,
        channels_alike: (low, high),
    })
}

/// Numbers of channels to try: 1, 2, 3, 4, 6, 8, 12 …, and the depth.
fn candidates(depth: usize) -> Vec<u32> {
    let depth = u32::try_from(depth).unwrap_or(DEPTH_MAX).min(DEPTH_MAX);
    let powers = (0..10).flat_map(|i| [1 << i, 3 << i]);
    let mut all: Vec<u32> = powers.filter(|n| *n < depth).chain([depth]).collect();
    all.sort_unstable();
    all.dedup();
    all
}
