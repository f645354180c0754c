// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bio on its way, as submitters, queues and requests hand it on.

use crate::qos::BioQos;
use blklab_types::{Bio, Time};

/// A bio on its way through the queue, with the time of its Q.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The bio.
    pub bio: Bio,
    /// When it was queued.
    pub queued: Time,
    /// What policies of the queue noted of it.
    pub(crate) qos: BioQos,
}

impl Pending {
    /// A bio that no policy has seen.
    pub fn new(bio: Bio, queued: Time) -> Pending {
        Pending {
            bio,
            queued,
            qos: BioQos {
                issued: queued,
                ..BioQos::default()
            },
        }
    }
}
