"""The directions of the grid in the order of the core (`native/grid/directions.hpp`): row and column of a step."""

DIRECTIONS = {
    "north": (-1, 0), "south": (1, 0), "west": (0, -1), "east": (0, 1),
    "northwest": (-1, -1), "northeast": (-1, 1), "southwest": (1, -1), "southeast": (1, 1),
}  # fmt: skip
FACINGS = tuple(DIRECTIONS)[:4]  # where an agent can look
