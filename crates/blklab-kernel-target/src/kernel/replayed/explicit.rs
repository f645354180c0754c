// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explicit processes of an experiment: those that fio can be, and why it cannot be the
//! others.

use super::{DEPTH_MAX, Script, Step};
use blklab_types::{BioFlags, Error, shown};
use blklab_workload::{Cursor, Io, Process, Refill, UnplugWhen};

/// Marks that no program gives its bios.
const MARKS: &[(BioFlags, &str)] = &[
    (BioFlags::META, "meta"),
    (BioFlags::AHEAD, "ahead"),
    (BioFlags::NOIDLE, "noidle"),
    (BioFlags::UNPLUG, "unplug"),
];

/// Refuses what fio cannot be told.
///
/// # Errors
/// The first thing that it cannot.
pub(in crate::kernel) fn check(processes: &[Process]) -> Result<(), Error> {
    for p in processes {
        if let Some((key, why)) = cannot(p) {
            let name = shown(&p.name);
            let what = format!("process '{name}': {key}: {why}");
            let about = format!("processes.\"{}\"", p.name);
            return Err(Error::not_modelled(what).about(about));
        }
    }
    Ok(())
}

/// What of a process fio cannot do, and why.
fn cannot(p: &Process) -> Option<(&'static str, String)> {
    let has_timetable = matches!(p.io, Io::Script { .. });
    if p.gap_ns > 0 {
        let why = "fio, which runs it on the target kernel, takes the time that it takes";
        return Some(("gap_ns", why.to_owned()));
    }
    if p.unplug == UnplugWhen::Never {
        let why = "a process of the target kernel unplugs before it waits";
        return Some(("unplug", why.to_owned()));
    }
    if p.depth > DEPTH_MAX {
        let why = format!("fio has {DEPTH_MAX} I/Os under way on the target kernel at most");
        return Some(("depth", why));
    }
    if !has_timetable && p.think_ns > 0 {
        if !p.think_ns.is_multiple_of(1000) {
            let why = "fio on the target kernel pauses for whole microseconds";
            return Some(("think_ns", why.to_owned()));
        }
        if p.depth > 1 && p.refill == Refill::One {
            let why = "fio on the target kernel waits for all I/Os before a pause; refill = \"all\" \
                       does, too";
            return Some(("think_ns", why.to_owned()));
        }
    }
    let mut cursor = Cursor::default();
    while let Some(bio) = cursor.peek(&p.io) {
        cursor.advance();
        if bio.think_ns.is_some_and(|ns| ns != p.think_ns) {
            let why = "fio on the target kernel has the same pause before each I/O";
            return Some(("think_ns of one I/O", why.to_owned()));
        }
        if let Some((_, name)) = MARKS.iter().find(|(mark, _)| bio.flags.any(*mark)) {
            let why = format!("no program of the target kernel marks its I/Os as {name}");
            return Some(("flags", why));
        }
        if !matches!(p.io, Io::Mixed { .. } | Io::Script { .. }) {
            // All of them are alike.
            break;
        }
    }
    None
}

/// What fio does for processes that [`check`] has seen.
pub(super) fn scripts(processes: &[Process]) -> Vec<Script> {
    processes.iter().map(script).collect()
}

fn script(p: &Process) -> Script {
    let mut ios = Vec::new();
    let mut cursor = Cursor::default();
    let mut has_timetable = false;
    while let Some(bio) = cursor.peek(&p.io) {
        cursor.advance();
        has_timetable |= bio.at.is_some();
        let at_ns = bio.at.map_or(p.start_ns, |at| at.0.max(p.start_ns));
        ios.push(Step {
            at_us: at_ns / 1000,
            op: bio.op,
            flags: bio.flags,
            sector: bio.sector,
            nr_sectors: bio.nr_sectors,
        });
    }
    let of_timetable = u32::try_from(ios.len()).unwrap_or(DEPTH_MAX);
    let depth = if has_timetable {
        // It never waits for its own.
        of_timetable.clamp(1, DEPTH_MAX)
    } else {
        p.depth
    };
    Script {
        pid: p.pid,
        name: p.name.clone(),
        prio: p.ioprio(),
        group: p.cgroup.clone().unwrap_or_default(),
        depth,
        batch: match p.unplug {
            UnplugWhen::Each => 1,
            _ if has_timetable => 1,
            _ => depth,
        },
        refills_all: !has_timetable && p.refill == Refill::All && depth > 1,
        think_us: if has_timetable { 0 } else { p.think_ns / 1000 },
        ios,
    }
}

#[cfg(test)]
mod tests {
    use super::{check, scripts};
    use blklab_types::Op;
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

    #[test]
    fn one_without_a_timetable_has_all_at_its_start_and_a_depth() {
        let p = Process {
            depth: 2,
            think_ns: 5000,
            refill: Refill::All,
            ..process()
        };
        check(std::slice::from_ref(&p)).expect("fio can be it");
        let script = scripts(&[p]).remove(0);
        let ios: Vec<(u64, u64)> = script.ios.iter().map(|io| (io.at_us, io.sector)).collect();
        assert_eq!(ios, [(2000, 8), (2000, 16), (2000, 24)]);
        assert_eq!((script.depth, script.batch, script.think_us), (2, 2, 5));
        assert!(script.refills_all);
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
        let p = Process {
            io: Io::Script {
                ops: vec![op(0, Rw::Read), op(7_000_999, Rw::Write)],
            },
            ..process()
        };
        let script = scripts(&[p]).remove(0);
        assert_eq!((script.depth, script.batch), (2, 1));
        assert_eq!((script.ios[0].at_us, script.ios[1].at_us), (2000, 7000));
        assert_eq!(script.ios[1].op, Op::Write);
    }

    #[test]
    fn what_fio_cannot_do_is_refused_by_name() {
        let refused = |p: Process, said: &str| {
            let error = check(&[p]).expect_err(said).to_string();
            assert!(error.contains(said), "{said}: {error}");
        };
        refused(
            Process {
                gap_ns: 1,
                ..process()
            },
            "'reader': gap_ns",
        );
        refused(
            Process {
                unplug: UnplugWhen::Never,
                ..process()
            },
            "unplug",
        );
        refused(
            Process {
                think_ns: 1500,
                ..process()
            },
            "whole microseconds",
        );
        refused(
            Process {
                think_ns: 1000,
                depth: 2,
                ..process()
            },
            "waits for all I/Os",
        );
        let ops = vec![MixedOp(Rw::Read, vec![Flag::Meta], 0, 8, None)];
        refused(
            Process {
                io: Io::Mixed { ops },
                ..process()
            },
            "as meta",
        );
        let ops = vec![MixedOp(Rw::Read, Vec::new(), 0, 8, Some(9))];
        refused(
            Process {
                io: Io::Mixed { ops },
                ..process()
            },
            "the same pause",
        );
    }
}
