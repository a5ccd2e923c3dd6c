// The parts of a game's tree, said briefly.
#pragma once

#include <string>
#include <utility>

#include "core/value.hpp"

namespace trees {

inline gridmill::Value dict(gridmill::Value::Dict d) { return {std::move(d)}; }
inline gridmill::Value number(std::int64_t n) { return {n}; }
inline gridmill::Value text(const char* t) { return {std::string(t)}; }

}  // namespace trees
