// What each kind of game shows of itself: its words (info), its state for drawing (inspect, objects), and what a policy
// must know of its observations.
#pragma once

#include <concepts>

#include "corridor/corridor.hpp"
#include "grid/batch.hpp"
#include "prospector/batch.hpp"
#include "wasm/observer.hpp"

namespace gridmill::wasm {

using CorridorBatch = Batch<corridor::Corridor>;

// Numbers and names in a tree.
Value number(std::integral auto value) { return {static_cast<std::int64_t>(value)}; }
Value number(std::floating_point auto value) { return {static_cast<double>(value)}; }
Value list_of(const std::vector<std::string>& names);

std::vector<std::string> action_names(const grid::GridBatch& batch);
std::vector<std::string> action_names(const prospector::ProspectorBatch& batch);
std::vector<std::string> action_names(const CorridorBatch& batch);

// Added to what all kinds say.
void describe(const grid::GridBatch& batch, Value::Dict& info);
void describe(const prospector::ProspectorBatch& batch, Value::Dict& info);
void describe(const CorridorBatch& batch, Value::Dict& info);

void inspect(grid::GridBatch& batch, Value::Dict& out);
void inspect(prospector::ProspectorBatch& batch, Value::Dict& out);
void inspect(CorridorBatch& batch, Value::Dict& out);

// Objects as numbers: object, type, row, column, vibe, collective, agent, group, facing, frozen, converting, uses, how
// many tags, the tags, how many resources, each with its amount. A map has thousands, so they are no text.
std::vector<std::int32_t> objects(grid::GridBatch& batch);
inline std::vector<std::int32_t> objects(prospector::ProspectorBatch&) { return {}; }
inline std::vector<std::int32_t> objects(CorridorBatch&) { return {}; }

// Where the agents are, cheap enough for every tick: row * width + column, 0 of one that is not there.
std::vector<std::uint32_t> cells(grid::GridBatch& batch);
inline std::vector<std::uint32_t> cells(prospector::ProspectorBatch&) { return {}; }
inline std::vector<std::uint32_t> cells(CorridorBatch&) { return {}; }

void add_words(const grid::GridBatch& batch, Seen& seen);
inline void add_words(const prospector::ProspectorBatch&, Seen&) {}
inline void add_words(const CorridorBatch&, Seen&) {}

}  // namespace gridmill::wasm
