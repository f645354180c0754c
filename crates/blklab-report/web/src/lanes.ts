// SPDX-License-Identifier: MIT OR Apache-2.0
// Lines with names, one below the other, over time.

import { FONT, theme } from "./theme";
import { type View, ticks, timeTick, whileSeen } from "./view";

export const LEFT = 130;
export const RIGHT = 12;
export const LINE = 22;
const BOTTOM = 26;

/** Where a time is, from the left. */
export type Scale = (at: number) => number;

/** A canvas with named lines and a time axis, as wide as its place. */
export class Lanes {
  private readonly canvas = document.createElement("canvas");
  /** Of the canvas. */
  width = 800;

  /** `label` says in words what `paint` draws between the names and the axis. */
  constructor(
    place: HTMLElement,
    label: string,
    private readonly names: string[],
    private readonly view: View,
    private readonly paint: (lanes: Lanes, g: CanvasRenderingContext2D, x: Scale) => void,
  ) {
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", label);
    place.append(this.canvas);
    view.onChange(whileSeen(place, () => this.draw()));
    const resize = () => {
      this.width = Math.max(280, place.clientWidth);
      this.draw();
    };
    new ResizeObserver(resize).observe(place);
    resize();
  }

  private draw(): void {
    const height = LINE * this.names.length + BOTTOM + 6;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = this.width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${height}px`;
    const g = this.canvas.getContext("2d")!;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.font = FONT;
    const [from, to] = this.view.range;
    const x = (at: number) => LEFT + ((at - from) / (to - from)) * (this.width - LEFT - RIGHT);
    this.axes(g, x, height);
    g.beginPath();
    g.rect(LEFT, 0, this.width - LEFT - RIGHT, height - BOTTOM);
    g.clip();
    this.paint(this, g, x);
  }

  private axes(g: CanvasRenderingContext2D, x: Scale, height: number): void {
    const { range } = this.view;
    g.textBaseline = "middle";
    g.textAlign = "right";
    g.fillStyle = theme().ink;
    this.names.forEach((name, i) => g.fillText(cut(name, 18), LEFT - 8, LINE * (i + 0.5) + 3));
    g.textAlign = "center";
    g.textBaseline = "top";
    for (const at of ticks(range, (this.width - LEFT) / 110)) {
      g.fillRect(x(at), 0, 0.3, height - BOTTOM);
      g.fillText(timeTick(at, range), x(at), height - BOTTOM + 6);
    }
  }
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
