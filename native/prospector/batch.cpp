#include "prospector/batch.hpp"

GRIDMILL_COMPILE_BATCH(prospector::Prospector)
