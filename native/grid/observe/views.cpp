// See views.hpp.
#include "grid/observe/views.hpp"

#include "core/isa.hpp"
#include "core/tokens.hpp"
#include "grid/directions.hpp"

namespace gridmill::grid {
namespace {

std::string value_in_words(const Vocabulary& vocabulary, const std::string& feature, int value) {
  const auto at = [value](const std::vector<std::string>& names) {
    return value < static_cast<int>(names.size()) ? names[static_cast<std::size_t>(value)] : std::to_string(value);
  };
  if (feature == "tag") return at(vocabulary.tags);
  if (feature == "vibe") return at(vocabulary.vibes);
  if (feature == "collective") return at(vocabulary.teams);
  if (feature == "last_action") return at(vocabulary.action_names());
  return std::to_string(value);
}

}  // namespace

std::vector<NamedToken> describe_row(const Program& p, const std::uint8_t* row) {
  std::vector<NamedToken> tokens;
  for (std::int32_t i = 0; i < p.config.observation.num_tokens; ++i, row += 3) {
    if (row[0] == kNoToken) break;
    NamedToken token;
    if (row[0] != kGlobalLocation) {
      token.row = (row[0] >> 4) - p.window.radius_rows;
      token.column = (row[0] & 15) - p.window.radius_columns;
    }
    token.feature = row[1] < p.vocabulary->features.size() ? p.vocabulary->features[row[1]].name
                                                           : "feature " + std::to_string(row[1]);
    token.value = row[2];
    token.text = value_in_words(*p.vocabulary, token.feature, row[2]);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

std::vector<std::string> dense_channels(const Vocabulary& vocabulary) {
  std::vector<std::string> names;
  for (const auto& feature : vocabulary.features) names.push_back(feature.name);
  for (const auto& tag : vocabulary.tags) names.push_back("tag:" + tag);
  return names;
}

DenseForm dense_form(const Program& p) {
  DenseForm form{};
  form.features = static_cast<std::uint32_t>(p.vocabulary->features.size());
  form.tags = static_cast<std::uint32_t>(p.vocabulary->tags.size());
  form.tag = p.features.tag;
  form.common = p.codes.common_tag;
  form.height = static_cast<std::uint32_t>(p.window.height);
  form.width = static_cast<std::uint32_t>(p.window.width);
  form.plane = form.height * form.width;
  form.bytes = std::size_t{form.features + form.tags} * form.plane;
  return form;
}

void write_dense(const Program& p, const std::uint8_t* rows, std::size_t num_rows, std::uint8_t* out) {
  const auto tokens = static_cast<std::uint32_t>(p.config.observation.num_tokens);
  if constexpr (kSeveralIsas) {
    if (isa() >= Isa::avx512) return dense_avx512(dense_form(p), rows, num_rows, tokens, out);
    if (isa() >= Isa::avx2) return dense_avx2(dense_form(p), rows, num_rows, tokens, out);
  }
  dense_portable(dense_form(p), rows, num_rows, tokens, out);
}

void Grid::show_dense(const T& tick) {
  if (tick.rows.dense != nullptr) write_dense(tick.program, tick.rows.obs, tick.program.num_agents, tick.rows.dense);
}

namespace {

void look_at_object(const Program& p, const World& w, std::uint32_t object, std::uint32_t tick, SeenNumbers& seen) {
  seen.object = static_cast<int>(object);
  if (!p.vocabulary->vibes.empty()) seen.vibe = w.vibe[object];
  for (std::uint32_t i = 0; i < p.num_resources; ++i)
    if (const int held = w.held(object)[i]) seen.inventory.emplace_back(static_cast<int>(i), held);
  if (const std::uint8_t team = w.collective_of(object); team != kNeutral)
    seen.collective = p.collectives.teams[team].batch_id;
  const Type& type = p.types[w.type[object]];
  if (p.machines.any && (w.running[object / 64] >> (object % 64) & 1))
    seen.converting = static_cast<int>(w.done_at[object] - tick);
  if (type.assembler >= 0)
    if (const auto most = p.machines.assemblers[static_cast<std::size_t>(type.assembler)].max_uses; most >= 0)
      seen.uses = static_cast<int>(most - w.conversions[object]);
  if (object >= p.num_agents) return;
  seen.agent = static_cast<int>(object);
  seen.group = w.group[object];
  seen.facing = w.facing[object];
  if (p.actions.can_freeze) seen.frozen = w.frozen[object];
}

SeenObject named(const Program& p, const SeenNumbers& numbers) {
  const auto at = [](const auto& names, int number) { return names[static_cast<std::size_t>(number)]; };
  SeenObject seen;
  seen.type = at(p.types, numbers.type).name;
  if (numbers.vibe >= 0) seen.vibe = at(p.vocabulary->vibes, numbers.vibe);
  if (numbers.facing >= 0) seen.facing = kDirections[static_cast<std::size_t>(numbers.facing)].name;
  seen.row = numbers.row;
  seen.column = numbers.column;
  seen.agent = numbers.agent;
  seen.group = numbers.group;
  seen.frozen = numbers.frozen;
  seen.converting = numbers.converting;
  if (numbers.uses >= 0) seen.uses = numbers.uses;
  if (numbers.collective >= 0) seen.collective = at(p.vocabulary->teams, numbers.collective);
  for (const int tag : numbers.tags) seen.tags.push_back(at(p.vocabulary->tags, tag));
  for (const auto& [resource, amount] : numbers.inventory)
    seen.inventory.emplace_back(at(p.config.resources, resource), amount);
  return seen;
}

}  // namespace

bool look_at_cell(const Program& p, const World& w, std::uint32_t row, std::uint32_t column, std::uint32_t tick,
                  SeenNumbers& seen) {
  const std::uint16_t code = w.code_at(w.cell_at(row, column));
  if (code == kEmpty) return false;
  std::vector<int> tags = std::move(seen.tags);
  auto inventory = std::move(seen.inventory);
  tags.clear();
  inventory.clear();
  seen = {};
  seen.tags = std::move(tags);
  seen.inventory = std::move(inventory);
  seen.row = static_cast<int>(row);
  seen.column = static_cast<int>(column);
  seen.type = static_cast<int>(w.type_of(code));
  const bool has_state = code <= p.num_objects;
  if (has_state) look_at_object(p, w, code - 1u, tick, seen);
  else if (!p.vocabulary->vibes.empty()) seen.vibe = 0;
  const Type& type = p.types[static_cast<std::size_t>(seen.type)];
  for (std::uint16_t tag = 0; tag < p.vocabulary->tags.size(); ++tag)
    if (has_state ? w.has_tag(code - 1u, tag) : type.tag_set[tag]) seen.tags.push_back(tag);
  return true;
}

std::vector<SeenObject> inspect_world(const Program& p, const World& w, std::uint32_t tick) {
  std::vector<SeenObject> objects;
  each_object(p, w, tick, [&](const SeenNumbers& seen) { objects.push_back(named(p, seen)); });
  return objects;
}

}  // namespace gridmill::grid
