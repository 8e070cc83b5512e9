//! One measured figure, its goal, and how it is shown.

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// One figure of a bench.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    name: String,
    value: f64,
    unit: &'static str,
    floor: Option<f64>,
    goal: Option<Goal>,
}

/// What a figure must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// The ratio to the floor, at most.
    Ratio(f64),
    /// The value itself, at most, in the row's unit.
    Value(f64),
}

impl Row {
    /// A figure without floor and goal. Names are `topic.what`, so that each can be found.
    pub fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, floor: None, goal: None }
    }

    /// Sets what the figure is held against, in the same unit.
    pub fn floor(mut self, floor: f64) -> Self {
        self.floor = Some(floor);
        self
    }

    /// Sets what it must reach.
    pub fn goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    fn ratio(&self) -> Option<f64> {
        self.floor.map(|floor| self.value / floor)
    }

    /// Whether the goal is reached; `None` without one.
    pub fn holds(&self) -> Option<bool> {
        match self.goal? {
            Goal::Ratio(most) => Some(self.ratio()? <= most),
            Goal::Value(most) => Some(self.value <= most),
        }
    }

    fn goal_text(&self) -> Option<String> {
        self.goal.map(|goal| match goal {
            Goal::Ratio(most) => format!("ratio <= {most}"),
            Goal::Value(most) => format!("value <= {}", figure(most)),
        })
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_struct("Row", 7)?;
        row.serialize_field("name", &self.name)?;
        row.serialize_field("value", &self.value)?;
        row.serialize_field("unit", self.unit)?;
        row.serialize_field("floor", &self.floor)?;
        row.serialize_field("ratio", &self.ratio())?;
        row.serialize_field("goal", &self.goal_text())?;
        row.serialize_field("holds", &self.holds())?;
        row.end()
    }
}

/// The rows as an aligned table.
pub fn table(rows: &[Row]) -> String {
    let head = ["name", "value", "unit", "floor", "ratio", "goal", "holds"].map(str::to_owned);
    let mut lines = vec![head];
    lines.extend(rows.iter().map(|row| {
        let dash = || "-".to_owned();
        [
            row.name.clone(),
            figure(row.value),
            row.unit.to_owned(),
            row.floor.map_or_else(dash, figure),
            row.ratio().map_or_else(dash, |ratio| format!("{ratio:.2}")),
            row.goal_text().unwrap_or_else(dash),
            row.holds().map_or_else(dash, |holds| if holds { "yes".to_owned() } else { "NO".to_owned() }),
        ]
    }));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut table = String::new();
    for line in &lines {
        let cells: Vec<String> = line
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                1 | 3 | 4 => format!("{cell:>width$}"),
                _ => format!("{cell:<width$}"),
            })
            .collect();
        table.push_str(cells.join("  ").trim_end());
        table.push('\n');
    }
    table
}

/// A number with as many digits as say something.
fn figure(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn a_row_is_written_with_its_verdict() {
        let row = Row::new("start.request", 30.0, "ms").floor(20.0).goal(Goal::Ratio(3.0));
        let expected = json!({
            "name": "start.request", "value": 30.0, "unit": "ms", "floor": 20.0, "ratio": 1.5,
            "goal": "ratio <= 3", "holds": true,
        });
        assert_eq!(serde_json::to_value(&row).unwrap(), expected);
        let missed = Row::new("memory", 30.0, "MB").goal(Goal::Value(20.0));
        assert_eq!(missed.holds(), Some(false));
        assert_eq!(Row::new("plain", 1.0, "s").holds(), None);
    }

    #[test]
    fn the_table_lines_up() {
        let rows =
            [Row::new("a.b", 1234.0, "ns").floor(617.0).goal(Goal::Ratio(2.0)), Row::new("longer.name", 1.5, "s")];
        let expected = "\
name         value  unit  floor  ratio  goal        holds
a.b           1234  ns      617   2.00  ratio <= 2  yes
longer.name   1.50  s         -      -  -           -
";
        assert_eq!(table(&rows), expected);
    }
}
