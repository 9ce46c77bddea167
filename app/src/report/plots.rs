//! The figures, as SVG: each once for light and once for dark pages.

use kuva::backend::svg::SvgBackend;
use kuva::plot::LinePlot;
use kuva::plot::StackedAreaPlot;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::render_multiple;
use kuva::render::theme::Theme;

/// Colours that can be told apart on light and dark, with most kinds of colour blindness too (Okabe and Ito 2008).
const COLOURS: [&str; 8] = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D1F", "#999999",
];

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;

/// A figure for both kinds of page.
pub struct Figure {
    /// Its file name without ending.
    pub name: &'static str,
    /// What it shows, in a sentence.
    pub caption: String,
    /// On a light page.
    pub light: String,
    /// On a dark page.
    pub dark: String,
}

/// A line with its band, if it has one.
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    pub band: Option<(Vec<f64>, Vec<f64>)>,
    pub dashed: bool,
}

fn figure(name: &'static str, caption: String, make: impl Fn() -> (Vec<Plot>, Layout)) -> Figure {
    // Made twice, as drawing consumes the plots.
    Figure {
        name,
        caption,
        light: svg(name, "light", Theme::light(), make()),
        dark: svg(name, "dark", Theme::dark(), make()),
    }
}

fn svg(name: &str, page: &str, theme: Theme, (plots, layout): (Vec<Plot>, Layout)) -> String {
    // The figure has no background of its own: the page's shows through.
    let theme = Theme {
        background: "none".into(),
        ..theme
    };
    let layout = layout
        .with_width(WIDTH)
        .with_height(HEIGHT)
        .with_theme(theme)
        .with_font_family("sans-serif");
    let svg = SvgBackend.render_scene(&render_multiple(plots, layout));
    // A box of its own, so that it can be scaled; and names of its own, as all figures share one page.
    let boxed = svg.replacen(
        "<svg ",
        &format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" "),
        1,
    );
    boxed.replace("kuva-clip-", &format!("{name}-{page}-clip-"))
}

impl Series {
    /// Whether a logarithmic axis has a place for any of its points.
    fn is_shown(&self) -> bool {
        self.points.iter().any(|point| point.1 > 0.0)
    }

    fn line(&self, colour: &str) -> LinePlot {
        let positive = |place: &usize| self.points[*place].1 > 0.0;
        let places: Vec<usize> = (0..self.points.len()).filter(positive).collect();
        let mut line = LinePlot::new()
            .with_data(places.iter().map(|&place| self.points[place]))
            .with_color(colour)
            .with_stroke_width(2.0)
            .with_legend(self.name.clone());
        if let Some((low, high)) = &self.band {
            // An end at or below zero has no logarithm; a thousandth of the line is at the foot of any figure.
            let floor = |value: f64, place: usize| value.max(self.points[place].1 * 1e-3);
            line = line.with_band(
                places.iter().map(|&place| floor(low[place], place)),
                places.iter().map(|&place| floor(high[place], place)),
            );
        }
        if self.dashed {
            line.with_dashed()
        } else {
            line
        }
    }
}

/// Series against rounds on logarithmic axes. Points at or below zero have no place there and are left out.
pub fn against_rounds(
    name: &'static str,
    caption: String,
    label: &str,
    series: &[Series],
) -> Option<Figure> {
    if !series.iter().any(Series::is_shown) {
        return None;
    }
    Some(figure(name, caption, || {
        // Colours go by place, not by what is shown: a player keeps its colour from figure to figure.
        let plots: Vec<Plot> = series
            .iter()
            .zip(COLOURS.iter().cycle())
            .filter(|(series, _)| series.is_shown())
            .map(|(series, colour)| Plot::Line(series.line(colour)))
            .collect();
        let layout = Layout::auto_from_plots(&plots)
            .with_log_scale()
            .with_x_label("rounds")
            .with_y_label(label);
        (plots, layout)
    }))
}

/// The share of pairs with equal decisions so far, by epoch, against what is promised.
pub fn identical_by_epoch(shares: &[(f64, f64)], promised: f64) -> Figure {
    let caption =
        "Share of pairs with identical decisions so far, by epoch; dashed: what is promised at the end.".into();
    figure("identical", caption, || {
        // In steps: the share changes when an epoch closes, not on the way.
        let line = LinePlot::new()
            .with_data(shares.iter().copied())
            .with_color(COLOURS[0])
            .with_stroke_width(2.0)
            .with_step();
        let floor = LinePlot::new()
            .with_data([
                (shares[0].0, promised),
                (shares[shares.len() - 1].0, promised),
            ])
            .with_color(COLOURS[1])
            .with_dashed();
        let plots = vec![Plot::Line(line), Plot::Line(floor)];
        let layout = Layout::auto_from_plots(&plots)
            .with_x_label("epoch")
            .with_y_label("identical pairs");
        (plots, layout)
    })
}

/// A run's strategy over time: the probability of each action, stacked.
pub fn strategy_over_time(
    actions: &[String],
    rounds: &[f64],
    probabilities: &[Vec<f64>],
) -> Figure {
    let caption = "The strategy of the first run over time: probability of each action.".into();
    figure("strategy", caption, || {
        let mut plot = StackedAreaPlot::new()
            .with_x(rounds.iter().copied())
            .with_strokes(false)
            .with_fill_opacity(0.85);
        // An area for each action: stacked, they fill the figure from 0 to 1.
        for (action, name) in actions.iter().enumerate() {
            let shares = probabilities.iter().map(|strategy| strategy[action]);
            plot = plot
                .with_series(shares.collect::<Vec<f64>>())
                .with_color(COLOURS[action % COLOURS.len()])
                .with_legend(name.clone());
        }
        let plots = vec![Plot::StackedArea(plot)];
        let layout = Layout::auto_from_plots(&plots)
            .with_x_label("rounds (powers of ten)")
            .with_y_label("probability")
            .with_clamp_y_axis();
        (plots, layout)
    })
}

/// An action's mean of a quantity, as it decides and as it was observed.
#[derive(Clone, Copy)]
pub struct DrawnMean {
    pub estimate: f64,
    pub interval: [f64; 2],
    /// Any mean in here has the same estimate.
    pub cell: [f64; 2],
    /// The plain mean, between the ends of its interval.
    pub observed: Option<[f64; 3]>,
}

impl DrawnMean {
    /// Its lines, each with its width: the interval upright with the cell broad upon it and a bar across at the estimate; beside
    /// it the observed interval, with a shorter bar at the mean.
    fn lines(&self, place: f64) -> Vec<([(f64, f64); 2], f64)> {
        let upright = |place: f64, [low, high]: [f64; 2]| [(place, low), (place, high)];
        let across =
            |place: f64, half: f64, level: f64| [(place - half, level), (place + half, level)];
        let mut lines = vec![
            (upright(place, self.interval), 2.0),
            (upright(place, self.cell), 8.0),
            (across(place, 0.15, self.estimate), 3.0),
        ];
        if let Some([low, mean, high]) = self.observed {
            // Far enough to be told from the cell, near enough to belong to its action.
            let place = place + 0.22;
            lines.push((upright(place, [low, high]), 1.0));
            lines.push((across(place, 0.06, mean), 2.0));
        }
        lines
    }
}

/// One quantity's means with their intervals, action by action, beside its threshold.
pub fn estimates(
    name: &'static str,
    label: &str,
    actions: &[String],
    means: &[DrawnMean],
    threshold: Option<f64>,
) -> Figure {
    let caption = match threshold {
        None => format!(
            "{label}: what each action gives. Each estimate with its cell and the interval that holds the true mean; thin, beside \
             it: what was observed."
        ),
        Some(_) => format!(
            "{label}: what each action costs. Each estimate with its cell and the interval that holds the true mean; thin, beside \
             it: what was observed; dashed: the threshold."
        ),
    };
    figure(name, caption, || {
        let mut plots = Vec::new();
        for (action, mean) in means.iter().enumerate() {
            let colour = COLOURS[action % COLOURS.len()];
            for (line, width) in mean.lines(action as f64 + 1.0) {
                plots.push(Plot::Line(
                    LinePlot::new()
                        .with_data(line)
                        .with_color(colour)
                        .with_stroke_width(width),
                ));
            }
        }
        // A line at the threshold or, without one, an unseen one: either way the actions stand well inside the frame.
        let (level, colour) = threshold.map_or((means[0].estimate, "none"), |threshold| {
            (threshold, "#D55E00")
        });
        let ends = [(0.5, level), (means.len() as f64 + 0.5, level)];
        plots.push(Plot::Line(
            LinePlot::new()
                .with_data(ends)
                .with_color(colour)
                .with_dashed(),
        ));
        let layout = Layout::auto_from_plots(&plots)
            .with_x_categories(actions.to_vec())
            .with_y_label(label);
        (plots, layout)
    })
}
