// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charts as PNG, for mails and programs that draw no SVG.

use blklab_types::Error;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// Arimo, whose letters are as wide as Arial's, without what no chart needs
/// (`fonts/README.md`): the picture is the same on every machine.
const FONT: &[u8] = include_bytes!("../fonts/sans.ttf");
const FAMILY: &str = "Blklab Sans";

/// Pixels for each of the page: sharp in print and on dense screens.
const SCALE: f32 = 2.0;

/// A chart of [`crate::charts::all`] as PNG.
///
/// # Errors
/// If it has no size, or one that no picture has: in a clause.
pub fn png(svg: &str) -> Result<Vec<u8>, Error> {
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family(FAMILY);
    let tree = Tree::from_str(svg, &options).map_err(|e| Error::new(e.to_string()))?;
    let size = tree.size().to_int_size();
    let side = |n: u32| (n as f32 * SCALE) as u32;
    let (width, height) = (side(size.width()), side(size.height()));
    let mut picture =
        Pixmap::new(width, height).ok_or_else(|| Error::new("the picture is too large"))?;
    let scale = Transform::from_scale(SCALE, SCALE);
    resvg::render(&tree, scale, &mut picture.as_mut());
    picture.encode_png().map_err(|e| Error::new(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::{Anchor, Svg};

    fn ink(picture: &Pixmap) -> usize {
        let dark = |p: &&resvg::tiny_skia::PremultipliedColorU8| p.red() < 128;
        picture.pixels().iter().filter(dark).count()
    }

    /// Text is drawn, whatever fonts the machine has, and the picture is twice as large as
    /// its drawing.
    #[test]
    fn text_is_drawn() {
        let mut svg = Svg::new(200.0, 40.0);
        let empty = Pixmap::decode_png(&png(&svg.standalone("x")).expect("a picture"));
        svg.text(
            [10.0, 25.0],
            Anchor::Start,
            (14.0, "currentColor"),
            "µs → 99.9 %",
        );
        let drawn = Pixmap::decode_png(&png(&svg.standalone("x")).expect("a picture"));
        let (empty, drawn) = (empty.expect("PNG"), drawn.expect("PNG"));
        assert_eq!((drawn.width(), drawn.height()), (400, 80));
        assert_eq!(ink(&empty), 0);
        assert!(ink(&drawn) > 300, "{}", ink(&drawn));
    }
}
