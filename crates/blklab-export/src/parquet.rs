// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table as Apache Parquet: rows are gathered by columns, group by group.

use crate::columns::{Column, Kind, Value, shown};
use ::parquet::basic::{Compression, ConvertedType, GzipLevel, LogicalType, Repetition, Type};
use ::parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type as SchemaType;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

/// Rows of a group of Parquet, which are held in memory: some 20 MB.
const GROUP_ROWS: usize = 1 << 16;

/// Different texts that are kept to be used again; a trace has few but messages.
const TEXTS_MAX: usize = 4096;

fn parquet_error(e: ParquetError) -> io::Error {
    match e {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(e) => *e,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other.to_string()),
    }
}

/// Columns of a group that is being gathered, and the file with those before.
pub(crate) struct Groups<W: Write> {
    file: SerializedFileWriter<W>,
    columns: Vec<Cells>,
    nr_rows: usize,
    texts: HashMap<Box<str>, ByteArray>,
    text: String,
}

/// The values of a column, and where there are some.
struct Cells {
    numbers: Vec<i64>,
    texts: Vec<ByteArray>,
    /// Of an optional column: 1 for each row with a value, 0 for each without.
    levels: Option<Vec<i16>>,
    kind: Kind,
}

impl<W: Write + Send> Groups<W> {
    pub(crate) fn new<R>(columns: &[Column<R>], inner: W) -> io::Result<Groups<W>> {
        let fields: Result<Vec<_>, _> = columns.iter().map(|c| field(c).map(Arc::new)).collect();
        let schema = fields.and_then(|fields| {
            SchemaType::group_type_builder("trace")
                .with_fields(fields)
                .build()
        });
        let schema = schema.map_err(parquet_error)?;
        let level = GzipLevel::try_new(1).map_err(parquet_error)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::GZIP(level))
            .set_created_by(concat!("blklab ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let file = SerializedFileWriter::new(inner, Arc::new(schema), Arc::new(properties));
        let columns = columns.iter().map(|column| Cells {
            numbers: Vec::new(),
            texts: Vec::new(),
            levels: column.is_optional.then(Vec::new),
            kind: column.kind,
        });
        Ok(Groups {
            file: file.map_err(parquet_error)?,
            columns: columns.collect(),
            nr_rows: 0,
            texts: HashMap::new(),
            text: String::new(),
        })
    }

    pub(crate) fn row<R>(&mut self, columns: &[Column<R>], row: &R) -> io::Result<()> {
        for (cells, column) in self.columns.iter_mut().zip(columns) {
            let value = (column.get)(row);
            if let Some(levels) = &mut cells.levels {
                levels.push(i16::from(value != Value::Absent));
            } else {
                assert_ne!(value, Value::Absent, "every row has a {}", column.name);
            }
            match (value, cells.kind) {
                (Value::Absent, _) => {}
                (Value::Number(n), Kind::Number) => {
                    cells.numbers.push(i64::try_from(n).unwrap_or(i64::MAX));
                }
                (value, _) => {
                    let text = shown(value, &mut self.text);
                    cells.texts.push(kept(&mut self.texts, text));
                }
            }
        }
        self.nr_rows += 1;
        if self.nr_rows >= GROUP_ROWS {
            return self.end_group();
        }
        Ok(())
    }

    fn end_group(&mut self) -> io::Result<()> {
        if self.nr_rows == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group().map_err(parquet_error)?;
        for cells in &mut self.columns {
            let column = group.next_column().map_err(parquet_error)?;
            let mut column = column.expect("as many columns as the schema has");
            let levels = cells.levels.as_deref();
            let written = match cells.kind {
                Kind::Number => {
                    let column = column.typed::<Int64Type>();
                    column.write_batch(&cells.numbers, levels, None)
                }
                Kind::Text => {
                    let column = column.typed::<ByteArrayType>();
                    column.write_batch(&cells.texts, levels, None)
                }
            };
            written.map_err(parquet_error)?;
            column.close().map_err(parquet_error)?;
            cells.numbers.clear();
            cells.texts.clear();
            if let Some(levels) = &mut cells.levels {
                levels.clear();
            }
        }
        group.close().map_err(parquet_error)?;
        self.nr_rows = 0;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.end_group()?;
        self.file.into_inner().map_err(parquet_error)
    }
}

/// The text as Parquet takes it, which is shared where it was seen before.
fn kept(texts: &mut HashMap<Box<str>, ByteArray>, text: &str) -> ByteArray {
    if let Some(known) = texts.get(text) {
        return known.clone();
    }
    let new = ByteArray::from(text.as_bytes().to_vec());
    if texts.len() < TEXTS_MAX {
        texts.insert(text.into(), new.clone());
    }
    new
}

/// A column of the schema.
fn field<R>(column: &Column<R>) -> Result<SchemaType, ParquetError> {
    let repetition = if column.is_optional {
        Repetition::OPTIONAL
    } else {
        Repetition::REQUIRED
    };
    let (kind, logical, converted) = match column.kind {
        Kind::Number => (Type::INT64, None, ConvertedType::NONE),
        Kind::Text => (
            Type::BYTE_ARRAY,
            Some(LogicalType::String),
            ConvertedType::UTF8,
        ),
    };
    SchemaType::primitive_type_builder(column.name, kind)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .with_converted_type(converted)
        .build()
}
