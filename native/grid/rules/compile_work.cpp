// How much a game's rules can ask of one tick, counted before it is played. Conditions that look around, inside of
// conditions that look around, and tags that set off tags multiply: a small game could keep a tick busy for minutes.
// More than kMostWork is refused, with the place that asks for most.
#include <algorithm>
#include <cmath>
#include <map>

#include "grid/compile.hpp"
#include "grid/rules/rules.hpp"

namespace gridmill::grid {
namespace {

constexpr double kMostWork = 5e7;    // objects looked at and effects tried: about a second
constexpr double kCell = 1.0 / 100;  // of such a step: a cell that is passed over in search of an empty one

// Counted as if every condition held up to the last, and every tag were set anew.
class Work {
 public:
  explicit Work(const Program& p) : p_(p), game_(p.config), search_(search()) { follow_tags(); }

  void check() {
    add_types();
    add("$.on_tick", of_rules(game_.on_tick));
    add_events();
    if (sum_ <= kMostWork) return;
    fail_at(
        most_at_,
        "expected rules of at most " + millions(kMostWork) + " steps in a tick, got " + millions(sum_) +
            ", most of them here; search for fewer objects or in a smaller radius, nest fewer `near`, relocate fewer "
            "objects, or let tags trigger fewer tags");
  }

 private:
  void add(const std::string& path, double work) {
    sum_ += work;
    if (work <= most_) return;
    most_ = work;
    most_at_ = path;
  }

  // ---- conditions and values

  double bearers(const std::string& tag) const {
    const std::uint8_t id = p_.vocabulary->tag(tag);
    double count = 0;
    for (std::size_t t = 0; t < p_.types.size(); ++t)
      if (p_.tags.bit_of[id] >= 0 || p_.types[t].tag_set[id]) count += number_of(t);
    return std::min(count, static_cast<double>(p_.num_objects));
  }
  // The most objects of a type at a time; what is spawned may take all places.
  double number_of(std::size_t t) const {
    if (t == p_.agent_type) return p_.num_agents;
    return p_.rules.can_spawn ? p_.num_objects
                              : std::min<double>(static_cast<double>(p_.map.placed[t]), p_.num_objects);
  }
  // Objects at most so far away: there is one in a cell.
  double within(double count, double radius) const {
    const double height = std::min<double>(2 * radius + 1, p_.height),
                 width = std::min<double>(2 * radius + 1, p_.width);
    return std::min(count, height * width);
  }

  // Cells passed over in search of an empty one from a random one on, on average, where all that is on the map stands
  // in one row after another.
  double search() const {
    const double cells = static_cast<double>(p_.height) * p_.width;
    double taken = p_.rules.can_spawn ? p_.num_objects : 0;
    for (const std::uint64_t placed : p_.map.placed) taken += static_cast<double>(placed);
    taken = std::min(taken, cells);
    return taken * taken / (2 * cells);
  }

  double of_value(const GameValue& value) const {
    return std::visit(
        [this](const auto& item) {
          using T = std::decay_t<decltype(item)>;
          double work = 1;
          if constexpr (std::is_same_v<T, CountOf>) work += p_.num_objects;
          if constexpr (requires { item.values; })
            for (const GameValue& part : item.values) work += of_value(part);
          return work;
        },
        value.data);
  }

  double of_conditions(const std::vector<Condition>& list) const {
    double work = 0;
    for (const Condition& condition : list)
      work += std::visit(
          [this](const auto& item) {
            using T = std::decay_t<decltype(item)>;
            if constexpr (std::is_same_v<T, Near>)
              return p_.num_objects +
                     within(bearers(item.tag), static_cast<double>(item.radius)) * (1 + of_conditions(item.when));
            else if constexpr (requires { item.conditions; }) return 1 + of_conditions(item.conditions);
            else if constexpr (std::is_same_v<T, AtLeast>) return 1 + of_value(item.value);
            else return 1.0;
          },
          condition.data);
    return work;
  }

  // ---- effects, and what the tags they change set off

  using Cascade = std::map<std::pair<std::string, bool>, double>;  // tag, whether it is set -> work

  double of_effects(const std::vector<Effect>& list, const Cascade& cascade) const {
    double work = 0;
    for (const Effect& effect : list)
      work += std::visit(
          [&](const auto& item) {
            using T = std::decay_t<decltype(item)>;
            double own = 1;
            if constexpr (std::is_same_v<T, SetTag> || std::is_same_v<T, ClearTag>) {
              const auto found = cascade.find({item.tag, std::is_same_v<T, SetTag>});
              if (found != cascade.end()) own += found->second;
            }
            if constexpr (std::is_same_v<T, Add>) own += of_value(item.value);
            if constexpr (std::is_same_v<T, SpawnObject>) own += p_.num_objects;
            if constexpr (std::is_same_v<T, Relocate>) own += item.to == "random" ? kCell * search_ : 0;
            if constexpr (std::is_same_v<T, Push>)
              own += kCell * std::min<double>(static_cast<double>(item.distance), std::max(p_.height, p_.width));
            return own;
          },
          effect.data);
    return work;
  }
  double of_rules(const std::vector<Rule>& rules, const Cascade& cascade) const {
    double work = 0;
    for (const Rule& rule : rules) work += of_conditions(rule.when) + of_effects(rule.then, cascade);
    return work;
  }
  double of_rules(const std::vector<Rule>& rules) const { return of_rules(rules, cascade_); }

  // From the deepest rules up: what a tag sets off there sets off nothing more.
  void follow_tags() {
    for (int depth = 0; depth < kMostRulesDeep; ++depth) {
      Cascade above;
      for (const auto& [tag, rules] : game_.on_tag_added) above[{tag, true}] = of_rules(rules, cascade_);
      for (const auto& [tag, rules] : game_.on_tag_removed) above[{tag, false}] = of_rules(rules, cascade_);
      cascade_ = std::move(above);
    }
  }

  // ---- who runs them

  template <class Declared>
  void add_type(std::size_t t, const Declared& declared, const std::string& path) {
    add(path + ".on_tick", number_of(t) * of_rules(declared.on_tick));
    // Masks ask about every move of every agent and set off nothing; then each agent makes one.
    const double asked = p_.num_agents * static_cast<double>(game_.moves) * of_rules(declared.on_use, {});
    if (number_of(t) > 0) add(path + ".on_use", asked + p_.num_agents * of_rules(declared.on_use));
    for (std::size_t i = 0; i < declared.areas.size(); ++i) {
      const Area& area = declared.areas[i];
      double each = of_conditions(area.when) + of_rules(area.rules) + of_rules(area.on_enter) + of_rules(area.on_exit);
      if (!p_.areas.list[p_.types[t].areas.first + i].counted)
        each += static_cast<double>(area.changes.size() + area.enter.size() + area.exit.size());
      // Every agent is compared with every source that walks; of those that do not, with 64 at a time.
      const double compared = number_of(t) * (t == p_.agent_type ? 1.0 : 1.0 / 64);
      add(path + ".areas[" + std::to_string(i) + "]",
          p_.num_agents * (compared + within(number_of(t), static_cast<double>(area.radius)) * each));
    }
  }

  void add_types() {
    for (std::size_t t = 0; t < game_.objects.size(); ++t)
      add_type(t, game_.objects[t].second, "$.objects." + game_.objects[t].first);
    add_type(p_.agent_type, game_.agent, "$.agent");
  }

  // All at once, each with all that would run in its place: fallbacks end somewhere.
  void add_events() {
    std::map<std::string, std::size_t> place;
    std::vector<double> work(game_.events.size(), -1);
    for (std::size_t i = 0; i < game_.events.size(); ++i) place[game_.events[i].first] = i;
    std::vector<std::size_t> chain;
    for (std::size_t i = 0; i < game_.events.size(); ++i) {
      for (std::size_t at = i; work[at] < 0;) {
        chain.push_back(at);
        const auto next = place.find(game_.events[at].second.fallback);
        if (next == place.end()) break;
        at = next->second;
      }
      for (; !chain.empty(); chain.pop_back()) {
        const Event& event = game_.events[chain.back()].second;
        const auto next = place.find(event.fallback);
        const double targets = event.targets.empty() ? 1 : bearers(event.targets);
        const double own = (event.targets.empty() ? 0 : p_.num_objects) +
                           targets * (of_conditions(event.when) + of_effects(event.then, cascade_));
        work[chain.back()] = own + (next == place.end() ? 0 : work[next->second]);
      }
      add("$.events." + game_.events[i].first, work[i]);
    }
  }

  const Program& p_;
  const GameConfig& game_;
  double search_;
  Cascade cascade_;
  double sum_ = 0, most_ = 0;
  std::string most_at_ = "$";
};

}  // namespace

void check_work(const Program& p) { Work(p).check(); }

}  // namespace gridmill::grid
