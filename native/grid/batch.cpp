#include "grid/batch.hpp"

namespace gridmill {

template class Batch<grid::Grid>;
template void Batch<grid::Grid>::load_actions<std::int32_t>(const void*, std::int64_t);
template void Batch<grid::Grid>::load_actions<std::int64_t>(const void*, std::int64_t);

}  // namespace gridmill
