//! Colours as theme files write them.

/// A colour of a theme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThemeColor {
    /// The terminal's own.
    TerminalDefault,
    /// One of the terminal's 256.
    Indexed(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

impl ThemeColor {
    /// Reads `#rgb`, `#rrggbb`, `oklch(…)` or `okhsl(…)`; the empty text is the terminal's own colour.
    ///
    /// ```
    /// use pi_coding_agent::resources::ThemeColor;
    /// assert_eq!(ThemeColor::parse("#fa0"), Some(ThemeColor::Rgb(255, 170, 0)));
    /// assert_eq!(ThemeColor::parse("oklch(100% 0 0)"), Some(ThemeColor::Rgb(255, 255, 255)));
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() {
            return Some(Self::TerminalDefault);
        }
        if let Some(digits) = text.strip_prefix('#') {
            return hex(digits);
        }
        let (name, inside) = text.strip_suffix(')')?.split_once('(')?;
        let values = numbers(inside)?;
        let [red, green, blue] = match name.to_ascii_lowercase().as_str() {
            "oklch" => {
                let [lightness, chroma, hue] = values;
                let chroma = if chroma.percent { chroma.value / 100.0 * 0.4 } else { chroma.value };
                oklch(lightness.fraction()?, chroma.max(0.0), hue.value)
            }
            "okhsl" => {
                let [hue, saturation, lightness] = values;
                okhsl(hue.value, saturation.fraction()?, lightness.fraction()?)
            }
            _ => return None,
        };
        Some(Self::Rgb(red, green, blue))
    }
}

fn hex(digits: &str) -> Option<ThemeColor> {
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let two = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let one = |at: usize| u8::from_str_radix(digits.get(at..=at)?, 16).ok().map(|digit| digit * 17);
    match digits.len() {
        3 => Some(ThemeColor::Rgb(one(0)?, one(1)?, one(2)?)),
        6 => Some(ThemeColor::Rgb(two(0)?, two(2)?, two(4)?)),
        _ => None,
    }
}

#[derive(Clone, Copy)]
struct Number {
    value: f64,
    percent: bool,
}

impl Number {
    /// From 0 to 1.
    fn fraction(self) -> Option<f64> {
        let fraction = if self.percent { self.value / 100.0 } else { self.value };
        (0.0..=1.0).contains(&fraction).then_some(fraction)
    }
}

fn numbers(text: &str) -> Option<[Number; 3]> {
    let number = |word: &str| {
        let (digits, percent) = word.strip_suffix('%').map_or((word, false), |digits| (digits, true));
        let digits = digits.strip_suffix("deg").unwrap_or(digits);
        let value: f64 = digits.parse().ok()?;
        value.is_finite().then_some(Number { value, percent })
    };
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()).collect();
    let [a, b, c] = words.as_slice() else { return None };
    Some([number(a)?, number(b)?, number(c)?])
}

/// Lightness, chroma and hue of the Oklab space. What is out of the sRGB range is brought in by less chroma.
fn oklch(lightness: f64, chroma: f64, hue: f64) -> [u8; 3] {
    let (sin, cos) = hue.to_radians().sin_cos();
    let linear = |chroma: f64| linear_rgb(lightness, chroma * cos, chroma * sin);
    if in_range(linear(chroma)) {
        return encode(linear(chroma));
    }
    encode(linear(most_chroma(lightness, cos, sin).min(chroma)))
}

/// Oklab → linear sRGB, as its author published it.
fn linear_rgb(lightness: f64, a: f64, b: f64) -> [f64; 3] {
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548 * b).powi(3);
    [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701 * s,
    ]
}

fn in_range(linear: [f64; 3]) -> bool {
    linear.iter().all(|value| (-1e-6..=1.0 + 1e-6).contains(value))
}

fn encode(linear: [f64; 3]) -> [u8; 3] {
    linear.map(|value| {
        let value = value.clamp(0.0, 1.0);
        let encoded = if value <= 0.003_130_8 { 12.92 * value } else { 1.055 * value.powf(1.0 / 2.4) - 0.055 };
        (encoded * 255.0).round() as u8
    })
}

/// The largest chroma that sRGB has at a lightness and a hue, by halving.
fn most_chroma(lightness: f64, cos: f64, sin: f64) -> f64 {
    let (mut inside, mut outside) = (0.0, 0.5);
    for _ in 0..48 {
        let middle = (inside + outside) / 2.0;
        if in_range(linear_rgb(lightness, middle * cos, middle * sin)) { inside = middle } else { outside = middle }
    }
    inside
}

/// Hue (degrees), saturation and lightness (0 to 1) of the Okhsl space.
fn okhsl(hue: f64, saturation: f64, lightness: f64) -> [u8; 3] {
    if lightness >= 1.0 {
        return [255; 3];
    }
    if lightness <= 0.0 {
        return [0; 3];
    }
    let (sin, cos) = hue.to_radians().sin_cos();
    let lightness = from_perceived(lightness);
    let [zero, middle, most] = chroma_anchors(lightness, cos, sin);
    const MIDDLE: f64 = 0.8;
    let chroma = if saturation < MIDDLE {
        let t = saturation / MIDDLE;
        let k1 = MIDDLE * zero;
        let k2 = 1.0 - k1 / middle;
        t * k1 / (1.0 - k2 * t)
    } else {
        let t = (saturation - MIDDLE) / (1.0 - MIDDLE);
        let k1 = (1.0 - MIDDLE) * middle * middle / (MIDDLE * MIDDLE) / zero;
        let k2 = 1.0 - k1 / (most - middle);
        middle + t * k1 / (1.0 - k2 * t)
    };
    encode(linear_rgb(lightness, chroma * cos, chroma * sin))
}

/// Perceived lightness → Oklab's.
fn from_perceived(x: f64) -> f64 {
    const K1: f64 = 0.206;
    const K2: f64 = 0.03;
    const K3: f64 = (1.0 + K1) / (1.0 + K2);
    (x * x + K1 * x) / (K3 * (x + K2))
}

/// The chroma near grey, in the middle and at the edge of sRGB, between which saturation moves.
fn chroma_anchors(lightness: f64, a: f64, b: f64) -> [f64; 3] {
    let most = most_chroma(lightness, a, b);
    let (peak_lightness, peak_chroma) = peak(a, b);
    let (s, t) = (peak_chroma / peak_lightness, peak_chroma / (1.0 - peak_lightness));
    let k = most / (lightness * s).min((1.0 - lightness) * t);
    let s_middle = 0.115_169_93
        + 1.0
            / (7.447_789_70
                + 4.159_012_40 * b
                + a * (-2.195_573_47
                    + 1.751_984_01 * b
                    + a * (-2.137_049_48 - 10.023_010_43 * b
                        + a * (-4.248_945_61 + 5.387_708_19 * b + 4.698_910_13 * a))));
    let t_middle = 0.112_396_42
        + 1.0
            / (1.613_203_20 - 0.681_243_79 * b
                + a * (0.403_706_12
                    + 0.901_481_23 * b
                    + a * (-0.270_879_43
                        + 0.612_239_90 * b
                        + a * (0.002_992_15 - 0.453_995_68 * b - 0.146_618_72 * a))));
    let soft = |x: f64, y: f64, power: i32| (1.0 / (x.powi(-power) + y.powi(-power))).powf(1.0 / f64::from(power));
    let middle = 0.9 * k * soft(lightness * s_middle, (1.0 - lightness) * t_middle, 4);
    let zero = soft(lightness * 0.4, (1.0 - lightness) * 0.8, 2);
    [zero, middle, most]
}

/// Lightness and chroma of the most colourful sRGB colour of a hue, by searching along the lightness.
fn peak(a: f64, b: f64) -> (f64, f64) {
    let chroma = |lightness: f64| most_chroma(lightness, a, b);
    let (mut low, mut high) = (0.0, 1.0);
    // The edge of sRGB rises to the peak and falls from there.
    for _ in 0..60 {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if chroma(left) < chroma(right) { low = left } else { high = right }
    }
    let lightness = (low + high) / 2.0;
    (lightness, chroma(lightness))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_read_as_theme_files_write_them() {
        for (text, color) in [
            ("", ThemeColor::TerminalDefault),
            ("#FFaa00", ThemeColor::Rgb(255, 170, 0)),
            ("oklch(0 0 0)", ThemeColor::Rgb(0, 0, 0)),
            ("OKLCH(62.8% 0.2577 29.23)", ThemeColor::Rgb(255, 0, 0)),
            ("okhsl(0 0% 100%)", ThemeColor::Rgb(255, 255, 255)),
        ] {
            assert_eq!(ThemeColor::parse(text), Some(color), "{text}");
        }
        for text in [
            "#ff",
            "#gggggg",
            "red",
            "oklch(1 2)",
            "oklch(2 0 0)",
            "okhsl(a b c)",
            "rgb(1 2 3)",
            "oklch(nan 0 0)",
            "#éé",
        ] {
            assert_eq!(ThemeColor::parse(text), None, "{text}");
        }
    }

    #[test]
    fn okhsl_gives_the_colours_that_its_author_defined() {
        // Values of other implementations of the space; rounding may differ by one.
        for (text, [red, green, blue]) in [
            ("okhsl(0 50% 50%)", [0xaa, 0x5a, 0x74]),
            ("okhsl(120 100% 70%)", [0x9e, 0xba, 0x00]),
            ("okhsl(234 3% 89%)", [0xde, 0xe0, 0xe1]),
            ("okhsl(20 72% 67%)", [0xea, 0x7f, 0x81]),
            ("okhsl(295 50% 67%)", [0xa7, 0x98, 0xd7]),
            ("okhsl(83 88% 67%)", [0xcd, 0x9a, 0x22]),
            ("okhsl(233 41% 24%)", [0x21, 0x3b, 0x49]),
            ("oklch(0.5 0.1 250)", [0x32, 0x66, 0x9a]),
        ] {
            let Some(ThemeColor::Rgb(r, g, b)) = ThemeColor::parse(text) else { panic!("{text}") };
            let near = |a: u8, b: u8| a.abs_diff(b) <= 1;
            assert!(near(r, red) && near(g, green) && near(b, blue), "{text}: {r} {g} {b}");
        }
    }
}
