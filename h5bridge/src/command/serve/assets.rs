//! Files of the page in h5bridge/page/dist, compressed by gzip. Written by `scripts/page`: do not edit.

macro_rules! asset {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../../page/dist/", $name, ".gz")).as_slice())
    };
}

/// Address below the root of the server, and the content compressed by gzip, in the order of the addresses.
pub(super) static ASSETS: &[(&str, &[u8])] = &[
    asset!("assets/explore-CXbulCxK.css"),
    asset!("assets/explore-Dlf4ygle.js"),
    asset!("assets/index-BlSQWDFt.js"),
    asset!("assets/index-CubmQTHG.css"),
    asset!("assets/ms-BH5jE3dD.css"),
    asset!("assets/ms-Cbqwwx7Z.js"),
    asset!("assets/server-Be_dgHhv.css"),
    asset!("assets/server-CurCgSJe.js"),
    asset!("assets/theme-SyohOuTh.js"),
    asset!("explore.html"),
    asset!("index.html"),
    asset!("licences.txt"),
    asset!("ms.html"),
];
