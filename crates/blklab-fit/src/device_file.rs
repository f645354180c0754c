// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file that `--device FILE.toml` takes.

use std::fmt::Write as _;

/// A line of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// A parameter.
    pub key: String,
    /// Its value.
    pub value: String,
    /// A remark behind it.
    pub remark: String,
}

/// A description of a device with remarks before it.
pub fn device_file(name: &str, remarks: &[String], lines: &[Line]) -> String {
    let mut text = String::new();
    for remark in remarks {
        let line = format!("# {remark}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let _ = write!(text, "format = 1\n\n[device]\nname = {}\n", quoted(name));
    for line in lines {
        let set = format!("{} = {}", line.key, value(&line.value));
        let _ = match line.remark.as_str() {
            "" => writeln!(text, "{set}"),
            remark => writeln!(text, "{set:<34} # {remark}"),
        };
    }
    text
}

/// Numbers as they are, everything else in quotes.
fn value(text: &str) -> String {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let is_number = is_plain && text.parse::<f64>().is_ok();
    let well_formed = !text.starts_with('.') && !text.ends_with('.');
    let padded = text.len() > 1 && text.starts_with('0') && !text.starts_with("0.");
    if is_number && well_formed && !padded && text.len() < 17 {
        text.to_owned()
    } else {
        quoted(text)
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_numbers_and_everything_else_is_quoted() {
        assert_eq!(value("29.8"), "29.8");
        assert_eq!(value("4096"), "4096");
        for text in ["4MiB", "on", "0:50us/50:54us", "007", "1.", "", "a\"b"] {
            assert!(value(text).starts_with('"'), "{text}");
        }
    }
}
