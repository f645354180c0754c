// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types that metadata declare, laid out as the Common Trace Format 1.8 says
//! (section 4, <https://diamon.org/ctf/>).

use std::collections::HashMap;

/// A type, by its place in the table of all.
pub(super) type TypeId = u32;
/// A name, by its place in the table of all.
pub(super) type Symbol = u32;

/// How values of a type are stored.
#[derive(Clone, Debug)]
pub(super) enum Type {
    /// A whole number.
    Int(Int),
    /// The number of an enumeration, and what each range of it is called.
    Enum(Int, Vec<(Symbol, i128, i128)>),
    /// A number with a fraction, of which only the size matters.
    Float {
        size: u32,
        align: u32,
    },
    /// Bytes up to a NUL.
    String,
    Struct {
        fields: Vec<(Symbol, TypeId)>,
        align: u32,
    },
    /// One of several, by the label of an earlier enumeration.
    Variant {
        tag: Reference,
        options: Vec<(Symbol, TypeId)>,
    },
    Array {
        element: TypeId,
        len: u64,
    },
    /// As many as an earlier number says.
    Sequence {
        element: TypeId,
        len: Reference,
    },
}

/// A whole number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Int {
    /// In bits, 1 to 64.
    pub(super) size: u32,
    /// In bits.
    pub(super) align: u32,
    pub(super) signed: bool,
    /// Its order of bytes, where that is not the one of the trace.
    pub(super) big_endian: Option<bool>,
    /// Whether it is a character.
    pub(super) is_text: bool,
    /// Whether it is the value of a clock.
    pub(super) is_clock: bool,
}

/// The name of an earlier field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    /// In which part of the packet or event; none if that is not said.
    pub(super) scope: Option<Scope>,
    /// What it is called there.
    pub(super) name: Symbol,
}

/// The parts of a packet and of an event, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    PacketHeader = 0,
    PacketContext = 1,
    EventHeader = 2,
    StreamEventContext = 3,
    EventContext = 4,
    Fields = 5,
}

impl Scope {
    pub(super) const COUNT: usize = 6;

    /// The part with which an absolute name begins.
    pub(super) fn parse(path: &[&str]) -> Option<Scope> {
        Some(match path {
            ["trace", "packet", "header", ..] => Scope::PacketHeader,
            ["stream", "packet", "context", ..] => Scope::PacketContext,
            ["stream", "event", "header", ..] => Scope::EventHeader,
            ["stream", "event", "context", ..] => Scope::StreamEventContext,
            ["event", "context", ..] => Scope::EventContext,
            ["event", "fields", ..] => Scope::Fields,
            _ => return None,
        })
    }
}

/// All types and names.
#[derive(Debug, Default)]
pub(super) struct Types {
    types: Vec<Type>,
    /// How many types are nested in each, with itself.
    depths: Vec<u32>,
    names: Vec<String>,
    symbols: HashMap<String, Symbol>,
}

impl Types {
    pub(super) fn add(&mut self, new: Type) -> TypeId {
        let inner = match &new {
            Type::Struct { fields: parts, .. } | Type::Variant { options: parts, .. } => {
                let depths = parts.iter().map(|(_, id)| self.depth(*id));
                depths.max().unwrap_or(0)
            }
            Type::Array { element, .. } | Type::Sequence { element, .. } => self.depth(*element),
            Type::Int(_) | Type::Enum(..) | Type::Float { .. } | Type::String => 0,
        };
        self.types.push(new);
        self.depths.push(inner + 1);
        (self.types.len() - 1) as TypeId
    }

    /// How many types are nested in one, with itself.
    pub(super) fn depth(&self, id: TypeId) -> u32 {
        self.depths[id as usize]
    }

    pub(super) fn get(&self, id: TypeId) -> &Type {
        &self.types[id as usize]
    }

    /// A name, without the underscore that keeps it from being a keyword.
    pub(super) fn symbol(&mut self, name: &str) -> Symbol {
        let name = name.strip_prefix('_').unwrap_or(name);
        if let Some(known) = self.symbols.get(name) {
            return *known;
        }
        let new = self.names.len() as Symbol;
        self.names.push(name.to_owned());
        self.symbols.insert(name.to_owned(), new);
        new
    }

    pub(super) fn name(&self, symbol: Symbol) -> &str {
        &self.names[symbol as usize]
    }

    /// The boundary on which values of a type begin, in bits.
    pub(super) fn align(&self, id: TypeId) -> u32 {
        match self.get(id) {
            Type::Int(int) | Type::Enum(int, _) => int.align,
            Type::Float { align, .. } | Type::Struct { align, .. } => *align,
            Type::String => 8,
            Type::Variant { .. } => 1,
            Type::Array { element, .. } | Type::Sequence { element, .. } => self.align(*element),
        }
    }
}
