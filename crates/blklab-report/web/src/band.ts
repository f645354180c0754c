// SPDX-License-Identifier: MIT OR Apache-2.0
// Who was served: a line for each group of processes.

import { type Device, type Member, time } from "./report";
import { LINE, Lanes, type Scale } from "./lanes";
import { theme } from "./theme";
import type { View } from "./view";

/** Requests in view from which on intervals are shown in place of them. */
const REQUESTS_MAX = 3000;

export class Band {
  private readonly lines: { name: string; group: number }[];
  private readonly dev: number;

  constructor(private readonly member: Member, private readonly device: Device, private readonly view: View, place: HTMLElement) {
    this.dev = member.devices.indexOf(device);
    this.lines = member.groups
      .map((g, group) => ({ name: g.name, group }))
      .filter(({ group }) => device.flow.served_bytes[group]?.some((b) => b > 0));
    const names = [...this.lines.map((l) => l.name), "device idle"];
    new Lanes(place, this.words(), names, view, (_, g, x) => this.paint(g, x));
  }

  private words(): string {
    const f = this.device.flow;
    const sums = this.lines.map(({ name, group }) => [name, f.served_bytes[group].reduce((a, b) => a + b, 0)] as const);
    const all = sums.reduce((a, [, b]) => a + b, 0);
    const idle = f.idle_ns.reduce((a, b) => a + b, 0);
    const parts = sums.map(([name, b]) => `${name} ${((100 * b) / Math.max(all, 1)).toFixed(0)} %`);
    return `Share of the bytes that went to the device: ${parts.join(", ")}. It had nothing to do while requests waited for ${time(idle)} in all.`;
  }

  private paint(g: CanvasRenderingContext2D, x: Scale): void {
    if (!this.requests(g, x)) {
      this.shares(g, x);
    }
    this.idle(g, x);
  }

  /** Each interval as dark as its share. */
  private shares(g: CanvasRenderingContext2D, x: Scale): void {
    const t = theme();
    const f = this.device.flow;
    for (let i = 0; i < f.ended.length; i++) {
      const all = this.lines.reduce((sum, { group }) => sum + f.served_bytes[group][i], 0);
      const [left, right] = [x(i * f.interval_ns), x((i + 1) * f.interval_ns)];
      this.lines.forEach(({ group }, k) => {
        const share = all === 0 ? 0 : f.served_bytes[group][i] / all;
        if (share > 0) {
          g.fillStyle = t.groups[this.member.groups[group].colour];
          g.globalAlpha = 0.12 + 0.88 * share;
          g.fillRect(left, LINE * k + 6, Math.max(right - left, 0.6), LINE - 6);
        }
      });
    }
    g.globalAlpha = 1;
  }

  /** The requests themselves, from D to C, if none is missing and there are few. */
  private requests(g: CanvasRenderingContext2D, x: Scale): boolean {
    const c = this.member.requests;
    const [from, to] = this.view.range;
    if (c.complete_from_ns > 0) {
      return false;
    }
    const seen: number[] = [];
    for (let i = 0; i < c.start.length && c.start[i] <= to; i++) {
      const inTime = c.issue[i] >= 0 && c.start[i] + c.issue[i] <= to && c.start[i] + c.complete[i] >= from;
      if (inTime && c.dev[i] === this.dev) {
        seen.push(i);
        if (seen.length > REQUESTS_MAX) {
          return false;
        }
      }
    }
    const t = theme();
    g.globalAlpha = 0.55;
    for (const i of seen) {
      const group = this.member.processes[c.process[i]].group;
      const k = this.lines.findIndex((l) => l.group === group);
      if (k >= 0) {
        const [left, right] = [x(c.start[i] + c.issue[i]), x(c.start[i] + c.complete[i])];
        g.fillStyle = t.groups[this.member.groups[group].colour];
        g.fillRect(left, LINE * k + 6, Math.max(right - left, 1), LINE - 6);
      }
    }
    g.globalAlpha = 1;
    return true;
  }

  private idle(g: CanvasRenderingContext2D, x: Scale): void {
    const f = this.device.flow;
    g.fillStyle = theme().ink;
    for (let i = 0; i < f.idle_ns.length; i++) {
      const share = f.idle_ns[i] / f.interval_ns;
      if (share > 0) {
        g.globalAlpha = 0.15 + 0.85 * Math.min(share, 1);
        const [left, right] = [x(i * f.interval_ns), x((i + 1) * f.interval_ns)];
        g.fillRect(left, LINE * this.lines.length + 6, Math.max(right - left, 0.6), LINE - 6);
      }
    }
    g.globalAlpha = 1;
  }
}
