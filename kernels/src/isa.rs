//! Which instruction set runs the operations.
//!
//! Owns the names, the choice at run time and the ways to force it. The choice is made once a
//! process: `WARM_ISA` if it is set, else the best that the CPU has.

use std::{fmt, str::FromStr, sync::OnceLock};

use crate::{Error, Result, arch};

/// An instruction set that there are kernels for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// One 64-bit word at a time, on any CPU; not vectorised by the compiler either.
    Scalar,
    /// x86-64 with AVX2.
    Avx2,
    /// x86-64 with AVX-512 F and BW, which counts bits by table look-up.
    Avx512,
    /// x86-64 with AVX-512 F, BW and VPOPCNTDQ, which counts bits by an instruction.
    Avx512Vpopcntdq,
    /// aarch64 with NEON.
    Neon,
}

impl Isa {
    /// Every instruction set, the better ones of an architecture last.
    pub const ALL: [Self; 5] = [Self::Scalar, Self::Avx2, Self::Avx512, Self::Avx512Vpopcntdq, Self::Neon];

    /// The name that `WARM_ISA` knows it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Avx512Vpopcntdq => "avx512-vpopcntdq",
            Self::Neon => "neon",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Isa {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|isa| isa.name() == name)
            .ok_or_else(|| Error::UnknownIsa(name.chars().take(64).collect()))
    }
}

/// The kernels of one instruction set: a value is proof that this CPU can run them.
///
/// The operations are its methods; the crate's free functions are those of [`Kernels::active`].
#[derive(Clone, Copy)]
pub struct Kernels(&'static dyn arch::Kernel);

impl Kernels {
    /// The kernels for `isa`.
    ///
    /// # Errors
    /// [`Error::IsaUnavailable`] where this build or this CPU lacks it.
    pub fn new(isa: Isa) -> Result<Self> {
        arch::kernel(isa).map(Self).ok_or(Error::IsaUnavailable(isa))
    }

    /// The best that this CPU has.
    pub fn best() -> Self {
        let scalar = arch::scalar();
        Self::available().last().unwrap_or(Self(scalar))
    }

    /// All that this CPU has, the better ones last.
    pub fn available() -> impl Iterator<Item = Self> {
        Isa::ALL.into_iter().filter_map(|isa| Self::new(isa).ok())
    }

    /// What `WARM_ISA` asks for, or [`Kernels::best`] where it is unset or empty. The variable is
    /// read once, on the first call.
    ///
    /// # Errors
    /// [`Error::UnknownIsa`] and [`Error::IsaUnavailable`] where it names what there isn't.
    pub fn active() -> Result<Self> {
        static ACTIVE: OnceLock<Result<Kernels>> = OnceLock::new();
        ACTIVE
            .get_or_init(|| match std::env::var_os("WARM_ISA") {
                Some(name) if !name.is_empty() => Self::new(name.to_string_lossy().parse()?),
                _ => Ok(Self::best()),
            })
            .clone()
    }

    /// Which instruction set these are for.
    pub fn isa(self) -> Isa {
        self.0.isa()
    }

    /// Reads every word and folds it into one: the speed that no scan of as much memory can exceed,
    /// for measurements to compare with.
    pub fn read(self, words: &[u64]) -> u64 {
        self.0.read(words)
    }

    pub(crate) fn raw(self) -> &'static dyn arch::Kernel {
        self.0
    }
}

impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernels({})", self.isa())
    }
}
