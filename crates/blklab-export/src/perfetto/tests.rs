// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is written is read back with the same messages.

use super::messages::TracePacket;
use super::*;
use blklab_formats::TraceFile;
use blklab_formats::blkparse::BlkparseReader;
use blklab_trace::{Item, TraceSource};

/// `Trace`.
#[derive(Clone, PartialEq, prost::Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

/// Two adjacent writes in one request, and a read beside it.
const TEXT: &str = "\
  8,0    1        1     0.000000000    10  Q  WS 800 + 8 [dd]
  8,0    1        2     0.000001000    10  G  WS 800 + 8 [dd]
  8,0    1        3     0.000002000    10  Q  WS 808 + 8 [dd]
  8,0    1        4     0.000003000    10  M  WS 808 + 8 [dd]
  8,0    1        5     0.000004000    10  I  WS 800 + 16 [dd]
  8,0    0        1     0.000005000    11  Q   R 0 + 8 [cat]
  8,0    0        2     0.000006000    11  G   R 0 + 8 [cat]
  8,0    0        3     0.000007000    11  I   R 0 + 8 [cat]
  8,0    0        4     0.000010000    11  D   R 0 + 8 [cat]
  8,0    1        6     0.000020000    10  D  WS 800 + 16 [dd]
  8,0    0        5     0.000030000     0  C   R 0 + 8 [0]
  8,0    1        7     0.000050000     0  C  WS 800 + 16 [0]
  8,0    1        8     0.000060000    10  Q  WS 900 + 8 [dd]
";

fn packets() -> Vec<TracePacket> {
    let header = TraceHeader {
        devices: vec![(Dev { major: 8, minor: 0 }, "sda".to_owned())],
        ..TraceHeader::default()
    };
    let mut writer = PerfettoWriter::new(Vec::new(), &header);
    let mut reader = BlkparseReader::new(TEXT.as_bytes(), "test");
    reader.send_all(&mut writer).expect("sound");
    let bytes = writer.finish().expect("a vector has room");
    assert!(is_head(&bytes) && !is_head(&bytes[1..]));
    prost::Message::decode(&*bytes)
        .map(|trace: Trace| trace.packet)
        .expect("a trace")
}

/// Tracks by number: their names, behind those of their parents.
fn names(packets: &[TracePacket]) -> BTreeMap<u64, String> {
    let mut names: BTreeMap<u64, String> = BTreeMap::new();
    for track in packets.iter().filter_map(|p| p.track_descriptor.as_ref()) {
        let own = match (&track.name, &track.process) {
            (Some(name), _) => name.clone(),
            (None, Some(process)) => format!(
                "{} {}",
                process.process_name.as_deref().unwrap_or("?"),
                process.pid
            ),
            (None, None) => panic!("a track without a name"),
        };
        let parent = track.parent_uuid.map(|uuid| format!("{} / ", names[&uuid]));
        names.insert(track.uuid, parent.unwrap_or_default() + &own);
    }
    names
}

#[test]
fn tracks_slices_and_counters() {
    let packets = packets();
    let names = names(&packets);
    let mut lines = Vec::new();
    for packet in &packets {
        let Some(event) = &packet.track_event else {
            continue;
        };
        let what = match EventType::try_from(event.kind).expect("a type") {
            EventType::SliceBegin => format!("begin {}", event.name.as_deref().unwrap_or("")),
            EventType::SliceEnd => "end".to_owned(),
            EventType::Instant => format!("at {}", event.name.as_deref().unwrap_or("")),
            EventType::Counter => format!("= {}", event.counter_value.expect("a value")),
            EventType::Unspecified => panic!("no type"),
        };
        lines.push(format!(
            "{} {}: {what}",
            packet.timestamp.expect("a time"),
            names[&event.track_uuid]
        ));
    }
    let has = |line: &str| assert!(lines.iter().any(|l| l == line), "{line}: {lines:#?}");
    for line in [
        "0 dd 10 / I/O: begin WS",
        "0 dd 10 / I/O: begin Q2G",
        "50000 dd 10 / I/O: at C",
        "2000 dd 10 / I/O: begin WS",
        "2000 dd 10 / I/O: begin Q2M",
        "5000 cat 11 / I/O: begin R",
        "7000 8,0 sda / scheduler: begin R",
        "10000 8,0 sda / scheduler: end",
        "10000 8,0 sda / hardware queue of CPU 0: at D R",
        "20000 8,0 sda / hardware queue of CPU 1: at D WS",
        "10000 8,0 sda / slot 0: begin R",
        "30000 8,0 sda / slot 0: end",
        "20000 8,0 sda / slot 1: begin WS",
        "20000 8,0 sda / in device (D to C): = 2",
        "50000 8,0 sda / in device (D to C): = 0",
        "5000 8,0 sda / in queue (Q to C): = 3",
        "60000 dd 10: at WS without end",
    ] {
        has(line);
    }
    // What begins ends, and slices of one track lie within each other.
    let mut open: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut events: Vec<&TracePacket> =
        packets.iter().filter(|p| p.track_event.is_some()).collect();
    events.sort_by_key(|p| p.timestamp);
    for packet in events {
        let event = packet.track_event.as_ref().expect("an event");
        let stack = open.entry(event.track_uuid).or_default();
        match event.kind {
            1 => stack.push(packet.timestamp.expect("a time")),
            2 => assert!(stack.pop().is_some(), "an end without a beginning"),
            _ => {}
        }
    }
    assert!(open.values().all(Vec::is_empty), "{open:?}");
}

#[test]
fn a_flow_leads_from_q_over_d_to_c() {
    let packets = packets();
    let names = names(&packets);
    let events = packets.iter().filter_map(|p| p.track_event.as_ref());
    let mut flows: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for event in events {
        for flow in &event.flow_ids {
            flows
                .entry(*flow)
                .or_default()
                .push(names[&event.track_uuid].clone());
        }
        for flow in &event.terminating_flow_ids {
            flows.entry(*flow).or_default().push("C".to_owned());
        }
    }
    let flows: Vec<Vec<String>> = flows.into_values().collect();
    let life = |who: &str, slot: &str| {
        ["", "C", "8,0 sda / scheduler", slot]
            .map(|s| if s.is_empty() { who } else { s }.to_owned())
    };
    assert_eq!(
        flows,
        [
            life("cat 11 / I/O", "8,0 sda / slot 0"),
            life("dd 10 / I/O", "8,0 sda / slot 1"),
            life("dd 10 / I/O", "8,0 sda / slot 1"),
        ]
    );
}

/// The events of a trace.
fn events(source: &mut dyn TraceSource<Error = FormatError>) -> Vec<Event> {
    let mut all = Vec::new();
    while let Some(item) = source.next_item().expect("sound") {
        if let Item::Event(event) | Item::Message(event, _) = item {
            all.push(event);
        }
    }
    all
}

/// The events of a text, and those of what is written of it.
fn there_and_back(text: &str) -> [Vec<Event>; 2] {
    let open = || {
        let text = std::io::Cursor::new(text.as_bytes().to_vec());
        TraceFile::from_reader(text, "text").expect("a trace")
    };
    let mut writer = PerfettoWriter::new(Vec::new(), &TraceHeader::default());
    open().send_all(&mut writer).expect("sound");
    let bytes = writer.finish().expect("a vector has room");
    let copy = TraceFile::from_reader(std::io::Cursor::new(bytes), "copy");
    let mut copy = copy.expect("a trace");
    assert_eq!(copy.format().name, "perfetto");
    [events(&mut open()), events(&mut copy)]
}

#[test]
fn events_are_read_back() {
    let plugged = "\
  8,0    1        9     0.000061000    10  P   N [dd]
  8,0    1       10     0.000062000    10  U   N [dd] 1
";
    let [before, after] = there_and_back(&format!("{TEXT}{plugged}"));
    assert_eq!(before.len(), 15);
    assert_eq!(before, after);
}

/// Every action, with numbers of all sizes. ftrace does not say the device of a plug, nor how
/// long a command of a bio is that is passed through, nor that a flush has no sector.
#[test]
fn every_action_is_read_back() {
    let sample = blklab_testkit::root().join("testdata/blkparse/all-actions.txt");
    let text = std::fs::read_to_string(sample).expect("a sample");
    let [before, after] = there_and_back(&text).map(|all| {
        let is_plug = |e: &Event| {
            matches!(
                e.action,
                Action::Plug | Action::Unplug | Action::UnplugTimer
            )
        };
        let said = |e: Event| Event {
            sector: if e.sector == u64::MAX { 0 } else { e.sector },
            bytes: if e.rwbs.has(Rwbs::PC) || !e.bytes.is_multiple_of(512) {
                0
            } else {
                e.bytes
            },
            rwbs: Rwbs(e.rwbs.0 & !Rwbs::PC.0),
            ..e
        };
        let all = all.into_iter().filter(|e| !is_plug(e));
        all.map(said).collect::<Vec<Event>>()
    });
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
    }
}
