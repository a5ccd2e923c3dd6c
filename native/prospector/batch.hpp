// A batch of Prospector worlds; compiled once, in batch.cpp.
#pragma once

#include "core/batch.hpp"
#include "prospector/prospector.hpp"

namespace gridmill::prospector {
using ProspectorBatch = Batch<Prospector>;
}
GRIDMILL_DECLARE_BATCH(prospector::Prospector)
