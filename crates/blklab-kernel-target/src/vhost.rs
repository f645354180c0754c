// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol by which a kernel finds a disk of another process: what it asks, and how
//! it is answered.
//!
//! Source: the vhost-user protocol of QEMU's documentation (docs/interop/vhost-user.rst),
//! with notifications in band, as virtio_uml sends them.

use crate::channel::{Channel, Received};
use crate::disk::Disk;
use crate::guest::{Memory, Region, Ring, RingAddresses};
use crate::request::{Request, Status};
use blklab_types::{Error, Time};
use rustix::fd::OwnedFd;
use std::fs::File;

/// Bytes of a message before its payload.
const HEADER_BYTES: usize = 12;
/// Longest payload that is taken: a configuration space of 256 bytes with its header.
const PAYLOAD_MAX: usize = 512;
/// Regions of memory, which the payload has room for.
const REGIONS_MAX: usize = 8;

/// Version 1 of the protocol.
const VERSION: u32 = 1;
/// The message answers one.
const IS_REPLY: u32 = 1 << 2;
/// The message is to be answered.
const NEEDS_REPLY: u32 = 1 << 3;

/// Beside the features of virtio: there are features of the protocol.
const HAS_PROTOCOL_FEATURES: u64 = 1 << 30;

/// Features of the protocol.
mod protocol {
    /// Any message can be answered.
    pub(super) const REPLY_ACK: u64 = 1 << 3;
    /// The disk can send messages, too.
    pub(super) const BACKEND_REQUESTS: u64 = 1 << 5;
    /// There is a configuration space.
    pub(super) const CONFIG: u64 = 1 << 9;
    /// Notifications are messages.
    pub(super) const INBAND_NOTIFICATIONS: u64 = 1 << 14;
    /// All that is offered, and needed.
    pub(super) const ALL: u64 = REPLY_ACK | BACKEND_REQUESTS | CONFIG | INBAND_NOTIFICATIONS;
}

/// Messages of the kernel, by number.
mod message {
    pub(super) const GET_FEATURES: u32 = 1;
    pub(super) const SET_FEATURES: u32 = 2;
    pub(super) const SET_OWNER: u32 = 3;
    pub(super) const SET_MEM_TABLE: u32 = 5;
    pub(super) const SET_VRING_NUM: u32 = 8;
    pub(super) const SET_VRING_ADDR: u32 = 9;
    pub(super) const SET_VRING_BASE: u32 = 10;
    pub(super) const GET_VRING_BASE: u32 = 11;
    pub(super) const SET_VRING_KICK: u32 = 12;
    pub(super) const SET_VRING_CALL: u32 = 13;
    pub(super) const SET_VRING_ERR: u32 = 14;
    pub(super) const GET_PROTOCOL_FEATURES: u32 = 15;
    pub(super) const SET_PROTOCOL_FEATURES: u32 = 16;
    pub(super) const GET_QUEUE_NUM: u32 = 17;
    pub(super) const SET_VRING_ENABLE: u32 = 18;
    pub(super) const SET_BACKEND_REQ_FD: u32 = 21;
    pub(super) const GET_CONFIG: u32 = 24;
    pub(super) const VRING_KICK: u32 = 35;
}

/// The message of a disk: requests have ended.
const BACKEND_VRING_CALL: u32 = 4;

/// A disk and the kernel's connection to it.
pub(crate) struct Connection {
    pub(crate) channel: Channel,
    /// For messages to the kernel, once it has given it.
    pub(crate) backend: Option<Channel>,
    memory: Memory,
    ring: Ring,
}

/// What came from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// A message.
    Message,
    /// Nothing: it has gone.
    Closed,
}

/// What a message of the kernel came to.
#[derive(Debug)]
pub(crate) enum Taken {
    /// What it said is done. The kernel may wait for this answer, and does nothing before
    /// it gets it.
    Message(Option<Vec<u8>>),
    /// The kernel has gone.
    Closed,
}

/// A message's payload, read from its front.
struct Payload<'a> {
    bytes: &'a [u8],
    channel: &'a Channel,
}

impl Payload<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        match self.bytes.split_first_chunk() {
            Some((first, rest)) => {
                self.bytes = rest;
                Ok(*first)
            }
            None => Err(self.channel.broken("has a message that is too short")),
        }
    }

    fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_ne_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_ne_bytes(self.take()?))
    }
}

impl Connection {
    pub(crate) fn new(channel: Channel) -> Connection {
        Connection {
            channel,
            backend: None,
            memory: Memory::default(),
            ring: Ring::default(),
        }
    }

    /// Takes one message and does what it says; its answer is still to be sent.
    ///
    /// # Errors
    /// If it is none of the protocol, or what it says cannot be.
    pub(crate) fn take(&mut self, now: Time, disk: &mut Disk) -> Result<Taken, Error> {
        let mut header = [0; HEADER_BYTES];
        let mut fds = match self.channel.receive(&mut header)? {
            Received::All(fds) => fds,
            Received::Closed => return Ok(Taken::Closed),
        };
        let [number, flags, len] = [0, 4, 8].map(|at| {
            let word = header[at..at + 4].try_into().expect("four bytes");
            u32::from_ne_bytes(word)
        });
        let len = len as usize;
        if len > PAYLOAD_MAX {
            let what = format!("has a message of {len} bytes; {PAYLOAD_MAX} are the most");
            return Err(self.channel.broken(&what));
        }
        let mut payload = [0; PAYLOAD_MAX];
        if len > 0 {
            match self.channel.receive(&mut payload[..len])? {
                Received::All(more) => fds.extend(more),
                Received::Closed => {
                    return Err(self.channel.broken("ends in the middle of a message"));
                }
            }
        }
        let own = self.answer(number, &payload[..len], fds, now, disk)?;
        let acknowledged = || (flags & NEEDS_REPLY != 0).then(|| 0_u64.to_ne_bytes().to_vec());
        let answer = own.or_else(acknowledged);
        Ok(Taken::Message(answer.map(|payload| {
            encode(number, VERSION | IS_REPLY, &payload)
        })))
    }

    /// Does what a message says; its answer, if it has one of its own.
    fn answer(
        &mut self,
        number: u32,
        payload: &[u8],
        fds: Vec<OwnedFd>,
        now: Time,
        disk: &mut Disk,
    ) -> Result<Option<Vec<u8>>, Error> {
        let mut p = Payload {
            bytes: payload,
            channel: &self.channel,
        };
        match number {
            message::GET_FEATURES => {
                let features = disk.description().features() | HAS_PROTOCOL_FEATURES;
                return Ok(Some(features.to_ne_bytes().to_vec()));
            }
            message::GET_PROTOCOL_FEATURES => {
                return Ok(Some(protocol::ALL.to_ne_bytes().to_vec()));
            }
            message::SET_PROTOCOL_FEATURES => {
                let chosen = p.u64()?;
                if chosen & protocol::ALL != protocol::ALL {
                    let what = "does without messages of the disk, which virtual time needs";
                    return Err(self.channel.broken(what));
                }
            }
            message::GET_QUEUE_NUM => return Ok(Some(1_u64.to_ne_bytes().to_vec())),
            message::GET_CONFIG => return Ok(Some(config(&mut p, disk)?)),
            message::SET_BACKEND_REQ_FD => {
                let Some(fd) = fds.into_iter().next() else {
                    return Err(self.channel.broken("gives no way back"));
                };
                self.backend = Some(Channel::new(fd, "way back to its disk"));
            }
            message::SET_MEM_TABLE => self.memory = memory(&mut p, fds)?,
            message::SET_VRING_NUM => {
                let entries = ring_number(&mut p)?;
                self.ring.set_entries(entries)?;
            }
            message::SET_VRING_ADDR => {
                ring_number(&mut p)?;
                let [descriptors, used, available] = [p.u64()?, p.u64()?, p.u64()?];
                self.ring.set_addresses(RingAddresses {
                    descriptors: self.memory.guest_address(descriptors)?,
                    available: self.memory.guest_address(available)?,
                    used: self.memory.guest_address(used)?,
                });
            }
            message::SET_VRING_BASE => {
                let base = ring_number(&mut p)?;
                self.ring.set_base(base as u16);
            }
            message::GET_VRING_BASE => {
                ring_number(&mut p)?;
                let mut reply = 0_u32.to_ne_bytes().to_vec();
                reply.extend(u32::from(self.ring.base()).to_ne_bytes());
                return Ok(Some(reply));
            }
            message::VRING_KICK => {
                ring_number(&mut p)?;
                for chain in self.ring.take(&self.memory)? {
                    let request = Request::read(&self.memory, chain)?;
                    disk.submit(now, &self.memory, request)?;
                }
            }
            message::SET_FEATURES
            | message::SET_OWNER
            | message::SET_VRING_KICK
            | message::SET_VRING_CALL
            | message::SET_VRING_ERR
            | message::SET_VRING_ENABLE => {}
            _ => {
                let what = format!("has a message {number}, which it was not offered");
                return Err(self.channel.broken(&what));
            }
        }
        Ok(None)
    }

    /// Gives requests back and asks for the kernel's attention, which it acknowledges
    /// on the way back.
    ///
    /// # Errors
    /// If the kernel has not said how.
    pub(crate) fn give_back(&mut self, ended: &[(Request, Status)]) -> Result<(), Error> {
        for (request, status) in ended {
            let len = request.end(&self.memory, *status)?;
            self.ring.give_back(&self.memory, request.head, len)?;
        }
        let mut payload = [0; 8];
        payload[4..].copy_from_slice(&0_u32.to_ne_bytes());
        let call = encode(BACKEND_VRING_CALL, VERSION | NEEDS_REPLY, &payload);
        self.way_back()?.send(&call, &[])
    }

    /// Takes the acknowledgement.
    ///
    /// # Errors
    /// If it is none.
    pub(crate) fn acknowledged(&self) -> Result<Came, Error> {
        let way_back = self.way_back()?;
        let mut reply = [0; HEADER_BYTES + 8];
        match way_back.receive(&mut reply)? {
            Received::Closed => Ok(Came::Closed),
            Received::All(_) if reply[..4] == BACKEND_VRING_CALL.to_ne_bytes() => Ok(Came::Message),
            Received::All(_) => Err(way_back.broken("answers what was not asked")),
        }
    }

    fn way_back(&self) -> Result<&Channel, Error> {
        let missing = || self.channel.broken("gives no way back");
        self.backend.as_ref().ok_or_else(missing)
    }
}

fn encode(number: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    for word in [number, flags, payload.len() as u32] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(payload);
    bytes
}

/// What is said of the one ring: the number behind its index.
fn ring_number(p: &mut Payload<'_>) -> Result<u32, Error> {
    match (p.u32()?, p.u32()?) {
        (0, number) => Ok(number),
        (index, _) => {
            let what = format!("speaks of ring {index}; a disk has ring 0 alone");
            Err(p.channel.broken(&what))
        }
    }
}

/// The part of the configuration space that is asked for, behind the question.
fn config(p: &mut Payload<'_>, disk: &Disk) -> Result<Vec<u8>, Error> {
    let [offset, len, flags] = [p.u32()?, p.u32()?, p.u32()?];
    let space = disk.description().config();
    let (from, len) = (offset as usize, len as usize);
    if len > PAYLOAD_MAX {
        let what = format!("asks for {len} bytes of a configuration space");
        return Err(p.channel.broken(&what));
    }
    let mut reply = Vec::with_capacity(HEADER_BYTES + len);
    for word in [offset, len as u32, flags] {
        reply.extend(word.to_ne_bytes());
    }
    // Behind its end it is zero.
    let byte = |at: usize| space.get(at).copied().unwrap_or(0);
    reply.extend((from..from.saturating_add(len)).map(byte));
    Ok(reply)
}

fn memory(p: &mut Payload<'_>, fds: Vec<OwnedFd>) -> Result<Memory, Error> {
    let [nr_regions, _padding] = [p.u32()?, p.u32()?];
    if nr_regions as usize > REGIONS_MAX || nr_regions as usize != fds.len() {
        let what = format!("names {nr_regions} parts of memory and gives {}", fds.len());
        return Err(p.channel.broken(&what));
    }
    let mut regions = Vec::with_capacity(fds.len());
    for fd in fds {
        let [guest, size, user, offset] = [p.u64()?, p.u64()?, p.u64()?, p.u64()?];
        regions.push(Region {
            guest,
            user,
            size,
            file: File::from(fd),
            offset,
        });
    }
    Memory::new(regions)
}
