//! Permuted blocks: the order in which exploration plays the actions, as a trial randomises its arms.
//!
//! ```text
//! block b of an epoch holds every action 8 times (the last block: as often as is left), shuffled:
//! for place = 8K - 1 down to 1:  swap order[place], order[j],   j uniform on 0..=place, keyed by [epoch, b, place]
//! ```
//!
//! Any prefix is balanced to a block, so a world that drifts slowly favours no action (drift is outside the promise all the
//! same); and a decision is a function of key and round, so asking waits for no outcome. Source: docs/theory.md,
//! "Exploration".

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

impl Order {
    /// The action at a place of the block, if it has one.
    #[inline]
    pub fn at(&self, place: u64) -> Option<u32> {
        self.actions.get(usize::try_from(place).ok()?).copied()
    }
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

    /// How many rounds of its block there are from the epoch's round number `index` on.
    #[inline]
    pub fn left(&self, index: u64) -> u64 {
        self.length() - index % self.length()
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
        let place = self.place(index, order)?;
        Some(order.actions[place as usize])
    }

    /// The place of the epoch's round number `index` in its block, if `order` is of that.
    #[inline]
    pub fn place(&self, index: u64, order: &Order) -> Option<u64> {
        let length = self.length();
        let drawn = order.of == Some((self.epoch, index / length));
        drawn.then(|| index % length)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn order(blocks: &Blocks, key: Key, block: u64) -> Vec<u32> {
        let mut order = Order::default();
        blocks.shuffle(key, block, &mut order);
        order.actions
    }

    /// All orders of a short last block are equally likely: 2 of one copy of two actions, 6 of two copies, 20 of three, 6 of
    /// one copy of three actions, 24 of four. 100,000 keys each; every order's frequency is within Hoeffding's tolerance of
    /// 1 / orders: false alarm <= 1e-6 a case, over all its orders; an order off by twice the tolerance (.0087 to .0094) is
    /// missed <= 1e-6. Chi-square would need its limit law, which at these counts is no bound.
    #[test]
    fn every_order_of_a_block_is_equally_likely() {
        for (actions, each, orders) in [(2, 1, 2), (2, 2, 6), (2, 3, 20), (3, 1, 6), (4, 1, 24)] {
            let blocks = Blocks {
                epoch: 3,
                actions,
                each,
            };
            let keys = 100_000u64;
            let mut seen: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
            for key in 0..keys {
                *seen.entry(order(&blocks, Key::from(key), 0)).or_default() += 1;
            }
            assert_eq!(seen.len(), orders);
            let tolerance = libm::sqrt(libm::log(2.0 * orders as f64 / 1e-6) / (2.0 * keys as f64));
            for (order, &times) in &seen {
                let off = times as f64 / keys as f64 - 1.0 / orders as f64;
                assert!(off.abs() <= tolerance, "{order:?}: off by {off}");
            }
        }
    }

    /// A whole block has too many orders to count. Each place holds action 0 half of the time, and two places the same action
    /// 7 times out of 15, as drawing without replacement has it. 16 places, 120 pairs, 40,000 keys; false alarm <= 1e-6 over
    /// all of them (Hoeffding, tolerance .0156).
    #[test]
    fn places_of_a_whole_block_are_exchangeable() {
        let blocks = Blocks {
            epoch: 0,
            actions: 2,
            each: 100,
        };
        let keys = 40_000u64;
        let mut first = [0u64; 16];
        let mut same = [[0u64; 16]; 16];
        for key in 0..keys {
            let order = order(&blocks, Key::from(key), 5);
            for place in 0..16 {
                first[place] += u64::from(order[place] == 0);
                for other in 0..place {
                    same[place][other] += u64::from(order[place] == order[other]);
                }
            }
        }
        let tolerance = libm::sqrt(libm::log(2.0 * 136.0 / 1e-6) / (2.0 * keys as f64));
        let near =
            |times: u64, chance: f64| (times as f64 / keys as f64 - chance).abs() <= tolerance;
        for place in 0..16 {
            assert!(near(first[place], 0.5), "place {place}: {}", first[place]);
            for (other, &together) in same[place][..place].iter().enumerate() {
                assert!(
                    near(together, 7.0 / 15.0),
                    "places {place} and {other}: {together}"
                );
            }
        }
    }

    /// Were one order used again, whatever comes and goes with its rhythm would favour the same action in every block. 24
    /// places of three actions have 9e9 orders: of 300, two are equal by chance with probability 5e-6.
    #[test]
    fn every_block_epoch_and_key_has_an_order_of_its_own() {
        let mut seen = BTreeMap::new();
        for (epoch, key) in [(0, 1u64), (1, 1), (0, 2)] {
            let blocks = Blocks {
                epoch,
                actions: 3,
                each: u64::MAX,
            };
            for block in 0..100 {
                let of = (epoch, block, key);
                let before = seen.insert(order(&blocks, Key::from(key), block), of);
                assert_eq!(before, None, "epoch, block and key {of:?} repeat an order");
            }
        }
    }

    /// Counted from the blocks' orders, round by round, for every prefix of a short epoch.
    #[test]
    fn counts_are_those_of_the_orders() {
        let blocks = Blocks {
            epoch: 2,
            actions: 3,
            each: 19,
        };
        let key = Key::from(4u64);
        let mut counts = vec![0; 3];
        for index in 0..blocks.rounds() {
            assert_eq!(blocks.counts(key, index), counts, "after {index} rounds");
            let mut order = Order::default();
            blocks.draw(key, index, &mut order);
            counts[blocks.action(index, &order).unwrap() as usize] += 1;
        }
        assert_eq!(counts, [19; 3]);
        assert_eq!(blocks.counts(key, blocks.rounds()), counts);
    }
}
