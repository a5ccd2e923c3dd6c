// See arena.hpp. The window is a picture of 16 lines with a bit per cell, so looking for a way is shifting lines.
#include "grid/scripts/arena.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>

#include "core/snapshot.hpp"
#include "core/tokens.hpp"
#include "grid/directions.hpp"

namespace gridmill::grid {
namespace {

constexpr int kMoves = 8;
constexpr int kFar = 14;                // steps after which a way inside the window is given up
constexpr std::uint32_t kTurn = 1'311;  // of 65 536: chance per tick that an agent without a goal turns
constexpr const char* kProduct = "heart";

using Picture = std::array<std::uint16_t, 16>;

struct Input {
  std::uint8_t feature;
  std::uint32_t most;  // that one machine stores
};
struct Machine {
  std::vector<std::uint8_t> outputs;  // features
  std::vector<Input> inputs;
};
struct ArenaMemory {
  std::uint8_t started, heading, padding[6];
};

// Places of the machines that work for a product: those that can run, from its makers back to what they need.
std::vector<std::size_t> chain_of(const Program& p) {
  const auto& resources = p.config.resources;
  const auto product = std::find(resources.begin(), resources.end(), kProduct) - resources.begin();
  if (static_cast<std::size_t>(product) == resources.size()) return {};
  const auto machine = [&p](std::size_t t) -> const CompiledConverter* {
    const std::int32_t at = p.types[t].converter;
    if (t == p.agent_type || at < 0 || p.map.placed[t] == 0) return nullptr;
    return &p.machines.converters[static_cast<std::size_t>(at)];
  };
  std::vector<bool> had(p.num_resources), runs(p.types.size()), works(p.types.size());
  for (std::size_t r = 0; r < p.num_resources; ++r) {
    had[r] = p.types[p.agent_type].inventory[r] > 0;
    for (std::size_t t = 0; t < p.types.size(); ++t)
      had[r] = had[r] || (machine(t) && machine(t)->outputs[r] > 0 && machine(t)->initial > 0);
  }
  const auto all_had = [&](const CompiledConverter& c) {
    for (std::size_t r = 0; r < p.num_resources; ++r)
      if (c.inputs[r] > 0 && !had[r]) return false;
    return c.max_conversions != 0;
  };
  for (bool more = true; more;) {
    more = false;
    for (std::size_t t = 0; t < p.types.size(); ++t) {
      if (runs[t] || !machine(t) || !all_had(*machine(t))) continue;
      more = runs[t] = true;
      for (std::size_t r = 0; r < p.num_resources; ++r) had[r] = had[r] || machine(t)->outputs[r] > 0;
    }
  }
  std::vector<bool> wanted(p.num_resources);
  wanted[static_cast<std::size_t>(product)] = true;
  for (bool more = true; more;) {
    more = false;
    for (std::size_t t = 0; t < p.types.size(); ++t) {
      if (works[t] || !runs[t]) continue;
      for (std::size_t r = 0; r < p.num_resources; ++r)
        works[t] = works[t] || (wanted[r] && machine(t)->outputs[r] > 0);
      for (std::size_t r = 0; r < p.num_resources && works[t]; ++r) wanted[r] = wanted[r] || machine(t)->inputs[r] > 0;
      more = more || works[t];
    }
  }
  std::vector<std::size_t> chain;
  for (std::size_t t = 0; t < p.types.size(); ++t)
    if (works[t]) chain.push_back(t);
  return chain;
}

class ArenaScript final : public Script<std::uint8_t> {
 public:
  ArenaScript(const Vocabulary& vocabulary, const Program& p, const std::vector<std::size_t>& chain)
      : tag_(vocabulary.feature("tag")),
        middle_row_(p.window.height / 2),
        middle_column_(p.window.width / 2),
        row_bytes_(static_cast<std::size_t>(p.config.observation.num_tokens) * kTokenBytes) {
    machine_of_tag_.fill(-1);
    for (std::int32_t line = 0; line < p.window.height; ++line)
      inside_[static_cast<std::size_t>(line)] = static_cast<std::uint16_t>((1u << p.window.width) - 1);
    for (std::size_t a = 0; a < vocabulary.actions.size(); ++a)
      if (vocabulary.actions[a].kind == ActionKind::move) action_[vocabulary.actions[a].which] = static_cast<int>(a);
    for (const std::size_t t : chain) add(vocabulary, p, t);
  }

  std::size_t memory_bytes() const override { return sizeof(ArenaMemory); }

  int act(const std::uint8_t* row, std::byte* memory, std::uint64_t draw) const override {
    Picture free{}, goals{};
    look(row, free, goals);
    ArenaMemory& own = *reinterpret_cast<ArenaMemory*>(memory);
    if (!own.started) own.heading = static_cast<std::uint8_t>(draw % kMoves);
    own.started = 1;
    const int walked = wander(own, free, draw), way = way_to(goals, free);
    return way >= 0 ? action_[static_cast<std::size_t>(way)] : walked;
  }

  void check_memory(const std::byte* memory) const override {
    const auto& own = *reinterpret_cast<const ArenaMemory*>(memory);
    expect_state(own.heading < kMoves, "it walks in no direction");
  }

 private:
  void add(const Vocabulary& vocabulary, const Program& p, std::size_t type) {
    const auto& [name, config] = p.config.objects[type];
    const CompiledConverter& c = p.machines.converters[static_cast<std::size_t>(p.types[type].converter)];
    Machine machine;
    for (std::size_t r = 0; r < p.num_resources; ++r) {
      if (c.outputs[r] > 0) machine.outputs.push_back(p.features.resource[r]);
      if (c.inputs[r] > 0) machine.inputs.push_back({p.features.resource[r], c.store[r]});
    }
    machine_of_tag_[vocabulary.tag("type:" + shown_name(name, config))] = static_cast<std::int16_t>(machines_.size());
    machines_.push_back(std::move(machine));
  }

  // What is free, and the machines worth a bump.
  void look(const std::uint8_t* row, Picture& free, Picture& goals) const {
    const std::uint8_t* const end = row + row_bytes_;
    const auto middle = static_cast<std::uint8_t>(middle_row_ * 16 + middle_column_);
    std::array<const std::uint8_t*, 256> found;
    std::size_t count = 0;
    std::bitset<256> held;
    Picture taken{};
    for (const std::uint8_t* token = row; token != end && *token != kNoToken; token += kTokenBytes) {
      if (token[0] == kGlobalLocation) continue;
      if (token[0] == middle) {
        held.set(token[1]);
        continue;
      }
      taken[token[0] >> 4] |= static_cast<std::uint16_t>(1u << (token[0] & 15));
      if (token[1] == tag_ && machine_of_tag_[token[2]] >= 0 && count < found.size()) found[count++] = token;
    }
    for (std::size_t line = 0; line < free.size(); ++line)
      free[line] = static_cast<std::uint16_t>(~taken[line] & inside_[line]);
    for (std::size_t i = 0; i < count; ++i)
      if (is_worth_it(found[i], row, end, held))
        goals[found[i][0] >> 4] |= static_cast<std::uint16_t>(1u << (found[i][0] & 15));
  }

  // Something waits in the machine, or fits in that the agent holds. The tokens of a cell stand together.
  bool is_worth_it(const std::uint8_t* tag, const std::uint8_t* row, const std::uint8_t* end,
                   const std::bitset<256>& held) const {
    const Machine& machine = machines_[static_cast<std::size_t>(machine_of_tag_[tag[2]])];
    const std::uint8_t* first = tag;
    while (first != row && first[-static_cast<std::ptrdiff_t>(kTokenBytes)] == *tag) first -= kTokenBytes;
    const auto any_token = [&](auto test) {
      for (const std::uint8_t* token = first; token != end && *token == *tag; token += kTokenBytes)
        if (test(token[1], token[2])) return true;
      return false;
    };
    for (const auto output : machine.outputs)
      if (any_token([&](std::uint8_t feature, std::uint8_t) { return feature == output; })) return true;
    for (const Input& input : machine.inputs)
      if (held[input.feature] && !any_token([&](std::uint8_t feature, std::uint8_t value) {
            return feature == input.feature && value >= input.most;
          }))
        return true;
    return false;
  }

  bool has(const Picture& picture, std::size_t direction) const {
    const Direction& d = kDirections[direction];
    return picture[static_cast<std::size_t>(middle_row_ + d.row)] >> (middle_column_ + d.column) & 1;
  }

  // The first step of the shortest way inside the window to any goal, as a place in kDirections; -1 without one. With
  // an empty line above and below, all lines spread alike, several at a time.
  int way_to(const Picture& goals, const Picture& free) const {
    std::array<std::uint16_t, 18> reached{}, across;
    std::copy(goals.begin(), goals.end(), reached.begin() + 1);
    const auto middle = static_cast<std::size_t>(middle_row_ + 1);
    const std::uint32_t beside = 5u << (middle_column_ - 1), around = 7u << (middle_column_ - 1);
    for (int far = 0; far < kFar; ++far) {
      if (((reached[middle - 1] | reached[middle + 1]) & around) != 0 || (reached[middle] & beside) != 0)
        return last_step(reached.data() + middle);
      for (std::size_t line = 0; line < 18; ++line)
        across[line] = static_cast<std::uint16_t>(reached[line] | reached[line] << 1 | reached[line] >> 1);
      std::uint16_t more = 0;
      for (std::size_t line = 1; line < 17; ++line) {
        const auto grown = static_cast<std::uint16_t>(across[line - 1] | across[line] | across[line + 1]);
        const auto next = static_cast<std::uint16_t>(reached[line] | (grown & free[line - 1]));
        more |= static_cast<std::uint16_t>(next ^ reached[line]);
        reached[line] = next;
      }
      if (more == 0) return -1;
    }
    return -1;
  }
  // `line`: the agent's own. Of several steps the last one in order.
  int last_step(const std::uint16_t* line) const {
    int d = kMoves - 1;
    while ((line[kDirections[d].row] >> (middle_column_ + kDirections[d].column) & 1) == 0) --d;
    return d;
  }

  // Straight on; another free direction where something is in the way, and now and then.
  int wander(ArenaMemory& own, const Picture& free, std::uint64_t draw) const {
    std::uint32_t open = 0;
    for (std::size_t d = 0; d < kMoves; ++d) open |= static_cast<std::uint32_t>(has(free, d)) << d;
    const auto below = [draw](std::uint32_t bound) { return static_cast<std::uint32_t>((draw >> 32) * bound >> 32); };
    if ((open >> own.heading & 1) == 0 || (draw >> 8 & 0xFFFF) < kTurn) {
      std::uint32_t left = open == 0 ? 0xFFu : open;
      for (std::uint32_t skip = below(static_cast<std::uint32_t>(std::popcount(left))); skip > 0; --skip)
        left &= left - 1;
      own.heading = static_cast<std::uint8_t>(std::countr_zero(left));
    }
    return (open >> own.heading & 1) != 0 ? action_[own.heading] : 0;
  }

  std::uint8_t tag_;
  std::int32_t middle_row_, middle_column_;
  std::size_t row_bytes_;
  Picture inside_{};
  std::array<int, kMoves> action_{};
  std::array<std::int16_t, 256> machine_of_tag_;
  std::vector<Machine> machines_;
};

}  // namespace

std::unique_ptr<Script<std::uint8_t>> make_arena_script(const Vocabulary& vocabulary, const Program& program) {
  const auto chain = chain_of(program);
  const bool sees_around = program.window.radius_rows > 0 && program.window.radius_columns > 0;
  if (program.config.moves != kMoves || !sees_around || chain.empty()) return nullptr;
  return std::make_unique<ArenaScript>(vocabulary, program, chain);
}

}  // namespace gridmill::grid
