//! Every operation on every backend, at every tail and offset, against the oracle.

use proptest::prelude::*;
use warm_hw_tests::{dimensions, on_every_backend, oracle, random};
use warm_kernels::{Bundler, Codes, Error, Hypervector, HypervectorView, Kernels, Rng};

/// A copy of `words` that starts `offset` words into a buffer, with guards around it.
struct Offset {
    buffer: Vec<u64>,
    offset: usize,
    len: usize,
}

impl Offset {
    fn new(words: &[u64], offset: usize) -> Self {
        let mut buffer = vec![u64::MAX; offset];
        buffer.extend_from_slice(words);
        buffer.extend([u64::MAX; 9]);
        Self { buffer, offset, len: words.len() }
    }

    fn view(&self) -> HypervectorView<'_> {
        HypervectorView::new(&self.buffer[self.offset..self.offset + self.len]).expect("a dimension")
    }
}

#[test]
fn bind_hamming_and_popcount_equal_the_oracle_at_every_tail_and_offset() {
    on_every_backend("bind, hamming, popcount", |kernels| {
        let mut rng = Rng::new(1);
        for bits in dimensions() {
            let (a, b) = (random(bits, &mut rng), random(bits, &mut rng));
            let (a_bits, b_bits) = (oracle::bits(&a), oracle::bits(&b));
            for offset in 0..9 {
                let (a, b) = (Offset::new(a.words(), offset), Offset::new(b.words(), 8 - offset));
                let bound = kernels.bind(a.view(), b.view()).expect("bind");
                assert_eq!(oracle::bits(&bound), oracle::bind(&a_bits, &b_bits), "{kernels:?} {bits}");
                let distance = kernels.hamming(a.view(), b.view());
                assert_eq!(distance, Ok(oracle::hamming(&a_bits, &b_bits)), "{kernels:?} {bits}");
                let ones = a_bits.iter().filter(|bit| **bit).count() as u32;
                assert_eq!(kernels.popcount(a.view()), ones, "{kernels:?} {bits}");
            }
        }
    });
}

#[test]
fn vectors_that_differ_in_one_bit_are_at_distance_one() {
    on_every_backend("one bit", |kernels| {
        for bits in [64, 256, 320, 1_024, 4_160] {
            let a = random(bits, &mut Rng::new(2));
            for at in [0, 1, 63, 64, 255, 256, 257, bits - 1].into_iter().filter(|at| *at < bits) {
                let mut b = a.clone();
                b.set(at, !a.get(at).expect("in range")).expect("in range");
                assert_eq!(kernels.hamming(&a, &b), Ok(1));
            }
            assert_eq!(kernels.hamming(&a, &kernels.negative(&a).expect("negative")), Ok(bits as u32));
            let similarity = kernels.similarity(&a, &kernels.negative(&a).expect("negative"));
            assert_eq!(similarity, Ok(-1.0));
        }
    });
}

#[test]
fn permute_equals_the_oracle_for_any_number_of_bits_either_way() {
    on_every_backend("permute", |kernels| {
        let mut rng = Rng::new(3);
        for bits in dimensions().filter(|bits| *bits <= 64 * 65) {
            let a = random(bits, &mut rng);
            let a_bits = oracle::bits(&a);
            let some = [0, 1, 63, 64, 65, 127, 512, 513, 100_003].map(|by: i64| [by, -by]).concat();
            let edges = [bits as i64, bits as i64 - 1, 1 - bits as i64, i64::MAX, i64::MIN];
            let random = (0..8).map(|_| rng.next_u64() as i64).collect::<Vec<_>>();
            for by in some.into_iter().chain(edges).chain(random) {
                let offset = Offset::new(a.words(), by.rem_euclid(9) as usize);
                let moved = kernels.permute(offset.view(), by).expect("permute");
                assert_eq!(oracle::bits(&moved), oracle::permute(&a_bits, by), "{kernels:?} {bits} by {by}");
                let back = kernels.permute(&moved, by.wrapping_neg()).expect("permute");
                if by != i64::MIN {
                    assert_eq!(back, a);
                }
            }
        }
    });
}

#[test]
fn operations_on_whole_matrices_equal_those_on_rows() {
    on_every_backend("rows", |kernels| {
        let mut rng = Rng::new(4);
        // The last one is beyond the size from which rows are written past the caches.
        for (bits, rows) in [(64, 9), (192, 17), (1_024, 33), (8_192, 3), (4_096, 20_000), (4_160, 20_000)] {
            let mut codes = Codes::with_prefix(bits, 64).expect("codes");
            for _ in 0..rows {
                codes.push(&random(bits, &mut rng)).expect("push");
            }
            let key = random(bits, &mut rng);
            let mut out = Codes::with_prefix(bits, 64).expect("codes");
            out.resize(rows).expect("resize");
            kernels.bind_rows(&codes, &key, &mut out).expect("bind");
            for (row, bound) in codes.iter().zip(out.iter()) {
                assert_eq!(kernels.bind(row, &key).expect("bind").view(), bound);
            }
            for by in [0, 1, -64, 77] {
                kernels.permute_rows(&codes, by, &mut out).expect("permute");
                for (row, moved) in codes.iter().zip(out.iter()) {
                    assert_eq!(kernels.permute(row, by).expect("permute").view(), moved, "{bits} by {by}");
                }
            }
            let other = Codes::zeros(bits, rows + 1).expect("codes");
            assert!(matches!(kernels.bind_rows(&other, &key, &mut out), Err(Error::Row { .. })));
        }
    });
}

/// What a bundle of these is, with the ties that its seed gives.
fn majority(inputs: &[(&Hypervector, i32)], seed: u64) -> Vec<bool> {
    let bits = inputs[0].0.bits();
    let inputs: Vec<_> =
        inputs.iter().map(|(input, weight)| (oracle::bits(*input), i64::from(*weight))).collect();
    let ties = random(bits, &mut Rng::new(seed ^ oracle::digest(&oracle::counts(&inputs))));
    oracle::bundle(&inputs, &oracle::bits(&ties))
}

#[test]
fn bundle_equals_the_oracle_for_any_number_of_inputs() {
    on_every_backend("bundle", |kernels| {
        let mut rng = Rng::new(5);
        for bits in [64, 128, 192, 512, 576, 1_024, 8_192 + 64] {
            for n in (1..=26).chain([63, 64, 65, 127, 128, 200, 257]) {
                if bits > 1_024 && n > 20 {
                    continue;
                }
                // Few different inputs, so that counters reach their ends and ties are many.
                let few: Vec<_> = (0..3).map(|_| random(bits, &mut rng)).collect();
                let inputs: Vec<_> = (0..n).map(|_| few[rng.below(3) as usize].clone()).collect();
                let expected = majority(&inputs.iter().map(|input| (input, 1)).collect::<Vec<_>>(), n);
                let bundle = kernels.bundle(&inputs, n).expect("bundle");
                assert_eq!(oracle::bits(&bundle), expected, "{kernels:?} {bits} {n}");
            }
        }
    });
}

#[test]
fn weighted_and_shrunken_bundles_equal_the_oracle() {
    on_every_backend("bundler", |kernels| {
        let mut rng = Rng::new(6);
        for bits in [64, 320, 1_024, 1_088] {
            let mut bundler = Bundler::on(kernels, bits, 9).expect("bundler");
            let mut held: Vec<(Hypervector, i32)> = Vec::new();
            for step in 0..120 {
                if held.is_empty() || rng.below(3) > 0 {
                    let weight = [1, 1, 2, 3, -1, -2, 7, 100][rng.below(8) as usize];
                    let input = random(bits, &mut rng);
                    bundler.add(&input, weight).expect("add");
                    held.push((input, weight));
                } else {
                    let (input, weight) = held.swap_remove(rng.below(held.len() as u64) as usize);
                    bundler.remove(&input, weight).expect("remove");
                }
                let views: Vec<_> = held.iter().map(|(input, weight)| (input, *weight)).collect();
                if views.is_empty() {
                    assert_eq!(bundler.bundle(), Err(Error::Empty));
                    continue;
                }
                let bundle = bundler.bundle().expect("bundle");
                assert_eq!(oracle::bits(&bundle), majority(&views, 9), "{kernels:?} {bits} step {step}");
                assert_eq!(kernels.bundle_weighted(views, 9).expect("bundle"), bundle);
            }
        }
    });
}

#[test]
fn what_a_bundle_does_not_hold_cannot_be_removed() {
    on_every_backend("removal", |kernels| {
        let mut rng = Rng::new(7);
        for bits in [64, 192, 1_088] {
            let (a, b) = (random(bits, &mut rng), random(bits, &mut rng));
            let mut bundler = Bundler::on(kernels, bits, 0).expect("bundler");
            for weight in [3, -2] {
                bundler.add(&a, weight).expect("add");
            }
            let before = bundler.counts().expect("counts");
            assert_eq!(bundler.remove(&b, 4), Err(Error::NotInBundle));
            assert_eq!(bundler.remove(&b, 99), Err(Error::NotInBundle));
            assert_eq!(bundler.counts().expect("counts"), before);
            bundler.remove(&a, -2).expect("remove");
            bundler.remove(&a, 3).expect("remove");
            assert_eq!(bundler.weight(), 0);
            assert!(bundler.counts().expect("counts").iter().all(|count| *count == 0));
        }
    });
}

#[test]
fn bind_many_is_bind_again_and_again() {
    on_every_backend("bind_many", |kernels| {
        let mut rng = Rng::new(8);
        let inputs: Vec<_> = (0..5).map(|_| random(704, &mut rng)).collect();
        let all = kernels.bind_many(&inputs).expect("bind");
        let one =
            inputs[1..].iter().fold(inputs[0].clone(), |all, next| kernels.bind(&all, next).expect("bind"));
        assert_eq!(all, one);
    });
}

#[test]
fn bad_operands_are_typed_errors() {
    on_every_backend("errors", |kernels| {
        let (a, b) = (Hypervector::zeros(128).expect("zeros"), Hypervector::zeros(192).expect("zeros"));
        let differ = Error::BitsDiffer { left: 128, right: 192 };
        assert_eq!(kernels.bind(&a, &b), Err(differ.clone()));
        assert_eq!(kernels.hamming(&a, &b), Err(differ.clone()));
        assert_eq!(kernels.similarity(&a, &b), Err(differ.clone()));
        assert_eq!(kernels.bind_many([&a, &b]), Err(differ.clone()));
        assert_eq!(kernels.bundle([&a, &b], 0), Err(differ.clone()));
        assert_eq!(kernels.bundle_weighted([(&a, 1), (&b, 1)], 0), Err(differ));
        assert_eq!(kernels.bundle([&a; 0], 0), Err(Error::Empty));
        assert_eq!(kernels.bundle_weighted([(&a, 1); 0], 0), Err(Error::Empty));
        assert_eq!(kernels.bind_many([&a; 0]), Err(Error::Empty));
        assert_eq!(kernels.bundle_weighted([(&a, 0)], 0), Err(Error::Weight));
        let heavy = [(&a, i32::MIN), (&a, i32::MIN), (&a, 1)];
        assert_eq!(kernels.bundle_weighted(heavy, 0), Err(Error::Weight));
    });
    for bits in [0, 1, 63, 65, usize::MAX, usize::MAX - 63, 1 << 40] {
        assert_eq!(Hypervector::zeros(bits), Err(Error::Bits(bits)));
    }
    assert_eq!(HypervectorView::new(&[]), Err(Error::Bits(0)));
}

#[test]
fn a_forced_backend_that_is_missing_is_an_error() {
    assert!(matches!("sse2".parse::<warm_kernels::Isa>(), Err(Error::UnknownIsa(_))));
    let missing = if cfg!(target_arch = "aarch64") { "avx2" } else { "neon" };
    let isa = missing.parse().expect("known");
    assert_eq!(Kernels::new(isa).map(Kernels::isa), Err(Error::IsaUnavailable(isa)));
}

proptest! {
    #[test]
    fn backends_agree_on_anything(words in proptest::collection::vec(any::<u64>(), 1..80), by: i64, seed: u64) {
        let a = Hypervector::from_words(&words).expect("a dimension");
        let b = random(a.bits(), &mut Rng::new(seed));
        let expected = oracle::permute(&oracle::bind(&oracle::bits(&a), &oracle::bits(&b)), by);
        for kernels in Kernels::available() {
            let out = kernels.permute(&kernels.bind(&a, &b).expect("bind"), by).expect("permute");
            prop_assert_eq!(&oracle::bits(&out), &expected);
        }
    }
}
