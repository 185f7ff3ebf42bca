//! The unit of storage: one cache line of eight words.
//!
//! Owns alignment and growth. A `Vec` of lines is 64-byte aligned without any code of our own that
//! handles pointers, and casts to words and bytes.

use bytemuck::{Pod, Zeroable};

use crate::{Error, Result};

/// Words in a line.
pub(crate) const LINE: usize = 8;

/// Eight words on one 64-byte cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line(pub [u64; LINE]);

/// `words` zero words, rounded up to whole lines.
pub(crate) fn zeroed(words: usize) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    grow(&mut lines, words)?;
    Ok(lines)
}

/// Makes room for `words` words; new ones are zero.
pub(crate) fn grow(lines: &mut Vec<Line>, words: usize) -> Result<()> {
    let wanted = words.div_ceil(LINE);
    if wanted > lines.len() {
        let more = wanted - lines.len();
        lines.try_reserve(more).map_err(|_| Error::OutOfMemory(more.saturating_mul(size_of::<Line>())))?;
        lines.resize(wanted, Line::zeroed());
    }
    Ok(())
}

/// The lines as words.
pub(crate) fn words(lines: &[Line]) -> &[u64] {
    bytemuck::cast_slice(lines)
}

/// The lines as words, to write.
pub(crate) fn words_mut(lines: &mut [Line]) -> &mut [u64] {
    bytemuck::cast_slice_mut(lines)
}
