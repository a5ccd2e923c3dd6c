"""Explain: what a game means for whoever has to learn it: who provides what, when it first pays, how much at most.

Pure functions of a Game: `explain` gives a record, `text` a page of it in 80 columns of plain ASCII. The arguments
behind the figures are in the files beside it: clocks of converters in `converter_schedule`, bounds for rules in
`bounds`, ceilings in `ceiling`; nothing here steps a world.
"""

from gridmill.grid.analysis.explain_page import text
from gridmill.grid.analysis.explain_record import Explanation, Gathering, Machine, Product, Reward, explain

__all__ = ["Explanation", "Gathering", "Machine", "Product", "Reward", "explain", "text"]
