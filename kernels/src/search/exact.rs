//! Scans that compare every row.
//!
//! Owns [`Kernels::scan`] and [`Kernels::scan_many`]: checks, the layout of the queries, the join of
//! what threads found.

use super::{Best, Neighbour, Search, in_parts, neighbours};
use crate::{
    Codes, Error, HypervectorView, Kernels, Result,
    arch::{CHUNK, Packed, QUERY_TILE},
    line::{self, LINE},
};

impl Kernels {
    /// The rows of `codes` that are nearest to `query`: every row is compared.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::Bitmap`], [`Error::OutOfMemory`].
    pub fn scan<'q>(
        self,
        codes: &Codes,
        query: impl Into<HypervectorView<'q>>,
        search: &Search<'_>,
    ) -> Result<Vec<Neighbour>> {
        let query = query.into();
        codes.same_bits(query)?;
        search.check(codes)?;
        let limit = search.limit(codes.bits());
        let best = in_parts(
            codes.len(),
            codes.bits() / 8,
            search.threads,
            |from, to| {
                let mut best = Best::new(search.k, codes.len(), limit)?;
                if search.k > 0 && from < to {
                    let rows = codes.part(from, to);
                    self.raw().scan(rows, query.words(), search.allowed_words(), &mut best);
                }
                Ok(best)
            },
            Best::absorb,
        )?;
        Ok(neighbours(best.into_sorted()))
    }

    /// [`Kernels::scan`] for each query, in far less time than one after the other: rows are
    /// compared with queries in tiles, and memory is read once for all.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::Bitmap`], [`Error::TooLarge`], [`Error::OutOfMemory`].
    pub fn scan_many(
        self,
        codes: &Codes,
        queries: &[HypervectorView<'_>],
        search: &Search<'_>,
    ) -> Result<Vec<Vec<Neighbour>>> {
        for query in queries {
            codes.same_bits(*query)?;
        }
        search.check(codes)?;
        if queries.is_empty() {
            return Ok(Vec::new());
        }
        if search.k == 0 || codes.is_empty() {
            return Ok(vec![Vec::new(); queries.len()]);
        }
        let width = codes.bits() / 64;
        let tiles = queries.len().div_ceil(QUERY_TILE);
        let words = tiles.checked_mul(QUERY_TILE * width).ok_or(Error::TooLarge)?;
        let mut packed = line::zeroed(words)?;
        for (at, query) in queries.iter().enumerate() {
            let tile = &mut line::words_mut(&mut packed)[at / QUERY_TILE * QUERY_TILE * width..];
            for (word, &value) in query.words().iter().enumerate() {
                tile[word * QUERY_TILE + at % QUERY_TILE] = value;
            }
        }
        let packed = Packed { words: line::words(&packed), width, queries: queries.len() };
        let limit = search.limit(codes.bits());
        let best = in_parts(
            codes.len(),
            codes.bits() / 8 * queries.len().min(64),
            search.threads,
            |from, to| {
                let mut best = Vec::with_capacity(queries.len());
                for _ in queries {
                    best.push(Best::new(search.k, codes.len(), limit)?);
                }
                let mut scratch = line::zeroed(CHUNK * width * LINE)?;
                let rows = codes.part(from, to);
                self.raw().scan_many(rows, packed, search.allowed_words(), &mut scratch, &mut best);
                Ok(best)
            },
            |all: &mut Vec<Best>, part| all.iter_mut().zip(part).try_for_each(|(all, part)| all.absorb(part)),
        )?;
        Ok(best.into_iter().map(|best| neighbours(best.into_sorted())).collect())
    }
}

/// [`Kernels::scan`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::scan`] and [`Kernels::active`].
pub fn scan<'q>(
    codes: &Codes,
    query: impl Into<HypervectorView<'q>>,
    search: &Search<'_>,
) -> Result<Vec<Neighbour>> {
    Kernels::active()?.scan(codes, query, search)
}

/// [`Kernels::scan_many`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::scan_many`] and [`Kernels::active`].
pub fn scan_many(
    codes: &Codes,
    queries: &[HypervectorView<'_>],
    search: &Search<'_>,
) -> Result<Vec<Vec<Neighbour>>> {
    Kernels::active()?.scan_many(codes, queries, search)
}
