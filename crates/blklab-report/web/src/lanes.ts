// SPDX-License-Identifier: MIT OR Apache-2.0
// Lines with names, one below the other, over time.

import { FONT, theme } from "./theme";
import { type View, ticks, timeTick } from "./view";

export const LEFT = 130;
export const RIGHT = 12;
export const LINE = 22;
export const BOTTOM = 26;

/** A canvas with named lines and a time axis, ready to draw upon. */
export function lanes(canvas: HTMLCanvasElement, width: number, names: string[], view: View) {
  const t = theme();
  const height = LINE * names.length + BOTTOM + 6;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const g = canvas.getContext("2d")!;
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.font = FONT;
  const [from, to] = view.range;
  const x = (at: number) => LEFT + ((at - from) / (to - from)) * (width - LEFT - RIGHT);
  g.textBaseline = "middle";
  g.textAlign = "right";
  g.fillStyle = t.ink;
  names.forEach((name, i) => g.fillText(cut(name, 18), LEFT - 8, LINE * (i + 0.5) + 3));
  g.textAlign = "center";
  g.textBaseline = "top";
  for (const at of ticks([from, to], (width - LEFT) / 110)) {
    g.fillRect(x(at), 0, 0.3, height - BOTTOM);
    g.fillText(timeTick(at, [from, to]), x(at), height - BOTTOM + 6);
  }
  return { g, x, height };
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
