//! `WARM_ISA`, which is read once a process: each case is a process of its own.

use std::io::Write;
use std::process::Command;

use warm_kernels::{Isa, Kernels};

/// What the child below says it runs on when `WARM_ISA` is `name`, or its error.
fn answer(name: &str) -> Option<String> {
    let child = Command::new(std::env::current_exe().ok()?)
        .args(["--exact", "the_active_kernels_are_those_asked_for_or_the_best", "--nocapture"])
        .env("WARM_ISA", name)
        .output()
        .ok()?;
    let out = String::from_utf8_lossy(&child.stdout);
    Some(out.lines().find_map(|line| line.split_once("ANSWER "))?.1.to_owned())
}

#[test]
fn the_active_kernels_are_those_asked_for_or_the_best() {
    let asked = std::env::var("WARM_ISA").unwrap_or_default();
    let active = Kernels::active();
    match &active {
        Ok(kernels) => println!("ANSWER {}", kernels.isa()),
        Err(error) => println!("ANSWER error: {error}"),
    }
    let expected = if asked.is_empty() { Ok(Kernels::best()) } else { asked.parse().and_then(Kernels::new) };
    assert_eq!(active.map(Kernels::isa), expected.map(Kernels::isa));
}

#[test]
fn the_environment_forces_a_backend_or_is_an_error() {
    // An emulator that this process runs under may start a child on the real CPU, or not at all.
    let best = Kernels::best().isa().to_string();
    if answer("").as_ref() != Some(&best) {
        let _ = std::io::stderr().write_all(b"WARM_ISA: SKIPPED, a child would not run on this CPU\n");
        return;
    }
    for isa in Isa::ALL {
        let expected = match Kernels::new(isa) {
            Ok(_) => isa.to_string(),
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(answer(isa.name()), Some(expected));
    }
    assert!(answer("sse9").is_some_and(|answer| answer.contains("sse9") && answer.contains("avx2")));
}
