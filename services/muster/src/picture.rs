//! Charts as pixels: PNG made from the SVG that is shown elsewhere.

use crate::exit::Failure;
use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{Options, Tree},
};
use std::sync::Arc;

/// Pixels for each pixel of the SVG, so that text is sharp on today's screens.
const SCALE: f32 = 2.0;

/// Draws an SVG with the fonts of this system.
pub fn png(svg: &str) -> Result<Vec<u8>, Failure> {
    let cannot = |reason: String| Failure::failed(format!("the chart cannot be drawn as PNG: {reason}"));
    let mut options = Options::default();
    let fonts = Arc::make_mut(&mut options.fontdb);
    fonts.load_system_fonts();
    if fonts.is_empty() {
        return Err(cannot("this system has no fonts (Debian: fonts-dejavu-core); --svg needs none".into()));
    }
    let tree = Tree::from_str(svg, &options).map_err(|error| cannot(error.to_string()))?;
    let size = tree.size().to_int_size().scale_by(SCALE).unwrap_or(tree.size().to_int_size());
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or_else(|| cannot("it is too large".into()))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| cannot(error.to_string()))
}
