//! Exclusive or, rotation, population count and Hamming distance.

use crate::arch::vector::Vector;

/// Beyond this many bytes of output, rows are written past the caches: they would only push out
/// what is still wanted, and each line would be read before it is written.
const STREAM: usize = 8 << 20;

/// See [`crate::arch::Kernel::xor`].
#[inline(always)]
pub(crate) unsafe fn xor<V: Vector>(a: &[u64], b: &[u64], out: &mut [u64]) {
    assert!(a.len() == out.len() && b.len() == out.len());
    let (a, b, to, n) = (a.as_ptr(), b.as_ptr(), out.as_mut_ptr(), out.len());
    // SAFETY: all three hold `n` words; the vector's contract is the caller's.
    unsafe {
        let mut at = 0;
        while at + V::LANES <= n {
            V::load(a.add(at)).xor(V::load(b.add(at))).store(to.add(at));
            at += V::LANES;
        }
        let rest = n - at;
        if rest > 0 {
            let (a, b) = (V::load_partial(a.add(at), rest), V::load_partial(b.add(at), rest));
            a.xor(b).store_partial(to.add(at), rest);
        }
    }
}

/// See [`crate::arch::Kernel::xor_rows`].
#[inline(always)]
pub(crate) unsafe fn xor_rows<V: Vector>(rows: &[u64], key: &[u64], out: &mut [u64]) {
    assert!(rows.len() == out.len() && !key.is_empty() && rows.len().is_multiple_of(key.len()));
    let width = key.len();
    let streams = size_of_val(out) >= STREAM
        && width.is_multiple_of(V::LANES)
        && out.as_ptr().addr().is_multiple_of(size_of::<u64>() * V::LANES);
    if !streams {
        for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            // SAFETY: the caller's promise, passed on.
            unsafe { xor::<V>(row, key, out) };
        }
        return;
    }
    let (from, key, to) = (rows.as_ptr(), key.as_ptr(), out.as_mut_ptr());
    // SAFETY: `rows` and `out` hold the same whole number of `width` words, `width` is a multiple of
    // the lanes and `to` is aligned to a vector.
    unsafe {
        let mut row = 0;
        while row < rows.len() {
            let mut at = 0;
            while at < width {
                V::prefetch(from.wrapping_add(row + at + AHEAD));
                V::load(from.add(row + at)).xor(V::load(key.add(at))).stream(to.add(row + at));
                at += V::LANES;
            }
            row += width;
        }
        V::fence();
    }
}

/// How far ahead of a stream its lines are asked for, in words.
const AHEAD: usize = 512;

/// See [`crate::arch::Kernel::rotate_rows`].
#[inline(always)]
pub(crate) unsafe fn rotate_rows<V: Vector>(rows: &[u64], width: usize, by: usize, out: &mut [u64]) {
    assert!(rows.len() == out.len() && width > 0 && rows.len().is_multiple_of(width) && by < width * 64);
    let streams = size_of_val(out) >= STREAM;
    for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        // SAFETY: both hold `width` words, and `by` is below their bits.
        unsafe {
            if streams {
                rotate::<V, true>(row, by, out);
            } else {
                rotate::<V, false>(row, by, out);
            }
        }
    }
    if streams {
        // SAFETY: the caller's promise, passed on.
        unsafe { V::fence() };
    }
}

/// One row: whole words first, then bits across neighbouring words.
///
/// # Safety
/// Equal lengths, and `by` below their bits.
#[inline(always)]
unsafe fn rotate<V: Vector, const STREAMS: bool>(row: &[u64], by: usize, out: &mut [u64]) {
    let (skip, bits) = (by / 64, (by % 64) as u32);
    let n = row.len();
    let (from, to) = (row.as_ptr(), out.as_mut_ptr());
    // Word `i` takes its high bits from word `i - skip` and its low bits from the one before that,
    // both counted around the ring. Around the seam that pair isn't adjacent in memory: word `skip`
    // is done on its own, and the words on either side of it are two plain runs.
    // SAFETY: `skip < n`; the runs are `skip + 1..n` from `1`, and `0..skip` from `n - skip`.
    unsafe {
        run::<V, STREAMS>(from.add(n - skip), to, skip, bits);
        let before = row[n - 1].checked_shr(64 - bits).unwrap_or(0);
        *to.add(skip) = row[0] << bits | before;
        run::<V, STREAMS>(from.add(1), to.add(skip + 1), n - skip - 1, bits);
    }
}

/// `to[i] = from[i] << bits | from[i - 1] >> (64 - bits)` for `n` words.
///
/// # Safety
/// `from` is valid for `n` words and, where `n > 0`, for the one before; `to` for `n`.
#[inline(always)]
unsafe fn run<V: Vector, const STREAMS: bool>(from: *const u64, to: *mut u64, n: usize, bits: u32) {
    // SAFETY: every access is below `n`, or one word before.
    unsafe {
        let mut at = 0;
        if STREAMS {
            while at < n && !to.add(at).addr().is_multiple_of(size_of::<u64>() * V::LANES) {
                let before = (*from.add(at).sub(1)).checked_shr(64 - bits).unwrap_or(0);
                *to.add(at) = *from.add(at) << bits | before;
                at += 1;
            }
        }
        while at + V::LANES <= n {
            let high = V::load(from.add(at)).shl(bits);
            let low = V::load(from.add(at).sub(1)).shr(64 - bits);
            if STREAMS {
                V::prefetch(from.wrapping_add(at + AHEAD));
                high.or(low).stream(to.add(at));
            } else {
                high.or(low).store(to.add(at));
            }
            at += V::LANES;
        }
        let rest = n - at;
        if rest > 0 {
            let high = V::load_partial(from.add(at), rest).shl(bits);
            let low = V::load_partial(from.add(at).sub(1), rest).shr(64 - bits);
            high.or(low).store_partial(to.add(at), rest);
        }
    }
}

/// See [`crate::arch::Kernel::popcount`].
#[inline(always)]
pub(crate) unsafe fn popcount<V: Vector>(words: &[u64]) -> u64 {
    let (from, n) = (words.as_ptr(), words.len());
    // SAFETY: every access is below `n`.
    unsafe {
        let mut sums = [V::splat(0); 4];
        let mut at = 0;
        while at + 4 * V::LANES <= n {
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum = sum.add(V::load(from.add(at + lane * V::LANES)).popcount());
            }
            at += 4 * V::LANES;
        }
        while at + V::LANES <= n {
            sums[0] = sums[0].add(V::load(from.add(at)).popcount());
            at += V::LANES;
        }
        if at < n {
            sums[1] = sums[1].add(V::load_partial(from.add(at), n - at).popcount());
        }
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum()
    }
}

/// See [`crate::arch::Kernel::hamming`].
#[inline(always)]
pub(crate) unsafe fn hamming<V: Vector>(a: &[u64], b: &[u64]) -> u64 {
    assert!(a.len() == b.len());
    // SAFETY: both hold as many words.
    unsafe { differing::<V>(a.as_ptr(), b.as_ptr(), a.len()) }
}

/// Bits in which `n` words differ.
///
/// # Safety
/// Both are valid for `n` words.
#[inline(always)]
pub(super) unsafe fn differing<V: Vector>(a: *const u64, b: *const u64, n: usize) -> u64 {
    // SAFETY: every access is below `n`.
    unsafe {
        let mut sums = [V::splat(0); 4];
        let mut at = 0;
        while at + 4 * V::LANES <= n {
            for (lane, sum) in sums.iter_mut().enumerate() {
                let at = at + lane * V::LANES;
                *sum = sum.add(V::load(a.add(at)).xor(V::load(b.add(at))).popcount());
            }
            at += 4 * V::LANES;
        }
        while at + V::LANES <= n {
            sums[0] = sums[0].add(V::load(a.add(at)).xor(V::load(b.add(at))).popcount());
            at += V::LANES;
        }
        let rest = n - at;
        if rest > 0 {
            let differ = V::load_partial(a.add(at), rest).xor(V::load_partial(b.add(at), rest));
            sums[1] = sums[1].add(differ.popcount());
        }
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum()
    }
}
