// Dense boxes: every kernel against the obvious way, on rows that nobody would write as well.
#include <algorithm>

#include "check.hpp"
#include "core/isa.hpp"
#include "core/random.hpp"
#include "core/tokens.hpp"
#include "grid/observe/window.hpp"

using namespace gridmill;
using namespace gridmill::grid;

namespace {

struct Draw {
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(stream.below(at++, n)); }
  Stream stream;
  std::uint64_t at = 0;
};

DenseForm random_form(Draw& draw) {
  DenseForm form{};
  form.features = 1 + draw.below(60);
  form.tags = 1 + draw.below(40);
  form.tag = draw.below(form.features);
  form.common = draw.below(4) == 0 ? 256 : draw.below(form.tags);
  form.height = 1 + 2 * draw.below(8);
  form.width = 1 + 2 * draw.below(8);
  form.plane = form.height * form.width;
  form.bytes = std::size_t{form.features + form.tags} * form.plane;
  return form;
}

// Mostly walls and a few others; in some rows what is no token of this window, or what lies nowhere between the rest.
std::vector<std::uint8_t> random_rows(Draw& draw, const DenseForm& form, std::uint32_t rows, std::uint32_t tokens) {
  std::vector<std::uint8_t> bytes(std::size_t{rows} * tokens * 3, kNoToken);
  for (std::uint32_t row = 0; row < rows; ++row) {
    std::uint8_t* token = bytes.data() + std::size_t{row} * tokens * 3;
    const std::uint32_t count = draw.below(tokens + 1), globals = draw.below(5);
    const bool odd = draw.below(3) == 0;
    for (std::uint32_t i = 0; i < count; ++i, token += 3) {
      const bool global = i < globals || (odd && draw.below(30) == 0), wall = draw.below(2) == 0;
      const std::uint32_t place = draw.below(form.height) << 4 | draw.below(form.width);
      const bool tag = wall || draw.below(3) == 0;
      token[0] = global ? kGlobalLocation : static_cast<std::uint8_t>(place);
      token[1] = static_cast<std::uint8_t>(tag ? form.tag : draw.below(form.features));
      token[2] = static_cast<std::uint8_t>(wall && form.common < 256 ? form.common : draw.below(tag ? form.tags : 256));
      if (odd && draw.below(40) == 0) token[draw.below(3)] = static_cast<std::uint8_t>(draw.below(255));
    }
  }
  return bytes;
}

std::vector<std::uint8_t> obvious(const DenseForm& form, const std::vector<std::uint8_t>& rows, std::uint32_t tokens) {
  const std::size_t num_rows = rows.size() / (std::size_t{tokens} * 3);
  std::vector<std::uint8_t> out(num_rows * form.bytes);
  for (std::size_t row = 0; row < num_rows; ++row)
    for (std::uint32_t i = 0; i < tokens; ++i) {
      const std::uint8_t* const token = rows.data() + (row * tokens + i) * 3;
      if (token[0] == kNoToken) break;
      for (std::uint32_t cell = 0; cell < form.plane; ++cell) {
        const std::uint32_t location = cell / form.width << 4 | cell % form.width;
        if (token[1] >= form.features || (token[0] != kGlobalLocation && token[0] != location)) continue;
        out[row * form.bytes + token[1] * form.plane + cell] = token[2];
        if (token[0] == location && token[1] == form.tag && token[2] < form.tags)
          out[row * form.bytes + (form.features + token[2]) * form.plane + cell] = 1;
      }
    }
  return out;
}

}  // namespace

TEST(dense_kernels_equal_the_obvious_way) {
  const decltype(&dense_portable) kernels[] = {dense_portable, dense_avx2, dense_avx512};
  const Isa needed[] = {Isa::portable, Isa::avx2, Isa::avx512};
  constexpr std::size_t kAround = 64;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Draw draw{Stream({seed, 0, 0}, 0, 78)};
    const DenseForm form = random_form(draw);
    const std::uint32_t tokens = 1 + draw.below(seed % 2 == 0 ? 260 : 40);
    const auto rows = random_rows(draw, form, 6, tokens);
    const auto expected = obvious(form, rows, tokens);
    for (std::size_t i = 0; i < 3; ++i) {
      if (isa_of_cpu() < needed[i]) continue;
      std::vector<std::uint8_t> out(expected.size() + 2 * kAround, 7);
      kernels[i](form, rows.data(), 6, tokens, out.data() + kAround);
      CHECK(std::equal(expected.begin(), expected.end(), out.begin() + kAround));
      for (std::size_t byte = 0; byte < kAround; ++byte) {
        CHECK_EQ(int{out[byte]}, 7);
        CHECK_EQ(int{out[out.size() - 1 - byte]}, 7);
      }
    }
  }
}
