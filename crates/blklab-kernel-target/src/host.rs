// SPDX-License-Identifier: MIT OR Apache-2.0
//! The world around a kernel in virtual time: its clock and its disks.
//!
//! ```text
//!          REQUEST t, WAIT ──►          due(t)
//! kernel ◄── FREE_UNTIL, RUN    host ─────────► disks
//!        ◄── ring, VRING_CALL        ◄───────── next t
//! ```
//!
//! The kernel runs until it has nothing to do and then asks for its next time. If a disk
//! has something before, its requests end first. Only one side runs at a time, so that
//! what happens depends on nothing but what both do.
//!
//! From 6.9 on kernels read and write their clock in memory that both share
//! ([`SharedClock`]), and only WAIT and RUN are messages.

use crate::calendar::{MESSAGE_BYTES, Message, NEVER, Op};
use crate::channel::{Channel, Received};
use crate::disk::{Disk, Mark};
use crate::failed::failed;
use crate::shared_clock::{Client, SharedClock};
use crate::vhost::{Came, Connection, Taken};
use blklab_types::{Error, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Name of the socket of the clock.
const CLOCK: &str = "clock";
/// Longest path of a socket.
const SOCKET_PATH_MAX: usize = 107;
/// Between two looks at whether to go on, where nothing happens.
const PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
/// Messages between two looks at whether to go on.
const LOOK_AFTER: u32 = 4096;

/// What a host does between messages: an error ends it.
pub type GoOn<'a> = dyn FnMut() -> Result<(), Error> + 'a;

/// The clock and the disks of one kernel.
pub struct Host {
    listener: UnixListener,
    clock: Option<Channel>,
    disks: Vec<Attached>,
    /// How far the clock is.
    now: u64,
    /// When the kernel wants to run.
    request: u64,
    /// Whether it sleeps until then.
    waits: bool,
    /// What it may set its clock to by itself.
    free_until: u64,
    seq: u32,
    shared: SharedClock,
    /// Whether the kernel uses the shared clock; none until its second message.
    is_shared: Option<bool>,
    traffic: Traffic,
    /// When the kernel said that its run begins.
    begun: u64,
    /// What had gone to and fro by then.
    before_run: Traffic,
    /// The same when it said that its run ends.
    at_end: Option<Traffic>,
}

/// What went to and fro.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages of the clock, both ways, with their acknowledgements.
    pub clock_messages: u64,
    /// Messages about rings of disks, both ways, with their acknowledgements.
    pub disk_messages: u64,
    /// Requests that the disks got.
    pub requests: u64,
}

struct Attached {
    listener: UnixListener,
    connection: Option<Connection>,
    disk: Disk,
}

/// Something that has a message.
#[derive(Clone, Copy)]
enum Ready {
    NewClock,
    Clock,
    NewDisk(usize),
    Disk(usize),
}

impl Host {
    /// Opens the sockets for a kernel below a folder.
    ///
    /// # Errors
    /// If the folder cannot have them.
    pub fn new(folder: &Path, disks: Vec<Disk>) -> Result<Host, Error> {
        let listener = listen(&folder.join(CLOCK))?;
        let mut attached = Vec::with_capacity(disks.len());
        for (i, disk) in disks.into_iter().enumerate() {
            attached.push(Attached {
                listener: listen(&folder.join(disk_socket(i)))?,
                connection: None,
                disk,
            });
        }
        Ok(Host {
            listener,
            clock: None,
            disks: attached,
            now: 0,
            request: NEVER,
            waits: false,
            free_until: 0,
            seq: 0,
            shared: SharedClock::new()?,
            is_shared: None,
            traffic: Traffic::default(),
            begun: 0,
            before_run: Traffic::default(),
            at_end: None,
        })
    }

    /// What a kernel's command line says to find them.
    pub fn arguments(&self) -> Vec<String> {
        /// The number that virtio has for disks.
        const BLOCK: u32 = 2;
        let disk = |i: usize| format!("virtio_uml.device={}:{BLOCK}", disk_socket(i));
        let clock = format!("time-travel=ext:{CLOCK}");
        std::iter::once(clock)
            .chain((0..self.disks.len()).map(disk))
            .collect()
    }

    /// What went to and fro so far.
    pub fn traffic(&self) -> Traffic {
        let requests = self.disks.iter().map(|a| a.disk.nr_requests());
        Traffic {
            requests: requests.sum(),
            ..self.traffic
        }
    }

    /// The same of the run alone, from where the kernel said that it begins to where it said
    /// that it ends.
    pub fn traffic_of_run(&self) -> Traffic {
        let all = self.at_end.unwrap_or_else(|| self.traffic());
        let before = &self.before_run;
        Traffic {
            clock_messages: all.clock_messages - before.clock_messages,
            disk_messages: all.disk_messages - before.disk_messages,
            requests: all.requests - before.requests,
        }
    }

    /// Looks how far the kernel is that runs, if it has its clock in shared memory.
    fn see_time(&mut self) -> Result<(), Error> {
        if self.clock.is_none() {
            return Ok(());
        }
        if self.is_shared.is_none() {
            // It says so before it says anything else.
            self.is_shared = Some(self.shared.is_used()?);
        }
        if self.shares() {
            let now = self.shared.now()?;
            self.move_to(now)?;
        }
        Ok(())
    }

    /// The kernel says how far it is.
    fn move_to(&mut self, now: u64) -> Result<(), Error> {
        if now < self.now {
            let what = format!("goes back from {} to {now} ns", self.now);
            return Err(self.clock().broken(&what));
        }
        self.now = now;
        Ok(())
    }

    /// Whether the kernel has its clock in shared memory.
    fn shares(&self) -> bool {
        self.is_shared == Some(true)
    }

    /// A disk.
    pub fn disk(&self, i: usize) -> &Disk {
        &self.disks[i].disk
    }

    /// When the run began, if the kernel said so; else its start.
    pub fn begun(&self) -> Time {
        Time(self.begun)
    }

    /// Serves a kernel until it ends. `go_on` is called from time to time.
    ///
    /// # Errors
    /// What `go_on` says, or if the kernel breaks the protocol or sleeps for ever.
    pub fn serve(&mut self, go_on: &mut GoOn<'_>) -> Result<(), Error> {
        let mut messages = 0;
        loop {
            while self.waits {
                if !self.advance(go_on)? {
                    return Ok(());
                }
            }
            if messages % LOOK_AFTER == 0 {
                go_on()?;
            }
            messages += 1;
            let came = match self.ready(go_on)? {
                Ready::NewClock => self.accept_clock()?,
                Ready::Clock => self.clock_message()?,
                Ready::NewDisk(i) => self.accept_disk(i)?,
                Ready::Disk(i) => self.disk_message(i)?,
            };
            if came == Came::Closed {
                return Ok(());
            }
        }
    }

    /// Waits for a message.
    fn ready(&self, go_on: &mut GoOn<'_>) -> Result<Ready, Error> {
        let mut sources = Vec::with_capacity(2 + 2 * self.disks.len());
        match &self.clock {
            Some(clock) => sources.push((Ready::Clock, clock.as_fd())),
            None => sources.push((Ready::NewClock, self.listener.as_fd())),
        }
        for (i, attached) in self.disks.iter().enumerate() {
            match &attached.connection {
                Some(c) => sources.push((Ready::Disk(i), c.channel.as_fd())),
                None => sources.push((Ready::NewDisk(i), attached.listener.as_fd())),
            }
        }
        let fds = sources.iter().map(|(_, fd)| *fd);
        let mut fds: Vec<PollFd<'_>> = fds
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let first = wait_for_first(&mut fds, go_on)?;
        Ok(sources[first].0)
    }

    fn accept_clock(&mut self) -> Result<Came, Error> {
        self.clock = Some(Channel::new(accept(&self.listener)?, "clock"));
        Ok(Came::Message)
    }

    fn accept_disk(&mut self, i: usize) -> Result<Came, Error> {
        let attached = &mut self.disks[i];
        let socket = accept(&attached.listener)?;
        attached.connection = Some(Connection::new(Channel::new(socket, "disk")));
        Ok(Came::Message)
    }

    fn disk_message(&mut self, i: usize) -> Result<Came, Error> {
        self.see_time()?;
        // Most have an acknowledgement.
        self.traffic.disk_messages += 2;
        let Attached {
            connection, disk, ..
        } = &mut self.disks[i];
        let connection = connection.as_mut().expect("it has a message");
        let Taken::Message(answer) = connection.take(Time(self.now), disk)? else {
            // A kernel that restarts its disk connects again; one that ends closes the clock.
            self.disks[i].connection = None;
            return Ok(Came::Message);
        };
        if let Some(mark) = self.disks[i].disk.take_mark() {
            match mark {
                Mark::Align => {}
                Mark::Begin => {
                    self.begun = mark.ends_at(Time(self.now)).0;
                    self.before_run = self.traffic();
                }
                Mark::End => self.at_end = Some(self.traffic()),
            }
            for attached in &mut self.disks {
                attached.disk.follow(mark);
            }
        }
        let next = self.next_due();
        if next < self.free_until {
            // Before the answer, while the kernel stands still: it must not run past the
            // end of the request.
            self.free_until = next;
            if self.shares() {
                self.shared.free_until(next)?;
            } else if self.tell(Op::FreeUntil, next)? == Came::Closed {
                return Ok(Came::Closed);
            }
        }
        if let (Some(answer), Some(connection)) = (answer, &self.disks[i].connection) {
            connection.channel.send(&answer, &[])?;
        }
        Ok(Came::Message)
    }

    /// When a disk has something to do.
    fn next_due(&self) -> u64 {
        let all = self.disks.iter().filter_map(|a| a.disk.next());
        all.min().map_or(NEVER, |t| t.0)
    }

    /// Lets time pass for a kernel that sleeps. Whether it is still there.
    fn advance(&mut self, go_on: &mut GoOn<'_>) -> Result<bool, Error> {
        let next = self.next_due();
        if self.shares() {
            // Interrupts may have changed it while the kernel sleeps.
            self.request = self.shared.request()?.unwrap_or(NEVER);
        }
        if next <= self.request && next < NEVER {
            self.now = self.now.max(next);
            if self.shares() {
                self.shared.set(self.now, Client::Keeper)?;
            }
            for i in 0..self.disks.len() {
                if !self.end_requests(i, go_on)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        if self.request >= NEVER {
            return Err(failed(
                "the kernel sleeps for ever, and no disk has anything to do",
            ));
        }
        self.waits = false;
        self.now = self.request;
        self.request = NEVER;
        self.free_until = next;
        if self.shares() {
            self.shared.free_until(next)?;
            self.shared.set(self.now, Client::Kernel)?;
            return self.run_shared();
        }
        let told = self.tell(Op::FreeUntil, next)? == Came::Message
            && self.tell(Op::Run, self.now)? == Came::Message;
        Ok(told)
    }

    /// Lets a kernel run that has its clock in shared memory: it does not acknowledge.
    fn run_shared(&mut self) -> Result<bool, Error> {
        self.seq = self.seq.wrapping_add(1);
        let message = Message {
            op: Op::Run,
            seq: self.seq,
            time: self.now,
        };
        self.traffic.clock_messages += 1;
        self.clock().send(&message.encode(), &[])?;
        Ok(true)
    }

    /// Ends what a disk has done by now. Whether the kernel is still there.
    fn end_requests(&mut self, i: usize, go_on: &mut GoOn<'_>) -> Result<bool, Error> {
        let attached = &mut self.disks[i];
        let ended = attached.disk.due(Time(self.now));
        let Some(connection) = attached.connection.as_mut().filter(|_| !ended.is_empty()) else {
            return Ok(true);
        };
        connection.give_back(&ended)?;
        self.traffic.disk_messages += 2;
        // It asks for the time before it acknowledges.
        loop {
            let connection = self.disks[i].connection.as_ref();
            let connection = connection.expect("it was there");
            let way_back = connection.backend.as_ref().expect("it was used");
            let clock = self.clock.as_ref().expect("the kernel waits by it");
            let mut fds = [way_back.as_fd(), clock.as_fd()]
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            let came = match wait_for_first(&mut fds, go_on)? {
                0 => return Ok(connection.acknowledged()? == Came::Message),
                _ => self.clock_message()?,
            };
            if came == Came::Closed {
                return Ok(false);
            }
        }
    }

    /// Tells the kernel something, and serves it until it has acknowledged.
    fn tell(&mut self, op: Op, time: u64) -> Result<Came, Error> {
        self.seq = self.seq.wrapping_add(1);
        let message = Message {
            op,
            seq: self.seq,
            time,
        };
        self.traffic.clock_messages += 1;
        self.clock().send(&message.encode(), &[])?;
        loop {
            let Some(answer) = self.next_message()? else {
                return Ok(Came::Closed);
            };
            match answer.op {
                Op::Ack if answer.seq == message.seq => return Ok(Came::Message),
                Op::Ack => return Err(self.clock().broken("acknowledges what was not said")),
                _ => self.answer(answer)?,
            }
        }
    }

    fn clock(&self) -> &Channel {
        self.clock.as_ref().expect("the kernel speaks by it")
    }

    fn next_message(&mut self) -> Result<Option<Message>, Error> {
        self.traffic.clock_messages += 1;
        let mut bytes = [0; MESSAGE_BYTES];
        let clock = self.clock();
        if let Received::Closed = clock.receive(&mut bytes)? {
            return Ok(None);
        }
        let message = Message::decode(&bytes);
        let message = message
            .map_err(|op| clock.broken(&format!("has a message {op}, which is not known")))?;
        Ok(Some(message))
    }

    fn clock_message(&mut self) -> Result<Came, Error> {
        match self.next_message()? {
            Some(message) => self.answer(message).map(|()| Came::Message),
            None => Ok(Came::Closed),
        }
    }

    /// Answers a message of the kernel about the clock.
    fn answer(&mut self, message: Message) -> Result<(), Error> {
        let mut time = 0;
        if message.op == Op::Start {
            return self.welcome(message);
        }
        self.see_time()?;
        match message.op {
            Op::Start => {}
            Op::Request => self.request = message.time,
            Op::Wait => {
                self.waits = true;
                if self.shares() {
                    return self.shared.set(self.now, Client::Keeper);
                }
            }
            Op::Get | Op::GetTod => time = self.now,
            Op::Update => self.move_to(message.time)?,
            // Nobody else shares the clock.
            Op::Broadcast => {}
            Op::Ack | Op::Run | Op::FreeUntil => {
                return Err(self.clock().broken("says what only its keeper says"));
            }
        }
        self.traffic.clock_messages += 1;
        self.clock().send(&message.ack(time).encode(), &[])
    }

    /// Answers the first message: which of the clients of the shared clock the kernel is,
    /// with two files, that clock and one for a log.
    fn welcome(&mut self, message: Message) -> Result<(), Error> {
        let log = memfd_create("blklab-clock-log", MemfdFlags::CLOEXEC);
        let log = log.map_err(|e| failed(&format!("no memory to share with the kernel: {e}")))?;
        self.shared.set(self.now, Client::Kernel)?;
        let answer = message.ack(Client::Kernel as u64).encode();
        self.traffic.clock_messages += 1;
        let files = [self.shared.file().as_fd(), log.as_fd()];
        self.clock().send(&answer, &files)
    }
}

fn disk_socket(i: usize) -> String {
    format!("disk{i}")
}

fn listen(path: &Path) -> Result<UnixListener, Error> {
    let len = path.as_os_str().len();
    if len > SOCKET_PATH_MAX {
        let what = format!("a socket's path has {SOCKET_PATH_MAX} bytes at most, this has {len}");
        return Err(failed(&what).in_file(&path.display().to_string()));
    }
    let made = UnixListener::bind(path);
    made.map_err(|e| failed(&format!("no socket: {e}")).in_file(&path.display().to_string()))
}

fn accept(listener: &UnixListener) -> Result<OwnedFd, Error> {
    let accepted = listener.accept();
    let (stream, _) = accepted.map_err(|e| failed(&format!("the kernel cannot connect: {e}")))?;
    Ok(stream.into())
}

/// The first of these that has something to read.
fn wait_for_first(fds: &mut [PollFd<'_>], go_on: &mut GoOn<'_>) -> Result<usize, Error> {
    loop {
        match poll(fds, Some(&PATIENCE)) {
            Ok(0) => go_on()?,
            Ok(_) => {
                let has = |fd: &PollFd<'_>| !fd.revents().is_empty();
                if let Some(first) = fds.iter().position(has) {
                    return Ok(first);
                }
            }
            Err(Errno::INTR) => {}
            Err(e) => return Err(failed(&format!("waiting for the kernel failed: {e}"))),
        }
    }
}

#[cfg(test)]
mod tests;
