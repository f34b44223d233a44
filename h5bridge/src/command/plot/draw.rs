//! Draws the frames, the data of plots, as pictures: axes with marks, a raster in colours or lines,
//! title and legend. Sizes and positions are in pixels, from the upper left corner. The functions
//! that draw the data return the ends of both axes, from which their labels take the unit and the
//! day; `None` without data.

use ms_look::{Axis, Frame, Plot};

use super::marks::{fraction, label, marks, short, shortened};
use super::palette::{self, Colour, FAINT, FLAGGED, INK, NOTHING, PAPER};
use super::panel::{Axes, Panel, Raster, numbers, runs};
use super::scene::{Anchor, Area, Scene, Shape, Size};

/// Width for the texts left of a plot.
const LEFT: f64 = 100.;
const TOP: f64 = 58.;
const BOTTOM: f64 = 56.;
const RIGHT_OF_RASTER: f64 = 118.;
const RIGHT: f64 = 24.;

/// Lines with at most this many points also show dots; phases with more have smaller dots.
const DOTS: usize = 400;

/// The values at the left and right, and at the lower and upper edge.
type Ends = ((f64, f64), (f64, f64));

/// Panels follow each other along lines of `columns` panels.
pub(super) fn scene(panels: &[Panel], columns: usize, (width, height): (usize, usize)) -> Scene {
    let mut scene = Scene { width, height, shapes: Vec::new() };
    let across = width as f64 / columns as f64;
    let each = height as f64 / panels.len().div_ceil(columns).max(1) as f64;
    for (number, panel) in panels.iter().enumerate() {
        let left = ((number % columns) as f64 * across).round();
        let top = ((number / columns) as f64 * each).round();
        draw_panel(&mut scene, panel, Area::new(left, (left + across).round(), top, (top + each).round()));
    }
    scene
}

fn draw_panel(scene: &mut Scene, panel: &Panel, whole: Area) {
    let frame = &panel.frame;
    let mut raster = panel.raster();
    let names = legend_names(frame);
    let area = plot_area(&frame.plot, whole, raster.as_ref(), &names);
    if let Some(raster) = &mut raster {
        raster.fit((area.width(), area.height()), true);
    }
    heading(scene, panel, whole, &area, raster.as_ref());
    let ends = match raster {
        Some(raster) => draw_raster(scene, &area, panel, &raster),
        None => draw_lines(scene, &area, frame, &names),
    };
    for (from, to) in [
        ((area.left - 1., area.top - 1.), (area.right, area.top - 1.)),
        ((area.left - 1., area.bottom), (area.right, area.bottom)),
        ((area.left - 1., area.top - 1.), (area.left - 1., area.bottom)),
        ((area.right, area.top - 1.), (area.right, area.bottom)),
    ] {
        scene.line(from, to, INK, "frame");
    }
    let words = label(&frame.plot.x, ends.map(|ends| ends.0));
    scene.text((area.middle().0, area.bottom + 38.), Anchor::Middle, &words, "label-x");
    let words = label(&frame.plot.y, ends.map(|ends| ends.1));
    turned(scene, (area.left - LEFT + 14., area.middle().1), &words, "label-y");
}

fn plot_area(plot: &Plot, whole: Area, raster: Option<&Raster>, names: &[String]) -> Area {
    let right = match (raster, names.is_empty()) {
        (Some(_), _) => RIGHT_OF_RASTER,
        (None, true) => RIGHT,
        (None, false) => {
            let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
            RIGHT + 34. + Size::Normal.character() * longest as f64
        }
    };
    let area = Area::new(whole.left + LEFT, whole.right - right, whole.top + TOP, whole.bottom - BOTTOM);
    if !plot.has_equal_axes() {
        return area;
    }
    // metres east and north, or u and v, are as long
    let span = |edges: &[f64]| edges.first().zip(edges.last()).map_or(1., |(first, last)| (last - first).abs());
    let ratio = raster.map_or(1., |raster| span(&raster.x) / span(&raster.y));
    let ratio = if ratio.is_finite() { ratio.clamp(0.2, 5.) } else { 1. };
    let width = area.width().min(area.height() * ratio).round();
    let left = (area.middle().0 - width / 2.).round();
    Area::new(left, left + width, area.top, area.top + (width / ratio).round())
}

fn heading(scene: &mut Scene, panel: &Panel, whole: Area, area: &Area, raster: Option<&Raster>) {
    let left = whole.left + LEFT;
    let title = Shape::Text {
        at: (left, whole.top + 18.),
        anchor: Anchor::Start,
        size: Size::Title,
        turned: false,
        text: shortened(&panel.title(), ((whole.right - left) / Size::Title.character()) as usize),
        class: "title",
    };
    scene.shapes.push(title);
    // the keys of a raster are at the right
    let width = match raster.map_or(0., |raster| keys(raster).iter().map(|(words, _)| key_width(words)).sum()) {
        0. => whole.right - left - 8.,
        keys => area.right - left - keys,
    };
    let note = shortened(&panel.note(), (width / Size::Normal.character()) as usize);
    scene.text((left, whole.top + 40.), Anchor::Start, &note, "note");
}

/// Adds a text that reads from bottom to top; `at` is its middle.
fn turned(scene: &mut Scene, at: (f64, f64), text: &str, class: &'static str) {
    let text = text.to_owned();
    scene.shapes.push(Shape::Text { at, anchor: Anchor::Middle, size: Size::Normal, turned: true, text, class });
}

fn nothing(scene: &mut Scene, area: &Area) {
    scene.text(area.middle(), Anchor::Middle, "nothing to show", "note");
}

fn draw_raster(scene: &mut Scene, area: &Area, panel: &Panel, raster: &Raster) -> Option<Ends> {
    let plot = &panel.frame.plot;
    let (x, y) = (&raster.x, &raster.y);
    let (Some((&left, &right)), Some((&bottom, &top))) = (x.first().zip(x.last()), y.first().zip(y.last())) else {
        nothing(scene, area);
        return None;
    };
    if raster.columns == 0 || raster.lines == 0 {
        nothing(scene, area);
        return None;
    }
    let (columns, lines) = (raster.columns_at(area.width()), raster.lines_at(area.height()));
    let mut pixels = Vec::with_capacity(3 * columns.len() * lines.len());
    for &line in lines.iter().rev() {
        columns.iter().for_each(|&column| pixels.extend(raster.colour(line, column)));
    }
    scene.shapes.push(Shape::Image { area: *area, columns: columns.len(), pixels });
    horizontal_marks(scene, area, &plot.x, left, right);
    vertical_marks(scene, area, &plot.y, bottom, top);
    draw_beam(scene, area, &panel.frame, [(left, right), (bottom, top)]);
    colour_bar(scene, area, raster);
    let mut at = area.right + 1.;
    for (words, colour) in keys(raster) {
        let left = at - key_width(words) + 32.;
        scene.text((left, area.top - 10.), Anchor::Start, words, "key");
        scene.rectangle(Area::new(left - 18., left - 6., area.top - 16., area.top - 4.), colour, "key");
        at -= key_width(words);
    }
    Some(((left, right), (bottom, top)))
}

/// The colours of cells without values that are drawn, and their words.
fn keys(raster: &Raster) -> Vec<(&'static str, Colour)> {
    let flagged = raster.has_flagged().then_some(("all flagged", FLAGGED));
    flagged.into_iter().chain(raster.has_nothing().then_some(("no values", NOTHING))).collect()
}

/// Width of the words of a key, its colour, and the space before it.
fn key_width(words: &str) -> f64 {
    Size::Normal.character() * words.chars().count() as f64 + 32.
}

/// Draws the ellipse of an image's beam in the lower left corner.
fn draw_beam(scene: &mut Scene, area: &Area, frame: &Frame, [(left, right), (bottom, top)]: [(f64, f64); 2]) {
    let [major, minor, angle] = numbers(frame, "beam")[..] else { return };
    let (across, up) = (area.width() / (right - left), area.height() / (top - bottom));
    let (sin, cos) = angle.to_radians().sin_cos();
    let half = major.max(minor) / 2. * across.abs().max(up.abs());
    if !half.is_finite() || 4. * half > area.width().min(area.height()) {
        return;
    }
    let centre = (area.left + half + 12., area.bottom - half - 12.);
    let point = |step: u32| {
        let (y, x) = (f64::from(step) / 48. * std::f64::consts::TAU).sin_cos();
        let (along, beside) = (major / 2. * x, minor / 2. * y);
        // from north to east, in which the first axis grows
        let (east, north) = (along * sin + beside * cos, along * cos - beside * sin);
        (centre.0 + east * across, centre.1 - north * up)
    };
    for (width, colour) in [(3., PAPER), (1.5, INK)] {
        let title = "beam".to_owned();
        scene.shapes.push(Shape::Line { points: (0..=48).map(point).collect(), width, colour, class: "beam", title });
    }
}

fn colour_bar(scene: &mut Scene, area: &Area, raster: &Raster) {
    let bar = Area::new(area.right + 14., area.right + 30., area.top, area.bottom);
    let steps = 128;
    let pixels = (0..=steps).rev().flat_map(|step| palette::scale(f64::from(step) / f64::from(steps))).collect();
    scene.shapes.push(Shape::Image { area: bar, columns: 1, pixels });
    let (low, high) = (raster.value(0.), raster.value(1.));
    let mut found = marks(&raster.z_axis(), low, high, ((bar.height() / 60.) as usize).max(3));
    if found.is_empty() {
        found.push((low, short(low)));
    }
    for (value, text) in found {
        let y = bar.y(raster.fraction(value)).min(bar.bottom - 1.);
        scene.line((bar.right, y), (bar.right + 4., y), INK, "mark");
        scene.text((bar.right + 7., y), Anchor::Start, &text, "mark-z");
    }
    turned(scene, (area.right + 104., area.middle().1), &label(&raster.z, Some((low, high))), "label-z");
}

fn horizontal_marks(scene: &mut Scene, area: &Area, axis: &Axis, low: f64, high: f64) {
    for (value, text) in marks(axis, low.min(high), low.max(high), ((area.width() / 110.) as usize).max(4)) {
        let x = area.x((value - low) / (high - low));
        scene.line((x, area.bottom), (x, area.bottom + 5.), INK, "mark");
        scene.text((x, area.bottom + 16.), Anchor::Middle, &text, "mark-x");
    }
}

fn vertical_mark(scene: &mut Scene, area: &Area, fraction: f64, text: &str) {
    let y = area.y(fraction);
    scene.line((area.left - 6., y), (area.left - 1., y), INK, "mark");
    scene.text((area.left - 9., y), Anchor::End, text, "mark-y");
}

fn vertical_marks(scene: &mut Scene, area: &Area, axis: &Axis, low: f64, high: f64) {
    for (value, text) in marks(axis, low.min(high), low.max(high), ((area.height() / 60.) as usize).max(4)) {
        vertical_mark(scene, area, fraction(axis, value, (low, high)), &text);
    }
}

/// Empty for rasters, bars, scatter plots and a single line named `flagged`.
fn legend_names(frame: &Frame) -> Vec<String> {
    match frame.plot.series.as_deref() {
        Some(names) if frame.plot.x.scale != "category" && !frame.plot.is_scatter() => {
            let only = names.len() == 1 && names[0] == "flagged";
            names.iter().filter(|_| !only).map(|name| shortened(name, 20)).collect()
        }
        _ => Vec::new(),
    }
}

fn draw_lines(scene: &mut Scene, area: &Area, frame: &Frame, names: &[String]) -> Option<Ends> {
    let plot = &frame.plot;
    let (x, y) = (numbers(frame, "x"), numbers(frame, "y"));
    let series = plot.series.as_deref().unwrap_or_default();
    let Some(view) = plot.view(&x, &y) else {
        nothing(scene, area);
        return None;
    };
    let (left, right, low, high) = (view.left, view.right, view.low, view.high);
    for (value, _) in marks(&plot.y, low, high, ((area.height() / 60.) as usize).max(4)) {
        let y = area.y((value - low) / (high - low));
        scene.line((area.left, y), (area.right - 1., y), FAINT, "grid");
    }
    let place = |x: f64, y: f64| {
        let (across, up) = view.fractions(x, y);
        (area.x(across), area.y(up))
    };
    let mut places: Vec<(f64, f64)> = Vec::new();
    for (number, name) in series.iter().enumerate() {
        let colour = if plot.is_scatter() { palette::line(0, 1) } else { palette::line(number, series.len()) };
        let runs = runs(frame, (&x, &y), number);
        let runs: Vec<Vec<(f64, f64)>> =
            runs.into_iter().map(|run| run.into_iter().map(|(x, y)| place(x, y)).collect()).collect();
        if plot.x.scale == "category" {
            let half = area.width() / (right - left) * 0.35;
            for (x, y) in runs.into_iter().flatten() {
                scene.rectangle(Area::new(x - half, x + half, y, area.bottom), colour, "bar");
            }
            continue;
        }
        places.push(runs.first().and_then(|run| run.first()).copied().unwrap_or((f64::NAN, f64::NAN)));
        series_of(scene, plot, runs, (name, colour));
    }
    if plot.is_scatter() {
        names_of_places(scene, area, &places, series);
    }
    legend(scene, area, names);
    horizontal_marks(scene, area, &plot.x, left, right);
    vertical_marks(scene, area, &plot.y, low, high);
    Some(((view.first, right), (low, high)))
}

fn series_of(scene: &mut Scene, plot: &Plot, runs: Vec<Vec<(f64, f64)>>, (name, colour): (&str, Colour)) {
    let count = runs.iter().map(Vec::len).sum::<usize>();
    let is_joined = plot.joins_points();
    let radius = match (plot.is_scatter(), count > DOTS) {
        (true, _) => 4.,
        (false, false) => 2.5,
        (false, true) => 1.2,
    };
    let dots = |run: &&Vec<(f64, f64)>| !is_joined || count <= DOTS || run.len() == 1;
    let points: Vec<(f64, f64)> = runs.iter().filter(dots).flatten().copied().collect();
    if !points.is_empty() {
        scene.shapes.push(Shape::Dots { points, radius, colour, class: "point", title: name.to_owned() });
    }
    for points in runs.into_iter().filter(|run| is_joined && run.len() > 1) {
        let (width, class) = (1.5, "series");
        scene.shapes.push(Shape::Line { points, width, colour, class, title: name.to_owned() });
    }
}

/// A name that would cover a place or another name in every position beside its place is left out.
fn names_of_places(scene: &mut Scene, area: &Area, places: &[(f64, f64)], names: &[String]) {
    let (half, radius) = (7., 4.);
    let mut taken: Vec<Area> = Vec::new();
    for (&(x, y), name) in places.iter().zip(names).filter(|((x, _), _)| x.is_finite()) {
        let name = shortened(name, 10);
        let width = Size::Normal.character() * name.chars().count() as f64;
        let sides = [(x + 7., y - 7.), (x - 7. - width, y - 7.), (x + 7., y + 8.), (x - 7. - width, y + 8.)];
        let words = |(left, middle): (f64, f64)| Area::new(left, left + width, middle - half, middle + half);
        let is_free = |words: &Area| {
            let is_clear = |&(x, y): &(f64, f64)| {
                x + radius < words.left
                    || x - radius > words.right
                    || y + radius < words.top
                    || y - radius > words.bottom
            };
            area.holds(words) && !taken.iter().any(|other| other.meets(words)) && places.iter().all(is_clear)
        };
        if let Some(words) = sides.into_iter().map(words).find(is_free) {
            scene.text((words.left, words.middle().1), Anchor::Start, &name, "name");
            taken.push(words);
        }
    }
}

/// Draws the names of lines at the right, as many as there is space for.
fn legend(scene: &mut Scene, area: &Area, names: &[String]) {
    let most = ((area.height() / 17.) as usize).max(2);
    let shown = if names.len() > most { most - 1 } else { names.len() };
    for (number, name) in names[..shown].iter().enumerate() {
        let (x, y) = (area.right + 12., area.top + 9. + 17. * number as f64);
        let colour = palette::line(number, names.len());
        scene.rectangle(Area::new(x, x + 16., y - 1.5, y + 1.5), colour, "key");
        scene.text((x + 22., y), Anchor::Start, name, "name");
    }
    if shown < names.len() {
        let y = area.top + 9. + 17. * shown as f64;
        scene.text((area.right + 12., y), Anchor::Start, &format!("{} more", names.len() - shown), "note");
    }
}
