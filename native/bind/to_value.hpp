// Python objects -> Value: None, bool, int, float, str, list/tuple and dict with text keys; nothing else
// crosses.
#pragma once

#include <nanobind/nanobind.h>

#include "core/value.hpp"

namespace gridmill {

Value to_value(nanobind::handle object, int depth = 0);
nanobind::object from_value(const Value& value);

}  // namespace gridmill
