"""A small pixel font for pictures: five points wide and seven high, so that text needs no library and no file."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

HEIGHT, ADVANCE = 7, 6

# Rows of five points each, as numbers: 16 is the leftmost point. Letters that reach below the line have nine rows.
_GLYPHS = """
A 14 17 17 31 17 17 17;B 30 17 17 30 17 17 30;C 14 17 16 16 16 17 14;D 30 17 17 17 17 17 30;E 31 16 16 30 16 16 31
F 31 16 16 30 16 16 16;G 14 17 16 23 17 17 15;H 17 17 17 31 17 17 17;I 14 4 4 4 4 4 14;J 7 2 2 2 2 18 12
K 17 18 20 24 20 18 17;L 16 16 16 16 16 16 31;M 17 27 21 21 17 17 17;N 17 25 21 19 17 17 17;O 14 17 17 17 17 17 14
P 30 17 17 30 16 16 16;Q 14 17 17 17 21 18 13;R 30 17 17 30 20 18 17;S 15 16 16 14 1 1 30;T 31 4 4 4 4 4 4
U 17 17 17 17 17 17 14;V 17 17 17 17 17 10 4;W 17 17 17 21 21 27 17;X 17 17 10 4 10 17 17;Y 17 17 10 4 4 4 4
Z 31 1 2 4 8 16 31;a 0 0 14 1 15 17 15;b 16 16 30 17 17 17 30;c 0 0 14 16 16 17 14;d 1 1 15 17 17 17 15
e 0 0 14 17 31 16 14;f 6 8 28 8 8 8 8;g 0 0 15 17 17 17 15 1 14;h 16 16 30 17 17 17 17;i 4 0 12 4 4 4 14
j 2 0 6 2 2 2 2 18 12;k 16 16 18 20 24 20 18;l 12 4 4 4 4 4 14;m 0 0 26 21 21 21 21;n 0 0 30 17 17 17 17
o 0 0 14 17 17 17 14;p 0 0 30 17 17 17 30 16 16;q 0 0 15 17 17 17 15 1 1;r 0 0 22 24 16 16 16;s 0 0 15 16 14 1 30
t 8 8 28 8 8 9 6;u 0 0 17 17 17 17 15;v 0 0 17 17 17 10 4;w 0 0 17 21 21 21 10;x 0 0 17 10 4 10 17
y 0 0 17 17 17 17 15 1 14;z 0 0 31 2 4 8 31;0 14 17 19 21 25 17 14;1 4 12 4 4 4 4 14;2 14 17 1 6 8 16 31
3 31 2 4 2 1 17 14;4 2 6 10 18 31 2 2;5 31 16 30 1 1 17 14;6 6 8 16 30 17 17 14;7 31 1 2 4 8 8 8
8 14 17 17 14 17 17 14;9 14 17 17 15 1 2 12;. 0 0 0 0 0 12 12;, 0 0 0 0 12 4 8;: 0 12 12 0 12 12 0
- 0 0 0 14 0 0 0;_ 0 0 0 0 0 0 31;/ 1 1 2 4 8 16 16;+ 0 4 4 31 4 4 0;( 2 4 8 8 8 4 2
) 8 4 2 2 2 4 8;% 25 25 2 4 8 19 19;= 0 0 31 0 31 0 0;# 10 10 31 10 31 10 10;? 14 17 1 6 4 0 4
"""


@lru_cache(maxsize=256)
def points(letter: str) -> NDArray[np.bool_]:
    """The points of a letter, [7 or 9, 5]; what the font lacks is a question mark."""
    known = _known()
    return known.get(letter, known["?"])


@lru_cache(maxsize=1)
def _known() -> dict[str, NDArray[np.bool_]]:
    found = {" ": np.zeros((HEIGHT, 5), np.bool_)}
    for entry in _GLYPHS.strip().replace("\n", ";").split(";"):
        letter, *rows = entry.split(" ")
        found[letter] = np.array([[int(row) >> (4 - column) & 1 for column in range(5)] for row in rows], np.bool_)
    return found
