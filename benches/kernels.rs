//! The loops that conversions spend their time in: `cargo bench --features internals`.
//! CONTRIBUTING.md.

use ctds_hdf5::internals::kernels::{self, Kernel};
use divan::Bencher;
use divan::counter::BytesCount;

fn main() {
    divan::main();
}

fn measure(bencher: Bencher<'_, '_>, mut kernel: Kernel) {
    bencher.counter(BytesCount::new(kernel.bytes)).bench_local(|| (kernel.run)());
}

macro_rules! benchmarks {
    ($($name:ident)*) => {
        $(#[divan::bench]
        fn $name(bencher: Bencher<'_, '_>) {
            measure(bencher, kernels::$name());
        })*
    };
}

benchmarks! { tile_transpose bool_bits incremental_decode dysco_decode crc digest }
