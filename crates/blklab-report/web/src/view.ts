// SPDX-License-Identifier: MIT OR Apache-2.0
// The stretch of time that all pictures of a member show.

export type Range = [number, number];

/** From the start of the trace, in ns. */
export class View {
  private listeners: (() => void)[] = [];
  private frame = 0;
  range: Range;

  constructor(readonly whole: Range) {
    this.range = [...whole];
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Shows a stretch: within the whole, and not shorter than 1 µs. */
  set(from: number, to: number): void {
    const length = Math.min(Math.max(to - from, 1000), this.whole[1] - this.whole[0]);
    const start = Math.min(Math.max(from, this.whole[0]), this.whole[1] - length);
    if (start === this.range[0] && start + length === this.range[1]) {
      return;
    }
    this.range = [start, start + length];
    // However often it changes, the pictures follow once a frame.
    if (this.frame === 0) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.listeners.forEach((listener) => listener());
      });
    }
  }

  reset(): void {
    this.set(...this.whole);
  }

  /** Zooms by a factor around a time. */
  zoom(factor: number, around: number): void {
    const [from, to] = this.range;
    this.set(around - (around - from) * factor, around + (to - around) * factor);
  }

  /** Moves by a share of what is shown. */
  move(share: number): void {
    const [from, to] = this.range;
    const by = (to - from) * share;
    this.set(from + by, to + by);
  }

  get isWhole(): boolean {
    return this.range[0] === this.whole[0] && this.range[1] === this.whole[1];
  }
}

/** Round numbers between two, about so many. */
export function ticks([from, to]: Range, about: number): number[] {
  const raw = (to - from) / Math.max(about, 1);
  if (!(raw > 0)) {
    return [from];
  }
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw) ?? 10 * power;
  const all: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    all.push(at);
  }
  return all;
}

/** A time on an axis that shows a stretch: as many figures as its ticks need. */
export function timeTick(ns: number, [from, to]: Range): string {
  const length = to - from;
  const [unit, name] = to >= 1e9 ? [1e9, "s"] : to >= 1e6 ? [1e6, "ms"] : [1e3, "µs"];
  const figures = Math.min(Math.max(0, Math.ceil(Math.log10(unit / length) + 1)), 9);
  return `${(ns / unit).toFixed(figures)} ${name}`;
}

/** Redraws what can be seen at once, and the rest when it comes into sight. */
export function whileSeen(place: HTMLElement, redraw: () => void): () => void {
  let [isSeen, isStale] = [true, false];
  const catchUp = () => {
    if (isStale) {
      isStale = false;
      redraw();
    }
  };
  const observer = new IntersectionObserver(
    (entries) => {
      isSeen = entries[entries.length - 1].isIntersecting;
      if (isSeen) {
        catchUp();
      }
    },
    { rootMargin: "200px" },
  );
  observer.observe(place);
  addEventListener("beforeprint", catchUp);
  return () => {
    isStale = true;
    if (isSeen) {
      catchUp();
    }
  };
}
