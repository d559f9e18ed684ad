//! Axes, lines, bars.

use core::ops::Range;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::element::{DashedPathElement, Drawable, PointCollection};
use plotters::prelude::*;
use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use smart_default::SmartDefault;

use super::legend::Legend;
use super::{Body, Chart, FAINT, GROUND, Group, INK, SIZE, clean, colour};
use crate::experiment::figure::significant;

/// The whole picture, or a part of it, in its own units.
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// The part between the axes.
type Plane = Cartesian2d<RangedCoordf64, RangedCoordf64>;
type Context<'c, 'a> = ChartContext<'c, SVGBackend<'a>, Plane>;

/// Half the size of a mark.
const MARK: i32 = 9;
/// Half the size of a single run's.
const DOT: i32 = 5;
/// Width of lines that carry data.
const STROKE: u32 = 4;
/// Length of a dash, and of the gap after it.
const DASH: i32 = 14;
/// Height of the title above the axes.
const HEAD: i32 = 84;
/// The share of a category's width that its bars take.
const BARS: f64 = 0.8;
/// Beyond this many categories their names are drawn at an angle of a quarter turn.
const UPRIGHT_CATEGORIES: usize = 10;

/// How a mark is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ink {
    /// Filled with the group's colour.
    Full,
    /// Only its outline.
    Open(RGBColor),
}

/// Draws something.
pub(super) fn put<E>(area: &Area<'_>, element: E) -> Result<(), String>
where
    for<'b> &'b E: PointCollection<'b, (i32, i32)>,
    for<'a> E: Drawable<SVGBackend<'a>>,
{
    area.draw(&element).map_err(|error| error.to_string())
}

/// Draws the mark of the group with this index.
pub(super) fn mark(area: &Area<'_>, at: (i32, i32), index: usize, ink: Ink) -> Result<(), String> {
    let around: &[(i32, i32)] = match index % 5 {
        0 => {
            return match ink {
                Ink::Full => put(area, Circle::new(at, MARK, colour(index).filled())),
                Ink::Open(stroke) => {
                    put(area, Circle::new(at, MARK + 2, GROUND.filled()))?;
                    put(area, Circle::new(at, MARK + 2, stroke.stroke_width(4)))
                }
            };
        }
        1 => &[(-8, -8), (8, -8), (8, 8), (-8, 8)],
        2 => &[(0, -10), (10, 8), (-10, 8)],
        3 => &[(0, -11), (11, 0), (0, 11), (-11, 0)],
        _ => &[(0, 10), (10, -8), (-10, -8)],
    };
    let mut corners: Vec<(i32, i32)> = around.iter().map(|(x, y)| (at.0 + x, at.1 + y)).collect();
    match ink {
        Ink::Full => put(area, Polygon::new(corners, colour(index).filled())),
        Ink::Open(stroke) => {
            put(area, Polygon::new(corners.clone(), GROUND.filled()))?;
            corners.push(corners[0]);
            put(area, PathElement::new(corners, stroke.stroke_width(4)))
        }
    }
}

/// Draws a dashed line through two or more points.
pub(super) fn dashed(
    area: &Area<'_>,
    through: impl IntoIterator<Item = (i32, i32)>,
    stroke: RGBColor,
) -> Result<(), String> {
    let points: Vec<(i32, i32)> = through.into_iter().collect();
    let style = stroke.stroke_width(STROKE);
    put(area, DashedPathElement::new(points, DASH, DASH, style))
}

/// Names for the legend, by index.
pub(super) fn group_names(chart: &Chart) -> Vec<&str> {
    match &chart.body {
        Body::Lines { groups } | Body::Bars { groups, .. } => {
            groups.iter().map(|group| group.name.as_str()).collect()
        }
        Body::Histogram { groups, .. } => groups.iter().map(|(name, _)| name.as_str()).collect(),
    }
}

/// Whether there is anything that the paper reports, and anything ideal.
pub(super) fn has_references(chart: &Chart) -> [bool; 2] {
    match &chart.body {
        Body::Lines { groups } | Body::Bars { groups, .. } => {
            let spots = || groups.iter().flat_map(|group| &group.spots);
            let level = |which: usize| groups.iter().any(|group| group.levels[which].is_some());
            [
                spots().any(|spot| spot.paper.is_some()) || level(0),
                spots().any(|spot| spot.ideal.is_some()) || level(1),
            ]
        }
        Body::Histogram { levels, .. } => [levels[0].is_some(), levels[1].is_some()],
    }
}

/// Draws everything onto `root`.
pub(super) fn chart(chart: &Chart, root: &Area<'_>) -> Result<(), String> {
    let legend = Legend::of(chart);
    let height = SIZE.1 - legend.height();
    let (upper, lower) = root.split_vertically(height);
    legend.draw(&lower)?;
    let title = TextStyle::from(("sans-serif", 38).into_font().style(FontStyle::Bold)).color(&INK);
    put(&upper, Text::new(clean(&chart.title), (40, 28), title))?;

    let (xs, ys) = ranges(chart);
    let turned = matches!(&chart.body, Body::Bars { categories, .. } if categories.len() > UPRIGHT_CATEGORIES);
    let mut context = ChartBuilder::on(&upper)
        .margin_top(HEAD)
        .margin_right(48)
        .margin_left(16)
        .x_label_area_size(if turned { 220 } else { 108 })
        .y_label_area_size(136)
        .build_cartesian_2d(xs, ys)
        .map_err(|error| error.to_string())?;
    mesh(chart, &mut context)?;
    match &chart.body {
        Body::Lines { groups } => lines(&context, root, groups),
        Body::Bars { categories, groups } => {
            category_names(&context, root, categories)?;
            bars(&context, root, groups)
        }
        Body::Histogram {
            groups,
            low,
            width,
            levels,
        } => {
            histogram(&context, root, groups, (*low, *width))?;
            vertical_levels(&context, root, *levels)
        }
    }
}

fn mesh(chart: &Chart, context: &mut Context<'_, '_>) -> Result<(), String> {
    let label = TextStyle::from(("sans-serif", 28).into_font()).color(&INK);
    let description = TextStyle::from(("sans-serif", 31).into_font()).color(&INK);
    let number = |value: &f64| significant(*value);
    let categories = matches!(chart.body, Body::Bars { .. });
    let mut mesh = context.configure_mesh();
    mesh.bold_line_style(FAINT.stroke_width(2))
        .light_line_style(TRANSPARENT)
        .axis_style(INK.stroke_width(2))
        .label_style(label)
        .axis_desc_style(description)
        .x_label_formatter(&number)
        .y_label_formatter(&number)
        .x_labels(if categories { 0 } else { 10 })
        .y_labels(8)
        .x_desc(clean(&chart.x_label))
        .y_desc(clean(&chart.y_label));
    if !matches!(chart.body, Body::Lines { .. }) {
        mesh.disable_x_mesh();
    }
    mesh.draw().map_err(|error| error.to_string())
}

/// Both axes, from all that is drawn.
fn ranges(chart: &Chart) -> (Range<f64>, Range<f64>) {
    let mut xs = Extent::default();
    let mut ys = Extent::default();
    match &chart.body {
        Body::Lines { groups } | Body::Bars { groups, .. } => {
            for group in groups {
                ys.add(group.levels.into_iter().flatten());
                for spot in &group.spots {
                    xs.add([spot.x]);
                    ys.add(spot.measured.into_iter().flatten());
                    ys.add(spot.runs.iter().copied());
                    ys.add(spot.paper.into_iter().chain(spot.ideal));
                }
                for (x, y) in &group.curve {
                    xs.add([*x]);
                    ys.add([*y]);
                }
            }
        }
        Body::Histogram {
            groups,
            low,
            width,
            levels,
        } => {
            let bins = groups.first().map_or(1, |(_, counts)| counts.len());
            xs.add([*low, low + width * bins as f64]);
            xs.add(levels.iter().copied().flatten());
            ys.add(groups.iter().flat_map(|(_, counts)| counts.iter().copied()));
        }
    }
    let xs = match &chart.body {
        Body::Bars { categories, .. } => -0.5..(categories.len() as f64 - 0.5).max(0.5),
        _ => xs.padded(0.02),
    };
    if !matches!(chart.body, Body::Lines { .. }) {
        // The length of a bar is what is read.
        ys.add([0.0]);
    }
    let mut vertical = ys.down_to_zero().padded(0.06);
    if ys.low >= 0.0 {
        vertical.start = vertical.start.max(0.0);
    }
    let low = chart.y_min.unwrap_or(vertical.start);
    let high = chart.y_max.unwrap_or(vertical.end);
    (
        xs,
        if low < high {
            low..high
        } else {
            low..low + 1.0
        },
    )
}

/// From the least to the greatest.
#[derive(Clone, Copy, Debug, SmartDefault)]
struct Extent {
    #[default(f64::INFINITY)]
    low: f64,
    #[default(f64::NEG_INFINITY)]
    high: f64,
}

impl Extent {
    fn add(&mut self, values: impl IntoIterator<Item = f64>) {
        for value in values {
            self.low = self.low.min(value);
            self.high = self.high.max(value);
        }
    }

    /// Begins at zero if that costs less than half of the height.
    fn down_to_zero(self) -> Self {
        let near = self.low > 0.0 && self.low < self.high / 2.0;
        Self {
            low: if near { 0.0 } else { self.low },
            high: self.high,
        }
    }

    fn padded(self, share: f64) -> Range<f64> {
        if self.low > self.high {
            return 0.0..1.0;
        }
        let size = self.high - self.low;
        let edge = if size > 0.0 {
            size * share
        } else {
            (self.high.abs() * 0.1).max(0.5)
        };
        self.low - edge..self.high + edge
    }
}

/// Where a point of the plane is in the picture, brought back to the plane's edge if it lies outside.
fn place(context: &Context<'_, '_>, x: f64, y: f64) -> (i32, i32) {
    let (xs, ys) = (context.x_range(), context.y_range());
    context.backend_coord(&(x.clamp(xs.start, xs.end), y.clamp(ys.start, ys.end)))
}

fn inside(context: &Context<'_, '_>, y: f64) -> bool {
    let ys = context.y_range();
    (ys.start..=ys.end).contains(&y)
}

fn lines(context: &Context<'_, '_>, root: &Area<'_>, groups: &[Group]) -> Result<(), String> {
    ideal_lines(context, root, groups)?;
    for (index, group) in groups.iter().enumerate() {
        let at = |x: f64, y: f64| place(context, x, y);
        let band: Vec<(f64, [f64; 3])> = group
            .spots
            .iter()
            .filter_map(|spot| Some((spot.x, spot.measured?)))
            .collect();
        let upper = band.iter().map(|(x, [_, _, high])| at(*x, *high));
        let lower = band.iter().rev().map(|(x, [_, low, _])| at(*x, *low));
        if band.len() > 1 {
            let around: Vec<_> = upper.chain(lower).collect();
            put(root, Polygon::new(around, colour(index).mix(0.18).filled()))?;
        }
        let means: Vec<_> = band.iter().map(|(x, [mean, _, _])| at(*x, *mean)).collect();
        for spot in &group.spots {
            for run in &spot.runs {
                let dot = colour(index).mix(0.4).filled();
                put(root, Circle::new(at(spot.x, *run), DOT, dot))?;
            }
        }
        let stroke = colour(index).stroke_width(STROKE);
        put(root, PathElement::new(means.clone(), stroke))?;
        let curve: Vec<_> = group.curve.iter().map(|(x, y)| at(*x, *y)).collect();
        put(root, PathElement::new(curve, colour(index).stroke_width(3)))?;
        for mean in means {
            mark(root, mean, index, Ink::Full)?;
        }
    }
    for (index, group) in groups.iter().enumerate() {
        for spot in &group.spots {
            if let Some(paper) = spot.paper.filter(|paper| inside(context, *paper)) {
                mark(
                    root,
                    place(context, spot.x, paper),
                    index,
                    Ink::Open(colour(index)),
                )?;
            }
        }
        if let Some(paper) = group.levels[0].filter(|paper| inside(context, *paper)) {
            let end = context.x_range().end;
            mark(
                root,
                place(context, end, paper),
                index,
                Ink::Open(colour(index)),
            )?;
        }
    }
    Ok(())
}

/// One line for all groups where they have the same ideal, else one each in their colours.
fn ideal_lines(context: &Context<'_, '_>, root: &Area<'_>, groups: &[Group]) -> Result<(), String> {
    let xs = context.x_range();
    let mut drawn: Vec<Vec<(i32, i32)>> = Vec::new();
    for group in groups {
        let spots = group.spots.iter();
        let mut points: Vec<(f64, f64)> = spots
            .filter_map(|spot| Some((spot.x, spot.ideal?)))
            .collect();
        if let (true, Some(level)) = (points.is_empty(), group.levels[1]) {
            points = vec![(xs.start, level), (xs.end, level)];
        }
        if let [(x, y)] = points[..] {
            let half = (xs.end - xs.start) * 0.03;
            points = vec![(x - half, y), (x + half, y)];
        }
        drawn.push(
            points
                .into_iter()
                .map(|(x, y)| place(context, x, y))
                .collect(),
        );
    }
    let with: Vec<&Vec<(i32, i32)>> = drawn.iter().filter(|points| !points.is_empty()).collect();
    if let Some(first) = with.first()
        && with.iter().all(|points| points == first)
    {
        return dashed(root, first.iter().copied(), INK);
    }
    for (index, points) in drawn
        .iter()
        .enumerate()
        .filter(|(_, points)| !points.is_empty())
    {
        dashed(root, points.iter().copied(), colour(index))?;
    }
    Ok(())
}

fn category_names(
    context: &Context<'_, '_>,
    root: &Area<'_>,
    categories: &[String],
) -> Result<(), String> {
    let turned = categories.len() > UPRIGHT_CATEGORIES;
    let font = ("sans-serif", 28).into_font();
    let (font, pos) = if turned {
        (
            font.transform(FontTransform::Rotate90),
            Pos::new(HPos::Left, VPos::Center),
        )
    } else {
        (font, Pos::new(HPos::Center, VPos::Top))
    };
    let style = TextStyle::from(font).color(&INK).pos(pos);
    let bottom = context.y_range().start;
    for (index, name) in categories.iter().enumerate() {
        let (x, y) = place(context, index as f64, bottom);
        put(root, Text::new(clean(name), (x, y + 14), style.clone()))?;
    }
    Ok(())
}

fn bars(context: &Context<'_, '_>, root: &Area<'_>, groups: &[Group]) -> Result<(), String> {
    let width = BARS / groups.len().max(1) as f64;
    let zero = 0.0_f64.clamp(context.y_range().start, context.y_range().end);
    for (index, group) in groups.iter().enumerate() {
        for spot in &group.spots {
            let left = spot.x - BARS / 2.0 + width * index as f64;
            let (start, end) = (left + width * 0.06, left + width * 0.94);
            let middle = left + width / 2.0;
            if let Some([mean, low, high]) = spot.measured {
                let corners = [place(context, start, mean), place(context, end, zero)];
                put(
                    root,
                    Rectangle::new(corners, colour(index).mix(0.85).filled()),
                )?;
                whisker(context, root, middle, [low, high])?;
            }
            if let Some(ideal) = spot.ideal {
                let ends = [
                    place(context, left, ideal),
                    place(context, left + width, ideal),
                ];
                dashed(root, ends, INK)?;
            }
            if let Some(paper) = spot.paper.filter(|paper| inside(context, *paper)) {
                mark(root, place(context, middle, paper), 0, Ink::Open(INK))?;
            }
        }
    }
    Ok(())
}

/// A confidence interval.
fn whisker(
    context: &Context<'_, '_>,
    root: &Area<'_>,
    x: f64,
    [low, high]: [f64; 2],
) -> Result<(), String> {
    let (foot, head) = (place(context, x, low), place(context, x, high));
    let stroke = INK.stroke_width(3);
    put(root, PathElement::new(vec![foot, head], stroke))?;
    for (x, y) in [foot, head] {
        put(root, PathElement::new(vec![(x - 8, y), (x + 8, y)], stroke))?;
    }
    Ok(())
}

fn histogram(
    context: &Context<'_, '_>,
    root: &Area<'_>,
    groups: &[(String, Vec<f64>)],
    (low, width): (f64, f64),
) -> Result<(), String> {
    let share = width / groups.len().max(1) as f64;
    for (index, (_, counts)) in groups.iter().enumerate() {
        for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
            let left = low + width * bin as f64 + share * index as f64;
            let corners = [
                place(context, left, *count),
                place(context, left + share, 0.0),
            ];
            put(
                root,
                Rectangle::new(corners, colour(index).mix(0.85).filled()),
            )?;
        }
    }
    Ok(())
}

fn vertical_levels(
    context: &Context<'_, '_>,
    root: &Area<'_>,
    [paper, ideal]: [Option<f64>; 2],
) -> Result<(), String> {
    let ys = context.y_range();
    if let Some(ideal) = ideal {
        dashed(
            root,
            [
                place(context, ideal, ys.start),
                place(context, ideal, ys.end),
            ],
            INK,
        )?;
    }
    match paper {
        Some(paper) => mark(root, place(context, paper, ys.start), 0, Ink::Open(INK)),
        None => Ok(()),
    }
}
