//! SVG text, element by element.

use std::fmt::Write as _;

/// Fonts to try, in this order.
const FONTS: &str = "DejaVu Sans, Liberation Sans, Noto Sans, Arial, Helvetica, sans-serif";

/// The colour of text and full lines.
pub(super) const INK: &str = "#222222";
/// The colour of lines that only guide the eye.
pub(super) const GRID: &str = "#dddddd";

/// The position of a text relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    const fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A rectangle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Area {
    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }

    pub fn right(&self) -> f64 {
        self.x + self.width
    }
}

/// A picture in the making.
pub(super) struct Svg {
    text: String,
}

impl Svg {
    /// An empty picture on white ground. `title` says what it shows.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        let mut text = String::new();
        let _ = write!(
            text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"{FONTS}\" role=\"img\">\n<title>{}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            escape(title)
        );
        Self { text }
    }

    /// Elements for use by reference, such as patterns; they must be well-formed.
    pub fn definitions(&mut self, content: &str) {
        let _ = writeln!(self.text, "<defs>{content}</defs>");
    }

    /// A filled rectangle of a class, with a tooltip and further attributes.
    pub fn bar(&mut self, class: &str, area: Area, fill: &str, more: &str, tooltip: &str) {
        let Area { x, y, width, height } = area;
        let _ = writeln!(
            self.text,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"{fill}\"{more}><title>{}</title></rect>",
            escape(tooltip)
        );
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.text,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{stroke}\"/>"
        );
    }

    /// A line through points, with a tooltip.
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)], stroke: &str, tooltip: &str) {
        let mut list = String::new();
        for (x, y) in points {
            let _ = write!(list, "{}{x:.1},{y:.1}", if list.is_empty() { "" } else { " " });
        }
        let _ = writeln!(
            self.text,
            "<polyline class=\"{class}\" points=\"{list}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"1.5\" \
             stroke-linejoin=\"round\"><title>{}</title></polyline>",
            escape(tooltip)
        );
    }

    /// A line of text of the size given in pixels.
    pub fn text(&mut self, at: (f64, f64), anchor: Anchor, size: u32, fill: &str, content: &str) {
        let _ = writeln!(
            self.text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{}\" font-size=\"{size}\" fill=\"{fill}\">{}</text>",
            at.0,
            at.1,
            anchor.word(),
            escape(content)
        );
    }

    /// The whole text.
    pub fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// Text between tags or in an attribute. Characters that XML cannot hold become question marks: names come from users.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            '\u{fffe}' | '\u{ffff}' => escaped.push('?'),
            other if other.is_control() => escaped.push('?'),
            other => escaped.push(other),
        }
    }
    escaped
}
