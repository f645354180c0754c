// SPDX-License-Identifier: MIT OR Apache-2.0
// What the scheduler did: a line for each reason that requests waited for, in the colour of
// who is served or idled for.

import { LEFT, LINE, Lanes, RIGHT, type Scale } from "./lanes";
import { type Member, type Scheduler, time } from "./report";
import { theme } from "./theme";
import type { View } from "./view";

/** Reasons that have a line. */
const LINES_MAX = 8;

/** Changes in view from which on shares of intervals are shown in place of them. */
const CHANGES_MAX = 400;

/** So wide that the name of who is served has room. */
const NAME_PX = 60;

export class Decisions {
  private readonly reasons: string[];

  constructor(private readonly member: Member, private readonly own: Scheduler, private readonly view: View, place: HTMLElement) {
    this.reasons = [...new Set(own.lines.map((l) => l.what))].slice(0, LINES_MAX);
    new Lanes(place, this.words(), this.reasons, view, (lanes, g, x) => this.paint(lanes, g, x));
  }

  private name(group: number | null): string {
    return group === null ? "" : this.member.groups[group].name;
  }

  private words(): string {
    const parts = this.own.lines.slice(0, LINES_MAX).map((l) => {
      const whose = l.group === null ? "" : ` of ${this.name(l.group)}`;
      return `${l.what}${whose} ${time(l.total_ns)}`;
    });
    return `What waiting requests waited for, in all: ${parts.join(", ")}.`;
  }

  private colour(group: number | null): string {
    const t = theme();
    return group === null ? t.ink : t.groups[this.member.groups[group].colour];
  }

  private paint(lanes: Lanes, g: CanvasRenderingContext2D, x: Scale): void {
    g.fillStyle = theme().faint;
    this.reasons.forEach((_, row) => g.fillRect(LEFT, LINE * (row + 1), lanes.width - LEFT - RIGHT, 1));
    if (!this.changes(lanes, g, x)) {
      this.shares(g, x);
    }
  }

  /** Shares of each interval, upon each other. */
  private shares(g: CanvasRenderingContext2D, x: Scale): void {
    const { lines, interval_ns } = this.own;
    const below = this.reasons.map(() => [] as number[]);
    for (const l of lines) {
      const row = this.reasons.indexOf(l.what);
      if (row < 0) {
        continue;
      }
      g.fillStyle = this.colour(l.group);
      l.ns.forEach((ns, i) => {
        if (ns > 0) {
          const share = ns / interval_ns;
          const from = below[row][i] ?? 0;
          below[row][i] = from + share;
          const [left, right] = [x(i * interval_ns), x((i + 1) * interval_ns)];
          const room = LINE - 4;
          g.fillRect(left, LINE * (row + 1) - (from + share) * room, Math.max(right - left, 0.6), share * room);
        }
      });
    }
  }

  /** Each by itself, if that is known and there are few. */
  private changes(lanes: Lanes, g: CanvasRenderingContext2D, x: Scale): boolean {
    const { change_after: at, change_line: line, lines } = this.own;
    const [from, to] = this.view.range;
    let first = at.findIndex((t) => t > from);
    first = Math.max(0, (first < 0 ? at.length : first) - 1);
    const beyond = at.findIndex((t) => t > to);
    const end = beyond < 0 ? at.length : beyond;
    if (at.length === 0 || end - first > CHANGES_MAX) {
      return false;
    }
    g.textAlign = "left";
    g.textBaseline = "middle";
    for (let i = first; i < end; i++) {
      const own = lines[line[i]];
      const row = own === undefined ? -1 : this.reasons.indexOf(own.what);
      if (row < 0) {
        continue;
      }
      const left = Math.max(x(at[i]), LEFT);
      const right = Math.min(x(at[i + 1] ?? this.view.whole[1]), lanes.width - RIGHT);
      g.fillStyle = this.colour(own.group);
      g.fillRect(left, LINE * row + 5, Math.max(right - left, 0.8), LINE - 6);
      const name = this.name(own.group);
      if (name !== "" && right - left > Math.max(NAME_PX, g.measureText(name).width + 8)) {
        g.fillStyle = theme().paper;
        g.fillText(name, left + 4, LINE * (row + 0.5) + 3);
      }
    }
    return true;
  }
}
