//! Every random number is a function of a key, a label and up to three indices; there is no generator state.
//!
//! ```text
//! block(label, [i, j, k]) = philox4x64-10(key, counter = [i, j, k, label])
//! uniform                 = (word 0 >> 11) * 2^-53,   in [0, 1)
//! ```
//!
//! [`Key`] is the randomness two runs share, [`WorldKey`] the randomness they do not: two types, so that no
//! offset can ever be drawn from a world. Philox is from Salmon et al., *Parallel random numbers: as easy as
//! 1, 2, 3* (SC 2011).
//!
//! [`Label`] and [`to_uniform`] are public for worlds and players outside this library that want randomness of the same
//! kind: a function of a [`WorldKey`], or of the [`Key`] that both runs of a pair have.

use crate::Error;

/// What a draw is for. The numbers are part of the values this library promises: they are never reused or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Label {
    /// The action of a round: `[round, 0, 0]`.
    Round = 1,
    /// The offset of a rounding grid: `[action, quantity, level]` in profile tight, `[epoch, action, quantity]` in profile
    /// paper, `[batch, action, 0]` in rival esfandiari-1.
    Offset = 2,
    /// The counts of a whole epoch drawn at once by a simulator: `[stretch, 0, block]`.
    Skip = 3,
    /// The action of a decision served while an epoch waits for its feedback: `[epoch, serial, 0]`.
    Overtime = 4,
    /// The random thresholds of a rival. In rse and rec, `[phase, 0, 0]` for the test that commits and, in rse,
    /// `[phase, action + 1, 0]` for the one that drops an action; in esfandiari-2, `[batch, 0, 0]`.
    Threshold = 5,
    /// A derived key: `[index, member, 0]`. Pairs use members 0 and 1, [`Key::world`] is `[0, 2, 0]`.
    Derive = 6,
    /// A simulated world's feedback, pull by pull: `[action, pull, block]`.
    Feedback = 7,
    /// A simulated world's feedback, many pulls at once: `[action, pulls before, block]`.
    FeedbackSum = 8,
    /// The order of a block of exploration: `[epoch, block, place]`.
    Block = 9,
    /// The means of a random world: `[world, quantity, action]`, for rewards a second word beside the first, and `[world, 0, 2^64 - 1]` for the action that is cheap.
    RandomWorld = 11,
    /// What a player in the lab draws for itself: in rival thompson `[round, action, block]` for an action's posterior, and
    /// `[round, actions, 0]` for the coin that a reward between 0 and 1 is turned into; in one's own player, as one likes.
    Player = 12,
    /// Whether a request is held back from a live experiment: `[low, high, 0]`, the first 16 bytes of its request key's SHA-256.
    Holdback = 13,
    /// When policy free looks, `[0, 0, 0]`, and the threshold of its look number k: `[k + 1, 0, 0]`.
    Look = 14,
    /// An action's part in the pick of policy free: `[action, 0, 0]`.
    Pick = 15,
}

/// The randomness of a policy: offsets and actions. Two runs that are to replicate share it.
///
/// Anyone who holds the key can predict the decisions, so `Debug` does not show it; [`Key::to_hex`] does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u64; 2]);

/// The randomness of a simulated world: its feedback. Two runs that are to replicate have different ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WorldKey([u64; 2]);

// A macro and not a generic type: the two keys must not be one type with a parameter that could be inferred wrongly.
macro_rules! keyed {
    ($name:ident) => {
        impl $name {
            /// The four words at this label and these indices.
            #[inline]
            pub fn block(self, label: Label, indices: [u64; 3]) -> [u64; 4] {
                let [i, j, k] = indices;
                philox4x64(self.0, [i, j, k, label as u64])
            }

            /// A number in [0, 1), a multiple of 2^-53.
            #[inline]
            pub fn uniform(self, label: Label, indices: [u64; 3]) -> f64 {
                to_uniform(self.block(label, indices)[0])
            }

            /// The key of pair `index`, member `member`.
            pub fn derive(self, index: u64, member: u64) -> Self {
                let [low, high, ..] = self.block(Label::Derive, [index, member, 0]);
                Self([low, high])
            }

            /// Reads 32 hexadecimal digits, as [`Self::to_hex`] writes them.
            pub fn from_hex(text: &str) -> Result<Self, Error> {
                // `from_str_radix` alone would take a sign and fewer digits.
                let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
                match u128::from_str_radix(text, 16) {
                    Ok(number) if digits => Ok(Self::from(number)),
                    _ => Err(Error::KeyText {
                        text: text.to_owned(),
                    }),
                }
            }

            /// The key as 32 hexadecimal digits, most significant first.
            pub fn to_hex(self) -> String {
                format!("{:016x}{:016x}", self.0[1], self.0[0])
            }
        }

        impl From<u128> for $name {
            fn from(number: u128) -> Self {
                Self([number as u64, (number >> 64) as u64])
            }
        }

        impl From<u64> for $name {
            fn from(number: u64) -> Self {
                Self([number, 0])
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    };
}

keyed!(Key);
keyed!(WorldKey);

impl Key {
    /// The key of a world without one of its own.
    pub fn world(self) -> WorldKey {
        // Were it the key itself, a pair would derive one and the same key for its policy and its world.
        WorldKey(self.derive(0, 2).0)
    }
}

/// A word's upper 53 bits as a multiple of 2^-53 in [0, 1).
#[inline]
pub fn to_uniform(word: u64) -> f64 {
    // 53 bits: every multiple is exact, and the largest stays below one, where rounding 64 bits could give one.
    to_multiple(word) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// The same as a whole number: how many times 2^-53.
#[inline]
pub(crate) fn to_multiple(word: u64) -> u64 {
    word >> 11
}

/// Ten rounds of philox4x64; multipliers and Weyl increments as in Random123.
#[inline]
fn philox4x64(mut key: [u64; 2], mut counter: [u64; 4]) -> [u64; 4] {
    // Seven rounds pass TestU01's BigCrush; ten are the authors' default, for the margin.
    for _ in 0..10 {
        let (low0, high0) = multiply(0xD2E7_470E_E14C_6C93, counter[0]);
        let (low1, high1) = multiply(0xCA5A_8263_9512_1157, counter[2]);
        counter = [
            high1 ^ counter[1] ^ key[0],
            low1,
            high0 ^ counter[3] ^ key[1],
            low0,
        ];
        key[0] = key[0].wrapping_add(0x9E37_79B9_7F4A_7C15);
        key[1] = key[1].wrapping_add(0xBB67_AE85_84CA_A73B);
    }
    counter
}

/// The low and the high half of a product.
#[inline]
fn multiply(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    (product as u64, (product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The three vectors of Random123's `kat_vectors` for philox4x64 with ten rounds.
    #[test]
    fn philox_gives_the_known_answers() {
        let ones = u64::MAX;
        assert_eq!(
            philox4x64([0, 0], [0; 4]),
            [
                0x16554d9eca36314c,
                0xdb20fe9d672d0fdc,
                0xd7e772cee186176b,
                0x7e68b68aec7ba23b
            ]
        );
        assert_eq!(
            philox4x64([ones, ones], [ones; 4]),
            [
                0x87b092c3013fe90b,
                0x438c3c67be8d0224,
                0x9cc7d7c69cd777b6,
                0xa09caebf594f0ba0
            ]
        );
        assert_eq!(
            philox4x64(
                [0x452821e638d01377, 0xbe5466cf34e90c6c],
                [
                    0x243f6a8885a308d3,
                    0x13198a2e03707344,
                    0xa4093822299f31d0,
                    0x082efa98ec4e6c89
                ]
            ),
            [
                0xa528f45403e61d95,
                0x38c72dbd566e9788,
                0xa5a1610e72fd18b5,
                0x57bd43b5e52b7fe6
            ]
        );
    }

    #[test]
    fn hex_is_read_back_and_nothing_else_is() {
        let key = Key::from(0x0123_4567_89ab_cdef_0011_2233_4455_6677_u128);
        assert_eq!(key.to_hex(), "0123456789abcdef0011223344556677");
        assert_eq!(Key::from_hex(&key.to_hex()), Ok(key));
        for text in [
            "",
            "12",
            "+123456789abcdef0011223344556677",
            "g123456789abcdef0011223344556677",
            &"0".repeat(33),
        ] {
            assert_eq!(
                Key::from_hex(text),
                Err(Error::KeyText {
                    text: text.to_owned()
                })
            );
        }
    }

    #[test]
    fn the_world_of_a_key_is_fixed_and_of_no_pair() {
        let key = Key::from(42u64);
        assert_eq!(key.world().to_hex(), "86cc9ce7fad3f56ea52363a981a8b87d");
        assert_ne!(key.world().to_hex(), key.to_hex());
        assert!((0..2).all(|member| key.derive(0, member).to_hex() != key.world().to_hex()));
    }

    #[test]
    fn uniforms_stay_below_one() {
        assert_eq!(to_uniform(u64::MAX), 1.0 - f64::EPSILON / 2.0);
        assert_eq!(to_uniform(2047), 0.0);
    }

    #[test]
    fn a_key_is_not_shown_by_debug() {
        assert_eq!(
            format!("{:?} {:?}", Key::from(42u64), WorldKey::from(42u64)),
            "Key(..) WorldKey(..)"
        );
    }
}
