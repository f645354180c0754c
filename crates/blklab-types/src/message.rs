// SPDX-License-Identifier: MIT OR Apache-2.0
//! Somebody's input in a message: short, and harmless to a terminal.

use std::borrow::Cow;

/// Characters of a name or value that a message repeats at most.
const SHOWN_MAX: usize = 80;

/// Bytes of a word of a message at most. Names of files stay whole up to here.
const WORD_BYTES_MAX: usize = 255;

/// A name or value as it stands in a message: its beginning, if it is long.
pub fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_MAX) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

/// A message in one line: blanks and line feeds become single blanks, what is
/// invisible or steers a terminal is written as `\u{1b}`, and words that are
/// longer than a file's name may be are cut.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text
        .split([' ', '\t', '\n', '\r'])
        .filter(|w| !w.is_empty())
    {
        if !line.is_empty() {
            line.push(' ');
        }
        let word = if word.len() > WORD_BYTES_MAX {
            shown(word)
        } else {
            Cow::Borrowed(word)
        };
        push_visibly(&mut line, &word);
    }
    line
}

/// Adds a text with what is invisible in it written out.
pub fn push_visibly(line: &mut String, text: &str) {
    for c in text.chars() {
        if is_invisible(c) {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
}

/// A text of somebody else as people may see it: what is invisible in it or steers a terminal
/// is written out, as `\u{1b}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_invisible) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() + 8);
    push_visibly(&mut line, text);
    Cow::Owned(line)
}

/// Control characters, and those that change the direction of a text or take
/// no room (Unicode 15, general category Cf, as far as terminals honour them).
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_input_is_cut_at_a_character() {
        let long = "é".repeat(81);
        assert_eq!(shown(&long), format!("{}…", "é".repeat(80)));
        assert_eq!(shown(&long[2..]), long[2..]);
    }

    #[test]
    fn what_steers_a_terminal_is_written_out() {
        assert_eq!(visible("dd ü"), "dd ü");
        assert_eq!(visible("\u{1b}]0;x\u{7}\u{9b}"), "\\u{1b}]0;x\\u{7}\\u{9b}");
    }

    #[test]
    fn a_message_is_one_visible_line() {
        assert_eq!(
            one_line("a\n\n b\u{1b}[31m \u{202e}c"),
            "a b\\u{1b}[31m \\u{202e}c"
        );
        let path = "p".repeat(255);
        assert_eq!(one_line(&path), path);
        assert_eq!(one_line(&"p".repeat(256)), format!("{}…", "p".repeat(80)));
    }
}
