// SPDX-License-Identifier: MIT OR Apache-2.0
//! JSON in fio's layout: two spaces per level, ` : ` between key and value,
//! floats with six decimals, an empty line in an empty container.

use std::io;

use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// Prints a tree as fio does, without a line feed at the end.
pub(crate) fn to_text(value: &Value) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(
        &mut bytes,
        FioLayout {
            level: 0,
            empty: true,
        },
    );
    serde::Serialize::serialize(value, &mut serializer).expect("writing to memory cannot fail");
    String::from_utf8(bytes).expect("the serializer writes UTF-8")
}

struct FioLayout {
    level: usize,
    /// The container just begun has no items yet.
    empty: bool,
}

impl FioLayout {
    fn line<W: ?Sized + io::Write>(&self, writer: &mut W) -> io::Result<()> {
        write!(writer, "\n{:1$}", "", self.level * 2)
    }

    fn begin<W: ?Sized + io::Write>(&mut self, writer: &mut W, brace: &[u8]) -> io::Result<()> {
        self.level += 1;
        self.empty = true;
        writer.write_all(brace)
    }

    fn item<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.empty = false;
        if !first {
            writer.write_all(b",")?;
        }
        self.line(writer)
    }

    fn end<W: ?Sized + io::Write>(&mut self, writer: &mut W, brace: &[u8]) -> io::Result<()> {
        self.level -= 1;
        if self.empty {
            writer.write_all(b"\n")?;
        }
        self.empty = false;
        self.line(writer)?;
        writer.write_all(brace)
    }
}

impl Formatter for FioLayout {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        write!(writer, "{value:.6}")
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.item(writer, first)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.item(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b" : ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let tree = serde_json::json!({
            "name" : "a \"b\" \\",
            "jobs" : [ { "min" : 3, "mean" : 56645.495968 }, 1.0 ],
            "bins" : {}
        });
        let expected = r#"{
  "name" : "a \"b\" \\",
  "jobs" : [
    {
      "min" : 3,
      "mean" : 56645.495968
    },
    1.000000
  ],
  "bins" : {

  }
}"#;
        assert_eq!(to_text(&tree), expected);
    }
}
