// JSON as it comes from a page: read strictly, written so that it reads back the same, and never beyond the text.
#include "check.hpp"
#include "core/random.hpp"
#include "wasm/json.hpp"

namespace {

using namespace gridmill;
using wasm::parse_json;
using wasm::to_json;

TEST(json_reads_back_what_it_writes) {
  const std::string text =
      "{\"a\":[1,-2,0.5,1e+300,true,false,null],\"b\":{},\"c\":[],\"d\":\"x\\\"\\\\\\u0001\xC3\xBC\"}";
  const std::string once = to_json(parse_json(text));
  CHECK(once == to_json(parse_json(once)));
  CHECK(std::get<std::string>(parse_json("\"\\u00fc\\ud83d\\ude00\\n\"").data) == "\xC3\xBC\xF0\x9F\x98\x80\n");
  CHECK(std::get<std::int64_t>(parse_json(" -9223372036854775808 ").data) == std::numeric_limits<std::int64_t>::min());
}

TEST(json_refuses_with_the_path) {
  const auto said = [](const char* text) {
    return check::message_of<std::invalid_argument>([&] { parse_json(text); });
  };
  CHECK(said("{\"a\":[1,{\"b\":tru}]}") == "JSON: expected a value, got `t` at byte 13 - at `$.a[1].b`");
  CHECK(said("{\"a\":1,\"a\":2}") == "expected every key once, got `a` twice - at `$`");
  CHECK(said("[1 2]") == "JSON: expected `,` or `]`, got `2` at byte 3 - at `$`");
}

// Every text is read or refused with an exception; sanitizers see the rest.
TEST(json_survives_damaged_text) {
  const std::string whole =
      "{\"name\": \"to\\u0079\", \"list\": [1, -2.5e3, {\"deep\": [null, true]}], \"x\": {\"y\": 0}}";
  const Stream draws(Key{3, 0, 0}, 0, 1);
  int refused = 0;
  for (std::uint32_t i = 0; i < 5'000; ++i) {
    std::string text = whole.substr(0, draws.below(4 * i, static_cast<std::uint32_t>(whole.size()) + 1));
    if (!text.empty() && i % 3 != 0)
      text[draws.below(4 * i + 1, static_cast<std::uint32_t>(text.size()))] =
          static_cast<char>(draws.below(4 * i + 2, 256));
    try {
      parse_json(text);
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  }
  CHECK(refused > 4'000);
}

}  // namespace
