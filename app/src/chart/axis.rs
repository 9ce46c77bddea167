//! Where a value stands on an axis, and which numbers are written beside it.

use debora::measure::words::{amount, percent, whole};

use super::letters;
use crate::calendar::utc;

/// About how many numbers an axis has.
const TICKS: f64 = 5.0;

/// The most room for a name beside an axis, in heights of a letter: more would push the figure aside.
const NAME_MAX: f64 = 12.0;

const SECOND: f64 = 1_000.0;
const DAY: f64 = 86_400.0 * SECOND;

/// Steps between times, in milliseconds, as clocks and calendars have them.
const TIME_STEPS: [f64; 16] = [
    SECOND,
    5.0 * SECOND,
    15.0 * SECOND,
    60.0 * SECOND,
    300.0 * SECOND,
    900.0 * SECOND,
    3_600.0 * SECOND,
    10_800.0 * SECOND,
    21_600.0 * SECOND,
    43_200.0 * SECOND,
    DAY,
    2.0 * DAY,
    7.0 * DAY,
    30.0 * DAY,
    90.0 * DAY,
    365.0 * DAY,
];

/// An axis of a figure.
pub struct Axis {
    /// What is along it.
    pub label: String,
    /// Where it begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
    /// The numbers beside it, each at a share of its length.
    pub ticks: Vec<(f64, String)>,
    scale: Scale,
}

/// How values are spread over an axis.
#[derive(Clone, Copy)]
enum Scale {
    Linear,
    Log,
    /// Logarithmic away from zero and linear near it, so that both signs have a place: sign(v) ln(1 + |v| / near).
    SymLog {
        near: f64,
    },
}

impl Scale {
    fn of(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            // Rounds begin at 1, and nothing at or below zero has a place: the ends of the axis hold it.
            Self::Log => value.max(f64::MIN_POSITIVE).ln(),
            Self::SymLog { near } => (value.abs() / near).ln_1p().copysign(value),
        }
    }
}

/// How many powers of ten a symmetric logarithmic axis has on its longer side, before it is linear.
const POWERS: i32 = 5;

/// How many it has at most, where the results differ by more.
const POWERS_MAX: i32 = 9;

impl Axis {
    /// From one value to another, in equal steps.
    pub fn linear(label: &str, low: f64, high: f64) -> Self {
        let (low, high) = widened(low, high);
        let step = nice_step(high - low);
        Self::with(
            label,
            [low, high],
            Scale::Linear,
            multiples(low, high, step),
            |tick| {
                // The sum of many steps is not quite the tick: without this, 0 would be 5.6e-17.
                amount((tick / step).round() * step)
            },
        )
    }

    /// Shares from 0 to 1.
    pub fn shares() -> Self {
        let ticks = [0.0, 0.25, 0.5, 0.75, 1.0].to_vec();
        Self::with("", [0.0, 1.0], Scale::Linear, ticks, percent)
    }

    /// Names, the first on top, each with a unit of the axis to itself.
    pub fn names(names: &[String]) -> Self {
        let count = names.len();
        let mut axis = Self::with(
            "",
            [0.0, count.max(1) as f64],
            Scale::Linear,
            Vec::new(),
            amount,
        );
        let ticks = names.iter().enumerate().map(|(place, name)| {
            let middle = (count - place) as f64 - 0.5;
            (axis.place(middle), shortened(name, NAME_MAX))
        });
        axis.ticks = ticks.collect();
        axis
    }

    /// Words from left to right, at 1, 2 and so on.
    pub fn words(words: &[String]) -> Self {
        let count = words.len() as f64;
        let mut axis = Self::with("", [0.5, count + 0.5], Scale::Linear, Vec::new(), amount);
        let ticks = (1..).zip(words).map(|(number, word)| {
            let place = axis.place(f64::from(number));
            (place, shortened(word, NAME_MAX))
        });
        axis.ticks = ticks.collect();
        axis
    }

    /// Rounds, by their logarithm or not.
    pub fn rounds(first: u64, last: u64, logarithmic: bool) -> Self {
        let (low, high) = widened(first.max(1) as f64, last as f64);
        let (scale, ticks) = if logarithmic {
            (Scale::Log, decades(low, high))
        } else {
            (Scale::Linear, multiples(low, high, nice_step(high - low)))
        };
        Self::with("round", [low, high], scale, ticks, |tick| {
            round_text(tick as u64)
        })
    }

    /// Amounts above zero by their logarithm.
    pub fn logarithmic(label: &str, low: f64, high: f64) -> Self {
        let (low, high) = widened(low, high);
        Self::with(label, [low, high], Scale::Log, decades(low, high), amount)
    }

    /// Amounts of both signs, by their logarithm away from zero. The results are what a reader compares: none of them, unless it
    /// is zero, may look like it.
    pub fn symmetric(
        label: &str,
        low: f64,
        high: f64,
        results: impl IntoIterator<Item = f64>,
    ) -> Self {
        let (low, high) = widened(low.min(0.0), high.max(0.0));
        // A bound of a power of ten may be a little above it by rounding.
        let most = (low.abs().max(high).log10() - 1e-9).ceil() as i32;
        let sizes = results.into_iter().map(f64::abs).filter(|&size| size > 0.0);
        let least = sizes.fold(high.max(-low), f64::min).log10().floor() as i32;
        let powers = (most - least).clamp(POWERS, POWERS_MAX);
        let near = 10_f64.powi(most - powers);
        // With more powers than usual on both sides their texts would run into each other.
        let every = if powers > POWERS && low < 0.0 { 2 } else { 1 };
        // Zero, and the powers on each side that the axis reaches.
        let ticked = (most - powers + 1..=most).rev().step_by(every);
        let sides = ticked.flat_map(|power| [-10_f64.powi(power), 10_f64.powi(power)]);
        let within = |tick: &f64| *tick >= low && *tick <= 1.001 * high;
        let mut ticks: Vec<f64> = sides.filter(within).collect();
        ticks.push(0.0);
        Self::with(label, [low, high], Scale::SymLog { near }, ticks, amount)
    }

    /// Times, in milliseconds since 1970.
    pub fn times(from: i64, to: i64) -> Self {
        let (low, high) = widened(from as f64, to as f64);
        let fits = |step: &&f64| (high - low) / **step <= TICKS;
        let step = *TIME_STEPS.iter().find(fits).unwrap_or(&TIME_STEPS[15]);
        let ticks = multiples(low, high, step);
        Self::with("time, UTC", [low, high], Scale::Linear, ticks, |tick| {
            time_text(tick as i64, step)
        })
    }

    fn with(
        label: &str,
        [low, high]: [f64; 2],
        scale: Scale,
        ticks: Vec<f64>,
        text: impl Fn(f64) -> String,
    ) -> Self {
        let mut axis = Self {
            label: label.to_owned(),
            low,
            high,
            ticks: Vec::new(),
            scale,
        };
        axis.ticks = ticks
            .into_iter()
            .map(|tick| (axis.place(tick), text(tick)))
            .collect();
        axis
    }

    /// The share of its length at which a value stands: beyond 0 and 1 for values beyond its ends.
    pub fn place(&self, value: f64) -> f64 {
        let [low, value, high] = [self.low, value, self.high].map(|value| self.scale.of(value));
        (value - low) / (high - low)
    }
}

/// With an ellipsis in the place of what is wider than this many letters are high.
pub fn shortened(name: &str, width_max: f64) -> String {
    if letters::width(name) <= width_max {
        return name.to_owned();
    }
    let mut short = String::new();
    for letter in name.chars() {
        short.push(letter);
        if letters::width(&short) > width_max - 1.0 {
            short.pop();
            break;
        }
    }
    short.push('…');
    short
}

/// An axis needs a length, whatever there is to show.
fn widened(low: f64, high: f64) -> (f64, f64) {
    if high > low {
        (low, high)
    } else {
        (low, low + low.abs().max(1.0))
    }
}

/// 1, 2 or 5 times a power of ten.
fn nice_step(length: f64) -> f64 {
    let raw = length / TICKS;
    let power = 10_f64.powf(raw.log10().floor());
    let digit = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|digit| digit * power >= raw)
        .unwrap_or(10.0);
    digit * power
}

fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    // A little more than the ends: a tick at the end must not fall to rounding.
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|count| count as f64 * step).collect()
}

/// Powers of ten, every one or every few.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let first = (low.log10() - 1e-9).ceil() as i32;
    let last = (high.log10() + 1e-9).floor() as i32;
    let every = (f64::from(last - first) / TICKS).ceil().max(1.0) as usize;
    (first..=last)
        .step_by(every)
        .map(|power| 10_f64.powi(power))
        .collect()
}

/// 1,000 and 20,000, then 1M, 3G: long numbers would run into each other.
fn round_text(round: u64) -> String {
    for (size, letter) in [
        (1_000_000_000_000, "T"),
        (1_000_000_000, "G"),
        (1_000_000, "M"),
    ] {
        if round >= size {
            return format!("{}{letter}", amount(round as f64 / size as f64));
        }
    }
    whole(round)
}

fn time_text(milliseconds: i64, step: f64) -> String {
    let time = utc(milliseconds);
    let (date, clock) = time.split_once(' ').unwrap_or((&time, ""));
    if step >= DAY {
        return date.to_owned();
    }
    if step < 60.0 * SECOND {
        return clock.to_owned();
    }
    // Midnight is where the day changes.
    let minute = &clock[..5];
    if minute == "00:00" {
        &date[5..]
    } else {
        minute
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| &**text).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(
            texts(&Axis::linear("", -0.1, 0.33)),
            ["-0.1", "0", "0.1", "0.2", "0.3"]
        );
        assert_eq!(
            texts(&Axis::rounds(1, 1_000_000, true)),
            ["1", "100", "10,000", "1M"]
        );
        assert_eq!(
            texts(&Axis::rounds(1, 1_000_000, false)),
            ["200,000", "400,000", "600,000", "800,000", "1M"]
        );
        assert_eq!(texts(&Axis::shares())[1], "25 %");
        let noon = 1_794_744_000_000;
        assert_eq!(
            texts(&Axis::times(noon, noon + 50_000)),
            ["12:00:00", "12:00:15", "12:00:30", "12:00:45"]
        );
        assert_eq!(
            texts(&Axis::times(noon, noon + 24 * 3_600_000)),
            ["12:00", "18:00", "11-16", "06:00", "12:00"]
        );
    }

    #[test]
    fn long_names_are_cut_by_their_width() {
        assert_eq!(shortened("large", 12.0), "large");
        assert_eq!(shortened("iiiiiiiiiiiiiiii", 3.0), "iiiiiiiii…");
        assert_eq!(shortened("漢漢漢漢", 3.0), "漢漢…");
    }

    #[test]
    fn amounts_of_both_signs_have_their_places() {
        let axis = Axis::symmetric("", -50.0, 2_000.0, []);
        let places = [-50.0, 0.0, 2_000.0].map(|value| axis.place(value));
        assert!(places[0] == 0.0 && places[1] > 0.0 && places[2] == 1.0);
        // Logarithmic: each power of ten is as long as the next.
        let [one, two, three] = [10.0, 100.0, 1_000.0].map(|value| axis.place(value));
        assert!((three - two - (two - one)).abs() < 0.01);
        assert!(texts(&axis).contains(&"-10") && texts(&axis).contains(&"1,000"));
    }

    #[test]
    fn a_small_result_beside_large_ones_does_not_look_like_zero() {
        let axis = Axis::symmetric("", 0.0, 2e8, [0.0, 130.0, 1e8]);
        let [zero, small, large] = [0.0, 130.0, 1e8].map(|value| axis.place(value));
        assert!(zero == 0.0 && small > 0.05 && large < 1.0, "{small}");
        // Results that differ by more than an axis can show leave room for the others.
        let tiny = Axis::symmetric("", 0.0, 2e8, [1e-30]);
        assert!(tiny.place(1.0) < 0.1, "{}", tiny.place(1.0));
        let both = Axis::symmetric("", -2e8, 2e8, [130.0]);
        assert!(texts(&both).len() <= 11, "{:?}", texts(&both));
    }

    #[test]
    fn every_axis_has_a_length() {
        for axis in [
            Axis::linear("", 3.0, 3.0),
            Axis::rounds(1, 0, true),
            Axis::times(5, 5),
        ] {
            assert!(axis.place(axis.low) == 0.0 && axis.place(axis.high) == 1.0);
        }
    }
}
