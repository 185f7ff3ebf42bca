//! Criterion benches of the operations and the searches, on the kernels that `WARM_ISA` names or the
//! best that the CPU has. `warm-bench ops` and `warm-bench scan` set the same beside the speed of
//! memory.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warm_kernels::{
    Codes, Hypervector, Kernels, Rng, Search, bind, bundle, hamming, permute, scan, scan_many,
};

const BITS: [usize; 3] = [256, 1_024, 8_192];
const ROWS: usize = 100_000;

fn operations(criterion: &mut Criterion) {
    for bits in BITS {
        let mut group = criterion.benchmark_group(format!("{bits} bits"));
        let mut rng = Rng::new(1);
        let mut random = || Hypervector::random(bits, &mut rng).expect("a dimension");
        let (a, b) = (random(), random());
        let many: Vec<_> = (0..1_000).map(|_| random()).collect();
        group.bench_function("bind", |bench| bench.iter(|| bind(black_box(&a), black_box(&b))));
        group.bench_function("permute", |bench| bench.iter(|| permute(black_box(&a), black_box(77))));
        group.bench_function("hamming", |bench| bench.iter(|| hamming(black_box(&a), black_box(&b))));
        group.throughput(Throughput::Elements(many.len() as u64));
        group.bench_function("bundle of 1,000", |bench| {
            bench.iter(|| bundle(black_box(&many).iter().map(Hypervector::view), 1));
        });
        group.finish();
    }
}

fn searches(criterion: &mut Criterion) {
    for bits in BITS {
        let mut group = criterion.benchmark_group(format!("{ROWS} rows of {bits} bits"));
        group.sample_size(20).throughput(Throughput::Bytes((ROWS * bits / 8) as u64));
        let mut rng = Rng::new(2);
        let mut rows = |count: usize| {
            let words: Vec<_> = (0..count * bits / 64).map(|_| rng.next_u64()).collect();
            Codes::from_words(bits, count, &words).expect("codes")
        };
        let (codes, queries) = (rows(ROWS), rows(64));
        let queries: Vec<_> = queries.iter().collect();
        let search = Search::nearest(10);
        group.bench_function("scan", |bench| bench.iter(|| scan(black_box(&codes), queries[0], &search)));
        group.bench_function("scan_many, 64 queries", |bench| {
            bench.iter(|| scan_many(black_box(&codes), &queries, &search));
        });
        group.finish();
    }
}

fn dense(criterion: &mut Criterion) {
    let kernels = Kernels::active().expect("kernels");
    let mut group = criterion.benchmark_group("256 dense values");
    let bytes: Vec<i8> = (0..256u32).map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()[3] as i8).collect();
    let halves: Vec<_> = bytes.iter().map(|&byte| half::f16::from_f32(f32::from(byte) / 128.0)).collect();
    group.bench_function("dot f16", |bench| {
        bench.iter(|| kernels.dot_f16(black_box(&halves), black_box(&halves)))
    });
    group.bench_function("cosine i8", |bench| {
        bench.iter(|| kernels.cosine_i8(black_box(&bytes), black_box(&bytes)))
    });
    group.finish();
}

criterion_group!(benches, operations, searches, dense);
criterion_main!(benches);
