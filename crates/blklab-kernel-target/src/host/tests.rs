// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest that says what it is told to, right or wrong.

use super::Host;
use crate::calendar::{MESSAGE_BYTES, Message, NEVER, Op};
use crate::channel::{Channel, Received};
use crate::disk::Disk;
use crate::shared_clock::SharedClock;
use blklab_types::Error;
use rustix::fd::{AsFd as _, BorrowedFd};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use tempfile::TempDir;

/// Where the memory begins, as descriptors say it, and as rings do.
const GUEST: u64 = 0x1_0000;
const USER: u64 = 0x7000_0000;
const MEMORY_BYTES: u64 = 0x8000;
/// Places in it.
const DESCRIPTORS: u64 = 0;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x1800;
const HEADER: u64 = 0x2000;
const STATUS: u64 = 0x2100;
const DATA: u64 = 0x3000;
/// Flags of descriptors.
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

struct Guest {
    clock: Channel,
    disk: Channel,
    way_back: Channel,
    memory: File,
    shared: SharedClock,
    seq: u32,
    host: Option<JoinHandle<Result<(), Error>>>,
    _folder: TempDir,
}

impl Guest {
    /// Connected to a host whose disk takes 150 µs for a read, by messages alone.
    fn new() -> Guest {
        Guest::connected(false)
    }

    /// The same; it may have its clock in shared memory.
    fn connected(shares_clock: bool) -> Guest {
        let folder = tempfile::tempdir().expect("a folder");
        let (info, params) = blklab_device::parse_spec("parallel").expect("a device");
        let no_files = |_: &str| Err("none".to_owned());
        let model = blklab_device::build(info.name, &params, 8, &no_files).expect("a model");
        let limits = blklab_device::limits(info.name, &params).expect("limits");
        let disk = Disk::modelled("disk", model, &limits);
        let mut host = Host::new(folder.path(), vec![disk]).expect("sockets");
        let connect = |name: &str| {
            let stream = UnixStream::connect(folder.path().join(name)).expect("a socket");
            Channel::new(stream.into(), "guest")
        };
        let (clock, disk) = (connect("clock"), connect("disk0"));
        let serving = std::thread::spawn(move || host.serve(&mut || Ok(())));
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let mut guest = Guest {
            clock,
            disk,
            way_back: Channel::new(ours.into(), "guest"),
            memory: tempfile::tempfile().expect("a file"),
            shared: SharedClock::new().expect("memory"),
            seq: 0,
            host: Some(serving),
            _folder: folder,
        };
        guest.memory.set_len(MEMORY_BYTES).expect("room");
        guest.start();
        if shares_clock {
            guest.shared.as_kernel(None, None);
        }
        guest.tell(21, &[], &[theirs.as_fd()]);
        guest
    }

    /// Says its first message and takes the clock that comes back.
    fn start(&mut self) {
        let message = Message {
            op: Op::Start,
            seq: 0,
            time: 1,
        };
        self.clock.send(&message.encode(), &[]).expect("a host");
        let mut bytes = [0; MESSAGE_BYTES];
        let Ok(Received::All(mut files)) = self.clock.receive(&mut bytes) else {
            panic!("no answer");
        };
        assert_eq!(Message::decode(&bytes).expect("an answer").time, 1);
        self.shared = SharedClock::at(File::from(files.remove(0)));
    }

    /// With its memory and its ring of 4 entries told of.
    fn ready() -> Guest {
        Guest::new().with_ring()
    }

    fn with_ring(mut self) -> Guest {
        let guest = &mut self;
        guest.share(MEMORY_BYTES);
        guest.ring(4, [DESCRIPTORS, USED, AVAILABLE].map(|at| USER + at));
        self
    }

    fn share(&mut self, size: u64) {
        let mut payload = 1_u32.to_ne_bytes().to_vec();
        payload.extend(0_u32.to_ne_bytes());
        for number in [GUEST, size, USER, 0] {
            payload.extend(number.to_ne_bytes());
        }
        let memory = self.memory.try_clone().expect("a file");
        self.tell(5, &payload, &[memory.as_fd()]);
    }

    fn ring(&mut self, entries: u32, [descriptors, used, available]: [u64; 3]) {
        self.tell(8, &pair(0, entries), &[]);
        let mut payload = pair(0, 0);
        for number in [descriptors, used, available, 0] {
            payload.extend(number.to_ne_bytes());
        }
        self.tell(9, &payload, &[]);
        self.tell(10, &pair(0, 0), &[]);
    }

    /// Says something by the clock and returns the time of the answer.
    fn say(&mut self, op: Op, time: u64) -> Option<u64> {
        self.seq += 1;
        let seq = self.seq;
        let message = Message { op, seq, time };
        self.clock.send(&message.encode(), &[]).ok()?;
        let answer = self.hear()?;
        assert_eq!((answer.op, answer.seq), (Op::Ack, seq));
        Some(answer.time)
    }

    /// What comes by the clock.
    fn hear(&self) -> Option<Message> {
        let mut bytes = [0; MESSAGE_BYTES];
        match self.clock.receive(&mut bytes).ok()? {
            Received::All(_) => Message::decode(&bytes).ok(),
            Received::Closed => None,
        }
    }

    /// What the host says by the clock, acknowledged.
    fn told(&self) -> Option<(Op, u64)> {
        let message = self.hear()?;
        self.clock.send(&message.ack(0).encode(), &[]).ok()?;
        Some((message.op, message.time))
    }

    fn send(&self, number: u32, payload: &[u8], fds: &[BorrowedFd<'_>]) {
        let mut bytes = Vec::new();
        for word in [number, 1 | 8, payload.len() as u32] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(payload);
        // The host may have gone.
        let _ = self.disk.send(&bytes, fds);
    }

    /// The answer of the disk; none if the host has gone.
    fn answer(&self) -> Option<Vec<u8>> {
        let mut header = [0; 12];
        let Ok(Received::All(_)) = self.disk.receive(&mut header) else {
            return None;
        };
        let len = u32::from_ne_bytes(header[8..].try_into().expect("four bytes"));
        let mut payload = vec![0; len as usize];
        self.disk.receive(&mut payload).ok()?;
        Some(payload)
    }

    fn tell(&self, number: u32, payload: &[u8], fds: &[BorrowedFd<'_>]) -> Option<Vec<u8>> {
        self.send(number, payload, fds);
        self.answer()
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, at).expect("memory");
    }

    fn get<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory.read_exact_at(&mut bytes, at).expect("memory");
        bytes
    }

    fn descriptor(&self, i: u64, (at, len, flags, next): (u64, u32, u16, u16)) {
        let mut bytes = (GUEST + at).to_le_bytes().to_vec();
        bytes.extend(len.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        self.put(DESCRIPTORS + 16 * i, &bytes);
    }

    /// A request of a kind for 8 sectors, and its descriptors.
    fn request(&self, kind: u32, sector: u64) {
        let mut header = kind.to_le_bytes().to_vec();
        header.extend(0_u32.to_le_bytes());
        header.extend(sector.to_le_bytes());
        self.put(HEADER, &header);
        let data = if kind == 0 { NEXT | WRITE } else { NEXT };
        self.descriptor(0, (HEADER, 16, NEXT, 1));
        self.descriptor(1, (DATA, 4096, data, 2));
        self.descriptor(2, (STATUS, 1, WRITE, 0));
    }

    /// Offers a chain that begins there; the index says that there are so many.
    fn kick(&self, head: u16, index: u16) {
        self.put(AVAILABLE + 2, &index.to_le_bytes());
        self.put(AVAILABLE + 4, &head.to_le_bytes());
        self.send(35, &pair(0, 0), &[]);
    }

    /// What the host came to.
    fn end(mut self) -> Result<(), Error> {
        let host = self.host.take().expect("it serves");
        drop(self);
        host.join().expect("it does not panic")
    }
}

fn pair(a: u32, b: u32) -> Vec<u8> {
    let mut bytes = a.to_ne_bytes().to_vec();
    bytes.extend(b.to_ne_bytes());
    bytes
}

#[test]
fn a_read_ends_when_the_model_says() {
    let mut guest = Guest::ready();
    guest.put(DATA, &[7; 4096]);
    guest.put(STATUS, &[9]);
    // It has run for a while.
    guest.say(Op::Request, 1000);
    guest.say(Op::Wait, 0);
    assert_eq!(guest.told(), Some((Op::FreeUntil, NEVER)));
    assert_eq!(guest.told(), Some((Op::Run, 1000)));
    guest.request(0, 64);
    guest.kick(0, 1);
    // Before the kick is answered it knows how far it may run.
    let end = 1000 + 150_000;
    assert_eq!(guest.told(), Some((Op::FreeUntil, end)));
    assert_eq!(guest.answer(), Some(vec![0; 8]));
    guest.say(Op::Request, NEVER);
    guest.say(Op::Wait, 0);
    let mut call = [0; 20];
    guest.way_back.receive(&mut call).expect("a call");
    assert_eq!(guest.say(Op::Get, 0), Some(end));
    guest.say(Op::Request, end);
    let mut reply = call;
    reply[4..8].copy_from_slice(&5_u32.to_ne_bytes());
    guest.way_back.send(&reply, &[]).expect("the host");
    assert_eq!(guest.told(), Some((Op::FreeUntil, NEVER)));
    assert_eq!(guest.told(), Some((Op::Run, end)));
    assert_eq!(guest.get(STATUS), [0]);
    assert_eq!(guest.get::<4096>(DATA), [0; 4096]);
    // One is used: chain 0, with data and status.
    assert_eq!(guest.get::<2>(USED + 2), 1_u16.to_le_bytes());
    assert_eq!(guest.get::<4>(USED + 8), 4097_u32.to_le_bytes());
    guest.end().expect("all was right");
}

/// The same read with the clock in shared memory: nothing but WAIT and RUN is said.
#[test]
fn a_shared_clock_needs_no_other_messages() {
    let guest = Guest::connected(true).with_ring();
    let wait = || {
        let message = Message {
            op: Op::Wait,
            seq: 9,
            time: 0,
        };
        guest.clock.send(&message.encode(), &[]).expect("a host");
    };
    guest.shared.as_kernel(None, Some(1000));
    wait();
    let run = |time| Some((Op::Run, time));
    assert_eq!(guest.hear().map(|m| (m.op, m.time)), run(1000));
    // It has run for a while.
    guest.shared.as_kernel(Some(3000), None);
    guest.request(0, 64);
    guest.kick(0, 1);
    assert_eq!(guest.answer(), Some(vec![0; 8]));
    wait();
    let mut call = [0; 20];
    guest.way_back.receive(&mut call).expect("a call");
    let end = guest.shared.now().expect("memory");
    assert_eq!(end, 3000 + 150_000);
    guest.shared.as_kernel(None, Some(end));
    let mut reply = call;
    reply[4..8].copy_from_slice(&5_u32.to_ne_bytes());
    guest.way_back.send(&reply, &[]).expect("the host");
    assert_eq!(guest.hear().map(|m| (m.op, m.time)), run(end));
    assert_eq!(guest.get(STATUS), [0]);
    guest.shared.as_kernel(Some(end - 1), None);
    wait();
    assert_eq!(guest.hear().map(|m| m.op), None);
    let error = guest.end().expect_err("the clock went back").to_string();
    assert!(
        error.contains("goes back from 153000 to 152999 ns"),
        "{error}"
    );
}

#[test]
fn a_disk_says_what_it_is() {
    let guest = Guest::new();
    let mut asked = Vec::new();
    for word in [0_u32, 60, 0] {
        asked.extend(word.to_ne_bytes());
    }
    asked.extend([0; 60]);
    let space = guest.tell(24, &asked, &[]).expect("an answer");
    assert_eq!(space.len(), 12 + 60);
    let capacity = u64::from_le_bytes(space[12..20].try_into().expect("eight bytes"));
    assert_eq!(capacity, crate::ENDLESS_SECTORS);
    let features = guest.tell(1, &[], &[]).expect("an answer");
    let features = u64::from_ne_bytes(features.try_into().expect("eight bytes"));
    assert_eq!(features >> 32 & 1, 1);
    assert_eq!(features & 1 << 5, 0, "it can be written");
    guest.end().expect("all was right");
}

#[test]
fn whatever_a_guest_says_ends_in_one_clear_error() {
    type Wrong = fn(&mut Guest);
    let kick: fn(&mut Guest) = |g| g.kick(0, 1);
    let cases: &[(&str, Wrong, Wrong)] = &[
        (
            "descriptor 9 of a ring of 4",
            |g| g.request(0, 0),
            |g| g.kick(9, 1),
        ),
        ("5 requests at once", |g| g.request(0, 0), |g| g.kick(0, 5)),
        (
            "without an end",
            |g| {
                g.request(0, 0);
                g.descriptor(2, (STATUS, 1, WRITE | NEXT, 1));
            },
            kick,
        ),
        (
            "descriptor 77 of a table of 4",
            |g| {
                g.request(0, 0);
                g.descriptor(1, (DATA, 4096, WRITE | NEXT, 77));
            },
            kick,
        ),
        (
            "no memory of 16 bytes",
            |g| {
                g.request(0, 0);
                g.descriptor(0, (MEMORY_BYTES - 8, 16, NEXT, 1));
            },
            kick,
        ),
        (
            "no memory of 4096 bytes",
            |g| {
                g.request(0, 0);
                g.descriptor(1, (MEMORY_BYTES - 4095, 4096, WRITE | NEXT, 2));
            },
            kick,
        ),
        (
            "no memory of 4096 bytes",
            |g| {
                g.request(0, 0);
                g.descriptor(1, (u64::MAX - GUEST - 10, 4096, WRITE | NEXT, 2));
            },
            kick,
        ),
        (
            "without a header",
            |g| {
                g.request(0, 0);
                g.descriptor(0, (HEADER, 15, NEXT, 1));
            },
            kick,
        ),
        (
            "without a place for its status",
            |g| {
                g.request(1, 0);
                g.descriptor(1, (DATA, 4096, 0, 0));
            },
            kick,
        ),
        (
            "a request of the disk of 100 bytes",
            |g| {
                g.request(0, 0);
                g.descriptor(1, (DATA, 100, WRITE | NEXT, 2));
            },
            kick,
        ),
        (
            "behind one to be written",
            |g| {
                g.request(0, 0);
                g.descriptor(2, (STATUS, 1, 0, 0));
            },
            kick,
        ),
        (
            "a table of descriptors of 17 bytes",
            |g| {
                g.descriptor(0, (DATA, 17, INDIRECT, 0));
            },
            kick,
        ),
        (
            "that goes on behind itself",
            |g| {
                g.descriptor(0, (DATA, 32, INDIRECT | NEXT, 0));
            },
            kick,
        ),
        (
            "a ring of 3 entries",
            |_| {},
            |g| g.send(8, &pair(0, 3), &[]),
        ),
        ("speaks of ring 1", |_| {}, |g| g.send(35, &pair(1, 0), &[])),
        ("a message 99", |_| {}, |g| g.send(99, &[], &[])),
        (
            "a message that is too short",
            |_| {},
            |g| g.send(9, &[0; 11], &[]),
        ),
        (
            "a message of 4096 bytes",
            |_| {},
            |g| g.send(9, &[0; 4096], &[]),
        ),
        ("runs past the last address", |_| {}, |g| g.share(u64::MAX)),
        ("no memory at 0x1", |_| {}, |g| g.ring(4, [1; 3])),
        (
            "names 1 parts of memory and gives 0",
            |_| {},
            |g| g.send(5, &pair(1, 0), &[]),
        ),
        (
            "goes back from 500 to 499",
            |g| {
                g.say(Op::Update, 500);
            },
            |g| {
                g.say(Op::Update, 499);
            },
        ),
        (
            "what only its keeper says",
            |_| {},
            |g| {
                g.say(Op::Run, 1);
            },
        ),
        (
            "a message 10, which is not known",
            |_| {},
            |g| {
                let mut bytes = [0; MESSAGE_BYTES];
                bytes[0] = 10;
                g.clock.send(&bytes, &[]).expect("the host");
            },
        ),
        (
            "sleeps for ever",
            |g| {
                g.say(Op::Request, NEVER);
            },
            |g| {
                g.say(Op::Wait, 0);
            },
        ),
    ];
    for (expected, before, wrong) in cases {
        let mut guest = Guest::ready();
        before(&mut guest);
        wrong(&mut guest);
        // Until the host has gone.
        let _ = guest.answer();
        let _ = guest.hear();
        let error = guest.end().expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn what_a_disk_cannot_do_fails_without_ending_the_run() {
    // Beyond the end, and a kind that nobody knows.
    for (kind, sector, status) in [(0, crate::ENDLESS_SECTORS, 1), (77, 0, 2)] {
        let mut guest = Guest::ready();
        guest.request(kind, sector);
        guest.kick(0, 1);
        assert_eq!(guest.answer(), Some(vec![0; 8]));
        guest.say(Op::Request, 50);
        guest.say(Op::Wait, 0);
        let mut call = [0; 20];
        guest.way_back.receive(&mut call).expect("a call");
        assert_eq!(guest.get(STATUS), [status]);
        guest.end().expect("nothing was wrong");
    }
}
