//! The steps of a two-stage scan: distances of prefixes, who is near, and a look at those rows.
//!
//! Distances of prefixes are written out, two bytes a row, a small part of what they were made from.
//! Everything that depends on them (how many are near, which) then reads those two bytes, as
//! often as it takes, and no branch depends on whether a single row is near.

use std::ops::RangeInclusive;

use super::{BURST, bitwise::differing, in_streams, scan::distance, tile::tile};
use crate::{
    arch::{Blocks, Look, ROOM, Rows, vector::Vector},
    line::LINE,
    search::Best,
};

/// See [`crate::arch::Kernel::distances`].
#[inline(always)]
pub(crate) unsafe fn distances<V: Vector, const B: usize>(
    blocks: Blocks<'_>,
    query: &[u64],
    out: &mut [u16],
) {
    let Blocks { lines, width, rows, .. } = blocks;
    let count = rows.div_ceil(8);
    assert!(width > 0 && query.len() == width && lines.len() / width >= count && out.len() >= count * 8);
    let (from, query, to) = (lines.as_ptr().cast(), query.as_ptr(), out.as_mut_ptr());
    // SAFETY: there are `count` blocks, and room for their distances. Constants let loops unroll.
    unsafe {
        match width {
            1 => blocks_of::<V, B, 1>(from, query, count, to),
            2 => blocks_of::<V, B, 2>(from, query, count, to),
            3 => blocks_of::<V, B, 3>(from, query, count, to),
            4 => blocks_of::<V, B, 4>(from, query, count, to),
            _ => {
                for block in 0..count {
                    let from = from.add(block * width * LINE);
                    for lane in (0..8).step_by(V::LANES) {
                        let [[total]] = tile::<V, 1, 1>(query, from, width, lane, &[0]);
                        total.store_narrow(to.add(block * 8 + lane));
                    }
                }
            }
        }
    }
}

/// Blocks of so few words a row that the query stays in registers.
///
/// # Safety
/// `query` is valid for `W` words, `from` for `count` blocks, `to` for their rows.
#[inline(always)]
unsafe fn blocks_of<V: Vector, const B: usize, const W: usize>(
    from: *const u64,
    query: *const u64,
    count: usize,
    to: *mut u16,
) {
    // SAFETY: the caller's promise: line `W * block + w` is within the blocks.
    unsafe {
        let mut words = [V::splat(0); W];
        for (w, word) in words.iter_mut().enumerate() {
            *word = V::splat(*query.add(w));
        }
        let burst = (BURST / (W * LINE)).max(1);
        let steps = count.div_ceil(burst);
        for turn in 0..steps {
            let first = in_streams(turn, steps) * burst;
            for block in first..count.min(first + burst) {
                let from = from.add(block * W * LINE);
                for lane in (0..8).step_by(V::LANES) {
                    let mut total = V::load(from.add(lane)).xor(words[0]).popcount();
                    for (w, word) in words.iter().enumerate().skip(1) {
                        total = total.add(V::load(from.add(w * LINE + lane)).xor(*word).popcount());
                    }
                    total.store_narrow(to.add(block * 8 + lane));
                }
            }
        }
    }
}

/// See [`crate::arch::Kernel::count_within`].
#[inline(always)]
pub(crate) unsafe fn count_within<V: Vector>(numbers: &[u16], range: RangeInclusive<u16>) -> usize {
    let span = range.end().saturating_sub(*range.start());
    let mut count = 0;
    for chunk in numbers.chunks_exact(64) {
        // SAFETY: there are 64 numbers.
        count += unsafe { V::within(chunk.as_ptr(), *range.start(), span) }.count_ones() as usize;
    }
    count
}

/// See [`crate::arch::Kernel::find_within`].
#[inline(always)]
pub(crate) unsafe fn find_within<V: Vector>(
    numbers: &[u16],
    range: RangeInclusive<u16>,
    out: &mut [u32],
) -> usize {
    /// Positions written at a time, whether or not there are so many: rarely are there more.
    const STEP: usize = 4;
    const { assert!(STEP <= ROOM) };
    let span = range.end().saturating_sub(*range.start());
    // A branch on whether there is any of 64 pays where nearly always there is none.
    let sparse = out.len() < numbers.len() / 512;
    let mut count = 0;
    for (at, chunk) in numbers.chunks_exact(64).enumerate() {
        // SAFETY: there are 64 numbers.
        let mut mask = unsafe { V::within(chunk.as_ptr(), *range.start(), span) };
        if sparse && mask == 0 {
            continue;
        }
        let more = mask.count_ones() as usize;
        assert!(count + more + ROOM <= out.len());
        let mut done = 0;
        loop {
            for step in 0..STEP {
                // SAFETY: `done` is below `more` or zero, so that it is less than `ROOM` beyond at most.
                unsafe {
                    *out.as_mut_ptr().add(count + done + step) = (at * 64) as u32 + mask.trailing_zeros()
                };
                mask &= mask.wrapping_sub(1);
            }
            done += STEP;
            if done >= more {
                break;
            }
        }
        count += more;
    }
    count
}

/// See [`crate::arch::Kernel::scan_rows`].
#[inline(always)]
pub(crate) unsafe fn scan_rows<V: Vector>(
    rows: Rows<'_>,
    query: &[u64],
    which: &[u32],
    look: Look,
    best: &mut Best,
) {
    let width = rows.width;
    let count = (rows.words.len().checked_div(width).unwrap_or(0)) as u64;
    assert!(width > 0 && query.len() == width && rows.first == 0 && look.words <= width);
    assert!(which.iter().all(|&row| u64::from(row) < count));
    // SAFETY: each row is one of `rows`, which are complete. Constants let the loop over a row unroll.
    unsafe {
        match look.words {
            8 => look_at::<V>(rows, query, which, Look { words: 8, ..look }, best),
            16 => look_at::<V>(rows, query, which, Look { words: 16, ..look }, best),
            _ => look_at::<V>(rows, query, which, look, best),
        }
    }
}

/// Rows that have passed the look and wait for their other lines.
const WAITING: usize = 32;

/// # Safety
/// Each of `which` is one of `rows`, the query is as wide as they are, and the look not wider.
#[inline(always)]
unsafe fn look_at<V: Vector>(rows: Rows<'_>, query: &[u64], which: &[u32], look: Look, best: &mut Best) {
    let width = rows.width;
    let whole = look.words == width;
    // As many lines on their way as a core can have, roughly.
    let lines = look.words.div_ceil(LINE).min(8);
    let ahead = (AHEAD / lines.max(1)).next_multiple_of(8);
    let (from, query) = (rows.words.as_ptr(), query.as_ptr());
    let mut waiting = [0u32; WAITING];
    let mut wait = 0;
    for (turn, eight) in which.chunks(8).enumerate() {
        for &next in which[(turn * 8 + ahead).min(which.len())..].iter().take(8) {
            for line in 0..lines {
                // SAFETY: a prefetch may go anywhere.
                unsafe { V::prefetch(from.wrapping_add(next as usize * width + line * LINE)) };
            }
        }
        let limit = if whole { best.limit() } else { look.most.saturating_add(1) };
        let mut sums = [0; 8];
        // SAFETY: the caller's promise; a prefetch may go anywhere.
        unsafe {
            let mut totals = [V::splat(0); 8];
            if let Ok(eight) = <&[u32; 8]>::try_from(eight) {
                for (&row, total) in eight.iter().zip(&mut totals) {
                    *total = distance::<V>(from.add(row as usize * width), query, look.words, limit);
                }
            } else {
                for (&row, total) in eight.iter().zip(&mut totals) {
                    *total = distance::<V>(from.add(row as usize * width), query, look.words, limit);
                }
            }
            let mut below = V::sum_rows(totals, &mut sums);
            while below != 0 {
                let at = below.trailing_zeros() as usize;
                below &= below - 1;
                if whole {
                    best.offer_one(eight[at], sums[at].wrapping_add(limit));
                    continue;
                }
                let rest = from.wrapping_add(eight[at] as usize * width + look.words);
                for line in (0..(width - look.words).min(8 * LINE)).step_by(LINE) {
                    V::prefetch(rest.wrapping_add(line));
                }
                waiting[wait % WAITING] = eight[at];
                wait += 1;
            }
            if wait > WAITING - 8 {
                finish::<V>(rows, query, &waiting[..wait], best);
                wait = 0;
            }
        }
    }
    // SAFETY: the caller's promise, passed on.
    unsafe { finish::<V>(rows, query, &waiting[..wait], best) };
}

/// How many lines ahead are asked for.
const AHEAD: usize = 32;

/// Rows that are compared whole.
///
/// # Safety
/// Each of `which` is one of `rows`, and the query is as wide.
#[inline(always)]
unsafe fn finish<V: Vector>(rows: Rows<'_>, query: *const u64, which: &[u32], best: &mut Best) {
    for &row in which {
        // SAFETY: the caller's promise, passed on.
        let distance =
            unsafe { differing::<V>(rows.words.as_ptr().add(row as usize * rows.width), query, rows.width) };
        best.offer_one(row, distance);
    }
}
