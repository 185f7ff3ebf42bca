//! The operations, each written once over the private `Vector`.
//!
//! Every function is `unsafe` for one reason: the CPU must have the vector's instruction set, and
//! the function must be inlined into a wrapper with those target features. Lengths are asserted,
//! so that no length makes them read or write out of bounds.

pub(super) mod bitwise;
pub(super) mod counters;
pub(super) mod scan;
pub(super) mod stages;
pub(super) mod tile;

/// How many places of memory a search reads in turns. The hardware fetches ahead of each of them,
/// and four at once keep the memory busier than one: by a tenth to a third, as measured on Zen 4.
const STREAMS: usize = 4;

/// Fewer words than this at one place wouldn't be worth the turn.
const BURST: usize = 256;

/// The `turn`th of `steps` steps through memory: each stream has its own run of them.
#[inline(always)]
fn in_streams(turn: usize, steps: usize) -> usize {
    let run = steps / STREAMS;
    if turn < run * STREAMS { turn % STREAMS * run + turn / STREAMS } else { turn }
}
