// Decoding trees: types, ranges, unknown names, each with its path.
#include "check.hpp"
#include "core/value.hpp"

using namespace gridmill;

namespace {

struct Inner {
  std::int32_t size = 3;
  template <class Self>
  static auto fields() {
    return std::tuple{field("size", &Self::size, between(1, 9), "size")};
  }
};
struct Push {
  static constexpr std::string_view kind = "push";
  std::int64_t distance = 1;
  template <class Self>
  static auto fields() {
    return std::tuple{field("distance", &Self::distance, at_least(1), "cells")};
  }
};
struct Give {
  static constexpr std::string_view kind = "give";
  std::string what;
  template <class Self>
  static auto fields() {
    return std::tuple{field("what", &Self::what, "resource")};
  }
};
struct Outer {
  bool on = false;
  double weight = 0.5;
  std::string mode = "a";
  Inner inner;
  std::vector<OneOf<Push, Give>> then;
  OrderedDict<std::uint8_t> amounts;
  template <class Self>
  static auto fields() {
    return std::tuple{field("on", &Self::on, "on"),
                      field("weight", &Self::weight, "weight"),
                      field("mode", &Self::mode, one_of({"a", "b"}), "mode"),
                      field("inner", &Self::inner, "inner"),
                      field("then", &Self::then, "effects"),
                      field("amounts", &Self::amounts, "amounts")};
  }
};

Value dict(Value::Dict d) { return {std::move(d)}; }
std::string refusal(const Value& v) {
  return check::message_of<std::invalid_argument>([&] { decode<Outer>(v); });
}

}  // namespace

TEST(value_decodes_what_is_given_and_keeps_defaults) {
  const Value tree = dict({{"weight", {std::int64_t{2}}},
                           {"then",
                            {Value::List{dict({{"kind", {std::string("push")}}, {"distance", {std::int64_t{4}}}}),
                                         dict({{"kind", {std::string("give")}}, {"what", {std::string("ore")}}})}}},
                           {"amounts", dict({{"z", {std::int64_t{1}}}, {"a", {std::int64_t{2}}}})}});
  const Outer outer = decode<Outer>(tree);
  CHECK_EQ(outer.weight, 2.0);
  CHECK_EQ(outer.inner.size, 3);
  CHECK_EQ(std::get<Push>(outer.then[0]).distance, 4);
  CHECK_EQ(std::get<Give>(outer.then[1]).what, std::string("ore"));
  CHECK_EQ(outer.amounts[0].first, std::string("z"));
}

TEST(value_refusals_name_the_path_and_the_nearest_word) {
  CHECK_EQ(refusal(dict({{"wieght", {1.0}}})), std::string("unknown field `wieght`; did you mean `weight`? - at `$`"));
  CHECK_EQ(refusal(dict({{"weight", {std::string("two")}}})),
           std::string("expected number, got 'two' - at `$.weight`"));
  CHECK_EQ(refusal(dict({{"inner", dict({{"size", {std::int64_t{12}}}})}})),
           std::string("expected int in [1, 9], got 12 - at `$.inner.size`"));
  CHECK_EQ(refusal(dict({{"mode", {std::string("c")}}})),
           std::string("expected one of `a`, `b`, got 'c' - at `$.mode`"));
  CHECK_EQ(refusal(dict({{"mode", {std::string()}}})), std::string("expected one of `a`, `b`, got '' - at `$.mode`"));
  CHECK_EQ(refusal(dict({{"then", {Value::List{dict({{"kind", {std::string("puhs")}}})}}}})),
           std::string("unknown kind `puhs`; did you mean `push`? - at `$.then[0].kind`"));
  CHECK_EQ(refusal(dict(
               {{"then", {Value::List{dict({{"kind", {std::string("push")}}, {"distance", {std::int64_t{0}}}})}}}})),
           std::string("expected int >= 1, got 0 - at `$.then[0].distance`"));
  CHECK_EQ(refusal(dict({{"amounts", dict({{"ore", {std::int64_t{256}}}})}})),
           std::string("expected int in [0, 255], got 256 - at `$.amounts.ore`"));
  CHECK_EQ(refusal(dict({{"on", {std::int64_t{1}}}})), std::string("expected true or false, got 1 - at `$.on`"));
  CHECK_EQ(refusal({std::int64_t{3}}), std::string("expected a dict, got 3 - at `$`"));
  CHECK_EQ(refusal(dict({{"weight", {std::numeric_limits<double>::quiet_NaN()}}})),
           std::string("expected finite number, got nan - at `$.weight`"));
}
