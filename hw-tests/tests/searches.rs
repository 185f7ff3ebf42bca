//! Every search on every backend against the oracle.

use warm_hw_tests::{on_every_backend, oracle, random};
use warm_kernels::{
    Bitmap, Codes, Error, Hypervector, HypervectorView, Kernels, Neighbour, Rng, Search, Threads, TwoStage,
};

fn codes(bits: usize, rows: usize, rng: &mut Rng) -> Codes {
    let mut codes = Codes::new(bits).expect("codes");
    for _ in 0..rows {
        codes.push(&random(bits, rng)).expect("push");
    }
    codes
}

/// One query by every path that is exact.
fn all_paths(
    kernels: Kernels,
    codes: &Codes,
    query: HypervectorView<'_>,
    search: &Search<'_>,
) -> Vec<Neighbour> {
    let found = kernels.scan(codes, query, search).expect("scan");
    let many = kernels.scan_many(codes, &[query, query, query, query, query], search).expect("scan_many");
    for other in many {
        assert_eq!(other, found, "{kernels:?} scan_many and scan");
    }
    let mut planed = codes.clone();
    for prefix in [64, codes.bits()] {
        planed.set_prefix(prefix).expect("prefix");
        let keep = if prefix == codes.bits() { 0 } else { codes.len() };
        let stages = TwoStage::keeping(*search, keep);
        // A prefix that is the whole, or keeps all rows, loses none.
        let two = kernels.scan_two_stage(&planed, query, &stages).expect("two stages");
        assert_eq!(two, found, "{kernels:?} two stages of {prefix} bits");
        if prefix == codes.bits() {
            let two = kernels.scan_two_stage(&planed, query, &TwoStage::new(*search)).expect("two stages");
            assert_eq!(two, found, "{kernels:?} a whole prefix has no margin");
        }
    }
    found
}

#[test]
fn searches_equal_the_oracle_at_every_width_row_count_and_k() {
    on_every_backend("scan", |kernels| {
        let mut rng = Rng::new(11);
        for bits in [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 32, 33, 128].map(|words| words * 64) {
            for rows in [0, 1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, 257] {
                let codes = codes(bits, rows, &mut rng);
                let query = random(bits, &mut rng);
                for k in [0, 1, 10, 1_000] {
                    let search = Search::nearest(k);
                    let found = all_paths(kernels, &codes, query.view(), &search);
                    assert_eq!(found, oracle::scan(&codes, &query, &search), "{kernels:?} {bits} {rows} {k}");
                }
            }
        }
    });
}

#[test]
fn the_nearest_row_is_found_wherever_it_is_last() {
    on_every_backend("last row", |kernels| {
        let mut rng = Rng::new(12);
        for bits in [64, 256, 512, 1_088] {
            let mut codes = Codes::new(bits).expect("codes");
            let query = random(bits, &mut rng);
            for rows in 0..=130 {
                codes.push(&query).expect("push");
                let first = all_paths(kernels, &codes, query.view(), &Search::nearest(1));
                assert_eq!(first, [Neighbour { row: rows, distance: 0 }], "{kernels:?}");
                codes.set(rows, &random(bits, &mut rng)).expect("set");
            }
        }
    });
}

#[test]
fn a_row_is_found_among_a_thousand_also_after_removals() {
    on_every_backend("removals", |kernels| {
        let mut rng = Rng::new(13);
        let mut codes = codes(512, 1_000, &mut rng);
        codes.set_prefix(128).expect("prefix");
        let query = codes.row(100).expect("row").to_owned().expect("copy");
        let search = Search::nearest(3);
        assert_eq!(all_paths(kernels, &codes, query.view(), &search)[0], Neighbour { row: 100, distance: 0 });
        for row in [3, 999, 500, 0, 7] {
            let last = codes.len() - 1;
            let moved = codes.swap_remove(row.min(last)).expect("remove");
            assert_eq!(moved, (row < last).then_some(last));
            assert_eq!(
                all_paths(kernels, &codes, query.view(), &search)[0],
                Neighbour { row: 100, distance: 0 }
            );
            let stages = TwoStage::keeping(search, 20);
            let two = kernels.scan_two_stage(&codes, &query, &stages).expect("two stages");
            assert_eq!(two[0], Neighbour { row: 100, distance: 0 });
        }
        codes.swap_remove(100).expect("remove");
        assert!(all_paths(kernels, &codes, query.view(), &search)[0].distance > 0);
    });
}

#[test]
fn ties_go_to_the_lower_row_and_k_may_exceed_the_rows() {
    on_every_backend("ties", |kernels| {
        let mut rng = Rng::new(14);
        let query = random(256, &mut rng);
        let mut codes = Codes::new(256).expect("codes");
        // Three distances only, so that nearly all are ties.
        for row in 0..500 {
            let mut code = query.clone();
            for bit in 0..(row * 7) % 3 {
                code.set(bit, !query.get(bit).expect("bit")).expect("bit");
            }
            codes.push(&code).expect("push");
        }
        for k in [1, 2, 9, 10, 166, 167, 168, 499, 500, 501, usize::MAX] {
            let search = Search::nearest(k);
            let found = all_paths(kernels, &codes, query.view(), &search);
            assert_eq!(found, oracle::scan(&codes, &query, &search));
            assert_eq!(found.len(), k.min(500));
        }
    });
}

#[test]
fn filters_and_limits_equal_the_oracle() {
    on_every_backend("filters", |kernels| {
        let mut rng = Rng::new(15);
        for rows in [1, 8, 63, 64, 65, 300] {
            let codes = codes(320, rows, &mut rng);
            let query = random(320, &mut rng);
            let all = Bitmap::all(rows).expect("bitmap");
            let none = Bitmap::none(rows).expect("bitmap");
            let free = Search::nearest(10);
            assert_eq!(
                all_paths(kernels, &codes, query.view(), &free),
                all_paths(kernels, &codes, query.view(), &free.among(&all)),
            );
            assert!(all_paths(kernels, &codes, query.view(), &free.among(&none)).is_empty());
            for share in [2, 5, 40] {
                let some = Bitmap::of(rows, (0..rows).filter(|_| rng.below(share) == 0)).expect("bitmap");
                for search in
                    [free.among(&some), free.among(&some).within(155), free.within(150), free.within(0)]
                {
                    let found = all_paths(kernels, &codes, query.view(), &search);
                    assert_eq!(found, oracle::scan(&codes, &query, &search), "{kernels:?} {rows}");
                }
            }
            let search = free.within(u32::MAX);
            assert_eq!(
                all_paths(kernels, &codes, query.view(), &search),
                oracle::scan(&codes, &query, &search)
            );
            let short = Bitmap::all(rows - 1).expect("bitmap");
            let refused = Error::Bitmap { rows, bits: rows - 1 };
            assert_eq!(kernels.scan(&codes, &query, &free.among(&short)), Err(refused));
        }
    });
}

#[test]
fn one_mask_on_both_sides_changes_nothing() {
    on_every_backend("mask", |kernels| {
        let mut rng = Rng::new(16);
        let codes = codes(1_024, 200, &mut rng);
        let (query, mask) = (random(1_024, &mut rng), random(1_024, &mut rng));
        let mut masked = Codes::zeros(1_024, 200).expect("codes");
        kernels.bind_rows(&codes, &mask, &mut masked).expect("bind");
        let masked_query = kernels.bind(&query, &mask).expect("bind");
        let search = Search::nearest(20);
        assert_eq!(
            all_paths(kernels, &codes, query.view(), &search),
            all_paths(kernels, &masked, masked_query.view(), &search),
        );
    });
}

#[test]
fn many_queries_at_once_equal_one_at_a_time_on_any_number_of_threads() {
    on_every_backend("threads", |kernels| {
        let mut rng = Rng::new(17);
        let mut codes = codes(256, 40_000, &mut rng);
        codes.set_prefix(64).expect("prefix");
        let queries: Vec<Hypervector> = (0..9).map(|_| random(256, &mut rng)).collect();
        let views: Vec<_> = queries.iter().map(Hypervector::view).collect();
        let search = Search::nearest(10);
        let expected: Vec<_> = queries.iter().map(|query| oracle::scan(&codes, query, &search)).collect();
        let stages = |threads| TwoStage::new(search.threads(threads)).at_most(400);
        let two_expected: Vec<_> = queries
            .iter()
            .map(|query| kernels.scan_two_stage(&codes, query, &stages(Threads::One)))
            .collect();
        for threads in [1, 2, 3, 7] {
            let pool = rayon_pool(threads);
            pool.install(|| {
                let search = search.threads(Threads::Pool);
                assert_eq!(kernels.scan_many(&codes, &views, &search).expect("scan_many"), expected);
                for (query, expected) in queries.iter().zip(&expected) {
                    assert_eq!(&kernels.scan(&codes, query, &search).expect("scan"), expected);
                }
                for (query, expected) in queries.iter().zip(&two_expected) {
                    assert_eq!(&kernels.scan_two_stage(&codes, query, &stages(Threads::Pool)), expected);
                }
            });
        }
    });
}

fn rayon_pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool")
}

#[test]
fn two_stages_keep_exactly_the_nearest_prefixes() {
    on_every_backend("two stages", |kernels| {
        let mut rng = Rng::new(18);
        let mut codes = codes(320, 50_000, &mut rng);
        codes.set_prefix(64).expect("prefix");
        let query = random(320, &mut rng);
        let mut prefixes = Codes::new(64).expect("codes");
        for row in codes.iter() {
            prefixes.push(HypervectorView::new(&row.words()[..1]).expect("a view")).expect("push");
        }
        let prefix = HypervectorView::new(&query.words()[..1]).expect("a view");
        for keep in [1, 10, 100, 3_000, 20_000, 50_000, usize::MAX] {
            let kept = oracle::scan(&prefixes, prefix, &Search::nearest(keep));
            let kept = Bitmap::of(codes.len(), kept.into_iter().map(|found| found.row)).expect("bitmap");
            let search = Search::nearest(1.max(keep.min(10)));
            let expected = oracle::scan(&codes, &query, &search.among(&kept));
            let found =
                kernels.scan_two_stage(&codes, &query, &TwoStage::keeping(search, keep)).expect("two stages");
            assert_eq!(found, expected, "{kernels:?} {keep}");
        }
        let stages = TwoStage::keeping(Search::nearest(10), 100);
        let scored =
            kernels.scan_two_stage_rescored(&codes, &query, &stages, 3, |row| row as f32).expect("rescored");
        assert!(scored.len() == 3 && scored.is_sorted_by(|a, b| a.row > b.row));
        let bare = Codes::zeros(64, 3).expect("codes");
        let refused = kernels.scan_two_stage(&bare, prefix, &stages);
        assert_eq!(refused, Err(Error::NoPrefix));
    });
}

#[test]
fn a_margin_loses_few_rows_and_the_same_ones_everywhere() {
    let mut rng = Rng::new(20);
    // Rows at every distance from a few centres, so that neighbours stand out more or less.
    let centres: Vec<_> = (0..20).map(|_| random(1_024, &mut rng)).collect();
    let near = |rng: &mut Rng| {
        let mut row = centres[rng.below(20) as usize].clone();
        for _ in 0..rng.below(500) {
            let at = rng.below(1_024) as usize;
            row.set(at, !row.get(at).expect("bit")).expect("bit");
        }
        row
    };
    let mut codes = Codes::with_prefix(1_024, 192).expect("codes");
    for _ in 0..8_000 {
        codes.push(&near(&mut rng)).expect("push");
    }
    let queries: Vec<_> = (0..12).map(|_| near(&mut rng)).collect();
    let half = Bitmap::of(codes.len(), (0..codes.len()).filter(|row| row % 3 != 0)).expect("bitmap");
    let free = Search::nearest(10);
    for search in [free, free.among(&half), free.within(300), free.threads(Threads::Pool)] {
        let oracle: Vec<_> = queries.iter().map(|query| oracle::scan(&codes, query, &search)).collect();
        let scalar = Kernels::new(warm_kernels::Isa::Scalar).expect("scalar");
        for stages in
            [TwoStage::new(search), TwoStage::new(search).at_most(300), TwoStage::new(search).margin(40.0)]
        {
            let find =
                |kernels: Kernels, query| kernels.scan_two_stage(&codes, query, &stages).expect("scan");
            let expected: Vec<_> = queries.iter().map(|query| find(scalar, query)).collect();
            let wanted: usize = oracle.iter().map(Vec::len).sum();
            let kept: usize = oracle
                .iter()
                .zip(&expected)
                .map(|(all, found)| found.iter().filter(|row| all.contains(row)).count())
                .sum();
            let least = if stages.keep == 300 { 0.9 } else { 0.99 };
            assert!(kept as f64 >= least * wanted as f64, "{kept} of {wanted}");
            if stages.margin > 30.0 {
                assert_eq!(expected, oracle, "a margin that nothing exceeds");
            }
            on_every_backend("margin", |kernels| {
                let found: Vec<_> = queries.iter().map(|query| find(kernels, query)).collect();
                assert_eq!(found, expected, "{kernels:?}");
            });
        }
    }
}

#[test]
fn a_random_pair_is_as_far_apart_on_every_path_as_bit_by_bit() {
    on_every_backend("pairs", |kernels| {
        let mut rng = Rng::new(19);
        for _ in 0..200 {
            let bits = (1 + rng.below(40) as usize) * 64;
            let (a, b) = (random(bits, &mut rng), random(bits, &mut rng));
            let mut codes = Codes::new(bits).expect("codes");
            codes.push(&a).expect("push");
            let distance = oracle::hamming(&oracle::bits(&a), &oracle::bits(&b));
            let found = all_paths(kernels, &codes, b.view(), &Search::nearest(1));
            assert_eq!(found, [Neighbour { row: 0, distance }]);
        }
    });
}
