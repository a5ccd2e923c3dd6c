// A plain tree (what crosses from Python) and decode<T>(): tree -> struct, guided by the struct's fields().
// fields() is the only native description of a config: decoding, refusals with `$.path`, and the schema
// that tests compare with the Python models all come from it. Knows nothing of Python and of no game.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace gridmill {

struct Value {
  using List = std::vector<Value>;
  using Dict = std::vector<std::pair<std::string, Value>>;  // in order of declaration
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Dict> data;

  const Value* find(std::string_view name) const;
  std::string describe() const;  // how an error message shows it
};

// Raised for a wrong type; everything else about a config is a std::invalid_argument.
struct TypeMismatch : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

[[noreturn]] void refuse(const std::string& path, const std::string& what);
[[noreturn]] void refuse_type(const std::string& path, const std::string& expected, const Value& got);
// "; did you mean `x`?" or nothing.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

// What a field may hold beyond its type.
struct Allowed {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::vector<std::string_view> choices{};
};
inline Allowed between(double low, double high) { return {low, high, {}}; }
inline Allowed at_least(double low) { return {low, std::numeric_limits<double>::infinity(), {}}; }
inline Allowed one_of(std::vector<std::string_view> choices) { return {.choices = std::move(choices)}; }

template <class S, class T>
struct Field {
  std::string_view name;
  T S::* member;
  Allowed allowed;
  std::string_view meaning;
};
template <class S, class T>
Field<S, T> field(std::string_view name, T S::* member, std::string_view meaning) {
  return {name, member, {}, meaning};
}
template <class S, class T>
Field<S, T> field(std::string_view name, T S::* member, Allowed allowed, std::string_view meaning) {
  return {name, member, std::move(allowed), meaning};
}

template <class T>
concept Described = requires { T::fields(); };

// One of several described structs, told apart by the key "kind" (each has a static `kind`).
template <class... Ts>
using Choice = std::variant<Ts...>;

// A dict with string keys, in order of declaration.
template <class T>
using Named = std::vector<std::pair<std::string, T>>;

namespace detail {
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_named = false;
template <class T>
inline constexpr bool is_named<Named<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_choice = false;
template <class... Ts>
inline constexpr bool is_choice<std::variant<Ts...>> = true;
}  // namespace detail

std::int64_t decode_int(const Value&, const std::string& path, const Allowed&);
double decode_number(const Value&, const std::string& path, const Allowed&);
std::string decode_text(const Value&, const std::string& path, const Allowed&);
bool decode_bool(const Value&, const std::string& path);
const Value::List& expect_list(const Value&, const std::string& path);
const Value::Dict& expect_dict(const Value&, const std::string& path);

template <class T>
void decode_into(T& out, const Value& value, const std::string& path, const Allowed& allowed);

template <class T>
bool allows(const Allowed& allowed, const T& value) {
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
    return static_cast<double>(value) >= allowed.low && static_cast<double>(value) <= allowed.high;
  if constexpr (std::is_same_v<T, std::string>)
    return allowed.choices.empty() ||
           std::find(allowed.choices.begin(), allowed.choices.end(), value) != allowed.choices.end();
  return true;
}

template <class T>
void decode_struct(T& out, const Value& value, const std::string& path, bool kind_allowed) {
  const auto& dict = expect_dict(value, path);
  const auto fields = T::fields();
  std::vector<std::string> known;
  std::apply([&](const auto&... f) { (known.emplace_back(f.name), ...); }, fields);
  for (const auto& [name, item] : dict) {
    if (kind_allowed && name == "kind") continue;
    bool taken = false;
    std::apply(
        [&](const auto&... f) {
          ((f.name == name ? (decode_into(out.*(f.member), item, path + "." + name, f.allowed), taken = true) : false),
           ...);
        },
        fields);
    if (!taken) refuse(path, "unknown field `" + name + "`" + nearest(name, known));
  }
  // A field may be left out only if its default is a value it may have.
  const auto expect_given = [&](const auto& f) {
    if (!allows(f.allowed, out.*(f.member)) && value.find(f.name) == nullptr)
      refuse(path + "." + std::string(f.name), "expected a value, got nothing");
  };
  std::apply([&](const auto&... f) { (expect_given(f), ...); }, fields);
}

template <class... Ts>
void decode_choice(std::variant<Ts...>& out, const Value& value, const std::string& path) {
  expect_dict(value, path);
  const Value* kind = value.find("kind");
  const std::vector<std::string> known{std::string(Ts::kind)...};
  if (kind == nullptr) refuse(path, "expected a `kind`");
  const std::string name = decode_text(*kind, path + ".kind", {});
  bool taken = false;
  auto try_one = [&]<class T>(std::type_identity<T>) {
    if (taken || name != T::kind) return;
    T item{};
    decode_struct(item, value, path, true);
    out = std::move(item);
    taken = true;
  };
  (try_one(std::type_identity<Ts>{}), ...);
  if (!taken) refuse(path + ".kind", "unknown kind `" + name + "`" + nearest(name, known));
}

template <class T>
void decode_into(T& out, const Value& value, const std::string& path, const Allowed& allowed) {
  if constexpr (std::is_same_v<T, bool>) {
    out = decode_bool(value, path);
  } else if constexpr (std::is_integral_v<T>) {
    Allowed fit = allowed;
    if constexpr (sizeof(T) < 8) {
      fit.low = std::max(fit.low, static_cast<double>(std::numeric_limits<T>::min()));
      fit.high = std::min(fit.high, static_cast<double>(std::numeric_limits<T>::max()));
    }
    out = static_cast<T>(decode_int(value, path, fit));
  } else if constexpr (std::is_floating_point_v<T>) {
    out = decode_number(value, path, allowed);
  } else if constexpr (std::is_same_v<T, std::string>) {
    out = decode_text(value, path, allowed);
  } else if constexpr (detail::is_optional<T>) {
    out.reset();
    if (std::holds_alternative<std::monostate>(value.data)) return;
    decode_into(out.emplace(), value, path, allowed);
  } else if constexpr (detail::is_named<T>) {
    out.clear();
    for (const auto& [name, item] : expect_dict(value, path)) {
      out.emplace_back(name, typename T::value_type::second_type{});
      decode_into(out.back().second, item, path + "." + name, allowed);
    }
  } else if constexpr (detail::is_vector<T>) {
    out.clear();
    const auto& list = expect_list(value, path);
    out.resize(list.size());
    for (std::size_t i = 0; i < list.size(); ++i)
      decode_into(out[i], list[i], path + "[" + std::to_string(i) + "]", allowed);
  } else if constexpr (detail::is_choice<T>) {
    decode_choice(out, value, path);
  } else if constexpr (Described<T>) {
    decode_struct(out, value, path, false);
  } else {
    T::decode(out, value, path);  // a type that knows better, e.g. a recursive one
  }
}

template <class T>
T decode(const Value& value, const std::string& path = "$") {
  T out{};
  decode_into(out, value, path, Allowed{});
  return out;
}

// Calls f with every described struct inside a config, outer ones first: how a game's words are collected.
template <class T, class F>
void walk(const T& item, const F& f) {
  if constexpr (Described<T>) {
    f(item);
    std::apply([&](const auto&... each) { (walk(item.*(each.member), f), ...); }, T::fields());
  } else if constexpr (detail::is_named<T>) {
    for (const auto& [name, inner] : item) walk(inner, f);
  } else if constexpr (detail::is_vector<T>) {
    for (const auto& inner : item) walk(inner, f);
  } else if constexpr (detail::is_optional<T>) {
    if (item) walk(*item, f);
  } else if constexpr (detail::is_choice<T>) {
    std::visit([&](const auto& inner) { walk(inner, f); }, item);
  } else if constexpr (requires { item.data; }) {
    walk(item.data, f);
  }
}

// The schema of a described struct: {field: [type, default]}, for the test that compares both sides.
template <class T>
Value schema_of(const T& defaults = T{});

template <class T>
std::pair<std::string, Value> schema_item(const T& value) {
  if constexpr (std::is_same_v<T, bool>) return {"bool", {value}};
  else if constexpr (std::is_integral_v<T>) return {"int", {static_cast<std::int64_t>(value)}};
  else if constexpr (std::is_floating_point_v<T>) return {"float", {static_cast<double>(value)}};
  else if constexpr (std::is_same_v<T, std::string>) return {"str", {value}};
  else if constexpr (detail::is_optional<T>) return {"optional", schema_of(typename T::value_type{})};
  else if constexpr (detail::is_named<T>) return {"dict", {}};
  else if constexpr (detail::is_vector<T>) return {"list", {}};
  else if constexpr (detail::is_choice<T>) return {"choice", {}};
  else if constexpr (Described<T>) return {"struct", schema_of(value)};
  else return {"tree", {}};
}

template <class T>
Value schema_of(const T& defaults) {
  Value::Dict dict;
  std::apply(
      [&](const auto&... f) {
        (([&] {
           auto [type, fallback] = schema_item(defaults.*(f.member));
           dict.emplace_back(std::string(f.name),
                             Value{Value::List{Value{type}, std::move(fallback), Value{std::string(f.meaning)}}});
         }()),
         ...);
      },
      T::fields());
  return {std::move(dict)};
}

}  // namespace gridmill
