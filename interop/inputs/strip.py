"""The number that each picture carries: a strip of cells along its top, black and white, so that no font is needed.

    column   0      1 … 10           11
    row 0    white  bit 0 … bit 9    black
    row 1    black  the complements  white

A cell counts by the difference of its two rows, which lossy coding, scaling and tone mapping keep. The outer columns show whether the picture
is mirrored or turned.
"""

BITS = 10
COLUMNS, ROWS = BITS + 2, 2
# The strip's share of the picture's height.
SHARE = 6
# Difference between the two rows of a cell, in levels of luma, below which the picture counts as damaged.
CONTRAST = 50


def drawing():
    """Filters of ffmpeg that draw the strip with the number of the frame."""
    width, height = f"iw/{COLUMNS}", f"ih/{SHARE}/{ROWS}"
    boxes = [f"drawbox=x=0:y=0:w=iw:h=ih/{SHARE}:c=black:t=fill"]

    def box(column, row, enable):
        condition = f":enable='{enable}'" if enable else ""
        boxes.append(f"drawbox=x={width}*{column}:y={height}*{row}:w={width}:h={height}:c=white:t=fill{condition}")

    box(0, 0, None)
    box(COLUMNS - 1, 1, None)
    for bit in range(BITS):
        is_set = f"mod(floor(n/{1 << bit}),2)"
        box(bit + 1, 0, is_set)
        box(bit + 1, 1, f"1-{is_set}")
    return ",".join(boxes)


def reading():
    """Filters of ffmpeg that make a picture of `ROWS` × `COLUMNS` octets of the strip, one a cell."""
    return f"format=gray,crop=iw:ih/{SHARE}:0:0,scale={COLUMNS}:{ROWS}:flags=area,format=gray"


OCTETS = COLUMNS * ROWS


def number(cells):
    """The number in the cells of one picture; None if it is damaged."""
    value = 0
    for column in range(COLUMNS):
        difference = cells[column] - cells[COLUMNS + column]
        if abs(difference) < CONTRAST:
            return None
        if column in (0, COLUMNS - 1):
            if (difference > 0) != (column == 0):
                return None
        elif difference > 0:
            value |= 1 << (column - 1)
    return value
