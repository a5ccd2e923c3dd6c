// Canvases of every kind and size, down to one cell, on random numbers: drawn or refused, never out of bounds (the
// sanitizers watch), and the same for the same key.
#include "check.hpp"
#include "grid/batch.hpp"
#include "grid/grid.hpp"
#include "grid/trees.hpp"

using namespace gridmill;
using namespace gridmill::grid;
using namespace trees;

namespace {

class RandomCanvas {
 public:
  explicit RandomCanvas(std::uint64_t seed) : draw_({seed, 0, 0}, 0, 78) {}

  Value game() {
    const std::int64_t height = 1 + below(32), width = 1 + below(32);
    return dict(
        {{"name", text("canvas")},
         {"num_agents", number(1 + below(3))},
         {"max_steps", number(2)},
         {"resources", {Value::List{text("ore")}}},
         {"objects",
          dict({{"wall", dict({})}, {"crate", dict({})}, {"mine", dict({{"inventory", dict({{"ore", number(1)}})}})}})},
         {"map", dict({{"kind", text("canvas")},
                       {"height", number(height)},
                       {"width", number(width)},
                       {"border", number(below(2))},
                       {"layers", layers(3)}})}});
  }

 private:
  std::int64_t below(std::uint32_t n) { return static_cast<std::int64_t>(draw_.below(at_++, n)); }
  Value chance() { return {static_cast<double>(below(5)) / 4}; }
  Value cells(std::uint32_t n) { return number(1 + below(n)); }

  Value layers(int depth) {
    Value::List list;
    for (std::int64_t i = 1 + below(3); i > 0; --i) list.push_back(layer(depth));
    return {list};
  }

  Value layer(int depth) {
    switch (below(depth > 0 ? 18 : 14)) {
      case 0:
        return dict({{"kind", text("fill")}, {"what", text(below(2) ? "wall" : "floor")}});
      case 1:
        return dict({{"kind", text("rooms")},
                     {"rows", cells(3)},
                     {"columns", cells(3)},
                     {"wall", cells(2)},
                     {"door", cells(2)},
                     {"extra_doors", chance()}});
      case 2: {
        const char* methods[] = {"dfs", "kruskal", "prim"};
        return dict({{"kind", text("maze")},
                     {"method", text(methods[below(3)])},
                     {"corridor", cells(3)},
                     {"wall", cells(3)},
                     {"loops", chance()}});
      }
      case 3:
        return dict({{"kind", text("caves")}, {"fill", chance()}, {"rounds", number(below(4))}});
      case 4:
        return dict({{"kind", text("bsp")}, {"rooms", cells(64)}, {"smallest", cells(4)}, {"corridor", cells(3)}});
      case 5:
        return dict({{"kind", text("radial")},
                     {"arms", cells(20)},
                     {"width", cells(4)},
                     {"hub", number(below(40))},
                     {"wall", number(below(3))}});
      case 6:
        return dict({{"kind", text("clumps")},
                     {"every", cells(8)},
                     {"jitter", number(below(50))},
                     {"chance", chance()},
                     {"largest", number(2 + below(40))},
                     {"fill", chance()}});
      case 7:
        return dict({{"kind", text("dunes")}, {"every", number(2 + below(8))}, {"drift", chance()}, {"gap", chance()}});
      case 8:
        return dict({{"kind", text("blocks")}, {"side", cells(40)}, {"road", cells(4)}, {"chance", chance()}});
      case 9:
        return dict({{"kind", text("rim")},
                     {"every", cells(5)},
                     {"share", chance()},
                     {"shallowest", number(1)},
                     {"deepest", cells(64)},
                     {"narrowest", number(0)},
                     {"widest", number(below(65))}});
      case 10: {
        Value::List things{dict({{"type", text("mine")}}), dict({{"type", text("agent")}, {"row", number(-2)}})};
        return dict({{"kind", text("compound")},
                     {"side", number(5 + 2 * below(4))},
                     {"wall", number(below(2))},
                     {"gate", number(3)},
                     {"clear", number(below(40))},
                     {"things", {things}}});
      }
      case 11:
        return dict({{"kind", text("buildings")},
                     {"draws", number(below(60))},
                     {"margin", number(below(20))},
                     {"weights", dict({{"mine", {1.0}}, {"crate", {0.5}}, {"wall", {0.0}}})},
                     {"apart", number(below(4))},
                     {"clear", number(below(4))}});
      case 12:
        return dict(
            {{"kind", text("objects")}, {"counts", dict({{"mine", number(below(4))}, {"wall", number(below(4))}})}});
      case 13:
        return dict({{"kind", text("connect")}, {"wall_cost", cells(20)}});
      case 14:
        return dict({{"kind", text("area")},
                     {"top", number(below(4))},
                     {"left", number(below(4))},
                     {"border", number(below(2))},
                     {"layers", layers(depth - 1)}});
      case 15:
        return dict({{"kind", text("zones")},
                     {"count", cells(64)},
                     {"smallest", cells(6)},
                     {"largest", number(6 + below(20))},
                     {"share", chance()},
                     {"layers", layers(depth - 1)}});
      case 16:
        return dict({{"kind", text("one_of")}, {"layers", layers(depth - 1)}});
      default: {
        const char* axes[] = {"horizontal", "vertical", "both"};
        return dict({{"kind", text("mirror")}, {"axis", text(axes[below(3)])}, {"layers", layers(depth - 1)}});
      }
    }
  }

  const Stream draw_;
  std::uint64_t at_ = 0;
};

// Hashes of the first worlds of a game, or nothing if it was refused or could not be drawn.
std::vector<std::uint64_t> drawn(std::uint64_t seed) {
  BatchOptions o;
  o.num_worlds = 2;
  o.seed = seed;
  o.threads = 1;
  try {
    Batch<Grid> batch({RandomCanvas(seed).game()}, {"c"}, o);
    batch.reset(std::nullopt);
    for (int t = 0; t < 5; ++t) batch.step();
    return batch.state_hash();
  } catch (const std::exception& error) {
    const std::string what = error.what();
    CHECK(what.find("$.map") != std::string::npos);
    return {};
  }
}

// At least one in six can be drawn.
void draw_or_refuse(std::uint64_t canvases) {
  std::uint64_t worked = 0;
  for (std::uint64_t seed = 0; seed < canvases; ++seed) worked += !drawn(seed).empty();
  CHECK(6 * worked > canvases);
}

}  // namespace

TEST(canvases_of_every_kind_are_drawn_or_refused) { draw_or_refuse(300); }

TEST(long_canvases_of_every_kind_are_drawn_or_refused) { draw_or_refuse(5'000); }

TEST(a_canvas_is_a_function_of_its_key) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) CHECK(drawn(seed) == drawn(seed));
}
