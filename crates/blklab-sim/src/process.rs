// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explicit processes as tasks of a machine.

use crate::Machine;
use blklab_types::{Bio, Completion, Span, Time};
use blklab_workload::{Cursor, Io, NextBio, Process, Refill, UnplugWhen};
use std::rc::Rc;

/// The body of an explicit process.
pub async fn run_process(m: Machine, p: Rc<Process>) {
    if matches!(p.io, Io::Script { .. }) {
        run_script(&m, &p).await;
    } else {
        run_loop(&m, &p).await;
    }
}

async fn run_loop(m: &Machine, p: &Process) {
    let mut cursor = Cursor::default();
    loop {
        let burst = submit_burst(m, p, &mut cursor).await;
        m.return_to_program().await;
        if burst > 0 && p.unplug == UnplugWhen::OnWait {
            m.unplug();
        }
        let Some(next) = cursor.peek(&p.io) else {
            break;
        };
        let room = match p.refill {
            Refill::One => p.depth,
            Refill::All => 1,
        };
        m.outstanding_below(room).await;
        let think = next.think_ns.unwrap_or(p.think_ns);
        m.sleep_until(m.now() + Span(think)).await;
    }
    m.outstanding_below(1).await;
}

/// Submits while there is room, under a task plug unless each bio is to be
/// sent at once. Returns how many were submitted.
async fn submit_burst(m: &Machine, p: &Process, cursor: &mut Cursor) -> u32 {
    let task = m.current();
    let plugged = p.unplug != UnplugWhen::Each;
    if plugged {
        m.start_plug();
    }
    let mut submitted = 0;
    while m.outstanding(task) < p.depth {
        let Some(next) = cursor.peek(&p.io) else {
            break;
        };
        if submitted > 0 {
            m.sleep_until(m.now() + Span(p.gap_ns)).await;
        }
        cursor.advance();
        submit(m, p, &next).await;
        submitted += 1;
    }
    if plugged {
        m.finish_plug();
    }
    submitted
}

async fn run_script(m: &Machine, p: &Process) {
    let mut cursor = Cursor::default();
    while let Some(next) = cursor.peek(&p.io) {
        cursor.advance();
        m.sleep_until(next.at.unwrap_or(Time::ZERO)).await;
        let plugged = p.unplug != UnplugWhen::Each;
        if plugged {
            m.start_plug();
        }
        submit(m, p, &next).await;
        if plugged {
            m.finish_plug();
        }
        if p.unplug == UnplugWhen::OnWait {
            m.unplug();
        }
        m.return_to_program().await;
    }
    m.outstanding_below(1).await;
}

async fn submit(m: &Machine, p: &Process, next: &NextBio) {
    let task = m.current();
    m.count_submission(task);
    m.submit_bio(Bio {
        op: next.op,
        flags: next.flags,
        sector: next.sector,
        nr_sectors: next.nr_sectors,
        segments: Bio::segments_of_pages(next.nr_sectors),
        task,
        completion: Completion::Task(task),
        ..Bio::default()
    })
    .await;
    if p.unplug == UnplugWhen::Each {
        m.unplug();
    }
}
