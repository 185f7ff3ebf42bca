//! What each operation means, one bit at a time.

use warm_kernels::{Codes, HypervectorView, Neighbour, Rng, Search};

/// The bits of a hypervector.
pub fn bits<'a>(a: impl Into<HypervectorView<'a>>) -> Vec<bool> {
    let a = a.into();
    (0..a.bits()).map(|at| a.words()[at / 64] >> (at % 64) & 1 == 1).collect()
}

/// Exclusive or.
pub fn bind(a: &[bool], b: &[bool]) -> Vec<bool> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// Bit `i` moves to `i + by`.
pub fn permute(a: &[bool], by: i64) -> Vec<bool> {
    let n = a.len() as i128;
    (0..n).map(|to| a[(to - i128::from(by)).rem_euclid(n) as usize]).collect()
}

/// Bits that differ.
pub fn hamming(a: &[bool], b: &[bool]) -> u32 {
    a.iter().zip(b).filter(|(a, b)| a != b).count() as u32
}

/// The weighted majority; `ties` where both sides weigh the same.
pub fn bundle(inputs: &[(Vec<bool>, i64)], ties: &[bool]) -> Vec<bool> {
    (0..ties.len())
        .map(|at| {
            let ones: i64 =
                inputs.iter().map(|(bits, weight)| if bits[at] { *weight } else { -*weight }).sum();
            if ones == 0 { ties[at] } else { ones > 0 }
        })
        .collect()
}

/// For each bit, the weight of the inputs with a one there; of a negative weight, of those with a zero.
pub fn counts(inputs: &[(Vec<bool>, i64)]) -> Vec<u64> {
    (0..inputs[0].0.len())
        .map(|at| {
            let counted = |(bits, weight): &&(Vec<bool>, i64)| bits[at] == (*weight > 0);
            inputs.iter().filter(counted).map(|(_, weight)| weight.unsigned_abs()).sum()
        })
        .collect()
}

/// What the counters of a bundle add to its seed for the bits that tie, as the documentation has it.
pub fn digest(counts: &[u64]) -> u64 {
    let mut sum = 0u64;
    for plane in 0..32u64 {
        for (at, counts) in (0u64..).zip(counts.chunks(64)) {
            let bit = |bit: usize| (counts[bit] >> plane & 1) << bit;
            let word = (0..64).map(bit).sum::<u64>();
            if word != 0 {
                let place = (plane << 32 | at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                sum = sum.wrapping_add(Rng::new(word ^ place).next_u64());
            }
        }
    }
    sum
}

/// Every row compared, sorted, cut.
pub fn scan<'a>(codes: &Codes, query: impl Into<HypervectorView<'a>>, search: &Search<'_>) -> Vec<Neighbour> {
    let query = query.into();
    let mut all: Vec<Neighbour> = codes
        .iter()
        .enumerate()
        .filter(|(row, _)| search.allowed.is_none_or(|allowed| allowed.contains(*row)))
        .map(|(row, code)| {
            let distance = code.words().iter().zip(query.words()).map(|(a, b)| (a ^ b).count_ones()).sum();
            Neighbour { row, distance }
        })
        .filter(|found| search.max_distance.is_none_or(|most| found.distance <= most))
        .collect();
    all.sort_by_key(|found| (found.distance, found.row));
    all.truncate(search.k);
    all
}
