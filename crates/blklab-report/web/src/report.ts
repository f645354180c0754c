// SPDX-License-Identifier: MIT OR Apache-2.0
// The data of a page, as blklab-report's `model.rs` has them. Times are in ns.

import { unzlibSync } from "fflate";

export interface Report {
  format: number;
  title: string;
  phases: [string, string][];
  reasons: string[];
  verdict?: { figure: string };
  members: Member[];
}

export interface Member {
  label: string;
  context: [string, string][];
  start_ns: number;
  span_ns: number;
  groups: Group[];
  processes: { pid: number; name: string | null; group: number }[];
  curves: Curve[];
  devices: Device[];
  counters: Counter[];
  scheduler?: Scheduler;
  requests: Columns;
}

/** A counter of a run over time. */
export interface Counter extends Steps {
  counter: string;
  device: string | null;
  start_ns: number;
  max: number;
}

/** What waiting requests waited for. */
export interface Scheduler {
  dev: string;
  interval_ns: number;
  lines: { what: string; group: number | null; total_ns: number; ns: number[] }[];
  /** Since the one before; `read` makes them count from the start of the trace. */
  change_after: number[];
  change_line: number[];
}

export interface Group {
  name: string;
  colour: number;
}

export interface Curve {
  who: string;
  direction: string;
  measure: string;
  count: number;
  points: [number, number][];
  p50_ns: number;
  p99_ns: number;
  p999_ns: number;
  max_ns: number;
}

export interface Steps {
  interval_ns: number;
  means: number[];
  maxima: number[];
}

export interface Flow {
  interval_ns: number;
  ended: number[];
  phases_ns: number[][];
  max_ns: number[];
  background_max_ns: number[];
  read_bytes: number[];
  write_bytes: number[];
  served_bytes: number[][];
  idle_ns: number[];
}

export interface Device {
  dev: string;
  name: string | null;
  nr_requests: number | null;
  queue_depth: number | null;
  flow: Flow;
  in_queue: Steps;
  held: Steps;
  in_device: Steps;
}

/** A column for each thing that is known of single requests. */
export interface Columns {
  seen: number;
  complete_from_ns: number;
  /** Since the one before; `unpacked` makes them count from the start of the trace. */
  start: number[];
  get: number[];
  insert: number[];
  issue: number[];
  complete: number[];
  sector: number[];
  sectors: number[];
  bios: number[];
  dev: number[];
  process: number[];
  flag: number[];
  flags: string[];
  sync: number[];
  phases: number[][];
  ahead: number[];
  ahead_pid: number[];
  ahead_nr: number[];
  behind: number[];
  behind_pid: number[];
  behind_nr: number[];
}

/** Reads the data that the page carries: JSON, deflated, in base64. At once, so that who prints
 * the page or takes its picture when it has loaded sees all of it. */
export function read(): Report {
  const text = document.getElementById("data")?.textContent ?? "";
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const report: Report = JSON.parse(new TextDecoder().decode(unzlibSync(packed)));
  for (const member of report.members) {
    sumUp(member.requests.start);
    sumUp(member.scheduler?.change_after ?? []);
  }
  return report;
}

/** Differences become what they sum up to. */
function sumUp(all: number[]): void {
  for (let i = 1; i < all.length; i++) {
    all[i] += all[i - 1];
  }
}

/** A time in the largest unit that leaves a figure before the point. */
export function time(ns: number): string {
  const units: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
  for (const [unit, name] of units) {
    if (Math.abs(ns) >= unit) {
      const value = ns / unit;
      return `${Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2)} ${name}`;
    }
  }
  return `${Math.round(ns)} ns`;
}

/** Bytes with three figures. */
export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1000 && unit + 1 < units.length) {
    n /= 1024;
    unit++;
  }
  return `${unit === 0 ? n.toFixed(0) : n.toPrecision(3)} ${units[unit]}`;
}

/** A process in words. */
export function who(member: Member, place: number): string {
  const process = member.processes[place];
  if (process === undefined || process.pid === 0) {
    return "not known who";
  }
  return process.name === null ? `process ${process.pid}` : `${process.name} (${process.pid})`;
}

/** The same by its id. */
export function whoIs(member: Member, pid: number): string {
  return who(member, member.processes.findIndex((p) => p.pid === pid));
}
