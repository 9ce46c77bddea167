//! Chance that can be had again.

use debora::Key;
use debora::key::Label;

/// Chance as a function of a number that counts up.
pub struct Dice {
    key: Key,
    thrown: u64,
}

impl Dice {
    pub fn new(key: u64) -> Self {
        Self {
            key: Key::from(key),
            thrown: 0,
        }
    }

    /// A number from 0 on.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.thrown += 1;
        self.key.block(Label::Feedback, [self.thrown, 0, 0])[0] % limit
    }
}
