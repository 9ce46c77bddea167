//! A sequence of words read off a keyed function, for samplers that need an unknown number of them.

use crate::key::{Label, to_uniform};
use crate::{Key, WorldKey};

/// Whose randomness a stream reads: the policy's, which two runs share, or a world's, which they do not.
#[derive(Clone, Copy, Debug)]
pub enum StreamKey {
    /// Read from a policy key.
    Policy(Key),
    /// Read from a world key.
    World(WorldKey),
}

impl From<Key> for StreamKey {
    fn from(key: Key) -> Self {
        Self::Policy(key)
    }
}

impl From<WorldKey> for StreamKey {
    fn from(key: WorldKey) -> Self {
        Self::World(key)
    }
}

/// The words of the blocks `[i, j, 0]`, `[i, j, 1]`, ... at one label, in order, all four of each.
///
/// A stream is as much a function as a single draw is: made again from the same key, label and indices, it gives
/// the same words. How many of them a sampler takes depends on what it reads: draws that must not move when others
/// change have indices of their own.
///
/// ```
/// use debora::key::{Key, Label};
/// use debora::lab::internals::{Stream, binomial};
///
/// let epoch = 3;
/// let mut stream = Stream::new(Key::from(7u64), Label::Skip, [epoch, 0]);
/// assert!(binomial(&mut stream, 1_000_000_000_000, 0.25) < 1_000_000_000_000);
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    source: StreamKey,
    label: Label,
    indices: [u64; 2],
    blocks_read: u64,
    words: [u64; 4],
    words_left: usize,
}

impl Stream {
    /// The stream of this key at this label and these two indices; the third index counts its blocks from 0.
    #[inline]
    pub fn new(source: impl Into<StreamKey>, label: Label, indices: [u64; 2]) -> Self {
        Self {
            source: source.into(),
            label,
            indices,
            blocks_read: 0,
            words: [0; 4],
            words_left: 0,
        }
    }

    /// The next word.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        // All four words of a block are used, as computing one takes longer than most of what is done with it.
        if self.words_left == 0 {
            self.read_block();
        }
        let word = self.words[4 - self.words_left];
        self.words_left -= 1;
        word
    }

    // Not inlined: a sampler has a dozen places that may need a block, and philox is long.
    #[inline(never)]
    fn read_block(&mut self) {
        let indices = [self.indices[0], self.indices[1], self.blocks_read];
        self.words = match self.source {
            StreamKey::Policy(key) => key.block(self.label, indices),
            StreamKey::World(key) => key.block(self.label, indices),
        };
        self.blocks_read += 1;
        self.words_left = 4;
    }

    /// A number in [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        to_uniform(self.next_u64())
    }

    /// A number in (0, 1), an odd multiple of 2^-53: its logarithm and that of its complement are finite.
    #[inline]
    pub fn uniform_open(&mut self) -> f64 {
        to_uniform_open(self.next_u64())
    }

    /// An integer in 0..end, each with probability 1/end up to 2^-64. `end` is above 0.
    #[inline]
    pub(super) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }
}

// 52 bits and a half: with 53 bits the half would be rounded away, and the largest value would be 1.
#[inline]
fn to_uniform_open(word: u64) -> f64 {
    ((word >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_gives_every_word_of_its_blocks_in_order() {
        let (key, world_key) = (Key::from(7u64), WorldKey::from(7u64));
        let mut stream = Stream::new(key, Label::Skip, [3, 5]);
        let mut world_stream = Stream::new(world_key, Label::FeedbackSum, [3, 5]);
        for block in 0..3 {
            for word in 0..4 {
                assert_eq!(
                    stream.next_u64(),
                    key.block(Label::Skip, [3, 5, block])[word]
                );
                assert_eq!(
                    world_stream.next_u64(),
                    world_key.block(Label::FeedbackSum, [3, 5, block])[word]
                );
            }
        }
    }

    #[test]
    fn the_uniforms_are_the_words_scaled() {
        let mut words = Stream::new(Key::from(7u64), Label::Skip, [0, 0]);
        let mut stream = words.clone();
        assert_eq!(stream.uniform(), to_uniform(words.next_u64()));
        assert_eq!(stream.uniform_open(), to_uniform_open(words.next_u64()));
        assert_eq!(stream.below(1 << 10), words.next_u64() >> 54);
    }

    #[test]
    fn open_uniforms_stay_off_both_ends() {
        assert_eq!(to_uniform_open(0), f64::EPSILON / 2.0);
        assert_eq!(to_uniform_open(u64::MAX), 1.0 - f64::EPSILON / 2.0);
    }
}
