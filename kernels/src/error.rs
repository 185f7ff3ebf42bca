//! What can go wrong: one enum for the crate.
//!
//! Owns the reasons. Every public function checks its input before it allocates or computes.

use std::fmt;

use crate::Isa;

/// Why an operation was refused. Nothing has been changed when one is returned.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A dimension that is not a positive multiple of 64 bits, or is beyond [`crate::MAX_BITS`].
    Bits(usize),
    /// Two operands of different dimensions, in bits.
    BitsDiffer {
        /// Dimension of the first operand.
        left: usize,
        /// Dimension of the second operand.
        right: usize,
    },
    /// Two dense vectors of different lengths, in elements.
    LengthsDiffer {
        /// Length of the first operand.
        left: usize,
        /// Length of the second operand.
        right: usize,
    },
    /// An operation that needs at least one input was given none.
    Empty,
    /// A size that overflows, or more rows than [`crate::MAX_ROWS`].
    TooLarge,
    /// Stored words whose number is not rows x words per row.
    Words {
        /// Words that the shape asks for.
        expected: usize,
        /// Words given.
        found: usize,
    },
    /// The allocator refused this many bytes.
    OutOfMemory(usize),
    /// A row at or beyond the number of rows.
    Row {
        /// The row asked for.
        row: usize,
        /// How many rows there are.
        rows: usize,
    },
    /// A bitmap of allowed rows whose length is not the number of rows.
    Bitmap {
        /// Rows of the matrix.
        rows: usize,
        /// Bits of the bitmap.
        bits: usize,
    },
    /// A weight of zero, or weights whose sum is beyond [`crate::MAX_WEIGHT`].
    Weight,
    /// A vector removed from a bundle that does not contain it with that weight.
    NotInBundle,
    /// A two-stage scan over codes without a prefix plane.
    NoPrefix,
    /// A prefix that is not a positive multiple of 64 bits, at most the dimension and [`crate::MAX_PREFIX`].
    PrefixBits {
        /// The prefix asked for.
        prefix: usize,
        /// The dimension.
        bits: usize,
    },
    /// No instruction set has this name.
    UnknownIsa(String),
    /// This machine, or this build, lacks the instruction set.
    IsaUnavailable(Isa),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bits(bits) => {
                write!(
                    f,
                    "{bits} bits: a dimension is a positive multiple of 64, at most {}",
                    crate::MAX_BITS
                )
            }
            Self::BitsDiffer { left, right } => write!(f, "dimensions differ: {left} and {right} bits"),
            Self::LengthsDiffer { left, right } => write!(f, "lengths differ: {left} and {right} elements"),
            Self::Empty => write!(f, "at least one input is needed"),
            Self::TooLarge => write!(f, "the size is beyond what can be addressed"),
            Self::Words { expected, found } => {
                write!(f, "the shape asks for {expected} words, found {found}")
            }
            Self::OutOfMemory(bytes) => write!(f, "out of memory: {bytes} bytes"),
            Self::Row { row, rows } => write!(f, "row {row} of {rows}"),
            Self::Bitmap { rows, bits } => write!(f, "a bitmap of {bits} bits for {rows} rows"),
            Self::Weight => {
                write!(f, "a weight is not zero, and weights sum to at most {}", crate::MAX_WEIGHT)
            }
            Self::NotInBundle => write!(f, "the bundle does not contain the vector with that weight"),
            Self::NoPrefix => write!(f, "the codes have no prefix plane"),
            Self::PrefixBits { prefix, bits } => {
                write!(
                    f,
                    "a prefix of {prefix} bits for {bits}: a positive multiple of 64, at most the dimension and {}",
                    crate::MAX_PREFIX
                )
            }
            Self::UnknownIsa(name) => {
                write!(f, "no instruction set is called {name:?}; known: ")?;
                for (at, isa) in Isa::ALL.iter().enumerate() {
                    write!(f, "{}{isa}", if at == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
            Self::IsaUnavailable(isa) => write!(f, "{isa} is not available on this machine"),
        }
    }
}

impl std::error::Error for Error {}

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;
