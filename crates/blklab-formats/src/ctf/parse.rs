// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metadata in TSDL, the language of CTF 1.8 (appendix C of its text).

use super::metadata::{EventClass, Known, Metadata, Problem};
use super::tokens::{Token, tokens};
use super::types::{Int, Reference, Scope, Type, TypeId};
use std::collections::HashMap;

/// Structures in structures.
const DEPTH_MAX: u32 = 64;

/// Reads metadata.
pub(super) fn parse(text: &str) -> Result<Metadata, Problem> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
        aliases: Vec::new(),
        has_trace: false,
        metadata: Metadata::default(),
    };
    parser.metadata.known = Known::new(&mut parser.metadata.types);
    parser.metadata.clock_hz = 1_000_000_000;
    while parser.peek() != Token::End {
        parser.block()?;
    }
    if !parser.has_trace {
        return Err(parser.problem("there is no block 'trace'"));
    }
    Ok(parser.metadata)
}

struct Parser<'a> {
    tokens: Vec<(Token<'a>, u32)>,
    at: usize,
    depth: u32,
    /// Named types; those of an inner block come last.
    aliases: Vec<(String, TypeId)>,
    has_trace: bool,
    metadata: Metadata,
}

/// What stands in a block that is neither a type nor an assignment of one.
type Attributes<'a> = HashMap<String, Token<'a>>;
/// The parts that a block gives types to.
type Parts = HashMap<String, TypeId>;

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens[self.at].0
    }

    fn peek_second(&self) -> Token<'a> {
        let next = (self.at + 1).min(self.tokens.len() - 1);
        self.tokens[next].0
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn problem(&self, what: impl Into<String>) -> Problem {
        Problem::new(self.tokens[self.at].1, what)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.peek() == Token::Sign(sign);
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Problem> {
        if self.take(sign) {
            return Ok(());
        }
        Err(self.problem(format!("expected '{sign}', found {}", self.peek())))
    }

    fn name(&mut self) -> Result<&'a str, Problem> {
        match self.peek() {
            Token::Name(name) => {
                self.next();
                Ok(name)
            }
            other => Err(self.problem(format!("expected a name, found {other}"))),
        }
    }

    fn number(&mut self) -> Result<i128, Problem> {
        let is_negative = self.take("-");
        self.take("+");
        match self.peek() {
            Token::Number(n) => {
                self.next();
                Ok(if is_negative { -n } else { n })
            }
            other => Err(self.problem(format!("expected a number, found {other}"))),
        }
    }

    /// A block of the outermost level.
    fn block(&mut self) -> Result<(), Problem> {
        let line = self.tokens[self.at].1;
        match (self.peek(), self.peek_second()) {
            (Token::Name("trace"), Token::Sign("{")) => {
                let (attributes, parts) = self.body()?;
                self.trace(&attributes, &parts, line)?;
            }
            (Token::Name("stream"), Token::Sign("{")) => {
                let (attributes, parts) = self.body()?;
                let id = number_of(&attributes, "id", line)?.unwrap_or(0);
                let stream = self.metadata.streams.entry(id).or_default();
                stream.packet_context = parts.get("packet.context").copied();
                stream.event_header = parts.get("event.header").copied();
                stream.event_context = parts.get("event.context").copied();
            }
            (Token::Name("event"), Token::Sign("{")) => {
                let (attributes, parts) = self.body()?;
                self.event(&attributes, &parts, line)?;
            }
            (Token::Name("clock"), Token::Sign("{")) => {
                let (attributes, _) = self.body()?;
                if let Some(hz) = number_of(&attributes, "freq", line)? {
                    self.metadata.clock_hz = hz;
                }
                if self.metadata.clock_hz == 0 {
                    return Err(Problem::new(line, "a clock of 0 Hz does not go"));
                }
            }
            (Token::Name("env"), Token::Sign("{")) => {
                let (attributes, _) = self.body()?;
                let said = attributes.into_iter().map(|(name, value)| {
                    let text = match value {
                        Token::Text(text) | Token::Name(text) => text.to_owned(),
                        Token::Number(n) => n.to_string(),
                        Token::Sign(_) | Token::End => String::new(),
                    };
                    (name, text)
                });
                self.metadata.env.extend(said);
            }
            (Token::Name("callsite"), Token::Sign("{")) => {
                self.body()?;
            }
            _ => self.declaration()?,
        }
        // The semicolon behind a block is often left out.
        while self.take(";") {}
        Ok(())
    }

    fn trace(&mut self, said: &Attributes<'_>, parts: &Parts, line: u32) -> Result<(), Problem> {
        self.has_trace = true;
        let version = (
            number_of(said, "major", line)?,
            number_of(said, "minor", line)?,
        );
        if !matches!(version, (None | Some(1), None | Some(8))) {
            let (major, minor) = (version.0.unwrap_or(1), version.1.unwrap_or(8));
            let what = format!("CTF {major}.{minor} is not supported, only 1.8");
            return Err(Problem::new(line, what));
        }
        self.metadata.big_endian = match said.get("byte_order") {
            Some(Token::Name(order)) => match byte_order(order) {
                Some(Some(big_endian)) => big_endian,
                _ => return Err(Problem::new(line, "byte_order: expected le or be")),
            },
            _ => return Err(Problem::new(line, "the block 'trace' has no byte_order")),
        };
        self.metadata.packet_header = parts.get("packet.header").copied();
        Ok(())
    }

    fn event(&mut self, said: &Attributes<'_>, parts: &Parts, line: u32) -> Result<(), Problem> {
        let name = match said.get("name") {
            Some(Token::Text(name) | Token::Name(name)) => (*name).to_owned(),
            _ => return Err(Problem::new(line, "an event has no name")),
        };
        let id = number_of(said, "id", line)?.unwrap_or(0);
        let stream_id = number_of(said, "stream_id", line)?.unwrap_or(0);
        let class = EventClass {
            name,
            context: parts.get("context").copied(),
            fields: parts.get("fields").copied(),
        };
        let stream = self.metadata.streams.entry(stream_id).or_default();
        if stream.events.insert(id, class).is_some() {
            let what = format!("stream {stream_id} has two events with the number {id}");
            return Err(Problem::new(line, what));
        }
        Ok(())
    }

    /// `NAME { … }`: what is assigned in it.
    fn body(&mut self) -> Result<(Attributes<'a>, Parts), Problem> {
        self.next();
        self.expect("{")?;
        let nr_aliases = self.aliases.len();
        let (mut attributes, mut parts) = (Attributes::new(), Parts::new());
        while !self.take("}") {
            if self.is_declaration() {
                self.declaration()?;
                self.expect(";")?;
                continue;
            }
            let mut name = self.name()?.to_owned();
            while self.take(".") {
                name = format!("{name}.{}", self.name()?);
            }
            if self.take(":=") {
                parts.insert(name, self.type_of(Words::All)?);
            } else {
                self.expect("=")?;
                attributes.insert(name, self.value()?);
            }
            self.expect(";")?;
        }
        self.aliases.truncate(nr_aliases);
        Ok((attributes, parts))
    }

    /// The value of an attribute; of `clock.x.value` the last name.
    fn value(&mut self) -> Result<Token<'a>, Problem> {
        if matches!(self.peek(), Token::Sign("-" | "+") | Token::Number(_)) {
            return Ok(Token::Number(self.number()?));
        }
        match self.peek() {
            token @ Token::Text(_) => {
                self.next();
                Ok(token)
            }
            _ => {
                let mut name = self.name()?;
                while self.take(".") {
                    name = self.name()?;
                }
                Ok(Token::Name(name))
            }
        }
    }

    fn is_declaration(&self) -> bool {
        let Token::Name(word) = self.peek() else {
            return false;
        };
        ["typealias", "typedef", "struct", "variant", "enum"].contains(&word)
    }

    /// A declaration of a type.
    fn declaration(&mut self) -> Result<(), Problem> {
        match self.peek() {
            Token::Name("typealias") => {
                self.next();
                let id = self.type_of(Words::All)?;
                self.expect(":=")?;
                let name = self.words(Words::All)?;
                self.aliases.push((name, id));
            }
            Token::Name("typedef") => {
                self.next();
                let id = self.type_of(Words::ButLast)?;
                let name = self.name()?.to_owned();
                let id = self.lengths(id)?;
                self.aliases.push((name, id));
            }
            Token::Name("struct" | "variant" | "enum") => {
                self.type_of(Words::All)?;
            }
            other => {
                return Err(self.problem(format!("expected a block or a type, found {other}")));
            }
        }
        Ok(())
    }

    /// Names one behind the other, which together are the name of a type.
    fn words(&mut self, words: Words) -> Result<String, Problem> {
        let mut all = vec![self.name()?];
        while let Token::Name(name) = self.peek() {
            let is_last = !matches!(self.peek_second(), Token::Name(_));
            if words == Words::ButLast && is_last {
                break;
            }
            all.push(name);
            self.next();
        }
        Ok(all.join(" "))
    }

    fn alias(&self, name: &str) -> Option<TypeId> {
        let found = self.aliases.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, id)| *id)
    }

    /// A type.
    fn type_of(&mut self, words: Words) -> Result<TypeId, Problem> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.problem(format!("types are nested more than {DEPTH_MAX} deep")));
        }
        let id = match self.peek() {
            Token::Name("integer") => {
                let int = self.integer()?;
                self.metadata.types.add(Type::Int(int))
            }
            Token::Name("floating_point") => self.float()?,
            Token::Name("string") => {
                self.next();
                if self.take("{") {
                    self.attributes()?;
                }
                self.metadata.types.add(Type::String)
            }
            Token::Name("struct") => self.structure()?,
            Token::Name("variant") => self.variant()?,
            Token::Name("enum") => self.enumeration()?,
            _ => {
                let name = self.words(words)?;
                self.alias(&name)
                    .ok_or_else(|| self.problem(format!("no type is called '{name}'")))?
            }
        };
        self.depth -= 1;
        self.checked(id)
    }

    /// Names make types that are nested deeper than the text.
    fn checked(&self, id: TypeId) -> Result<TypeId, Problem> {
        if self.metadata.types.depth(id) > DEPTH_MAX {
            return Err(self.problem(format!("types are nested more than {DEPTH_MAX} deep")));
        }
        Ok(id)
    }

    /// Up to the closing brace.
    fn attributes(&mut self) -> Result<Attributes<'a>, Problem> {
        let mut all = Attributes::new();
        while !self.take("}") {
            let name = self.name()?.to_owned();
            self.expect("=")?;
            all.insert(name, self.value()?);
            self.expect(";")?;
        }
        Ok(all)
    }

    fn integer(&mut self) -> Result<Int, Problem> {
        let line = self.tokens[self.at].1;
        self.next();
        self.expect("{")?;
        let said = self.attributes()?;
        let size = number_of(&said, "size", line)?;
        let Some(size) = size.filter(|n| (1..=64).contains(n)) else {
            return Err(Problem::new(line, "an integer has 1 to 64 bits"));
        };
        let usual = if size % 8 == 0 { 8 } else { 1 };
        let says = |name, words: &[&str]| matches!(said.get(name), Some(Token::Name(n)) if words.contains(n));
        Ok(Int {
            size: size as u32,
            align: align_of(&said, usual, line)?,
            signed: says("signed", &["true", "TRUE"])
                || said.get("signed") == Some(&Token::Number(1)),
            big_endian: order_of(&said, line)?,
            is_text: says("encoding", &["UTF8", "utf8", "ASCII", "ascii"]),
            // `map = clock.NAME.value`.
            is_clock: said.contains_key("map"),
        })
    }

    fn float(&mut self) -> Result<TypeId, Problem> {
        let line = self.tokens[self.at].1;
        self.next();
        self.expect("{")?;
        let said = self.attributes()?;
        let bits = |name| number_of(&said, name, line).map(|n| n.unwrap_or(0));
        let size = bits("exp_dig")?.saturating_add(bits("mant_dig")?);
        if !matches!(size, 16 | 32 | 64 | 128) {
            return Err(Problem::new(line, "a number has 16, 32, 64 or 128 bits"));
        }
        let align = align_of(&said, 8, line)?;
        Ok(self.metadata.types.add(Type::Float {
            size: size as u32,
            align,
        }))
    }

    /// `struct NAME { … } align(N)`, or a name that is known.
    fn structure(&mut self) -> Result<TypeId, Problem> {
        self.next();
        let name = self.own_name("struct");
        if !self.take("{") {
            return self.known_as(name);
        }
        let nr_aliases = self.aliases.len();
        let fields = self.fields()?;
        self.aliases.truncate(nr_aliases);
        let mut align = 1;
        if self.peek() == Token::Name("align") {
            self.next();
            self.expect("(")?;
            let said = self.number()?;
            self.expect(")")?;
            align = checked_align(said).ok_or_else(|| self.problem(BAD_ALIGN))?;
        }
        let types = &self.metadata.types;
        let aligns = fields.iter().map(|(_, id)| types.align(*id));
        let align = aligns.fold(align, u32::max);
        let id = self.metadata.types.add(Type::Struct { fields, align });
        self.aliases.extend(name.map(|name| (name, id)));
        Ok(id)
    }

    /// `variant NAME <TAG> { … }`; the tag may come where it is used.
    fn variant(&mut self) -> Result<TypeId, Problem> {
        self.next();
        let name = self.own_name("variant");
        let mut tag = None;
        if self.take("<") {
            tag = Some(self.reference()?);
            self.expect(">")?;
        }
        let options = if self.take("{") {
            let nr_aliases = self.aliases.len();
            let options = self.fields()?;
            self.aliases.truncate(nr_aliases);
            options
        } else {
            let id = self.known_as(name.clone())?;
            match self.metadata.types.get(id) {
                Type::Variant { options, .. } => options.clone(),
                _ => return Err(self.problem("expected a variant")),
            }
        };
        let Some(tag) = tag else {
            // It is of use with a tag only.
            let none = Reference {
                scope: None,
                name: self.metadata.types.symbol(""),
            };
            let id = self
                .metadata
                .types
                .add(Type::Variant { tag: none, options });
            self.aliases.extend(name.map(|name| (name, id)));
            return Ok(id);
        };
        let id = self.metadata.types.add(Type::Variant { tag, options });
        self.aliases.extend(name.map(|name| (name, id)));
        Ok(id)
    }

    /// `enum NAME : TYPE { LABEL = 0 ... 30, … }`
    fn enumeration(&mut self) -> Result<TypeId, Problem> {
        self.next();
        let name = self.own_name("enum");
        let mut int = Int {
            size: 32,
            align: 8,
            ..Int::default()
        };
        if self.take(":") {
            let id = self.type_of(Words::All)?;
            match self.metadata.types.get(id) {
                Type::Int(of) => int = *of,
                _ => return Err(self.problem("an enumeration is one of integers")),
            }
        } else if let Some(Type::Int(of)) = self.alias("int").map(|id| self.metadata.types.get(id))
        {
            int = *of;
        }
        if !self.take("{") {
            return self.known_as(name);
        }
        let (mut labels, mut next) = (Vec::new(), 0);
        while !self.take("}") {
            let label = match self.next() {
                Token::Name(label) | Token::Text(label) => label,
                other => return Err(self.problem(format!("expected a label, found {other}"))),
            };
            let label = self.metadata.types.symbol(label);
            let (mut low, mut high) = (next, next);
            if self.take("=") {
                low = self.number()?;
                high = low;
                if self.take("...") {
                    high = self.number()?;
                }
            }
            next = high + 1;
            labels.push((label, low, high));
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        let id = self.metadata.types.add(Type::Enum(int, labels));
        self.aliases.extend(name.map(|name| (name, id)));
        Ok(id)
    }

    /// The name behind `struct`, `variant`, `enum`, with that word.
    fn own_name(&mut self, kind: &str) -> Option<String> {
        let Token::Name(name) = self.peek() else {
            return None;
        };
        self.next();
        Some(format!("{kind} {name}"))
    }

    fn known_as(&self, name: Option<String>) -> Result<TypeId, Problem> {
        let Some(name) = name else {
            return Err(self.problem(format!("expected '{{', found {}", self.peek())));
        };
        self.alias(&name)
            .ok_or_else(|| self.problem(format!("no type is called '{name}'")))
    }

    /// `TYPE NAME[LENGTH];` up to the closing brace.
    fn fields(&mut self) -> Result<Vec<(u32, TypeId)>, Problem> {
        let mut fields = Vec::new();
        while !self.take("}") {
            if matches!(self.peek(), Token::Name("typealias" | "typedef")) {
                self.declaration()?;
                self.expect(";")?;
                continue;
            }
            let id = self.type_of(Words::ButLast)?;
            if self.take(";") {
                // A type that is declared here, and used below.
                continue;
            }
            let name = self.name()?;
            let symbol = self.metadata.types.symbol(name);
            let id = self.lengths(id)?;
            fields.push((symbol, id));
            self.expect(";")?;
        }
        Ok(fields)
    }

    /// `[8]`, `[length]` behind a name, several of them.
    fn lengths(&mut self, mut element: TypeId) -> Result<TypeId, Problem> {
        let mut lengths = Vec::new();
        while self.take("[") {
            let length = match self.peek() {
                Token::Number(n) => {
                    self.next();
                    Ok(n as u64)
                }
                _ => Err(self.reference()?),
            };
            lengths.push(length);
            if lengths.len() > DEPTH_MAX as usize {
                return Err(self.problem(format!("more than {DEPTH_MAX} lengths")));
            }
            self.expect("]")?;
        }
        for length in lengths.into_iter().rev() {
            element = self.metadata.types.add(match length {
                Ok(len) => Type::Array { element, len },
                Err(len) => Type::Sequence { element, len },
            });
        }
        self.checked(element)
    }

    /// `a.b.c`
    fn reference(&mut self) -> Result<Reference, Problem> {
        let mut path = vec![self.name()?];
        while self.take(".") {
            path.push(self.name()?);
        }
        Ok(Reference {
            scope: Scope::parse(&path),
            name: self
                .metadata
                .types
                .symbol(path.last().expect("a name at least")),
        })
    }
}

/// How many of the names are that of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    All,
    /// The last one is that of a field.
    ButLast,
}

const BAD_ALIGN: &str = "an alignment is a power of two up to 4096";

fn checked_align(bits: i128) -> Option<u32> {
    let bits = u32::try_from(bits).ok()?;
    (bits.is_power_of_two() && bits <= 4096).then_some(bits)
}

fn align_of(said: &Attributes<'_>, usual: u32, line: u32) -> Result<u32, Problem> {
    match said.get("align") {
        None => Ok(usual),
        Some(Token::Number(n)) => checked_align(*n).ok_or_else(|| Problem::new(line, BAD_ALIGN)),
        Some(_) => Err(Problem::new(line, BAD_ALIGN)),
    }
}

/// `be`, `network`, `le`, or that of the trace.
fn byte_order(word: &str) -> Option<Option<bool>> {
    Some(match word {
        "be" | "network" => Some(true),
        "le" => Some(false),
        "native" => None,
        _ => return None,
    })
}

fn order_of(said: &Attributes<'_>, line: u32) -> Result<Option<bool>, Problem> {
    match said.get("byte_order") {
        None => Ok(None),
        Some(Token::Name(word)) if byte_order(word).is_some() => {
            Ok(byte_order(word).unwrap_or(None))
        }
        Some(other) => {
            let what = format!("byte_order: expected le, be or native, found {other}");
            Err(Problem::new(line, what))
        }
    }
}

fn number_of(said: &Attributes<'_>, name: &str, line: u32) -> Result<Option<u64>, Problem> {
    match said.get(name) {
        None => Ok(None),
        Some(Token::Number(n)) => match u64::try_from(*n) {
            Ok(n) => Ok(Some(n)),
            Err(_) => Err(Problem::new(line, format!("{name}: {n} is too small"))),
        },
        Some(other) => {
            let what = format!("{name}: expected a number, found {other}");
            Err(Problem::new(line, what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "trace { major = 1; minor = 8; byte_order = be; };";

    #[test]
    fn types_have_the_boundaries_of_their_parts() {
        let text = format!(
            "typealias integer {{ size = 27; align = 1; signed = false; map = clock.m.value; }} := uint27;
             typealias integer {{ size = 32; align = 32; }} := unsigned int;
             {TRACE} env {{ domain = \"kernel\"; tracer_major = 2; }};
             struct h {{ enum : integer {{ size = 5; }} {{ compact = 0 ... 30, extended = 31 }} id;
                 variant <id> {{ struct {{ uint27 timestamp; }} compact;
                                 struct {{ unsigned int id; }} extended; }} v; }} align(8);
             stream {{ id = 3; event.header := struct h; }};
             event {{ name = \"e\"; id = 7; stream_id = 3; fields := struct {{
                 unsigned int __n; string _s; unsigned int _cmd[ __n ][2]; }}; }};"
        );
        let metadata = parse(&text).unwrap();
        assert!(metadata.big_endian && metadata.is_of_kernel());
        let stream = &metadata.streams[&3];
        assert_eq!(metadata.types.align(stream.event_header.unwrap()), 8);
        let fields = stream.events[&7].fields.unwrap();
        let Type::Struct { fields, align: 32 } = metadata.types.get(fields) else {
            panic!("{:?}", metadata.types.get(fields));
        };
        let names: Vec<_> = fields.iter().map(|f| metadata.types.name(f.0)).collect();
        assert_eq!(names, ["_n", "s", "cmd"]);
        let Type::Sequence { element, len } = metadata.types.get(fields[2].1) else {
            panic!("{fields:?}");
        };
        assert_eq!((metadata.types.name(len.name), len.scope), ("_n", None));
        assert!(matches!(
            metadata.types.get(*element),
            Type::Array { len: 2, .. }
        ));
    }

    #[test]
    fn one_line_says_what_is_wrong() {
        let deep = "struct { ".repeat(100);
        for (text, expected) in [
            ("", "1: there is no block 'trace'"),
            ("trace {\n};", "1: the block 'trace' has no byte_order"),
            (
                "trace { major = 2; minor = 0; };",
                "1: CTF 2.0 is not supported, only 1.8",
            ),
            (
                "\nevent { id = 1; fields := struct { nothing x; }; };",
                "2: no type is called 'nothing'",
            ),
            (
                "typealias integer { size = 65; } := u;",
                "1: an integer has 1 to 64 bits",
            ),
            (
                "typealias integer { size = 8; align = 3; } := u;",
                "1: an alignment is a power of two up to 4096",
            ),
            ("clock { freq = 0; };", "1: a clock of 0 Hz does not go"),
            ("trace { byte_order = le", "1: expected ';', found the end"),
            (&deep, "1: types are nested more than 64 deep"),
            (
                "event { name = \"a\"; };\nevent { name = \"b\"; };",
                "2: stream 0 has two events with the number 0",
            ),
        ] {
            let problem = parse(text).unwrap_err();
            assert_eq!(format!("{}: {}", problem.line, problem.what), expected);
        }
    }
}
