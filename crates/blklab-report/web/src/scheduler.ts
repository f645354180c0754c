// SPDX-License-Identifier: MIT OR Apache-2.0
// What the scheduler did: a line for each reason that requests waited for, in the colour of
// who is served or idled for.

import { BOTTOM, LEFT, LINE, RIGHT, lanes } from "./lanes";
import { type Member, type Scheduler, time } from "./report";
import { theme } from "./theme";
import { type View, whileSeen } from "./view";

/** Reasons that have a line. */
const LINES_MAX = 8;

/** Changes in view from which on shares of intervals are shown in place of them. */
const CHANGES_MAX = 400;

/** So wide that the name of who is served has room. */
const NAME_PX = 60;

export class Decisions {
  private readonly canvas = document.createElement("canvas");
  private readonly reasons: string[];
  private width = 800;

  constructor(private readonly member: Member, private readonly own: Scheduler, private readonly view: View, place: HTMLElement) {
    this.reasons = [...new Set(own.lines.map((l) => l.what))].slice(0, LINES_MAX);
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", this.words());
    place.append(this.canvas);
    view.onChange(whileSeen(place, () => this.draw()));
    const resize = () => {
      this.width = Math.max(280, place.clientWidth);
      this.draw();
    };
    new ResizeObserver(resize).observe(place);
    resize();
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

  draw(): void {
    const { g, x, height } = lanes(this.canvas, this.width, this.reasons, this.view);
    g.save();
    g.beginPath();
    g.rect(LEFT, 0, this.width - LEFT - RIGHT, height - BOTTOM);
    g.clip();
    g.fillStyle = theme().faint;
    this.reasons.forEach((_, row) => g.fillRect(LEFT, LINE * (row + 1), this.width - LEFT - RIGHT, 1));
    if (!this.changes(g, x)) {
      this.shares(g, x);
    }
    g.restore();
  }

  /** Shares of each interval, upon each other. */
  private shares(g: CanvasRenderingContext2D, x: (at: number) => number): void {
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
  private changes(g: CanvasRenderingContext2D, x: (at: number) => number): boolean {
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
      const right = Math.min(x(at[i + 1] ?? this.view.whole[1]), this.width - RIGHT);
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
