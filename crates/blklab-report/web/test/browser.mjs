// SPDX-License-Identifier: MIT OR Apache-2.0
// Opens pages in headless Chromium and looks at them as a reader would:
//
//   node test/browser.mjs CHROMIUM PAGE.html...
//
// Fails with a line for each thing that is wrong. Times are those of the page itself.
import { chromium } from "playwright-core";

const [executablePath, ...pages] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
let wrong = 0;

function check(page, holds, what) {
  if (!holds) {
    console.error(`${page}: ${what}`);
    wrong++;
  }
}

for (const name of pages) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  page.on("console", (m) => check(name, !["error", "warning"].includes(m.type()), `console: ${m.text()}`));
  page.on("pageerror", (e) => check(name, false, `error: ${e.message}`));
  page.on("request", (r) => check(name, /^(file|data|blob):/.test(r.url()), `fetches ${r.url()}`));
  await page.goto(`file://${name}`);
  const paint = await page.evaluate(
    () =>
      new Promise((seen) =>
        new PerformanceObserver((l) => seen(l.getEntries()[0].startTime)).observe({ type: "paint", buffered: true }),
      ),
  );
  check(name, paint < 2000, `first paint after ${paint} ms`);
  await page.waitForFunction(() => document.documentElement.dataset.ready !== undefined);
  check(name, (await page.evaluate(() => document.documentElement.dataset.ready)) === "true", "no pictures");

  // What stands in the page for everybody.
  for (const label of ["Who waited", "How long", "Why", "What would help", "Findings"]) {
    check(name, (await page.getByText(label).count()) > 0, `no ${label}`);
  }
  check(name, (await page.locator("svg.picture[role=img][aria-label]").count()) > 0, "no first picture");

  // Every chart of the member that is shown draws something.
  for (const place of await page.locator("article:not(.away) [data-chart]").all()) {
    await place.scrollIntoViewIfNeeded();
    const chart = await place.getAttribute("data-chart");
    await page.waitForFunction((p) => p.childElementCount > 0 || p.textContent !== "", await place.elementHandle());
    const drawn = await place.evaluate((p) =>
      [...p.querySelectorAll("canvas")].some((c) => {
        const all = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        return all.some((v, i) => i % 4 === 3 && v > 0);
      }),
    );
    check(name, drawn, `${chart}: nothing is drawn`);
  }
  const labels = await page.locator("article:not(.away) .u-label").allTextContents();
  for (const label of ["longer than", "mean", "highest"]) {
    check(name, labels.some((l) => l.includes(label)), `no series ${label}`);
  }

  // Zooming and pointing are answered before the next blink.
  const canvas = page.locator("article:not(.away) .layers canvas").nth(1);
  await canvas.scrollIntoViewIfNeeded();
  // A machine that is busy with other things takes long for everything: the median says
  // what the page itself takes, from the event to the frame that shows it.
  const slowest = await canvas.evaluate(async (c) => {
    const box = c.getBoundingClientRect();
    const frame = () => new Promise((shown) => requestAnimationFrame(() => setTimeout(shown, 0)));
    const median = async (acts) => {
      const times = [];
      for (const act of acts) {
        await frame();
        const start = performance.now();
        act();
        await frame();
        times.push(performance.now() - start);
      }
      return times.sort((a, b) => a - b)[times.length >> 1];
    };
    const at = (i) => ({ clientX: box.left + (box.width * i) / 20, clientY: box.top + (box.height * ((i * 7) % 20)) / 20 });
    const points = Array.from({ length: 20 }, (_, i) => () => c.dispatchEvent(new PointerEvent("pointermove", at(i))));
    const keys = ["+", "+", "ArrowLeft", "-", "+", "ArrowRight", "-", "+", "0"];
    const presses = keys.map((key) => () => c.dispatchEvent(new KeyboardEvent("keydown", { key })));
    return Math.max(await median(points), await median(presses));
  });
  check(name, slowest < 100, `zoom or hover took ${slowest} ms`);

  // From request to request by keyboard, said aloud.
  await canvas.focus();
  await page.keyboard.press("n");
  const said = await page.locator("article:not(.away) .said").textContent();
  check(name, /Q.*D.*C/.test(said ?? ""), `a request without its life: ${said}`);

  // A finding leads to its place.
  const button = page.locator("article:not(.away) [data-show]").first();
  if ((await button.count()) > 0) {
    await button.evaluate((b) => b.click());
    await page.waitForTimeout(50);
    check(name, await page.locator("article:not(.away) .tip").isVisible(), "a finding leads nowhere");
  }

  // On paper all members are there, no wider than a sheet.
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  check(name, (await page.locator("article.away").count()) === 0, "a member is not printed");
  const widths = await page.locator("canvas").evaluateAll((all) => all.map((c) => c.getBoundingClientRect().width));
  check(name, Math.max(...widths) <= 680, `a chart of ${Math.max(...widths)} pixels is cut off in print`);
  console.log(`${name}: first paint ${paint.toFixed(0)} ms, zoom and hover at most ${slowest.toFixed(0)} ms`);
  await page.close();
}
await browser.close();
process.exit(wrong > 0 ? 1 : 0);
