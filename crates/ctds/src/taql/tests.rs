//! Expressions over columns in memory. Expressions of every kind are compared with casacore's
//! values by tests/python/formats/test_taql.py.

use std::ops::Range;

use super::compile::ColumnType;
use super::{Block, Columns, Expression, Kind, Shapes, Table};
use crate::error::{ErrorKind, Fails, Result};
use crate::value::{BString, DataType, Record, Shape, Value, Values};

/// Columns of three rows; the last cell of VECTOR is undefined.
#[derive(Default)]
struct Sample {
    found: Vec<&'static str>,
    keywords: Record,
}

const NUMBERS: [i32; 3] = [-3, 0, 5];

impl Table for Sample {
    fn column(&mut self, name: &str) -> Result<Option<ColumnType>> {
        let (name, data_type, is_array) = match name {
            "NUMBER" => ("NUMBER", DataType::Int, false),
            "TEXT" => ("TEXT", DataType::String, false),
            "SECONDS" => ("SECONDS", DataType::Float, false),
            "VECTOR" => ("VECTOR", DataType::Double, true),
            _ => return Ok(None),
        };
        self.found.push(name);
        Ok(Some(ColumnType { data_type, is_array, axes: is_array.then_some(1) }))
    }

    fn keywords(&self, column: Option<&str>) -> Result<&Record> {
        static UNIT: std::sync::OnceLock<Record> = std::sync::OnceLock::new();
        static NONE: std::sync::OnceLock<Record> = std::sync::OnceLock::new();
        Ok(match column {
            None => &self.keywords,
            Some("SECONDS") => UNIT.get_or_init(|| {
                let mut record = Record::default();
                record.set("UNIT", Value::string("s"));
                record
            }),
            Some(_) => NONE.get_or_init(Record::default),
        })
    }
}

impl Columns for Sample {
    fn shapes(&self, column: usize, rows: Range<u64>) -> Result<Shapes> {
        match self.found[column] {
            "VECTOR" => Shapes::each(rows.map(|row| (row < 2).then(|| Shape::from([row + 1]))).collect()),
            _ => Ok(Shapes::Scalars),
        }
    }

    fn values(&self, column: usize, rows: Range<u64>) -> Result<Values> {
        let rows = rows.start as usize..rows.end as usize;
        Ok(match self.found[column] {
            "NUMBER" => Values::Int(NUMBERS[rows].to_vec()),
            "TEXT" => Values::String(["a", "Bc", ""].map(BString::from)[rows].to_vec()),
            "SECONDS" => Values::Float(vec![1.5; rows.len()]),
            _ => {
                Values::Double(rows.flat_map(|row| vec![row as f64 + 0.5; if row < 2 { row + 1 } else { 0 }]).collect())
            }
        })
    }
}

fn sample() -> Sample {
    let mut keywords = Record::default();
    keywords.set("SIZE", Value::Scalar(Values::Short(vec![7])));
    let mut inner = Record::default();
    inner.set("LIST", Value::Array(Shape::from([2]), Values::Float(vec![1.0, 2.0])));
    keywords.set("OUTER", Value::Record(inner));
    Sample { keywords, ..Sample::default() }
}

fn styled(text: &str, style: &str, rows: Range<u64>) -> Result<Block> {
    let mut sample = sample();
    let expression = Expression::new(text, style, &mut sample)?;
    expression.evaluate(&sample, rows)
}

fn in_all_rows(text: &str) -> Result<Block> {
    styled(text, "", 0..3)
}

/// The value in the first row.
fn value(text: &str) -> Values {
    let found = styled(text, "", 0..1).map(|block| block.values);
    found.unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str, words: &str) {
    let error = styled(text, "", 0..1).map(|_| ()).expect_err(text);
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{text}: {error}");
    assert!(error.to_string().contains(words), "{text}: {error}");
}

#[test]
fn precedence_is_that_of_taql() {
    for (text, expected) in [
        ("2 + 3 * 4", 14),
        ("2 | 1 ^ 3 & 6", 3),
        ("6 & 2 + 1", 2),
        ("-7 % 3", 2),
        ("7 % -3", -2),
        ("~1 + 3", 1),
        ("0x1F - -1", 32),
        ("+5", 5),
        ("iif(T, 1, 2)", 1),
    ] {
        assert_eq!(value(text), Values::Int64(vec![expected]), "{text}");
    }
    for (text, expected) in [
        ("2 ** 3 ** 2", 512.0),
        ("-2 ** 2", -4.0),
        ("2 ** -1 * 4", 2.0),
        ("7 // 2", 3.0),
        ("-7 // 2", -4.0),
        ("1 / 2", 0.5),
        ("1.5e1 + .5", 15.5),
    ] {
        assert_eq!(value(text), Values::Double(vec![expected]), "{text}");
    }
    for (text, expected) in [
        ("F && F || T", true),
        ("!F == T", true),
        ("1 + 1 = 2 and not F", true),
        ("3 between 1 and 3", true),
        ("3 in [between 1 and 3]", false),
        ("3 not in [1:5:2]", false),
        ("2.5 in [<2, 3>, {7, 8}]", true),
        ("5 in [:< 5]", false),
        ("5 in [5 =:]", true),
        ("4 around 2 in 3", false),
        ("'abc' like 'a%' && 'abc' ~ p/?b*/ && 'ABC' ilike '_b_'", true),
        ("'b' in ['a' =:= 'c']", true),
    ] {
        assert_eq!(value(text), Values::Bool(vec![expected]), "{text}");
    }
}

#[test]
fn columns_have_values_in_each_row() {
    let numbers = |text: &str| in_all_rows(text).map(|block| block.values).unwrap();
    assert_eq!(numbers("NUMBER * 2 + rownumber()"), Values::Int64(vec![-5, 2, 13]));
    assert_eq!(numbers("rowid()"), Values::Int64(vec![0, 1, 2]));
    assert_eq!(numbers("NUMBER + 0.5"), Values::Double(vec![-2.5, 0.5, 5.5]));
    assert_eq!(numbers("SIZE + ::SIZE"), Values::Int64(vec![14; 3]));
    assert_eq!(numbers("sum(::OUTER.LIST)"), Values::Double(vec![3.0; 3]));
    assert_eq!(numbers("upcase(TEXT) + 'x'"), Values::String(["Ax", "BCx", "x"].map(BString::from).to_vec()));
    assert_eq!(numbers("SECONDS + 1min"), Values::Double(vec![61.5; 3]));
    assert_eq!(numbers("sum(VECTOR)"), Values::Double(vec![0.5, 3.0, 0.0]));
    assert_eq!(numbers("isdefined(VECTOR)"), Values::Bool(vec![true, true, false]));
    // an operand that a row does not need may have no value there: the caller takes such rows one
    // by one
    let chosen = |row| styled("iif(nelements(VECTOR) > 0, VECTOR[1], -1.)", "", row..row + 1).map(|block| block.values);
    let values: Vec<Values> = (0..3).map(|row| chosen(row).unwrap()).collect();
    assert_eq!(values, [0.5, 1.5, -1.0].map(|value| Values::Double(vec![value])));
}

#[test]
fn arrays_have_the_order_of_the_style() {
    let shape = |text: &str, style: &str| styled(text, style, 0..1).unwrap();
    let block = shape("array([1, 2, 3, 4, 5, 6], 2, 3)", "");
    assert_eq!((block.shape(0), block.values), (Shape::from([2, 3]), Values::Int64(vec![1, 2, 3, 4, 5, 6])));
    assert_eq!(shape("array(0, 2, 3)", "python").shape(0), Shape::from([3, 2]));
    assert_eq!(shape("[1, 2, 3, 4][1:3]", "").values, Values::Int64(vec![1, 2, 3]));
    assert_eq!(shape("[1, 2, 3, 4][1:3]", "python").values, Values::Int64(vec![2, 3]));
    assert_eq!(shape("[1, 2, 3, 4][1:3]", "python, endincl").values, Values::Int64(vec![2, 3, 4]));
    assert_eq!(shape("[[1, 2], [3, 4]][1, 2]", "").values, Values::Int64(vec![3]));
    assert_eq!(shape("[[1, 2], [3, 4]][0, 1]", "python").values, Values::Int64(vec![2]));
    assert_eq!(shape("sums([[1, 2], [3, 4]], 1)", "").values, Values::Int64(vec![3, 7]));
    assert_eq!(shape("sums([[1, 2], [3, 4]], 0)", "python").values, Values::Int64(vec![4, 6]));
    assert_eq!(shape("transpose([[1, 2], [3, 4]])", "").values, Values::Int64(vec![1, 3, 2, 4]));
    assert_eq!(shape("rownumber()", "base0").values, Values::Int64(vec![0]));
}

#[test]
fn unsupported_words_are_named() {
    for (text, words) in [
        ("meas.azel(NUMBER)", "the function meas.azel is not supported"),
        ("runningsum(VECTOR, 1)", "the function runningsum is not supported"),
        ("sqrt(1i)", "the function sqrt: Complex values are not supported"),
        ("NUMBER + 2014-04-22", "at character 10: the date or time 2014-04-22 is not supported"),
        ("TEXT ~ f/a+/", "the regular expression f/a+/ is not supported"),
        ("VECTOR[VECTOR > 0]", "a mask as a subscript is not supported"),
        ("NUMBER in [select X from $1]", "the subquery select is not supported"),
        ("MISSING + 1", "MISSING is neither a column nor a keyword"),
        ("::MISSING", "the keyword MISSING does not exist"),
        ("SECONDS + 1m", "m is not converted to s"),
        ("TEXT + 1", "String and Integer have no common type"),
        ("NUMBER +", "at character 9: found the end, expected a value"),
        ("(1", "at character 3: found the end, expected ',' or ')'"),
        ("1 2", "at character 3: found 2, expected an operator or the end"),
        ("'abc", "the string has no closing quote"),
        ("sum(1, 2)", "the function sum: 2 arguments are given, expected 1"),
    ] {
        refused(text, words);
    }
    let error = styled("1", "fortran77", 0..1).unwrap_err();
    assert!(error.to_string().contains("the style fortran77 is unknown"), "{error}");
}

#[test]
fn rows_without_a_value_are_errors() {
    in_all_rows("NUMBER % NUMBER")
        .map(|_| ())
        .fails(ErrorKind::Format, "an integer is divided by 0, expected another divisor");
    in_all_rows("VECTOR[2]").map(|_| ()).fails(ErrorKind::Format, "leave an axis of 1");
    in_all_rows("min(VECTOR)").map(|_| ()).fails(ErrorKind::Format, "neither minimum nor maximum");
    in_all_rows("VECTOR + [1., 2., 3.]")
        .map(|_| ())
        .fails(ErrorKind::Format, "an array has the shape [1], another one [3]");
}

#[test]
fn hostile_expressions_are_refused() {
    refused(&"(".repeat(10_000), "more than 40 brackets and signs are within each other");
    refused(&("-".repeat(10_000) + "1"), "more than 40 brackets and signs are within each other");
    refused(&vec!["1"; 5000].join("+"), "more than 100 operations are within each other");
    refused(&vec!["1"; 9000].join("+"), "more than 16384 bytes");
    refused("string(1, 1e9)", "the width 1000000000 is more than 1000");
    for text in ["array(1, 100000, 100000)", "sum([1:1000000000000])", "array(1, 1000000000000, 1000000000000)"] {
        let error = styled(text, "", 0..1).map(|_| ()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Limit | ErrorKind::Format), "{text}: {error}");
    }
    // each makes the text before 64 times as long
    let many = "a".repeat(64);
    let repeated = (0..40).fold("TEXT".to_owned(), |text, _| format!("replace({text}, 'a', '{many}')"));
    let error = styled(&repeated, "", 0..1).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    // rows that need too much memory together
    styled("array(1, 1000, 1000)", "", 0..1).unwrap();
    styled("array(NUMBER, 1000, 1000)", "", 0..3)
        .map(|_| ())
        .fails(ErrorKind::Limit, "an expression needs 3000003 elements in memory; the limit is 1048576");
}

/// Valid expressions with characters changed, removed and put in: each ends in a value or an error.
#[test]
fn changed_expressions_end() {
    let seeds = [
        "iif(NUMBER > 0x1f, sum(VECTOR[1:2, 1]), -2.5e3 ** .5) + rownumber()",
        "upcase('a\"b') + \"c'd\" ~ p/x*?[ab]/i || TEXT in ['a' =:= 'c', 'd'] and not F",
        "2.5 in [<2, 3>, {7, 8}] or 4 between 1 and 3 || 5 around 2 in 3 && 1 in [1:5:2]",
        "means(array([1, 2, 3i], 2, 3), 1)[2] / ::OUTER.LIST[1] // 3min % 2",
        "transpose([[1, 2], [3, 4]]) + replace(string(NUMBER, 5), substr(TEXT, 1, 2), 'é')",
    ];
    let inserted: Vec<char> = "()[]{}<>:=,.;~!&|*/%+-^#$'\"\\0129eixTFé pm/ ".chars().collect();
    let mut state = 1_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut values, mut errors) = (0, 0);
    for round in 0..20_000 {
        let mut text: Vec<char> = seeds[round % seeds.len()].chars().collect();
        for _ in 0..=next(4) {
            let at = next(text.len());
            match next(4) {
                0 => drop(text.remove(at)),
                1 => text.insert(at, inserted[next(inserted.len())]),
                2 => text.truncate(at.max(1)),
                _ => text[at] = inserted[next(inserted.len())],
            }
            if text.is_empty() {
                text.push('1');
            }
        }
        let text: String = text.into_iter().collect();
        match styled(&text, ["", "python"][round % 2], 0..3) {
            Ok(_) => values += 1,
            Err(error) => {
                errors += 1;
                let kinds = [ErrorKind::Unsupported, ErrorKind::Format, ErrorKind::Limit];
                assert!(kinds.contains(&error.kind()), "{text}: {error}");
            }
        }
    }
    assert!(values > 500 && errors > 5000, "{values} values, {errors} errors");
}

#[test]
fn kinds_are_known_before_values() {
    let kind = |text: &str| {
        let expression = Expression::new(text, "", &mut sample()).unwrap();
        (expression.kind(), expression.is_array())
    };
    assert_eq!(kind("NUMBER / 2"), (Kind::Double, false));
    assert_eq!(kind("VECTOR > NUMBER"), (Kind::Bool, true));
    assert_eq!(kind("VECTOR[1] + 2i"), (Kind::Complex, false));
    assert_eq!(kind("string(VECTOR)"), (Kind::Text, true));
    assert_eq!(kind("shape(TEXT)"), (Kind::Int, true));
}
