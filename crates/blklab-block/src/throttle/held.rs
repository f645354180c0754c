// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bios that a group holds back in one direction, by where they came from.

use super::slice::Cost;
use blklab_types::{Bio, Jiffies};
use std::collections::VecDeque;

/// A bio and what it takes from limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) bio: Bio,
    pub(super) cost: Cost,
    /// Group of its task.
    pub(super) of: u16,
    /// When it was held first.
    pub(super) since: Jiffies,
}

/// Bios of one source, in order.
#[derive(Debug, Default)]
struct Source {
    bios: VecDeque<Held>,
}

/// Bios held by a group: those of its own tasks and those of each group below
/// have a list each, and the lists take turns (`throtl_qnode`).
#[derive(Debug, Default)]
pub(super) struct HeldBios {
    sources: Vec<Source>,
    /// Lists that are not empty, by turn.
    turns: VecDeque<u16>,
    len: usize,
}

impl HeldBios {
    /// Adds a list; returns its number.
    pub(super) fn add_source(&mut self) -> u16 {
        self.sources.push(Source::default());
        (self.sources.len() - 1) as u16
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn push(&mut self, source: u16, held: Held) {
        let bios = &mut self.sources[usize::from(source)].bios;
        if bios.is_empty() {
            self.turns.push_back(source);
        }
        bios.push_back(held);
        self.len += 1;
    }

    /// The bio whose turn it is.
    pub(super) fn front(&self) -> Option<&Held> {
        let source = *self.turns.front()?;
        self.sources[usize::from(source)].bios.front()
    }

    pub(super) fn pop(&mut self) -> Option<Held> {
        let source = self.turns.pop_front()?;
        let bios = &mut self.sources[usize::from(source)].bios;
        let held = bios.pop_front();
        if !bios.is_empty() {
            self.turns.push_back(source);
        }
        self.len -= 1;
        held
    }
}
