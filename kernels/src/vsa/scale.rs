//! Which item stands for a quantity or an angle, and back.
//!
//! Owns the two mappings between values and item numbers: along a line for level and thermometer
//! memories, around a circle for circular ones. There is no item, `None`, for a value that is not a
//! number, a range without length or a memory without items.

/// The item for `value`, of `items` spread evenly over `low..=high`. A value beyond the range has the
/// item at its end.
///
/// ```
/// use warm_kernels::vsa::value_to_item;
/// assert_eq!(value_to_item(21.4, 0.0, 40.0, 41), Some(21));
/// assert_eq!(value_to_item(99.0, 0.0, 40.0, 41), Some(40));
/// assert_eq!(value_to_item(f64::NAN, 0.0, 40.0, 41), None);
/// ```
pub fn value_to_item(value: f64, low: f64, high: f64, items: usize) -> Option<usize> {
    let length = length(low, high, items)?;
    if value.is_nan() {
        return None;
    }
    let last = items - 1;
    let share = ((value.clamp(low, high) - low) / length).clamp(0.0, 1.0);
    Some(((share * last as f64).round() as usize).min(last))
}

/// The value in `low..=high` that `item` of `items` stands for; `low` where it is the only one.
pub fn item_to_value(item: usize, low: f64, high: f64, items: usize) -> Option<f64> {
    let length = length(low, high, items)?;
    let share = item as f64 / (items - 1).max(1) as f64;
    (item < items).then(|| (low + share * length).min(high))
}

/// The item for `angle`, of `items` spread evenly around a circle of circumference `period`: 24 for
/// hours, `TAU` for radians. Whole turns make no difference.
///
/// ```
/// use warm_kernels::vsa::angle_to_item;
/// assert_eq!(angle_to_item(-1.0, 24.0, 24), Some(23));
/// assert_eq!(angle_to_item(23.7, 24.0, 24), Some(0));
/// ```
pub fn angle_to_item(angle: f64, period: f64, items: usize) -> Option<usize> {
    let period = length(0.0, period, items)?;
    if !angle.is_finite() {
        return None;
    }
    let share = angle.rem_euclid(period) / period;
    // A remainder next to nothing below zero rounds to a whole turn: the first item.
    Some((share * items as f64).round() as usize % items)
}

/// The angle in `0..period` that `item` of `items` stands for.
pub fn item_to_angle(item: usize, period: f64, items: usize) -> Option<f64> {
    let period = length(0.0, period, items)?;
    (item < items).then(|| item as f64 / items as f64 * period)
}

/// The length of a range that has one.
fn length(low: f64, high: f64, items: usize) -> Option<f64> {
    let length = high - low;
    (items > 0 && length > 0.0 && length.is_finite()).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_and_values_are_each_others_inverse() {
        for items in [1, 2, 7, 100] {
            for item in 0..items {
                let value = item_to_value(item, -3.0, 9.5, items).unwrap();
                assert_eq!(value_to_item(value, -3.0, 9.5, items), Some(item));
                let angle = item_to_angle(item, 360.0, items).unwrap();
                for turns in [-720.0, 0.0, 360.0] {
                    assert_eq!(angle_to_item(angle + turns, 360.0, items), Some(item));
                }
            }
            assert_eq!(item_to_value(items, -3.0, 9.5, items), None);
            assert_eq!(item_to_angle(items, 360.0, items), None);
        }
    }

    #[test]
    fn there_is_no_item_where_there_is_no_answer() {
        for (low, high) in
            [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (f64::MIN, f64::MAX)]
        {
            assert_eq!(value_to_item(1.0, low, high, 5), None);
            assert_eq!(item_to_value(0, low, high, 5), None);
        }
        assert_eq!(value_to_item(0.5, 0.0, 1.0, 0), None);
        assert_eq!(value_to_item(f64::INFINITY, 0.0, 1.0, 5), Some(4));
        assert_eq!(value_to_item(f64::NEG_INFINITY, 0.0, 1.0, 5), Some(0));
        assert_eq!(angle_to_item(f64::INFINITY, 1.0, 5), None);
        assert_eq!(angle_to_item(1.0, -1.0, 5), None);
        assert_eq!(angle_to_item(-1e-300, 1.0, 5), Some(0));
    }
}
