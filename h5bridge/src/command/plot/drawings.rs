//! Plots to draw, and the panels that are read for them.

use std::path::Path;

use anyhow::Result;
use ctds_hdf5::{Error, ErrorKind};
use ms_look::{Frame, Group, Kind, Lines, Request, Session};

use super::panel::Panel;
use super::read;
use crate::args::Global;
use crate::interrupt::Stop;

/// Most plots and lines of plots that are made at once.
const MAX_REQUESTS: usize = 256;

/// One plot to draw, and the lines that `--by` splits it into.
#[derive(Clone)]
pub(super) struct Drawing {
    pub(super) kind: Kind,
    pub(super) parameters: Vec<(String, String)>,
    pub(super) by: Option<String>,
    /// Name of the group of `--panels` that it shows; empty if it shows all.
    pub(super) group: String,
}

/// Requests for the frames of a drawing.
enum Reading {
    One(Box<Request>),
    Lines(Lines),
}

impl Reading {
    fn requests(&self) -> Vec<Request> {
        match self {
            Reading::One(request) => vec![(**request).clone()],
            Reading::Lines(lines) => lines.requests().cloned().collect(),
        }
    }
}

impl Drawing {
    /// A drawing for each group that `panels` names.
    pub(super) fn each(self, panels: &str, session: &Session) -> Result<Vec<Self>> {
        if self.by.as_deref() == Some(panels) {
            let message = format!("--by and --panels are both {panels}; the lines of a panel are of something else");
            return Err(Error::new(ErrorKind::Usage, message).into());
        }
        let of_group = |group: Group| {
            let parameters = group.query(&self.parameters);
            Drawing { parameters, group: group.name, ..self.clone() }
        };
        Ok(Group::all(panels, session, &self.parameters)?.into_iter().map(of_group).collect())
    }

    /// `--by` gives one line for each antenna, baseline, field, scan or spectral window with data.
    fn reading(&self, session: &Session) -> Result<Reading> {
        let kind = self.kind.name();
        Ok(match &self.by {
            Some(by) => Reading::Lines(Lines::of(kind, by, session, &self.parameters)?),
            None => Reading::One(Box::new(Request::parse(kind, &self.parameters)?)),
        })
    }
}

/// Whether no row or value is selected.
fn is_empty(frame: &Frame) -> bool {
    frame.values().is_none_or(|values| values.shape.contains(&0))
}

/// The panels of all drawings, whose rows are read at once; of groups without data there are none.
pub(super) fn read_panels(
    drawings: Vec<Drawing>,
    session: &mut Session,
    reading: (&Path, &Global, &Stop),
) -> Result<Vec<Panel>> {
    let readings: Vec<Reading> = drawings.iter().map(|drawing| drawing.reading(session)).collect::<Result<_>>()?;
    let requests: Vec<Request> = readings.iter().flat_map(Reading::requests).collect();
    if requests.len() > MAX_REQUESTS {
        let message = format!(
            "--panels and --by make {} lines; {MAX_REQUESTS} can be drawn: select fewer with --antenna, --baseline, \
             --field, --scan or --spw",
            requests.len()
        );
        return Err(Error::new(ErrorKind::Usage, message).into());
    }
    session.set_selections(requests.len());
    let mut frames = read::frames(session, &requests, reading)?.into_iter();
    let mut panels = Vec::new();
    for (drawing, of_drawing) in drawings.iter().zip(&readings) {
        let is_group = !drawing.group.is_empty();
        let frames: Vec<Frame> = frames.by_ref().take(of_drawing.requests().len()).collect();
        if is_group && frames.iter().all(is_empty) {
            continue;
        }
        let mut frame = match of_drawing {
            Reading::One(_) => frames.into_iter().next(),
            Reading::Lines(lines) => Some(lines.join(frames)?),
        };
        if let Some(frame) = frame.as_mut().filter(|_| is_group) {
            frame.plot.title = format!("{}: {}", drawing.group, frame.plot.title);
        }
        panels.extend(frame.map(|frame| Panel::new(frame, reading.0)));
    }
    Ok(panels)
}
