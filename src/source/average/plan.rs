//! The plan by which the main table of a MeasurementSet is averaged: which rows become one, how
//! each column is computed, where flags and weights are.

use super::averaging::{Averaging, fewer_channels};
use super::input::Input;
use super::rows::{AveragedRows, First, Nothing};
use super::rules::{Rule, probe, shapes};
use super::samples::AveragedSamples;
use super::time_bins::{self, Bins, KeyCells, Numbers};
use crate::error::{Context, Error, Result, ResultExt};
use crate::progress::Progress;
use crate::table::{ColumnCells, ColumnInfo};
use crate::value::Shape;

const NEEDED: [&str; 4] = ["TIME", "ANTENNA1", "ANTENNA2", "DATA_DESC_ID"];

/// Opens the cells of a column of the table to be averaged.
pub(super) type OpenCells<'a, 'b> = &'b dyn Fn(usize) -> Result<Box<dyn ColumnCells + 'a>>;

#[derive(Debug)]
pub(super) struct AveragePlan {
    averaging: Averaging,
    bins: Bins,
    rules: Vec<Rule>,
    columns: Vec<ColumnInfo>,
    /// Columns of the table to be averaged: FLAG.
    flag: Option<usize>,
    flag_row: Option<usize>,
    spectrum: Option<usize>,
    weight: Option<usize>,
    /// A column with the shape `[corr, chan]` of the samples: FLAG, else visibilities.
    samples: Option<usize>,
}

impl AveragePlan {
    /// `Usage` if this is not the main table of a MeasurementSet; `Limit` beyond `max_memory`
    /// bytes.
    pub(super) fn new<'a>(
        averaging: Averaging,
        infos: &[ColumnInfo],
        rows: u64,
        open: OpenCells<'a, '_>,
        max_memory: u64,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let find = |name: &str| infos.iter().position(|info| info.desc.name == name);
        if let Some(missing) = NEEDED.iter().find(|name| find(name).is_none()) {
            let message = format!("averaging is for MeasurementSets: the main table has no column {missing}");
            return Err(Error::usage(message));
        }
        let factor = averaging.channel_factor();
        let named: Vec<Option<Rule>> = infos.iter().map(Rule::by_name).collect();
        let bins = match averaging.seconds() {
            None => Bins::EachRow(rows),
            Some(seconds) => {
                Bins::Time(time_bins::find(&keys(infos, &named, open)?, rows, seconds, max_memory, progress)?)
            }
        };
        let is = |rule: Rule| named.iter().position(|found| *found == Some(rule));
        let flag = is(Rule::Flag);
        // the shape of samples: that of flags, or else of the first column of visibilities
        let candidates =
            flag.into_iter().chain(["DATA", "FLOAT_DATA", "CORRECTED_DATA", "MODEL_DATA"].into_iter().filter_map(find));
        let mut samples = None;
        for index in candidates {
            let Ok(cells) = open(index) else { continue };
            if probe(&*cells, rows).is_some_and(|shape| shape.len() == 2) {
                samples = Some(index);
                break;
            }
        }
        let mut rules = Vec::new();
        for (index, (info, named)) in infos.iter().zip(&named).enumerate() {
            let rule = match (named, open(index)) {
                (Some(rule), _) => *rule,
                // the reason is known when it is read
                (None, Err(_)) => Rule::First,
                (None, Ok(cells)) => {
                    let shapes = match &samples {
                        Some(index) => shapes(&*cells, &*open(*index)?, rows),
                        None => Vec::new(),
                    };
                    Rule::by_cells(info, &shapes, factor)
                }
            };
            rules.push(rule);
        }
        let columns = infos.iter().zip(&rules).map(|(info, rule)| after(info, *rule, factor)).collect();
        let (spectrum, weight, flag_row) = (is(Rule::WeightSpectrum), is(Rule::Weight), is(Rule::FlagRow));
        let mut plan = AveragePlan { averaging, bins, rules, columns, flag, flag_row, spectrum, weight, samples };
        plan.forget_impossible();
        Ok(plan)
    }

    /// Columns without the samples or weights that their rule needs get `Rule::First`.
    fn forget_impossible(&mut self) {
        let (no_samples, no_weights) = (self.samples.is_none(), self.spectrum.is_none() && self.weight.is_none());
        for rule in &mut self.rules {
            let of_weights = matches!(rule, Rule::Sigma | Rule::SigmaSpectrum);
            if (no_samples && matches!(rule, Rule::FlagRow | Rule::Weight | Rule::Sigma)) || (no_weights && of_weights)
            {
                *rule = Rule::First;
            }
        }
    }

    pub(crate) fn rows(&self) -> u64 {
        self.bins.len()
    }

    pub(crate) fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    pub(super) fn averaging(&self) -> Averaging {
        self.averaging
    }

    /// Rows are not averaged in time.
    pub(crate) fn keeps_rows(&self) -> bool {
        matches!(self.bins, Bins::EachRow(_))
    }

    fn named(&self, wanted: impl Fn(Rule) -> bool) -> Vec<String> {
        let columns = self.columns.iter().zip(&self.rules).filter(|(_, rule)| wanted(**rule));
        columns.map(|(info, _)| String::from_utf8_lossy(&info.desc.name).into_owned()).collect()
    }

    /// Columns with the value of the first row of a bin; none if rows are not averaged in time.
    pub(super) fn first_values(&self) -> Vec<String> {
        if self.keeps_rows() { Vec::new() } else { self.named(|rule| rule == Rule::First) }
    }

    /// Columns without a defined cell after averaging.
    pub(super) fn left_undefined(&self) -> Vec<String> {
        self.named(|rule| rule == Rule::Undefined)
    }

    /// WEIGHT_SPECTRUM, else WEIGHT.
    pub(super) fn weights(&self) -> Option<String> {
        let index = self.spectrum.or(self.weight)?;
        Some(String::from_utf8_lossy(&self.columns[index].desc.name).into_owned())
    }

    /// Averaged cells; `open` opens those of the original table.
    pub(super) fn cells<'a>(&'a self, index: usize, open: OpenCells<'a, '_>) -> Result<Box<dyn ColumnCells + 'a>> {
        let (rule, factor) = (self.rules[index], self.averaging.channel_factor());
        let data_type = self.columns[index].data_type();
        let first = |cells| -> Box<dyn ColumnCells + 'a> { Box::new(First { bins: &self.bins, cells }) };
        match rule {
            Rule::LeftOut => Err(Error::unsupported("it has channels, and no rule for their average is known")),
            Rule::Undefined => Ok(Box::new(Nothing)),
            _ if rule.is_of_samples() => {
                let source = if rule.has_channels() { index } else { self.samples.unwrap_or(index) };
                let input = self.input(source, open)?;
                Ok(Box::new(AveragedSamples::new(input, rule, factor, data_type)))
            }
            Rule::Time | Rule::RowMean | Rule::Interval | Rule::Exposure if !self.keeps_rows() => {
                let input = self.input(index, open)?;
                Ok(Box::new(AveragedRows { input, rule }))
            }
            _ if self.keeps_rows() => open(index),
            _ => Ok(first(open(index)?)),
        }
    }

    fn input<'a>(&'a self, index: usize, open: OpenCells<'a, '_>) -> Result<Input<'a>> {
        let other = |number: Option<usize>| -> Result<Option<Box<dyn ColumnCells + 'a>>> {
            let Some(number) = number else { return Ok(None) };
            open(number).map(Some).with_context(|| Context::column(&self.columns[number].desc.name))
        };
        Ok(Input {
            bins: &self.bins,
            cells: open(index)?,
            data_type: self.columns[index].data_type(),
            flags: other(self.flag)?,
            flag_row: other(self.flag_row)?,
            spectrum: other(self.spectrum)?,
            weight: other(self.weight)?,
        })
    }
}

fn keys<'a>(infos: &[ColumnInfo], rules: &[Option<Rule>], open: OpenCells<'a, '_>) -> Result<KeyCells<'a>> {
    let opened = |wanted: Rule| -> Result<Option<Box<dyn ColumnCells + 'a>>> {
        rules.iter().position(|rule| *rule == Some(wanted)).map(open).transpose()
    };
    let numbers = |wanted: bool| -> Result<Vec<Numbers<'a>>> {
        let of_kind = |(_, rule): &(usize, &Option<Rule>)| **rule == Some(Rule::Key { of_baseline: wanted });
        let columns = rules.iter().enumerate().filter(of_kind);
        columns.map(|(index, _)| Ok(Numbers { cells: open(index)?, data_type: infos[index].data_type() })).collect()
    };
    let time = opened(Rule::Time)?.ok_or_else(|| Error::usage("averaging needs a column TIME of doubles"))?;
    Ok(KeyCells { time, interval: opened(Rule::Interval)?, baseline: numbers(true)?, others: numbers(false)? })
}

/// A fixed shape `[corr, chan]` has fewer channels.
fn after(info: &ColumnInfo, rule: Rule, factor: u64) -> ColumnInfo {
    let mut info = info.clone();
    let is_cell = |shape: &Shape| shape.len() == 2;
    if rule.has_channels() {
        if let Some(shape) = info.shape.take_if(|shape| is_cell(shape)) {
            info.shape = Some(fewer_channels(&shape, factor));
        }
        if is_cell(&info.desc.shape) {
            info.desc.shape = fewer_channels(&info.desc.shape, factor);
        }
    }
    info
}
