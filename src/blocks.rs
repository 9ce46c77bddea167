//! Permuted blocks: the order in which exploration plays the actions, as a trial randomises its arms.
//!
//! ```text
//! block b of an epoch holds every action 8 times (the last block: as often as is left), shuffled:
//! for place = 8K - 1 down to 1:  swap order[place], order[j],   j uniform on 0..=place, keyed by [epoch, b, place]
//! ```
//!
//! Any prefix is balanced to a block, so a world that drifts favours no action; and a decision is a function of key and
//! round, so asking waits for no outcome. Source: docs/theory.md, "Exploration".

use crate::Key;
use crate::key::Label;

/// How often a block holds each action. Few enough that any prefix is nearly balanced, many enough that knowing a block's
/// beginning hardly tells its end.
const COPIES: u64 = 8;

/// An epoch played in permuted blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Blocks {
    /// The epoch, which keys the orders.
    pub epoch: u64,
    /// How many actions there are.
    pub actions: u64,
    /// How often the epoch plays each action; `u64::MAX` if it goes on to the horizon.
    pub each: u64,
}

/// One block's order, kept because drawing it costs as much as all its rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    /// The epoch and the block it is of; none before the first draw.
    of: Option<(u64, u64)>,
    actions: Vec<u32>,
}

impl Blocks {
    /// How many rounds the epoch has.
    pub fn rounds(&self) -> u64 {
        self.each.saturating_mul(self.actions)
    }

    /// Rounds of a whole block.
    #[inline]
    fn length(&self) -> u64 {
        COPIES * self.actions
    }

    /// Draws the order of the block that holds the epoch's round number `index`, from 0, unless it is there.
    #[inline]
    pub fn draw(&self, key: Key, index: u64, order: &mut Order) {
        let block = index / self.length();
        if order.of != Some((self.epoch, block)) {
            self.shuffle(key, block, order);
        }
    }

    /// The action of the epoch's round number `index`, if `order` is of its block.
    #[inline]
    pub fn action(&self, index: u64, order: &Order) -> Option<u32> {
        let length = self.length();
        let drawn = order.of == Some((self.epoch, index / length));
        drawn.then(|| order.actions[(index % length) as usize])
    }

    /// How often each action is played in the epoch's first `rounds` rounds.
    pub fn counts(&self, key: Key, rounds: u64) -> Vec<u64> {
        let block = rounds / self.length();
        let mut counts = vec![COPIES * block; self.actions as usize];
        let rest = (rounds % self.length()) as usize;
        if rest > 0 {
            let mut order = Order::default();
            self.shuffle(key, block, &mut order);
            for &action in &order.actions[..rest] {
                counts[action as usize] += 1;
            }
        }
        counts
    }

    fn shuffle(&self, key: Key, block: u64, order: &mut Order) {
        order.of = Some((self.epoch, block));
        let copies = COPIES.min(self.each - COPIES * block);
        let actions = &mut order.actions;
        actions.clear();
        actions.extend((0..copies * self.actions).map(|place| (place / copies) as u32));
        for place in (1..actions.len()).rev() {
            let [word, ..] = key.block(Label::Block, [self.epoch, block, place as u64]);
            // The upper half of the product: uniform on 0..=place but for 2^-64 of its mass, without a division.
            let other = (u128::from(word) * (place as u128 + 1)) >> 64;
            actions.swap(place, other as usize);
        }
    }
}
