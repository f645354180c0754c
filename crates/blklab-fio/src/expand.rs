// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens to an option line before its value is read: `${NAME}` becomes
//! the environment variable, `$pagesize`, `$mb_memory` and `$ncpus` become
//! numbers, and if one of these stood there, a value with + - * / is
//! calculated.
//!
//! fio 3.33 calls the program `bc` for the calculation; here it is done in
//! place, with integers as `bc` does by default (division drops the fraction).

use crate::surroundings::Surroundings;

/// Longest line after replacement: a variable may be long, but not that long.
const EXPANDED_BYTES_MAX: usize = 64 * 1024;

/// The line with everything replaced.
///
/// # Errors
/// The reason if the line grows too long or the calculation fails.
pub(crate) fn expand(line: &str, around: &dyn Surroundings) -> Result<String, String> {
    let line = replace_environment(line, around);
    if line.len() > EXPANDED_BYTES_MAX {
        return Err(format!(
            "the line is longer than {EXPANDED_BYTES_MAX} bytes after replacing variables"
        ));
    }
    let (line, replaced) = replace_words(line, around);
    if !replaced || line.contains('\'') {
        return Ok(line);
    }
    match line.split_once('=') {
        Some((name, value)) if value.contains(['+', '-', '*', '/']) => match calculate(value) {
            Some(result) => Ok(format!("{name}={result}")),
            None => Err(format!("cannot calculate '{}'", value.trim())),
        },
        _ => Ok(line),
    }
}

/// `${NAME}` by its value, or by nothing; a plain `$` stays.
fn replace_environment(line: &str, around: &dyn Surroundings) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("${") {
        let Some(length) = rest[at..].find('}') else {
            break;
        };
        out.push_str(&rest[..at]);
        out.push_str(
            &around
                .environment(&rest[at + 2..at + length])
                .unwrap_or_default(),
        );
        rest = &rest[at + length + 1..];
        if out.len() > EXPANDED_BYTES_MAX {
            return out;
        }
    }
    out.push_str(rest);
    out
}

fn replace_words(line: String, around: &dyn Surroundings) -> (String, bool) {
    let words = [
        ("$pagesize", around.page_size_bytes()),
        ("$mb_memory", around.memory_mib()),
        ("$ncpus", u64::from(around.cpus())),
    ];
    let mut replaced = false;
    let mut line = line;
    for (word, number) in words {
        if line.contains(word) {
            line = line.replace(word, &number.to_string());
            replaced = true;
        }
    }
    (line, replaced)
}

/// The value of an expression of integers, + - * / % ^ and parentheses.
fn calculate(text: &str) -> Option<i128> {
    let mut input = Input {
        rest: text.trim_start(),
        depth: 0,
    };
    let value = input.sum()?;
    input.rest.is_empty().then_some(value)
}

struct Input<'a> {
    rest: &'a str,
    depth: u32,
}

impl Input<'_> {
    /// Takes one of these characters if it comes next.
    fn take(&mut self, wanted: &[char]) -> Option<char> {
        let c = self.rest.chars().next().filter(|c| wanted.contains(c))?;
        self.rest = self.rest[c.len_utf8()..].trim_start();
        Some(c)
    }

    fn sum(&mut self) -> Option<i128> {
        let mut value = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let other = self.product()?;
            value = if sign == '+' {
                value.checked_add(other)?
            } else {
                value.checked_sub(other)?
            };
        }
        Some(value)
    }

    fn product(&mut self) -> Option<i128> {
        let mut value = self.power()?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let other = self.power()?;
            value = match sign {
                '*' => value.checked_mul(other)?,
                '/' => value.checked_div(other)?,
                _ => value.checked_rem(other)?,
            };
        }
        Some(value)
    }

    fn power(&mut self) -> Option<i128> {
        let base = self.operand()?;
        if self.take(&['^']).is_none() {
            return Some(base);
        }
        self.nested(|input| base.checked_pow(u32::try_from(input.power()?).ok()?))
    }

    fn operand(&mut self) -> Option<i128> {
        if self.take(&['-']).is_some() {
            return self.nested(|input| input.operand()?.checked_neg());
        }
        if self.take(&['(']).is_some() {
            let value = self.nested(Input::sum)?;
            self.take(&[')'])?;
            return Some(value);
        }
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(self.rest.len());
        let value = self.rest[..end].parse().ok()?;
        self.rest = self.rest[end..].trim_start();
        Some(value)
    }

    /// One level deeper; very deep nesting is refused.
    fn nested(&mut self, inner: impl FnOnce(&mut Self) -> Option<i128>) -> Option<i128> {
        self.depth += 1;
        let value = if self.depth <= 64 { inner(self) } else { None };
        self.depth -= 1;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::Fixed;

    fn check(line: &str, expected: &str) {
        let around = Fixed {
            environment: vec![("BS".into(), "8k".into())],
            ..Fixed::default()
        };
        assert_eq!(expand(line, &around).as_deref(), Ok(expected));
    }

    #[test]
    fn variables() {
        check("bs=${BS}", "bs=8k");
        check("bs=${NO}4k", "bs=4k");
        check("bs=$BS", "bs=$BS");
        check("bs=${BS", "bs=${BS");
        check("a=${BS}${BS}", "a=8k8k");
    }

    #[test]
    fn words_and_arithmetic() {
        check("size=$pagesize", "size=4096");
        check("size=8*$pagesize", "size=32768");
        check("size=($pagesize+1)*2/3", "size=2731");
        check("x=2^3^2+$ncpus-$ncpus", "x=512");
        check("size=8*4096", "size=8*4096");
    }

    #[test]
    fn bad_arithmetic_is_refused() {
        let around = Fixed::default();
        assert!(expand("size=$pagesize/0", &around).is_err());
        assert!(expand("size=$pagesize*2k", &around).is_err());
        assert!(expand(&format!("size=$pagesize+{}1", "(".repeat(1000)), &around).is_err());
    }
}
