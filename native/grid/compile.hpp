// The parts of compile() that have rooms of their own.
#pragma once

#include "grid/program.hpp"

namespace gridmill::grid {

constexpr std::size_t kNoLimits = 1;  // the place of the empty set among Program::limit_sets

// compile_values.cpp: a declared value as a postfix program.
void compile_value(const Program& p, const GameValue& value, const std::string& path, CompiledValue& out);
// compile_rules.cpp: rules, areas and events as flat lists; needs types, tags, collectives and the map.
void compile_rules(Program& p);

}  // namespace gridmill::grid
