//! x86-64: AVX2, and AVX-512 with and without VPOPCNTDQ.

mod avx2;
mod avx512;
mod avx512_vpopcntdq;

pub(super) use avx2::Avx2;
pub(super) use avx512::Avx512;
pub(super) use avx512_vpopcntdq::Avx512Vpopcntdq;
