//! What a backend does, on bare words.
//!
//! Owns the trait that dispatch goes through, the shapes it is called with, and the macro that
//! builds a backend from a vector: one `#[target_feature]` wrapper an operation, nothing else.

use std::ops::RangeInclusive;

use crate::{Isa, line::Line, search::Best};

/// Queries of a tile, whatever the backend: how [`Packed`] queries are laid out.
pub(crate) const QUERY_TILE: usize = 4;

/// Blocks that `scan_many` interleaves at a time, to compare all queries with.
pub(crate) const CHUNK: usize = 4;

/// Inputs that `bundle` adds to its counters at a time.
pub(crate) const BATCH: usize = 8;

/// Rows one after the other, `width` words each.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// `width` words a row.
    pub words: &'a [u64],
    /// Words of a row.
    pub width: usize,
    /// The number of the first row; a multiple of 8.
    pub first: usize,
}

/// Rows interleaved in blocks of eight: line `w` of a block holds word `w` of each of its rows.
#[derive(Clone, Copy)]
pub(crate) struct Blocks<'a> {
    /// `width` lines a block; rows beyond the last are zero.
    pub lines: &'a [Line],
    /// Words of a row.
    pub width: usize,
    /// How many rows there are.
    pub rows: usize,
}

/// Queries in tiles of four: word `w` of the four, then word `w + 1`. The last tile is padded with zeros.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a> {
    /// `4 * width` words a tile.
    pub words: &'a [u64],
    /// Words of a query.
    pub width: usize,
    /// How many queries there are.
    pub queries: usize,
}

/// How much of a row is compared before the rest of it is read.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    /// Words, at most a row's.
    pub words: usize,
    /// A row that differs in more bits of those is passed over.
    pub most: u64,
}

/// Positions that `find_within` may write beyond those that it finds.
pub(crate) const ROOM: usize = 8;

/// Allowed rows: bit `r % 64` of word `r / 64`.
pub(crate) type Allowed<'a> = Option<&'a [u64]>;

/// A backend. A value of a type that implements it is proof that this CPU can run it.
pub(crate) trait Kernel: Send + Sync {
    /// Its name.
    fn isa(&self) -> Isa;
    /// `out = a ^ b`; equal lengths.
    fn xor(&self, a: &[u64], b: &[u64], out: &mut [u64]);
    /// Each row of `rows` xor `key` to `out`; `rows` and `out` hold the same whole number of keys.
    fn xor_rows(&self, rows: &[u64], key: &[u64], out: &mut [u64]);
    /// Each row of `rows`, `width` words, rotated up by `by` bits, `by < 64 * width`.
    fn rotate_rows(&self, rows: &[u64], width: usize, by: usize, out: &mut [u64]);
    /// How many ones.
    fn popcount(&self, words: &[u64]) -> u64;
    /// How many bits differ; equal lengths.
    fn hamming(&self, a: &[u64], b: &[u64]) -> u64;
    /// Adds [`BATCH`] vectors, each with weight one, to bit-sliced counters of `stride` words a
    /// plane, at least four planes. What overflows the top plane is lost.
    fn count_batch(&self, planes: &mut [u64], stride: usize, inputs: &[&[u64]; BATCH]);
    /// Adds `2^plane` to the counter of each bit that is one in `input` (zero where `complement`).
    fn count_up(&self, planes: &mut [u64], stride: usize, plane: usize, input: &[u64], complement: bool);
    /// The reverse of `count_up`; true if a counter went below zero and wrapped.
    fn count_down(
        &self,
        planes: &mut [u64],
        stride: usize,
        plane: usize,
        input: &[u64],
        complement: bool,
    ) -> bool;
    /// `out` is one where the counter is greater than `than`, `ties` where it equals it.
    fn compare(&self, planes: &[u64], stride: usize, than: u64, ties: &[u64], out: &mut [u64]);
    /// Offers every allowed row that may be near enough to `best`.
    fn scan(&self, rows: Rows<'_>, query: &[u64], allowed: Allowed<'_>, best: &mut Best);
    /// The distance of every row of the blocks, at most `u16::MAX`; `out` has room for whole blocks.
    fn distances(&self, blocks: Blocks<'_>, query: &[u64], out: &mut [u16]);
    /// How many of the numbers, a multiple of 64 of them, are in the range.
    fn count_within(&self, numbers: &[u16], range: RangeInclusive<u16>) -> usize;
    /// Their positions, ascending, at the front of `out`, which has room for them and [`ROOM`] more.
    /// Returns how many there are.
    fn find_within(&self, numbers: &[u16], range: RangeInclusive<u16>, out: &mut [u32]) -> usize;
    /// Offers those of the rows `which`, of all `rows`, that are near enough to `best`. A row whose first
    /// `look.words` words are farther than `look.most` is passed over.
    fn scan_rows(&self, rows: Rows<'_>, query: &[u64], which: &[u32], look: Look, best: &mut Best);
    /// The same for several queries; `best` has one for each. `scratch` holds [`CHUNK`] blocks.
    fn scan_many(
        &self,
        rows: Rows<'_>,
        queries: Packed<'_>,
        allowed: Allowed<'_>,
        scratch: &mut [Line],
        best: &mut [Best],
    );
    /// Reads every word and does nothing with it but fold them: the speed that a scan can't exceed.
    fn read(&self, words: &[u64]) -> u64;
}

/// A backend from a vector type: the vectors of rows in a tile, and when it is available.
macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident, $isa:expr, $vector:ty, $tile:literal,
     available: $available:expr $(, features: $features:literal)?) => {
        $(#[$doc])*
        pub(crate) struct $name(());

        impl $name {
            /// The backend, if this CPU can run it.
            pub(crate) fn new() -> Option<Self> {
                if $available { Some(Self(())) } else { None }
            }

            /// The one that all share.
            pub(crate) fn shared() -> Option<&'static dyn $crate::arch::Kernel> {
                static SHARED: std::sync::OnceLock<Option<$name>> = std::sync::OnceLock::new();
                SHARED.get_or_init(Self::new).as_ref().map(|kernel| kernel as &dyn $crate::arch::Kernel)
            }
        }

        impl $crate::arch::Kernel for $name {
            fn isa(&self) -> $crate::Isa {
                $isa
            }
            kernel!(@each $vector, [$($features)?],
                fn xor(a: &[u64], b: &[u64], out: &mut [u64]) = bitwise::xor;
                fn xor_rows(rows: &[u64], key: &[u64], out: &mut [u64]) = bitwise::xor_rows;
                fn rotate_rows(rows: &[u64], width: usize, by: usize, out: &mut [u64]) = bitwise::rotate_rows;
                fn popcount(words: &[u64]) -> u64 = bitwise::popcount;
                fn hamming(a: &[u64], b: &[u64]) -> u64 = bitwise::hamming;
                fn count_batch(planes: &mut [u64], stride: usize, inputs: &[&[u64]; $crate::arch::BATCH])
                    = counters::count_batch;
                fn count_up(planes: &mut [u64], stride: usize, plane: usize, input: &[u64], complement: bool)
                    = counters::count_up;
                fn count_down(planes: &mut [u64], stride: usize, plane: usize, input: &[u64], complement: bool)
                    -> bool = counters::count_down;
                fn compare(planes: &[u64], stride: usize, than: u64, ties: &[u64], out: &mut [u64])
                    = counters::compare;
                fn read(words: &[u64]) -> u64 = scan::read;
                fn count_within(numbers: &[u16], range: std::ops::RangeInclusive<u16>) -> usize = stages::count_within;
                fn find_within(numbers: &[u16], range: std::ops::RangeInclusive<u16>,
                    out: &mut [u32]) -> usize = stages::find_within;
                fn scan_rows(rows: $crate::arch::Rows<'_>, query: &[u64], which: &[u32],
                    look: $crate::arch::Look, best: &mut $crate::search::Best) = stages::scan_rows;
            );
            kernel!(@each_tile $vector, $tile, [$($features)?],
                fn distances(blocks: $crate::arch::Blocks<'_>, query: &[u64], out: &mut [u16])
                    = stages::distances;
                fn scan(rows: $crate::arch::Rows<'_>, query: &[u64], allowed: Option<&[u64]>,
                    best: &mut $crate::search::Best) = scan::scan;
                fn scan_many(rows: $crate::arch::Rows<'_>, queries: $crate::arch::Packed<'_>,
                    allowed: Option<&[u64]>, scratch: &mut [$crate::line::Line],
                    best: &mut [$crate::search::Best]) = tile::scan_many;
            );
        }
    };
    (@each $vector:ty, $features:tt, $(fn $name:ident($($arg:ident: $type:ty),*) $(-> $out:ty)?
        = $module:ident::$function:ident;)*) => {
        $(kernel!(@wrap $features, fn $name($($arg: $type),*) $(-> $out)?
            = $crate::arch::algorithms::$module::$function::<$vector>);)*
    };
    (@each_tile $vector:ty, $tile:literal, $features:tt,
        $(fn $name:ident($($arg:ident: $type:ty),*) $(-> $out:ty)? = $module:ident::$function:ident;)*) => {
        kernel!(@tiles $vector, $tile, $features,
            $(fn $name($($arg: $type),*) $(-> $out)? = $module::$function;)*);
    };
    (@tiles $vector:ty, $tile:literal, $features:tt,
        $(fn $name:ident($($arg:ident: $type:ty),*) $(-> $out:ty)? = $module:ident::$function:ident;)*) => {
        $(kernel!(@wrap $features, fn $name($($arg: $type),*) $(-> $out)?
            = $crate::arch::algorithms::$module::$function::<$vector, $tile>);)*
    };
    (@wrap [$($features:literal)?], fn $name:ident($($arg:ident: $type:ty),*) $(-> $out:ty)? = $path:path) => {
        fn $name(&self, $($arg: $type),*) $(-> $out)? {
            $(#[target_feature(enable = $features)])?
            fn wrapped($($arg: $type),*) $(-> $out)? {
                // SAFETY: this function has the target features of the vector, and is only called
                // by a kernel whose existence shows that the CPU has them.
                unsafe { $path($($arg),*) }
            }
            // SAFETY: `self` is proof that the CPU has the features.
            #[allow(unused_unsafe, reason = "the scalar backend needs no feature")]
            unsafe { wrapped($($arg),*) }
        }
    };
}
