//! The stages that run the kernels on CPUs that this machine is not: NEON, and x86-64 without AVX.
//!
//! qemu's user mode runs the test binaries, which are linked statically: with a dynamic libc, threads
//! never start under some versions of it. Debian's compiler is used for aarch64, since Rust's own
//! toolchains often lack that target. Emulated timings mean nothing.

use std::{path::Path, process::Command};

use crate::{Outcome, pass, rust::cargo, succeeds};

const AARCH64: &str = "aarch64-unknown-linux-gnu";
const X86_64: &str = "x86_64-unknown-linux-gnu";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
/// With these, the NEON kernels build and run on an x86-64 Debian machine.
const FOR_AARCH64: [&str; 5] =
    ["rustc-web", "libstd-rust-web-dev:arm64", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"];

/// The oracle suite with NEON, emulated unless this is such a machine.
pub fn neon(root: &Path) -> Outcome {
    if cfg!(target_arch = "aarch64") {
        // The Rust tests have run it for real.
        return Outcome::Passed;
    }
    if !has_aarch64() && !installed(&FOR_AARCH64) {
        return Outcome::Skipped(format!("needs the Debian packages {}", FOR_AARCH64.join(" ")));
    }
    let mut tests = suite(root, AARCH64, "qemu-aarch64");
    tests.env("RUSTC", DEBIAN_RUSTC);
    tests.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");
    pass(&mut tests)
}

/// The oracle suite on a CPU without AVX: every kernel beyond the scalar one must stay untouched.
pub fn without_avx(root: &Path) -> Outcome {
    if !cfg!(target_arch = "x86_64") {
        return Outcome::Skipped("only an x86-64 machine can show this".to_owned());
    }
    if !succeeds(Command::new("qemu-x86_64").arg("--version")) && !installed(&["qemu-user"]) {
        return Outcome::Skipped("needs the Debian package qemu-user".to_owned());
    }
    pass(&mut suite(root, X86_64, "qemu-x86_64 -cpu Nehalem"))
}

fn suite(root: &Path, target: &str, runner: &str) -> Command {
    let mut tests = cargo(root);
    tests.args(["test", "--locked", "--package", "warm-hw-tests", "--target", target, "--lib", "--tests"]);
    let variable = |name: &str| format!("CARGO_TARGET_{}_{name}", target.to_uppercase().replace('-', "_"));
    tests.env(variable("RUNNER"), runner);
    tests.env(variable("RUSTFLAGS"), "-C target-feature=+crt-static");
    // Apart from the other builds: other flags, and for aarch64 another compiler.
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target));
    tests.env("CARGO_TARGET_DIR", folder.join("emulated").join(target));
    tests
}

fn has_aarch64() -> bool {
    succeeds(Command::new("qemu-aarch64").arg("--version"))
        && succeeds(Command::new("aarch64-linux-gnu-gcc").arg("--version"))
        && succeeds(Command::new(DEBIAN_RUSTC).args(["--print", "target-libdir", "--target", AARCH64]))
}

/// Installs Debian packages where that is allowed.
fn installed(packages: &[&str]) -> bool {
    let foreign = packages.iter().any(|package| package.ends_with(":arm64"));
    (!foreign || succeeds(Command::new("dpkg").args(["--add-architecture", "arm64"])))
        && succeeds(Command::new("apt-get").arg("update"))
        && succeeds(
            Command::new("apt-get")
                .args(["install", "--yes", "--no-install-recommends"])
                .args(packages)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )
}
