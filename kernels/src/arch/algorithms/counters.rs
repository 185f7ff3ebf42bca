//! Bit-sliced counters: one small number for each bit of a hypervector, held as planes.
//!
//! Plane `p` is a bit vector that holds bit `p` of every counter, so that one full adder over
//! registers counts 512 bits at once (a carry-save adder; see Muła, Kurz and Lemire, "Faster
//! population counts using AVX2 instructions", 2018, for the tree, here with the sums kept apart
//! rather than summed). Eight inputs go through seven adders and leave one carry of weight eight.

use crate::arch::{BATCH, vector::Vector};

/// A full adder: (sum, carry).
#[inline(always)]
unsafe fn add3<V: Vector>(a: V, b: V, c: V) -> (V, V) {
    // SAFETY: the caller's promise, passed on.
    unsafe { (a.xor3(b, c), a.majority(b, c)) }
}

/// `n` words at `from`, which may be fewer than a vector's.
#[inline(always)]
unsafe fn load<V: Vector>(from: *const u64, n: usize) -> V {
    // SAFETY: the caller's promise, passed on.
    unsafe { if n == V::LANES { V::load(from) } else { V::load_partial(from, n) } }
}

/// Writes `n` words, which may be fewer than a vector's.
#[inline(always)]
unsafe fn store<V: Vector>(vector: V, to: *mut u64, n: usize) {
    // SAFETY: the caller's promise, passed on.
    unsafe { if n == V::LANES { vector.store(to) } else { vector.store_partial(to, n) } }
}

/// See [`crate::arch::Kernel::count_batch`].
#[inline(always)]
pub(crate) unsafe fn count_batch<V: Vector>(planes: &mut [u64], stride: usize, inputs: &[&[u64]; BATCH]) {
    let n = inputs[0].len();
    let count = planes.len().checked_div(stride).unwrap_or(0);
    assert!(n <= stride && count >= 4 && inputs.iter().all(|input| input.len() == n));
    let mut at = 0;
    // SAFETY: each input and each plane holds at least `n` words, and there are four planes or more.
    unsafe {
        while at + V::LANES <= n {
            batch::<V>(planes.as_mut_ptr(), stride, count, inputs, at, V::LANES);
            at += V::LANES;
        }
        if at < n {
            batch::<V>(planes.as_mut_ptr(), stride, count, inputs, at, n - at);
        }
    }
}

#[inline(always)]
unsafe fn batch<V: Vector>(
    planes: *mut u64,
    stride: usize,
    count: usize,
    inputs: &[&[u64]; BATCH],
    at: usize,
    n: usize,
) {
    // SAFETY: the caller's promise: words `at..at + n` of every input and plane.
    unsafe {
        // Macros, since a closure would not be sure to be inlined where the target features are.
        macro_rules! x {
            ($i:literal) => {
                load::<V>(inputs[$i].as_ptr().add(at), n)
            };
        }
        macro_rules! plane {
            ($p:expr) => {
                planes.add($p * stride + at)
            };
        }
        let (ones, twos_a) = add3(load::<V>(plane!(0), n), x!(0), x!(1));
        let (ones, twos_b) = add3(ones, x!(2), x!(3));
        let (twos, fours_a) = add3(load::<V>(plane!(1), n), twos_a, twos_b);
        let (ones, twos_a) = add3(ones, x!(4), x!(5));
        let (ones, twos_b) = add3(ones, x!(6), x!(7));
        let (twos, fours_b) = add3(twos, twos_a, twos_b);
        let (fours, mut carry) = add3(load::<V>(plane!(2), n), fours_a, fours_b);
        store(ones, plane!(0), n);
        store(twos, plane!(1), n);
        store(fours, plane!(2), n);
        for p in 3..count {
            let held = load::<V>(plane!(p), n);
            store(held.xor(carry), plane!(p), n);
            carry = held.and(carry);
            if carry.is_zero() {
                break;
            }
        }
    }
}

/// See [`crate::arch::Kernel::count_up`].
#[inline(always)]
pub(crate) unsafe fn count_up<V: Vector>(
    planes: &mut [u64],
    stride: usize,
    plane: usize,
    input: &[u64],
    complement: bool,
) {
    // SAFETY: the caller's promise, passed on.
    unsafe { ripple::<V, false>(planes, stride, plane, input, complement) };
}

/// See [`crate::arch::Kernel::count_down`].
#[inline(always)]
pub(crate) unsafe fn count_down<V: Vector>(
    planes: &mut [u64],
    stride: usize,
    plane: usize,
    input: &[u64],
    complement: bool,
) -> bool {
    // SAFETY: the caller's promise, passed on.
    unsafe { ripple::<V, true>(planes, stride, plane, input, complement) }
}

/// Half adders (or half subtractors) from `plane` up; true if something was left beyond the top.
#[inline(always)]
unsafe fn ripple<V: Vector, const DOWN: bool>(
    planes: &mut [u64],
    stride: usize,
    plane: usize,
    input: &[u64],
    complement: bool,
) -> bool {
    const ONES: [u64; 8] = [u64::MAX; 8];
    let len = input.len();
    let count = planes.len().checked_div(stride).unwrap_or(0);
    assert!(len <= stride);
    let planes = planes.as_mut_ptr();
    let mut at = 0;
    // SAFETY: `input` and every plane hold at least `len` words.
    unsafe {
        let mut beyond = V::splat(0);
        while at < len {
            let n = V::LANES.min(len - at);
            let mut carry = load::<V>(input.as_ptr().add(at), n);
            if complement {
                carry = load::<V>(ONES.as_ptr(), n).and_not(carry);
            }
            for p in plane..count {
                let to = planes.add(p * stride + at);
                let held = load::<V>(to, n);
                store(held.xor(carry), to, n);
                carry = if DOWN { carry.and_not(held) } else { carry.and(held) };
                if carry.is_zero() {
                    break;
                }
            }
            beyond = beyond.or(carry);
            at += n;
        }
        !beyond.is_zero()
    }
}

/// See [`crate::arch::Kernel::compare`].
#[inline(always)]
pub(crate) unsafe fn compare<V: Vector>(
    planes: &[u64],
    stride: usize,
    than: u64,
    ties: &[u64],
    out: &mut [u64],
) {
    let len = out.len();
    let count = planes.len().checked_div(stride).unwrap_or(0);
    assert!(len <= stride && ties.len() == len);
    if count < 64 && than >> count != 0 {
        out.fill(0);
        return;
    }
    let mut at = 0;
    // SAFETY: `ties`, `out` and every plane hold at least `len` words.
    unsafe {
        while at < len {
            let n = V::LANES.min(len - at);
            let mut greater = V::splat(0);
            let mut equal = V::splat(u64::MAX);
            for p in (0..count).rev() {
                let held = load::<V>(planes.as_ptr().add(p * stride + at), n);
                if than.checked_shr(p as u32).unwrap_or(0) & 1 == 1 {
                    equal = equal.and(held);
                } else {
                    greater = greater.or(equal.and(held));
                    equal = equal.and_not(held);
                }
            }
            let ties = load::<V>(ties.as_ptr().add(at), n);
            store(greater.or(equal.and(ties)), out.as_mut_ptr().add(at), n);
            at += n;
        }
    }
}
