// SPDX-License-Identifier: MIT OR Apache-2.0
//! A picture as SVG, and axes.

use std::fmt::Write as _;

/// Colours of the parts of a latency, in the order of [`crate::model::PHASES`], and of
/// text upon them: Okabe and Ito's, which people with any colour vision tell apart.
pub(crate) const PHASE_COLOURS: [(&str, &str); 7] = [
    ("#cc79a7", "#000"),
    ("#a8a8a8", "#000"),
    ("#f0e442", "#000"),
    ("#e69f00", "#000"),
    ("#7cc4ee", "#000"),
    ("#0072b2", "#fff"),
    ("#d55e00", "#000"),
];

/// Colours of groups of processes and of runs, as the page has them on light ground; the
/// last one is shared.
pub(crate) const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#4aa3d8", "#6a4c93", "#777777",
];

/// How lines differ for who sees no colours.
pub(crate) const DASHES: [&str; 8] = ["", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "2 6", "1 2"];

/// Where a text is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture that is being drawn; lengths are in pixels of a page.
#[derive(Debug)]
pub(crate) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Svg {
        Svg {
            width,
            height,
            body: String::new(),
        }
    }

    /// Text; its size in pixels, its colour (`currentColor` is that of the page).
    pub(crate) fn text(
        &mut self,
        [x, y]: [f64; 2],
        anchor: Anchor,
        style: (f64, &str),
        text: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (size, fill) = style;
        let text = escaped(text);
        let _ = write!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\" fill=\"{fill}\">{text}</text>"
        );
    }

    pub(crate) fn line(&mut self, from: [f64; 2], to: [f64; 2], (width, stroke): (f64, &str)) {
        let ([x1, y1], [x2, y2]) = (from, to);
        let _ = write!(
            self.body,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{stroke}\" stroke-width=\"{width}\"/>"
        );
    }

    /// A rectangle, with what a pointer on it shows.
    pub(crate) fn rect(&mut self, [x, y, w, h]: [f64; 4], fill: &str, title: &str) {
        let title = escaped(title);
        let _ = write!(
            self.body,
            "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{w:.2}\" height=\"{h:.1}\" fill=\"{fill}\"><title>{title}</title></rect>"
        );
    }

    /// A circle, filled or not.
    pub(crate) fn circle(&mut self, [x, y]: [f64; 2], r: f64, colour: &str, is_filled: bool) {
        let fill = if is_filled { colour } else { "none" };
        let _ = write!(
            self.body,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"
        );
    }

    pub(crate) fn path(&mut self, d: &str, style: &str) {
        let _ = write!(self.body, "<path d=\"{d}\" {style}/>");
    }

    /// What is drawn meanwhile stands so far to the right and down.
    pub(crate) fn moved(&mut self, [right, down]: [f64; 2], draw: impl FnOnce(&mut Svg)) {
        let _ = write!(
            self.body,
            "<g transform=\"translate({right:.1} {down:.1})\">"
        );
        draw(self);
        self.body.push_str("</g>");
    }

    /// The picture as a file of its own, dark on light.
    pub(crate) fn standalone(&self, label: &str) -> String {
        let (w, h, label) = (self.width, self.height, escaped(label));
        let font = "font-family=\"Helvetica,Arial,sans-serif\"";
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" \
             height=\"{h}\" color=\"#1a1a1a\" {font}><title>{label}</title>\
             <rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>{}</svg>\n",
            self.body
        )
    }

    /// The picture within a page; `label` is what it shows, for who cannot see it.
    pub(crate) fn inline(&self, label: &str) -> String {
        let (w, h, label) = (self.width, self.height, escaped(label));
        format!(
            "<svg viewBox=\"0 0 {w} {h}\" role=\"img\" aria-label=\"{label}\" class=\"picture\">{}</svg>",
            self.body
        )
    }
}

/// Text as HTML and SVG have it.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // What XML has no form for.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A logarithmic axis of times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogAxis {
    from: f64,
    to: f64,
    at: [f64; 2],
}

impl LogAxis {
    /// From the power of ten below the smallest to that above the largest value, ns.
    pub(crate) fn new(min: u64, max: u64, at: [f64; 2]) -> LogAxis {
        let from = (min.max(1) as f64).log10().floor();
        let to = (max.max(1) as f64).log10().ceil();
        LogAxis {
            from,
            to: to.max(from + 1.0),
            at,
        }
    }

    pub(crate) fn place(&self, ns: u64) -> f64 {
        let share = ((ns.max(1) as f64).log10() - self.from) / (self.to - self.from);
        self.at[0] + share.clamp(0.0, 1.0) * (self.at[1] - self.at[0])
    }

    /// Powers of ten, with their names.
    pub(crate) fn ticks(&self) -> impl Iterator<Item = (u64, String)> + use<> {
        (self.from as u32..=self.to as u32).map(|e| {
            let ns = 10_u64.saturating_pow(e);
            let units = [
                (1_000_000_000, "s"),
                (1_000_000, "ms"),
                (1000, "µs"),
                (1, "ns"),
            ];
            let (unit, name) = units
                .into_iter()
                .find(|(u, _)| ns >= *u)
                .unwrap_or((1, "ns"));
            (ns, format!("{} {name}", ns / unit))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_whole_decades() {
        let axis = LogAxis::new(80_000, 1_100_000_000, [0.0, 60.0]);
        let ticks: Vec<String> = axis.ticks().map(|(_, name)| name).collect();
        assert_eq!(
            ticks,
            ["10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"]
        );
        assert_eq!(
            [axis.place(10_000), axis.place(10_000_000_000)],
            [0.0, 60.0]
        );
    }

    #[test]
    fn what_strangers_write_stays_text() {
        assert_eq!(escaped("<b>\"&'\u{1}"), "&lt;b&gt;&quot;&amp;&#39;\u{fffd}");
    }
}
