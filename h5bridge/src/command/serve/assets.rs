//! Files of the web page in h5bridge/page/dist, compressed by gzip. Written by `scripts/page`: do not edit.

macro_rules! asset {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../../page/dist/", $name, ".gz")).as_slice())
    };
}

/// The files of the web page: address below the root of the server, and content compressed by gzip, sorted by address.
pub(super) static ASSETS: &[(&str, &[u8])] = &[
    asset!("assets/explore-BGGU75-V.js"),
    asset!("assets/explore-BSqbN0wW.css"),
    asset!("assets/h5web-CHzuOp_S.js"),
    asset!("assets/h5web-CS_P5ea_.css"),
    asset!("assets/index-CubmQTHG.css"),
    asset!("assets/index-hG5ygxml.js"),
    asset!("assets/ms-B-xJyQ5N.js"),
    asset!("assets/ms-BOmFgkcw.css"),
    asset!("assets/rolldown-runtime-QTnfLwEv.js"),
    asset!("assets/server-Be_dgHhv.css"),
    asset!("assets/server-MsFT9y1m.js"),
    asset!("assets/theme-SyohOuTh.js"),
    asset!("explore.html"),
    asset!("index.html"),
    asset!("licences.txt"),
    asset!("ms.html"),
];
