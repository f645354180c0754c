#!/usr/bin/env python3
"""Draws docs/images/ssh-beside-dd.svg from the result of the main example.

    blklab run examples/ssh-beside-dd.toml --output-format json \
        | scripts/picture.py > docs/images/ssh-beside-dd.svg
"""
import json
import math
import sys

W, H, LEFT, RIGHT, TOP, BOTTOM = 760, 380, 70, 20, 46, 52
COLOURS = {
    "noop": "#c1440e",
    "anticipatory": "#7a5195",
    "deadline": "#1f6f8b",
    "cfq": "#2e8b57",
    "cfq, patched": "#e0a100",
}
T_MAX, LOW, HIGH = 270.0, 0.3, 600.0


def x(seconds):
    return LEFT + seconds / T_MAX * (W - LEFT - RIGHT)


def y(seconds):
    share = math.log(seconds / LOW) / math.log(HIGH / LOW)
    return H - BOTTOM - share * (H - TOP - BOTTOM)


def main():
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {W} {H}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{W}" height="{H}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14" fill="#222222">How long a login takes beside a '
        "10 GiB copy (Linux 2.6.28, simulated)</text>",
    ]
    for s, label in [(0.5, "0.5 s"), (1, "1 s"), (10, "10 s"), (60, "1 min"), (180, "3 min")]:
        out.append(f'<line x1="{LEFT}" x2="{W - RIGHT}" y1="{y(s):.1f}" y2="{y(s):.1f}" stroke="#dddddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(s) + 4:.1f}" text-anchor="end" fill="#444444">{label}</text>')
    for s in range(0, 271, 30):
        out.append(f'<text x="{x(s):.1f}" y="{H - BOTTOM + 18}" text-anchor="middle" fill="#444444">{s}</text>')
    out.append(f'<text x="{(LEFT + W) / 2}" y="{H - 12}" text-anchor="middle" fill="#444444">'
               "start of the login, s after the copy</text>")
    for i, run in enumerate(json.load(sys.stdin)):
        name = run["blklab"]["label"]
        colour = COLOURS.get(name, "#555555")
        writer = [j for j in run["jobs"] if j["write"]["io_bytes"]][0]["write"]["runtime"] / 1000
        out.append(f'<line x1="{x(writer):.1f}" x2="{x(writer):.1f}" y1="{TOP}" y2="{H - BOTTOM}" '
                   f'stroke="{colour}" stroke-dasharray="3 4"/>')
        for job in run["jobs"]:
            if job["read"]["io_bytes"]:
                start = float(job["job options"].get("startdelay", 0))
                took = job["read"]["runtime"] / 1000
                out.append(f'<circle cx="{x(start):.1f}" cy="{y(took):.1f}" r="4" fill="{colour}" '
                           'fill-opacity="0.75"/>')
        lx = W - RIGHT - 220
        out.append(f'<circle cx="{lx}" cy="{TOP + 12 + 18 * i}" r="4" fill="{colour}"/>')
        out.append(f'<text x="{lx + 10}" y="{TOP + 16 + 18 * i}" fill="#222222">{name} '
                   f"(copy ends at {writer:.0f} s)</text>")
    out.append("</svg>")
    print("\n".join(out))


main()
