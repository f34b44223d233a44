//! Conditions against rows chosen by hand.

use bstr::BString;

use super::Predicate;
use crate::error::{ErrorKind, Fails, Result};
use crate::source::Source;
use crate::value::{Complex32, Shape, Values};
use crate::{ColumnDesc, NewTable};

/// Ten rows, as far as conditions need them.
fn make(folder: &std::path::Path) -> Result<std::path::PathBuf> {
    let path = folder.join("small.ms");
    let mut table = NewTable::new()
        .column(ColumnDesc::scalar::<f64>("TIME").unit("s"))
        .column(ColumnDesc::scalar::<f64>("DAYS").unit("d"))
        .column(ColumnDesc::scalar::<i32>("FIELD_ID"))
        .column(ColumnDesc::scalar::<i32>("ANTENNA1"))
        .column(ColumnDesc::scalar::<i32>("ANTENNA2"))
        .column(ColumnDesc::scalar::<bool>("FLAG_ROW"))
        .column(ColumnDesc::scalar::<f32>("EXPOSURE"))
        .column(ColumnDesc::scalar::<BString>("NOTE"))
        .column(ColumnDesc::scalar::<Complex32>("GAIN"))
        .column(ColumnDesc::scalar::<i32>("COUNT"))
        .column(ColumnDesc::array::<f64>("UVW").direct(Shape::from([3])))
        .create(&path)?;
    table.add_rows(10)?;
    // row 0 begins at midnight of 2014-04-22
    table.column("TIME")?.put_scalars(0, (0..10).map(|row| 56_769.0 * 86_400.0 + f64::from(row)).collect())?;
    table.column("DAYS")?.put_scalars(0, (0..10).map(|row| 56_769.0 + f64::from(row)).collect())?;
    table.column("FIELD_ID")?.put_scalars(0, vec![0, 0, 1, 1, 2, 2, 0, 1, 2, 3])?;
    table.column("ANTENNA1")?.put_scalars(0, vec![0, 0, 0, 1, 1, 2, 0, 0, 1, 2])?;
    table.column("ANTENNA2")?.put_scalars(0, vec![0, 1, 2, 1, 2, 2, 0, 1, 1, 2])?;
    table.column("FLAG_ROW")?.put_scalars(0, (0..10).map(|row| row % 3 == 0).collect())?;
    let exposures = (0..10).map(|row| if row == 4 { f32::NAN } else { row as f32 / 2.0 }).collect();
    table.column("EXPOSURE")?.put_scalars(0, exposures)?;
    let notes = (0..10).map(|row| BString::from(if row < 5 { "a" } else { "b c" })).collect();
    table.column("NOTE")?.put_scalars::<BString>(0, notes)?;
    let mut field = table.subtable("FIELD", NewTable::new().column(ColumnDesc::scalar::<BString>("NAME")))?;
    field.add_rows(4)?;
    let names = ["3C286", "target", "gain cal", "target"].map(BString::from).to_vec();
    field.column("NAME")?.put_scalars::<BString>(0, names)?;
    field.close()?;
    let mut antenna = table.subtable("ANTENNA", NewTable::new().column(ColumnDesc::scalar::<BString>("NAME")))?;
    antenna.add_rows(3)?;
    antenna.column("NAME")?.put_scalars::<BString>(0, ["DV01", "DV02", "PM03"].map(BString::from).to_vec())?;
    antenna.close()?;
    table.close()?;
    Ok(path)
}

fn select(path: &std::path::Path, condition: &str) -> Result<Vec<u64>> {
    let mut source = Source::open(path)?;
    source.select(&condition.parse::<Predicate>()?, None, &())?;
    let content = source.tables[0].content()?;
    Ok((0..content.rows()).map(|row| content.original_row(row)).collect())
}

#[test]
fn conditions_select_rows() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = make(folder.path())?;
    let expected: &[(&str, &[u64])] = &[
        ("FIELD_ID == 1", &[2, 3, 7]),
        ("FIELD_ID = 1 OR FIELD_ID = 3", &[2, 3, 7, 9]),
        ("1 == FIELD_ID", &[2, 3, 7]),
        ("FIELD_ID != 1", &[0, 1, 4, 5, 6, 8, 9]),
        ("FIELD_ID <> 1 && FIELD_ID>1", &[4, 5, 8, 9]),
        ("FIELD_ID in 1..3", &[2, 3, 4, 5, 7, 8]),
        ("FIELD_ID in 1..=3", &[2, 3, 4, 5, 7, 8, 9]),
        ("FIELD_ID in 1~3", &[2, 3, 4, 5, 7, 8, 9]),
        ("FIELD_ID in [0, 3]", &[0, 1, 6, 9]),
        ("FIELD_ID not in [0, 2..4]", &[2, 3, 7]),
        ("FIELD_ID > -1 && FIELD_ID < 0.5", &[0, 1, 6]),
        ("ANTENNA1 == ANTENNA2", &[0, 3, 5, 6, 8, 9]),
        ("ANTENNA1 != ANTENNA2 && !FLAG_ROW", &[1, 2, 4, 7]),
        ("FLAG_ROW", &[0, 3, 6, 9]),
        ("FLAG_ROW == false && not (FIELD_ID == 2)", &[1, 2, 7]),
        // && binds more strongly than ||
        ("FIELD_ID == 3 || FIELD_ID == 0 && FLAG_ROW", &[0, 6, 9]),
        ("(FIELD_ID == 3 || FIELD_ID == 0) && FLAG_ROW", &[0, 6, 9]),
        ("(FIELD_ID == 1 || FIELD_ID == 0) && ANTENNA2 == 1", &[1, 3, 7]),
        ("EXPOSURE >= 1.5e0", &[3, 5, 6, 7, 8, 9]),
        ("EXPOSURE < 1 || EXPOSURE >= 1", &[0, 1, 2, 3, 5, 6, 7, 8, 9]),
        ("EXPOSURE != 0", &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("NOTE == \"b c\"", &[5, 6, 7, 8, 9]),
        ("NOTE < 'b'", &[0, 1, 2, 3, 4]),
        ("FIELD_ID == \"3C286\"", &[0, 1, 6]),
        ("FIELD_ID == 'target'", &[2, 3, 7, 9]),
        ("FIELD_ID != 'target'", &[0, 1, 4, 5, 6, 8]),
        ("FIELD_ID in ['gain cal', '3C286', 3]", &[0, 1, 4, 5, 6, 8, 9]),
        ("ANTENNA1 == \"DV02\" && ANTENNA2 in [\"DV02\", \"PM03\"]", &[3, 4, 8]),
        ("TIME >= \"2014-04-22T00:00:08\"", &[8, 9]),
        ("TIME in '2014-04-22'..'2014/04/22/00:00:02'", &[0, 1]),
        ("DAYS == '2014-04-24'", &[2]),
        ("FIELD_ID == 77", &[]),
    ];
    for (condition, rows) in expected {
        assert_eq!(select(&path, condition)?, *rows, "{condition}");
    }
    Ok(())
}

#[test]
fn rows_of_any_table_are_found() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Source::open(make(folder.path())?)?;
    let field = source.tables().iter().position(|table| table.name == "FIELD").expect("FIELD");
    assert_eq!(source.rows_where(field, &"NAME == 'target'".parse()?, &())?, [1, 3]);
    assert_eq!(source.rows_where(0, &"FIELD_ID == 'target'".parse()?, &())?, [2, 3, 7, 9]);
    source
        .rows_where(field, &"TIME > 3".parse()?, &())
        .fails(ErrorKind::Usage, "no scalar column TIME in FIELD; it has NAME");
    source.rows_where(9, &"TIME > 3".parse()?, &()).fails(ErrorKind::Usage, "table 9 does not exist");
    Ok(())
}

#[test]
fn only_rows_of_the_range_are_selected() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = make(folder.path())?;
    let mut source = Source::open(&path)?;
    source.select(&"FIELD_ID == 1".parse()?, Some(3..9), &())?;
    let content = source.tables[0].content()?;
    let rows: Vec<u64> = (0..content.rows()).map(|row| content.original_row(row)).collect();
    assert_eq!(rows, [3, 7]);
    let mut times = Values::Double(Vec::new());
    content.cells(0)?.read_rows(0..2, &mut times)?;
    assert_eq!(times, Values::Double(vec![56_769.0 * 86_400.0 + 3.0, 56_769.0 * 86_400.0 + 7.0]));
    assert_eq!(source.select(&"FIELD_ID == 1".parse()?, Some(0..3), &()).unwrap_err().kind(), ErrorKind::Usage);
    Ok(())
}

#[test]
fn mistakes_are_explained() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = make(folder.path())?;
    let mistakes = [
        ("", "found the end, expected a column"),
        ("FIELD_ID ==", "at character 12: found the end"),
        ("FIELD_ID == 1 FLAG_ROW", "at character 15: found FLAG_ROW, expected '&&', '||' or the end"),
        ("(FIELD_ID == 1", "expected ')'"),
        ("FIELD_ID in [1, 2", "expected ',' or ']'"),
        ("FIELD_ID == 'x", "a quote that is not closed"),
        ("FIELD_ID == 1 § 2", "at character 15: unexpected '§'"),
        ("TIME > 2014-04-22T10:00", "2014, "),
        ("TIME > 22T10", "dates are in quotes"),
        ("FIELD_ID == 99999999999999999999", "99999999999999999999: number too large"),
        ("FIELD_ID not 3", "expected 'in'"),
        ("3", "expected a comparison"),
        ("FIELD_ID", "column FIELD_ID is a number, true is true or false"),
        ("SCAN == 1", "no scalar column SCAN in MAIN; it has TIME, DAYS, FIELD_ID"),
        ("UVW > 3", "the cells of column UVW are arrays"),
        ("FIELD_ID == 'Cas A'", "FIELD has no row named \"Cas A\"; it has 3C286, target, gain cal"),
        ("FIELD_ID < 'target'", "compared by == and != only"),
        ("FLAG_ROW == 1", "column FLAG_ROW is true or false, 1 is a number"),
        ("NOTE > 3", "column NOTE is text, 3 is a number"),
        ("TIME > 'yesterday'", "\"yesterday\" is not a date"),
        ("EXPOSURE > '2014-04-22'", "no unit of time"),
    ];
    for (condition, expected) in mistakes {
        let error = select(&path, condition).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{condition}: {error}");
        if !condition.starts_with("TIME > 2014-") {
            assert!(error.to_string().contains(expected), "{condition}: {error}");
        }
    }
    let deep = format!("{}FLAG_ROW{}", "(".repeat(5000), ")".repeat(5000));
    assert!(select(&path, &deep).unwrap_err().to_string().contains("conditions within each other"));
    Ok(())
}

#[test]
fn columns_that_do_not_compare() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = make(folder.path())?;
    let gain = select(&path, "GAIN == 1");
    gain.fails(ErrorKind::Usage, "column GAIN has values of type complex, which do not compare");
    select(&path, "COUNT == \"many\"").fails(ErrorKind::Usage, "column COUNT holds numbers, and \"many\" is text");
    Ok(())
}
