// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes and jobs whose names differ in a number only are one on the page:
//! `file1…file41`. A colour belongs to one of these throughout.

use std::collections::BTreeMap;

/// Groups with a colour and a line of their own; the others share the last one.
pub(crate) const GROUPS_MAX: usize = 7;

/// A name without the number at its end: `file12` and `kworker/0:1` are like
/// `file3` and `kworker/1:2`.
fn stem(name: &str) -> &str {
    let is_count = |c: char| c.is_ascii_digit() || ":/-".contains(c);
    let stem = name.trim_end_matches(is_count);
    if stem.is_empty() { name } else { stem }
}

/// Divides names into groups: the place of each, and the names of the groups.
///
/// ```text
/// file1 dd file2 file3  ->  0 1 0 0, [file1…file3, dd]
/// ```
pub(crate) fn groups<'a>(names: impl Iterator<Item = &'a str>) -> (Vec<usize>, Vec<String>) {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut members: Vec<Vec<&str>> = Vec::new();
    let mut all = Vec::new();
    for name in names {
        let place = *places.entry(stem(name)).or_insert_with(|| {
            members.push(Vec::new());
            members.len() - 1
        });
        if !members[place].contains(&name) {
            members[place].push(name);
        }
        all.push(place);
    }
    (all, members.iter().map(|m| together(m)).collect())
}

fn together(names: &[&str]) -> String {
    // By length first: file9 before file10.
    let mut names = names.to_vec();
    names.sort_unstable_by_key(|name| (name.len(), *name));
    match names.as_slice() {
        [first, .., last] => format!("{first}…{last}"),
        [only] => (*only).to_owned(),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_a_number_are_one() {
        let (places, names) = groups(["file9", "dd", "file10", "file1", "7", "dd"].into_iter());
        assert_eq!(places, [0, 1, 0, 0, 2, 1]);
        assert_eq!(names, ["file1…file10", "dd", "7"]);
    }
}
