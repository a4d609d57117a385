//! The course of a simulation, or of several for comparison: waits, utilisation, queue length.

use super::{
    colour,
    scale::{Marks, label, means, ticks},
    svg::{Anchor, Area, GRID, INK, Svg},
};

/// The curves of one simulation in a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// The name of its policy.
    pub name: String,
    /// The waits of its jobs, in seconds.
    pub waits_seconds: Vec<i64>,
    /// The share of the machine in use from each time (in seconds) on, times [`Course::machine_procs`].
    pub procs_in_use: Vec<(i64, i64)>,
    /// Jobs that wait from each time (in seconds) on.
    pub jobs_waiting: Vec<(i64, i64)>,
    /// Processors of the machine.
    pub machine_procs: u64,
}

const WIDTH: f64 = 960.0;
const PANEL_HEIGHT: f64 = 200.0;
const PANEL_GAP: f64 = 70.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 90.0;
/// The number of points in the curve of a course.
const POINTS: usize = 600;
const SECONDS_PER_DAY: f64 = 86_400.0;

/// Upper bounds of the waits in each bar; a bar counts waits above the bound of the bar before.
const WAIT_BOUNDS: [(i64, &str); 9] = [
    (0, "none"),
    (10, "10 s"),
    (60, "1 min"),
    (600, "10 min"),
    (3_600, "1 h"),
    (21_600, "6 h"),
    (86_400, "1 day"),
    (604_800, "1 week"),
    (i64::MAX, "longer"),
];

/// Three panels over simulated days: the distribution of waits, how much of the machine is in use, how many jobs wait.
pub fn courses(title: &str, courses: &[Course]) -> String {
    let height = TOP + 3.0 * PANEL_HEIGHT + 3.0 * PANEL_GAP;
    let mut svg = Svg::new(WIDTH, height, title);
    svg.text((LEFT, 30.0), Anchor::Start, 18, INK, title);
    legend(&mut svg, courses);
    let panel = |number: u32| Area {
        x: LEFT,
        y: TOP + f64::from(number) * (PANEL_HEIGHT + PANEL_GAP),
        width: WIDTH - LEFT - RIGHT,
        height: PANEL_HEIGHT,
    };
    waits(&mut svg, panel(0), courses);
    let span = span(courses);
    let utilisation = |course: &Course| {
        let share = 1.0 / course.machine_procs.max(1) as f64;
        means(&course.procs_in_use, span.0, span.1, POINTS).into_iter().map(|procs| procs * share * 100.0).collect()
    };
    let lines =
        |of: &dyn Fn(&Course) -> Vec<f64>| courses.iter().map(|course| (course, of(course))).collect::<Vec<_>>();
    over_time(&mut svg, panel(1), span, "utilization", "processors in use (%)", Some(100.0), &lines(&utilisation));
    let waiting = |course: &Course| means(&course.jobs_waiting, span.0, span.1, POINTS);
    over_time(&mut svg, panel(2), span, "queue", "jobs waiting", None, &lines(&waiting));
    svg.finish()
}

fn legend(svg: &mut Svg, courses: &[Course]) {
    let mut x = LEFT;
    for (number, course) in courses.iter().enumerate() {
        svg.bar("key", Area { x, y: 46.0, width: 12.0, height: 12.0 }, colour(number), "", &course.name);
        svg.text((x + 18.0, 57.0), Anchor::Start, 13, INK, &course.name);
        x += 34.0 + 8.0 * course.name.chars().count() as f64;
    }
}

/// From the first to the last change in any course.
fn span(courses: &[Course]) -> (i64, i64) {
    let times = || courses.iter().flat_map(|course| course.procs_in_use.iter().chain(&course.jobs_waiting));
    let first = times().map(|(time, _)| *time).min().unwrap_or(0);
    let last = times().map(|(time, _)| *time).max().unwrap_or(first);
    (first, last.max(first + 1))
}

fn waits(svg: &mut Svg, area: Area, courses: &[Course]) {
    let counts: Vec<[usize; WAIT_BOUNDS.len()]> =
        courses.iter().map(|course| by_bound(&course.waits_seconds)).collect();
    let share = |count: usize, course: &Course| count as f64 * 100.0 / course.waits_seconds.len().max(1) as f64;
    let shares = counts.iter().zip(courses).flat_map(|(counts, course)| counts.map(|count| share(count, course)));
    let scale = Scale::new(area, shares.fold(0.0, f64::max));
    scale.draw(svg, "share of the jobs by wait (%), bounds on a log scale");
    let slot = area.width / WAIT_BOUNDS.len() as f64;
    let bar_width = slot * 0.8 / courses.len().max(1) as f64;
    for (at, (_, name)) in WAIT_BOUNDS.iter().enumerate() {
        let left = area.x + at as f64 * slot + slot * 0.1;
        let label = if matches!(*name, "none" | "longer") { (*name).to_owned() } else { format!("to {name}") };
        svg.text((left + slot * 0.4, area.bottom() + 18.0), Anchor::Middle, 12, INK, &label);
        for (number, (counts, course)) in counts.iter().zip(courses).enumerate() {
            let percent = share(counts[at], course);
            let top = scale.y(percent);
            let x = left + number as f64 * bar_width;
            let bar = Area { x, y: top, width: bar_width, height: area.bottom() - top };
            let tooltip = format!("{}: wait {label}: {} jobs, {percent:.1} %", course.name, counts[at]);
            svg.bar("wait", bar, colour(number), "", &tooltip);
        }
    }
}

fn by_bound(waits: &[i64]) -> [usize; WAIT_BOUNDS.len()] {
    let mut counts = [0; WAIT_BOUNDS.len()];
    for wait in waits {
        let at = WAIT_BOUNDS.partition_point(|(bound, _)| bound < wait);
        counts[at.min(WAIT_BOUNDS.len() - 1)] += 1;
    }
    counts
}

fn over_time(
    svg: &mut Svg,
    area: Area,
    (first, last): (i64, i64),
    class: &str,
    title: &str,
    greatest: Option<f64>,
    lines: &[(&Course, Vec<f64>)],
) {
    let found = lines.iter().flat_map(|(_, values)| values).fold(0.0f64, |greatest, value| greatest.max(*value));
    let scale = Scale::new(area, greatest.unwrap_or(found));
    scale.draw(svg, title);
    let days = (last - first) as f64 / SECONDS_PER_DAY;
    let bottom = area.bottom();
    let marks = Marks { lines: (bottom, bottom + 5.0), stroke: INK, labels: bottom + 18.0, size: 12 };
    for day in ticks(days, 8).into_iter().filter(|day| *day <= days) {
        marks.draw(svg, area.x + area.width * day / days, &label(day));
    }
    svg.text((area.right(), area.bottom() + 36.0), Anchor::End, 12, INK, "simulated days");
    for (number, (course, values)) in lines.iter().enumerate() {
        let point = |(at, value): (usize, &f64)| {
            (area.x + area.width * (at as f64 + 0.5) / values.len() as f64, scale.y(*value))
        };
        let points: Vec<_> = values.iter().enumerate().map(point).collect();
        let peak = values.iter().fold(0.0f64, |peak, value| peak.max(*value));
        svg.polyline(class, &points, colour(number), &format!("{}: {title}, at most {peak:.1}", course.name));
    }
}

/// A vertical axis from 0.
struct Scale {
    area: Area,
    ticks: Vec<f64>,
}

impl Scale {
    fn new(area: Area, greatest: f64) -> Self {
        Self { area, ticks: ticks(greatest, 4) }
    }

    fn y(&self, value: f64) -> f64 {
        let top = self.ticks.last().copied().unwrap_or(1.0);
        self.area.bottom() - self.area.height * (value / top).clamp(0.0, 1.0)
    }

    fn draw(&self, svg: &mut Svg, title: &str) {
        svg.text((self.area.x, self.area.y - 12.0), Anchor::Start, 14, INK, title);
        for tick in &self.ticks {
            let y = self.y(*tick);
            svg.line((self.area.x, y), (self.area.right(), y), GRID);
            svg.text((self.area.x - 8.0, y + 4.0), Anchor::End, 12, INK, &label(*tick));
        }
        svg.line((self.area.x, self.area.bottom()), (self.area.right(), self.area.bottom()), INK);
    }
}
