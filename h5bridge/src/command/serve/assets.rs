//! Files of the web page in h5bridge/page/dist, compressed by gzip. Written by `scripts/page`: do not edit.

macro_rules! asset {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../../page/dist/", $name, ".gz")).as_slice())
    };
}

/// The files of the web page: address below the root of the server, and content compressed by gzip, sorted by address.
pub(super) static ASSETS: &[(&str, &[u8])] = &[
    asset!("assets/explore-DZGBCRKU.css"),
    asset!("assets/explore-bv9Ss_Fd.js"),
    asset!("assets/h5web-CHzuOp_S.js"),
    asset!("assets/h5web-CS_P5ea_.css"),
    asset!("assets/index-Cysb1_7g.css"),
    asset!("assets/index-SpJ5xaL8.js"),
    asset!("assets/ms-CHv40YU8.css"),
    asset!("assets/ms-CnYR2QKP.js"),
    asset!("assets/rolldown-runtime-QTnfLwEv.js"),
    asset!("assets/server-9wSd2iEv.css"),
    asset!("assets/server-CkK39rLl.js"),
    asset!("assets/theme-Dt7CGci4.js"),
    asset!("explore.html"),
    asset!("index.html"),
    asset!("licences.txt"),
    asset!("ms.html"),
];
