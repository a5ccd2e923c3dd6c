// F2: libFuzzer over what the core reads of a game: maps as text, and whole games as trees. Input that begins with `{`
// is a game in JSON; anything else is the text of a map in a small game. Each is refused in one line that names the
// place, or is built, drawn and played for some ticks. `make fuzz-maps` builds and runs it under ASan and UBSan.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fuzz/tree_mutation.hpp"
#include "grid/batch.hpp"
#include "wasm/json.hpp"

using namespace gridmill;

namespace {

constexpr std::size_t kMostBytes = std::size_t{4} << 20;  // of a world and its rows; larger ones only take longer
constexpr int kTicks = 12;

// A finding that no sanitizer sees.
[[noreturn]] void found(const char* what, const std::string& text) {
  std::fprintf(stderr, "FINDING: %s: %s\n", what, text.c_str());
  std::abort();
}

void expect_one_line(const std::string& said) {
  if (said.empty() || said.size() > 8'000) found("a refusal of no or of endless length", said.substr(0, 200));
  if (said.find('\n') != std::string::npos) found("a refusal of more than one line", said);
}

void expect_a_place(const std::string& said) {
  expect_one_line(said);
  if (said.find("`$") == std::string::npos && said.rfind("not enough memory: ", 0) != 0)
    found("a refusal that names no place", said);
}

Value text(const char* words) { return {std::string(words)}; }

// Every character of the map is a cell of one kind or other, or is refused.
Value game_with_map(std::string map) {
  const Value legend{Value::Dict{{"X", text("crate")}, {"Z", text("wall")}}};
  Value drawn{Value::Dict{{"kind", text("ascii")}, {"text", {std::move(map)}}, {"legend", legend}}};
  Value objects{Value::Dict{{"wall", {Value::Dict{}}}, {"crate", {Value::Dict{}}}}};
  return {Value::Dict{{"name", text("fuzzed")}, {"objects", std::move(objects)}, {"map", std::move(drawn)}}};
}

Value read(std::string_view input) {
  if (!input.empty() && input[0] == '{') return wasm::parse_json(input);
  std::string map(input);
  std::size_t agents = 0;
  for (const char c : map) agents += c == '@' || (c >= '0' && c <= '9');
  Value game = game_with_map(std::move(map));
  std::get<Value::Dict>(game.data).push_back(
      {"num_agents", {static_cast<std::int64_t>(std::max<std::size_t>(agents, 1))}});
  return game;
}

bool is_large(const Value& game) {
  const grid::Grid::Vocabulary vocabulary = grid::Grid::vocabulary({game});
  const grid::Grid::Program program = grid::Grid::compile(vocabulary, game);
  const Shape shape = grid::Grid::shape(program);
  return grid::Grid::state_bytes(program) + shape.num_agents * (shape.obs_size() + shape.num_actions) > kMostBytes;
}

void play(grid::GridBatch& batch, std::uint64_t seed) {
  Draw draw(seed);
  batch.reset(std::nullopt);
  const auto b = batch.buffers();
  for (int tick = 0; tick < kTicks; ++tick) {
    for (std::size_t row = 0; row < b->rows; ++row)
      b->actions[row] = static_cast<std::int32_t>(draw(b->num_actions + 1));
    batch.step();
  }
  const std::string saved = batch.save({0});
  batch.restore(saved, {0});
  if (batch.save({0}) != saved) found("a state that changes when it is put back", "");
}

void build_and_play(const Value& game, std::uint64_t seed) {
  if (is_large(game)) return;
  BatchOptions options;
  options.num_worlds = 1;
  options.seed = seed;
  options.masks = true;
  options.observe.validate = seed % 2 == 0;
  grid::GridBatch batch({game}, {"game"}, options);
  try {
    play(batch, seed);
  } catch (const WorldFault& fault) {  // a map without a layout, say: only drawing it tells
    expect_one_line(fault.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    build_and_play(read(input), hash_bytes(input.data(), input.size()));
  } catch (const std::invalid_argument& refused) {  // whatever else is thrown is a finding
    expect_a_place(refused.what());
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

// Most changes of bytes would make a tree no JSON at all: trees are changed as trees.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  Draw draw(seed);
  if (size == 0 || data[0] != '{' || draw(10) == 0) return LLVMFuzzerMutate(data, size, most);
  try {
    Value tree = wasm::parse_json({reinterpret_cast<const char*>(data), size});
    for (std::size_t left = 1 + draw(3); left > 0; --left) change(tree, draw);
    const std::string made = wasm::to_json(tree);
    if (made.size() > most) return LLVMFuzzerMutate(data, size, most);
    std::memcpy(data, made.data(), made.size());
    return made.size();
  } catch (const std::invalid_argument&) {
    return LLVMFuzzerMutate(data, size, most);
  }
}

// A part of one game in the place of a part of another.
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* first, std::size_t first_size,
                                                 const std::uint8_t* second, std::size_t second_size,
                                                 std::uint8_t* made, std::size_t most, unsigned seed) {
  Draw draw(seed);
  try {
    Value tree = wasm::parse_json({reinterpret_cast<const char*>(first), first_size});
    Value other = wasm::parse_json({reinterpret_cast<const char*>(second), second_size});
    cross(tree, other, draw);
    const std::string text = wasm::to_json(tree);
    if (text.size() > most) return 0;
    std::memcpy(made, text.data(), text.size());
    return text.size();
  } catch (const std::invalid_argument&) {
    return 0;
  }
}
