//! The samples of formats/stman.md 6, which casacore wrote.

use super::*;

/// 6.4: (SIGMA, WEIGHT) both float: WEIGHT first; (FLAG, F1, C1, F2, D1, FLAG2): D1, C1, F2, F1, FLAG2, FLAG.
#[test]
fn larger_pixels_first_and_equal_ones_reversed() {
    let spec = |data_type| ColumnSpec {
        name: BString::default(),
        data_type,
        storage: crate::stman::Storage::Indirect,
        shape: None,
        ndim: 1,
        max_length: 0,
    };
    let order = |types: &[DataType]| {
        let columns: Vec<_> = types.iter().map(|&data_type| spec(data_type)).collect();
        let roles: Vec<_> = (0..types.len()).map(Role::Data).collect();
        tile_order(&columns, &roles)
    };
    use DataType::{Bool, Complex, Double, Float};
    assert_eq!(order(&[Float, Float]), [1, 0]);
    assert_eq!(order(&[Bool, Float, Complex, Float, Double, Bool]), [4, 2, 3, 1, 5, 0]);
}
