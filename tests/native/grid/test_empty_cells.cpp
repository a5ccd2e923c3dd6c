// The search for an empty cell against the obvious way, on maps with few, one and no empty cells.
#include "check.hpp"
#include "core/random.hpp"
#include "golden/json.hpp"
#include "grid/batch.hpp"
#include "grid/occupancy.hpp"

using namespace gridmill;
using namespace gridmill::grid;

namespace {

std::int64_t obvious(const Program& p, const World& w, std::uint32_t start) {
  const std::uint32_t cells = p.height * p.width;
  for (std::uint32_t i = 0; i < cells; ++i) {
    const std::uint32_t at = (start + i) % cells;
    if (is_free(p, w, at / p.width, at % p.width)) return at;
  }
  return -1;
}

// The codes of a map as if all but a few cells were taken.
void crowd(const Program& p, World& w, const Stream& draws, std::uint32_t empty) {
  const std::uint32_t cells = p.height * p.width;
  for (std::uint32_t at = 0; at < cells; ++at) w.set_code(w.cell_at(at / p.width, at % p.width), 1);
  for (std::uint32_t i = 0; i < empty; ++i) {
    const std::uint32_t at = draws.below(i, cells);
    w.set_code(w.cell_at(at / p.width, at % p.width), kEmpty);
  }
}

}  // namespace

TEST(the_first_empty_cell_is_the_one_that_a_plain_search_finds) {
  for (const char* game : {"toy", "arena", "cogsguard"}) {  // with cells of one byte and of two
    const Value file = golden::read_file(std::string(GRIDMILL_GOLDEN) + "/" + game + ".json");
    const Value config = *file.find("config");
    BatchOptions options;
    options.num_worlds = 1;
    Batch<Grid> batch({config}, {game}, options);
    batch.reset(3);
    batch.look(0, [&](auto& tick) {
      const Program& p = tick.program;
      World w(p, tick.state);
      const std::uint32_t cells = p.height * p.width;
      for (std::uint32_t round = 0; round < 40; ++round) {
        const Stream draws(Key{round}, 0, 0);
        if (round > 0) crowd(p, w, draws, round % 5);
        for (std::uint32_t i = 0; i < 200; ++i) {
          const std::uint32_t start = i == 0 ? 0 : i == 1 ? cells - 1 : draws.below(1000 + i, cells);
          CHECK(first_empty(p, w, start) == obvious(p, w, start));
        }
      }
      return 0;
    });
  }
}
