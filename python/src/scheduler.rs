// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers that are classes of Python: the bridge between the hooks of a multi-queue
//! scheduler and the methods of an object.
//!
//! The bridge knows which requests wait. What a method returns is checked against that, and a
//! method that raises or breaks an invariant ends the run with an exception that names it:
//! until the run has stopped, its requests leave in the order in which they came.

use crate::errors::{InputError, InvariantError};
use blklab::kernel::KernelVersion;
use blklab::scheduler::{
    Bio, Build, Core, Cx, Elevator, Make, Merge, Op, ProcessorTime, RqId, Scheduler, Schedulers,
    TimerId, Tunable, Tunables, Unit,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The schedulers that were registered: one of a name, the last.
static OWN: Mutex<Schedulers> = Mutex::new(Schedulers::BUILT_IN);
/// What makes their objects, by name.
static CLASSES: Mutex<BTreeMap<&'static str, Py<PyAny>>> = Mutex::new(BTreeMap::new());

/// All schedulers: those of blklab and those that were registered.
pub(crate) fn schedulers() -> Schedulers {
    *OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tunable: name, default, least, greatest, what it does.
type Row = (String, i64, i64, i64, String);

/// Adds a scheduler that experiments can name, or another in the place of one of that name.
/// `make` is called for each disk with its queue and gives the object.
#[pyfunction]
pub(crate) fn register(
    name: String,
    summary: String,
    tunables: Vec<Row>,
    make: Py<PyAny>,
) -> PyResult<()> {
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_built_in = Schedulers::BUILT_IN.iter().any(|s| s.name == name);
    if is_built_in {
        let what = format!("a scheduler of blklab is called {name}: give yours another name");
        return Err(InputError::new_err(what));
    }
    // They live as long as the process: experiments name them at any time.
    let name: &'static str = name.leak();
    let tunables: Vec<Tunable> = tunables.into_iter().map(tunable).collect();
    let make_elevator = move |b: &mut Build<'_>| -> Box<dyn Elevator> { Bridge::boxed(name, b) };
    let scheduler = Scheduler {
        name,
        summary: summary.leak(),
        since: KernelVersion::new(5, 0),
        until: KernelVersion::FOREVER,
        tunables: tunables.leak(),
        changes: &[],
        processor_time: ProcessorTime::NONE,
        make: Make::MqWith(Box::leak(Box::new(make_elevator))),
    };
    let others = own.own().iter().filter(|s| s.name != name);
    let all: Vec<Scheduler> = others.copied().chain([scheduler]).collect();
    *own = Schedulers::with(all.leak());
    let mut classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
    classes.insert(name, make);
    Ok(())
}

fn tunable((name, default, least, greatest, help): Row) -> Tunable {
    Tunable {
        name: name.leak(),
        unit: Unit::Count,
        default,
        range: (least, greatest),
        since: KernelVersion::new(5, 0),
        until: KernelVersion::FOREVER,
        help: help.leak(),
    }
}

thread_local! {
    /// Of the run on this thread: what its schedulers have raised first, and what ends it.
    static RUNNING: RefCell<(Option<PyErr>, Arc<AtomicBool>)> = RefCell::default();
}

/// Does a run on this thread, whose `stop` a scheduler may set.
///
/// # Errors
/// What a scheduler has raised.
pub(crate) fn with_schedulers<T>(stop: &Arc<AtomicBool>, run: impl FnOnce() -> T) -> PyResult<T> {
    RUNNING.with_borrow_mut(|running| *running = (None, Arc::clone(stop)));
    let result = run();
    match RUNNING.with_borrow_mut(|running| running.0.take()) {
        Some(raised) => Err(raised),
        None => Ok(result),
    }
}

/// Keeps the first error of a run and ends the run.
fn fail(error: PyErr) {
    RUNNING.with_borrow_mut(|(raised, stop)| {
        raised.get_or_insert(error);
        stop.store(true, Ordering::Relaxed);
    });
}

/// The queue of a disk, as its scheduler sees it.
#[pyclass(frozen, module = "blklab._native")]
pub(crate) struct Queue {
    tunables: BTreeMap<&'static str, i64>,
    rotational: bool,
    now_ns: AtomicU64,
    /// When the scheduler wants to be asked again; 0: it has not said so.
    wake_ns: AtomicU64,
}

#[pymethods]
impl Queue {
    /// Virtual time, in ns.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    /// Whether the disk seeks (`queue/rotational`).
    #[getter]
    fn rotational(&self) -> bool {
        self.rotational
    }

    /// The values of the scheduler's tunables.
    #[getter]
    fn tunables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in &self.tunables {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }

    /// Asks for another `dispatch` in so many ns, at the next event of the clock.
    fn wake_in(&self, delay_ns: u64) {
        let due = self.now_ns().saturating_add(delay_ns.max(1));
        self.wake_ns.store(due, Ordering::Relaxed);
    }
}

/// What a request is, at the moment of a call.
fn snapshot<'py>(py: Python<'py>, q: &Core, rq: RqId) -> PyResult<Bound<'py, PyDict>> {
    let r = &q.rqs[rq];
    let dict = PyDict::new(py);
    dict.set_item("id", rq.0)?;
    dict.set_item("sector", r.sector)?;
    dict.set_item("sectors", r.nr_sectors)?;
    let op = match r.op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Discard => "discard",
        Op::Flush => "flush",
    };
    dict.set_item("op", op)?;
    dict.set_item("is_sync", r.is_sync())?;
    dict.set_item("ioprio", r.ioprio.value())?;
    dict.set_item("task", r.task.0)?;
    dict.set_item("start_ns", r.allocated.0)?;
    Ok(dict)
}

/// A scheduler whose decisions an object of Python takes.
struct Bridge {
    name: &'static str,
    /// The object; none if it could not be made, or has failed.
    object: Option<Py<PyAny>>,
    queue: Option<Py<Queue>>,
    timer: TimerId,
    /// Whether the timer runs.
    is_armed: bool,
    /// What waits, by number, in the order in which it came.
    waiting: BTreeMap<u64, RqId>,
    /// The place of each in that order.
    places: BTreeMap<u32, u64>,
    inserted: u64,
    /// At the device.
    in_flight: u64,
    /// The object has let what waits wait.
    has_declined: bool,
}

impl Bridge {
    fn boxed(name: &'static str, b: &mut Build<'_>) -> Box<dyn Elevator> {
        let mut bridge = Bridge {
            name,
            object: None,
            queue: None,
            timer: b.timers.register(name),
            is_armed: false,
            waiting: BTreeMap::new(),
            places: BTreeMap::new(),
            inserted: 0,
            in_flight: 0,
            has_declined: false,
        };
        match Python::attach(|py| make(py, name, b.tunables, b.rotational)) {
            Ok((object, queue)) => {
                bridge.object = Some(object);
                bridge.queue = Some(queue);
            }
            Err(e) => fail(e),
        }
        Box::new(bridge)
    }

    /// Calls a method, unless the object has failed. `None` if it has, or fails now.
    fn call<T>(
        &mut self,
        cx: &mut Cx<'_>,
        call: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let (Some(object), Some(queue)) = (&self.object, &self.queue) else {
            return None;
        };
        let called = Python::attach(|py| {
            let queue = queue.get();
            queue.now_ns.store(cx.now.0, Ordering::Relaxed);
            let result = call(py, object.bind(py))?;
            Ok((result, queue.wake_ns.swap(0, Ordering::Relaxed)))
        });
        match called {
            Ok((result, wake_ns)) => {
                if wake_ns > 0 {
                    self.is_armed = true;
                    cx.timers.arm_at(self.timer, blklab::types::Time(wake_ns));
                }
                Some(result)
            }
            Err(e) => {
                self.give_up(e);
                None
            }
        }
    }

    /// Asks for a request beside one that waits; what fails is kept for the end of the run.
    fn neighbour(&self, method: &'static str, rq: RqId) -> Option<RqId> {
        let object = self.object.as_ref()?;
        let said = Python::attach(|py| {
            let said = object.bind(py).call_method1(method, (rq.0,))?;
            said.extract::<Option<u32>>()
        });
        let number = said.map_err(fail).ok()??;
        let place = self.places.get(&number);
        if place.is_none() {
            let what = format!(
                "{}: {method} returned a request that does not wait",
                self.name
            );
            fail(InvariantError::new_err(what));
        }
        self.waiting.get(place?).copied()
    }

    /// From now on requests leave in the order in which they came.
    fn give_up(&mut self, error: PyErr) {
        self.object = None;
        fail(error);
    }

    /// An invariant that a method has broken.
    fn broken(&mut self, what: &str) {
        let what = format!("scheduler {}: {what}", self.name);
        self.give_up(InvariantError::new_err(what));
    }

    fn leave(&mut self, rq: RqId) {
        if let Some(place) = self.places.remove(&rq.0) {
            self.waiting.remove(&place);
        }
    }

    fn oldest(&self) -> Option<RqId> {
        self.waiting.values().next().copied()
    }

    /// The waiting request of a number that a method has returned.
    fn named(&mut self, number: Option<u32>, method: &str) -> Option<RqId> {
        let number = number?;
        let place = self.places.get(&number);
        let rq = place.and_then(|place| self.waiting.get(place)).copied();
        if rq.is_none() {
            self.broken(&format!(
                "{method} returned request {number}, which does not wait (it was never inserted, \
                 or has left already)"
            ));
        }
        rq
    }
}

/// The object of a scheduler, and its queue.
fn make(
    py: Python<'_>,
    name: &'static str,
    tunables: &Tunables,
    rotational: bool,
) -> PyResult<(Py<PyAny>, Py<Queue>)> {
    let values = tunables.names().map(|t| (t, tunables.get(t)));
    let queue = Queue {
        tunables: values.collect(),
        rotational,
        now_ns: AtomicU64::new(0),
        wake_ns: AtomicU64::new(0),
    };
    let queue = Py::new(py, queue)?;
    let class = {
        let classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
        let class = classes.get(name).expect("it was registered with its class");
        class.clone_ref(py)
    };
    Ok((class.call1(py, (queue.clone_ref(py),))?, queue))
}

impl Elevator for Bridge {
    fn name(&self) -> &'static str {
        self.name
    }

    fn add(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, at_head: bool) {
        self.waiting.insert(self.inserted, rq);
        self.places.insert(rq.0, self.inserted);
        self.inserted += 1;
        self.call(cx, |py, object| {
            object.call_method1("_insert", (snapshot(py, q, rq)?, at_head))?;
            Ok(())
        });
    }

    fn has_work(&self, _: &Core, _: u16) -> bool {
        !self.waiting.is_empty()
    }

    fn dispatch(&mut self, _: &mut Core, cx: &mut Cx<'_>, _: u16) -> Option<RqId> {
        if self.waiting.is_empty() {
            return None;
        }
        let said = self.call(cx, |_, object| {
            object.call_method0("_dispatch")?.extract::<Option<u32>>()
        });
        let chosen = said.and_then(|number| self.named(number, "dispatch"));
        let rests = chosen.is_none() && self.in_flight == 0 && !self.is_armed;
        if rests && self.object.is_some() {
            let waiting = self.waiting.len();
            self.broken(&format!(
                "dispatch returned None while {waiting} requests wait, none is at the device and \
                 no wake-up is asked for: nobody would ask again"
            ));
        }
        self.has_declined = chosen.is_none();
        let rq = if self.object.is_some() {
            chosen?
        } else {
            chosen.or_else(|| self.oldest())?
        };
        self.leave(rq);
        self.in_flight += 1;
        Some(rq)
    }

    fn find_front_merge(&mut self, _: &mut Core, cx: &mut Cx<'_>, bio: &Bio) -> Option<RqId> {
        let end = bio.end();
        let said = self.call(cx, |_, object| {
            object
                .call_method1("_find_front_merge", (end,))?
                .extract::<Option<u32>>()
        });
        said.and_then(|number| self.named(number, "find_front_merge"))
    }

    fn former(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.neighbour("_former", rq)
    }

    fn latter(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.neighbour("_latter", rq)
    }

    fn merged(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, side: Merge) {
        let is_front = side == Merge::Front;
        self.call(cx, |py, object| {
            object.call_method1("_merged", (snapshot(py, q, rq)?, is_front))?;
            Ok(())
        });
    }

    fn merge_requests(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        rq: RqId,
        next: RqId,
        next_waits: bool,
    ) {
        if next_waits {
            self.leave(next);
        }
        self.call(cx, |py, object| {
            let (rq, next) = (snapshot(py, q, rq)?, snapshot(py, q, next)?);
            object.call_method1("_absorbed", (rq, next, next_waits))?;
            Ok(())
        });
    }

    fn requeued(&mut self, _: &mut Core, _: &mut Cx<'_>, _: RqId) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn completed(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.call(cx, |py, object| {
            object.call_method1("_completed", (snapshot(py, q, rq)?,))?;
            Ok(())
        });
        if self.has_declined {
            // It may have waited for this.
            q.run_all();
        }
    }

    fn timer(&mut self, q: &mut Core, _: &mut Cx<'_>, timer: TimerId) -> bool {
        if timer != self.timer {
            return false;
        }
        self.is_armed = false;
        q.run_all();
        true
    }
}
