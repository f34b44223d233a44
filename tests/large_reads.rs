//! Tests that need more rows than the tables of testdata/ have: reads by several threads,
//! predictions and progress of a conversion.

use std::sync::atomic::{AtomicU64, Ordering};

use ctds_hdf5::convert::{Compress, Compression, Source, ToHdf5};
use ctds_hdf5::value::{Complex32, Region, Shape};
use ctds_hdf5::{ColumnDesc, ErrorKind, IfExists, ManagerSpec, NewTable, Progress, Result, SyncPolicy, Table};
use ndarray::ArrayD;
use tempfile::TempDir;

const ROWS: usize = 20_000;
const CHANNELS: usize = 16;
const CORRELATIONS: usize = 4;

/// Numbers without pattern in their last bytes, always the same (splitmix64).
fn noise(at: usize) -> f32 {
    let mut bits = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    1.0 + (bits >> 41) as f32 / (1 << 23) as f32
}

fn data() -> ArrayD<Complex32> {
    let elements = (0..ROWS * CHANNELS * CORRELATIONS).map(|at| Complex32::new(noise(2 * at), noise(2 * at + 1)));
    ArrayD::from_shape_vec(vec![ROWS, CHANNELS, CORRELATIONS], elements.collect()).unwrap()
}

fn flags() -> ArrayD<bool> {
    let elements = (0..ROWS * CHANNELS * CORRELATIONS).map(|at| at % 7 == 3).collect();
    ArrayD::from_shape_vec(vec![ROWS, CHANNELS, CORRELATIONS], elements).unwrap()
}

fn positions() -> ArrayD<f64> {
    ArrayD::from_shape_vec(vec![ROWS, 3], (0..3 * ROWS).map(|at| at as f64).collect()).unwrap()
}

/// The rows, channels and correlations of a tile are in none of their columns divisors of those of
/// the table.
fn make(folder: &TempDir) -> Result<Table> {
    let path = folder.path().join("large.ms");
    let mut table = NewTable::new()
        .column(ColumnDesc::array::<Complex32>("DATA").ndim(2))
        .column(ColumnDesc::array::<Complex32>("WHOLE_CELLS").ndim(2))
        .column(ColumnDesc::array::<bool>("FLAG").ndim(2))
        .column(ColumnDesc::array::<f64>("UVW").direct(Shape::from([3])))
        .column(ColumnDesc::scalar::<f64>("TIME"))
        .column(ColumnDesc::scalar::<i32>("ANTENNA1"))
        .bind(ManagerSpec::tiled_shape("TiledData", &Shape::from([3, 5, 700])), ["DATA"])
        .bind(ManagerSpec::tiled_shape("TiledWhole", &Shape::from([4, 16, 900])), ["WHOLE_CELLS"])
        .bind(ManagerSpec::tiled_shape("TiledFlag", &Shape::from([4, 7, 1100])), ["FLAG"])
        .bind(ManagerSpec::incremental("Slow"), ["TIME"])
        .create(&path)?;
    table.add_rows(ROWS as u64)?;
    table.column("DATA")?.put_rows(0, &data())?;
    table.column("WHOLE_CELLS")?.put_rows(0, &data())?;
    table.column("FLAG")?.put_rows(0, &flags())?;
    table.column("UVW")?.put_rows(0, &positions())?;
    table.column("TIME")?.put_scalars(0, (0..ROWS).map(|row| (row / 100) as f64).collect())?;
    table.column("ANTENNA1")?.put_scalars(0, (0..ROWS as i32).map(|row| row % 28).collect())?;
    table.close()?;
    Table::open(&path)
}

#[test]
fn many_threads_read_what_was_written() -> Result<()> {
    let folder = TempDir::new().unwrap();
    let table = make(&folder)?;
    let (data, flags, all) = (data(), flags(), 0..ROWS as u64);
    for name in ["DATA", "WHOLE_CELLS"] {
        assert!(table.column(name)?.rows::<Complex32>(all.clone())? == data, "{name}");
        let rows = table.column(name)?.rows::<Complex32>(777..18_001)?;
        assert!(rows == data.slice(ndarray::s![777..18_001, .., ..]).into_dyn(), "{name}");
        let channels = Region::c_order(&[7, 1], &[2, 3]);
        let parts = table.column(name)?.parts::<Complex32>(all.clone(), &channels)?;
        assert!(parts == data.slice(ndarray::s![.., 7..9, 1..4]).into_dyn(), "{name}");
        for row in (0..ROWS as u64).step_by(997) {
            assert_eq!(table.column(name)?.cell::<Complex32>(row)?, data.index_axis(ndarray::Axis(0), row as usize));
        }
    }
    assert!(table.column("FLAG")?.rows::<bool>(all.clone())? == flags);
    let channel = table.column("FLAG")?.parts::<bool>(5..19_999, &Region::c_order(&[8, 0], &[1, 4]))?;
    assert!(channel == flags.slice(ndarray::s![5..19_999, 8..9, ..]).into_dyn());
    for row in (0..ROWS as u64).step_by(997) {
        assert_eq!(table.column("FLAG")?.cell::<bool>(row)?, flags.index_axis(ndarray::Axis(0), row as usize));
    }
    let mut times = vec![0.0; ROWS];
    table.column("TIME")?.read_into::<f64>(all.clone(), None, &mut times)?;
    assert!(times.iter().enumerate().all(|(row, &time)| time == (row / 100) as f64));
    for row in (0..ROWS as u64).rev().step_by(61) {
        assert_eq!(table.column("ANTENNA1")?.scalar::<i32>(row)?, row as i32 % 28);
    }

    let column = table.column("DATA")?;
    let too_short = column.read_into::<Complex32>(0..2, None, &mut [Complex32::default(); 3]).unwrap_err();
    assert_eq!(too_short.kind(), ErrorKind::Usage);
    assert_eq!(column.read_into::<f64>(all.clone(), None, &mut times).unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(column.rows::<Complex32>(0..ROWS as u64 + 1).unwrap_err().kind(), ErrorKind::Usage);
    let outside = Region::c_order(&[15, 0], &[2, 4]);
    assert_eq!(column.parts::<Complex32>(all, &outside).unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(column.rows::<Complex32>(7..7)?.shape(), [0, CHANNELS, CORRELATIONS]);
    Ok(())
}

#[test]
fn lists_of_rows_are_read_in_their_order() -> Result<()> {
    let folder = TempDir::new().unwrap();
    let table = make(&folder)?;
    let (data, flags, positions) = (data(), flags(), positions());
    let all = 0..ROWS as u64;
    let some = |rows: &[u64]| rows.iter().map(|&row| row as usize).collect::<Vec<_>>();
    let lists: [Vec<u64>; 6] = [
        Vec::new(),
        vec![19_999],
        vec![5, 5, 4, 6, 7, 8, 0, 19_999],
        (3..ROWS as u64).step_by(28).collect(),
        (0..ROWS as u64).rev().collect(),
        (0..ROWS as u64).filter(|row| row % 5 < 3).collect(),
    ];
    for rows in &lists {
        let of = |array: &ArrayD<Complex32>| array.select(ndarray::Axis(0), &some(rows));
        for name in ["DATA", "WHOLE_CELLS"] {
            assert!(table.column(name)?.rows_at::<Complex32>(rows)? == of(&data), "{name}");
            let region = Region::c_order(&[7, 1], &[2, 3]);
            let parts = table.column(name)?.parts_at::<Complex32>(rows, &region)?;
            assert!(parts == of(&data).slice(ndarray::s![.., 7..9, 1..4]).into_dyn(), "{name}");
        }
        assert!(table.column("FLAG")?.rows_at::<bool>(rows)? == flags.select(ndarray::Axis(0), &some(rows)));
        let antennas = table.column("ANTENNA1")?.rows_at::<i32>(rows)?;
        assert!(antennas.iter().zip(rows).all(|(&antenna, &row)| antenna == row as i32 % 28));
        let times = table.column("TIME")?.rows_at::<f64>(rows)?;
        assert!(times.iter().zip(rows).all(|(&time, &row)| time == (row / 100) as f64));
        // of small cells a part
        let found = table.column("UVW")?.parts_at::<f64>(rows, &Region::c_order(&[1], &[2]))?;
        assert!(found == positions.select(ndarray::Axis(0), &some(rows)).slice(ndarray::s![.., 1..3]).into_dyn());
    }
    let middle = table.column("UVW")?.parts::<f64>(all, &Region::c_order(&[1], &[1]))?;
    assert!(middle == positions.slice(ndarray::s![.., 1..2]).into_dyn());
    for rows in [[3, ROWS as u64], [u64::MAX, 0]] {
        assert_eq!(table.column("DATA")?.rows_at::<Complex32>(&rows).unwrap_err().kind(), ErrorKind::Usage);
    }
    Ok(())
}

#[test]
fn native_files_read_as_their_tables() -> Result<()> {
    let folder = TempDir::new().unwrap();
    let table = make(&folder)?;
    let target = folder.path().join("large.h5");
    let rows: Vec<u64> = (3..ROWS as u64).rev().step_by(28).collect();
    let region = Region::c_order(&[7, 1], &[2, 3]);
    for compression in [Compress::Auto, Compress::With(Compression::NONE)] {
        let written = ToHdf5::new(table.path()).compression(compression).if_exists(IfExists::Replace).write(&target)?;
        assert_eq!(written.rows, ROWS as u64);
        let source = Source::open(&target)?;
        for name in ["DATA", "WHOLE_CELLS"] {
            let (ours, other) = (source.column(name)?, table.column(name)?);
            assert!(ours.rows::<Complex32>(0..ROWS as u64)? == data(), "{name}");
            assert_eq!(ours.rows_at::<Complex32>(&rows)?, other.rows_at::<Complex32>(&rows)?);
            let parts = ours.parts::<Complex32>(5..19_000, &region)?;
            assert_eq!(parts, other.parts::<Complex32>(5..19_000, &region)?);
        }
        assert!(source.column("FLAG")?.rows::<bool>(0..ROWS as u64)? == flags());
        assert_eq!(source.column("TIME")?.scalar::<f64>(19_999)?, 199.0);
        assert_eq!(source.column("UVW")?.cell_shape(7)?, Some(Shape::from([3])));
        assert_eq!(source.column("NO_SUCH").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(source.column("FIELD/NAME").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(source.column("TIME")?.rows::<f64>(0..ROWS as u64 + 1).unwrap_err().kind(), ErrorKind::Usage);
    }
    Ok(())
}

#[test]
fn predictions_hold_for_the_size_of_the_file() -> Result<()> {
    let folder = TempDir::new().unwrap();
    drop(make(&folder)?);
    let (source, target) = (folder.path().join("large.ms"), folder.path().join("large.h5"));
    let gzip = Compress::With("gzip:1".parse::<Compression>()?);
    for compress in [Compress::Auto, gzip, Compress::With(Compression::NONE)] {
        let plan = ToHdf5::new(&source).compression(compress).plan()?;
        let expected = plan.prediction();
        let found = plan.write(&target)?.file_bytes as f64;
        let ratio = expected.file_bytes as f64 / found;
        assert!((0.75..1.25).contains(&ratio), "{compress:?}: {expected:?}, but {found} bytes");
        assert!(expected.seconds > 0.0);
        std::fs::remove_file(&target).unwrap();
    }
    Ok(())
}

#[test]
fn predictions_count_what_is_asked_for() -> Result<()> {
    let folder = TempDir::new().unwrap();
    drop(make(&folder)?);
    let source = folder.path().join("large.ms");
    // without compression no sample is timed
    let plain = || ToHdf5::new(&source).compression(Compress::With(Compression::NONE));
    let seconds = |conversion: ToHdf5<'_>| -> Result<f64> { Ok(conversion.plan()?.prediction().seconds) };
    let usual = seconds(plain())?;
    let longer = [
        usual > seconds(plain().sync(SyncPolicy::Never))?,
        seconds(plain().restorable(true))? > usual,
        seconds(plain().quicklook(true))? > usual,
    ];
    assert_eq!(longer, [true; 3], "the disk, a restorable file, a quicklook");
    let target = folder.path().join("large.h5");
    let never = plain().sync(SyncPolicy::Never).plan()?.prediction_at(&target);
    assert_eq!(never.disk_rate, None, "no disk is waited for");
    let nowhere = plain().plan()?.prediction_at(folder.path().join("none/large.h5"));
    assert_eq!(nowhere.disk_rate, None, "nothing can be written there");
    let small = plain().exclude(["DATA", "WHOLE_CELLS"]).plan()?.prediction_at(&target);
    assert_eq!(small.disk_rate, None, "so little is not worth it");
    // made durable at the end, so that the disk adds all its time
    let plan = plain().sync(SyncPolicy::End).plan()?;
    let (assumed, at) = (plan.prediction(), plan.prediction_at(&target));
    let rate = at.disk_rate.expect("the file would have more than 16 MiB");
    let longer = assumed.file_bytes as f64 * (1.0 / rate - 1.0 / 1.2e9);
    assert!((at.seconds - assumed.seconds - longer).abs() < 1e-6, "{at:?}, {assumed:?}");
    Ok(())
}

/// Sums of the bytes that a call expects and reports.
#[derive(Default)]
struct Counted {
    expected: AtomicU64,
    written: AtomicU64,
}

impl Progress for Counted {
    fn expect(&self, bytes: u64) {
        self.expected.fetch_add(bytes, Ordering::Relaxed);
    }

    fn advance(&self, bytes: u64, _table: &str, _part: &str) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Chunks reach beyond the ends of datasets, and some only locate cells: neither counts.
#[test]
fn progress_ends_where_it_was_expected() -> Result<()> {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("large.ms");
    drop(make(&folder)?);
    for compression in [Compression::NONE, "gzip:1".parse()?] {
        let counted = Counted::default();
        let conversion = ToHdf5::new(&source).compression(Compress::With(compression)).progress(&counted);
        conversion.if_exists(IfExists::Replace).write(folder.path().join("large.h5"))?;
        let elements = ROWS * (2 * CHANNELS * CORRELATIONS * 8 + CHANNELS * CORRELATIONS + 3 * 8 + 8 + 4);
        assert_eq!([counted.expected, counted.written].map(AtomicU64::into_inner), [elements as u64; 2]);
    }
    Ok(())
}
