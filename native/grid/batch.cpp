#include "grid/batch.hpp"

GRIDMILL_COMPILE_BATCH(grid::Grid)
