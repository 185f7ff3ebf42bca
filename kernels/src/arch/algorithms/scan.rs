//! One query against rows that lie one after the other, as fast as memory delivers them.
//!
//! Rows are read from four places in turns, at each in the order in which they lie. Each gathers its bits in the lanes of one register;
//! eight such registers are summed across lanes together. The sum starts at minus the limit, so
//! that a row that is near enough is one whose sum is negative: eight rows take one branch.

use bytemuck::Zeroable;

use super::{
    BURST, STREAMS, in_streams,
    tile::{self, chunks, wanted},
};
use crate::{
    arch::{CHUNK, Packed, Rows, vector::Vector},
    line::{LINE, Line},
    search::Best,
};

/// See [`crate::arch::Kernel::scan`].
#[inline(always)]
pub(crate) unsafe fn scan<V: Vector, const B: usize>(
    rows: Rows<'_>,
    query: &[u64],
    allowed: Option<&[u64]>,
    best: &mut Best,
) {
    if rows.width < V::LANES {
        // Most lanes of the sums below would be empty. A row a lane fills them.
        let done = if rows.width == 4 && V::LANES == 8 {
            // SAFETY: the caller's promise, passed on.
            unsafe { of_four_words::<V, B>(rows, query, allowed, best) }
        } else {
            0
        };
        let rest = Rows { words: &rows.words[done * rows.width..], first: rows.first + done, ..rows };
        let queries = Packed { words: query, width: rows.width, queries: 1 };
        let mut scratch = [Line::zeroed(); CHUNK * LINE];
        // SAFETY: the caller's promise, passed on.
        unsafe { chunks::<V, 1, B>(rest, queries, allowed, &mut scratch, std::slice::from_mut(best)) };
        return;
    }
    // SAFETY: the caller's promise, passed on. Constants let the loop over a row unroll.
    unsafe {
        match rows.width {
            4 => narrow::<V>(rows, 4, query, allowed, best),
            8 => narrow::<V>(rows, 8, query, allowed, best),
            16 => narrow::<V>(rows, 16, query, allowed, best),
            width if width * 8 <= BURST => narrow::<V>(rows, width, query, allowed, best),
            _ => wide::<V>(rows, query, allowed, best),
        }
    }
}

/// Rows of four words, half a register: they become a row a lane in registers. Returns how many
/// rows it has done, nearly all.
#[inline(always)]
unsafe fn of_four_words<V: Vector, const B: usize>(
    rows: Rows<'_>,
    query: &[u64],
    allowed: Option<&[u64]>,
    best: &mut Best,
) -> usize {
    const WIDTH: usize = 4;
    assert!(V::LANES == 8 && rows.width == WIDTH && query.len() == WIDTH && rows.first.is_multiple_of(8));
    let group = B * 8;
    let step = BURST / WIDTH / group;
    let steps = rows.words.len() / (step * group * WIDTH);
    // SAFETY: a step is `step` groups of `group` rows, all of them complete.
    unsafe {
        let query = [V::splat(query[0]), V::splat(query[1]), V::splat(query[2]), V::splat(query[3])];
        for turn in 0..steps {
            let from = in_streams(turn, steps) * step * group;
            for at in (from..from + step * group).step_by(group) {
                if allowed.is_some()
                    && (0..B).all(|block| wanted(allowed, rows.first + at + block * 8, 8) == 0)
                {
                    continue;
                }
                let limit = best.limit();
                let start = V::splat(limit.wrapping_neg());
                let mut totals = [start; B];
                let mut any = V::splat(0);
                for (block, total) in totals.iter_mut().enumerate() {
                    let lines = V::four_lines(rows.words.as_ptr().add((at + block * 8) * WIDTH));
                    for (line, query) in lines.into_iter().zip(query) {
                        *total = total.add(line.xor(query).popcount());
                    }
                    any = any.or(*total);
                }
                if any.top_bits() != 0 {
                    tile::offer(&totals, rows.first + at, group, 0, allowed, limit, best);
                }
            }
        }
    }
    steps * step * group
}

/// Rows of which eight are a burst or less: eight rows at a time.
#[inline(always)]
unsafe fn narrow<V: Vector>(
    rows: Rows<'_>,
    width: usize,
    query: &[u64],
    allowed: Option<&[u64]>,
    best: &mut Best,
) {
    assert!(width > 0 && query.len() == width && rows.first.is_multiple_of(8));
    let count = rows.words.len() / width;
    let burst = (BURST / width / 8).max(1) * 8;
    let steps = count.div_ceil(burst);
    for turn in 0..steps {
        let from = in_streams(turn, steps) * burst;
        for at in (from..count.min(from + burst)).step_by(8) {
            let wanted = wanted(allowed, rows.first + at, count - at);
            if wanted == 0 {
                continue;
            }
            let limit = best.limit();
            // SAFETY: rows `at..count` are complete.
            unsafe {
                let mut totals = [V::splat(0); 8];
                let from = rows.words.as_ptr().add(at * width);
                if count - at >= 8 {
                    for (row, total) in totals.iter_mut().enumerate() {
                        *total = distance::<V>(from.add(row * width), query.as_ptr(), width, limit);
                    }
                } else {
                    for (row, total) in totals.iter_mut().enumerate().take(count - at) {
                        *total = distance::<V>(from.add(row * width), query.as_ptr(), width, limit);
                    }
                }
                offer(totals, rows.first + at, wanted, limit, best);
            }
        }
    }
}

/// Rows of which eight are more than a burst: a few rows at each place, until there are eight.
#[inline(always)]
unsafe fn wide<V: Vector>(rows: Rows<'_>, query: &[u64], allowed: Option<&[u64]>, best: &mut Best) {
    let width = rows.width;
    assert!(width > 0 && query.len() == width && rows.first.is_multiple_of(8));
    let count = rows.words.len() / width;
    let burst = (BURST / width).max(1);
    let run = count / 8 / STREAMS;
    for step in 0..run {
        let limit = best.limit();
        // SAFETY: the caller's promise, passed on.
        let mut totals = [[unsafe { V::splat(0) }; 8]; STREAMS];
        let mut wants = [0; STREAMS];
        for (stream, want) in wants.iter_mut().enumerate() {
            let at = (stream * run + step) * 8;
            *want = wanted(allowed, rows.first + at, count - at);
        }
        for first in (0..8).step_by(burst) {
            for stream in 0..STREAMS {
                if wants[stream] == 0 {
                    continue;
                }
                let totals = &mut totals[stream][first..(first + burst).min(8)];
                for (row, total) in totals.iter_mut().enumerate() {
                    let at = (stream * run + step) * 8 + first + row;
                    // SAFETY: there are eight rows from each place on, for `run` steps.
                    *total = unsafe {
                        distance::<V>(rows.words.as_ptr().add(at * width), query.as_ptr(), width, limit)
                    };
                }
            }
        }
        for stream in 0..STREAMS {
            let at = (stream * run + step) * 8;
            // SAFETY: the caller's promise, passed on.
            unsafe { offer(totals[stream], rows.first + at, wants[stream], limit, best) };
        }
    }
    let done = run * STREAMS * 8;
    let rest = Rows { words: &rows.words[done * width..], width, first: rows.first + done };
    // SAFETY: the caller's promise, passed on.
    unsafe { narrow::<V>(rest, width, query, allowed, best) };
}

/// Offers those of eight rows that are wanted and whose sum is below zero.
#[inline(always)]
unsafe fn offer<V: Vector>(totals: [V; 8], first: usize, wanted: u8, limit: u64, best: &mut Best) {
    let mut sums = [0; 8];
    // SAFETY: the caller's promise, passed on.
    let below = unsafe { V::sum_rows(totals, &mut sums) } & wanted;
    if below != 0 {
        best.offer(first, &sums, limit, below);
    }
}

/// Lanes whose sum is the distance minus `limit`.
///
/// # Safety
/// Both are valid for `width` words.
#[inline(always)]
pub(super) unsafe fn distance<V: Vector>(row: *const u64, query: *const u64, width: usize, limit: u64) -> V {
    // SAFETY: every access is below `width`; a prefetch may go anywhere.
    unsafe {
        let mut total = V::first(limit.wrapping_neg());
        let mut at = 0;
        // Long rows gather in several registers, so that no sum waits for the one before.
        let mut folds = [V::splat(0); 4];
        while at + 4 * V::LANES <= width {
            for (lane, fold) in folds.iter_mut().enumerate() {
                let at = at + lane * V::LANES;
                *fold = fold.add(V::load(row.add(at)).xor(V::load(query.add(at))).popcount());
            }
            at += 4 * V::LANES;
        }
        total = total.add(folds[0].add(folds[1])).add(folds[2].add(folds[3]));
        while at + V::LANES <= width {
            total = total.add(V::load(row.add(at)).xor(V::load(query.add(at))).popcount());
            at += V::LANES;
        }
        let rest = width - at;
        if rest > 0 {
            let differ = V::load_partial(row.add(at), rest).xor(V::load_partial(query.add(at), rest));
            total = total.add(differ.popcount());
        }
        total
    }
}

/// See [`crate::arch::Kernel::read`].
#[inline(always)]
pub(crate) unsafe fn read<V: Vector>(words: &[u64]) -> u64 {
    let steps = words.len() / BURST;
    // SAFETY: the caller's promise, passed on; a step is `BURST` words, all of them within `words`.
    let folds = unsafe {
        let mut folds = [V::splat(0); 8];
        for turn in 0..steps {
            let from = words.as_ptr().add(in_streams(turn, steps) * BURST);
            for at in (0..BURST).step_by(8 * V::LANES) {
                for (lane, fold) in folds.iter_mut().enumerate() {
                    *fold = fold.add(V::load(from.add(at + lane * V::LANES)));
                }
            }
        }
        folds.map(|fold| fold.sum())
    };
    words[steps * BURST..].iter().chain(&folds).fold(0, |all, word| all ^ word)
}
