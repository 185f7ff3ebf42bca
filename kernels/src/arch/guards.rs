//! Tests that no kernel writes a word beside its output, at any offset and length.

use super::{BATCH, Blocks, Kernel, ROOM};
use crate::{Kernels, Rng, line};

const GUARD: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// Runs `write` on `n` words with guards on either side, `offset` words into a line, and looks at the guards.
fn guarded(n: usize, offset: usize, write: impl FnOnce(&mut [u64])) -> Vec<u64> {
    let mut lines = line::zeroed(n + 32).expect("room");
    let words = line::words_mut(&mut lines);
    words.fill(GUARD);
    let from = 8 + offset;
    write(&mut words[from..from + n]);
    let beside = words[..from].iter().chain(&words[from + n..]);
    assert!(beside.into_iter().all(|word| *word == GUARD), "{n} words at {offset}");
    words[from..from + n].to_vec()
}

#[test]
fn nothing_beside_an_output_is_written() {
    let scalar = super::scalar();
    for kernels in Kernels::available() {
        let kernel = kernels.raw();
        let mut rng = Rng::new(3);
        for n in (1..=20).chain([31, 32, 33, 63, 64, 65]) {
            for offset in 0..8 {
                let inputs: [Vec<u64>; BATCH] = std::array::from_fn(|_| {
                    let mut words = vec![0; n];
                    rng.fill(&mut words);
                    words
                });
                let [a, b, ..] = &inputs;
                let both = |run: &dyn Fn(&dyn Kernel, &mut [u64]), len: usize| {
                    let found = guarded(len, offset, |out| run(kernel, out));
                    assert_eq!(found, guarded(len, offset, |out| run(scalar, out)), "{kernels:?} {n}");
                };
                both(&|kernel, out| kernel.xor(a, b, out), n);
                both(&|kernel, out| kernel.xor_rows(&[&a[..], b].concat(), b, out), 2 * n);
                let by = offset * 67 % (n * 64);
                both(&|kernel, out| kernel.rotate_rows(&[&a[..], b].concat(), n, by, out), 2 * n);
                let (planes, views) = (5 * n, inputs.each_ref().map(Vec::as_slice));
                let count = |kernel: &dyn Kernel, out: &mut [u64]| {
                    out.fill(0);
                    kernel.count_batch(out, n, &views);
                    kernel.count_up(out, n, 0, a, true);
                    kernel.count_down(out, n, 1, b, false);
                };
                both(&count, planes);
                let mut counted = vec![0; planes];
                count(scalar, &mut counted);
                both(&|kernel, out| kernel.compare(&counted, n, 4, b, out), n);
            }
        }
    }
}

#[test]
fn what_a_first_stage_writes_is_as_long_as_it_says() {
    let mut rng = Rng::new(4);
    for kernels in Kernels::available() {
        let (kernel, scalar) = (kernels.raw(), super::scalar());
        for width in [1, 2, 3, 4, 5, 8, 9] {
            for rows in [1usize, 8, 63, 64, 65, 200] {
                let blocks = rows.div_ceil(8);
                let mut lines = line::zeroed(blocks * width * 8).expect("room");
                rng.fill(line::words_mut(&mut lines));
                let mut query = vec![0; width];
                rng.fill(&mut query);
                let blocks = Blocks { lines: &lines, width, rows };
                let room = rows.next_multiple_of(64);
                let [found, expected] = [kernel, scalar].map(|kernel| {
                    let mut out = vec![7; room + 64];
                    kernel.distances(blocks, &query, &mut out[..room]);
                    out
                });
                assert_eq!(found, expected, "{kernels:?} {width} {rows}");
                assert!(found[rows.next_multiple_of(8)..].iter().all(|number| *number == 7));
                for row in 0..rows {
                    let word = |w: usize| lines[row / 8 * width + w].0[row % 8] ^ query[w];
                    let distance: u32 = (0..width).map(|w| word(w).count_ones()).sum();
                    assert_eq!(u32::from(found[row]), distance);
                }
                let numbers = &found[..room];
                for range in [0..=0, 0..=7, 7..=7, 30..=34, 100..=200, 0..=u16::MAX, 65_535..=65_535] {
                    let expected: Vec<u32> =
                        (0u32..).zip(numbers).filter(|(_, n)| range.contains(n)).map(|(at, _)| at).collect();
                    assert_eq!(kernel.count_within(numbers, range.clone()), expected.len());
                    let mut out = vec![u32::MAX; expected.len() + ROOM + 1];
                    let last = expected.len() + ROOM;
                    let found = kernel.find_within(numbers, range, &mut out[..last]);
                    assert_eq!(out[..found], expected, "{kernels:?}");
                    assert_eq!(out[last], u32::MAX);
                }
            }
        }
    }
}
