// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arbitrary events through every form, arbitrary bytes into every reader.

use crate::synthetic::{Said, header, send};
use crate::{compact, readers};
use blklab_formats::blktrace::BlktraceStream;
use blklab_formats::{ReadCounts, TraceFile};
use blklab_trace::{Action, Event, Rwbs, TraceSource as _};
use blklab_types::{Dev, Time};
use proptest::prelude::*;

fn dev() -> impl Strategy<Value = Dev> {
    (any::<u16>(), any::<u16>()).prop_map(|(major, minor)| Dev { major, minor })
}

fn event() -> impl Strategy<Value = Event> {
    let place = (
        any::<u64>(),
        any::<u64>(),
        any::<u64>(),
        any::<u32>(),
        dev(),
        dev(),
    );
    let rest = (
        any::<u32>(),
        any::<u16>(),
        any::<u16>(),
        any::<u16>(),
        0..16_usize,
    );
    (place, rest).prop_map(|((time, sector, arg, bytes, dev, from_dev), rest)| {
        let (pid, error, cpu, rwbs, action) = rest;
        Event {
            time: Time(time),
            sector,
            arg,
            bytes,
            pid,
            dev,
            from_dev,
            error,
            cpu,
            rwbs: Rwbs(rwbs),
            action: Action::ALL[action],
        }
    })
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        8 => event().prop_map(|e| match e.action {
            Action::Message => Said::Message(e, "from an event".into()),
            _ => Said::Event(e),
        }),
        1 => (event(), "\\PC{0,200}").prop_map(|(e, text)| {
            Said::Message(Event { action: Action::Message, ..e }, text)
        }),
        1 => (any::<u64>(), any::<u32>(), "\\PC{0,20}")
            .prop_map(|(time, pid, comm)| Said::Process(Time(time), pid, comm)),
    ]
}

/// Records beyond that are damage.
fn within_68_years(mut said: Said) -> Said {
    match &mut said {
        Said::Event(e) | Said::Message(e, _) => e.time.0 %= 2_147_483_648_000_000_000,
        Said::Process(time, ..) => time.0 %= 2_147_483_648_000_000_000,
    }
    said
}

fn binary(said: &[Said]) -> Vec<u8> {
    let mut stream = BlktraceStream::new(Vec::new());
    send(said, &mut stream);
    stream.finish().unwrap()
}

/// Samples of all formats.
fn samples() -> Vec<Vec<u8>> {
    let traces = blklab_testkit::samples().into_iter();
    let all: Vec<Vec<u8>> = traces
        .filter(|path| TraceFile::is_trace(path))
        .map(|path| {
            let bytes = std::fs::read(path).expect("a file");
            // What is compressed would be damaged as such.
            zstd::decode_all(&bytes[..]).unwrap_or(bytes)
        })
        .collect();
    assert!(all.len() > 25, "{}", all.len());
    all
}

/// Reads `bytes` with every reader; none may panic.
fn read_all_ways(bytes: &[u8]) {
    let recognised = TraceFile::from_reader(std::io::Cursor::new(bytes.to_vec()), "x");
    if let Ok(mut file) = recognised {
        let _ = file.send_all(&mut Vec::new());
    }
    let _ = compact::read(bytes);
    readers::read_text(bytes);
    if let Some(b'\x07' | b'e') = bytes.first() {
        let mut reader = blklab_formats::blktrace::BlktraceReader::from_stream(bytes, "x");
        while let Ok(Some(_)) = reader.next_item() {}
    }
}

/// Puts `edits` over `bytes` and cuts them.
fn edited(
    mut bytes: Vec<u8>,
    edits: &[(prop::sample::Index, u8)],
    cut: prop::sample::Index,
) -> Vec<u8> {
    for (place, value) in edits {
        let place = place.index(bytes.len());
        bytes[place] = *value;
    }
    let len = cut.index(bytes.len()) + 1;
    bytes.truncate(len);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn compact_there_and_back(said in prop::collection::vec(said(), 0..300)) {
        let (_, back, counts) = compact::read(&compact::write(&said, &header(4))).unwrap();
        prop_assert_eq!(back, said);
        let of_the_file = ReadCounts { impossible: 0, backwards: 0, jumps: 0, ..counts };
        prop_assert!(of_the_file.is_clean());
    }

    #[test]
    fn binary_keeps_every_event(said in prop::collection::vec(said(), 0..100)) {
        let said: Vec<Said> = said.into_iter().map(within_68_years).collect();
        let (back, counts) = readers::read_binary(&binary(&said));
        let events = |said: &[Said]| said.iter().filter(|s| !matches!(s, Said::Process(..))).count();
        prop_assert_eq!(events(&back), events(&said));
        prop_assert_eq!((counts.unknown, counts.lost), (0, 0));
    }

    #[test]
    fn text_of_anything_reads_back(said in prop::collection::vec(said(), 0..100)) {
        let text = readers::print(&said);
        let (_, counts) = readers::read_text(&text);
        // Messages and names may contain anything but their own line.
        let nr_lines = String::from_utf8_lossy(&text).lines().count() as u64;
        prop_assert!(counts.events + counts.messages <= nr_lines);
    }

    #[test]
    fn damaged_files_do_no_harm(
        said in prop::collection::vec(said(), 1..60),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
    ) {
        read_all_ways(&edited(compact::write(&said, &header(2)), &edits, cut));
        read_all_ways(&edited(binary(&said), &edits, cut));
        read_all_ways(&edited(readers::print(&said), &edits, cut));
    }

    #[test]
    fn damaged_samples_do_no_harm(
        sample in prop::sample::select(samples()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        cut in any::<prop::sample::Index>(),
    ) {
        read_all_ways(&edited(sample, &edits, cut));
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        read_all_ways(&bytes);
        for start in [&b"\x07tae"[..], b"eat\x07", b"\x89blkev\r\n\x01\x00"] {
            bytes.splice(0..0, start.iter().copied());
            read_all_ways(&bytes);
        }
    }

    #[test]
    fn almost_text_does_no_harm(text in "([ 0-9,.]{0,20}[QGIDCMFAXURSPBTm]{0,2} [RWNFSAMD]{0,4} [-+<>/()\\[\\]0-9a-z .]{0,40}\n){0,30}") {
        read_all_ways(text.as_bytes());
    }
}
