// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explicit processes of an experiment: those that our program can be, and why it cannot be
//! the others.

use super::file::{Bursts, GROUP_BYTES, Kind, Step, Submitter};
use super::{DEPTH_MAX, LIMITS};
use crate::kernel::groups;
use blklab_experiment::{Cgroup, Experiment};
use blklab_types::{BioFlags, Error, no_such, shown};
use blklab_workload::{Cursor, Io, NextBio, Process, Refill, UnplugWhen};

/// Marks that no program gives its bios.
const MARKS: &[(BioFlags, &str)] = &[
    (BioFlags::META, "meta"),
    (BioFlags::AHEAD, "ahead"),
    (BioFlags::NOIDLE, "noidle"),
    (BioFlags::UNPLUG, "unplug"),
];

/// Refuses what no program can be told.
///
/// # Errors
/// The first thing that it cannot.
pub(in crate::kernel) fn check(processes: &[Process], groups: &[Cgroup]) -> Result<(), Error> {
    let nr_bios = processes.iter().map(|p| nr_bios(&p.io));
    LIMITS.check(nr_bios.fold(0, u64::saturating_add), processes.len())?;
    for p in processes {
        let (who, about) = (shown(&p.name), format!("processes.\"{}\"", p.name));
        if let Some((key, why)) = cannot(p) {
            let what = format!("process '{who}': {key}: {why}");
            return Err(Error::not_modelled(what).about(about));
        }
        let is_there = |name: &str| groups.iter().any(|g| g.name == name.trim_matches('/'));
        if let Some(name) = p.cgroup.as_deref().filter(|name| !is_there(name)) {
            let names: Vec<&str> = groups.iter().map(|g| g.name.as_str()).collect();
            let what = format!("process '{who}': {}", no_such("cgroup", name, &names));
            return Err(Error::new(what).about(format!("{about}.cgroup")));
        }
    }
    Ok(())
}

/// What of a process no program can do, and why.
fn cannot(p: &Process) -> Option<(&'static str, String)> {
    if p.unplug == UnplugWhen::Never {
        let why = "a process of the target kernel unplugs before it waits";
        return Some(("unplug", why.to_owned()));
    }
    if p.depth > DEPTH_MAX {
        let why = format!("{DEPTH_MAX} bios are under way on the target kernel at most");
        return Some(("depth", why));
    }
    if p.cgroup
        .as_ref()
        .is_some_and(|name| name.len() > GROUP_BYTES / 2)
    {
        let why = format!(
            "{} bytes are the longest name on the target kernel",
            GROUP_BYTES / 2
        );
        return Some(("cgroup", why));
    }
    // Those of other patterns are alike.
    let differ = matches!(p.io, Io::Mixed { .. } | Io::Script { .. });
    let looked_at = if differ { usize::MAX } else { 1 };
    each_bio(p).take(looked_at).find_map(|bio| {
        let (_, name) = MARKS.iter().find(|(mark, _)| bio.flags.any(*mark))?;
        let why = format!("no program of the target kernel marks its I/Os as {name}");
        Some(("flags", why))
    })
}

fn nr_bios(io: &Io) -> u64 {
    match io {
        Io::Sequential { count, .. } => *count,
        Io::List { sectors, .. } => sectors.len() as u64,
        Io::Mixed { ops } => ops.len() as u64,
        Io::Script { ops } => ops.len() as u64,
    }
}

pub(super) fn each_bio(p: &Process) -> impl Iterator<Item = NextBio> + '_ {
    let mut cursor = Cursor::default();
    std::iter::from_fn(move || {
        let bio = cursor.peek(&p.io)?;
        cursor.advance();
        Some(bio)
    })
}

/// The processes, as our program is told of them.
pub(super) fn submitters(processes: &[Process], e: &Experiment) -> Vec<Submitter> {
    processes.iter().map(|p| submitter(p, e)).collect()
}

fn submitter(p: &Process, e: &Experiment) -> Submitter {
    let has_timetable = matches!(p.io, Io::Script { .. });
    let kind = if has_timetable {
        Kind::Timed
    } else {
        Kind::Bursts(Bursts {
            start_ns: p.start_ns,
            gap_ns: p.gap_ns,
            burst: p.depth.max(1),
            room: match p.refill {
                Refill::One => p.depth.max(1),
                Refill::All => 1,
            },
        })
    };
    let mut out = Submitter::new(p.pid, p.name.clone(), kind);
    out.prio = p.ioprio();
    out.depth = if has_timetable {
        DEPTH_MAX
    } else {
        p.depth.max(1)
    };
    if let Some(name) = &p.cgroup {
        out.group = groups::members_file(&e.cgroups, name.trim_matches('/'));
    }
    for bio in each_bio(p) {
        let think_ns = bio.think_ns.unwrap_or(p.think_ns);
        out.push(&Step {
            time_ns: bio.at.map_or(think_ns, |at| at.0.max(p.start_ns)),
            sector: bio.sector,
            nr_sectors: bio.nr_sectors,
            room: 0,
            op: bio.op,
            flags: bio.flags,
            is_held: !has_timetable && p.unplug == UnplugWhen::OnWait,
            is_awaited: true,
            woke: false,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{check, submitters};
    use crate::kernel::replayed::file::{self, GROUP_BYTES};
    use blklab_experiment::{Experiment, Workload};
    use blklab_workload::{Flag, Io, MixedOp, Process, Refill, Rw, ScriptOp, UnplugWhen};

    fn process() -> Process {
        Process {
            name: "reader".to_owned(),
            pid: 100,
            start_ns: 2_000_000,
            ioprio_class: Default::default(),
            ioprio_level: 4,
            cgroup: None,
            depth: 1,
            think_ns: 0,
            gap_ns: 0,
            refill: Refill::One,
            unplug: UnplugWhen::OnWait,
            io: Io::Sequential {
                rw: Rw::Read,
                flags: Vec::new(),
                start: 8,
                nsect: 8,
                count: 3,
            },
        }
    }

    /// A process as words of the file, and its bios.
    fn told(p: Process) -> (Vec<u32>, Vec<[u32; 8]>) {
        check(std::slice::from_ref(&p), &[]).expect("it can be had");
        let e = Experiment::new("e", Workload::Processes(Vec::new()));
        let file = file::write(&submitters(&[p], &e));
        let words = file.chunks(4);
        let words = words.map(|b| u32::from_le_bytes(b.try_into().expect("four bytes")));
        let words: Vec<u32> = words.collect();
        let bios = words[16 + GROUP_BYTES / 4..].chunks(8);
        let bios = bios
            .map(|bio| bio.try_into().expect("eight words"))
            .collect();
        (words[4..16].to_vec(), bios)
    }

    #[test]
    fn one_without_a_timetable_submits_in_bursts() {
        let (p, bios) = told(Process {
            depth: 2,
            think_ns: 5001,
            gap_ns: 7,
            refill: Refill::All,
            ..process()
        });
        // Bios, start, gap; kind, priority, depth; burst, room.
        assert_eq!(p[..6], [3, 0, 2_000_000, 0, 7, 0]);
        assert_eq!(p[6..], [3, 0, 2, 2, 1, 0]);
        let starts: Vec<(u32, u32)> = bios.iter().map(|bio| (bio[0], bio[2])).collect();
        assert_eq!(starts, [(5001, 8), (5001, 16), (5001, 24)]);
        // Held, and it takes room.
        assert!(bios.iter().all(|bio| bio[7] == 0b1100));
        let (each, bios) = told(Process {
            unplug: UnplugWhen::Each,
            depth: 3,
            ..process()
        });
        assert_eq!(each[9..11], [3, 3]);
        assert!(bios.iter().all(|bio| bio[7] == 0b1000));
    }

    #[test]
    fn one_with_a_timetable_waits_for_none_of_its_own() {
        let op = |t_ns, rw| ScriptOp {
            t_ns,
            rw,
            flags: vec![Flag::Sync],
            sector: 0,
            nsect: 1,
        };
        let (p, bios) = told(Process {
            io: Io::Script {
                ops: vec![op(0, Rw::Read), op(7_000_999, Rw::Write)],
            },
            ..process()
        });
        assert_eq!(p[6], 0);
        assert_eq!((bios[0][0], bios[1][0]), (2_000_000, 7_000_999));
        assert_eq!((bios[0][6], bios[1][6]), (0, 1));
    }

    #[test]
    fn a_pause_of_one_bio_replaces_that_of_its_process() {
        let op = |think| MixedOp(Rw::Read, Vec::new(), 0, 8, think);
        let (_, bios) = told(Process {
            think_ns: 100,
            io: Io::Mixed {
                ops: vec![op(None), op(Some(9))],
            },
            ..process()
        });
        assert_eq!((bios[0][0], bios[1][0]), (100, 9));
    }

    #[test]
    fn what_no_program_can_do_is_refused_by_name() {
        let refused = |p: Process, said: &str| {
            let error = check(&[p], &[]).expect_err(said).to_string();
            assert!(error.contains(said), "{said}: {error}");
        };
        refused(
            Process {
                unplug: UnplugWhen::Never,
                ..process()
            },
            "unplug",
        );
        refused(
            Process {
                depth: 4097,
                ..process()
            },
            "'reader': depth: 4096",
        );
        refused(
            Process {
                cgroup: Some("web".to_owned()),
                ..process()
            },
            "process 'reader': ",
        );
        let endless = Io::Sequential {
            rw: Rw::Read,
            flags: Vec::new(),
            start: 0,
            nsect: 8,
            count: u64::MAX,
        };
        refused(
            Process {
                io: endless,
                ..process()
            },
            "4000000 fit",
        );
        let ops = vec![MixedOp(Rw::Read, vec![Flag::Meta], 0, 8, None)];
        refused(
            Process {
                io: Io::Mixed { ops },
                ..process()
            },
            "as meta",
        );
    }
}
