// SPDX-License-Identifier: MIT OR Apache-2.0
// Time × sector: a mark for each request, which grows to its life when there is room.

import { type Columns, type Member, type Report, time, who, whoIs, bytes } from "./report";
import { FONT, theme } from "./theme";
import { type Range, type View, ticks, timeTick, whileSeen } from "./view";

/** An event that a finding rests on: time, sector, letter, device. */
export type Evidence = [number, number, string, string];

const HEIGHT = 440;
const LEFT = 74;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 28;

/** Requests in view from which on they are points only. */
const LIVES_MAX = 600;

/** How near the pointer must be, in pixels. */
const NEAR = 14;

export class Timeline {
  private readonly base = document.createElement("canvas");
  private readonly over = document.createElement("canvas");
  private readonly scratch = document.createElement("canvas");
  private readonly tip = document.createElement("div");
  private readonly said = document.createElement("p");
  private readonly legend = document.createElement("p");
  private readonly columns: Columns;
  private readonly colours: number[];
  private sectors: Range;
  private allSectors: Range;
  private dev: number;
  private marks: Evidence[] = [];
  private chosen = -1;
  /** What is drawn. */
  private visible: number[] = [];
  private drag: { x: number; y: number; pans: boolean; range: Range } | null = null;
  private width = 800;

  constructor(
    private readonly report: Report,
    private readonly member: Member,
    private readonly view: View,
    place: HTMLElement,
  ) {
    this.columns = member.requests;
    this.colours = member.processes.map((p) => member.groups[p.group]?.colour ?? 7);
    this.dev = this.busiest();
    this.allSectors = this.reach();
    this.sectors = [...this.allSectors];
    this.build(place);
    view.onChange(whileSeen(place, () => this.draw()));
    new ResizeObserver(() => this.resize(place)).observe(place);
    this.resize(place);
  }

  /** Shows where a finding's events are. */
  show(marks: Evidence[]): void {
    this.marks = marks;
    const dev = this.member.devices.findIndex((d) => d.dev === marks[0]?.[3]);
    if (dev >= 0) {
      this.choose(dev);
    }
    const times = marks.map((m) => m[0]);
    const from = Math.min(...times);
    const to = Math.max(...times);
    const margin = Math.max((to - from) * 0.25, 50_000);
    this.sectors = [...this.allSectors];
    this.view.set(from - margin, to + margin);
    this.fit();
    this.draw();
    const c = this.columns;
    const at = c.start.findIndex(
      (start, i) => start >= from - 1 && start <= to && c.sector[i] <= marks[0][1] && marks[0][1] < c.sector[i] + Math.max(c.sectors[i], 1),
    );
    this.select(at);
    if (at < 0) {
      // Of many requests the page has a sample, and the one that is meant need not be in it.
      const moments = marks.map(([ns, sector, letters]) => `${letters} at ${(ns / 1e9).toFixed(9)} s, sector ${sector}`);
      this.tell(["The events of the finding; their request is not among those that the page shows", ...moments]);
      this.place(this.x(marks[0][0]), this.y(marks[0][1]));
    }
    this.over.focus();
  }

  private busiest(): number {
    const counts = this.member.devices.map(() => 0);
    this.columns.dev.forEach((dev) => counts[dev]++);
    return Math.max(0, counts.indexOf(Math.max(...counts)));
  }

  private reach(): Range {
    let [low, high] = [Infinity, 0];
    const c = this.columns;
    for (let i = 0; i < c.sector.length; i++) {
      if (c.dev[i] === this.dev && c.sectors[i] > 0) {
        low = Math.min(low, c.sector[i]);
        high = Math.max(high, c.sector[i] + c.sectors[i]);
      }
    }
    if (low > high) {
      return [0, 1];
    }
    const margin = Math.max((high - low) * 0.02, 4);
    return [low - margin, high + margin];
  }

  /** Shows the sectors of what is in view, and no more. */
  private fit(): void {
    const c = this.columns;
    let [low, high] = [Infinity, 0];
    for (const i of this.inView()) {
      low = Math.min(low, c.sector[i]);
      high = Math.max(high, c.sector[i] + c.sectors[i]);
    }
    if (low < high) {
      const margin = Math.max((high - low) * 0.08, 4);
      this.sectors = [low - margin, high + margin];
    }
  }

  private choose(dev: number): void {
    if (dev !== this.dev) {
      this.dev = dev;
      this.allSectors = this.reach();
      this.sectors = [...this.allSectors];
      this.draw();
    }
  }

  private build(place: HTMLElement): void {
    const bar = document.createElement("div");
    bar.className = "bar";
    const button = (text: string, label: string, act: () => void) => {
      const b = document.createElement("button");
      b.type = "button";
      b.textContent = text;
      b.setAttribute("aria-label", label);
      b.addEventListener("click", act);
      bar.append(b);
    };
    const middle = () => (this.view.range[0] + this.view.range[1]) / 2;
    button("+", "zoom in", () => this.view.zoom(0.5, middle()));
    button("−", "zoom out", () => this.view.zoom(2, middle()));
    button("←", "earlier", () => this.view.move(-0.25));
    button("→", "later", () => this.view.move(0.25));
    button("all", "show all", () => this.reset());
    if (this.member.devices.length > 1) {
      const select = document.createElement("select");
      select.setAttribute("aria-label", "device");
      this.member.devices.forEach((d, i) => select.add(new Option(`device ${d.dev}`, String(i))));
      select.value = String(this.dev);
      select.addEventListener("change", () => this.choose(Number(select.value)));
      bar.append(select);
    }
    this.legend.className = "legend";
    bar.append(this.legend);
    const box = document.createElement("div");
    box.className = "layers";
    box.style.height = `${HEIGHT}px`;
    this.tip.className = "tip";
    this.tip.hidden = true;
    this.said.className = "said";
    this.said.setAttribute("aria-live", "polite");
    this.over.tabIndex = 0;
    this.over.setAttribute("role", "application");
    this.over.setAttribute(
      "aria-label",
      `Time line of ${this.columns.start.length} requests. Arrow keys move, plus and minus zoom, 0 shows all, n and p go from request to request.`,
    );
    box.append(this.base, this.over, this.tip);
    place.append(bar, box, this.said);
    this.listen();
  }

  private reset(): void {
    this.sectors = [...this.allSectors];
    this.marks = [];
    this.view.reset();
    this.draw();
  }

  private listen(): void {
    const c = this.over;
    const at = (e: PointerEvent | WheelEvent | MouseEvent) => {
      const box = c.getBoundingClientRect();
      return { x: e.clientX - box.left, y: e.clientY - box.top };
    };
    c.addEventListener("pointerdown", (e) => {
      c.setPointerCapture(e.pointerId);
      this.drag = { ...at(e), pans: e.shiftKey || e.pointerType === "touch", range: [...this.view.range] };
    });
    c.addEventListener("pointermove", (e) => {
      const { x, y } = at(e);
      if (this.drag === null) {
        this.select(this.nearest(x, y), x, y);
      } else if (this.drag.pans) {
        const [from, to] = this.drag.range;
        const by = ((this.drag.x - x) / this.plotWidth) * (to - from);
        this.view.set(from + by, to + by);
      } else {
        this.overlay(() => this.box(x, y));
      }
    });
    c.addEventListener("pointerup", (e) => {
      const { x, y } = at(e);
      const drag = this.drag;
      this.drag = null;
      if (drag === null) {
        return;
      }
      if (Math.abs(x - drag.x) > 5 && !drag.pans) {
        const times = [this.timeAt(drag.x), this.timeAt(x)].sort((a, b) => a - b);
        if (Math.abs(y - drag.y) > 24) {
          this.sectors = [this.sectorAt(Math.max(y, drag.y)), this.sectorAt(Math.min(y, drag.y))];
        }
        this.view.set(times[0], times[1]);
        this.draw();
      } else {
        this.select(this.nearest(x, y), x, y);
      }
    });
    c.addEventListener("pointerleave", () => this.select(-1));
    c.addEventListener("dblclick", () => this.reset());
    c.addEventListener(
      "wheel",
      (e) => {
        // A page that is scrolled stays as it is.
        if (!e.ctrlKey && !e.metaKey && document.activeElement !== c) {
          return;
        }
        e.preventDefault();
        this.view.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 200))), this.timeAt(at(e).x));
      },
      { passive: false },
    );
    c.addEventListener("keydown", (e) => this.key(e));
  }

  private key(e: KeyboardEvent): void {
    const middle = (this.view.range[0] + this.view.range[1]) / 2;
    const acts: Record<string, () => void> = {
      ArrowLeft: () => this.view.move(-0.2),
      ArrowRight: () => this.view.move(0.2),
      ArrowUp: () => this.moveSectors(0.2),
      ArrowDown: () => this.moveSectors(-0.2),
      "+": () => this.view.zoom(0.5, middle),
      "=": () => this.view.zoom(0.5, middle),
      "-": () => this.view.zoom(2, middle),
      "0": () => this.reset(),
      n: () => this.step(1),
      p: () => this.step(-1),
      Escape: () => this.select(-1),
    };
    const act = acts[e.key];
    if (act !== undefined && !e.ctrlKey && !e.metaKey && !e.altKey) {
      e.preventDefault();
      act();
    }
  }

  private moveSectors(share: number): void {
    const [low, high] = this.sectors;
    const by = (high - low) * share;
    this.sectors = [low + by, high + by];
    this.draw();
  }

  /** Goes to the next or the previous request in view. */
  private step(by: number): void {
    const c = this.columns;
    const n = c.start.length;
    let i = this.chosen < 0 ? this.first(this.view.range[0]) - (by > 0 ? 1 : 0) : this.chosen;
    do {
      i += by;
    } while (i >= 0 && i < n && c.dev[i] !== this.dev);
    if (i < 0 || i >= n) {
      return;
    }
    const [from, to] = this.view.range;
    if (c.start[i] < from || c.start[i] > to) {
      this.view.set(c.start[i] - (to - from) / 2, c.start[i] + (to - from) / 2);
    }
    this.select(i);
    this.said.textContent = this.words(i).join("; ");
  }

  private resize(place: HTMLElement): void {
    this.width = Math.max(280, place.clientWidth);
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.base, this.over]) {
      canvas.width = this.width * ratio;
      canvas.height = HEIGHT * ratio;
      canvas.style.width = `${this.width}px`;
      canvas.style.height = `${HEIGHT}px`;
    }
    this.draw();
  }

  private get plotWidth(): number {
    return this.width - LEFT - RIGHT;
  }

  private x(t: number): number {
    const [from, to] = this.view.range;
    return LEFT + ((t - from) / (to - from)) * this.plotWidth;
  }

  private y(sector: number): number {
    const [low, high] = this.sectors;
    return TOP + (1 - (sector - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  }

  private timeAt(x: number): number {
    const [from, to] = this.view.range;
    return from + ((x - LEFT) / this.plotWidth) * (to - from);
  }

  private sectorAt(y: number): number {
    const [low, high] = this.sectors;
    return low + (1 - (y - TOP) / (HEIGHT - TOP - BOTTOM)) * (high - low);
  }

  /** When its mark is: at D, or at the beginning of what did not get there. */
  private markTime(i: number): number {
    const c = this.columns;
    return c.start[i] + Math.max(0, c.issue[i]);
  }

  /** The first request that begins at a time or later. */
  private first(t: number): number {
    const start = this.columns.start;
    let [low, high] = [0, start.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (start[middle] < t) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /** The requests that have something in the stretch that is shown. */
  private inView(): number[] {
    const c = this.columns;
    const [from, to] = this.view.range;
    const [low, high] = this.sectors;
    const end = this.first(to + 1);
    const all: number[] = [];
    for (let i = 0; i < end; i++) {
      if (c.dev[i] !== this.dev || c.sector[i] > high || c.sector[i] + c.sectors[i] < low) {
        continue;
      }
      const last = c.start[i] + Math.max(c.complete[i], c.issue[i], 0);
      if (last >= from) {
        all.push(i);
      }
    }
    return all;
  }

  private context(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
    const g = canvas.getContext("2d")!;
    const ratio = window.devicePixelRatio || 1;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, this.width, HEIGHT);
    g.font = FONT;
    return g;
  }

  draw(): void {
    const g = this.context(this.base);
    this.axes(g);
    g.save();
    g.beginPath();
    g.rect(LEFT, TOP - 4, this.plotWidth, HEIGHT - TOP - BOTTOM + 8);
    g.clip();
    const visible = this.inView();
    this.visible = visible;
    if (visible.length > LIVES_MAX) {
      this.points(g, visible);
    } else {
      this.lives(g, visible);
    }
    this.evidence(g);
    g.restore();
    this.describe(visible.length);
    this.overlay(() => this.chosen >= 0 && this.ring(this.chosen));
  }

  private describe(visible: number): void {
    const c = this.columns;
    const t = theme();
    const used = new Set(c.process.map((p) => this.member.processes[p].group));
    const groups = [...used].sort((a, b) => a - b).map((i) => this.member.groups[i]);
    const names = groups.map((group) => {
      const span = document.createElement("span");
      span.style.color = t.groups[group.colour];
      span.textContent = `■ ${group.name} `;
      return span;
    });
    const missing =
      c.complete_from_ns > 0
        ? `${c.start.length} of ${c.seen} requests: all from ${time(c.complete_from_ns)} on, the slowest of each interval, a sample of the others`
        : `all ${c.seen} requests`;
    const count = document.createElement("span");
    count.textContent = ` ▪ read ━ other; ${visible} in view; the page has ${missing}`;
    this.legend.replaceChildren(...names, count);
  }

  private axes(g: CanvasRenderingContext2D): void {
    const t = theme();
    g.strokeStyle = t.faint;
    g.fillStyle = t.ink;
    g.lineWidth = 1;
    g.textAlign = "center";
    g.textBaseline = "top";
    const range = this.view.range;
    for (const at of ticks(range, this.plotWidth / 110)) {
      const x = Math.round(this.x(at)) + 0.5;
      line(g, x, TOP, x, HEIGHT - BOTTOM);
      g.fillText(timeTick(at, range), x, HEIGHT - BOTTOM + 6);
    }
    g.textAlign = "right";
    g.textBaseline = "middle";
    const gib = this.sectors.map((s) => s / 2 ** 21) as Range;
    const [unit, name] = gib[1] - gib[0] >= 0.05 ? [2 ** 21, "GiB"] : [1, ""];
    const shown = this.sectors.map((s) => s / unit) as Range;
    for (const at of ticks(shown, 7)) {
      const y = Math.round(this.y(at * unit)) + 0.5;
      if (y > TOP - 2 && y < HEIGHT - BOTTOM + 2) {
        line(g, LEFT, y, this.width - RIGHT, y);
        g.fillText(`${unit === 1 ? at.toFixed(0) : +at.toPrecision(4)}${name && ` ${name}`}`, LEFT - 6, y);
      }
    }
    if (unit === 1) {
      g.fillText("sector", LEFT - 6, TOP + 2);
    }
  }

  /** Squares for reads, bars for the others, pixel by pixel: there may be many. */
  private points(g: CanvasRenderingContext2D, visible: number[]): void {
    const c = this.columns;
    const { width, height } = this.base;
    const ratio = width / this.width;
    this.scratch.width = width;
    this.scratch.height = height;
    const own = this.scratch.getContext("2d")!;
    const image = own.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const colours = theme().groups.map(pixel);
    // Half of the sides of a mark.
    const halves = [[1.25, 1.25], [2.5, 0.6]].map((half) => half.map((h) => h * ratio));
    for (const i of visible) {
      const [w, h] = halves[isRead(c, i) ? 0 : 1];
      const x = this.x(this.markTime(i)) * ratio;
      const y = this.y(c.sector[i]) * ratio;
      const colour = colours[this.colours[c.process[i]]];
      const left = Math.max(0, Math.round(x - w));
      const right = Math.min(width, Math.round(x + w));
      for (let row = Math.max(0, Math.round(y - h)); row < Math.min(height, Math.round(y + h)); row++) {
        if (left < right) {
          pixels.fill(colour, row * width + left, row * width + right);
        }
      }
    }
    own.putImageData(image, 0, 0);
    g.globalAlpha = 0.85;
    g.drawImage(this.scratch, 0, 0, this.width, HEIGHT);
    g.globalAlpha = 1;
  }

  /** From Q to D a thin line, from D to C a thick one; letters if there is room. */
  private lives(g: CanvasRenderingContext2D, visible: number[]): void {
    const t = theme();
    const c = this.columns;
    g.textBaseline = "bottom";
    g.textAlign = "center";
    for (const i of visible) {
      const y = this.y(c.sector[i] + c.sectors[i] / 2);
      const start = this.x(c.start[i]);
      const issue = this.x(c.start[i] + Math.max(0, c.issue[i]));
      const end = c.complete[i] < 0 ? issue : this.x(c.start[i] + c.complete[i]);
      g.strokeStyle = t.groups[this.colours[c.process[i]]];
      g.fillStyle = g.strokeStyle;
      g.lineWidth = 1;
      g.setLineDash(c.insert[i] >= 0 || c.get[i] >= 0 ? [] : [3, 2]);
      line(g, start, y, c.issue[i] < 0 ? end : issue, y);
      g.setLineDash([]);
      if (c.issue[i] >= 0) {
        const width = Math.max(2, end - issue);
        if (isRead(c, i)) {
          g.fillRect(issue, y - 3, width, 6);
        } else {
          g.lineWidth = 1.5;
          g.strokeRect(issue + 0.75, y - 2.25, Math.max(1, width - 1.5), 4.5);
        }
      }
      if (visible.length <= 40) {
        g.fillStyle = t.ink;
        for (const [letter, at] of moments(c, i)) {
          g.fillText(letter, this.x(c.start[i] + at), y - 4);
        }
      }
    }
  }

  /** The events of the finding that is shown. */
  private evidence(g: CanvasRenderingContext2D): void {
    if (this.marks.length === 0) {
      return;
    }
    const t = theme();
    g.strokeStyle = t.mark;
    g.fillStyle = t.mark;
    g.lineWidth = 1.5;
    g.textAlign = "center";
    g.textBaseline = "top";
    for (const [at, sector, letter, dev] of this.marks) {
      if (dev === this.member.devices[this.dev]?.dev) {
        const [x, y] = [this.x(at), this.y(sector)];
        g.beginPath();
        g.arc(x, y, 7, 0, 7);
        g.stroke();
        g.fillText(letter, x, y + 8);
      }
    }
  }

  private nearest(x: number, y: number): number {
    const c = this.columns;
    const visible = this.visible;
    const isPoints = visible.length > LIVES_MAX;
    let best = -1;
    let least = NEAR * NEAR;
    for (const i of visible) {
      let dx = x - this.x(this.markTime(i));
      if (!isPoints) {
        const from = this.x(c.start[i]);
        const to = this.x(c.start[i] + Math.max(c.complete[i], c.issue[i], 0));
        dx = x < from ? from - x : x > to ? x - to : 0;
      }
      const dy = y - this.y(isPoints ? c.sector[i] : c.sector[i] + c.sectors[i] / 2);
      const distance = dx * dx + dy * dy;
      if (distance < least) {
        [best, least] = [i, distance];
      }
    }
    return best;
  }

  /** Shows what is known of a request beside it. */
  private select(i: number, x?: number, y?: number): void {
    this.chosen = i;
    if (i < 0) {
      this.tip.hidden = true;
      this.overlay(() => {});
      return;
    }
    const c = this.columns;
    const [tipX, tipY] = [x ?? this.x(this.markTime(i)), y ?? this.y(c.sector[i])];
    this.overlay(() => this.ring(i));
    this.tell(this.words(i));
    this.place(tipX, tipY);
  }

  /** Beside the pointer, a line for each. */
  private tell(lines: string[]): void {
    this.tip.replaceChildren(
      ...lines.map((text) => {
        const div = document.createElement("div");
        div.textContent = text;
        return div;
      }),
    );
    this.tip.hidden = false;
  }

  private place(tipX: number, tipY: number): void {
    const { offsetWidth: w, offsetHeight: h } = this.tip;
    this.tip.style.left = `${Math.max(0, Math.min(tipX + 16, this.width - w - 4))}px`;
    this.tip.style.top = `${tipY + 20 + h > HEIGHT ? Math.max(0, tipY - h - 12) : tipY + 16}px`;
  }

  /** What is known of a request, in words: whose, where, its life, its reasons. */
  private words(i: number): string[] {
    const c = this.columns;
    const all = [
      `${who(this.member, c.process[i])}: ${c.flags[c.flag[i]]} ${c.sector[i]} + ${c.sectors[i]} (${bytes(c.sectors[i] * 512)}${c.bios[i] > 1 ? `, ${c.bios[i]} bios` : ""})`,
      `from ${(c.start[i] / 1e9).toFixed(9)} s on${c.complete[i] < 0 ? ", not seen to its end" : `: ${time(c.complete[i])}`}`,
    ];
    const life = moments(c, i).map(([letter, at]) => (at === 0 ? letter : `${letter} +${time(at)}`));
    all.push(life.join("  "));
    const parts = this.report.phases
      .map(([, what], k) => [c.phases[k][i], what] as const)
      .filter(([ns]) => ns > 0)
      .sort((a, b) => b[0] - a[0]);
    for (const [ns, what] of parts) {
      all.push(`${time(ns)} ${what}`);
    }
    const blame = (reason: number, pid: number, nr: number, where: string) => {
      if (reason > 0) {
        const whom = pid > 0 ? `, most of ${whoIs(this.member, pid)}` : "";
        all.push(`${where}: ${this.report.reasons[reason]}; ${nr} requests there${whom}`);
      }
    };
    blame(c.ahead[i], c.ahead_pid[i], c.ahead_nr[i], "in the queue");
    blame(c.behind[i], c.behind_pid[i], c.behind_nr[i], "in the device");
    if (c.sync[i] === 0) {
      all.push("nobody waits for it");
    }
    return all;
  }

  private overlay(then: () => unknown): void {
    this.context(this.over);
    then();
  }

  private ring(i: number): void {
    const g = this.over.getContext("2d")!;
    const c = this.columns;
    const t = theme();
    const y = this.y(c.sector[i]);
    g.strokeStyle = t.ink;
    g.lineWidth = 1;
    const from = this.x(c.start[i]);
    const to = this.x(c.start[i] + Math.max(c.complete[i], c.issue[i], 0));
    line(g, Math.max(LEFT, from), y, Math.min(to, this.width - RIGHT), y);
    g.lineWidth = 2;
    g.beginPath();
    g.arc(this.x(this.markTime(i)), y, 6, 0, 7);
    g.stroke();
  }

  private box(x: number, y: number): void {
    if (this.drag === null) {
      return;
    }
    const g = this.over.getContext("2d")!;
    const tall = Math.abs(y - this.drag.y) > 24;
    g.fillStyle = theme().ink;
    g.globalAlpha = 0.12;
    g.fillRect(this.drag.x, tall ? this.drag.y : TOP, x - this.drag.x, tall ? y - this.drag.y : HEIGHT - TOP - BOTTOM);
    g.globalAlpha = 1;
  }
}

/** A colour as the pixels of a picture have it, in the order of a small-endian machine. */
function pixel(colour: string): number {
  const rgb = parseInt(colour.slice(1), 16);
  return ((255 << 24) | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
}

function isRead(c: Columns, i: number): boolean {
  return c.flags[c.flag[i]].startsWith("R");
}

/** The letters of a life, with when they were. */
function moments(c: Columns, i: number): [string, number][] {
  const all: [string, number][] = [["Q", 0]];
  for (const [letter, at] of [["G", c.get[i]], ["I", c.insert[i]], ["D", c.issue[i]], ["C", c.complete[i]]] as [string, number][]) {
    if (at >= 0) {
      all.push([letter, at]);
    }
  }
  return all;
}

function line(g: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  g.beginPath();
  g.moveTo(x1, y1);
  g.lineTo(x2, y2);
  g.stroke();
}
