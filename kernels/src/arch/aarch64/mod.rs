//! aarch64: NEON.

mod neon;

pub(super) use neon::Neon;
