//! Rotation and mirroring of pictures before they are shown.

/// A turn, with or without a mirror.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Turn {
    /// Degrees clockwise: 0, 90, 180 or 270.
    pub(in super::super) degrees: u32,
    /// Whether left and right are exchanged before that.
    pub(in super::super) is_mirrored: bool,
}

impl Turn {
    /// The turn by so many degrees counterclockwise, as ffmpeg states it.
    pub(super) fn counterclockwise(degrees: i32) -> Self {
        let clockwise = u32::try_from((-degrees).rem_euclid(360)).unwrap_or(0);
        Self {
            degrees: (clockwise + 45) / 90 % 4 * 90,
            is_mirrored: false,
        }
    }

    /// The turn of a display matrix: what its first two rows, of three numbers each, do to a picture (ISO/IEC 14496-12, 6.2.2).
    pub(in super::super) const fn of_matrix([a, b, _, c, d, _]: [i64; 6]) -> Self {
        // A pixel at (x, y) is shown at (a·x + c·y, b·x + d·y), y downwards.
        let is_mirrored = a * d - b * c < 0;
        // Where the right-hand side goes; in a mirror it is the left-hand one.
        let (right, down) = if is_mirrored { (-a, -b) } else { (a, b) };
        let degrees = if right.abs() >= down.abs() {
            if right >= 0 { 0 } else { 180 }
        } else if down > 0 {
            90
        } else {
            270
        };
        Self {
            degrees,
            is_mirrored,
        }
    }

    /// Whether width and height change places.
    pub(in super::super) const fn swaps_sides(self) -> bool {
        self.degrees % 180 == 90
    }

    /// ffmpeg's filters.
    pub(super) fn filters(self) -> Vec<&'static str> {
        let turn = match self.degrees {
            90 => "transpose=clock",
            180 => "hflip,vflip",
            270 => "transpose=cclock",
            _ => "",
        };
        let mirror = if self.is_mirrored { "hflip" } else { "" };
        [mirror, turn]
            .into_iter()
            .filter(|it| !it.is_empty())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: i64 = 1 << 16;

    fn turn(degrees: u32, is_mirrored: bool) -> Turn {
        Turn {
            degrees,
            is_mirrored,
        }
    }

    /// As telephones write them, and ffmpeg's -display_hflip and -display_vflip.
    #[test]
    fn a_matrix_says_turn_and_mirror() {
        for (matrix, expected) in [
            ([ONE, 0, 0, 0, ONE, 0], turn(0, false)),
            ([0, ONE, 0, -ONE, 0, 0], turn(90, false)),
            ([-ONE, 0, 0, 0, -ONE, 0], turn(180, false)),
            ([0, -ONE, 0, ONE, 0, 0], turn(270, false)),
            ([-ONE, 0, 0, 0, ONE, 0], turn(0, true)),
            ([ONE, 0, 0, 0, -ONE, 0], turn(180, true)),
        ] {
            assert_eq!(Turn::of_matrix(matrix), expected, "{matrix:?}");
        }
        assert_eq!(turn(90, true).filters(), ["hflip", "transpose=clock"]);
        assert!(turn(270, false).swaps_sides() && !turn(180, true).swaps_sides());
    }

    #[test]
    fn degrees_are_the_nearest_quarter() {
        for (degrees, expected) in [
            (0, 0),
            (-90, 90),
            (90, 270),
            (-180, 180),
            (180, 180),
            (-89, 90),
        ] {
            assert_eq!(Turn::counterclockwise(degrees), turn(expected, false));
        }
    }
}
