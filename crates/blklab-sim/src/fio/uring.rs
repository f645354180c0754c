// SPDX-License-Identifier: MIT OR Apache-2.0
//! What io_uring does with direct I/Os whose submission would have to sleep: a worker
//! thread makes them again, and may sleep (`io_queue_iowq` of io_uring/io_uring.c). The
//! workers have the io context of the job (`CLONE_IO`).
//!
//! A job has so many at most as its ring has entries, and four for each processor.

use crate::Machine;
use crate::machine::PoolId;
use blklab_pagecache::{AioId, DirectRequest, PageCache};
use blklab_types::{IoPrio, Span, TaskId};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Workers for each processor.
const WORKERS_PER_CPU: u32 = 4;

blklab_kernel::features! {
    /// What a release does.
    pub(crate) struct Features {
        /// Who waits for completions is in iowait.
        pub(crate) waits_in_iowait: bool = false,
        /// A submission that would sleep for a request is refused instead, and a worker
        /// makes it.
        pub(crate) submits_without_sleep: bool = false,
        /// A worker that has nothing to do is woken before one is created in place of one
        /// that sleeps.
        pub(crate) wakes_idle_workers: bool = false,
    }

    /// What changed, release by release. Read were 6.1, 6.12 and 7.3, of iowait 5.10.223, too;
    /// that the stable 6.1.39 began with it, Debian's changelog says.
    pub(crate) const CHANGES = {
        "5.12": "what would sleep for a request is left to worker threads of the process",
            "io_uring/io-wq.c" => {
            submits_without_sleep: true,
        }
        "6.5" | "6.1" | "5.10": "who waits for completions is in iowait (6.1 from 6.1.39 on, 5.10 as in 5.10.223)",
            "io_uring/io_uring.c" => {
            waits_in_iowait: true,
        }
        "6.17": "an idle worker is woken before one is created (in 7.3, not in 6.12)",
            "io_uring/io-wq.c" => {
            wakes_idle_workers: true,
        }
    };
}

/// A direct I/O for a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) request: DirectRequest,
    /// Its own priority, if it has one.
    pub(crate) prio: Option<IoPrio>,
}

/// What the submitter and its workers share.
struct Shared {
    m: Machine,
    cache: PageCache<Machine>,
    aio: AioId,
    owner: TaskId,
    /// Processor time of a submission.
    cost: Span,
    works: RefCell<VecDeque<Work>>,
}

/// The workers of a job's ring.
pub(crate) struct UringWorkers {
    shared: Rc<Shared>,
    pub(crate) pool: PoolId,
}

impl UringWorkers {
    /// Those of the running job, none of which is there yet; `depth` is that of the job.
    pub(crate) fn new(
        m: &Machine,
        cache: &PageCache<Machine>,
        aio: AioId,
        depth: u32,
        cost: Span,
        features: Features,
    ) -> UringWorkers {
        let shared = Rc::new(Shared {
            m: m.clone(),
            cache: cache.clone(),
            aio,
            owner: m.current(),
            cost,
            works: RefCell::default(),
        });
        let nr_entries = depth.max(1).next_power_of_two();
        let max = nr_entries.min(WORKERS_PER_CPU * m.nr_processors());
        let wakes_idle = features.wakes_idle_workers;
        let of_pool = Rc::clone(&shared);
        let pool = m.add_pool(max, wakes_idle, Rc::new(move |id| create(&of_pool, id)));
        UringWorkers { shared, pool }
    }

    /// Leaves a direct I/O to a worker.
    pub(crate) fn bring(&self, work: Work) {
        self.shared.works.borrow_mut().push_back(work);
        self.shared.m.bring_work(self.pool);
    }
}

/// A worker of a pool.
fn create(shared: &Rc<Shared>, pool: PoolId) -> TaskId {
    let (m, own) = (&shared.m, Rc::clone(shared));
    let task = m.spawn_thread(
        &format!("iou-wrk-{}", m.pid_of(shared.owner)),
        shared.owner,
        work(own, pool),
    );
    m.share_io_context(task, shared.owner);
    task
}

async fn work(shared: Rc<Shared>, pool: PoolId) {
    let m = &shared.m;
    m.get_going().await;
    loop {
        while m.takes_work(pool) {
            let next = shared.works.borrow_mut().pop_front();
            shared
                .submit(next.expect("the pool counts what is brought to it"))
                .await;
        }
        m.wait_for_work(pool).await;
    }
}

impl Shared {
    async fn submit(&self, work: Work) {
        self.m.compute(self.cost).await;
        self.m.set_request_prio(work.prio);
        let submitted = self.cache.aio_submit(self.aio, work.request).await;
        self.m.set_request_prio(None);
        debug_assert_eq!(submitted, Ok(()), "its bio was refused, it was not");
        // A worker does what others do on return (`io_run_task_work`).
        self.m.return_to_program().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_kernel::KernelVersion;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::new(5, 0)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
