// A plain tree (what crosses from Python) and decode<T>(): tree -> struct, guided by the struct's fields().
// fields() is the only native description of a config: decoding, refusals with `$.path`, and the schema
// that tests compare with the Python models all come from it. Knows nothing of Python and of no game.
#pragma once

#include <algorithm>
#include <array>
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
  struct Entry;
  using List = std::vector<Value>;
  using Dict = std::vector<Entry>;  // in order of declaration
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Dict> data;

  const Value* find(std::string_view name) const;
  std::string describe() const;  // how an error message shows it
};

// Not a std::pair, which may not hold a struct that is still being defined.
struct Value::Entry {
  std::string first;
  Value second;
};

// Raised for a wrong type; everything else about a config is a std::invalid_argument.
struct TypeMismatch : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

[[noreturn]] void fail_at(const std::string& path, const std::string& what);
[[noreturn]] void fail_type(const std::string& path, const std::string& expected, const Value& got);
// "; did you mean `x`?" or nothing.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

// What a field may hold beyond its type. Nothing to destroy: there are hundreds of fields, and tuples of them.
struct Allowed {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::array<std::string_view, 4> choices{};  // unused places are empty; all empty: any text
  bool chooses(std::string_view value) const {
    return choices[0].empty() || (!value.empty() && std::find(choices.begin(), choices.end(), value) != choices.end());
  }
};
inline Allowed between(double low, double high) { return {low, high, {}}; }
inline Allowed at_least(double low) { return {low, std::numeric_limits<double>::infinity(), {}}; }
template <std::size_t count>
Allowed one_of(const std::string_view (&choices)[count]) {
  Allowed allowed;
  static_assert(count <= allowed.choices.size());
  std::copy_n(choices, count, allowed.choices.begin());
  return allowed;
}

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
  return {name, member, allowed, meaning};
}

template <class T>
concept Reflected = requires { T::template fields<T>(); };

// One of several reflected structs, told apart by the key "kind" (each has a static `kind`).
template <class... Ts>
using OneOf = std::variant<Ts...>;

// A dict with string keys, in order of declaration.
template <class T>
using OrderedDict = std::vector<std::pair<std::string, T>>;

namespace detail {
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_ordered_dict = false;
template <class T>
inline constexpr bool is_ordered_dict<OrderedDict<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_one_of = false;
template <class... Ts>
inline constexpr bool is_one_of<std::variant<Ts...>> = true;
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
  if constexpr (std::is_same_v<T, std::string>) return allowed.chooses(value);
  return true;
}

// A field of one struct at hand. The structs have hundreds of fields of a few dozen types: what is compiled for each
// type are two functions, and what is the same for all structs is in value.cpp.
struct Slot {
  std::string_view name;
  Allowed allowed;
  void* at;
  void (*decode)(void* at, const Value&, const std::string& path, const Allowed&);
  bool (*allows)(const void* at, const Allowed&);
};
template <class T>
void decode_slot(void* at, const Value& value, const std::string& path, const Allowed& allowed) {
  decode_into(*static_cast<T*>(at), value, path, allowed);
}
template <class T>
bool slot_allows(const void* at, const Allowed& allowed) {
  return allows(allowed, *static_cast<const T*>(at));
}
template <class T>
Slot slot_of(T& at, std::string_view name, const Allowed& allowed) {
  return {name, allowed, &at, decode_slot<T>, slot_allows<T>};
}
void decode_slots(const Slot* slots, std::size_t count, const Value& value, const std::string& path, bool kind_allowed);

template <class T>
void decode_struct(T& out, const Value& value, const std::string& path, bool kind_allowed) {
  const auto decode_all = [&](const auto&... f) {
    const Slot slots[] = {slot_of(out.*(f.member), f.name, f.allowed)..., {}};  // a struct may have no fields
    decode_slots(slots, sizeof...(f), value, path, kind_allowed);
  };
  std::apply(decode_all, T::template fields<T>());
}

[[noreturn]] void fail_field(const std::string& path, const std::string& name, const std::vector<std::string>& known);
// Which of the kinds the tree says it is.
std::size_t decode_kind(const std::string_view* kinds, std::size_t count, const Value& value, const std::string& path);

template <class... Ts>
void decode_one_of(std::variant<Ts...>& out, const Value& value, const std::string& path) {
  constexpr std::string_view kinds[] = {Ts::kind...};
  const std::size_t chosen = decode_kind(kinds, sizeof...(Ts), value, path);
  std::size_t tried = 0;
  const auto try_one = [&]<class T>(std::type_identity<T>) {
    if (tried++ == chosen) decode_struct(out.template emplace<T>(), value, path, true);
  };
  (try_one(std::type_identity<Ts>{}), ...);
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
  } else if constexpr (detail::is_ordered_dict<T>) {
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
  } else if constexpr (detail::is_one_of<T>) {
    decode_one_of(out, value, path);
  } else if constexpr (Reflected<T>) {
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

// Calls f with every reflected struct inside a config, outer ones first: how a game's vocabulary is collected.
template <class T, class F>
void walk(const T& item, const F& f) {
  if constexpr (Reflected<T>) {
    f(item);
    std::apply([&](const auto&... each) { (walk(item.*(each.member), f), ...); }, T::template fields<T>());
  } else if constexpr (detail::is_ordered_dict<T>) {
    for (const auto& [name, inner] : item) walk(inner, f);
  } else if constexpr (detail::is_vector<T>) {
    for (const auto& inner : item) walk(inner, f);
  } else if constexpr (detail::is_optional<T>) {
    if (item) walk(*item, f);
  } else if constexpr (detail::is_one_of<T>) {
    std::visit([&](const auto& inner) { walk(inner, f); }, item);
  } else if constexpr (requires { item.data; }) {
    walk(item.data, f);
  }
}

// The schema of a reflected struct: {field: [type, default, meaning]}, for the test that compares both sides.
template <class T>
Value schema_of(const T& defaults = T{});

void add_to_schema(Value::Dict& schema, std::string_view name, const char* type, Value fallback,
                   std::string_view meaning);
Value value_of(bool), value_of(std::int64_t), value_of(double), value_of(const std::string&);

template <class T>
void add_to_schema(Value::Dict& schema, std::string_view name, const T& value, std::string_view meaning) {
  const auto add = [&](const char* type, Value fallback) {
    add_to_schema(schema, name, type, std::move(fallback), meaning);
  };
  if constexpr (std::is_same_v<T, bool>) add("bool", value_of(value));
  else if constexpr (std::is_integral_v<T>) add("int", value_of(static_cast<std::int64_t>(value)));
  else if constexpr (std::is_floating_point_v<T>) add("float", value_of(value));
  else if constexpr (std::is_same_v<T, std::string>) add("str", value_of(value));
  else if constexpr (detail::is_optional<T>) add("optional", schema_of(typename T::value_type{}));
  else if constexpr (detail::is_ordered_dict<T>) add("dict", {});
  else if constexpr (detail::is_vector<T>) add("list", {});
  else if constexpr (detail::is_one_of<T>) add("choice", {});
  else if constexpr (Reflected<T>) add("struct", schema_of(value));
  else add("tree", {});
}

template <class T>
Value schema_of(const T& defaults) {
  Value::Dict schema;
  const auto add = [&](const auto& f) { add_to_schema(schema, f.name, defaults.*(f.member), f.meaning); };
  std::apply([&](const auto&... f) { (add(f), ...); }, T::template fields<T>());
  return {std::move(schema)};
}

}  // namespace gridmill
