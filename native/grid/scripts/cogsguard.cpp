// One decision of the agent: look, choose a goal, follow the way or plan another.
#include "grid/scripts/cogsguard.hpp"

#include <algorithm>
#include <new>

#include "grid/scripts/cogsguard_plan.hpp"

namespace gridmill::grid {
namespace cogsguard {
namespace {

constexpr std::uint32_t kPlanFor = 16;  // ticks after which a way is thought over
constexpr int kMostTries = 3;
constexpr std::uint32_t kAvoidFor = 40;

class Mind {
 public:
  Mind(Decision& turn, bool news) : t_(turn), m_(turn.memory), news_(news) {}

  int act() {
    const Gear gear = gear_for(t_);
    const Goal goal = choose_goal(t_, gear);
    const bool another = goal != m_.goal;
    count_failures();
    advance();
    m_.goal = goal;
    if (another || must_plan()) plan(t_, gear, agents_near(1));
    // Two who both make room for each other would do so for ever.
    if (blocked() && (t_.draw >> 32 & 1)) return t_.ids.noop;
    if (blocked()) plan(t_, gear, agents_near(4));
    if (m_.at_step >= m_.num_steps || blocked()) return wander();
    return t_.ids.move[static_cast<std::size_t>(direction())];
  }

 private:
  int direction() const { return m_.step(m_.at_step); }
  Place ahead() const { return moved(t_.here, kDirectionRows[direction()], kDirectionColumns[direction()]); }

  // A step into something that gives nothing: the target is left alone for a while.
  void count_failures() {
    const bool tried = m_.at_step < m_.num_steps && m_.expected == t_.here;
    if (!tried || !t_.row.failed || t_.row.energy < kStepEnergy) {
      m_.tries = 0;
      return;
    }
    if (++m_.tries < kMostTries) return;
    m_.tries = 0;
    m_.num_steps = 0;
    if (!m_.has_target) return;
    if (Site* site = m_.find(m_.target)) site->avoid_until = m_.tick + kAvoidFor;
  }

  void advance() {
    if (m_.at_step >= m_.num_steps || m_.expected == t_.here) return;
    const int d = direction();
    if (moved(m_.expected, kDirectionRows[d], kDirectionColumns[d]) == t_.here) {
      ++m_.at_step;
      m_.expected = t_.here;
    } else lost_ = true;
  }

  bool must_plan() const {
    if (news_ || lost_ || m_.at_step >= m_.num_steps || m_.tick - m_.planned >= kPlanFor) return true;
    if (m_.goal == patrol && m_.has_target) {
      const Site* site = m_.find(m_.target);
      if (!site || site->seen == m_.tick) return true;
    }
    return m_.blocked.get(ahead()) && !(m_.has_target && ahead() == m_.target);
  }

  bool agent_at(Place place) const {
    for (int i = 0; i < t_.row.num_things; ++i) {
      const Thing& thing = t_.row.things[static_cast<std::size_t>(i)];
      if (thing.kind == other_agent && moved(t_.here, thing.row, thing.column) == place) return true;
    }
    return false;
  }

  bool blocked() const { return m_.at_step < m_.num_steps && agent_at(ahead()); }

  Bits agents_near(int far) const {
    Bits bits{};
    for (int i = 0; i < t_.row.num_things; ++i) {
      const Thing& thing = t_.row.things[static_cast<std::size_t>(i)];
      const Place place = moved(t_.here, thing.row, thing.column);
      if (thing.kind == other_agent && manhattan(t_.here, place) <= far) bits.set(place);
    }
    return bits;
  }

  // Out of the way of others, or wait.
  int wander() {
    m_.num_steps = 0;
    const int d = static_cast<int>(t_.draw >> 60 & 3);
    const Place to = moved(t_.here, kDirectionRows[d], kDirectionColumns[d]);
    if (t_.draw >> 63 || m_.blocked.get(to) || agent_at(to)) return t_.ids.noop;
    return t_.ids.move[static_cast<std::size_t>(d)];
  }

  Decision& t_;
  Memory& m_;
  bool news_;
  bool lost_ = false;  // it has left the way
};

class CogsguardScript final : public Script<std::uint8_t> {
 public:
  explicit CogsguardScript(const Ids& ids) : ids_(ids) {}

  std::size_t memory_bytes() const override { return sizeof(Memory); }

  int act(const std::uint8_t* tokens, std::byte* bytes, std::uint64_t draw) const override {
    auto& memory = *std::launder(reinterpret_cast<Memory*>(bytes));
    Row row;
    read_row(ids_, tokens, row);
    ++memory.tick;
    Decision turn{ids_, row, memory, place_of(-row.north, -row.west), draw};
    for (const int amount : row.cargo) turn.cargo += amount;
    turn.poorest = *std::min_element(row.store.begin(), row.store.end());
    const bool news = remember(memory, row, turn.here, ids_);
    return Mind(turn, news).act();
  }

  void check_memory(const std::byte* bytes) const override {
    std::launder(reinterpret_cast<const Memory*>(bytes))->check();
  }

 private:
  Ids ids_;
};

}  // namespace

}  // namespace cogsguard

std::unique_ptr<Script<std::uint8_t>> make_cogsguard_script(const Vocabulary& vocabulary, const Program& program) {
  if (!cogsguard::plays(program)) return nullptr;
  return std::make_unique<cogsguard::CogsguardScript>(cogsguard::ids_of(vocabulary, program));
}

}  // namespace gridmill::grid
