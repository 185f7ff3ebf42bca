//! Queries by rows in tiles: what a scan of many queries and the first of two stages have in common.
//!
//! A row is a lane: line `w` of a block holds word `w` of eight rows, a query's word is broadcast
//! to all lanes, and a lane's sum is a distance with nothing left to add across lanes. A tile of
//! four queries by four vectors loads eight registers for sixteen comparisons. Sums start at minus
//! each query's limit; one test of all sixteen says that none is near enough, which is the rule.
//!
//! Rows that lie one after the other are interleaved a chunk at a time, small enough for the first
//! cache, and then compared with every query, while the next chunk is on its way from memory.

use super::in_streams;
use crate::{
    arch::{CHUNK, Packed, QUERY_TILE, Rows, vector::Vector},
    line::{LINE, Line},
    search::Best,
};

/// Of the eight rows from `first`, of which `left` exist, those that are allowed, a bit each.
#[inline(always)]
pub(super) fn wanted(allowed: Option<&[u64]>, first: usize, left: usize) -> u8 {
    let exist = if left >= 8 { 0xff } else { (1u8 << left) - 1 };
    match allowed {
        None => exist,
        Some(words) => (words[first / 64] >> (first % 64)) as u8 & exist,
    }
}

/// Compares `Q` queries with `B` vectors of rows; each sum is a distance less the query's limit.
///
/// # Safety
/// `queries` is valid for `Q * width` words, `blocks` for the blocks that the rows from `row` on lie in.
#[inline(always)]
pub(super) unsafe fn tile<V: Vector, const Q: usize, const B: usize>(
    queries: *const u64,
    blocks: *const u64,
    width: usize,
    row: usize,
    limits: &[u64; Q],
) -> [[V; B]; Q] {
    // SAFETY: the caller's promise: word `w < width` of each query and block.
    unsafe {
        let mut totals = [[V::splat(0); B]; Q];
        for (totals, limit) in totals.iter_mut().zip(limits) {
            *totals = [V::splat(limit.wrapping_neg()); B];
        }
        let mut lanes = [blocks; B];
        for (b, lane) in lanes.iter_mut().enumerate() {
            let row = row + b * V::LANES;
            *lane = blocks.add(row / 8 * width * LINE + row % 8);
        }
        for w in 0..width {
            let mut words = [V::splat(0); B];
            for (word, lane) in words.iter_mut().zip(lanes) {
                *word = V::load(lane.add(w * LINE));
            }
            for (q, totals) in totals.iter_mut().enumerate() {
                let query = V::splat(*queries.add(w * Q + q));
                for (total, word) in totals.iter_mut().zip(words) {
                    *total = total.add(word.xor(query).popcount());
                }
            }
        }
        totals
    }
}

/// Whether any sum is below zero.
#[inline(always)]
unsafe fn any_below<V: Vector, const Q: usize, const B: usize>(totals: &[[V; B]; Q]) -> bool {
    // SAFETY: the caller's promise, passed on.
    unsafe {
        let mut any = totals[0][0];
        for total in totals.as_flattened() {
            any = any.or(*total);
        }
        any.top_bits() != 0
    }
}

/// Offers what a tile found.
#[inline(always)]
pub(super) unsafe fn offer<V: Vector, const B: usize>(
    totals: &[V; B],
    first: usize,
    rows: usize,
    row: usize,
    allowed: Option<&[u64]>,
    limit: u64,
    best: &mut Best,
) {
    for (b, total) in totals.iter().enumerate() {
        let row = row + b * V::LANES;
        let (group, lane) = (row / 8 * 8, row % 8);
        // SAFETY: the caller's promise, passed on; `lane + LANES <= 8`.
        unsafe {
            let below = total.top_bits() << lane;
            if below != 0 && group < rows {
                let below = below & wanted(allowed, first + group, rows - group);
                if below != 0 {
                    let mut sums = [0; 8];
                    total.store(sums.as_mut_ptr().add(lane));
                    best.offer(first + group, &sums, limit, below);
                }
            }
        }
    }
}

/// See [`crate::arch::Kernel::scan_many`].
#[inline(always)]
pub(crate) unsafe fn scan_many<V: Vector, const B: usize>(
    rows: Rows<'_>,
    queries: Packed<'_>,
    allowed: Option<&[u64]>,
    scratch: &mut [Line],
    best: &mut [Best],
) {
    // SAFETY: the caller's promise, passed on.
    unsafe { chunks::<V, QUERY_TILE, B>(rows, queries, allowed, scratch, best) };
}

/// Interleaves the rows chunk by chunk, and compares each with all queries, `Q` at a time.
#[inline(always)]
pub(super) unsafe fn chunks<V: Vector, const Q: usize, const B: usize>(
    rows: Rows<'_>,
    queries: Packed<'_>,
    allowed: Option<&[u64]>,
    scratch: &mut [Line],
    best: &mut [Best],
) {
    let Rows { words, width, first } = rows;
    let tiles = queries.queries.div_ceil(Q);
    assert!(width > 0 && queries.width == width && first.is_multiple_of(8));
    assert!(queries.words.len() >= tiles * Q * width && best.len() == queries.queries);
    assert!(scratch.len() >= CHUNK * width);
    let count = words.len() / width;
    let scratch: &mut [u64] = bytemuck::cast_slice_mut(scratch);
    let steps = count.div_ceil(CHUNK * 8);
    for turn in 0..steps {
        // With several queries it is the comparisons that take the time.
        let at = if Q == 1 { in_streams(turn, steps) } else { turn } * CHUNK * 8;
        let here = (count - at).min(CHUNK * 8);
        let blocks = here.div_ceil(8);
        let skip = allowed.is_some()
            && (0..blocks).all(|block| wanted(allowed, first + at + block * 8, here - block * 8) == 0);
        if skip {
            continue;
        }
        // SAFETY: `here` rows from `at` on are complete, and `scratch` holds a chunk.
        let from = unsafe {
            let from = words.as_ptr().add(at * width);
            interleave::<V>(from, width, here, scratch);
            from
        };
        let next = from.wrapping_add(CHUNK * 8 * width);
        let share = (CHUNK * width).div_ceil(tiles);
        for t in 0..tiles {
            let limits: [u64; Q] = std::array::from_fn(|q| best.get(t * Q + q).map_or(0, Best::limit));
            // SAFETY: tile `t` of the queries is complete, and so are the blocks of the scratch;
            // a prefetch may go anywhere.
            unsafe {
                if Q > 1 {
                    for line in t * share..(t + 1) * share {
                        V::prefetch(next.wrapping_add(line * LINE));
                    }
                }
                let query = queries.words.as_ptr().add(t * Q * width);
                let mut row = 0;
                while row < blocks * 8 {
                    let totals = tile::<V, Q, B>(query, scratch.as_ptr(), width, row, &limits);
                    if any_below(&totals) {
                        for (q, totals) in totals.iter().enumerate() {
                            if let Some(best) = best.get_mut(t * Q + q) {
                                offer(totals, first + at, here, row, allowed, limits[q], best);
                            }
                        }
                    }
                    row += B * V::LANES;
                }
            }
        }
    }
}

/// `rows` rows, at most a chunk of them, to blocks of eight; what is missing of the last is zero.
///
/// # Safety
/// `from` is valid for `rows` rows; `to` holds a chunk and starts on a cache line.
#[inline(always)]
unsafe fn interleave<V: Vector>(from: *const u64, width: usize, rows: usize, to: &mut [u64]) {
    for block in 0..rows.div_ceil(8) {
        let to = &mut to[block * 8 * width..(block + 1) * 8 * width];
        let left = rows - block * 8;
        // SAFETY: eight whole rows, or those that are left.
        unsafe {
            let from = from.add(block * 8 * width);
            if left >= 8 {
                V::interleave(from, width, to.as_mut_ptr());
                continue;
            }
            to.fill(0);
            for row in 0..left {
                for word in 0..width {
                    to[word * 8 + row] = *from.add(row * width + word);
                }
            }
        }
    }
}
