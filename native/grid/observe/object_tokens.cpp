// What an object shows. Tokens are built once when something about the object changes and kept in the cache as
// ready bytes (location 0), so that observing it is a copy. Ascending (feature, value), whatever happened: feature ids
// follow the names' order, so writing the features in the order of their names leaves nothing to sort but tags.
// A new token is an entry of kTable and, written once more without the table, a line of observe_reference.cpp.
#include "grid/observe/object_tokens.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "grid/grid.hpp"

namespace gridmill::grid {
namespace {

class TokenWriter {
 public:
  explicit TokenWriter(std::uint8_t* tokens) : begin_(tokens), out_(tokens) {}

  void add(std::uint8_t feature, std::uint8_t value) {
    out_[0] = 0;
    out_[1] = feature;
    out_[2] = value;
    out_ += 3;
  }
  std::size_t count() const { return static_cast<std::size_t>(out_ - begin_) / 3; }
  // Where in them the value of the next token will stand.
  std::uint16_t next_value() const { return static_cast<std::uint16_t>(out_ - begin_ + 2); }

 private:
  std::uint8_t *begin_, *out_;
};

// ---- the table

struct Shown {
  const Program& p;
  const World& w;
  const Type& type;
  std::uint32_t object, tick;
};
constexpr int kNone = -1;  // of a value: there is no such token now

struct ObjectToken {
  std::string_view name;
  enum Who : std::uint8_t { agents, objects } who;
  bool (*in_game)(const GameConfig&, const References&);  // whether a game has this feature
  bool (*room)(const Program&, const Type&);              // whether a type may ever show it
  int (*value)(const Shown&);                             // 0 to 255, or kNone
  bool usual = false;                                     // an agent that may show it does so most of the time
  double most = 255;                                      // what the value is divided by
  std::uint16_t* World::* place = nullptr;  // where to note the byte of the value, for whoever writes it over
};

int capped(std::int64_t n) { return static_cast<int>(std::min<std::int64_t>(255, n)); }
bool always(const GameConfig&, const References&) { return true; }
bool of_all(const Program&, const Type&) { return true; }
bool works(const Program&, const Type& type) { return type.converter >= 0 || type.assembler >= 0; }

bool some_type(const GameConfig& game, bool (*has)(const ObjectType&)) {
  return std::any_of(game.objects.begin(), game.objects.end(), [has](const auto& named) { return has(named.second); });
}

int uses_left(const Shown& s) {
  if (s.type.assembler < 0) return kNone;
  const std::int64_t uses = s.p.machines.assemblers[static_cast<std::size_t>(s.type.assembler)].max_uses;
  const std::int64_t used = s.w.conversions[s.object];
  return uses > used ? capped(uses - used) : kNone;
}

// By name, ascending.
constexpr ObjectToken kTable[] = {
    {.name = "agent:facing",
     .who = ObjectToken::agents,
     .in_game = [](const GameConfig& game, const References&) { return game.attack || game.swap; },
     .room = [](const Program& p, const Type&) { return p.actions.shows_facing; },
     .value = [](const Shown& s) { return s.p.actions.shows_facing ? s.w.facing[s.object] : kNone; },
     .usual = true,
     .most = 3,
     .place = &World::facing_byte},
    {.name = "agent:frozen",
     .who = ObjectToken::agents,
     .in_game = [](const GameConfig&, const References& references) { return references.freezes; },
     .room = [](const Program& p, const Type&) { return p.actions.can_freeze; },
     .value =
         [](const Shown& s) {
           return s.p.actions.can_freeze && s.w.frozen[s.object] ? capped(s.w.frozen[s.object]) : kNone;
         }},
    {.name = "agent:group",
     .who = ObjectToken::agents,
     .in_game = always,
     .room = of_all,
     .value = [](const Shown& s) { return int{s.w.group[s.object]}; },
     .usual = true},
    {.name = "agent:id",
     .who = ObjectToken::agents,
     .in_game = always,
     .room = of_all,
     .value = [](const Shown& s) { return static_cast<int>(s.object & 255); },
     .usual = true},
    {.name = "collective",
     .who = ObjectToken::objects,
     .in_game = [](const GameConfig& game, const References&) { return !game.collectives.empty(); },
     .room = [](const Program& p, const Type& type) { return !type.terrain && !p.collectives.teams.empty(); },
     .value =
         [](const Shown& s) {
           const std::uint8_t team = s.w.collective_of(s.object);
           return team == kNeutral ? kNone : s.p.collectives.teams[team].batch_id;
         },
     .usual = true},
    {.name = "converting",
     .who = ObjectToken::objects,
     .in_game =
         [](const GameConfig& game, const References&) {
           return some_type(game, [](const ObjectType& type) {
             return type.converter || (type.assembler && type.assembler->cooldown > 0);
           });
         },
     .room = works,
     .value =
         [](const Shown& s) {
           const bool runs = s.p.machines.any && (s.w.running[s.object >> 6] >> (s.object & 63) & 1);
           return runs ? capped(s.w.done_at[s.object] - s.tick) : kNone;
         },
     .place = &World::converting_byte},
    {.name = "uses",
     .who = ObjectToken::objects,
     .in_game =
         [](const GameConfig& game, const References&) {
           return some_type(game,
                            [](const ObjectType& type) { return type.assembler && type.assembler->max_uses >= 0; });
         },
     .room = [](const Program&, const Type& type) { return type.assembler >= 0; },
     .value = uses_left},
    {.name = "vibe",
     .who = ObjectToken::objects,
     .in_game = [](const GameConfig& game, const References&) { return game.vibes.size() > 1; },
     .room = [](const Program& p, const Type&) { return p.config.vibes.size() > 1; },
     .value = [](const Shown& s) { return s.w.vibe[s.object] ? int{s.w.vibe[s.object]} : kNone; }},
};
constexpr std::size_t kEntries = std::size(kTable), kVibe = kEntries - 1;
static_assert(kEntries <= std::tuple_size_v<ObjectFeatures>);
static_assert(std::is_sorted(std::begin(kTable), std::end(kTable), [](auto& a, auto& b) { return a.name < b.name; }));
static_assert(kTable[kVibe].name == "vibe", "patch_vibe() relies on the vibe being an object's last token");

// The first entry whose name does not come before this one.
consteval std::size_t entry_behind(std::string_view name) {
  std::size_t at = 0;
  while (at < kEntries && kTable[at].name < name) ++at;
  return at;
}
constexpr std::size_t kAmountsBefore = entry_behind("inv:"), kTagsBefore = entry_behind("tag");

template <std::size_t Entry>
void add_entry(const Shown& s, World& w, TokenWriter& tokens) {
  constexpr const ObjectToken& token = kTable[Entry];
  if (token.who == ObjectToken::agents && s.object >= s.p.num_agents) return;
  const int value = token.value(s);
  if (value == kNone) return;
  if constexpr (token.place != nullptr) (w.*token.place)[s.object] = tokens.next_value();
  tokens.add(s.p.features.of_object[Entry], static_cast<std::uint8_t>(value));
}

template <std::size_t First, std::size_t End>
void add_entries(const Shown& s, World& w, TokenWriter& tokens) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (add_entry<First + I>(s, w, tokens), ...);
  }(std::make_index_sequence<End - First>{});
}

// ---- amounts and tags

void add_amounts(const Program& p, const std::uint16_t* held, TokenWriter& tokens) {
  for (const AmountDigit& digit : p.features.amount_digits)
    if (const std::uint8_t value = static_cast<std::uint8_t>(held[digit.resource] >> digit.shift))
      tokens.add(digit.feature, value);
}

// An agent's amounts, with a note of where each stands, for patch_agent().
void add_noted_amounts(const Program& p, World& w, std::uint32_t agent, TokenWriter& tokens) {
  std::uint8_t* places = w.digit_places(agent);
  for (const AmountDigit& digit : p.features.amount_digits) {
    const auto value = static_cast<std::uint8_t>(w.held(agent)[digit.resource] >> digit.shift);
    places[2 * digit.resource + (digit.shift >> 3)] =
        value == 0 ? kNotShown : static_cast<std::uint8_t>(tokens.count());
    if (value != 0) tokens.add(digit.feature, value);
  }
}

void add_tags(const Program& p, const Type& type, std::uint64_t tag_bits, TokenWriter& tokens) {
  if (tag_bits == 0) {
    for (const std::uint8_t tag : type.tags) tokens.add(p.features.tag, tag);
    return;
  }
  std::uint8_t tags[256];
  std::uint8_t* end = std::copy(type.tags.begin(), type.tags.end(), tags);
  for (; tag_bits != 0; tag_bits &= tag_bits - 1)
    *end++ = p.tags.changeable[static_cast<std::size_t>(__builtin_ctzll(tag_bits))];
  std::sort(tags, end);
  for (const std::uint8_t* tag = tags; tag != end; ++tag) tokens.add(p.features.tag, *tag);
}

// The vibe is the last of an agent's tokens, so there is nothing behind it to move.
void patch_vibe(const Program& p, World& w, std::uint32_t agent) {
  std::uint8_t* const tokens = w.cached_tokens(agent + 1);
  std::uint8_t& count = w.token_counts[agent + 1];
  if (tokens[3 * (count - 1) + 1] == p.features.of_object[kVibe]) --count;
  if (w.vibe[agent] == 0) return;
  std::uint8_t* const token = tokens + 3 * count++;
  token[0] = 0;
  token[1] = p.features.of_object[kVibe];
  token[2] = w.vibe[agent];
}

// Where an agent shows the same digits as before, writes only the values that changed; false where it does not.
// Nothing is written before that is known, so that what lies behind the last token does not depend on the way here.
bool patch_agent(const Program& p, World& w, std::uint32_t agent) {
  const std::uint64_t changes = w.changes()[agent], vibe = std::uint64_t{1} << World::kVibeChange;
  const std::uint16_t* const held = w.held(agent);
  const std::uint8_t* const places = w.digit_places(agent);
  const auto same = [](bool shown, std::uint8_t place) { return shown ? place % kNotShown != 0 : place == kNotShown; };
  for (std::uint64_t left = changes & ~vibe; left != 0; left &= left - 1) {
    const auto r = static_cast<std::uint32_t>(__builtin_ctzll(left));
    if (!same((held[r] & 255) != 0, places[2 * r])) return false;
    if (p.features.resource_high[r] != kNoFeature && !same(held[r] >> 8 != 0, places[2 * r + 1])) return false;
  }
  std::uint8_t* const tokens = w.cached_tokens(agent + 1);
  for (std::uint64_t left = changes & ~vibe; left != 0; left &= left - 1) {
    const auto r = static_cast<std::uint32_t>(__builtin_ctzll(left));
    if ((held[r] & 255) != 0) tokens[3 * places[2 * r] + 2] = static_cast<std::uint8_t>(held[r]);
    if (p.features.resource_high[r] != kNoFeature && held[r] >> 8 != 0)
      tokens[3 * places[2 * r + 1] + 2] = static_cast<std::uint8_t>(held[r] >> 8);
  }
  if ((changes & vibe) != 0) patch_vibe(p, w, agent);
  return true;
}

}  // namespace

void add_object_features(const GameConfig& game, const References& references,
                         std::map<std::string, double>& features) {
  for (const ObjectToken& token : kTable)
    if (token.in_game(game, references)) features[std::string(token.name)] = token.most;
}

ObjectFeatures compile_object_features(const Vocabulary& vocabulary) {
  ObjectFeatures ids{};
  for (std::size_t i = 0; i < kEntries; ++i) ids[i] = vocabulary.feature(std::string(kTable[i].name));
  return ids;
}

std::size_t most_object_tokens(const Program& p, const Type& type, bool agent) {
  return static_cast<std::size_t>(std::count_if(std::begin(kTable), std::end(kTable), [&](const ObjectToken& token) {
    return (agent || token.who == ObjectToken::objects) && token.room(p, type);
  }));
}

std::size_t usual_object_tokens(const Program& p) {
  const Type& agent = p.types[p.agent_type];
  return static_cast<std::size_t>(std::count_if(std::begin(kTable), std::end(kTable), [&](const ObjectToken& token) {
    return token.usual && token.room(p, agent);
  }));
}

void refresh_object(const Program& p, World& w, std::uint32_t object, std::uint32_t tick) {
  if (object < p.num_agents && w.changes()[object] != 0 && patch_agent(p, w, object)) return;
  const Type& type = p.types[w.type[object]];
  TokenWriter tokens(w.cached_tokens(object + 1));
  const Shown shown{p, w, type, object, tick};
  add_entries<0, kAmountsBefore>(shown, w, tokens);
  if (object < p.num_agents) add_noted_amounts(p, w, object, tokens);
  else add_amounts(p, w.held(object), tokens);
  add_entries<kAmountsBefore, kTagsBefore>(shown, w, tokens);
  add_tags(p, type, p.tags.changeable.empty() ? 0 : w.tag_bits()[object], tokens);
  add_entries<kTagsBefore, kEntries>(shown, w, tokens);
  w.token_counts[object + 1] = static_cast<std::uint8_t>(tokens.count());
}

void refresh_terrain(const Program& p, World& w) {
  for (const Type& type : p.types) {
    if (!type.terrain) continue;
    TokenWriter tokens(w.cached_tokens(type.code));
    add_tags(p, type, type.tag_bits, tokens);
    w.token_counts[type.code] = static_cast<std::uint8_t>(tokens.count());
  }
}

}  // namespace gridmill::grid
