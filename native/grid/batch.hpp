// A batch of grid worlds; compiled once, in batch.cpp.
#pragma once

#include "core/batch.hpp"
#include "grid/grid.hpp"

namespace gridmill::grid {
using GridBatch = Batch<Grid>;
}
GRIDMILL_DECLARE_BATCH(grid::Grid)
