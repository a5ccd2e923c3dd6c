// The parts of compile(), each in the file of its name. Those that return nothing fill several parts at once, which is
// said beside them; all of them read what was compiled before.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "grid/program.hpp"
#include "grid/rules/references.hpp"

namespace gridmill::grid {

constexpr std::size_t kNoLimits = 1;  // the place of the empty set among Program::limit_sets

// A place in a list of the game's as the number that rules have of it, 16 bits wide.
std::uint16_t number_of(std::size_t place, const char* what, const std::string& path);

// How a number of steps is said.
inline std::string millions(double n) { return Value{std::ceil(n / 1e6)}.describe() + " million"; }

// compile_types.cpp
std::vector<std::uint16_t> per_resource(const GameConfig& game, const OrderedDict<std::int64_t>& amounts,
                                        std::int64_t times);
std::vector<std::pair<std::uint16_t, std::uint16_t>> costs(const GameConfig& game,
                                                           const OrderedDict<std::int64_t>& amounts);
std::uint16_t type_index(const Program& p, const std::string& name, const std::string& path);
void compile_types(Program& p, const References& references);  // types, their limits and machines
// Tags that rules set or clear are bits of every object; the others stay with its type.
Tags compile_tags(Program& p, const References& references);
Collectives compile_collectives(Program& p);

// compile_limits.cpp: of one kind of holder
LimitSet compile_limits(const GameConfig& game, const std::vector<Limit>& limits);

// compile_map.cpp: the map, its size, and room for the objects with state.
void compile_map(Program& p);
// compile_map_work.cpp: how often a map may be tried; refuses one that takes longer than anybody waits.
void compile_map_work(Program& p);

// compile_actions.cpp
Actions compile_actions(const GameConfig& game, const Vocabulary& vocabulary, const References& references,
                        std::uint32_t stride);

// compile_window.cpp
Window compile_window(const Observation& observation, std::uint32_t stride);

// rules/values.cpp: a declared value as a postfix program.
void compile_value(const Program& p, const GameValue& value, const std::string& path, CompiledValue& out);
bool same_in_team(const CompiledValue& value);  // nothing of an agent's own but whom it belongs to

// rewards.cpp
Rewards compile_rewards(const Program& p);

// compile_rules.cpp: rules, areas, events and what tags set off share flat lists, filled in one pass in this order.
void compile_rules(Program& p);

// compile_work.cpp: refuses rules that could keep one tick busy for longer than anybody waits.
void check_work(const Program& p);
double work_of(const Program& p, const CompiledValue& value);  // to evaluate it once
constexpr double kMostWork = 5e7;                              // objects looked at and effects tried: about a second
constexpr int kMostRulesDeep = 8;                              // rules set off by tags that rules set

// compile_tokens.cpp
Features compile_features(const Program& p);
Codes compile_codes(Program& p, const References& references);  // and those of types of terrain
void write_plain_tokens(Program& p);                            // into the window
TokenCache compile_token_cache(const Program& p);

// compile_layout.cpp
StateLayout compile_layout(const Program& p);
Prefetch compile_prefetch(const Program& p);

}  // namespace gridmill::grid
