// What a scripted agent remembers of a map, and the scripts that walk by it, on rows of real games and on rows of
// garbage (the sanitizers watch).
#include <cstring>
#include <map>

#include "check.hpp"
#include "golden/json.hpp"
#include "grid/batch.hpp"
#include "grid/scripts/map_memory.hpp"
#include "grid/scripts/scripts.hpp"

using namespace gridmill;
using namespace gridmill::grid;

namespace {

Value* member(Value& value, const std::string& name) {
  for (auto& entry : std::get<Value::Dict>(value.data))
    if (entry.first == name) return &entry.second;
  return nullptr;
}

Value golden_config(const std::string& game) {
  Value file = golden::read_file(std::string(GRIDMILL_GOLDEN) + "/" + game + ".json");
  return *member(file, "config");
}

Value with_position(Value config) {
  member(*member(config, "observation"), "local_position")->data = true;
  return config;
}

// An agent alone in an empty hall, larger than what is remembered.
Value wide_hall() {
  Value config = golden_config("navigation");
  member(config, "num_agents")->data = std::int64_t{1};
  const auto number = [](std::int64_t n) { return Value{n}; };
  member(config, "map")->data = Value::Dict{{"kind", {std::string("canvas")}},
                                            {"height", number(9)},
                                            {"width", number(250)},
                                            {"border", number(1)},
                                            {"layers", {Value::List{}}}};
  return config;
}

BatchOptions options_of(std::uint32_t worlds) {
  BatchOptions options;
  options.num_worlds = worlds;
  options.seed = 5;
  return options;
}

std::vector<std::pair<std::string, Kind>> every_kind(const Program& program) {
  std::vector<std::pair<std::string, Kind>> kinds;
  for (const auto& [name, type] : program.config.objects)
    if (name != "wall") kinds.emplace_back(name, static_cast<Kind>(kFirstKind + kinds.size()));
  return kinds;
}

struct Row {
  explicit Row(const MapReader& reader) : bytes(reader.memory_bytes()) {}
  std::vector<std::byte> bytes;
};

// Agents of one game at random, their maps kept twice: by the tokens that show where they are, and by what succeeded.
void compare_positions(const std::string& game, std::uint32_t ticks) {
  const Value config = golden_config(game);
  Batch<Grid> batch({with_position(config), config}, {"shown", "hidden"}, options_of(2));
  const Program &shown = *batch.worlds().programs[0], &hidden = *batch.worlds().programs[1];
  const MapReader by_token(batch.worlds().vocabulary, shown, every_kind(shown));
  const MapReader by_moves(batch.worlds().vocabulary, hidden, every_kind(hidden));
  batch.assign({0, 1}, {0, 0});
  batch.reset(std::nullopt);
  const auto b = batch.buffers();
  std::vector<Row> first(b->rows, Row(by_token)), second(b->rows, Row(by_moves));
  const Stream draw({1, 0, 0}, 0, 80);
  std::uint32_t moved = 0;
  for (std::uint32_t tick = 0; tick < ticks; ++tick) {
    for (std::size_t row = 0; row < b->rows; ++row) {
      const std::uint8_t* obs = b->obs + row * b->obs_size;
      const std::uint16_t before = MapReader::here(second[row].bytes.data());
      CHECK(by_token.remember(by_token.read(obs), first[row].bytes.data()));
      CHECK(by_moves.remember(by_moves.read(obs), second[row].bytes.data()));
      CHECK_EQ(MapReader::here(first[row].bytes.data()), MapReader::here(second[row].bytes.data()));
      CHECK(first[row].bytes == second[row].bytes);
      moved += before != MapReader::here(second[row].bytes.data());
      // In runs of the same direction, to get somewhere.
      b->actions[row] = static_cast<std::int32_t>(
          draw.below(static_cast<std::uint32_t>(tick / 6 * b->rows + row), static_cast<std::uint32_t>(b->num_actions)));
    }
    batch.step();
  }
  CHECK(moved > ticks / 4);
}

}  // namespace

TEST(moves_that_succeeded_lead_where_position_tokens_say) {
  compare_positions("navigation", 400);
  compare_positions("extractor_hub", 400);
}

TEST(a_map_larger_than_the_memory_is_forgotten_from_its_far_end) {
  Batch<Grid> batch({wide_hall()}, {"hall"}, options_of(1));
  const Program& program = *batch.worlds().programs[0];
  const MapReader reader(batch.worlds().vocabulary, program, {});
  batch.reset(std::nullopt);
  const auto b = batch.buffers();
  Row row(reader);
  std::map<std::pair<int, int>, Kind> seen;  // by rows and columns from the start
  int down = 0, right = 0;
  const Torus& torus = reader.torus();
  for (int tick = 0; tick < 600; ++tick) {
    const View view = reader.read(b->obs);
    const std::uint16_t before = MapReader::here(row.bytes.data());
    CHECK(reader.remember(view, row.bytes.data()));
    const std::uint16_t here = MapReader::here(row.bytes.data());
    down += torus.rows_between(before, here);
    right += torus.columns_between(before, here);
    for (int r = -5; r <= 5; ++r)
      for (int c = -5; c <= 5; ++c)
        seen[{down + r, right + c}] = view.cells[static_cast<std::size_t>((r + 5) << 4 | (c + 5))];
    for (int c = -63; c <= 63; ++c) {
      const auto known = seen.find({down, right + c});
      const Kind kind = MapReader::cells(row.bytes.data())[torus.away(here, 0, c)];
      if (known != seen.end() && kind != kUnknown) CHECK_EQ(int{kind}, int{known->second});
      if (known == seen.end()) CHECK_EQ(int{kind}, int{kUnknown});
    }
    b->actions[0] = reader.move(tick < 300 ? 3 : 2);  // east to the wall, then west
    batch.step();
  }
  CHECK(seen.size() > 9 * 128);
}

TEST(rows_that_contradict_the_map_begin_it_anew) {
  Batch<Grid> batch({golden_config("navigation")}, {"navigation"}, options_of(2));
  const Program& program = *batch.worlds().programs[0];
  const MapReader reader(batch.worlds().vocabulary, program, every_kind(program));
  batch.reset(std::nullopt);
  Row row(reader);
  const auto b = batch.buffers();
  CHECK(reader.remember(reader.read(b->obs), row.bytes.data()));
  CHECK(!reader.remember(reader.read(b->obs + b->obs_size), row.bytes.data()));  // somebody else's row
  CHECK(reader.remember(reader.read(b->obs + b->obs_size), row.bytes.data()));
}

TEST(scripts_take_any_bytes_for_a_row) {
  for (const std::string name : {"navigation", "extractor_hub"}) {
    Batch<Grid> batch({golden_config(name)}, {name}, options_of(1));
    const Program& program = *batch.worlds().programs[0];
    const auto script = make_script(name, batch.worlds().vocabulary, program);
    CHECK(script != nullptr);
    batch.reset(std::nullopt);
    const auto b = batch.buffers();
    const auto num_actions = static_cast<int>(b->num_actions);
    std::vector<std::uint8_t> row(b->obs_size);
    for (std::uint64_t life = 0; life < 12; ++life) {
      std::vector<std::byte> memory(script->memory_bytes());
      const Stream draw({life, 0, 0}, 0, 81);
      std::uint32_t at = 0;
      for (int tick = 0; tick < 300; ++tick) {
        const std::uint32_t kind = life % 3;  // a real row, one with some bytes changed, nothing but noise
        if (kind == 2)
          for (auto& byte : row) byte = static_cast<std::uint8_t>(draw.below(at++, 256));
        else std::memcpy(row.data(), b->obs, row.size());
        for (std::uint32_t i = 0; kind == 1 && i < 30; ++i) {
          const std::uint32_t place = draw.below(at++, static_cast<std::uint32_t>(row.size()));
          row[place] = static_cast<std::uint8_t>(draw.below(at++, 256));
        }
        const int action = script->act(row.data(), memory.data(), draw.at(at++));
        CHECK(action >= 0 && action < num_actions);
        b->actions[0] = action;
        batch.step();
      }
    }
  }
}
