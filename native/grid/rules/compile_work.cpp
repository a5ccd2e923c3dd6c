// How much a game's rules can ask of one tick, counted before it is played. Conditions that look around, inside of
// conditions that look around, and tags that set off tags multiply: a small game could keep a tick busy for minutes.
// More than kMostWork is refused, with the place that asks for most.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "grid/compile.hpp"
#include "grid/rules/rules.hpp"

namespace gridmill::grid {
namespace {

constexpr double kCell = 1.0 / 100;   // of a step: a cell that is passed over in search of an empty one
constexpr double kAmount = 1.0 / 4;   // of a step: an amount that a limit hangs on
constexpr double kLooked = 1.0 / 16;  // of a step: an amount that a recipe looks at, an object that is counted
constexpr double kLevels = 16;        // that are tried until all around an assembler give as evenly as possible
constexpr double kMatch = 8;          // an area whose rules are noted for an agent, put in order and run later
constexpr double kClaim = 2;          // of an area to the ground that an agent stands on
constexpr double kMostAround = 8;     // agents around an assembler

// Counted as if every condition held up to the last, and every tag were set anew.
class Work {
 public:
  explicit Work(const Program& p) : p_(p), game_(p.config), search_(search()), change_(changes()) { follow_tags(); }

  void check() {
    add_values();
    add_types();
    add_uses();
    add("$.on_tick", of_rules(game_.on_tick));
    add_events();
    if (sum_ <= kMostWork) return;
    fail_at(most_at_, "expected rules of at most " + millions(kMostWork) + " steps in a tick, got " + millions(sum_) +
                          (most_ > sum_ / 2 ? ", most of them here" : ", the largest share here") +
                          "; search for or count fewer objects, search in a smaller radius, nest fewer `near`, "
                          "relocate fewer objects, "
                          "or let tags trigger fewer tags" +
                          (circular() ? ", or give limits whose bonuses depend on each other a lower `max`" : ""));
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

  // What it takes to change how much somebody holds of each resource: its limit hangs on others, and with a bonus that
  // is lost more is lost. The most for any kind of holder.
  std::vector<double> changes() const {
    std::vector<double> all(p_.num_resources, 1);
    for (const LimitSet& limits : p_.limit_sets) {
      double round = 0;
      for (const LimitGroup& group : limits.groups)
        round += 1 + kAmount * static_cast<double>(group.resources.size() + group.bonus.size());
      for (std::size_t r = 0; r < p_.num_resources; ++r) {
        const ResourceLimit& own = limits.of[r];
        double work = 1 + kAmount * (own.bonuses.last - own.bonuses.first + own.others.last - own.others.first);
        if (own.dependents.first != own.dependents.last) work += limits.rounds * round;
        all[r] = std::max(all[r], work);
      }
    }
    return all;
  }
  bool circular() const {
    return std::any_of(p_.limit_sets.begin(), p_.limit_sets.end(),
                       [](const auto& limits) { return limits.rounds > 100; });
  }
  double change_of(const std::string& resource) const {
    const auto at = std::find(game_.resources.begin(), game_.resources.end(), resource);
    return at == game_.resources.end() ? 0 : change_[static_cast<std::size_t>(at - game_.resources.begin())];
  }
  double changes_of(const OrderedDict<std::int64_t>& amounts) const {
    double work = 0;
    for (const auto& [resource, by] : amounts) work += change_of(resource);
    return work;
  }

  double of_value(const GameValue& value) const {
    return std::visit(
        [this](const auto& item) {
          using T = std::decay_t<decltype(item)>;
          double work = 1;
          if constexpr (std::is_same_v<T, CountOf>) work += 2 * kLooked * p_.num_objects;
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
            if constexpr (std::is_same_v<T, Add>) own += of_value(item.value) + change_of(item.resource);
            if constexpr (requires { item.amounts; }) own += changes_of(item.amounts);
            if constexpr (std::is_same_v<T, Transfer>) own += changes_of(item.amounts);  // both change
            if constexpr (std::is_same_v<T, Clear>)
              for (const std::string& resource : item.resources.empty() ? game_.resources : item.resources)
                own += change_of(resource);
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

  // What an assembler asks whenever somebody would use it: each recipe may be tried to its end, in vain.
  double of_recipes(const Assembler& assembler) const {
    double work = 0;
    for (const Recipe& recipe : assembler.recipes) {
      const double looked = kMostAround * static_cast<double>(p_.num_resources + kLevels * recipe.inputs.size());
      work += 1 + kLooked * looked + kMostAround / 2 * changes_of(recipe.inputs) + changes_of(recipe.outputs);
    }
    return work;
  }

  // ---- who runs them

  // What is paid for, shown and learned from is evaluated for every agent, or once for those who share it.
  void add_values() {
    const double teams = static_cast<double>(p_.collectives.teams.size()) + 1;
    for (std::size_t i = 0; i < p_.rewards.terms.size(); ++i) {
      const CompiledTerm& term = p_.rewards.terms[i];
      const double times = term.by_team ? std::min<double>(teams, p_.num_agents) : p_.num_agents;
      add("$.rewards[" + std::to_string(i) + "].value", times * work_of(p_, term.value));
    }
    const bool once = p_.features.shown_by_team && p_.collectives.teams.empty();
    for (std::size_t i = 0; i < p_.features.shown.size(); ++i)
      add("$.observation.values[" + std::to_string(i) + "].value",
          (once ? 1 : p_.num_agents) * work_of(p_, p_.features.shown[i].value));
  }

  template <class Declared>
  void add_type(std::size_t t, const Declared& declared, const std::string& path) {
    add(path + ".on_tick", number_of(t) * of_rules(declared.on_tick));
    for (std::size_t i = 0; i < declared.areas.size(); ++i) {
      const Area& area = declared.areas[i];
      double each = of_conditions(area.when) + of_rules(area.rules) + of_rules(area.on_enter) + of_rules(area.on_exit);
      if (!p_.areas.list[p_.types[t].areas.first + i].counted)
        each += 1 + static_cast<double>(area.changes.size() + area.enter.size() + area.exit.size());
      if (!area.rules.empty() || !area.on_enter.empty() || !area.on_exit.empty()) each += kMatch;
      if (area.territory) each += kClaim;
      // Every agent is compared with every source that walks; of those that do not, with 64 at a time.
      const double compared = number_of(t) * (t == p_.agent_type ? 1.0 : 1.0 / 64);
      add(path + ".areas[" + std::to_string(i) + "]",
          p_.num_agents * (compared + within(number_of(t), static_cast<double>(area.radius)) * each));
    }
  }

  // What it takes to use an object of a type, and which part of it takes most.
  struct Use {
    double asked = 0, done = 0, most = 0;
    std::string part;
    void add(const std::string& name, double to_ask, double to_do) {
      asked += to_ask;
      done += to_do;
      if (to_ask + to_do <= most) return;
      most = to_ask + to_do;
      part = name;
    }
  };
  template <class Declared>
  Use use_of(const Declared& declared) const {
    Use use;
    use.add(".on_use", of_rules(declared.on_use, {}), of_rules(declared.on_use));  // masks set off nothing
    if constexpr (requires { declared.converter; }) {
      if (declared.converter) {
        const double work = changes_of(declared.converter->inputs) + changes_of(declared.converter->outputs);
        use.add(".converter", work, work);
      }
      if (declared.assembler) {
        const double work = of_recipes(*declared.assembler);
        use.add(".assembler", work, work);
      }
    }
    return use;
  }

  // For the masks every agent asks in every direction, then each makes a move; eight can do so at each object.
  void add_uses() {
    const double asks = p_.num_agents * static_cast<double>(game_.moves), moves = p_.num_agents;
    double all = 0, most = 0;
    std::string most_at;
    const auto look_at = [&](std::size_t t, const Use& use, const std::string& path) {
      const double reached = kMostAround * number_of(t), each = asks * use.asked + moves * use.done;
      all += std::min(asks, reached) * use.asked + std::min(moves, reached) * use.done;
      if (reached == 0 || each <= most) return;
      most = each;
      most_at = path + use.part;
    };
    for (std::size_t t = 0; t < game_.objects.size(); ++t)
      look_at(t, use_of(game_.objects[t].second), "$.objects." + game_.objects[t].first);
    look_at(p_.agent_type, use_of(game_.agent), "$.agent");
    if (most > 0) add(most_at, std::min(all, most));
  }

  void add_types() {
    for (std::size_t t = 0; t < game_.objects.size(); ++t)
      add_type(t, game_.objects[t].second, "$.objects." + game_.objects[t].first);
    add_type(p_.agent_type, game_.agent, "$.agent");
    // What moving and being looted costs an agent, and what areas change.
    double changed =
        changes_of(game_.move_cost) + (game_.attack ? 2 * std::accumulate(change_.begin(), change_.end(), 0.0) : 0);
    for (const std::uint16_t r : p_.areas.resources) changed += change_[r];
    add("$.agent.limits", p_.num_agents * changed);
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
  std::vector<double> change_;  // of a resource
  Cascade cascade_;
  double sum_ = 0, most_ = 0;
  std::string most_at_ = "$";
};

}  // namespace

double work_of(const Program& p, const CompiledValue& value) {
  const auto counts =
      std::count_if(value.begin(), value.end(), [](const ValueOp& op) { return op.code == ValueOp::count; });
  return static_cast<double>(value.size()) + 2 * kLooked * static_cast<double>(counts) * p.num_objects;
}

void check_work(const Program& p) { Work(p).check(); }

}  // namespace gridmill::grid
