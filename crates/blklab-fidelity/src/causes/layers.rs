// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two causes in one experiment: each has a control of its own, in which the other stays.

use super::classes::{CLASSES, Class};
use super::draw::Draw;
use super::planted::Planted;
use super::proof::Proof;
use super::setup::Setup;

/// A second cause that is laid over a first.
pub(super) struct Pair {
    /// What its scenarios are called.
    pub(super) name: &'static str,
    /// The first class, and the second.
    classes: [&'static str; 2],
    /// Puts the second into an experiment and into one without the first, and gives what is
    /// planted by it.
    lay: fn(&mut Draw, &Setup) -> Laid,
}

/// A second cause.
struct Laid {
    /// What it adds to an experiment.
    add: Box<dyn Fn(&Setup) -> Setup>,
    /// The same without harm.
    harmless: Box<dyn Fn(&Setup) -> Setup>,
    victims: &'static [&'static str],
    proof: &'static [Proof],
}

/// The pairs.
pub(super) const PAIRS: &[Pair] = &[
    Pair {
        name: "reads-behind-writes+no-readahead",
        classes: ["reads-behind-writes", "no-readahead"],
        lay: no_readahead,
    },
    Pair {
        name: "deep-queue+no-readahead",
        classes: ["deep-queue", "no-readahead"],
        lay: no_readahead,
    },
    Pair {
        name: "behind-other+misaligned",
        classes: ["behind-other", "misaligned"],
        lay: misaligned,
    },
];

fn class(name: &str) -> &'static Class {
    CLASSES
        .iter()
        .find(|c| c.name == name)
        .expect("a pair names classes of the table")
}

impl Pair {
    /// Draws both.
    pub(super) fn draw(&self, draw: &mut Draw) -> Vec<(&'static Class, Planted)> {
        let [first, second] = self.classes.map(class);
        let base = (first.plant)(draw);
        let laid = (self.lay)(draw, &base.setup);
        let setup = (laid.add)(&base.setup);
        let kinds = |c: &Class| c.kinds.to_vec();
        let second_planted = Planted {
            control: (laid.harmless)(&base.setup),
            setup: setup.clone(),
            victims: laid.victims,
            culprits: &[],
            // Who reads waits behind the first cause's, too.
            also: [kinds(first), vec!["behind-other", "reads-behind-writes"]].concat(),
            proof: laid.proof,
            change: None,
        };
        let first_planted = Planted {
            control: (laid.add)(&base.control),
            setup,
            ..base
        };
        vec![(first, first_planted), (second, second_planted)]
    }
}

fn no_readahead(draw: &mut Draw, _: &Setup) -> Laid {
    let kb = draw.one(&[4, 16]);
    let with = move |setup: &Setup| {
        let mut other = setup.clone();
        other.job("import", format!("rw=read bs={kb}k size=256m"));
        other
    };
    Laid {
        add: Box::new(move |setup: &Setup| with(setup).with_queue("read_ahead_kb", 0)),
        harmless: Box::new(with),
        victims: &["import"],
        proof: &[Proof::LessDone(1.2)],
    }
}

fn misaligned(draw: &mut Draw, _: &Setup) -> Laid {
    let bytes = draw.one(&[512_u64, 1024, 3072, 5120]);
    let with = |setup: &Setup, bytes: u64| {
        let mut other = setup.clone();
        let job = format!("direct=1 rw=randwrite bs={bytes} size=64m thinktime=2000");
        other.job("records", job);
        other
    };
    Laid {
        add: Box::new(move |setup: &Setup| with(setup, bytes)),
        harmless: Box::new(move |setup: &Setup| with(setup, 4096)),
        victims: &[],
        proof: &[Proof::Constructed],
    }
}
