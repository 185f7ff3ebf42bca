//! The instruction sets, and the only `unsafe` code of the crate.
//!
//! Owns [`Kernel`], what a backend does on bare words, and the choice of backend. `algorithms`
//! holds each operation once, over the private `Vector`; `scalar`, `x86_64` and `aarch64` hold a
//! vector for each instruction set and thin `#[target_feature]` wrappers. A value of a kernel's type is
//! proof that the CPU can run it: only `new` makes one, and it asks the CPU.
//!
//! It owns no checks of what users pass: dimensions are equal and rows are complete when a kernel
//! is called. Kernels assert what their memory safety rests on all the same.
#![allow(unsafe_code)]

mod algorithms;
#[cfg(test)]
mod guards;
#[macro_use]
mod kernel;
mod scalar;
mod vector;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub(crate) use kernel::{BATCH, Blocks, CHUNK, Kernel, Look, Packed, QUERY_TILE, ROOM, Rows};
pub(crate) use scalar::opaque;

use crate::Isa;

kernel! {
    /// One word at a time.
    Scalar, Isa::Scalar, scalar::Word, 1, available: true
}

/// The backend that any CPU can run.
pub(crate) fn scalar() -> &'static dyn Kernel {
    static KERNEL: Scalar = Scalar(());
    &KERNEL
}

/// The backend for `isa`, where this build has it and this CPU can run it.
pub(crate) fn kernel(isa: Isa) -> Option<&'static dyn Kernel> {
    match isa {
        Isa::Scalar => Scalar::shared(),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => x86_64::Avx2::shared(),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => x86_64::Avx512::shared(),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Vpopcntdq => x86_64::Avx512Vpopcntdq::shared(),
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => aarch64::Neon::shared(),
        #[allow(unreachable_patterns, reason = "the sets of other architectures")]
        _ => None,
    }
}
