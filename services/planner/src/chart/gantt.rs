//! A chart of runs and plans on the nodes: a row for each node, a bar for each part of a run, promise, reservation or
//! closure. What sets a job apart shows: a frame around a job that opens a planning domain, an edge of its colour at jobs
//! inside, stripes over best effort, a thick border around a fixed start.

use super::{
    colour,
    scale::Marks,
    svg::{Anchor, Area, GRID, INK, Svg},
};
use muster_schemas::Timestamp;

/// The content of the chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gantt {
    /// The title above it.
    pub title: String,
    /// The left edge.
    pub from: Timestamp,
    /// The right edge; bars are cut off there.
    pub until: Timestamp,
    /// Marked by a line, if it lies between the edges.
    pub now: Timestamp,
    /// The nodes, from top to bottom. Those beyond the first 500 are only counted.
    pub rows: Vec<Row>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub label: String,
    /// In any order. Overlapping bars are drawn below each other; reservations and closures behind the others.
    pub bars: Vec<Bar>,
}

/// Something that holds a node, or a part of it, for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Its kind.
    pub kind: BarKind,
    /// The text on it if there is room: a job's id, a reservation's name. Bars with equal labels have the same
    /// colour.
    pub label: String,
    /// The text shown when the pointer is over it.
    pub tooltip: String,
    /// When it begins.
    pub from: Timestamp,
    /// When it ends; [`Timestamp::MAX`] if that is not known.
    pub until: Timestamp,
    /// What sets it apart from others of its kind.
    pub look: Look,
}

/// What sets the bar of a job apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The same in words, drawn behind the label if there is room.
    pub note: String,
    /// The planning domain that the job opens. It has the colour of the domain.
    pub opens: Option<String>,
    /// The planning domain that the job runs in.
    pub inside: Option<String>,
    /// Whether the job makes way for others (best effort).
    pub makes_way: bool,
    /// Whether the start is fixed.
    pub is_fixed: bool,
}

/// The meaning of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BarKind {
    /// A run that holds resources.
    Run,
    /// Resources promised to, or foreseen for, a waiting job.
    Slot,
    /// An advance reservation.
    Reservation,
    /// A time in which the node serves no jobs.
    Closure,
    /// A time in which the node sleeps, or is on its way to sleep or from it.
    Asleep,
}

impl BarKind {
    const fn class(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Slot => "slot",
            Self::Reservation => "reservation",
            Self::Closure => "closure",
            Self::Asleep => "asleep",
        }
    }

    /// Whether it covers the whole node, behind its runs.
    const fn is_ground(self) -> bool {
        matches!(self, Self::Reservation | Self::Closure | Self::Asleep)
    }
}

const WIDTH: f64 = 1200.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 80.0;
const BOTTOM: f64 = 40.0;
const LANE: f64 = 18.0;
const ROW_GAP: f64 = 6.0;
const MAX_ROWS: usize = 500;
/// Possible distances between ticks, in seconds; the span decides.
const STEPS_SECONDS: [i64; 13] =
    [1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 86_400, 604_800, 2_592_000, 31_536_000];

const PATTERNS: &str = "<pattern id=\"closed\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\" \
     patternTransform=\"rotate(45)\"><rect width=\"8\" height=\"8\" fill=\"#eeeeee\"/><rect width=\"3\" height=\"8\" \
     fill=\"#bbbbbb\"/></pattern><pattern id=\"reserved\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
     <rect width=\"6\" height=\"6\" fill=\"#fff3d6\"/><circle cx=\"3\" cy=\"3\" r=\"1\" fill=\"#e69f00\"/></pattern><pattern id=\"asleep\" width=\"8\" height=\"8\" \
     patternUnits=\"userSpaceOnUse\"><rect width=\"8\" height=\"8\" fill=\"#dde6f5\"/><path d=\"M2 2h3l-3 4h3\" \
     fill=\"none\" stroke=\"#7f95bd\"/></pattern><pattern id=\"makes-way\" width=\"7\" height=\"7\" \
     patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"3\" height=\"7\" fill=\"#ffffff\" \
     fill-opacity=\"0.55\"/></pattern>";
/// Colours of borders.
const FIXED: &str = "#d00000";
const RESERVED: &str = "#e69f00";
/// Something that opens no domain has no colour of one.
const NO_DOMAIN: &str = "#666666";
/// The width of a letter of labels, about.
const LETTER: f64 = 7.5;

/// Draws the chart.
pub fn gantt(chart: &Gantt) -> String {
    let shown = &chart.rows[..chart.rows.len().min(MAX_ROWS)];
    let rows: Vec<PlacedRow> = shown.iter().map(|row| PlacedRow::new(chart, row)).collect();
    let height = TOP + BOTTOM + rows.iter().map(PlacedRow::height).sum::<f64>();
    let mut svg = Svg::new(WIDTH, height, &chart.title);
    svg.definitions(PATTERNS);
    svg.text((LEFT, 28.0), Anchor::Start, 18, INK, &chart.title);
    legend(&mut svg, &rows);
    time_axis(&mut svg, chart, height - BOTTOM);
    let mut y = TOP;
    for row in &rows {
        row.draw(&mut svg, chart, y);
        y += row.height();
    }
    if chart.now >= chart.from && chart.now <= chart.until {
        let x = x_of(chart, chart.now);
        svg.line((x, TOP - 8.0), (x, height - BOTTOM), "#d00000");
        svg.text((x, height - BOTTOM + 16.0), Anchor::Middle, 12, "#d00000", "now");
    }
    if chart.rows.len() > MAX_ROWS {
        let more = format!("and {} more nodes", chart.rows.len() - MAX_ROWS);
        svg.text((LEFT - 8.0, height - 10.0), Anchor::Start, 12, INK, &more);
    }
    svg.finish()
}

fn x_of(chart: &Gantt, time: Timestamp) -> f64 {
    let span = chart.until.micros_since(chart.from).max(1) as f64;
    let at = time.clamp(chart.from, chart.until.max(chart.from)).micros_since(chart.from) as f64;
    LEFT + (WIDTH - LEFT - RIGHT) * at / span
}

fn time_axis(svg: &mut Svg, chart: &Gantt, bottom: f64) {
    let span = chart.until.micros_since(chart.from).max(1) / 1_000_000;
    let step = STEPS_SECONDS.into_iter().find(|step| span / step <= 10).unwrap_or(span / 10);
    let first = chart.from.unix_seconds().div_euclid(step) * step + step;
    let mut tick = Timestamp::from_unix_seconds(first);
    let marks = Marks { lines: (TOP - 8.0, bottom), stroke: GRID, labels: TOP - 14.0, size: 11 };
    while tick <= chart.until {
        let text = tick.to_string();
        // 2026-11-20T08:30:00.000000Z
        let label = if step >= 86_400 { &text[..10] } else { text.get(5..19).unwrap_or(&text) };
        marks.draw(svg, x_of(chart, tick), &label.replace('T', " "));
        tick = tick.plus_seconds(step);
    }
}

/// A row whose bars have found their lanes.
struct PlacedRow<'g> {
    label: &'g str,
    /// The lane of each bar; ground bars have none.
    bars: Vec<(&'g Bar, Option<usize>)>,
    lanes: usize,
}

impl<'g> PlacedRow<'g> {
    fn new(chart: &Gantt, row: &'g Row) -> Self {
        let mut bars: Vec<&Bar> = row
            .bars
            .iter()
            .filter(|bar| bar.until > chart.from && bar.from < chart.until && bar.from < bar.until)
            .collect();
        // The ground is drawn first; runs come before promises that begin at the same time, and a domain before what is inside.
        bars.sort_by_key(|bar| (!bar.kind.is_ground(), bar.from, bar.kind, bar.look.opens.is_none(), bar.until));
        let mut ends: Vec<Timestamp> = Vec::new();
        let mut place = |bar: &Bar| {
            let lane = ends.iter().position(|end| *end <= bar.from).unwrap_or(ends.len());
            match ends.get_mut(lane) {
                Some(end) => *end = bar.until,
                None => ends.push(bar.until),
            }
            lane
        };
        let bars = bars.into_iter().map(|bar| (bar, (!bar.kind.is_ground()).then(|| place(bar)))).collect();
        Self { label: &row.label, bars, lanes: ends.len().max(1) }
    }

    fn height(&self) -> f64 {
        self.lanes as f64 * LANE + ROW_GAP
    }

    fn draw(&self, svg: &mut Svg, chart: &Gantt, y: f64) {
        let bottom = y + self.height();
        svg.text((LEFT - 8.0, y + LANE / 2.0 + 4.0), Anchor::End, 12, INK, self.label);
        for (bar, lane) in &self.bars {
            let (left, right) = (x_of(chart, bar.from), x_of(chart, bar.until));
            let (top, height) = match lane {
                Some(lane) => (y + *lane as f64 * LANE, LANE - 2.0),
                None => (y, self.height() - ROW_GAP),
            };
            let area = Area { x: left, y: top, width: (right - left).max(1.0), height };
            draw_bar(svg, bar, area);
            let is_covered = || self.bars.iter().any(|(other, lane)| lane.is_some() && overlap(bar, other));
            if bar.kind.is_ground() && !is_covered() {
                write_label(svg, &bar.label, area, INK);
            }
        }
        svg.line((LEFT, bottom - ROW_GAP / 2.0), (WIDTH - RIGHT, bottom - ROW_GAP / 2.0), GRID);
    }
}

/// Whether two bars are drawn over each other, apart from their lanes.
fn overlap(one: &Bar, other: &Bar) -> bool {
    one.from < other.until && other.from < one.until
}

fn draw_bar(svg: &mut Svg, bar: &Bar, area: Area) {
    let Look { note, opens, inside, makes_way, is_fixed } = &bar.look;
    let own = colour(number_of(opens.as_ref().unwrap_or(&bar.label)));
    let (fill, mut more, mut ink) = match bar.kind {
        BarKind::Run => (own, String::new(), "#ffffff"),
        BarKind::Slot => (own, format!(" fill-opacity=\"0.3\" stroke=\"{own}\" stroke-dasharray=\"3 2\""), INK),
        BarKind::Reservation => ("url(#reserved)", format!(" stroke=\"{RESERVED}\""), INK),
        BarKind::Closure => ("url(#closed)", String::new(), INK),
        BarKind::Asleep => ("url(#asleep)", String::new(), INK),
    };
    if opens.is_some() && bar.kind == BarKind::Run {
        (more, ink) = (format!(" fill-opacity=\"0.3\" stroke=\"{own}\" stroke-width=\"2.5\""), INK);
    } else if *is_fixed {
        let opacity = if bar.kind == BarKind::Slot { " fill-opacity=\"0.3\"" } else { "" };
        more = format!("{opacity} stroke=\"{FIXED}\" stroke-width=\"2\"");
    }
    svg.bar(bar.kind.class(), area, fill, &more, &bar.tooltip);
    if *makes_way {
        svg.bar("makes-way", area, "url(#makes-way)", "", &bar.tooltip);
        ink = INK;
    }
    if let Some(domain) = inside {
        let edge = Area { width: area.width.min(5.0), ..area };
        let own = colour(number_of(domain));
        svg.bar("inside", edge, own, " stroke=\"#ffffff\" stroke-width=\"0.5\"", &bar.tooltip);
    }
    if !bar.kind.is_ground() {
        let with_note = format!("{} {note}", bar.label);
        let has_room = !note.is_empty() && letters(&with_note) < room(area);
        write_label(svg, if has_room { &with_note } else { &bar.label }, area, ink);
    }
}

fn letters(text: &str) -> usize {
    text.chars().count()
}

/// How many letters fit.
fn room(area: Area) -> usize {
    (area.width / LETTER) as usize
}

/// Writes a label on a bar, if there is room.
fn write_label(svg: &mut Svg, label: &str, area: Area, ink: &str) {
    if letters(label) < room(area) {
        let at = (area.x + area.width / 2.0, area.y + LANE / 2.0 + 3.0);
        svg.text(at, Anchor::Middle, 11, ink, label);
    }
}

/// Says what the looks mean that the chart has.
fn legend(svg: &mut Svg, rows: &[PlacedRow]) {
    let has = |of: &dyn Fn(&Bar) -> bool| rows.iter().flat_map(|row| &row.bars).any(|(bar, _)| of(bar));
    let framed = format!(" stroke=\"{NO_DOMAIN}\" stroke-width=\"2.5\"");
    let fixed = format!(" stroke=\"{FIXED}\" stroke-width=\"2\"");
    let entries: [(bool, &str, &str, &str); 7] = [
        (has(&|bar| bar.look.opens.is_some()), "planning domain", "#ffffff", &framed),
        (has(&|bar| bar.look.inside.is_some()), "inside one (edge of its colour)", NO_DOMAIN, ""),
        (has(&|bar| bar.look.makes_way), "best effort", "url(#makes-way)", ""),
        (has(&|bar| bar.look.is_fixed), "fixed start", "#ffffff", &fixed),
        (has(&|bar| bar.kind == BarKind::Reservation), "reservation", "url(#reserved)", ""),
        (has(&|bar| bar.kind == BarKind::Asleep), "node asleep", "url(#asleep)", ""),
        (has(&|bar| bar.kind == BarKind::Closure), "node closed", "url(#closed)", ""),
    ];
    let mut x = LEFT;
    for (_, words, fill, more) in entries.into_iter().filter(|(is_there, ..)| *is_there) {
        let width = if words.starts_with("inside") { 5.0 } else { 14.0 };
        let area = Area { x, y: 39.0, width, height: 10.0 };
        if fill == "url(#makes-way)" {
            svg.bar("legend", area, NO_DOMAIN, "", words);
        }
        svg.bar("legend", area, fill, more, words);
        svg.text((x + width + 5.0, 48.0), Anchor::Start, 11, INK, words);
        x += width + 20.0 + letters(words) as f64 * LETTER * 0.85;
    }
}

/// The same number for the same label, on every machine.
fn number_of(label: &str) -> usize {
    let mix = |sum: u32, byte: u8| (sum ^ u32::from(byte)).wrapping_mul(16_777_619);
    label.bytes().fold(2_166_136_261, mix) as usize
}
