// Phase events: what is due by the clock, by priority and declaration. Whether an event is due is a function of the
// tick, so there is nothing to remember; what is listed for tick 0 runs at tick 1, before what is listed for it.
#include <array>
#include <set>

#include "grid/rules/rules.hpp"
#include "grid/streams.hpp"

namespace gridmill::grid {
namespace {

bool is_due(const CompiledEvent& event, std::int64_t tick) {
  if (std::binary_search(event.at.begin(), event.at.end(), tick)) return true;
  return event.every > 0 && tick >= event.start && tick <= event.until && (tick - event.start) % event.every == 0;
}

class Happening {
 public:
  Happening(const Program& p, World& w, const WorldHeader& header, RuleScratch& scratch)
      : p_(p), w_(w), header_(header), scratch_(scratch) {}

  void run(std::size_t index, std::int64_t listed) {
    const CompiledEvent& event = p_.events.list[index];
    const bool happened = event.tag < 0 ? apply(event, -1) : run_on_targets(event, index, listed) > 0;
    // Fallbacks were checked to end somewhere when the game was compiled.
    if (!happened && event.fallback >= 0) run(static_cast<std::size_t>(event.fallback), listed);
  }

 private:
  bool apply(const CompiledEvent& event, std::int32_t target) {
    RuleContext context(p_, w_, header_, scratch_.trials, -1, target, Mode::apply);
    return run_rule(event.rule, context);
  }

  std::uint32_t run_on_targets(const CompiledEvent& event, std::size_t index, std::int64_t listed) {
    std::uint32_t n = 0, happened = 0;
    auto& candidates = scratch_.candidates;
    for (std::uint32_t object = 0; object < p_.num_objects; ++object)
      if (w_.on_map(object) && w_.has_tag(object, static_cast<std::uint16_t>(event.tag))) candidates[n++] = object;
    const std::uint32_t most = event.max_targets == 0 ? n : event.max_targets;
    const bool by_lot = n > most;
    const Stream draws(header_.key, static_cast<std::uint32_t>(listed), kEventStream);
    for (std::uint32_t i = 0; i < n && happened < most; ++i) {
      if (by_lot) std::swap(candidates[i], candidates[i + draws.below(std::uint64_t{index} << 32 | i, n - i)]);
      // An earlier target may have removed this one.
      if (w_.on_map(candidates[i])) happened += apply(event, static_cast<std::int32_t>(candidates[i]));
    }
    return happened;
  }

  const Program& p_;
  World& w_;
  const WorldHeader& header_;
  RuleScratch& scratch_;
};

}  // namespace

void list_event_ticks(Program& p) {
  if (p.events.list.empty()) return;
  constexpr std::int64_t most = 1 << 17;  // 16 kB, and as many questions when a game is compiled
  p.events.ticks.resize(static_cast<std::size_t>(std::min(p.config.max_steps + 64, most) / 64));
  const auto end = static_cast<std::int64_t>(p.events.ticks.size() * 64);
  const auto note = [&](std::int64_t tick) {
    p.events.ticks[static_cast<std::size_t>(tick) / 64] |= std::uint64_t{1} << (tick & 63);
  };
  std::set<std::array<std::int64_t, 3>> noted;  // of thousands of events most are alike
  for (const CompiledEvent& event : p.events.list) {
    for (const std::int64_t tick : event.at)
      if (tick < end) note(tick);
    if (event.every <= 0 || !noted.insert({event.every, event.start, event.until}).second) continue;
    for (std::int64_t tick = event.start; tick < end && tick <= event.until; tick += event.every) note(tick);
  }
}

void run_events(const Program& p, World& w, const WorldHeader& header, RuleScratch& scratch) {
  const bool listed_there = header.tick > 1 && header.tick / 64 < p.events.ticks.size();
  if (listed_there && !(p.events.ticks[header.tick / 64] >> (header.tick & 63) & 1)) return;
  Happening happening(p, w, header, scratch);
  for (std::int64_t listed = header.tick == 1 ? 0 : header.tick; listed <= header.tick; ++listed)
    for (std::size_t i = 0; i < p.events.list.size(); ++i)
      if (is_due(p.events.list[i], listed)) happening.run(i, listed);
}

}  // namespace gridmill::grid
