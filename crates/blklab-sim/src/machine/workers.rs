// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pools of io_uring's worker threads (io_uring/io-wq.c): how many there are, and which
//! of them takes what is brought to a pool.
//!
//! Work goes to the worker that was the last to have nothing to do. One is created where
//! there is none and no other runs, and by the pool's owner when one falls asleep in the
//! middle of its work and more waits.
//!
//! Left out: workers that end after five idle seconds.

use super::Machine;
use blklab_types::TaskId;
use std::rc::Rc;

/// A pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolId(usize);

/// What a pool knows.
pub(super) struct WorkerPool {
    /// The task that brings the work.
    owner: TaskId,
    /// It sleeps, and creates workers when it is woken for that.
    owner_sleeps: bool,
    /// Workers that it may have.
    max: u32,
    /// A worker that has nothing to do is woken before one is created.
    wakes_idle: bool,
    nr_workers: u32,
    /// Those that do not sleep, and those that are about to be created.
    nr_running: u32,
    /// Those that have nothing to do, the last to stop last.
    idle: Vec<TaskId>,
    /// Work that nobody has taken.
    nr_waiting: usize,
    /// Workers that the owner is to create.
    nr_wanted: u32,
    create: Create,
}

/// Creates a worker of a pool.
pub(crate) type Create = Rc<dyn Fn(PoolId) -> TaskId>;

impl Machine {
    /// A pool of the running task; `create` creates a worker.
    pub(crate) fn add_pool(&self, max: u32, wakes_idle: bool, create: Create) -> PoolId {
        let owner = self.current();
        let pools = &mut self.inner.world.borrow_mut().pools;
        pools.push(WorkerPool {
            owner,
            owner_sleeps: false,
            max,
            wakes_idle,
            nr_workers: 0,
            nr_running: 0,
            idle: Vec::new(),
            nr_waiting: 0,
            nr_wanted: 0,
            create,
        });
        PoolId(pools.len() - 1)
    }

    /// Workers hold the machine, and the machine what creates them: it does no more.
    pub(crate) fn forget_pools(&self) {
        let pools = std::mem::take(&mut self.inner.world.borrow_mut().pools);
        drop(pools);
    }

    /// There is work (`io_wq_enqueue`).
    pub(crate) fn bring_work(&self, id: PoolId) {
        let create = {
            let w = &mut *self.inner.world.borrow_mut();
            let pool = &mut w.pools[id.0];
            pool.nr_waiting += 1;
            if let Some(worker) = pool.idle.last().copied() {
                w.wake(worker);
                return;
            }
            if pool.nr_running > 0 || pool.nr_workers >= pool.max {
                return;
            }
            pool.nr_running += 1;
            pool.nr_workers += 1;
            Rc::clone(&pool.create)
        };
        self.create_worker(id, &create);
    }

    /// A new worker has nothing to do yet.
    fn create_worker(&self, id: PoolId, create: &Create) {
        let task = create(id);
        let w = &mut *self.inner.world.borrow_mut();
        w.states[task.idx()].pool = Some(id);
        w.pools[id.0].idle.push(task);
    }

    /// The running worker takes what waits; whether there was something.
    pub(crate) fn takes_work(&self, id: PoolId) -> bool {
        let w = &mut *self.inner.world.borrow_mut();
        let task = w.running.task.expect("called in a task");
        let pool = &mut w.pools[id.0];
        if pool.nr_waiting == 0 {
            return false;
        }
        pool.nr_waiting -= 1;
        pool.idle.retain(|idle| *idle != task);
        true
    }

    /// The running worker sleeps until there is work.
    pub(crate) async fn wait_for_work(&self, id: PoolId) {
        {
            let w = &mut *self.inner.world.borrow_mut();
            let task = w.running.task.expect("called in a task");
            let pool = &mut w.pools[id.0];
            if !pool.idle.contains(&task) {
                pool.idle.push(task);
            }
        }
        self.worker_sleeps();
        self.suspend().await;
        self.worker_runs();
    }

    /// If the running task is a worker: it falls asleep (`io_wq_worker_sleeping`).
    pub(super) fn worker_sleeps(&self) {
        let (id, replaced) = {
            let w = &mut *self.inner.world.borrow_mut();
            let task = w.running.task.expect("called in a task");
            let Some(id) = w.states[task.idx()].pool else {
                return;
            };
            let pool = &mut w.pools[id.0];
            pool.nr_running -= 1;
            if pool.nr_running > 0 || pool.nr_waiting == 0 {
                return;
            }
            pool.nr_running += 1;
            if pool.owner_sleeps {
                pool.nr_wanted += 1;
                let owner = pool.owner;
                w.wake(owner);
                return;
            }
            (id, pool.replaces_sleeper())
        };
        self.create_or_wake(id, replaced);
    }

    /// If the running task is a worker: it goes on (`io_wq_worker_running`).
    pub(super) fn worker_runs(&self) {
        let w = &mut *self.inner.world.borrow_mut();
        let task = w.running.task.expect("called in a task");
        if let Some(id) = w.states[task.idx()].pool {
            w.pools[id.0].nr_running += 1;
        }
    }

    /// The owner of a pool sleeps for its I/O until woken, in iowait or not, and creates
    /// workers meanwhile.
    pub(crate) async fn suspend_owner(&self, id: PoolId, in_iowait: bool) {
        self.inner.world.borrow_mut().pools[id.0].owner_sleeps = true;
        if in_iowait {
            self.suspend_for_io().await;
        } else {
            self.suspend().await;
        }
        self.inner.world.borrow_mut().pools[id.0].owner_sleeps = false;
        while let Some(replaced) = self.take_wanted(id) {
            self.create_or_wake(id, replaced);
        }
    }

    fn take_wanted(&self, id: PoolId) -> Option<Replaced> {
        let pool = &mut self.inner.world.borrow_mut().pools[id.0];
        pool.nr_wanted = pool.nr_wanted.checked_sub(1)?;
        Some(pool.replaces_sleeper())
    }

    fn create_or_wake(&self, id: PoolId, replaced: Replaced) {
        match replaced {
            Replaced::Nobody => {}
            Replaced::Idle(worker) => self.wake(worker),
            Replaced::New(create) => self.create_worker(id, &create),
        }
    }
}

/// Who works in place of a worker that sleeps.
enum Replaced {
    Nobody,
    Idle(TaskId),
    New(Create),
}

impl WorkerPool {
    /// A worker sleeps, and one more counts as running already: who that is
    /// (`create_worker_cb`).
    fn replaces_sleeper(&mut self) -> Replaced {
        if let Some(worker) = self.idle.last().filter(|_| self.wakes_idle) {
            self.nr_running -= 1;
            return Replaced::Idle(*worker);
        }
        if self.nr_workers >= self.max {
            self.nr_running -= 1;
            return Replaced::Nobody;
        }
        self.nr_workers += 1;
        Replaced::New(Rc::clone(&self.create))
    }
}
