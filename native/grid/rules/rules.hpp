// Running rules. A RuleContext says who takes part and how earnestly: with Mode::apply effects happen; otherwise they
// are only tried, on copies of the inventories involved. Masks, "could not deliver" and the rule itself so ask one
// question.
#pragma once

#include "core/game.hpp"
#include "grid/inventory.hpp"
#include "grid/world.hpp"

namespace gridmill::grid {

enum class Mode : std::uint8_t { possible, now, apply };  // possible: what hangs on chance counts as true

// Inventories as they would be, for those who take part in one rule.
class TrialInventories {
 public:
  void fit(const Program& p) {
    const std::size_t size = std::size_t{kInventories + 1} * p.num_resources;
    if (amounts_.size() < size) amounts_.resize(size);
  }
  // Tries start from the world as it is, or as it will be once this agent has paid these costs.
  void start_from(const Program& p, const World& w) {
    resources_ = p.num_resources;
    payer_ = -1;
    empty(w);
  }
  void start_paid(const Program& p, const World& w, std::uint32_t agent, const Costs& costs);
  void empty(const World& w);
  const std::uint16_t* find(std::int32_t holder) const {
    for (std::size_t i = 0; i < count_; ++i)
      if (owners_[i] == holder) return row(i);
    return nullptr;
  }
  std::uint16_t* get(const World& w, std::int32_t holder);
  // What the costs took from somebody, and what was lost with it.
  std::uint32_t paid(const World& w, std::int32_t holder, std::size_t resource) const {
    if (holder != payer_) return 0;
    return w.held(static_cast<std::uint32_t>(holder))[resource] - std::uint32_t{row(kInventories)[resource]};
  }

 private:
  static constexpr std::size_t kInventories = 12;  // the four of a rule, or the agents around an assembler
  std::uint16_t* row(std::size_t i) { return amounts_.data() + i * resources_; }
  const std::uint16_t* row(std::size_t i) const { return amounts_.data() + i * resources_; }
  std::vector<std::uint16_t> amounts_;  // rows of the trials, then the payer's after paying
  std::int32_t owners_[kInventories] = {};
  std::size_t count_ = 0, resources_ = 0;
  std::int32_t payer_ = -1;
};

struct RuleContext {
  RuleContext(const Program& program, World& world, const WorldHeader& head, TrialInventories& scratch,
              std::int32_t who, std::int32_t whom, Mode how, int deep = 0)
      : p(program), w(world), header(head), trials(scratch), actor(who), target(whom), mode(how), depth(deep) {
    holders[0] = actor;
    holders[1] = target;
    holders[2] = team_holder(actor);
    holders[3] = team_holder(target);
  }
  // A rule may have changed who belongs to whom, so the next one looks again.
  void look_again() {
    holders[2] = team_holder(actor);
    holders[3] = team_holder(target);
    negated = false;
    removed = -1;
  }
  bool dry() const { return mode != Mode::apply; }
  // The tick it is about: a mask asks about the next one.
  std::uint32_t tick() const { return header.tick + (mode == Mode::possible ? 1 : 0); }
  const std::uint16_t* held(std::int32_t holder) const {
    if (dry())
      if (const std::uint16_t* purse = trials.find(holder)) return purse;
    return w.held(static_cast<std::uint32_t>(holder));
  }
  // Changes what somebody holds, really or in its trial inventory, as far as it fits; returns by how much.
  std::int32_t change(std::int32_t holder, std::uint32_t resource, std::int32_t by);
  std::uint32_t room(std::int32_t holder, std::uint32_t resource) const {
    return room_in(limits_of(p, w, static_cast<std::uint32_t>(holder)), held(holder), resource);
  }
  std::uint8_t collective_of(std::int32_t object) const {
    return object < 0 ? kNeutral : w.collective_of(static_cast<std::uint32_t>(object));
  }
  // The actor (0) or the target (1) while it stands on the map, or -1.
  std::int32_t object(std::uint8_t who) const {
    const std::int32_t one = holders[who];
    return one < 0 || one == removed || !w.on_map(static_cast<std::uint32_t>(one)) ? -1 : one;
  }
  // Who holds something in this rule, by place in kHolders: an object only while it stands on the map, or -1.
  std::int32_t holder_of(std::uint8_t who) const { return who < 2 ? object(who) : holders[who]; }
  bool is_agent(std::int32_t who) const { return who >= 0 && who < static_cast<std::int32_t>(p.num_agents); }

  const Program& p;
  World& w;
  const WorldHeader& header;
  TrialInventories& trials;
  std::int32_t actor, target;  // objects, or -1
  Mode mode;
  int depth;                  // rules that set off rules
  bool negated = false;       // inside a `not`: what is possible there must be certain
  std::int32_t removed = -1;  // tried: this object would be gone
  std::int32_t holders[4];    // in the order of kHolders, or -1

 private:
  std::int32_t team_holder(std::int32_t who) const {
    const std::uint8_t team = collective_of(who);
    return team == kNeutral ? -1 : static_cast<std::int32_t>(p.num_objects + team);
  }
};

bool all_hold(Range conditions, RuleContext& context);
// Runs a rule, or tries it; false if a condition fails or an effect could not deliver.
bool run_rule(const CompiledRule& rule, RuleContext& context);
// The first that applies, or each; true if one did.
bool run_rules(Range rules, bool all, RuleContext& context);

// Game values seen by somebody; in a rule that is only tried, from its trials.
struct ValueContext {
  const Program& p;
  const World& w;
  std::int32_t actor = -1, target = -1;
  const RuleContext* rule = nullptr;
};
double evaluate(const CompiledValue& value, const ValueContext& viewer);
// std::lround for what fits 32 bits: half away from zero.
inline std::int32_t rounded(double x) {
  const auto whole = static_cast<std::int32_t>(x);
  const double rest = x - whole;
  return whole + (rest >= 0.5) - (rest <= -0.5);
}

// areas.cpp, events.cpp, assemblers.cpp
struct AreaMatch {
  std::uint32_t agent, area, object;
  enum Why : std::uint8_t { entered, inside, left } why;
};
struct RuleScratch {
  TrialInventories trials;
  std::vector<AreaMatch> matches;
  std::vector<std::int32_t> sums;         // [agent][resource]
  std::vector<std::uint64_t> near;        // bits: sources around one agent
  std::vector<std::uint64_t> now_inside;  // of one agent
  std::vector<std::uint64_t> claims;      // of collectives on one cell
  std::vector<std::uint32_t> candidates;
  void fit(const Program& p);
};
void apply_areas(const Program& p, World& w, const WorldHeader& header, RuleScratch& scratch, const std::byte* next);
bool knows_sources(const Program& p, const World& w);  // whether its list of sources is the one it would make now
void list_event_ticks(Program& p);
void run_events(const Program& p, World& w, const WorldHeader& header, RuleScratch& scratch);
void run_tick_rules(const Program& p, World& w, const WorldHeader& header, RuleScratch& scratch);
bool use_assembler(RuleContext& context);

// collectives.cpp
void begin_objects(const Program& p, World& w);  // at reset: tags, membership, stores
void begin_object(const Program& p, World& w, std::uint32_t object);
void set_collective(const Program& p, World& w, std::uint32_t object, std::uint8_t team);
void count_held(const Program& p, World& w);
double team_stat(const Program& p, const World& w, std::size_t team, std::size_t index);

}  // namespace gridmill::grid
