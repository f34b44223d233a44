//! The text of `h5bridge --version`.

/// The version with the commit, the features and the HDF5 library of this build.
pub(crate) fn long() -> String {
    let commit = option_env!("H5BRIDGE_COMMIT").map(|commit| format!(" ({commit})")).unwrap_or_default();
    let features = [("serve", cfg!(feature = "serve")), ("remote", cfg!(feature = "remote"))];
    let features: Vec<_> = features.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
    let hdf5 = ctds_hdf5::program::hdf5_version().unwrap_or_else(|| "none, files are only read".to_owned());
    format!(
        "{}{commit}\nfeatures: {}\nHDF5 library: {hdf5}",
        env!("CARGO_PKG_VERSION"),
        if features.is_empty() { "none".to_owned() } else { features.join(", ") }
    )
}
