//! Hypervector operations and searches at the speed of the memory bus.
//!
//! Dense binary hypervectors ([`Hypervector`], Kanerva's binary spatter codes), a matrix of them
//! ([`Codes`]), the operations [`bind`], [`bundle`], [`permute`], [`hamming`], and searches for the
//! nearest rows. Each operation is written once, over a vector of words, and built for each
//! instruction set; the best that the CPU has is chosen once, at run time ([`Kernels`]). All give
//! the same answers, bit for bit.
//!
//! Nothing here panics on bad input: dimensions that differ, empty inputs and sizes that overflow
//! are typed errors ([`Error`]).

mod arch;
mod bitmap;
mod bundle;
mod codes;
mod dense;
mod error;
mod hypervector;
mod isa;
mod line;
mod ops;
mod rng;
mod search;
pub mod vsa;

pub use bitmap::Bitmap;
pub use bundle::{Bundler, MAX_WEIGHT, bundle, bundle_weighted};
pub use codes::{Codes, MAX_PREFIX, MAX_ROWS};
pub use dense::{cosine_f16, cosine_i8, dot_f16, dot_i8};
pub use error::{Error, Result};
pub use hypervector::{Hypervector, HypervectorView, MAX_BITS};
pub use isa::{Isa, Kernels};
pub use ops::{bind, bind_many, hamming, negative, permute, popcount, similarity};
pub use rng::Rng;
pub use search::{
    Neighbour, Scored, Search, Threads, TwoStage, scan, scan_many, scan_two_stage, scan_two_stage_rescored,
};
