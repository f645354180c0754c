// SPDX-License-Identifier: MIT OR Apache-2.0
// Colours: Okabe and Ito's, which people with any colour vision tell apart; the last one
// is shared by all that have none of their own.

const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#4aa3d8", "#6a4c93", "#777777"];
const DARK = ["#56a9e0", "#ff8a3d", "#2fcf9f", "#e29cc4", "#e6b84a", "#9bd3f5", "#b59ae0", "#a0a0a0"];
const PHASES = ["#cc79a7", "#a8a8a8", "#f0e442", "#e69f00", "#7cc4ee", "#0072b2", "#d55e00"];
const PHASES_DARK = ["#cc79a7", "#a8a8a8", "#f0e442", "#e69f00", "#7cc4ee", "#2f8fd0", "#e8701a"];

export interface Theme {
  ink: string;
  faint: string;
  paper: string;
  mark: string;
  groups: string[];
  phases: string[];
}

const dark = matchMedia("(prefers-color-scheme: dark)");

export function theme(): Theme {
  const isDark = dark.matches && !document.body.classList.contains("paper");
  return isDark
    ? { ink: "#e8e8e8", faint: "#4a4a4a", paper: "#161616", mark: "#ffd75e", groups: DARK, phases: PHASES_DARK }
    : { ink: "#1a1a1a", faint: "#dddddd", paper: "#ffffff", mark: "#b00020", groups: LIGHT, phases: PHASES };
}

/** Calls back when the colours of the page change. */
export function onThemeChange(redraw: () => void): void {
  dark.addEventListener("change", redraw);
}

/** How lines differ for who sees no colours. */
export const DASHES: number[][] = [[], [7, 3], [2, 3], [9, 3, 2, 3], [4, 2], [12, 4], [2, 6], [1, 2]];

export const FONT = "12px system-ui, sans-serif";
