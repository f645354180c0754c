// SPDX-License-Identifier: MIT OR Apache-2.0
// Distributions of latencies: the share of requests that took longer than a time, on
// logarithmic axes, with median, 99 %, 99.9 % and the longest marked.

import uPlot from "uplot";
import { type Curve, type Group, type Report, time } from "./report";
import { powers } from "./series";
import { DASHES, FONT, theme } from "./theme";

/** Curves of a chart at most. */
const CURVES_MAX = 8;

/** Charts of a comparison at most. */
const CHARTS_MAX = 6;

interface Named {
  name: string;
  colour: number;
  curve: Curve;
}

/** The distributions of a member: one chart for each measure. */
export function curves(all: Curve[], groups: Group[], place: HTMLElement): void {
  for (const [measure, title] of [["clat", "Completion latency of calls, as fio counts"], ["Q2C", "Bios, from Q to C"]]) {
    const own = all.filter((c) => c.measure === measure).sort((a, b) => b.count - a.count);
    const named = own.slice(0, CURVES_MAX).map((curve, i) => {
      const colour = groups.find((g) => g.name === curve.who)?.colour ?? i;
      return { name: `${curve.who} ${curve.direction}`, colour, curve };
    });
    const more = own.length > CURVES_MAX ? `; ${own.length - CURVES_MAX} with fewer are left out` : "";
    draw(named, `${title}${more}`, place);
  }
}

/** The same of several members, side by side: one chart for each job and direction. */
export function compare(report: Report, place: HTMLElement): void {
  const measure = report.members.some((m) => m.curves.some((c) => c.measure === "clat")) ? "clat" : "Q2C";
  const charts = new Map<string, Named[]>();
  report.members.forEach((m, i) => {
    for (const curve of m.curves.filter((c) => c.measure === measure)) {
      const title = measure === "clat" ? `${curve.who}: ${curve.direction}, completion latency` : `${curve.direction}, from Q to C`;
      const key = measure === "clat" ? title : `${curve.who}: ${title}`;
      charts.set(key, [...(charts.get(key) ?? []), { name: m.label, colour: i, curve }]);
    }
  });
  const weight = (named: Named[]) => named.reduce((sum, n) => sum + n.curve.count, 0);
  // What the matrix is judged by comes first.
  const [what, job] = (report.verdict?.figure ?? "").split(" of ");
  const isJudged = (title: string) => title.startsWith(`${job}: `) && title.includes(`: ${what.split(" ")[0]},`);
  const rank = ([title]: [string, Named[]]) => (isJudged(title) ? 0 : 1);
  const order = [...charts].sort((a, b) => rank(a) - rank(b) || b[1].length - a[1].length || weight(b[1]) - weight(a[1]));
  for (const [title, named] of order.slice(0, CHARTS_MAX)) {
    if (named.length > TOGETHER_MAX) {
      multiples(named, title, place);
    } else {
      draw(named, title, place);
    }
  }
}

/** Curves that can be told apart in one chart. */
const TOGETHER_MAX = 7;

/** A small chart for each of many: its curve dark, those of all others grey behind it. */
function multiples(named: Named[], title: string, place: HTMLElement): void {
  const heading = document.createElement("h4");
  heading.textContent = `${title}: each in turn, beside all others in grey`;
  const grid = document.createElement("div");
  grid.className = "multiples";
  place.append(heading, grid);
  const grey = theme().groups.length - 1;
  named.forEach((one, i) => {
    const own = document.createElement("div");
    grid.append(own);
    const others = named.filter((_, k) => k !== i).map((n) => ({ ...n, colour: grey }));
    draw([...others, { ...one, colour: 0 }], one.name, own, true);
  });
}

function draw(named: Named[], title: string, place: HTMLElement, isSmall = false): void {
  if (named.length === 0) {
    return;
  }
  const t = theme();
  // All are longer than something a little shorter than the shortest.
  const times = (c: Curve) => [before(c), ...c.points.map(([v]) => Math.max(v, 1))];
  const xs = [...new Set(named.flatMap((n) => times(n.curve)))].sort((a, b) => a - b);
  const columns = named.map(({ curve }) => slower(curve, xs));
  const least = Math.min(...named.map((n) => 1 / n.curve.count));
  const grid = { stroke: t.faint, width: 1 };
  const axis = { stroke: t.ink, font: FONT, grid, ticks: grid };
  const colour = (n: Named) => t.groups[Math.min(n.colour, t.groups.length - 1)];
  const size = () => ({ width: Math.max(isSmall ? 240 : 280, place.clientWidth), height: isSmall ? 190 : 330 });
  const own = document.createElement("div");
  place.append(own);
  const u = new uPlot(
    {
      ...size(),
      title,
      padding: isSmall ? [8, 8, 0, 0] : [8, 70, 0, 0],
      scales: { x: { time: false, distr: 3 }, y: { distr: 3, range: [least / 1.5, 1] } },
      axes: [
        { ...axis, size: 34, splits: powers, values: (_, all) => all.map(time) },
        { ...axis, size: 86, splits: powers, values: (_, all) => all.map(share) },
      ],
      cursor: { drag: { x: true, y: false } },
      legend: { show: !isSmall, live: true },
      series: [
        { label: "longer than", value: (_, v) => (v === null ? "–" : time(v)) },
        ...named.map((n, i) => ({
          label: n.name,
          stroke: colour(n),
          width: isSmall && i < named.length - 1 ? 1 : 2,
          dash: isSmall ? [] : DASHES[i % DASHES.length],
          spanGaps: true,
          points: { show: false },
          value: (_: uPlot, v: number | null) => (v === null ? "–" : share(v)),
        })),
      ],
      hooks: { draw: [(u) => marks(u, isSmall ? named.slice(-1) : named, least, !isSmall)] },
    },
    [xs, ...columns] as uPlot.AlignedData,
    own,
  );
  new ResizeObserver(() => u.setSize(size())).observe(place);
}

function before(curve: Curve): number {
  return Math.max(curve.points[0]?.[0] ?? 1, 1) * 0.98;
}

/** The share of values that are larger than each of these; the largest counts as one of them. */
function slower(curve: Curve, xs: number[]): (number | null)[] {
  const all: (number | null)[] = [];
  let [left, next] = [curve.count, 0];
  for (const x of xs) {
    let isOwn = false;
    while (next < curve.points.length && Math.max(curve.points[next][0], 1) <= x) {
      left -= curve.points[next][1];
      next++;
      isOwn = true;
    }
    if (x === before(curve)) {
      all.push(1);
      continue;
    }
    all.push(isOwn ? Math.max(left, 1) / curve.count : null);
  }
  return all;
}

/** Percentiles on the curves, and their names at their ends. */
function marks(u: uPlot, named: Named[], least: number, isNamed: boolean): void {
  const t = theme();
  const g = u.ctx;
  const ratio = devicePixelRatio || 1;
  g.save();
  g.font = `${12 * ratio}px system-ui, sans-serif`;
  g.textBaseline = "middle";
  const taken: [number, number][] = [];
  for (const n of named) {
    const c = n.curve;
    g.fillStyle = g.strokeStyle = t.groups[Math.min(n.colour, t.groups.length - 1)];
    for (const [ns, left] of [[c.p50_ns, 0.5], [c.p99_ns, 0.01], [c.p999_ns, 0.001], [c.max_ns, 1 / c.count]]) {
      if (left < 1 / c.count || left < least) {
        continue;
      }
      const [x, y] = [u.valToPos(Math.max(ns, 1), "x", true), u.valToPos(left, "y", true)];
      g.beginPath();
      g.arc(x, y, 3.5 * ratio, 0, 7);
      g.fill();
    }
    if (!isNamed) {
      continue;
    }
    const x = u.valToPos(Math.max(c.max_ns, 1), "x", true) + 8 * ratio;
    let y = u.valToPos(1 / c.count, "y", true);
    while (taken.some(([ox, oy]) => Math.abs(oy - y) < 14 * ratio && Math.abs(ox - x) < 130 * ratio)) {
      y -= 14 * ratio;
    }
    taken.push([x, y]);
    const text = `${n.name} ${time(c.max_ns)}`;
    const isBeyond = x + g.measureText(text).width > u.bbox.left + u.bbox.width + 68 * ratio;
    g.textAlign = isBeyond ? "right" : "left";
    const at = isBeyond ? x - 18 * ratio : x;
    g.lineWidth = 4 * ratio;
    g.strokeStyle = t.paper;
    g.strokeText(text, at, y);
    g.fillText(text, at, y);
  }
  g.restore();
}

/** A share, as a percentage with as many figures as it needs. */
function share(v: number): string {
  return `${+(v * 100).toPrecision(3)} %`;
}
