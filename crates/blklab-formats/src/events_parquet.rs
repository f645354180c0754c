// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of events that `trace convert` writes as Parquet, read back: a row is an event, with
//! the columns of the same table as CSV.

use crate::format::{Format, Opened};
use crate::input::Input;
use crate::source::Source;

/// Its row.
pub(crate) static FORMAT: Format = Format {
    name: "events-parquet",
    summary: "a table of events, as NAME.parquet of trace convert; read and written",
    has_printed_times: false,
    says_losses: false,
    says_flags: true,
    dialect: None,
    recognises: |input| Ok(input.fill(MAGIC.len())? == MAGIC),
    open,
};

/// What a file begins and ends with.
const MAGIC: &[u8] = b"PAR1";

#[cfg(not(feature = "parquet"))]
fn open(input: Input<Source>, _: crate::format::Others) -> Opened {
    Err(crate::FormatError::Header {
        input: input.name.clone(),
        problem: "it is Parquet, which this program was built without; convert it to CSV",
    })
}

#[cfg(feature = "parquet")]
fn open(input: Input<Source>, _: crate::format::Others) -> Opened {
    Ok(Box::new(reader::ParquetReader::new(input)?))
}

#[cfg(feature = "parquet")]
mod reader {
    use crate::events_csv::Table;
    use crate::format::Reader;
    use crate::input::Input;
    use crate::names;
    use crate::order::{Given, Held, Said};
    use crate::source::Source;
    use crate::store::Store;
    use crate::{FormatError, ReadCounts, plausible};
    use blklab_trace::{Action, Event, Item, TraceSource};
    use blklab_types::{Dev, Time};
    use bytes::Bytes;
    use parquet::errors::ParquetError;
    use parquet::file::reader::{ChunkReader, FileReader as _, SerializedFileReader};
    use parquet::record::reader::RowIter;
    use parquet::record::{Field, Row};
    use std::fmt;

    /// Reads a table of events.
    pub(super) struct ParquetReader {
        name: String,
        rows: RowIter<'static>,
        table: Table,
        /// Where the number of the recording is.
        recording_at: Option<usize>,
        recording: Option<u64>,
        /// The event behind the beginning of a recording.
        held: Option<Held>,
        given: Given,
        counts: ReadCounts,
    }

    impl fmt::Debug for ParquetReader {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.name)
        }
    }

    impl ParquetReader {
        pub(super) fn new(input: Input<Source>) -> Result<ParquetReader, FormatError> {
            let name = input.name.clone();
            match input.file() {
                Some(file) => ParquetReader::of_chunks(file, name),
                None => match Store::of_reader(input.into_rest(), &name)? {
                    Store::Memory(bytes) => ParquetReader::of_chunks(Bytes::from(bytes), name),
                    Store::File(file) => ParquetReader::of_chunks(file, name),
                },
            }
        }

        fn of_chunks(
            chunks: impl ChunkReader + 'static,
            name: String,
        ) -> Result<ParquetReader, FormatError> {
            let file = SerializedFileReader::new(chunks).map_err(|e| damaged(&name, &e))?;
            let schema = file.metadata().file_metadata().schema_descr_ptr();
            let titles: Vec<&[u8]> = schema
                .columns()
                .iter()
                .map(|c| c.name().as_bytes())
                .collect();
            let Some(table) = Table::new(&titles) else {
                return Err(FormatError::Header {
                    input: name,
                    problem: "a table without the columns of events (time_ns, action, device, \
                              rwbs, sector, bytes): those of requests and bios are not read",
                });
            };
            let recording_at = titles.iter().position(|title| *title == b"recording");
            Ok(ParquetReader {
                name,
                rows: RowIter::from_file_into(Box::new(file)),
                table,
                recording_at,
                recording: None,
                held: None,
                given: Given::default(),
                counts: ReadCounts::default(),
            })
        }

        /// What a row says; none if its cells do not fit.
        fn row(&mut self, row: &Row) -> Option<Held> {
            let cells: Vec<String> = row.get_column_iter().map(|(_, f)| text(f)).collect();
            let cells: Vec<&[u8]> = cells.iter().map(String::as_bytes).collect();
            let recording = self
                .recording_at
                .and_then(|at| crate::text::decimal(cells.get(at)?));
            let Some((event, said)) = self.table.event(&cells) else {
                self.counts.damaged += 1;
                self.counts
                    .example(|| "a row whose cells do not fit their columns".to_owned());
                return None;
            };
            let held = if event.action == Action::Message {
                self.counts.messages += 1;
                let text = String::from_utf8_lossy(said).into();
                Held::new(event, Said::Message(text))
            } else {
                let place = || format!("event at {}", event.time);
                if !plausible::admits(&event, &mut self.counts, place) {
                    return None;
                }
                let comm = Some(said).filter(|comm| !comm.is_empty());
                let said = comm.map_or(Said::Event, |comm| Said::Named(names::comm(comm)));
                Held::new(event, said)
            };
            let before = std::mem::replace(&mut self.recording, recording);
            if before.is_some() && before != recording {
                self.held = Some(held);
                return Some(Held::new(
                    Event::message(Time::ZERO, 0, 0, Dev::default()),
                    Said::NewRecording,
                ));
            }
            Some(held)
        }
    }

    impl TraceSource for ParquetReader {
        type Error = FormatError;

        fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
            if let Some(item) = self.given.pending() {
                return Ok(Some(item));
            }
            loop {
                let held = match self.held.take() {
                    Some(held) => Some(held),
                    None => match self.rows.next() {
                        Some(row) => {
                            let row = row.map_err(|e| damaged(&self.name, &e))?;
                            self.row(&row)
                        }
                        None => return Ok(None),
                    },
                };
                if let Some(held) = held {
                    return Ok(Some(self.given.item(held, &mut self.counts)));
                }
            }
        }
    }

    impl Reader for ParquetReader {
        fn counts(&self) -> &ReadCounts {
            &self.counts
        }
    }

    /// A cell as the same table has it in CSV.
    fn text(field: &Field) -> String {
        match field {
            Field::Null => String::new(),
            Field::Str(text) => text.clone(),
            other => other.to_string(),
        }
    }

    fn damaged(name: &str, e: &ParquetError) -> FormatError {
        FormatError::io(
            format!("read {name}"),
            std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                format!("damaged Parquet: {e}"),
            ),
        )
    }
}
