#include "prospector/batch.hpp"

namespace gridmill {

template class Batch<prospector::Prospector>;
template void Batch<prospector::Prospector>::load_actions<std::int32_t>(const void*, std::int64_t);
template void Batch<prospector::Prospector>::load_actions<std::int64_t>(const void*, std::int64_t);

}  // namespace gridmill
