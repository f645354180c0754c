// SPDX-License-Identifier: MIT OR Apache-2.0
//! What to change about a finding.
//!
//! What findings of a kind may say is written down once, as constants of its module that its
//! [`Kind`](super::Kind) lists; a finding carries them, with its own names and values filled
//! in. Text and JSON are made of them, and so is what a model tries: it knows a remedy by its
//! [`Act`], never by its words.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Something to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// Its name among the remedies of a kind, which stays: `fewer-at-a-time`.
    pub id: &'static str,
    /// What is done.
    pub act: Act,
    /// That in a clause; of a tunable what else it does. `{}` where findings fill something in.
    pub text: Cow<'static, str>,
    /// Whether the kernel is to be changed for it.
    pub is_patch: bool,
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// A tunable, by its path below `/sys/block/DEVICE` or another path of the context.
    Set {
        /// `queue/iosched/slice_idle`; `{}` where findings fill in a group.
        key: Cow<'static, str>,
        /// `0`; empty until a finding fills it in.
        value: Cow<'static, str>,
    },
    /// Another scheduler: one that does so.
    Scheduler(Serving),
    /// Those who suffer by their own doing keep at most so many requests under way.
    AtMost(u32),
    /// Those who cause it keep fewer requests under way.
    Fewer,
    /// Those who suffer submit several at a time.
    Batch,
    /// The one that suffers most gets a higher I/O priority.
    RaisePriority,
    /// The first of those who cause it gets another I/O priority.
    OtherPriority,
    /// Writes of those who suffer are sync.
    Sync,
    /// The device takes fewer commands at a time.
    FewerCommands,
    /// The queue has fewer requests.
    FewerRequests,
    /// The queue has more requests.
    MoreRequests,
    /// Requests may be as large as the device takes them.
    LargestRequests,
    /// Discards are cut smaller.
    SmallerDiscards,
    /// Write-back throttling aims at a longer latency.
    LaxerThrottling,
    /// Write-back begins at fewer dirty pages.
    EarlierWriteBack,
    /// A control group may do more, of which neither trace nor context say which it is.
    LooserLimit,
    /// Something that no run with a change can show.
    Outside(Outside),
}

/// What a scheduler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    /// Reads go before writes.
    ReadsFirst,
    /// Processes share the device.
    ByProcess,
    /// Writes do not wait for ever.
    WritesInTime,
    /// It neither idles nor holds requests back.
    AtOnce,
    /// Requests go by place.
    ByPlace,
    /// It stays with a stream for a while.
    ByStream,
    /// Writes of a zone stay in order.
    WritesInOrder,
}

/// Where the change would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// In what applications do.
    Applications,
    /// In filesystems and arrays: how they are made, laid out and mounted.
    Storage,
    /// In memory, CPUs and drivers.
    Machine,
    /// In the device.
    Device,
    /// In shares of control groups.
    Groups,
    /// In the kernel.
    Kernel,
    /// Nowhere: it finds out more.
    Nowhere,
}

impl Remedy {
    /// Something to do.
    pub const fn act(id: &'static str, act: Act, text: &'static str) -> Remedy {
        Remedy {
            id,
            act,
            text: Cow::Borrowed(text),
            is_patch: false,
        }
    }

    /// Something that no run with a change can show.
    pub const fn outside(id: &'static str, at: Outside, text: &'static str) -> Remedy {
        Remedy::act(id, Act::Outside(at), text)
    }

    /// Something to patch.
    pub const fn kernel(id: &'static str, act: Act, text: &'static str) -> Remedy {
        Remedy {
            id,
            act,
            text: Cow::Borrowed(text),
            is_patch: true,
        }
    }

    /// A tunable with its value; none if findings fill it in.
    pub const fn set(
        id: &'static str,
        key: &'static str,
        value: &'static str,
        note: &'static str,
    ) -> Remedy {
        let (key, value) = (Cow::Borrowed(key), Cow::Borrowed(value));
        Remedy::act(id, Act::Set { key, value }, note)
    }

    /// A tunable with this value.
    #[must_use]
    pub fn to(mut self, new: impl fmt::Display) -> Remedy {
        match &mut self.act {
            Act::Set { value, .. } => *value = Cow::Owned(new.to_string()),
            other => unreachable!("{}: {other:?} has no value", self.id),
        }
        self
    }

    /// With this in place of `{}`.
    #[must_use]
    pub fn filled_with(mut self, what: impl fmt::Display) -> Remedy {
        let what = what.to_string();
        self.text = Cow::Owned(self.text.replace("{}", &what));
        if let Act::Set { key, .. } = &mut self.act {
            *key = Cow::Owned(key.replace("{}", &what));
        }
        self
    }

    /// Whether nothing is left to be filled in.
    pub fn is_complete(&self) -> bool {
        let is_set = match &self.act {
            Act::Set { key, value } => !key.contains("{}") && !value.is_empty(),
            _ => true,
        };
        is_set && !self.text.contains("{}")
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        match &self.act {
            Act::Set { key, value } if text.is_empty() => write!(f, "{key} = {value}"),
            Act::Set { key, value } => write!(f, "{key} = {value}: {text}"),
            _ if self.is_patch => write!(f, "kernel: {text}"),
            _ => f.write_str(text),
        }
    }
}

impl Serialize for Remedy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", self.id)?;
        match &self.act {
            Act::Set { key, value } => {
                map.serialize_entry("change", "set")?;
                map.serialize_entry("key", key)?;
                map.serialize_entry("value", value)?;
                map.serialize_entry("note", &self.text)?;
            }
            _ => {
                let change = if self.is_patch { "kernel" } else { "do" };
                map.serialize_entry("change", change)?;
                map.serialize_entry("text", &self.text)?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_say_what_to_set() {
        const IDLE: Remedy = Remedy::set("no-idling", "queue/iosched/slice_idle", "0", "");
        assert_eq!(IDLE.to_string(), "queue/iosched/slice_idle = 0");
        let plug = Remedy::kernel("plug", Act::Batch, "plug");
        assert_eq!(plug.to_string(), "kernel: plug");
        const LIMIT: Remedy = Remedy::set("limit", "cgroup.{}.io.max", "", "that of {}");
        assert!(!LIMIT.is_complete());
        let limit = LIMIT.filled_with("a").to("max");
        assert!(limit.is_complete());
        assert_eq!(limit.to_string(), "cgroup.a.io.max = max: that of a");
        let json = serde_json::to_string(&limit).expect("plain data");
        assert_eq!(
            json,
            r#"{"id":"limit","change":"set","key":"cgroup.a.io.max","value":"max","note":"that of a"}"#
        );
    }
}
