//! Seeded, reproducible randomness.
//!
//! Owns the generator: xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number
//! generators", ACM TOMS 2021), its state filled from a 64-bit seed by SplitMix64 (Steele, Lea and
//! Flood, OOPSLA 2014), as its authors recommend. The same seed gives the same words on every
//! machine and in every version. It is not for secrets.

/// A stream of pseudo-random words, a function of its seed alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        let mut at = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut at)) }
    }

    /// A stream of its own for each `stream` number: what a table of item memories needs, so that
    /// an item doesn't depend on how many were drawn before it.
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut at = stream;
        Self::new(seed ^ split_mix(&mut at))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let out = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        out
    }

    /// A number in `0..bound`, without bias (Lemire, "Fast random integer generation in an
    /// interval", 2019); 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let mut wide = u128::from(self.next_u64()) * u128::from(bound);
        if (wide as u64) < bound {
            let floor = bound.wrapping_neg() % bound;
            while (wide as u64) < floor {
                wide = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (wide >> 64) as u64
    }

    /// A number in `[0, 1)`, a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Fills `words` with the stream.
    pub fn fill(&mut self, words: &mut [u64]) {
        for word in words {
            *word = self.next_u64();
        }
    }
}

fn split_mix(at: &mut u64) -> u64 {
    *at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *at;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_expands_as_published() {
        // The first outputs of SplitMix64 for seed 0, and of xoshiro256** for the state 1, 2, 3, 4.
        let mut at = 0;
        assert_eq!([split_mix(&mut at), split_mix(&mut at)], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        let mut rng = Rng { state: [1, 2, 3, 4] };
        assert_eq!([rng.next_u64(), rng.next_u64(), rng.next_u64()], [11520, 0, 1_509_978_240]);
    }

    #[test]
    fn numbers_below_a_bound_stay_below_it_and_reach_it() {
        let mut rng = Rng::new(1);
        let mut seen = [0u32; 7];
        for _ in 0..7_000 {
            seen[rng.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1_200).contains(&n)), "{seen:?}");
        assert_eq!((rng.below(0), rng.below(1)), (0, 0));
        assert!((0..1_000).all(|_| (0.0..1.0).contains(&rng.unit())));
    }
}
