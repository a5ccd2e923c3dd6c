// A batch of grid worlds; compiled once, in batch.cpp.
#pragma once

#include "core/batch.hpp"
#include "grid/grid.hpp"

namespace gridmill {

namespace grid {
using GridBatch = Batch<Grid>;
}
extern template class Batch<grid::Grid>;
extern template void Batch<grid::Grid>::load_actions<std::int32_t>(const void*, std::int64_t);
extern template void Batch<grid::Grid>::load_actions<std::int64_t>(const void*, std::int64_t);

}  // namespace gridmill
