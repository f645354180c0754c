// SPDX-License-Identifier: MIT OR Apache-2.0
// Puts the pictures into their places: those of a member when it is chosen, and of all of
// them before the page is printed.

import { Band } from "./band";
import { compare, curves } from "./curves";
import { type Member, type Report, read } from "./report";
import { Decisions } from "./scheduler";
import { busiest, latency, load } from "./series";
import { onThemeChange } from "./theme";
import { type Evidence, Timeline } from "./timeline";
import { View } from "./view";

/** A member with the pictures that it has so far. */
class Shown {
  readonly view: View;
  timeline: Timeline | null = null;

  constructor(readonly report: Report, readonly member: Member, readonly article: HTMLElement) {
    this.view = new View([0, Math.max(member.span_ns, 1000)]);
  }

  place(name: string): HTMLElement | null {
    return this.article.querySelector<HTMLElement>(`[data-chart="${name}"]`);
  }

  draw(name: string): void {
    const place = this.place(name);
    if (place === null || place.childElementCount > 0) {
      return;
    }
    const device = busiest(this.member);
    if (device === undefined) {
      place.textContent = "The trace shows no device.";
      return;
    }
    const charts: Record<string, () => void> = {
      timeline: () => (this.timeline = new Timeline(this.report, this.member, this.view, place)),
      band: () => new Band(this.member, device, this.view, place),
      scheduler: () => this.member.scheduler && new Decisions(this.member, this.member.scheduler, this.view, place),
      latency: () => latency(this.report, device, this.view, place),
      load: () => load(this.member, device, this.view, place),
      curves: () => curves(this.member.curves, this.member.groups, place),
    };
    charts[name]();
    if (place.childElementCount === 0) {
      place.textContent = "The trace does not show it.";
    }
  }

  show(marks: Evidence[]): void {
    this.draw("timeline");
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.place("timeline")?.scrollIntoView({ block: "center", behavior: still ? "auto" : "smooth" });
    this.timeline?.show(marks);
  }
}

function start(report: Report): void {
  const articles = [...document.querySelectorAll<HTMLElement>("article[data-member]")];
  const all = articles.map((article, i) => new Shown(report, report.members[i], article));
  const links = [...document.querySelectorAll<HTMLElement>("[data-choose]")];

  const names = ["timeline", "band", "scheduler", "latency", "load", "curves"];
  const drawAll = (shown: Shown) => names.forEach((name) => shown.draw(name));
  const compared = document.querySelector<HTMLElement>('[data-chart="compare"]');
  const drawCompared = () => compared !== null && compared.childElementCount === 0 && compare(report, compared);

  drawCompared();
  const choose = (chosen: number) => {
    articles.forEach((article, i) => article.classList.toggle("away", i !== chosen));
    links.forEach((link, i) => (i === chosen ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
    drawAll(all[chosen]);
  };
  links.forEach((link, i) =>
    link.addEventListener("click", (e) => {
      e.preventDefault();
      choose(i);
      history.replaceState(null, "", `#m${i}`);
    }),
  );

  document.querySelectorAll<HTMLElement>("[data-show]").forEach((button) =>
    button.addEventListener("click", () => {
      const member = Number(button.dataset.member);
      choose(member);
      all[member].show(JSON.parse(button.dataset.show!) as Evidence[]);
    }),
  );

  if (articles.length > 1) {
    const named = /^#m(\d+)/.exec(location.hash);
    choose(Math.min(named === null ? 0 : Number(named[1]), articles.length - 1));
  } else {
    all.forEach(drawAll);
  }
  const seen = () => all.filter((s) => !s.article.classList.contains("away"));
  const redraw = () => {
    document.querySelectorAll("[data-chart]").forEach((place) => place.replaceChildren());
    drawCompared();
    seen().forEach(drawAll);
  };
  onThemeChange(redraw);
  // On paper nobody can choose: all are there, as wide as a sheet.
  let away: HTMLElement[] = [];
  addEventListener("beforeprint", () => {
    away = articles.filter((article) => article.classList.contains("away"));
    away.forEach((article) => article.classList.remove("away"));
    document.body.classList.add("paper");
    redraw();
  });
  addEventListener("afterprint", () => {
    away.forEach((article) => article.classList.add("away"));
    document.body.classList.remove("paper");
    redraw();
  });
  document.documentElement.dataset.ready = "true";
}

try {
  start(read());
} catch (e) {
  for (const place of document.querySelectorAll("[data-chart]")) {
    place.textContent = `The pictures cannot be drawn (${String(e)}).`;
  }
  document.documentElement.dataset.ready = "failed";
}
