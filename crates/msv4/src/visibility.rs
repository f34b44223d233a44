//! The dataset of a partition itself: visibilities, or spectra of single dishes, on the grid.

use ctds::value::{DataType, Shape};
use ctds::{Column, Error, ErrorKind, Result};

use crate::dataset::{Attribute, CellsOf, Content, Dataset, Variable, attributes, measured, quantity};
use crate::field::Fields;
use crate::grid::Grid;
use crate::measures::{observer, scale};
use crate::observation::{observation, processor};
use crate::options::Options;
use crate::place::{FIELDS, Place};
use crate::tables::{MAIN, Subtable};

const SCHEMA_VERSION: &str = "4.0.1";

/// Columns of visibilities with the names of their variables and data groups.
const VISIBILITIES: [(&str, &str, &str); 3] = [
    ("DATA", "VISIBILITY", "base"),
    ("CORRECTED_DATA", "VISIBILITY_CORRECTED", "corrected"),
    ("MODEL_DATA", "VISIBILITY_MODEL", "model"),
];

/// The same of single dishes.
const SPECTRA: [(&str, &str, &str); 1] = [("FLOAT_DATA", "SPECTRUM", "base")];

pub(crate) struct Window<'a> {
    table: Subtable<'a>,
    row: u64,
    /// Whether the channels descend in the table.
    is_reversed: bool,
    /// Ascending, in Hz.
    pub(crate) channels: Vec<f64>,
}

impl<'a> Window<'a> {
    /// `Format` if the row or its channels are missing.
    pub(crate) fn read(table: Option<Subtable<'a>>, row: u64) -> Result<Self> {
        let table = table.filter(|table| row < table.rows);
        let table = table.ok_or_else(|| Error::format(format!("SPECTRAL_WINDOW has no row {row}")))?;
        let channels = table.cell_doubles("CHAN_FREQ", row)?;
        let mut channels =
            channels.ok_or_else(|| Error::format(format!("SPECTRAL_WINDOW: CHAN_FREQ of row {row} is undefined")))?;
        let is_reversed = matches!(channels[..], [first, .., last] if last < first);
        if is_reversed {
            channels.reverse();
        }
        Ok(Window { table, row, is_reversed, channels })
    }

    fn integer(&self, column: &str) -> Result<Option<i64>> {
        Ok(self.table.integers(column)?.and_then(|values| values.get(self.row as usize).copied()))
    }

    fn text(&self, column: &str) -> Result<String> {
        let texts = self.table.texts(column)?.unwrap_or_default();
        Ok(texts.get(self.row as usize).cloned().unwrap_or_default())
    }

    fn coordinate(&self) -> Result<Variable> {
        let observer = observer(self.integer("MEAS_FREQ_REF")?.unwrap_or(-1));
        let spectral =
            || attributes([("type", "spectral_coord".into()), ("units", "Hz".into()), ("observer", observer.into())]);
        let name = self.text("NAME")?;
        let name = if name.is_empty() { "spw" } else { &name };
        let reference = self.table.doubles("REF_FREQUENCY")?.and_then(|all| all.get(self.row as usize).copied());
        let widths = self.table.cell_doubles("CHAN_WIDTH", self.row)?.unwrap_or_default();
        let mut of_axis = spectral();
        of_axis.extend(attributes([
            ("spectral_window_name", format!("{name}_{}", self.row).into()),
            ("spectral_window_intents", vec!["UNSPECIFIED".to_owned()].into()),
            ("reference_frequency", measured(reference.unwrap_or(f64::NAN), spectral())),
            ("channel_width", measured(widths.first().map_or(f64::NAN, |width| width.abs()), quantity("Hz"))),
        ]));
        let group = self.text("FREQ_GROUP_NAME")?;
        if !group.is_empty() {
            of_axis.push(("frequency_group_name".to_owned(), group.into()));
        }
        let axes = [("frequency", self.channels.len())];
        Ok(Variable::doubles("frequency", &axes, self.channels.clone()).with(of_axis))
    }
}

pub(crate) fn is_single_dish(columns: &[ctds::ColumnInfo], grid: &Grid) -> bool {
    let has = |name: &str| columns.iter().any(|info| info.desc.name == name);
    has("FLOAT_DATA") && !has("DATA") && grid.baselines.iter().all(|(first, second)| first == second)
}

/// `Unsupported` if the cells of a column differ in shape, or data are missing.
pub(crate) fn dataset(
    place: &Place<'_>,
    window: &Window<'_>,
    fields: &Fields,
    options: &Options,
    warnings: &mut Vec<String>,
) -> Result<Dataset> {
    if window.is_reversed {
        warnings.push("the channels descend in the table, and ascend here".to_owned());
    }
    let mut main = Main { place, window, warnings };
    let (mut variables, groups) = main.correlated_data(&options.date)?;
    let flags = main.spectral("FLAG", "FLAG")?;
    variables.push(flags.ok_or_else(|| Error::unsupported("the main table has no column FLAG"))?);
    variables.extend(main.weight());
    variables.extend(main.uvw(fields)?);
    variables.extend(main.integrations()?);
    variables.push(main.variable("_row", &[], DataType::Int64, Content::Rows));

    let mut coordinates = vec![main.time(), window.coordinate()?];
    coordinates.extend(main.labels(fields));
    coordinates.extend(main.places());

    let processor = processor(place.tables, place.part.shared.processor)?;
    Ok(Dataset {
        path: place.path.clone(),
        attributes: attributes([
            ("schema_version", SCHEMA_VERSION.into()),
            (
                "creator",
                Attribute::Dictionary(attributes([
                    ("software_name", "h5bridge".into()),
                    ("version", env!("CARGO_PKG_VERSION").into()),
                ])),
            ),
            ("creation_date", options.date.as_str().into()),
            ("type", kind(place.is_single_dish, &processor).into()),
            ("data_groups", groups),
            ("observation_info", observation(place.tables, place.part.shared.observation)?),
            ("processor_info", processor),
        ]),
        coordinates,
        variables,
    })
}

fn kind(is_single_dish: bool, processor: &Attribute) -> &'static str {
    let is_radiometer = matches!(processor, Attribute::Dictionary(pairs)
        if pairs.iter().any(|(_, value)| *value == Attribute::from("RADIOMETER")));
    match (is_single_dish, is_radiometer) {
        (true, _) => "spectrum",
        (false, true) => "radiometer",
        (false, false) => "visibility",
    }
}

/// Makes variables of columns of the main table.
struct Main<'a, 'b> {
    place: &'a Place<'a>,
    window: &'a Window<'a>,
    warnings: &'b mut Vec<String>,
}

impl Main<'_, '_> {
    fn info(&self, column: &str) -> Option<&ctds::ColumnInfo> {
        self.place.tables.columns(MAIN).iter().find(|info| info.desc.name == column)
    }

    fn variable(&self, name: &str, rest: &[(&str, usize)], data_type: DataType, content: Content) -> Variable {
        let grid = &self.place.part.grid;
        let second = if self.place.is_single_dish { "antenna_name" } else { "baseline_id" };
        let axes = [("time", grid.times.len()), (second, grid.baselines.len())];
        let axes = axes.iter().chain(rest);
        Variable {
            name: name.to_owned(),
            axes: axes.clone().map(|(axis, _)| (*axis).to_owned()).collect(),
            shape: axes.map(|(_, extent)| *extent as u64).collect(),
            data_type,
            attributes: Vec::new(),
            content,
        }
    }

    /// A column whose cells have these axes, slowest first; `None` if it is missing.
    fn gridded(&self, column: &str, name: &str, rest: &[(&str, usize)]) -> Result<Option<Variable>> {
        let Some(info) = self.info(column) else { return Ok(None) };
        let data_type = info.data_type();
        let opened = self.place.tables.column(MAIN, column)?;
        let shape = common_shape(&opened, &self.place.part.grid)?;
        let expected: Vec<u64> = rest.iter().map(|(_, extent)| *extent as u64).collect();
        if shape.reversed() != expected {
            let axes: Vec<_> = rest.iter().rev().map(|(axis, extent)| format!("{extent} of {axis}")).collect();
            return Err(Error::unsupported(format!(
                "column {column}: the cells have shape {shape}; expected are {}",
                if axes.is_empty() { "scalars".to_owned() } else { axes.join(", ") }
            )));
        }
        let is_time = column == "TIME_CENTROID";
        let content = CellsOf { column: column.to_owned(), is_reversed: false, is_repeated: false, is_time };
        Ok(Some(self.variable(name, rest, data_type, Content::Cells(content))))
    }

    /// A column of cells of channels and correlations.
    fn spectral(&self, column: &str, name: &str) -> Result<Option<Variable>> {
        let rest = [("frequency", self.window.channels.len()), ("polarization", self.place.correlations.len())];
        let mut found = self.gridded(column, name, &rest)?;
        if let Some(Variable { content: Content::Cells(of), .. }) = &mut found {
            of.is_reversed = self.window.is_reversed;
        }
        Ok(found)
    }

    /// Variables, and the data group of each; `Unsupported` if the base group has no suitable
    /// column.
    fn correlated_data(&mut self, date: &str) -> Result<(Vec<Variable>, Attribute)> {
        let kinds: &[_] = if self.place.is_single_dish { &SPECTRA } else { &VISIBILITIES };
        let (mut variables, mut groups) = (Vec::new(), Vec::new());
        for (column, name, group) in kinds {
            let found = match self.spectral(column, name) {
                Ok(found) => found,
                Err(error) if *group != "base" => {
                    self.warnings.push(format!("{name} is left out: {error}"));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let Some(variable) = found else { continue };
            let units = self.info(column).and_then(|info| info.desc.keywords.strings("QuantumUnits")?.first().cloned());
            let units = units.filter(|units| !units.is_empty()).map_or("Jy".to_owned(), |units| units.to_string());
            variables.push(variable.with(attributes([("units", units.into())])));
            groups.push(self.group(name, group, date));
        }
        if groups.first().is_none_or(|(name, _)| name != "base") {
            let expected = if self.place.is_single_dish { "FLOAT_DATA" } else { "DATA" };
            return Err(Error::unsupported(format!("the main table has no column {expected}, which MSv4 builds on")));
        }
        Ok((variables, Attribute::Dictionary(groups)))
    }

    /// WEIGHT_SPECTRUM, or else WEIGHT for all channels.
    fn weight(&mut self) -> Option<Variable> {
        match self.spectral("WEIGHT_SPECTRUM", "WEIGHT") {
            Ok(Some(found)) => return Some(found),
            Ok(None) => {}
            // as many tables have it that are not calibrated yet
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => self.warnings.push(format!("WEIGHT_SPECTRUM is left out: {error}")),
        }
        match self.gridded("WEIGHT", "WEIGHT", &[("polarization", self.place.correlations.len())]) {
            Ok(found) => {
                let mut found = found?;
                found.axes.insert(2, "frequency".to_owned());
                found.shape.insert(2, self.window.channels.len() as u64);
                if let Content::Cells(of) = &mut found.content {
                    of.is_repeated = true;
                }
                Some(found)
            }
            Err(error) => {
                self.warnings.push(format!("WEIGHT is left out: {error}"));
                None
            }
        }
    }

    /// `None` for single dishes.
    fn uvw(&self, fields: &Fields) -> Result<Option<Variable>> {
        if self.place.is_single_dish {
            return Ok(None);
        }
        let of_uvw =
            attributes([("type", "uvw".into()), ("units", "m".into()), ("frame", fields.frame_of_uvw().into())]);
        Ok(self.gridded("UVW", "UVW", &[("uvw_label", 3)])?.map(|uvw| uvw.with(of_uvw)))
    }

    /// Centre, exposure and length of each integration, the length where it varies.
    fn integrations(&self) -> Result<Vec<Variable>> {
        let of_time = attributes([
            ("type", "time".into()),
            ("units", "s".into()),
            ("scale", self.place.scale.as_str().into()),
            ("format", "unix".into()),
        ]);
        let mut found = Vec::new();
        let centroid = self.gridded("TIME_CENTROID", "TIME_CENTROID", &[])?;
        found.extend(centroid.map(|centroid| centroid.with(of_time)));
        let exposure = self.gridded("EXPOSURE", "EFFECTIVE_INTEGRATION_TIME", &[])?;
        found.extend(exposure.map(|exposure| exposure.with(quantity("s"))));
        if self.place.part.varying.contains(&"INTERVAL") {
            let interval = self.gridded("INTERVAL", "INTEGRATION_TIME", &[])?;
            found.extend(interval.map(|interval| interval.with(quantity("s"))));
        }
        Ok(found)
    }

    fn group(&self, variable: &str, name: &str, date: &str) -> (String, Attribute) {
        let mut of_group =
            attributes([("correlated_data", variable.into()), ("flag", "FLAG".into()), ("weight", "WEIGHT".into())]);
        if !self.place.is_single_dish {
            of_group.push(("uvw".to_owned(), "UVW".into()));
        }
        of_group.extend(attributes([
            ("field_and_source", FIELDS.into()),
            ("description", format!("Data group of {variable}, from a MeasurementSet of version 2").into()),
            ("date", date.into()),
        ]));
        (name.to_owned(), Attribute::Dictionary(of_group))
    }

    fn time(&self) -> Variable {
        let mut time = self.place.times("time", &self.place.part.grid.times);
        let integration = self.place.part.interval.unwrap_or(f64::NAN);
        time.attributes.push(("integration_time".to_owned(), measured(integration, quantity("s"))));
        time
    }

    /// Names of the correlations, and of the field and the scan at each time.
    fn labels(&self, fields: &Fields) -> [Variable; 3] {
        let (part, correlations) = (&self.place.part, &self.place.correlations);
        let times = [("time", part.grid.times.len())];
        let modes = part.shared.mode.as_deref().filter(|mode| !mode.is_empty()).unwrap_or("UNSPECIFIED");
        let intents: Vec<_> = modes.split(',').map(str::to_owned).collect();
        let scans = part.scans.iter().map(ToString::to_string);
        [
            Variable::texts("polarization", &[("polarization", correlations.len())], correlations.clone()),
            Variable::texts("field_name", &times, fields.names_of(&part.fields)),
            Variable::texts("scan_name", &times, scans).with(attributes([("scan_intents", intents.into())])),
        ]
    }

    /// The coordinates of the second axis: baselines, or antennas of single dishes.
    fn places(&self) -> Vec<Variable> {
        let antennas = &self.place.antennas;
        let baselines = &self.place.part.grid.baselines;
        let name = |id: i32| antennas.place(i64::from(id)).map_or("", |place| antennas.names[place].as_str());
        if self.place.is_single_dish {
            let names: Vec<_> = baselines.iter().map(|(antenna, _)| name(*antenna)).collect();
            return vec![Variable::labels("antenna_name", &names)];
        }
        let axes = [("baseline_id", baselines.len())];
        let ids = (0..baselines.len() as i64).collect();
        let first = baselines.iter().map(|(first, _)| name(*first));
        let second = baselines.iter().map(|(_, second)| name(*second));
        vec![
            Variable::new("baseline_id", &axes, ctds::value::Values::Int64(ids)),
            Variable::texts("baseline_antenna1_name", &axes, first),
            Variable::texts("baseline_antenna2_name", &axes, second),
            Variable::labels("uvw_label", &["u", "v", "w"]),
        ]
    }
}

/// First axis fastest; `NotFound` if a cell is undefined, `Unsupported` if shapes differ.
fn common_shape(column: &Column<'_>, grid: &Grid) -> Result<Shape> {
    if column.info().desc.kind == ctds::ColumnKind::Scalar {
        return Ok(Shape::scalar());
    }
    let name = &column.info().desc.name;
    let hull = grid.runs().reduce(|hull, run| hull.start.min(run.start)..hull.end.max(run.end));
    let hull = hull.ok_or_else(|| Error::not_found(format!("column {name} has no cells")))?;
    // rows between those of the grid may have other shapes
    if let Ok(shape) = column.shape(hull) {
        return Ok(shape);
    }
    let mut first: Option<(u64, Shape)> = None;
    for run in grid.runs() {
        let row = run.start;
        let shape = column.shape(run).map_err(|error| match error.kind() {
            ErrorKind::Usage => Error::unsupported(format!("{error}; cells of one partition have one shape")),
            _ => error,
        })?;
        let (of, other) = first.get_or_insert_with(|| (row, shape.clone()));
        if *other != shape {
            return Err(Error::unsupported(format!(
                "column {name}: the cell in row {row} has shape {shape}, that in row {of} {other}; cells of one \
                 partition have one shape"
            )));
        }
    }
    Ok(first.map(|(_, shape)| shape).unwrap_or_default())
}

/// Time scale of the column TIME.
pub(crate) fn time_scale(columns: &[ctds::ColumnInfo], warnings: &mut Vec<String>) -> String {
    let time = columns.iter().find(|info| info.desc.name == "TIME");
    let found = scale(time.and_then(|info| info.desc.keywords.record("MEASINFO")));
    if found.is_none() {
        warnings.push("the schema has no scale for the reference of TIME; utc is given".to_owned());
    }
    found.unwrap_or("utc").to_owned()
}
