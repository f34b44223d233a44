#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ctds_hdf5::internals::fuzz::target("native_file").run(bytes);
});
