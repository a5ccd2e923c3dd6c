// What an object shows of itself, at most one token of each kind: one table in object_tokens.cpp, from which the
// vocabulary, the ids, the room in the cache and the fast path follow. Amounts and tags are lists and stand beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "grid/program.hpp"
#include "grid/rules/references.hpp"

namespace gridmill::grid {

// The features of a game that come from the table, with what their values are divided by.
void add_object_features(const GameConfig& game, const References& references, std::map<std::string, double>& features);

ObjectFeatures compile_object_features(const Vocabulary& vocabulary);

// How many of them one of this type may show at most, and how many an agent shows most of the time.
std::size_t most_object_tokens(const Program& p, const Type& type, bool agent);
std::size_t usual_object_tokens(const Program& p);

}  // namespace gridmill::grid
