// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether what was written can be read by others, told without their programs.

/// Elements of HTML without an end.
const VOID: [&str; 5] = ["meta", "link", "br", "img", "input"];

/// Elements whose content is no HTML.
const RAW: [&str; 2] = ["script", "style"];

/// Asserts that every element ends inside the one in which it began, that no `<` stands
/// alone, and that no control character reaches who looks at the page.
pub(crate) fn html(page: &str) {
    let is_shown = |c: char| !c.is_control() || "\n\t".contains(c);
    assert!(page.chars().all(is_shown), "a control character in HTML");
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page
        .strip_prefix("<!doctype html>")
        .expect("a page of HTML");
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = behind(comment, "-->");
            continue;
        }
        let tag = &rest[..end_of_tag(rest)];
        rest = &rest[tag.len() + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name.trim()), "the element that ends");
            continue;
        }
        let name = tag.split(|c: char| c.is_whitespace() || c == '/').next();
        let name = name.unwrap_or_default();
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric());
        assert!(!name.is_empty() && is_name, "no element: <{tag}>");
        if RAW.contains(&name) {
            rest = behind(rest, &format!("</{name}>"));
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "elements without an end: {open:?}");
}

/// Where a tag ends: at the first `>` that is in no value.
fn end_of_tag(tag: &str) -> usize {
    let mut quote = None;
    let end = tag.find(|c: char| {
        match quote {
            None if c == '"' || c == '\'' => quote = Some(c),
            Some(q) if c == q => quote = None,
            _ => {}
        }
        quote.is_none() && c == '>'
    });
    end.expect("a tag ends")
}

fn behind<'a>(text: &'a str, end: &str) -> &'a str {
    let at = text.find(end).unwrap_or_else(|| panic!("no {end}"));
    &text[at + end.len()..]
}

/// Asserts that bytes are a list of messages, as the file of a Perfetto trace is: how many.
pub(crate) fn messages(mut bytes: &[u8]) -> usize {
    /// `packet` of `Trace`: a field with a length.
    const PACKET: u64 = 1 << 3 | 2;
    let mut nr = 0;
    while !bytes.is_empty() {
        assert_eq!(number(&mut bytes), PACKET, "the field of a packet");
        let length = usize::try_from(number(&mut bytes)).expect("a length");
        let (packet, rest) = bytes.split_at_checked(length).expect("a whole packet");
        fields(packet);
        bytes = rest;
        nr += 1;
    }
    nr
}

/// Walks over the fields of a message.
fn fields(mut message: &[u8]) {
    while !message.is_empty() {
        let key = number(&mut message);
        assert!(key >> 3 > 0, "a field has a number");
        let length = match key & 7 {
            0 => {
                number(&mut message);
                0
            }
            1 => 8,
            2 => usize::try_from(number(&mut message)).expect("a length"),
            5 => 4,
            kind => panic!("a field of kind {kind}"),
        };
        message = message.get(length..).expect("a whole field");
    }
}

/// A number of Protocol Buffers: seven bits a byte.
fn number(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for place in 0..10 {
        let (byte, rest) = bytes.split_first().expect("a whole number");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number of more than ten bytes");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn pages_with_a_fault_are_told() {
        let page = |body: &str| html(&format!("<!doctype html><p>{body}</p>"));
        page("<a title=\"a > b\">x</a><br><img/><style>a < b</style><!-- <b> -->&lt;");
        for wrong in ["<b>", "</b>", "a < b", "<a href=\"", "\u{1b}", "<script>"] {
            assert!(catch_unwind(|| page(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn messages_are_walked_over() {
        assert_eq!(messages(&[10, 2, 8, 1, 10, 0]), 2);
        for wrong in [&[10, 9, 8][..], &[8, 1], &[10, 2, 8, 0x80], &[10, 1, 3]] {
            assert!(catch_unwind(|| messages(wrong)).is_err(), "{wrong:?}");
        }
    }
}
