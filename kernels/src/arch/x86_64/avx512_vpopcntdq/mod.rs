//! Eight words in a register, and an instruction that counts the bits of each.

use super::avx512::V512;
use crate::Isa;

kernel! {
    /// AVX-512 F, BW, DQ and VPOPCNTDQ.
    Avx512Vpopcntdq, Isa::Avx512Vpopcntdq, V512<true>, 4,
    available: is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("popcnt"),
    features: "avx512f,avx512bw,avx512dq,avx512vpopcntdq,popcnt"
}
