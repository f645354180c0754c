// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages over Unix sockets, with file descriptors beside them.

use crate::failed::failed;
use blklab_types::Error;
use rustix::cmsg_space;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// Most file descriptors beside a message.
const FDS_MAX: usize = 8;

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
    /// What it is for, for errors.
    what: &'static str,
}

/// What a call to receive came to.
#[derive(Debug)]
pub(crate) enum Received {
    /// The buffer is full; these came with it.
    All(Vec<OwnedFd>),
    /// The other end has gone.
    Closed,
}

impl Channel {
    pub(crate) fn new(socket: OwnedFd, what: &'static str) -> Channel {
        Channel { socket, what }
    }

    /// Fills the buffer.
    ///
    /// # Errors
    /// If the connection breaks in the middle of a message.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Result<Received, Error> {
        let mut fds = Vec::new();
        let mut filled = 0;
        while filled < buffer.len() {
            let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(FDS_MAX))];
            let mut beside = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut buffer[filled..])];
            let got = recvmsg(
                &self.socket,
                &mut parts,
                &mut beside,
                RecvFlags::CMSG_CLOEXEC,
            );
            for message in beside.drain() {
                if let RecvAncillaryMessage::ScmRights(received) = message {
                    fds.extend(received);
                }
            }
            match got {
                Ok(got) if got.bytes > 0 => filled += got.bytes,
                Ok(_) | Err(Errno::CONNRESET) if filled == 0 => return Ok(Received::Closed),
                Ok(_) | Err(Errno::CONNRESET) => {
                    return Err(self.broken("ends in the middle of a message"));
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(self.broken(&format!("cannot be read: {e}"))),
            }
        }
        Ok(Received::All(fds))
    }

    /// Sends all of it, with file descriptors beside its first byte.
    ///
    /// # Errors
    /// If the other end has gone.
    pub(crate) fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Error> {
        let mut sent = 0;
        while sent < bytes.len() {
            let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(FDS_MAX))];
            let mut beside = SendAncillaryBuffer::new(&mut space);
            if sent == 0 && !fds.is_empty() {
                beside.push(SendAncillaryMessage::ScmRights(fds));
            }
            let parts = [IoSlice::new(&bytes[sent..])];
            match sendmsg(&self.socket, &parts, &mut beside, SendFlags::NOSIGNAL) {
                Ok(n) => sent += n,
                Err(Errno::INTR) => {}
                Err(e) => return Err(self.broken(&format!("cannot be written: {e}"))),
            }
        }
        Ok(())
    }

    /// What the other end did wrong.
    pub(crate) fn broken(&self, what: &str) -> Error {
        failed(&format!("the kernel's {} {what}", self.what))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
