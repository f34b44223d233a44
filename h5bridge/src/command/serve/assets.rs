//! Files of the web page in h5bridge/page/dist, compressed by gzip. Written by `scripts/page`: do not edit.

macro_rules! asset {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../../page/dist/", $name, ".gz")).as_slice())
    };
}

/// The files of the web page: address below the root of the server, and content compressed by gzip, sorted by address.
pub(super) static ASSETS: &[(&str, &[u8])] = &[
    asset!("assets/explore-Bnxs_7wS.js"),
    asset!("assets/explore-D9lkLYsE.css"),
    asset!("assets/h5web-CHzuOp_S.js"),
    asset!("assets/h5web-CS_P5ea_.css"),
    asset!("assets/index-Cysb1_7g.css"),
    asset!("assets/index-DO2qlEZ-.js"),
    asset!("assets/ms-CHv40YU8.css"),
    asset!("assets/ms-ChL5cq37.js"),
    asset!("assets/rolldown-runtime-QTnfLwEv.js"),
    asset!("assets/state-BgBCuc2h.js"),
    asset!("assets/theme-9wSd2iEv.css"),
    asset!("assets/theme-CXHpRp5K.js"),
    asset!("explore.html"),
    asset!("index.html"),
    asset!("licences.txt"),
    asset!("ms.html"),
];
