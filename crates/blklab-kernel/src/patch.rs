// SPDX-License-Identifier: MIT OR Apache-2.0
//! Historical patches that can be switched on.

use crate::KernelVersion;
use blklab_types::shown;
use std::fmt;

/// How well the effect of a patch is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// From released kernel source.
    Source,
    /// From the mail that carried it.
    Mail,
    /// The mail was not available: an unverified reconstruction. Results say
    /// so.
    Reconstructed,
}

/// One patch, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Name for `--patch`.
    pub name: &'static str,
    /// What it changes, in a line.
    pub summary: &'static str,
    /// First release it fits.
    pub since: KernelVersion,
    /// First release it does not fit any more.
    pub until: KernelVersion,
    /// The only scheduler it changes; all if none.
    pub scheduler: Option<&'static str>,
    /// Patches it cannot be combined with.
    pub excludes: &'static [&'static str],
    /// At least one of these is needed beside it, if there are any.
    pub needs: &'static [&'static str],
    /// How well its effect is known.
    pub evidence: Evidence,
    /// Where it comes from.
    pub source: &'static str,
}

const JAN_2009: &str =
    "thread '[RFC PATCH] block: Fix bio merge induced high I/O latency', Jan 2009";
const LI_2010: &str =
    "S. Li, thread '[RFC]cfq-iosched: quantum check tweak', Dec 2009 and Jan 2010";
const CFQ_FIRST: KernelVersion = KernelVersion::v2_6(33);
const CFQ_END: KernelVersion = KernelVersion::new(5, 0);
const QUANTUM_RULES: &[&str] = &[
    "quantum_hard",
    "quantum_tweak",
    "quantum_tweak1",
    "quantum_log",
    "quantum_sqrt",
    "quantum_soft",
];

const fn quantum(name: &'static str, summary: &'static str, evidence: Evidence) -> Patch {
    Patch {
        name,
        summary,
        since: CFQ_FIRST,
        until: CFQ_END,
        scheduler: Some("cfq"),
        excludes: QUANTUM_RULES,
        needs: &[],
        evidence,
        source: LI_2010,
    }
}

const fn mainline(name: &'static str, summary: &'static str, source: &'static str) -> Patch {
    Patch {
        name,
        summary,
        since: KernelVersion::v2_6(28),
        until: KernelVersion::v2_6(29),
        scheduler: Some("cfq"),
        excludes: &[],
        needs: &[],
        evidence: Evidence::Source,
        source,
    }
}

/// Every patch.
pub const PATCHES: &[Patch] = &[
    Patch {
        name: "cached_merge_limit",
        summary: "at most 128 bios in a row join the request that was merged with last \
                  (Desnoyers, Jan 2009)",
        since: KernelVersion::v2_6(28),
        until: KernelVersion::v2_6(29),
        scheduler: None,
        excludes: &[],
        needs: &[],
        evidence: Evidence::Reconstructed,
        source: JAN_2009,
    },
    Patch {
        name: "preempt_pullback",
        summary: "a queue that is preempted takes back what the driver has not seen \
                  (Axboe and Desnoyers, Jan 2009)",
        since: KernelVersion::v2_6(28),
        until: KernelVersion::v2_6(32),
        scheduler: Some("cfq"),
        excludes: &["preempt_pullback_minimal"],
        needs: &[],
        evidence: Evidence::Reconstructed,
        source: JAN_2009,
    },
    Patch {
        name: "preempt_pullback_minimal",
        summary: "preempt_pullback without counting and hashing anew what is taken back",
        since: KernelVersion::v2_6(28),
        until: KernelVersion::v2_6(32),
        scheduler: Some("cfq"),
        excludes: &["preempt_pullback"],
        needs: &[],
        evidence: Evidence::Reconstructed,
        source: JAN_2009,
    },
    mainline(
        "single_dispatch",
        "one request per dispatch call, limits tested each time (as 2.6.30)",
        "block/cfq-iosched.c of 2.6.30",
    ),
    mainline(
        "drain_async",
        "idling queues wait until no async request is at the device (as 2.6.32)",
        "block/cfq-iosched.c of 2.6.32",
    ),
    mainline(
        "async_ramp",
        "async depth grows with the time since the last sync completion (as 2.6.32)",
        "block/cfq-iosched.c of 2.6.32",
    ),
    mainline(
        "async_ramp_delayed",
        "async depth grows with the time since a sync request was late (as 2.6.33)",
        "block/cfq-iosched.c of 2.6.33",
    ),
    quantum(
        "quantum_hard",
        "a queue never exceeds its quantum beside others (the rule of 2.6.33)",
        Evidence::Source,
    ),
    quantum(
        "quantum_tweak1",
        "quantum holds only near the end of the slice: one slice_idle (tweak 1, Dec 2009)",
        Evidence::Mail,
    ),
    quantum(
        "quantum_tweak",
        "quantum holds only near the end of the slice: slice_idle per request (as posted, Jan 2010)",
        Evidence::Mail,
    ),
    quantum(
        "quantum_log",
        "as quantum_tweak, slice_idle by the logarithm of the requests (Zoccolo)",
        Evidence::Mail,
    ),
    quantum(
        "quantum_sqrt",
        "as quantum_tweak, slice_idle by the square root of the requests (Zoccolo)",
        Evidence::Mail,
    ),
    quantum(
        "quantum_soft",
        "soft limit quantum/2, hard limit quantum (the merged form, 2.6.34)",
        Evidence::Source,
    ),
    Patch {
        name: "quantum_tweak2",
        summary: "quantum holds only while low_latency is 1 (tweak 2, Dec 2009)",
        excludes: &[],
        needs: QUANTUM_RULES,
        ..quantum("", "", Evidence::Mail)
    },
    Patch {
        name: "batch_patch",
        summary: "allocation batches of 16; a batch granted for a read lasts 2 s (Axboe, Dec 2012)",
        since: KernelVersion::v2_6(30),
        until: KernelVersion::new(5, 0),
        scheduler: None,
        excludes: &[],
        needs: &[],
        evidence: Evidence::Mail,
        source: "J. Axboe, thread 'Read starvation by sync writes', 12 Dec 2012",
    },
    Patch {
        name: "bfq_no_inject",
        summary: "nothing goes out while BFQ waits for the queue in service (as 4.12 to 4.19)",
        since: KernelVersion::new(5, 0),
        until: KernelVersion::FOREVER,
        scheduler: Some("bfq"),
        excludes: &[],
        needs: &[],
        evidence: Evidence::Source,
        source: "commit d0edc2473be9 (4.20), which brought injection, taken back",
    },
];

/// Why a set of patches was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchError {
    /// No such name; the valid ones.
    Unknown(String, Vec<&'static str>),
    /// The release is outside the patch's range.
    DoesNotFit(&'static Patch, KernelVersion),
    /// Two that exclude each other.
    Excluded(&'static str, &'static str),
    /// One that needs another; those that would do.
    Needs(&'static str, &'static [&'static str]),
}

impl PatchError {
    /// The patch that was refused.
    pub fn name(&self) -> &str {
        match self {
            PatchError::Unknown(name, _) => name,
            PatchError::DoesNotFit(patch, _) => patch.name,
            PatchError::Excluded(name, _) | PatchError::Needs(name, _) => name,
        }
    }
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatchError::Unknown(name, valid) => {
                write!(f, "no patch '{}'; valid: {}", shown(name), valid.join(", "))
            }
            PatchError::DoesNotFit(patch, v) => {
                let (name, since) = (patch.name, patch.since);
                write!(
                    f,
                    "patch '{name}' does not fit kernel {v}; it fits {since} "
                )?;
                if patch.until == KernelVersion::FOREVER {
                    write!(f, "and later")
                } else {
                    write!(f, "up to, not including, {}", patch.until)
                }
            }
            PatchError::Excluded(a, b) => {
                write!(
                    f,
                    "patches '{a}' and '{b}' change the same rule; choose one"
                )
            }
            PatchError::Needs(name, others) => {
                write!(
                    f,
                    "patch '{name}' needs one of {} beside it",
                    others.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for PatchError {}

/// Patches that are switched on, known to fit their release and each other.
#[derive(Clone, Debug, Default)]
pub struct Patches {
    on: Vec<&'static Patch>,
}

impl Patches {
    /// The patches of these names on a release. A name given twice counts
    /// once.
    ///
    /// # Errors
    /// If one is unknown, does not fit the release, or not the others.
    pub fn new(
        names: impl IntoIterator<Item = impl AsRef<str>>,
        v: KernelVersion,
    ) -> Result<Patches, PatchError> {
        let mut on: Vec<&'static Patch> = Vec::new();
        for name in names {
            let name = name.as_ref();
            let Some(patch) = PATCHES.iter().find(|p| p.name == name) else {
                let valid = PATCHES.iter().map(|p| p.name).collect();
                return Err(PatchError::Unknown(name.to_owned(), valid));
            };
            if !v.is_within(patch.since, patch.until) {
                return Err(PatchError::DoesNotFit(patch, v));
            }
            if on.iter().any(|p| p.name == name) {
                continue;
            }
            if let Some(other) = on.iter().find(|p| patch.excludes.contains(&p.name)) {
                return Err(PatchError::Excluded(other.name, patch.name));
            }
            on.push(patch);
        }
        let has_one_of = |names: &[&str]| on.iter().any(|p| names.contains(&p.name));
        if let Some(p) = on
            .iter()
            .find(|p| !p.needs.is_empty() && !has_one_of(p.needs))
        {
            return Err(PatchError::Needs(p.name, p.needs));
        }
        Ok(Patches { on })
    }

    /// Whether a patch is on.
    pub fn has(&self, name: &str) -> bool {
        debug_assert!(PATCHES.iter().any(|p| p.name == name), "no patch {name}");
        self.on.iter().any(|p| p.name == name)
    }

    /// Those that are on, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = &'static Patch> + '_ {
        self.on.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str], v: KernelVersion) -> Result<Vec<&'static str>, String> {
        let on = Patches::new(names, v).map_err(|e| e.to_string())?;
        Ok(on.iter().map(|p| p.name).collect())
    }

    #[test]
    fn patches_fit_their_release_and_each_other() {
        let (k28, k33) = (KernelVersion::v2_6(28), KernelVersion::v2_6(33));
        assert_eq!(
            names(&["quantum_tweak1", "quantum_tweak2", "quantum_tweak1"], k33),
            Ok(vec!["quantum_tweak1", "quantum_tweak2"])
        );
        let refused = |n: &[&str], v| names(n, v).unwrap_err();
        assert!(refused(&["nope"], k33).starts_with("no patch 'nope'; valid: cached_merge_limit"));
        assert_eq!(
            refused(&["quantum_tweak"], k28),
            "patch 'quantum_tweak' does not fit kernel 2.6.28; it fits 2.6.33 up to, not \
             including, 5.0"
        );
        assert_eq!(
            refused(&["bfq_no_inject"], k33),
            "patch 'bfq_no_inject' does not fit kernel 2.6.33; it fits 5.0 and later"
        );
        assert_eq!(
            refused(&["quantum_tweak", "quantum_log"], k33),
            "patches 'quantum_tweak' and 'quantum_log' change the same rule; choose one"
        );
        assert!(
            refused(&["quantum_tweak2"], k33).starts_with("patch 'quantum_tweak2' needs one of")
        );
    }

    #[test]
    fn the_table_is_sound() {
        for p in PATCHES {
            assert_eq!(PATCHES.iter().filter(|q| q.name == p.name).count(), 1);
            assert!(p.since < p.until);
            for other in p.excludes.iter().chain(p.needs) {
                let other = PATCHES.iter().find(|q| q.name == *other);
                assert!(other.is_some(), "{}", p.name);
            }
        }
    }
}
