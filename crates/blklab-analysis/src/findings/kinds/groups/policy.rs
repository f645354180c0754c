// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which controller of control groups can let the tasks of a group sleep.

use crate::findings::Context;
use crate::findings::context::is_in;

/// A controller that lets tasks sleep before their bios get a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// io.cost: the group has used up its share.
    Cost,
    /// io.latency: another group misses its target.
    Latency,
}

/// The root of the groups, which neither holds back.
pub const ROOT: &str = "/";

impl Policy {
    /// Those that can hold the I/O of a group; of any where it is not known.
    pub fn of_group(group: Option<&str>, context: &Context) -> impl Iterator<Item = Policy> {
        let is_root = group == Some(ROOT);
        let cost = context.has_io_cost() && !is_root;
        let latency = protected_from(group, context).next().is_some();
        let all = [(cost, Policy::Cost), (latency, Policy::Latency)];
        all.into_iter().filter(|(can, _)| *can).map(|(_, p)| p)
    }
}

/// A group with a target for its latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protected<'a> {
    /// The group.
    pub group: &'a str,
    /// Its target.
    pub target_us: u64,
    /// What `io.latency` says.
    pub said: &'a str,
}

/// All groups with a target.
pub fn protected(context: &Context) -> impl Iterator<Item = Protected<'_>> {
    context.io_latency().filter_map(|(group, said)| {
        let mut words = said.split_whitespace();
        let target_us = words.find_map(|w| w.strip_prefix("target=")?.parse().ok())?;
        Some(Protected {
            group,
            target_us,
            said,
        })
    })
}

/// The groups for whose sake a group can be held: those with a target whose siblings it belongs
/// to, if these have none or a looser one. All of them where the group is not known.
pub fn protected_from<'a>(
    group: Option<&'a str>,
    context: &'a Context,
) -> impl Iterator<Item = Protected<'a>> {
    protected(context).filter(move |p| {
        let Some(group) = group else { return true };
        let Some(sibling) = sibling_of(p.group, group) else {
            return false;
        };
        let own = protected(context).find(|own| own.group == sibling);
        own.is_none_or(|own| own.target_us > p.target_us)
    })
}

/// What is a group, or what it is in, beside another one in the same parent; none if it is in
/// that one itself, or elsewhere.
fn sibling_of<'a>(beside: &str, group: &'a str) -> Option<&'a str> {
    if group == ROOT || is_in(group, beside) {
        return None;
    }
    let behind_parent = beside.rfind('/').map_or(0, |slash| slash + 1);
    let has_parent = group.get(..behind_parent) == beside.get(..behind_parent);
    let name = group.get(behind_parent..).filter(|name| !name.is_empty())?;
    let end = name.find('/').unwrap_or(name.len());
    has_parent.then(|| &group[..behind_parent + end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_with_looser_targets_are_held_for_the_sake_of_a_group() {
        let text = "cgroup.web.io.latency=8:0 target=2000\ncgroup.shop.io.latency=target=2000\n\
                    cgroup.job.io.latency=target=9000\ncgroup.a/b.io.latency=target=5";
        let context = Context::parse(text).expect("a context");
        let by = |group| -> Vec<&str> {
            let found = protected_from(group, &context);
            found.map(|p| p.group).collect()
        };
        assert_eq!(by(Some("batch")), ["job", "shop", "web"]);
        assert_eq!(by(Some("job")), ["shop", "web"]);
        assert_eq!(by(Some("job/x")), ["shop", "web"]);
        assert_eq!(by(Some("web")), [""; 0]);
        assert_eq!(by(Some("web/x")), [""; 0]);
        assert_eq!(by(Some("webs")), ["job", "shop", "web"]);
        assert_eq!(by(Some("a/c")), ["a/b", "job", "shop", "web"]);
        assert_eq!(by(Some("/")), [""; 0]);
        assert_eq!(by(None).len(), 4);
    }

    #[test]
    fn io_cost_holds_all_groups_but_the_root() {
        let context = Context::parse("io.cost.qos=8:0 enable=1").expect("a context");
        let can = |group| Policy::of_group(group, &context).collect::<Vec<_>>();
        assert_eq!(can(Some("/")), []);
        assert_eq!(can(Some("web")), [Policy::Cost]);
        assert_eq!(can(None), [Policy::Cost]);
    }
}
