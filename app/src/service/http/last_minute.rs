//! What was done in the last minute, from counters that are looked at once a second: nothing is added to a request.

use std::collections::VecDeque;
use std::sync::Mutex;

/// How far back it looks, in milliseconds.
const WINDOW: i64 = 60_000;

/// What the counters showed at some time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: i64,
    decisions: u64,
    shed: u64,
}

/// The samples of the last minute, the oldest first.
#[derive(Default)]
pub struct LastMinute(Mutex<VecDeque<Sample>>);

impl LastMinute {
    /// Notes what the counters show, by monotonic time.
    pub fn note(&self, at: i64, decisions: u64, shed: u64) {
        let mut samples = self.0.lock().expect("no panic while counting");
        samples.push_back(Sample {
            at,
            decisions,
            shed,
        });
        // One that is older stays: what was counted since then is the window's.
        while samples.get(1).is_some_and(|next| at - next.at >= WINDOW) {
            samples.pop_front();
        }
    }

    fn ends(&self) -> Option<(Sample, Sample)> {
        let samples = self.0.lock().expect("no panic while counting");
        Some((*samples.front()?, *samples.back()?)).filter(|(first, last)| last.at > first.at)
    }

    /// Decisions a second; `None` before two looks at the counters.
    pub fn decisions_a_second(&self) -> Option<f64> {
        let (first, last) = self.ends()?;
        let decisions = (last.decisions - first.decisions) as f64;
        Some(decisions * 1_000.0 / (last.at - first.at) as f64)
    }

    /// What was refused for lack of room.
    pub fn shed(&self) -> u64 {
        let ends = self.ends();
        ends.map_or(0, |(first, last)| last.shed - first.shed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_minute_is_a_minute() {
        let pace = LastMinute::default();
        assert_eq!((pace.decisions_a_second(), pace.shed()), (None, 0));
        pace.note(0, 100, 5);
        assert_eq!(pace.decisions_a_second(), None);
        // 10 a second for two minutes, all of what was refused in the first of them.
        for second in 1..=120 {
            pace.note(
                second * 1_000,
                100 + 10 * second as u64,
                5 + second.min(50) as u64,
            );
            assert_eq!(pace.decisions_a_second(), Some(10.0));
        }
        assert_eq!(pace.shed(), 0);
        pace.note(121_000, 1_300, 57);
        assert_eq!(pace.shed(), 2);
        assert_eq!(pace.decisions_a_second(), Some(590.0 / 60.0));
    }
}
