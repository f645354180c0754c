// SPDX-License-Identifier: MIT OR Apache-2.0
//! The phases of a run: which operation comes next, on which tree.
//!
//! The ordering phase writes and removes the sets once, without sync; then the
//! initial trees are created without sync; then one sync; then random operations,
//! each preceded by dropped caches and followed by a sync. A tree is unpatched or
//! patched, compiled or not; an operation picks one of the classes that allow it
//! and have trees, then one of its trees; one that finds none is not counted.

use super::calls::Mode;
use super::shape::Set;
use blklab_engine::Stream;

/// Parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Trees created at first.
    pub initial: u64,
    /// Random operations.
    pub runs: u64,
    /// Whether the ordering phase is run.
    pub ordering: bool,
    /// Whether operations are followed by a sync.
    pub sync: bool,
    /// Seed of the choices (555 in compilebench).
    pub seed: u64,
}

/// What is done to a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A set is written into a tree.
    Write(Set, Mode),
    /// What compiling made is removed.
    Clean(Set),
    /// All is removed but the root.
    Delete,
    /// Every file is read.
    Read,
    /// Every file is looked at.
    Stat,
}

/// One operation of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// How the result calls it: order, create, patch, compile, clean, delete,
    /// read, stat.
    pub name: &'static str,
    /// The tree, a number in order of creation.
    pub tree: u64,
    /// Whether it was compiled before.
    pub compiled: bool,
    /// What is done to it.
    pub operation: Operation,
    /// Whether caches are dropped before.
    pub drop_caches: bool,
    /// Whether a sync follows, within its time.
    pub sync: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tree {
    number: u64,
    patched: bool,
    compiled: bool,
}

/// A run in progress.
#[derive(Clone, Debug)]
pub struct Bench {
    plan: Plan,
    draws: Stream,
    trees: Vec<Tree>,
    next_tree: u64,
    ordered: u64,
    counted: u64,
}

/// The tree of the ordering phase.
pub const ORDERING_TREE: u64 = u64::MAX;

/// The sets of the ordering phase, each written and removed.
const ORDERED: [Set; 3] = [Set::Unpatched, Set::Patch, Set::CompilePatched];

impl Bench {
    /// A run that has not begun.
    pub fn new(plan: Plan) -> Bench {
        Bench {
            plan,
            draws: Stream::named(plan.seed, "compilebench"),
            trees: Vec::new(),
            next_tree: 0,
            ordered: if plan.ordering {
                0
            } else {
                2 * ORDERED.len() as u64
            },
            counted: 0,
        }
    }

    /// Steps of the ordering phase and initial trees, of a run that has not
    /// begun.
    pub fn nr_first_steps(&self) -> u64 {
        2 * ORDERED.len() as u64 - self.ordered + self.plan.initial
    }

    /// The next operation.
    pub fn next_step(&mut self) -> Option<Step> {
        if let Some(set) = ORDERED.get((self.ordered / 2) as usize) {
            let writes = self.ordered.is_multiple_of(2);
            self.ordered += 1;
            let operation = if writes {
                Operation::Write(*set, Mode::Create)
            } else {
                Operation::Delete
            };
            return Some(Step {
                name: "order",
                tree: ORDERING_TREE,
                compiled: false,
                operation,
                drop_caches: false,
                sync: false,
            });
        }
        if self.next_tree < self.plan.initial {
            let step = self.create();
            return Some(Step {
                drop_caches: false,
                sync: false,
                ..step
            });
        }
        if self.counted >= self.plan.runs {
            return None;
        }
        loop {
            let step = match self.draws.below(7) {
                0 => self.patch(),
                1 => self.compile(),
                2 => self.clean(),
                3 => self.delete(),
                4 => Some(self.create()),
                5 => self.look("read", Operation::Read),
                _ => self.look("stat", Operation::Stat),
            };
            if let Some(step) = step {
                self.counted += 1;
                return Some(step);
            }
        }
    }

    fn step(&self, name: &'static str, tree: u64, operation: Operation) -> Step {
        Step {
            name,
            tree,
            compiled: false,
            operation,
            drop_caches: self.plan.sync,
            sync: self.plan.sync,
        }
    }

    fn create(&mut self) -> Step {
        let number = self.next_tree;
        self.next_tree += 1;
        self.trees.push(Tree {
            number,
            patched: false,
            compiled: false,
        });
        let write = Operation::Write(Set::Unpatched, Mode::Create);
        self.step("create", number, write)
    }

    /// A tree of one of the classes (patched, compiled) that are allowed: the
    /// class first, then the tree.
    fn choose(&mut self, allowed: &[(bool, bool)]) -> Option<usize> {
        let is_of = |t: &Tree, class: &(bool, bool)| (t.patched, t.compiled) == *class;
        let there: Vec<&(bool, bool)> = allowed
            .iter()
            .filter(|class| self.trees.iter().any(|t| is_of(t, class)))
            .collect();
        if there.is_empty() {
            return None;
        }
        let class = there[self.draws.below(there.len() as u64) as usize];
        let of_class: Vec<usize> = (0..self.trees.len())
            .filter(|&i| is_of(&self.trees[i], class))
            .collect();
        Some(of_class[self.draws.below(of_class.len() as u64) as usize])
    }

    fn patch(&mut self) -> Option<Step> {
        let i = self.choose(&[(false, false), (false, true)])?;
        let mode = match self.draws.below(4) {
            1 => Mode::Replace,
            _ => Mode::Overwrite,
        };
        let tree = &mut self.trees[i];
        tree.patched = true;
        let (number, set) = (tree.number, Set::Patch);
        Some(self.step("patch", number, Operation::Write(set, mode)))
    }

    fn compile(&mut self) -> Option<Step> {
        let i = self.choose(&[(false, false), (true, false)])?;
        let tree = &mut self.trees[i];
        tree.compiled = true;
        let (number, set) = (tree.number, compiled_set(tree.patched));
        Some(self.step("compile", number, Operation::Write(set, Mode::Create)))
    }

    fn clean(&mut self) -> Option<Step> {
        let i = self.choose(&[(false, true), (true, true)])?;
        let tree = &mut self.trees[i];
        tree.compiled = false;
        let (number, set) = (tree.number, compiled_set(tree.patched));
        Some(self.step("clean", number, Operation::Clean(set)))
    }

    fn delete(&mut self) -> Option<Step> {
        let i = self.choose(&ANY)?;
        let tree = self.trees.remove(i);
        let step = self.step("delete", tree.number, Operation::Delete);
        Some(Step {
            compiled: tree.compiled,
            ..step
        })
    }

    fn look(&mut self, name: &'static str, operation: Operation) -> Option<Step> {
        let i = self.choose(&ANY)?;
        let tree = self.trees[i];
        let step = self.step(name, tree.number, operation);
        Some(Step {
            compiled: tree.compiled,
            ..step
        })
    }
}

/// All classes of trees: patched, compiled.
const ANY: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

fn compiled_set(patched: bool) -> Set {
    if patched {
        Set::CompilePatched
    } else {
        Set::CompileUnpatched
    }
}
