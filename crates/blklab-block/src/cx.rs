// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the block layer sees of the world during a call, and what it asks for.

use crate::{QueueNo, RqId};
use blklab_engine::Timers;
use blklab_trace::truth::{Kind, NO_REQUEST, Truth, TruthSink, Why};
use blklab_trace::{Event, Tracer};
use blklab_types::{
    Bio, Completion, Dev, IoCostModel, IoCostQos, IoMax, IoPrio, Jiffies, Op, Pid, PrioClass,
    PrioPolicy, TaskId, Time,
};

/// In whose context the block layer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// The task, or none in interrupts and kernel work.
    pub task: Option<TaskId>,
    /// Pid that trace events carry: 0 in interrupts.
    pub pid: Pid,
    /// CPU that trace events carry.
    pub cpu: u16,
}

impl Running {
    /// An interrupt, seen as the idle task.
    pub const INTERRUPT: Running = Running {
        task: None,
        pid: 0,
        cpu: 0,
    };
}

/// CPU scheduling policy of a task (`sched_setscheduler(2)`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuPolicy {
    /// SCHED_OTHER and SCHED_BATCH.
    #[default]
    Other,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO and SCHED_RR.
    RealTime,
}

/// One task's io context (`struct io_context`), created with the task.
#[derive(Clone, Copy, Debug, Default)]
pub struct IoContext {
    /// Pid shown in traces.
    pub pid: Pid,
    /// Priority set with `ioprio_set(2)`; class none if it was not.
    pub ioprio: IoPrio,
    /// Nice value, -20 to 19.
    pub nice: i8,
    /// CPU scheduling policy.
    pub policy: CpuPolicy,
    /// The task holds an exclusive resource of a file system (`has_fs_excl`).
    pub fs_exclusive: bool,
    /// The task is in a sync write (`PF_SYNCWRITE`, to 2.6.17): fsync, O_SYNC
    /// and the like.
    pub sync_writes: bool,
    /// Control group, [`TaskTable::ROOT_GROUP`] unless it was given another.
    pub group: u16,
    /// When it returns to its program, it is to ask this queue whether its group is held
    /// up (`throttle_disk`).
    pub held_up_by: Option<QueueNo>,
    /// The task has the io context of this one in its place (`CLONE_IO`).
    pub shares: Option<TaskId>,
    /// Requests left in the allocation batch.
    pub batch_left: u32,
    /// The batch is valid while the tick counter is before this value.
    pub batch_until: Jiffies,
}

impl IoContext {
    /// The priority that follows from nice value and CPU policy
    /// (`get_current_ioprio`, include/linux/ioprio.h).
    pub fn derived_ioprio(&self) -> IoPrio {
        let class = match self.policy {
            CpuPolicy::Other => PrioClass::BestEffort,
            CpuPolicy::Idle => PrioClass::Idle,
            CpuPolicy::RealTime => PrioClass::RealTime,
        };
        let level = ((i32::from(self.nice) + 20) / 5).clamp(0, 7) as u8;
        IoPrio { class, level }
    }
}

/// A control group below the root, as the block controller sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoGroup {
    /// The group it belongs to.
    pub parent: u16,
    /// `blkio.weight`; none: the kernel's default.
    pub weight: Option<u32>,
    /// `blkio.leaf_weight`: the weight of its own tasks against its children
    /// (3.9); none: the kernel's default.
    pub leaf_weight: Option<u32>,
    /// `io.max`; none: no limits.
    pub io_max: Option<IoMax>,
    /// `io.weight`, of io.cost; none: the kernel's default.
    pub cost_weight: Option<u32>,
    /// `io.latency`, in us; none: no target.
    pub latency_us: Option<u64>,
    /// `io.prio.class`.
    pub prio: PrioPolicy,
}

/// The io contexts of all tasks of a run, by [`TaskId`], and their groups.
#[derive(Clone, Debug, Default)]
pub struct TaskTable {
    contexts: Vec<IoContext>,
    /// All but the root.
    groups: Vec<IoGroup>,
    /// Files of the root: `io.cost.qos`, `io.cost.model`.
    cost: (IoCostQos, IoCostModel),
    /// Limits of groups do not hold for those below.
    limits_are_flat: bool,
}

impl TaskTable {
    /// The control group of a task that was given no other.
    pub const ROOT_GROUP: u16 = 0;

    /// Adds a control group below an existing one. Groups are numbered from 1
    /// in order of their addition.
    ///
    /// # Panics
    /// If the parent does not exist, or at the 65536th group.
    pub fn add_group(&mut self, group: IoGroup) -> u16 {
        assert!(usize::from(group.parent) <= self.groups.len(), "no parent");
        self.groups.push(group);
        u16::try_from(self.groups.len()).expect("groups fit 16 bits")
    }

    /// Limits hold for a group's own tasks alone, as in the first version of control
    /// groups.
    pub fn limit_each_alone(&mut self) {
        self.limits_are_flat = true;
    }

    /// Whether limits hold for a group's own tasks alone.
    pub(crate) fn limits_are_flat(&self) -> bool {
        self.limits_are_flat
    }

    /// What the root's files say to the cost controller.
    pub fn set_cost(&mut self, qos: IoCostQos, model: IoCostModel) {
        self.cost = (qos, model);
    }

    /// What the root's files say to the cost controller.
    pub fn cost(&self) -> &(IoCostQos, IoCostModel) {
        &self.cost
    }

    /// What a group does to priorities.
    pub(crate) fn prio_policy(&self, number: u16) -> PrioPolicy {
        self.group(number).map_or(PrioPolicy::NoChange, |g| g.prio)
    }

    /// A control group; none for the root and for numbers without a group.
    pub fn group(&self, number: u16) -> Option<&IoGroup> {
        self.groups.get(usize::from(number).checked_sub(1)?)
    }

    /// Number of groups below the root.
    pub fn nr_groups(&self) -> usize {
        self.groups.len()
    }

    /// The control group that a bio is charged to.
    pub fn group_of(&self, bio: &Bio) -> u16 {
        match bio.group {
            TaskTable::ROOT_GROUP => self.get(bio.task).group,
            group => group,
        }
    }

    /// Whether there is any group below the root.
    pub fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Adds a task.
    pub fn add(&mut self, pid: Pid, ioprio: IoPrio) -> TaskId {
        self.contexts.push(IoContext {
            pid,
            ioprio,
            ..IoContext::default()
        });
        TaskId(u32::try_from(self.contexts.len() - 1).expect("tasks fit 32 bits"))
    }

    /// A task's io context.
    pub fn get(&self, task: TaskId) -> &IoContext {
        &self.contexts[task.idx()]
    }

    /// The task whose io context a task has: mostly its own.
    pub fn io_context_of(&self, task: TaskId) -> TaskId {
        self.get(task).shares.unwrap_or(task)
    }

    /// A task's io context, to change it.
    pub fn get_mut(&mut self, task: TaskId) -> &mut IoContext {
        &mut self.contexts[task.idx()]
    }

    /// Number of tasks.
    pub fn len(&self) -> usize {
        self.contexts.len()
    }

    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.contexts.is_empty()
    }
}

/// What a call into the block layer asks the simulation to do, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Hand this request to the device.
    Dispatch(RqId),
    /// Make a task that sleeps for a request runnable.
    Wake(TaskId),
    /// A bio finished.
    BioDone {
        /// Who is to be told.
        completion: Completion,
        /// Positive errno, 0 for success.
        error: u16,
    },
    /// One of the queue's pools left the congested state
    /// (`clear_queue_congested`).
    Uncongested,
    /// kblockd is to call [`crate::sq::Queue::unplug_work`].
    UnplugWork,
    /// kblockd is to call [`crate::sq::Queue::run_work`].
    RunWork,
    /// Bios that were held by `io.max` may go on: kthrotld is to submit them
    /// ([`crate::mq::Queue::submit_released`]).
    ReleaseWork,
}

/// The context of one call.
pub struct Cx<'a> {
    /// The queue that is called.
    pub queue: QueueNo,
    /// The present.
    pub now: Time,
    /// The tick counter now.
    pub jiffies: Jiffies,
    /// In whose context.
    pub running: Running,
    /// Timers of the run.
    pub timers: &'a mut Timers,
    /// io contexts.
    pub tasks: &'a mut TaskTable,
    /// What takes trace events.
    pub trace: &'a mut Tracer,
    /// Consumer of truth records, where somebody reads them.
    pub truth: Option<&'a mut dyn TruthSink>,
    /// What is to be done after the call, in order, and for which queue.
    pub effects: &'a mut Vec<(QueueNo, Effect)>,
}

impl Cx<'_> {
    /// Asks for something to be done after the call.
    #[inline]
    pub fn ask(&mut self, effect: Effect) {
        self.effects.push((self.queue, effect));
    }

    /// The running task is to ask, before it returns to its program, whether its group is
    /// held up (`blkcg_schedule_throttle`).
    pub(crate) fn asks_on_return(&mut self) {
        if let Some(task) = self.running.task {
            self.tasks.get_mut(task).held_up_by = Some(self.queue);
        }
    }

    /// Emits a trace event at the present, in the running context.
    #[inline]
    pub fn event(&mut self, dev: Dev, event: Event) {
        self.trace.event(Event {
            time: self.now,
            pid: self.running.pid,
            cpu: self.running.cpu,
            dev,
            ..event
        });
    }

    /// Whether anybody reads events: what they say need not be put together otherwise.
    #[inline]
    pub(crate) fn wants_events(&self) -> bool {
        self.trace.wants_events()
    }

    /// Whether anybody reads truth records.
    #[inline]
    pub(crate) fn wants_truth(&self) -> bool {
        self.truth.is_some()
    }

    /// Emits a truth record, if anybody reads them.
    pub fn truth(&mut self, mut record: Truth, text: &str) {
        if let Some(sink) = self.truth.as_deref_mut() {
            record.time = self.now;
            sink.truth(&record, text);
        }
    }

    /// A truth record about nothing but the running task.
    pub fn truth_note(&mut self, kind: Kind, arg: u64, text: &str) {
        let pid = self.running.pid;
        self.truth(
            Truth {
                time: self.now,
                kind,
                pid,
                op: Op::Read,
                sync: false,
                sector: 0,
                nr_sectors: 0,
                arg,
                request: NO_REQUEST,
            },
            text,
        );
    }

    /// From now on, what waits in scheduler and dispatch list waits for this.
    /// `pid` is the process that is served or waited for, 0 if there is none.
    pub fn waits(&mut self, why: Why, pid: Pid) {
        if self.truth.is_some() {
            let record = Truth {
                time: self.now,
                kind: Kind::Wait(why),
                pid,
                op: Op::Read,
                sync: false,
                sector: 0,
                nr_sectors: 0,
                arg: 0,
                request: NO_REQUEST,
            };
            self.truth(record, "");
        }
    }

    /// Whether anybody reads messages.
    #[inline]
    pub fn wants_messages(&self) -> bool {
        self.truth.is_some() || self.trace.wants_messages()
    }
}
