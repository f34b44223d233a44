//! A picture as a list of shapes, which is written as SVG or turned into pixels. Positions are in
//! pixels from the upper left corner; y points downwards.

use super::palette::Colour;

/// Shapes are in order from back to front.
pub(super) struct Scene {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) shapes: Vec<Shape>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// The point of a text that is at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Normal,
    Title,
}

/// A shape of a picture. `class` is its class in SVG.
pub(super) enum Shape {
    Rectangle {
        area: Area,
        colour: Colour,
        class: &'static str,
    },
    Line {
        points: Vec<(f64, f64)>,
        width: f64,
        colour: Colour,
        class: &'static str,
        /// Words that a viewer of SVG shows when the pointer is on the line.
        title: String,
    },
    Dots {
        points: Vec<(f64, f64)>,
        radius: f64,
        colour: Colour,
        class: &'static str,
        title: String,
    },
    /// Positioned by its `anchor`, at half its height. A `turned` text reads from below upwards.
    Text {
        at: (f64, f64),
        anchor: Anchor,
        size: Size,
        turned: bool,
        text: String,
        class: &'static str,
    },
    /// Stretched over an area; red, green and blue of each pixel, the upper line first.
    Image {
        area: Area,
        columns: usize,
        pixels: Vec<u8>,
    },
}

impl Area {
    pub(super) fn new(left: f64, right: f64, top: f64, bottom: f64) -> Self {
        Area { left, right, top, bottom }
    }

    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(super) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    pub(super) fn middle(&self) -> (f64, f64) {
        ((self.left + self.right) / 2., (self.top + self.bottom) / 2.)
    }

    pub(super) fn holds(&self, other: &Area) -> bool {
        self.left <= other.left && other.right <= self.right && self.top <= other.top && other.bottom <= self.bottom
    }

    pub(super) fn meets(&self, other: &Area) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    /// Position of a fraction of the width from the left edge.
    pub(super) fn x(&self, fraction: f64) -> f64 {
        self.left + fraction * self.width()
    }

    /// Position of a fraction of the height from the lower edge.
    pub(super) fn y(&self, fraction: f64) -> f64 {
        self.bottom - fraction * self.height()
    }
}

impl Scene {
    pub(super) fn rectangle(&mut self, area: Area, colour: Colour, class: &'static str) {
        self.shapes.push(Shape::Rectangle { area, colour, class });
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: Colour, class: &'static str) {
        self.shapes.push(Shape::Line { points: vec![from, to], width: 1., colour, class, title: String::new() });
    }

    pub(super) fn text(&mut self, at: (f64, f64), anchor: Anchor, text: &str, class: &'static str) {
        self.shapes.push(Shape::Text { at, anchor, size: Size::Normal, turned: false, text: text.to_owned(), class });
    }
}
