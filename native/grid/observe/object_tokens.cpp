// What an object shows. Tokens are built once when something about the object changes and kept in the cache as
// ready bytes (location 0), so that observing it is a copy. Ascending (feature, value), whatever happened: feature ids
// follow the names' order, so writing the features in the order of their names leaves nothing to sort but tags.
#include <algorithm>
#include <cassert>

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
  std::uint8_t last_feature() const { return out_[-2]; }
  // Where in them the value of the next token will stand.
  std::uint16_t next_value() const { return static_cast<std::uint16_t>(out_ - begin_ + 2); }

 private:
  std::uint8_t *begin_, *out_;
};

std::uint8_t capped(std::int64_t n) { return static_cast<std::uint8_t>(std::min<std::int64_t>(255, n)); }

void add_agent(const Program& p, World& w, std::uint32_t agent, TokenWriter& tokens) {
  if (p.actions.shows_facing) {
    w.facing_byte[agent] = tokens.next_value();
    tokens.add(p.features.facing, w.facing[agent]);
  }
  if (p.actions.can_freeze && w.frozen[agent]) tokens.add(p.features.frozen, capped(w.frozen[agent]));
  tokens.add(p.features.group, w.group[agent]);
  tokens.add(p.features.id, static_cast<std::uint8_t>(agent));
}

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
  if (tokens[3 * (count - 1) + 1] == p.features.vibe) --count;
  if (w.vibe[agent] == 0) return;
  std::uint8_t* const token = tokens + 3 * count++;
  token[0] = 0;
  token[1] = p.features.vibe;
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

void refresh_object(const Program& p, World& w, std::uint32_t object, std::uint32_t tick) {
  if (object < p.num_agents && w.changes()[object] != 0 && patch_agent(p, w, object)) return;
  const Type& type = p.types[w.type[object]];
  TokenWriter tokens(w.cached_tokens(object + 1));
  if (object < p.num_agents) add_agent(p, w, object, tokens);
  if (const std::uint8_t team = w.collective_of(object); team != kNeutral)
    tokens.add(p.features.collective, p.collectives.teams[team].batch_id);
  if (p.machines.any && (w.running[object >> 6] >> (object & 63) & 1)) {
    w.converting_byte[object] = tokens.next_value();
    tokens.add(p.features.converting, capped(w.done_at[object] - tick));
  }
  if (object < p.num_agents) add_noted_amounts(p, w, object, tokens);
  else add_amounts(p, w.held(object), tokens);
  add_tags(p, type, p.tags.changeable.empty() ? 0 : w.tag_bits()[object], tokens);
  if (type.assembler >= 0) {
    const std::int64_t uses = p.machines.assemblers[static_cast<std::size_t>(type.assembler)].max_uses;
    if (uses > w.conversions[object]) tokens.add(p.features.uses, capped(uses - w.conversions[object]));
  }
  if (w.vibe[object]) tokens.add(p.features.vibe, w.vibe[object]);
  assert(!w.vibe[object] || tokens.last_feature() == p.features.vibe);  // patch_vibe() relies on it
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
