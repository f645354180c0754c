// SPDX-License-Identifier: MIT OR Apache-2.0
//! The messages by which a kernel in virtual time and the keeper of the clock agree who
//! runs until when.
//!
//! Source: include/uapi/linux/um_timetravel.h. Each message is 16 bytes in the order of
//! the machine: what it is, a number that its acknowledgement repeats, a time in ns.

/// Bytes of a message.
pub(crate) const MESSAGE_BYTES: usize = 16;

/// A time that never comes.
pub(crate) const NEVER: u64 = i64::MAX as u64;

/// What a message is. RUN and FREE_UNTIL go to the kernel, the others come from it,
/// acknowledgements both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Op {
    /// The answer to a message.
    Ack = 0,
    /// The first message of a connection.
    Start = 1,
    /// The kernel wants to run at a time; a later request replaces it.
    Request = 2,
    /// The kernel sleeps until it may run.
    Wait = 3,
    /// The kernel asks for the time.
    Get = 4,
    /// The kernel says how far its clock is.
    Update = 5,
    /// The kernel runs, from this time on.
    Run = 6,
    /// The kernel may set its clock to anything before this time.
    FreeUntil = 7,
    /// The kernel asks for the time of day.
    GetTod = 8,
    /// A message to all who share the clock.
    Broadcast = 9,
}

impl Op {
    const ALL: [Op; 10] = [
        Op::Ack,
        Op::Start,
        Op::Request,
        Op::Wait,
        Op::Get,
        Op::Update,
        Op::Run,
        Op::FreeUntil,
        Op::GetTod,
        Op::Broadcast,
    ];
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) op: Op,
    /// What the acknowledgement repeats.
    pub(crate) seq: u32,
    /// Nanoseconds.
    pub(crate) time: u64,
}

impl Message {
    /// The answer to it.
    pub(crate) fn ack(self, time: u64) -> Message {
        Message {
            op: Op::Ack,
            time,
            ..self
        }
    }

    /// Its bytes.
    pub(crate) fn encode(self) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        bytes[..4].copy_from_slice(&(self.op as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.seq.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time.to_ne_bytes());
        bytes
    }

    /// The message of these bytes; the number of its kind if that is not known.
    pub(crate) fn decode(bytes: &[u8; MESSAGE_BYTES]) -> Result<Message, u32> {
        let [op, seq] = [0, 4].map(|at| {
            let word = bytes[at..at + 4].try_into().expect("four bytes");
            u32::from_ne_bytes(word)
        });
        let time = u64::from_ne_bytes(bytes[8..].try_into().expect("eight bytes"));
        let known = Op::ALL.get(op as usize);
        known.map(|&op| Message { op, seq, time }).ok_or(op)
    }
}

#[cfg(test)]
mod tests {
    use super::{Message, Op};

    #[test]
    fn messages_are_read_as_they_are_written() {
        for op in Op::ALL {
            let message = Message {
                op,
                seq: 7,
                time: 1 << 40,
            };
            assert_eq!(Message::decode(&message.encode()), Ok(message));
            assert_eq!(Op::ALL[op as usize], op);
        }
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&10_u32.to_ne_bytes());
        assert_eq!(Message::decode(&bytes), Err(10));
    }
}
