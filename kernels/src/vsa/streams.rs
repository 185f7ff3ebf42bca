//! Which stream of the generator is whose.
//!
//! Owns the numbers given to [`crate::Rng::stream`], so that two things made from one seed share nothing.
//! Random items have the streams of their own numbers, which fit in 32 bits; all others are above.

/// Level items.
pub(super) const LEVEL: u64 = u64::MAX;
/// Circular items.
pub(super) const CIRCULAR: u64 = u64::MAX - 1;
/// The two sides of a tree.
pub(super) const SIDES: u64 = u64::MAX - 2;

/// The estimates of a resonator's start `start`.
pub(super) fn start(start: usize) -> u64 {
    1 << 63 | start as u64 & u64::MAX >> 2
}

/// The ties of class `class`.
pub(super) fn class(class: usize) -> u64 {
    1 << 62 | class as u64 & u64::MAX >> 2
}
