// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that were meant, for messages about names that do not exist.

use crate::shown;

/// Longest name that is compared: no name of ours is longer, and the distance
/// costs the product of the lengths.
const LENGTH_MAX: usize = 64;

/// The valid name that a wrong one was probably meant to be: the nearest,
/// whatever the case, if it is near enough; the first of equals.
pub fn nearest_name<'a>(name: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LENGTH_MAX {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    valid
        .into_iter()
        .map(|v| (edit_distance(&lower, &v.to_ascii_lowercase()), v))
        .filter(|&(distance, v)| distance <= 1 + v.len() / 3)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, v)| v)
}

/// Names that a message lists in full.
const LISTED_MAX: usize = 12;
/// Of more, how many of the nearest it shows.
const NEAREST: usize = 5;

/// The names that are valid, for a message about one that is not: all if they
/// are few, else those that are most like it, and how many there are.
pub fn choices(name: &str, valid: &[&str]) -> String {
    if valid.len() <= LISTED_MAX {
        return valid.join(", ");
    }
    let short: String = name.chars().take(LENGTH_MAX).collect();
    let lower = short.to_ascii_lowercase();
    let mut nearest: Vec<(bool, usize, &str)> = valid
        .iter()
        .map(|v| {
            let has = !lower.is_empty() && (v.contains(&lower) || lower.contains(*v));
            (!has, edit_distance(&lower, &v.to_ascii_lowercase()), *v)
        })
        .collect();
    nearest.sort_by_key(|&(apart, distance, _)| (apart, distance));
    let nearest: Vec<&str> = nearest.iter().take(NEAREST).map(|n| n.2).collect();
    format!("{}, … ({} in all)", nearest.join(", "), valid.len())
}

/// `no WHAT is called 'NAME'`, with the nearest and all valid names.
pub fn no_such(what: &str, name: &str, valid: &[&str]) -> String {
    let hint = match nearest_name(name, valid.iter().copied()) {
        Some(near) => format!("did you mean '{near}'? "),
        None => String::new(),
    };
    format!(
        "no {what} is called '{}'; {hint}valid: {}",
        shown(name),
        choices(name, valid)
    )
}

/// Insertions, deletions and replacements of bytes from one word to the other
/// (Levenshtein's distance).
pub fn edit_distance(from: &str, to: &str) -> usize {
    let to = to.as_bytes();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_names_the_nearest_are_shown() {
        assert_eq!(choices("x", &["a", "b"]), "a, b");
        let many: Vec<String> = (0..50).map(|i| format!("name_{i:02}")).collect();
        let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
        many.push("dirty_ratio");
        let text = choices("dirty", &many);
        assert!(text.starts_with("dirty_ratio, name_"), "{text}");
        assert!(text.ends_with(", … (51 in all)"), "{text}");
        assert_eq!(text.matches("name_").count(), 4);
    }

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let known = ["serial", "parallel", "seek", "sata-7200-2008"];
        assert_eq!(nearest_name("serail", known), Some("serial"));
        assert_eq!(nearest_name("SERIAL", known), Some("serial"));
        assert_eq!(nearest_name("sata-7200", known), Some("sata-7200-2008"));
        assert_eq!(nearest_name("nvme", known), None);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
    }
}
