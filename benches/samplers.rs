//! One draw, the set-up of its law included: a simulator draws from most laws once.

use debora::key::{Key, Label};
use debora::lab::internals::{Stream, binomial, gamma, hypergeometric, poisson};
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

const COUNTS: [u64; 6] = [
    10,
    100,
    10_000,
    1_000_000,
    1_000_000_000,
    1_000_000_000_000_000,
];

/// Adding up hands over to the hat at 32.
const MEANS: [f64; 6] = [1.0, 10.0, 31.5, 32.0, 1e6, 5e14];

fn stream() -> Stream {
    Stream::new(Key::from(7u64), Label::Skip, [0, 0])
}

#[divan::bench(sample_size = 2000)]
fn word(bencher: Bencher) {
    let mut stream = stream();
    bencher.bench_local(|| stream.next_u64());
}

#[divan::bench(args = COUNTS, sample_size = 2000)]
fn gamma_of_shape(bencher: Bencher, shape: u64) {
    let mut stream = stream();
    bencher.bench_local(|| gamma(&mut stream, black_box(shape)));
}

#[divan::bench(args = MEANS, sample_size = 2000)]
fn poisson_of_mean(bencher: Bencher, mean: f64) {
    let mut stream = stream();
    bencher.bench_local(|| poisson(&mut stream, black_box(mean)));
}

#[divan::bench(args = COUNTS, sample_size = 2000)]
fn binomial_of_trials(bencher: Bencher, n: u64) {
    let mut stream = stream();
    bencher.bench_local(|| binomial(&mut stream, black_box(n), black_box(0.3)));
}

#[divan::bench(args = MEANS, sample_size = 2000)]
fn binomial_of_mean(bencher: Bencher, mean: f64) {
    let mut stream = stream();
    bencher.bench_local(|| {
        binomial(
            &mut stream,
            black_box(3_000_000_000_000_000),
            black_box(mean / 3e15),
        )
    });
}

#[divan::bench(args = COUNTS, sample_size = 2000)]
fn hypergeometric_of_urn(bencher: Bencher, total: u64) {
    let mut stream = stream();
    let (marked, draws) = (total * 3 / 10, total * 4 / 10);
    bencher.bench_local(|| {
        hypergeometric(
            &mut stream,
            black_box(marked),
            total - marked,
            black_box(draws),
        )
    });
}

#[divan::bench(args = MEANS, sample_size = 2000)]
fn hypergeometric_of_mean(bencher: Bencher, mean: f64) {
    let mut stream = stream();
    let (marked, total) = ((4.0 * mean) as u64, 4_000_000_000_000_000);
    bencher.bench_local(|| {
        hypergeometric(
            &mut stream,
            black_box(marked),
            total - marked,
            black_box(total / 4),
        )
    });
}
