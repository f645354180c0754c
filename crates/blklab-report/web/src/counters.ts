// SPDX-License-Identifier: MIT OR Apache-2.0
// What a run counted beside its events: requests and tags in use, dirty pages.

import { type Counter, type Device, type Member, bytes } from "./report";
import { type Line, draw } from "./series";
import { DASHES, theme } from "./theme";
import type { View } from "./view";

const PAGE = 4096;

/** Bytes in powers of two. */
const BYTES = Array.from({ length: 45 }, (_, i) => 2 ** i);

function of(member: Member, device: string | null, name: string): Counter | undefined {
  return member.counters.find((c) => c.counter === name && c.device === device);
}

/** Lines of a counter: its mean, filled, and its highest. */
function lines(c: Counter, label: string, place: number, unit: number): Line[] {
  const colour = theme().groups[place];
  const of = (all: number[]) => all.map((v) => v * unit);
  return [
    { label: `${label}, highest`, values: of(c.maxima), colour, width: 1, dash: DASHES[place] },
    { label: `${label}, mean`, values: of(c.means), colour, width: 2, fill: `${colour}33`, dash: DASHES[place] },
  ];
}

interface Picture {
  title: string;
  parts: [string, string][];
  device: string | null;
  limits: [string, (max: number) => string][];
  unit: number;
  format: (v: number) => string;
  incrs?: number[];
}

function picture(member: Member, p: Picture, view: View, place: HTMLElement): boolean {
  const own = p.parts.flatMap(([name, label], i) => {
    const counter = of(member, p.device, name);
    return counter === undefined ? [] : [{ counter, lines: lines(counter, label, i, p.unit) }];
  });
  if (own.length === 0) {
    return false;
  }
  const [{ counter }] = own;
  const limits = p.limits.flatMap(([name, words]): [number, string][] => {
    const all = of(member, p.device, name);
    return all === undefined ? [] : [[all.max * p.unit, words(all.max)]];
  });
  draw(
    {
      title: p.title,
      interval_ns: counter.interval_ns,
      from_ns: counter.start_ns - member.start_ns,
      format: p.format,
      incrs: p.incrs,
      limits,
      lines: own.flatMap((o) => o.lines),
    },
    view,
    place,
  );
  return true;
}

/** Requests or tags of a device; whether the run counted them. */
export function counted(member: Member, device: Device, view: View, place: HTMLElement): boolean {
  const own = { device: device.dev, unit: 1, format: (v: number) => String(+v.toFixed(2)) };
  const pools: [string, string][] = [
    ["read_requests", "reads"],
    ["write_requests", "writes"],
    ["sync_requests", "sync"],
    ["async_requests", "async"],
  ];
  const all: Picture[] = [
    {
      ...own,
      title: "Requests of each pool in use: the rest is free",
      parts: pools.filter(([name]) => of(member, device.dev, name) !== undefined),
      limits: [["pool_requests", (n) => `nr_requests of each pool: ${n}`]],
    },
    {
      ...own,
      title: "Scheduler tags in use: the rest is free",
      parts: [["scheduler_tags", "in use"]],
      limits: [["scheduler_tags_all", (n) => `all ${n}`]],
    },
    {
      ...own,
      title: "Driver tags in use: the rest is free",
      parts: [["driver_tags", "in use"]],
      limits: [["driver_tags_all", (n) => `all ${n}`]],
    },
  ];
  return all.map((p) => picture(member, p, view, place)).some((isThere) => isThere);
}

/** Pages of the cache that are to be written. */
export function dirty(member: Member, view: View, place: HTMLElement): void {
  picture(
    member,
    {
      title: "Dirty pages",
      device: null,
      unit: PAGE,
      format: bytes,
      incrs: BYTES,
      parts: [
        ["dirty_pages", "dirty"],
        ["writeback_pages", "under write-back"],
      ],
      limits: [
        ["dirty_limit_pages", () => "writers wait"],
        ["background_limit_pages", () => "write-back begins"],
      ],
    },
    view,
    place,
  );
}
