//! Charts as PNG, made from their SVG.

use crate::exit::Failure;

/// Draws an SVG with the fonts of this system.
pub fn png(svg: &str) -> Result<Vec<u8>, Failure> {
    draw(svg).map_err(|reason| Failure::failed(format!("the chart cannot be drawn as PNG: {reason}")))
}

#[cfg(not(feature = "pictures"))]
fn draw(_: &str) -> Result<Vec<u8>, String> {
    Err("this muster is built without pictures; --svg needs none".into())
}

#[cfg(feature = "pictures")]
fn draw(svg: &str) -> Result<Vec<u8>, String> {
    use resvg::{
        tiny_skia::{Pixmap, Transform},
        usvg::{Options, Tree},
    };

    /// Pixels for each pixel of the SVG, so that text is sharp on modern screens.
    const SCALE: f32 = 2.0;

    let mut options = Options::default();
    let fonts = std::sync::Arc::make_mut(&mut options.fontdb);
    fonts.load_system_fonts();
    if fonts.is_empty() {
        return Err("this system has no fonts (Debian: fonts-dejavu-core); --svg needs none".into());
    }
    let tree = Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
    let size = tree.size().to_int_size().scale_by(SCALE).unwrap_or(tree.size().to_int_size());
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or("it is too large")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}
