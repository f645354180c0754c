// SPDX-License-Identifier: MIT OR Apache-2.0
// Numbers over time, by intervals: latency, throughput, depths.

import uPlot from "uplot";
import { counted, dirty } from "./counters";
import { type Device, type Member, type Report, type Steps, bytes, time } from "./report";
import { DASHES, FONT, theme } from "./theme";
import { type View, timeTick, whileSeen } from "./view";

/** So many times what was reached is too far for an axis. */
const LIMIT_FAR = 5;

/** A line of a chart. */
export interface Line {
  label: string;
  values: (number | null)[];
  colour: string;
  fill?: string;
  width?: number;
  dash?: number[];
}

export interface Chart {
  title: string;
  interval_ns: number;
  /** Where the first interval begins, if not with the trace. */
  from_ns?: number;
  lines: Line[];
  format: (v: number) => string;
  log?: boolean;
  /** Steps that an axis may have, where they are not decimal. */
  incrs?: number[];
  /** Values that are drawn as lines across. */
  limits?: [number, string][];
}

/** Draws a chart that follows the view; with what it is of in words. */
export function draw(chart: Chart, view: View, place: HTMLElement): uPlot | null {
  const n = Math.max(0, ...chart.lines.map((l) => l.values.length));
  if (n === 0) {
    return null;
  }
  const t = theme();
  // A limit that is far beyond what was reached is said: an axis up to it would be flat.
  const most = Math.max(1e-9, ...chart.lines.flatMap((l) => l.values.map((v) => v ?? 0)));
  const limits = (chart.limits ?? []).filter(([v]) => v <= LIMIT_FAR * most);
  const beyond = (chart.limits ?? []).filter(([v]) => v > LIMIT_FAR * most).map(([, words]) => `; beyond: ${words}`);
  // Each interval has its value up to its end.
  const x = Array.from({ length: n + 1 }, (_, i) => (chart.from_ns ?? 0) + i * chart.interval_ns);
  const column = (l: Line) => [...pad(l.values, n), l.values[n - 1] ?? null];
  const stepped = uPlot.paths.stepped!({ align: 1 });
  const grid = { stroke: t.faint, width: 1 };
  const axis = { stroke: t.ink, font: FONT, grid, ticks: grid };
  const own = document.createElement("div");
  place.append(own);
  const u = new uPlot(
    {
      width: Math.max(280, place.clientWidth),
      height: 190,
      title: `${chart.title}, by ${time(chart.interval_ns)}${beyond.join("")}`,
      padding: [10, 12, 0, 0],
      scales: {
        x: { time: false, range: () => view.range },
        y: chart.log ? { distr: 3 } : { range: (_, __, max) => [0, Math.max(max, ...limits.map(([v]) => v), 1e-9) * 1.05] },
      },
      axes: [
        { ...axis, size: 34, values: (_, all) => all.map((v) => timeTick(v, view.range)), space: 100 },
        {
          ...axis,
          size: 86,
          values: (_, all) => all.map((v) => (v === null ? "" : chart.format(v))),
          ...(chart.log ? { splits: powers } : {}),
          ...(chart.incrs ? { incrs: chart.incrs } : {}),
        },
      ],
      cursor: { sync: { key: "time" }, drag: { x: true, y: false, setScale: false } },
      legend: { live: true },
      series: [
        { label: "at", value: (_, v) => (v === null ? "–" : timeTick(v, view.range)) },
        ...chart.lines.map((l) => ({
          label: l.label,
          stroke: l.colour,
          fill: l.fill,
          width: l.width ?? 1.5,
          dash: l.dash,
          paths: stepped,
          points: { show: false },
          value: (_: uPlot, v: number | null) => (v === null ? "–" : chart.format(v)),
        })),
      ],
      hooks: {
        setSelect: [
          (u) => {
            if (u.select.width > 4) {
              view.set(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
            }
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
        draw: limits.map((one) => (u: uPlot) => limit(u, one)),
      },
    },
    [x, ...chart.lines.map(column)] as uPlot.AlignedData,
    own,
  );
  const follow = () => u.setScale("x", { min: view.range[0], max: view.range[1] });
  view.onChange(whileSeen(own, follow));
  u.over.addEventListener("dblclick", () => view.reset());
  new ResizeObserver(() => u.setSize({ width: Math.max(280, place.clientWidth), height: 190 })).observe(place);
  return u;
}

function pad(values: (number | null)[], n: number): (number | null)[] {
  return values.length === n ? values : [...values, ...Array<number | null>(n - values.length).fill(0)];
}

function limit(u: uPlot, [value, label]: [number, string]): void {
  const y = u.valToPos(value, "y", true);
  const { left, width, top } = u.bbox;
  if (y < top) {
    return;
  }
  u.ctx.save();
  u.ctx.strokeStyle = u.ctx.fillStyle = theme().ink;
  u.ctx.setLineDash([6, 4]);
  u.ctx.beginPath();
  u.ctx.moveTo(left, y);
  u.ctx.lineTo(left + width, y);
  u.ctx.stroke();
  u.ctx.textAlign = "right";
  u.ctx.textBaseline = "middle";
  const above = y - 9 * devicePixelRatio;
  u.ctx.fillText(label, left + width - 4, above < top + 6 ? y + 9 * devicePixelRatio : above);
  u.ctx.restore();
}

/** Bytes in powers of two. */
const BYTES = Array.from({ length: 45 }, (_, i) => 2 ** i);

/** The powers of ten on an axis. */
export function powers(_: uPlot, __: number, min: number, max: number): number[] {
  const all: number[] = [];
  for (let e = Math.ceil(Math.log10(min) - 1e-9); e <= Math.floor(Math.log10(max) + 1e-9); e++) {
    all.push(10 ** e);
  }
  return all;
}

/** The longest of each interval, and the mean by what was waited for. */
export function latency(report: Report, device: Device, view: View, place: HTMLElement): void {
  const t = theme();
  const f = device.flow;
  const there = (all: number[]) => all.map((v) => (v > 0 ? v : null));
  draw(
    {
      title: "The longest request",
      interval_ns: f.interval_ns,
      format: time,
      log: true,
      lines: [
        { label: "somebody waited for", values: there(f.max_ns), colour: t.groups[1], width: 2 },
        { label: "in the background", values: there(f.background_max_ns), colour: t.groups[7], dash: DASHES[1] },
      ].filter((l) => l.values.some((v) => v !== null)),
    },
    view,
    place,
  );
  // Each part lies upon those below it: the highest is drawn first.
  const used = report.phases.map((_, k) => k).filter((k) => f.phases_ns[k].some((v) => v > 0));
  const sums = used.map((_, j) => f.ended.map((_, i) => used.slice(0, j + 1).reduce((s, k) => s + f.phases_ns[k][i], 0)));
  draw(
    {
      title: "Mean latency of what somebody waited for, divided; each part up to its line",
      interval_ns: f.interval_ns,
      format: time,
      lines: used
        .map((k, j) => ({ label: report.phases[k][1], values: sums[j], colour: t.ink, width: 0.5, fill: t.phases[k] }))
        .reverse(),
    },
    view,
    place,
  );
}

/** Throughput and depths. */
export function load(member: Member, device: Device, view: View, place: HTMLElement): void {
  const t = theme();
  const f = device.flow;
  const rate = (all: number[]) => all.map((b) => (b * 1e9) / Math.max(f.interval_ns, 1));
  draw(
    {
      title: "Throughput",
      interval_ns: f.interval_ns,
      format: (v) => `${bytes(v)}/s`,
      incrs: BYTES,
      lines: [
        { label: "reads", values: rate(f.read_bytes), colour: t.groups[0], width: 2 },
        { label: "writes", values: rate(f.write_bytes), colour: t.groups[1], dash: DASHES[1], width: 2 },
      ].filter((l) => l.values.some((v) => v > 0)),
    },
    view,
    place,
  );
  const depth = (title: string, steps: Steps, limit?: [number, string]) =>
    draw(
      {
        title,
        interval_ns: steps.interval_ns,
        format: (v) => String(+v.toFixed(2)),
        limits: limit && [limit],
        lines: [
          { label: "highest", values: steps.maxima, colour: t.groups[5], width: 1 },
          { label: "mean", values: steps.means, colour: t.groups[0], width: 2, fill: `${t.groups[0]}33` },
        ],
      },
      view,
      place,
    );
  const known = (n: number | null, what: string): [number, string] | undefined => (n === null ? undefined : [n, `${what} ${n}`]);
  depth("Bios between Q and C", device.in_queue);
  // Up to 4.20 reads and writes have a pool each.
  const kernel = member.context.find(([key]) => key === "kernel")?.[1] ?? "";
  const pools = /^[234]\./.test(kernel) ? "nr_requests of reads, and of writes:" : "nr_requests";
  if (!counted(member, device, view, place)) {
    depth("Requests between I and C", device.held, known(device.nr_requests, pools));
  }
  depth("Requests at the device, between D and C", device.in_device, known(device.queue_depth, "queue_depth"));
  dirty(member, view, place);
}

/** The device that most went through. */
export function busiest(member: Member): Device | undefined {
  const weight = (d: Device) => [...d.flow.read_bytes, ...d.flow.write_bytes].reduce((a, b) => a + b, 0);
  return [...member.devices].sort((a, b) => weight(b) - weight(a))[0];
}
