// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much memory experiments take at most, known before they run. What would
//! take more than [`BYTES_MAX`] is refused with the reason, instead of ending
//! in the middle when the memory of the machine does. The limit is the same
//! everywhere, so that what runs on one machine runs on another.
//! How much it is says the target ([`Target::memory`](crate::Target::memory)).

use blklab_types::Error;
use blklab_types::Place;

/// Memory that all experiments of a command may take together.
pub const BYTES_MAX: u64 = 4 << 30;

/// What one experiment takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// What takes memory while it runs.
    running: Vec<Item>,
    /// What stays of it until the end of the command.
    kept_bytes: u64,
}

/// Something that takes memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    what: String,
    bytes: u64,
    /// Where a job asks for it.
    place: Option<Place>,
}

impl Estimate {
    /// Adds what takes memory while the experiment runs: words for people that follow
    /// "of it for", and bytes.
    pub fn add(&mut self, what: String, bytes: u64) {
        self.running.push(Item {
            what,
            bytes,
            place: None,
        });
    }

    /// The same, of jobs of which the one that takes most asks for it at this place.
    pub fn add_at(&mut self, place: &Place, what: String, bytes: u64) {
        self.running.push(Item {
            what,
            bytes,
            place: Some(place.clone()),
        });
    }

    /// Adds what stays of it until the end of the command.
    pub fn keep(&mut self, bytes: u64) {
        self.kept_bytes = self.kept_bytes.saturating_add(bytes);
    }

    fn running_bytes(&self) -> u64 {
        let bytes = self.running.iter().map(|item| item.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// What takes most.
    fn largest(&self) -> Option<&Item> {
        self.running.iter().max_by_key(|item| item.bytes)
    }
}

/// Refuses experiments of which `parallel` at a time take more memory than
/// [`BYTES_MAX`].
///
/// # Errors
/// Says what takes most; about `jobs` if fewer at a time would do.
pub fn check(all: &[Estimate], parallel: usize) -> Result<(), Error> {
    let error = |what: String| {
        let what = format!("{what}; at most {}", gib(BYTES_MAX));
        Error::new(what)
    };
    let mut running: Vec<&Estimate> = all.iter().collect();
    running.sort_by_key(|e| std::cmp::Reverse(e.running_bytes()));
    running.truncate(parallel.max(1));
    if let Some(run) = running.first()
        && let Some(item) = run.largest()
        && run.running_bytes() > BYTES_MAX
    {
        let told = error(format!(
            "the run would take about {} of memory, {} of it for {}",
            gib(run.running_bytes()),
            gib(item.bytes),
            item.what
        ));
        return Err(match &item.place {
            Some(place) => told.at(place),
            None => told,
        });
    }
    let at_once = running.iter().map(|e| e.running_bytes());
    let at_once = at_once.fold(0, u64::saturating_add);
    let kept = all.iter().map(|e| e.kept_bytes);
    let kept = kept.fold(0, u64::saturating_add);
    let total = at_once.saturating_add(kept);
    if total > BYTES_MAX {
        let hint = if at_once > kept {
            format!("{} of them run at a time", running.len())
        } else {
            "results are kept to the end: give several commands".to_owned()
        };
        let told = error(format!(
            "{} experiments would take about {} of memory ({hint})",
            all.len(),
            gib(total)
        ));
        return Err(if at_once > kept {
            told.about("jobs")
        } else {
            told
        });
    }
    Ok(())
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}
