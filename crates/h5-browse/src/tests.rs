//! Files looked at through the interface of the crate. The comparison with h5grove is in
//! tests/python/server/test_grove.py.

use std::path::Path;

use ctds::error::{ErrorKind, Fails};
use hdf5::types::{TypeDescriptor, VarLenUnicode};

use crate::{Browser, Data, DataOptions, Dtype, Format, Limits, LinkResolution, PIECE_BYTES};

const ROWS: u64 = 5000;
const COLUMNS: u64 = 300;

fn numbers() -> Vec<f32> {
    (0..ROWS * COLUMNS).map(|number| number as f32 / 8.).collect()
}

fn text(text: &str) -> VarLenUnicode {
    text.parse().unwrap()
}

fn file(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("my.h5");
    let file = hdf5::File::create(&path).unwrap();
    let group = file.create_group("g").unwrap();
    group.new_attr::<VarLenUnicode>().create("note").unwrap().write_scalar(&text("a \"note\"")).unwrap();
    let shape = (ROWS as usize, COLUMNS as usize);
    let dataset = group.new_dataset::<f32>().chunk((512, COLUMNS as usize)).shape(shape).create("d").unwrap();
    dataset.write_raw(&numbers()).unwrap();
    file.close().unwrap();
    path
}

fn all(data: Data) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in data.pieces {
        let piece = piece.unwrap();
        assert!(!piece.is_empty() && piece.len() as u64 <= PIECE_BYTES);
        bytes.extend(piece);
    }
    assert!(data.length.is_none_or(|length| length == bytes.len() as u64));
    bytes
}

fn with_browser(limits: Limits, test: impl FnOnce(&Browser<'_>)) {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path());
    test(&Browser::open(&path, &|_: &Path| false, &limits).unwrap());
}

#[test]
fn values_come_in_pieces() {
    with_browser(Limits::default(), |browser| {
        let expected: Vec<u8> = numbers().iter().flat_map(|number| number.to_le_bytes()).collect();
        let options = DataOptions { format: Format::Bin, dtype: Dtype::Safe, ..DataOptions::default() };
        let data = browser.data("/g/d", &options).unwrap();
        assert_eq!(data.length, Some(expected.len() as u64));
        assert!(all(data) == expected);
        let strided = DataOptions { selection: Some("1::3,5:9:2"), ..options };
        let rows = (1..ROWS).step_by(3);
        let expected: Vec<u8> = rows
            .flat_map(|row| [5, 7].map(|column| (row * COLUMNS + column) as f32 / 8.))
            .flat_map(f32::to_le_bytes)
            .collect();
        assert!(all(browser.data("/g/d", &strided).unwrap()) == expected);
        let text = all(browser.data("/g/d", &DataOptions::default()).unwrap());
        let found: Vec<Vec<f32>> = serde_json::from_slice(&text).unwrap();
        assert!(found.concat() == numbers() && found.len() as u64 == ROWS);
    });
}

#[test]
fn limits_hold_and_say_how_to_choose_less() {
    let bytes = ROWS * COLUMNS * 4;
    let refused = |limits: Limits, format: Format| {
        with_browser(limits, |browser| {
            let error = browser.data("/g/d", &DataOptions { format, ..DataOptions::default() }).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit);
            assert!(error.message().contains("selection=0:"), "{error}");
        });
    };
    refused(Limits { binary_bytes: bytes - 1, ..Limits::default() }, Format::Bin);
    refused(Limits { binary_bytes: bytes, ..Limits::default() }, Format::Npy);
    refused(Limits { json_numbers: ROWS * COLUMNS - 1, ..Limits::default() }, Format::Json);
    // only a pass over the values tells how long their text is
    let mut length = 0;
    with_browser(Limits::default(), |browser| {
        length = all(browser.data("/g/d", &DataOptions::default()).unwrap()).len() as u64;
    });
    refused(Limits { json_bytes: length - 1, ..Limits::default() }, Format::Json);
    with_browser(Limits { json_bytes: length, ..Limits::default() }, |browser| {
        assert_eq!(browser.data("/g/d", &DataOptions::default()).unwrap().length, Some(length));
    });
    with_browser(Limits { paths: 2, children: 0, ..Limits::default() }, |browser| {
        assert_eq!(browser.paths("/", LinkResolution::None).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(browser.meta("/g", LinkResolution::None).unwrap_err().kind(), ErrorKind::Limit);
    });
}

#[test]
fn errors_have_a_kind() {
    with_browser(Limits::default(), |browser| {
        let kind = |path: &str, options: DataOptions<'_>| browser.data(path, &options).unwrap_err().kind();
        assert_eq!(kind("/g", DataOptions::default()), ErrorKind::Usage);
        assert_eq!(kind("/", DataOptions::default()), ErrorKind::Usage);
        assert_eq!(kind("/g/none", DataOptions::default()), ErrorKind::NotFound);
        assert_eq!(kind("/g/d/x", DataOptions::default()), ErrorKind::NotFound);
        assert_eq!(kind("/g/d", DataOptions { selection: Some("5000"), ..DataOptions::default() }), ErrorKind::Usage);
        let one = DataOptions { selection: Some("0"), format: Format::Tiff, ..DataOptions::default() };
        assert_eq!(kind("/g/d", one), ErrorKind::Usage);
        assert_eq!(browser.attributes("/g", &["no".to_owned()]).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(browser.attributes("/g", &[]).unwrap(), r#"{"note":"a \"note\""}"#);
        assert_eq!(browser.paths("/", LinkResolution::All).unwrap(), r#"["/","/g","/g/d"]"#);
        assert_eq!(browser.paths("/g/d", LinkResolution::All).unwrap_err().kind(), ErrorKind::Usage);
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.h5"), "hello").unwrap();
    let limits = Limits::default();
    let open = |name: &str| Browser::open(&folder.path().join(name), &|_: &Path| false, &limits).unwrap_err().kind();
    assert_eq!([open("a.h5"), open("b.h5")], [ErrorKind::Format, ErrorKind::NotFound]);
}

/// A dataset of each kind that some answers cannot be given about, and links that lead nowhere.
fn odd_file(path: &Path) {
    let file = hdf5::File::create(path).unwrap();
    file.new_dataset::<i32>().shape(hdf5::Extents::Null).create("null").unwrap();
    file.new_dataset::<f32>().shape(()).create("scalar").unwrap();
    file.new_dataset::<f32>().shape((0, 3)).create("empty").unwrap();
    file.new_dataset::<f32>().chunk(1 << 10).shape(1usize << 40).create("huge").unwrap();
    let strings = file.new_dataset::<VarLenUnicode>().shape(2).create("text").unwrap();
    strings.write_raw(&[text("a"), text("a")]).unwrap();
    let long = TypeDescriptor::FixedAscii((64 << 20) + 1);
    file.new_dataset_builder().empty_as(&long).chunk(1).shape(1).create("long").unwrap();
    let links = file.create_group("links").unwrap();
    links.link_soft("/none", "dangling").unwrap();
    links.link_soft("/links/b", "a").unwrap();
    links.link_soft("/links/a", "b").unwrap();
    links.link_soft(".", "here").unwrap();
    file.close().unwrap();
}

#[test]
fn refusals_have_a_reason() {
    use ErrorKind::{Limit, NotFound, Usage};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.h5");
    odd_file(&path);
    let with = |limits: Limits, test: &dyn Fn(&Browser<'_>)| {
        test(&Browser::open(&path, &|_: &Path| false, &limits).unwrap());
    };
    with(Limits::default(), &|browser| {
        let data = |path: &str, format: Format| {
            browser.data(path, &DataOptions { format, ..DataOptions::default() }).map(drop)
        };
        data("/null", Format::Bin).fails(Usage, "/null: Unsupported encoding bin for datasets without a dataspace");
        data("/text", Format::Bin).fails(
            Usage,
            "Unsupported encoding bin for elements of variable length and references: they have no bytes of their own; take json",
        );
        data("/text", Format::Csv).fails(Usage, "/text: Unsupported encoding csv for non-numeric content");
        data("/scalar", Format::Csv).fails(Usage, "Unsupported encoding csv for empty and scalar datasets");
        data("/empty", Format::Tiff).fails(Usage, "Unsupported encoding tiff for datasets without elements");
        let selected = DataOptions { selection: Some("0"), ..DataOptions::default() };
        browser
            .data("/null", &selected)
            .map(drop)
            .fails(Usage, "the dataset has no dataspace, so that nothing can be selected");
        data("/long", Format::Json).fails(Limit, "elements of 67108865 bytes; the limit is 67108864");
        browser.stats("/huge", None).fails(
            Limit,
            "/huge: statistics of 4398046511104 bytes, of which 2147483648 are allowed; choose less with selection",
        );
        let paths = browser.paths("/links", LinkResolution::All);
        let Err(error) = paths else { panic!("links lead nowhere") };
        assert_eq!(error.kind(), NotFound);
        assert!(error.to_string().contains("Cannot resolve the link at /links/"), "{error}");
        data("/links/dangling", Format::Json).fails(NotFound, "/none does not exist");
        data("/links/a", Format::Json)
            .fails(NotFound, "the path leads through more than 16 links, or through links in a circle");
        data("/links/here", Format::Json).fails(NotFound, "the link leads to \".\", which is not a path");
    });
    with(Limits { paths: 3, ..Limits::default() }, &|browser| {
        browser.paths("/links", LinkResolution::None).fails(Limit, "/links has 4 members, the limit is 3");
    });
    with(Limits { json_bytes: 10, ..Limits::default() }, &|browser| {
        let meta = browser.meta("/links", LinkResolution::None);
        meta.fails(Limit, "bytes, the limit is 10: ask for a part of it");
    });
}

#[test]
fn live_columns_whose_rows_have_no_place() {
    use ctds::ColumnDesc;
    use ctds::value::Shape;
    use ctds_hdf5::live::{Block, ColumnSpec, Schema, TableSpec};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let var = ColumnSpec::from(ColumnDesc::array::<i16>("VAR")).shapes([Shape::from([2])]);
    let mut writer = Schema::new().table(TableSpec::new("MAIN").column(var)).create(&path).unwrap();
    let mut rows = writer.table("MAIN").unwrap().batch(1);
    rows.set("VAR", Block::from(&[1i16, 2]).with_shapes(&[Some(0)])).unwrap();
    rows.append().unwrap();
    writer.close().unwrap();
    let file = hdf5::File::open_rw(&path).unwrap();
    file.dataset("MAIN/VAR/row_index").unwrap().write_raw(&[-5i64]).unwrap();
    file.close().unwrap();
    let limits = Limits::default();
    let browser = Browser::open(&path, &|_: &Path| false, &limits).unwrap();
    browser
        .data("/MAIN/VAR/cube0", &DataOptions::default())
        .map(drop)
        .fails(ErrorKind::Format, "the position of row 0 is not a number of 0 or more");
}

#[test]
fn a_page_without_a_server_answers_alike() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path());
    let limits = Limits::default();
    let browser = Browser::open(&path, &|_: &Path| false, &limits).unwrap();
    let local = h5_read::File::open(std::fs::read(&path).unwrap()).unwrap();
    let answer = |request: &str, parameters: &[(&str, &str)]| {
        let owned: Vec<_> = parameters.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        h5_page::answer(&local, request, &owned).unwrap()
    };
    let json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
    for object in ["/", "/g", "/g/d"] {
        let found = browser.meta(object, LinkResolution::OnlyValid).unwrap();
        assert_eq!(json(&answer("meta", &[("path", object)])), json(found.as_bytes()), "{object}");
        let found = browser.attributes(object, &[]).unwrap();
        assert_eq!(json(&answer("attr", &[("path", object)])), json(found.as_bytes()), "{object}");
    }
    let selected = [("path", "/g/d"), ("selection", "7:9,1::100")];
    let options = DataOptions { selection: Some(selected[1].1), ..DataOptions::default() };
    assert_eq!(json(&answer("data", &selected)), json(&all(browser.data("/g/d", &options).unwrap())));
    let found = browser.stats("/g/d", options.selection).unwrap();
    assert_eq!(json(&answer("stats", &selected)), json(found.as_bytes()));
}
