// Assemblers: a bump makes the first recipe that the agents on the eight cells around can make together, at once. What
// it needs is drawn from all of them as evenly as possible; what it makes goes to the one that bumped.
#include "grid/occupancy.hpp"
#include "grid/rules/rules.hpp"

namespace gridmill::grid {
namespace {

struct Around {
  std::uint32_t agents[8];
  std::uint32_t count = 0;
};

// The user first, then the others by index; who is frozen takes no part.
Around agents_around(const RuleContext& s) {
  Around around;
  const auto user = static_cast<std::uint32_t>(s.actor);
  for (std::int32_t down = -1; down <= 1; ++down)
    for (std::int32_t right = -1; right <= 1; ++right) {
      const std::int32_t row = s.w.row[s.target] + down, column = s.w.column[s.target] + right;
      if (!inside_map(s.p, row, column)) continue;
      const std::uint16_t code =
          s.w.code_at(s.w.cell_at(static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column)));
      if (code == kEmpty || code > s.p.num_agents) continue;
      if (!s.p.actions.can_freeze || s.w.frozen[code - 1u] == 0) around.agents[around.count++] = code - 1u;
    }
  std::sort(around.agents, around.agents + around.count,
            [user](std::uint32_t a, std::uint32_t b) { return std::pair(a != user, a) < std::pair(b != user, b); });
  return around;
}

// A resting assembler that works in part does so for the share of its rest that has passed.
struct Share {
  std::uint64_t passed = 1, of = 1;
  std::uint64_t inputs(std::uint64_t n) const { return (n * passed + of - 1) / of; }
  std::uint64_t outputs(std::uint64_t n) const { return n * passed / of; }
};

bool has_vibes(const RuleContext& s, const CompiledRecipe& recipe, const Around& around) {
  for (const auto& [vibe, wanted] : recipe.vibes) {
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < around.count; ++i) found += s.w.vibe[around.agents[i]] == vibe;
    if (found < wanted) return false;
  }
  return true;
}

bool can_make(const RuleContext& s, const CompiledRecipe& recipe, const Around& around, const Share& share) {
  if (around.count < recipe.min_agents || !has_vibes(s, recipe, around)) return false;
  bool makes = false;
  for (std::uint32_t r = 0; r < s.p.num_resources; ++r) {
    std::uint64_t there = 0;
    for (std::uint32_t i = 0; i < around.count; ++i) there += s.held(static_cast<std::int32_t>(around.agents[i]))[r];
    if (there < share.inputs(recipe.inputs[r])) return false;
    makes = makes || share.outputs(recipe.outputs[r]) > 0;
  }
  return makes;
}

// Everybody gives up to a common level, those who have more one unit beyond it, the user first.
void draw_inputs(RuleContext& s, const Around& around, std::uint32_t resource, std::uint64_t needed) {
  const auto held = [&](std::uint32_t i) -> std::uint64_t {
    return s.held(static_cast<std::int32_t>(around.agents[i]))[resource];
  };
  const auto given_at = [&](std::uint64_t level) {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < around.count; ++i) sum += std::min(level, held(i));
    return sum;
  };
  std::uint64_t level = 0, above = 65'536;  // nobody holds so much
  while (above - level > 1) {
    const std::uint64_t middle = (level + above) / 2;
    (given_at(middle) <= needed ? level : above) = middle;
  }
  std::uint64_t left = needed - given_at(level);
  for (std::uint32_t i = 0; i < around.count; ++i) {
    std::uint64_t gives = std::min(level, held(i));
    if (left > 0 && held(i) > level) {
      ++gives;
      --left;
    }
    if (gives == 0) continue;
    s.change(static_cast<std::int32_t>(around.agents[i]), resource, -static_cast<std::int32_t>(gives));
    if (!s.dry())
      s.w.resource_counter(around.agents[i], resource, ResourceCounter::put) += static_cast<std::uint32_t>(gives);
  }
}

// Of each output at least one unit must fit the user; what does not fit is lost.
bool make(RuleContext& s, const CompiledRecipe& recipe, const Around& around, const Share& share) {
  for (std::uint32_t r = 0; r < s.p.num_resources; ++r)
    if (const std::uint64_t needed = share.inputs(recipe.inputs[r])) draw_inputs(s, around, r, needed);
  for (std::uint32_t r = 0; r < s.p.num_resources; ++r) {
    const auto made = static_cast<std::int32_t>(share.outputs(recipe.outputs[r]));
    if (made == 0) continue;
    const std::int32_t got = s.change(s.actor, r, made);
    if (got <= 0) return false;
    if (!s.dry())
      s.w.resource_counter(static_cast<std::uint32_t>(s.actor), r, ResourceCounter::get) +=
          static_cast<std::uint32_t>(got);
  }
  return true;
}

void rest(RuleContext& s, const CompiledAssembler& assembler, std::uint32_t object) {
  ++s.w.conversions[object];
  s.w.mark_dirty(object);
  if (assembler.cooldown == 0) return;
  s.w.done_at[object] = s.header.tick + assembler.cooldown;
  s.w.running[object >> 6] |= std::uint64_t{1} << (object & 63);
}

}  // namespace

bool use_assembler(RuleContext& s) {
  const auto object = static_cast<std::uint32_t>(s.target);
  const CompiledAssembler& assembler =
      s.p.machines.assemblers[static_cast<std::size_t>(s.p.types[s.w.type[object]].assembler)];
  if (assembler.max_uses >= 0 && s.w.conversions[object] >= assembler.max_uses) return false;
  const bool resting = s.w.running[object >> 6] >> (object & 63) & 1;
  if (resting && !assembler.partial) return false;
  Share share;
  if (resting) share = {assembler.cooldown - (s.w.done_at[object] - s.tick()), assembler.cooldown};
  const Around around = agents_around(s);
  if (!s.dry()) s.trials.start_from(s.p, s.w);
  for (const CompiledRecipe& recipe : assembler.recipes) {
    s.trials.empty(s.w);
    if (!can_make(s, recipe, around, share)) continue;
    RuleContext trial = s;
    if (!s.dry()) trial.mode = Mode::now;
    if (!make(trial, recipe, around, share)) continue;
    if (!s.dry()) {
      make(s, recipe, around, share);
      rest(s, assembler, object);
    }
    return true;
  }
  return false;
}

}  // namespace gridmill::grid
