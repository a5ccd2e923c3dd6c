// A batch of Prospector worlds; compiled once, in batch.cpp.
#pragma once

#include "core/batch.hpp"
#include "prospector/prospector.hpp"

namespace gridmill {

namespace prospector {
using ProspectorBatch = Batch<Prospector>;
}
extern template class Batch<prospector::Prospector>;
extern template void Batch<prospector::Prospector>::load_actions<std::int32_t>(const void*, std::int64_t);
extern template void Batch<prospector::Prospector>::load_actions<std::int64_t>(const void*, std::int64_t);

}  // namespace gridmill
