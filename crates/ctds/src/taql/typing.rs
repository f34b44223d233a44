//! Operations on typed expressions: types that operands have together, units that they share.

use super::block::Block;
use super::node::{Kind, Map, Member, Node, Op, Reduction, Zip};
use super::unit::Unit;
use crate::error::{Error, Result};
use crate::value::Element;

impl Node {
    pub(super) fn constant<T: Element>(kind: Kind, value: T) -> Node {
        Node::new(Op::Constant(Block::scalars(vec![value])), kind, false, true)
    }

    pub(super) fn new(op: Op, kind: Kind, is_array: bool, is_constant: bool) -> Node {
        Node { op, kind, is_array, is_constant, unit: Unit::default() }
    }

    pub(super) fn in_unit(self, unit: Unit) -> Node {
        Node { unit, ..self }
    }

    /// Numbers become numbers of a wider type; the unit stays. Some operations, as in casacore,
    /// then compute with the wider type: a negative 0 may become of it.
    pub(super) fn cast(mut self, kind: Kind) -> Node {
        if self.kind == kind || !self.kind.is_number() {
            return self;
        }
        let is_complex = self.kind == Kind::Int && kind == Kind::Complex;
        let operands: Vec<&mut Node> = match &mut self.op {
            _ if self.is_constant => Vec::new(),
            Op::Map(Map::Negative, operand) | Op::Index { array: operand, .. } => vec![operand],
            Op::Stack(members) => members.iter_mut().flat_map(Member::nodes).collect(),
            Op::Map(Map::Square | Map::Cube, operand) | Op::Rearrange(_, operand, _) if is_complex => vec![operand],
            Op::Reduce(Reduction::Sum | Reduction::Product | Reduction::SumSquares, operand) if is_complex => {
                vec![operand]
            }
            Op::ReduceAxes { operands, .. } if is_complex => vec![&mut operands[0]],
            Op::Zip(Zip::Min | Zip::Max, left, right) if is_complex => vec![left, right],
            Op::Choose(operands) if is_complex => operands[1..].iter_mut().collect(),
            _ => Vec::new(),
        };
        if operands.is_empty() {
            let (is_array, is_constant, unit) = (self.is_array, self.is_constant, self.unit.clone());
            return Node { op: Op::Cast(Box::new(self)), kind, is_array, is_constant, unit };
        }
        for operand in operands {
            *operand = operand.clone().cast(kind);
        }
        Node { kind, ..self }
    }

    /// Adds a missing unit, or converts to `unit`, integers to floats; `Unsupported` if impossible.
    pub(super) fn adapted(self, unit: &Unit) -> Result<Node> {
        let factor = self.unit.factor(unit)?;
        if factor == 1.0 {
            return Ok(self.in_unit(unit.clone()));
        }
        let node = if self.kind == Kind::Int { self.cast(Kind::Double) } else { self };
        let (kind, is_array, is_constant) = (node.kind, node.is_array, node.is_constant);
        Ok(Node { op: Op::Scale(factor, Box::new(node)), kind, is_array, is_constant, unit: unit.clone() })
    }

    /// Without a unit.
    pub(super) fn map(self, function: Map, kind: Kind) -> Node {
        let (is_array, is_constant) = (self.is_array, self.is_constant);
        Node::new(Op::Map(function, Box::new(self)), kind, is_array, is_constant)
    }

    /// The operation on operands of equal types, without a unit.
    pub(super) fn zip(function: Zip, left: Node, right: Node, kind: Kind) -> Node {
        let (is_array, is_constant) = (left.is_array || right.is_array, left.is_constant && right.is_constant);
        Node::new(Op::Zip(function, Box::new(left), Box::new(right)), kind, is_array, is_constant)
    }
}

/// Type in which two values are compared or added; `Unsupported` without one.
pub(super) fn common(left: Kind, right: Kind) -> Result<Kind> {
    if left == right {
        Ok(left)
    } else if left.is_number() && right.is_number() {
        Ok(left.max(right))
    } else {
        Err(Error::unsupported(format!("{left} and {right} have no common type")))
    }
}

/// The unit of the first operand that has one, for all; `Unsupported` if one cannot be converted.
pub(super) fn share_unit<'a>(nodes: impl Iterator<Item = &'a mut Node>) -> Result<Unit> {
    let mut nodes: Vec<&mut Node> = nodes.collect();
    let Some(unit) = nodes.iter().map(|node| &node.unit).find(|unit| !unit.is_none()).cloned() else {
        return Ok(Unit::default());
    };
    for node in &mut nodes {
        **node = (*node).clone().adapted(&unit)?;
    }
    Ok(unit)
}

impl Member {
    pub(super) fn nodes(&mut self) -> Vec<&mut Node> {
        match self {
            Member::One(node) => vec![node],
            Member::Range(parts, _) => parts.iter_mut().flatten().collect(),
            Member::Interval(ends, _) => ends.iter_mut().flatten().collect(),
            Member::Around(pair) => pair.iter_mut().collect(),
        }
    }
}

pub(super) fn stack(mut members: Vec<Member>, kind: Kind) -> Node {
    let is_constant = members.iter_mut().flat_map(Member::nodes).all(|node| node.is_constant);
    Node::new(Op::Stack(members), kind, true, is_constant)
}
