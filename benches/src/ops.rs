//! `warm-bench ops`: what the operations on hypervectors cost.
//!
//! Owns that command. One operation at a time runs on a thousand hypervectors, as an encoder does; `bulk`
//! is one operation on a matrix that no cache holds, set beside a plain copy of it.

use std::error::Error;
use std::hint::black_box;

use clap::Args;
use serde::Serialize;
use warm_kernels::{Codes, Hypervector, Rng};

use crate::timing::{Failure, best, best_in_turns, kernels, on_threads, read};

/// What to measure.
#[derive(Args)]
pub struct Options {
    /// Dimension of a hypervector; a multiple of 64.
    #[arg(long, default_value_t = 8_192)]
    bits: usize,
    /// The instruction set: scalar, avx2, avx512, avx512-vpopcntdq or neon. The default is what WARM_ISA says, or the best.
    #[arg(long, value_name = "NAME")]
    isa: Option<String>,
    /// Make the last line of stdout one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    isa: &'static str,
    bits: usize,
    /// A plain read of memory beyond the caches.
    read_gbps: f64,
    /// A plain copy of the same, each byte counted twice: read and written.
    copy_gbps: f64,
    bind: Cost,
    permute: Cost,
    hamming: Cost,
    bundle: Cost,
    bulk_bind: Bulk,
    bulk_permute: Bulk,
}

/// Bytes are those of the operands and the result, each once.
#[derive(Serialize)]
struct Cost {
    ns: f64,
    gbps: f64,
    of_read: f64,
}

#[derive(Serialize)]
struct Bulk {
    ns: f64,
    gbps: f64,
    of_copy: f64,
}

/// How many hypervectors an operation runs over, and how many are bundled.
const MANY: usize = 1_000;
/// Bytes of a matrix that no cache holds.
const BEYOND: usize = 256 << 20;

/// Measures and prints.
pub fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    on_threads(1, || measure(options)).map_err(|failure| -> Box<dyn Error> { failure })
}

fn measure(options: &Options) -> Result<(), Failure> {
    let kernels = kernels(options.isa.as_deref())?;
    let bits = options.bits;
    let one = bits as f64 / 8.0;
    let mut rng = Rng::new(1);
    let mut draw = || (0..MANY).map(|_| Hypervector::random(bits, &mut rng)).collect::<Result<Vec<_>, _>>();
    let (a, b) = (draw()?, draw()?);
    let mut out = Hypervector::zeros(bits)?;

    let mut codes = Codes::zeros(bits, (BEYOND / (bits / 8).max(1)).max(1))?;
    for row in 0..codes.len() {
        codes.set(row, &a[row % MANY])?;
    }
    let mut copy = codes.clone();
    let mut plain = codes.words().to_vec();
    let bytes = codes.words().len() as f64 * 8.0;
    let mut second = codes.clone();
    let [read_s, copy_s, bulk_bind, bulk_permute] = best_in_turns(
        15,
        [
            &mut || read(kernels, codes.words()),
            &mut || black_box(&mut plain).copy_from_slice(black_box(codes.words())),
            &mut || {
                black_box(kernels.bind_rows(black_box(&codes), &b[0], &mut copy).is_ok());
            },
            &mut || {
                black_box(kernels.permute_rows(black_box(&codes), 77, &mut second).is_ok());
            },
        ],
    );

    let bind = best(200, || {
        for (a, b) in a.iter().zip(&b) {
            black_box(kernels.bind_into(black_box(a), black_box(b), &mut out).is_ok());
        }
    });
    let permute = best(200, || {
        for a in &a {
            black_box(kernels.permute_into(black_box(a), black_box(77), &mut out).is_ok());
        }
    });
    let hamming = best(200, || {
        for b in &b {
            black_box(kernels.hamming(black_box(&a[0]), black_box(b)).is_ok());
        }
    });
    let bundle = best(100, || {
        black_box(kernels.bundle(black_box(&a), 1).is_ok());
    });

    let read_gbps = bytes / read_s / 1e9;
    let cost = |seconds: f64, bytes: f64| {
        let gbps = bytes * MANY as f64 / seconds / 1e9;
        Cost { ns: seconds / MANY as f64 * 1e9, gbps, of_read: gbps / read_gbps }
    };
    let bulk = |seconds: f64| Bulk {
        ns: seconds / codes.len() as f64 * 1e9,
        gbps: 2.0 * bytes / seconds / 1e9,
        of_copy: copy_s / seconds,
    };
    let report = Report {
        isa: kernels.isa().name(),
        bits,
        read_gbps,
        copy_gbps: 2.0 * bytes / copy_s / 1e9,
        bind: cost(bind, 3.0 * one),
        permute: cost(permute, 2.0 * one),
        hamming: cost(hamming, 2.0 * one),
        bundle: cost(bundle, one),
        bulk_bind: bulk(bulk_bind),
        bulk_permute: bulk(bulk_permute),
    };
    println!(
        "{} bits, {}: read {:.1} GB/s, copy {:.1} GB/s",
        bits, report.isa, report.read_gbps, report.copy_gbps
    );
    for (name, cost) in [
        ("bind", &report.bind),
        ("permute", &report.permute),
        ("hamming", &report.hamming),
        ("bundle, per input", &report.bundle),
    ] {
        println!("{name:18} {:9.1} ns {:7.1} GB/s, {:.2} of a plain read", cost.ns, cost.gbps, cost.of_read);
    }
    for (name, bulk) in [("bind, bulk", &report.bulk_bind), ("permute, bulk", &report.bulk_permute)] {
        println!("{name:18} {:9.1} ns {:7.1} GB/s, {:.2} of a copy", bulk.ns, bulk.gbps, bulk.of_copy);
    }
    if options.json {
        println!("{}", serde_json::to_string(&report)?);
    }
    Ok(())
}
