// Scalars of the tree: type and range checks with one wording for every config.
#include "core/value.hpp"

#include <algorithm>
#include <cstdio>

namespace gridmill {
namespace {

std::string number_text(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", x);
  return text;
}

std::string range_text(const char* type, const Allowed& allowed) {
  std::string text = type;
  const bool low = std::isfinite(allowed.low), high = std::isfinite(allowed.high);
  if (low && high) text += " in [" + number_text(allowed.low) + ", " + number_text(allowed.high) + "]";
  else if (low) text += " >= " + number_text(allowed.low);
  else if (high) text += " <= " + number_text(allowed.high);
  return text;
}

// Messages are one line whatever a name contains.
std::string one_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') out += "\\n";
    else if (c == '\r') out += "\\r";
    else if (static_cast<unsigned char>(c) < ' ' || c == 127) out += '?';
    else out += c;
  }
  return out;
}

// The first bytes of a text, cut between characters of UTF-8.
std::string shortened(const std::string& text) {
  if (text.size() <= 60) return text;
  std::size_t end = 57;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

constexpr std::size_t kMostTyped = 1000;  // letters of a name that somebody may have mistyped

// Edit distance (Levenshtein 1966), for "did you mean".
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

const Value* Value::find(std::string_view name) const {
  if (const auto* dict = std::get_if<Dict>(&data))
    for (const auto& [key, value] : *dict)
      if (key == name) return &value;
  return nullptr;
}

std::string Value::describe() const {
  struct {
    std::string operator()(std::monostate) const { return "nothing"; }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(std::int64_t i) const { return std::to_string(i); }
    std::string operator()(double d) const { return number_text(d); }
    std::string operator()(const std::string& s) const {
      std::string quoted = shortened(s);
      quoted.insert(quoted.begin(), '\'');
      quoted.push_back('\'');
      return quoted;
    }
    std::string operator()(const List& l) const { return "a list of " + std::to_string(l.size()); }
    std::string operator()(const Dict& d) const { return "a dict of " + std::to_string(d.size()); }
  } show;
  return std::visit(show, data);
}

void fail_at(const std::string& path, const std::string& what) {
  throw std::invalid_argument(one_line(what) + " - at `" + one_line(path) + "`");
}

void fail_type(const std::string& path, const std::string& expected, const Value& got) {
  throw TypeMismatch(one_line("expected " + expected + ", got " + got.describe()) + " - at `" + one_line(path) + "`");
}

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  if (name.size() > kMostTyped) return "";
  std::size_t best = std::max<std::size_t>(2, name.size() / 2) + 1;
  const std::string* winner = nullptr;
  for (const auto& candidate : known) {
    // What has so many letters more or less is as far away at least.
    if (std::max(name.size(), candidate.size()) - std::min(name.size(), candidate.size()) >= best) continue;
    if (const std::size_t d = distance(name, candidate); d < best) {
      best = d;
      winner = &candidate;
    }
  }
  return winner ? "; did you mean `" + *winner + "`?" : "";
}

std::int64_t decode_int(const Value& value, const std::string& path, const Allowed& allowed) {
  const auto* number = std::get_if<std::int64_t>(&value.data);
  if (number == nullptr) fail_type(path, range_text("int", allowed), value);
  if (static_cast<double>(*number) < allowed.low || static_cast<double>(*number) > allowed.high)
    fail_at(path, "expected " + range_text("int", allowed) + ", got " + value.describe());
  return *number;
}

double decode_number(const Value& value, const std::string& path, const Allowed& allowed) {
  double number = 0;
  if (const auto* i = std::get_if<std::int64_t>(&value.data)) number = static_cast<double>(*i);
  else if (const auto* d = std::get_if<double>(&value.data)) number = *d;
  else fail_type(path, range_text("number", allowed), value);
  if (!std::isfinite(number) || number < allowed.low || number > allowed.high)
    fail_at(path, "expected " + range_text("finite number", allowed) + ", got " + value.describe());
  return number;
}

std::string decode_text(const Value& value, const std::string& path, const Allowed& allowed) {
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr) fail_type(path, "text", value);
  if (!allowed.chooses(*text)) {
    std::string list;
    for (const auto choice : allowed.choices)
      if (!choice.empty()) list += (list.empty() ? "`" : ", `") + std::string(choice) + "`";
    fail_at(path, "expected one of " + list + ", got " + value.describe());
  }
  return *text;
}

bool decode_bool(const Value& value, const std::string& path) {
  const auto* flag = std::get_if<bool>(&value.data);
  if (flag == nullptr) fail_type(path, "true or false", value);
  return *flag;
}

const Value::List& expect_list(const Value& value, const std::string& path) {
  const auto* list = std::get_if<Value::List>(&value.data);
  if (list == nullptr) fail_type(path, "a list", value);
  return *list;
}

const Value::Dict& expect_dict(const Value& value, const std::string& path) {
  const auto* dict = std::get_if<Value::Dict>(&value.data);
  if (dict == nullptr) fail_type(path, "a dict", value);
  return *dict;
}

void fail_field(const std::string& path, const std::string& name, const std::vector<std::string>& known) {
  fail_at(path, "unknown field `" + name + "`" + nearest(name, known));
}

void decode_slots(const Slot* slots, std::size_t count, const Value& value, const std::string& path,
                  bool kind_allowed) {
  const Slot* end = slots + count;
  for (const auto& [name, item] : expect_dict(value, path)) {
    if (kind_allowed && name == "kind") continue;
    const Slot* slot = std::find_if(slots, end, [&](const Slot& one) { return one.name == name; });
    if (slot == end) {
      std::vector<std::string> known;
      for (const Slot* one = slots; one != end; ++one) known.emplace_back(one->name);
      fail_field(path, name, known);
    }
    slot->decode(slot->at, item, path + "." + name, slot->allowed);
  }
  // A field may be left out only if its default is a value it may have.
  for (const Slot* slot = slots; slot != end; ++slot)
    if (!slot->allows(slot->at, slot->allowed) && value.find(slot->name) == nullptr)
      fail_at(path + "." + std::string(slot->name), "expected a value, got nothing");
}

std::size_t decode_kind(const std::string_view* kinds, std::size_t count, const Value& value, const std::string& path) {
  expect_dict(value, path);
  const Value* kind = value.find("kind");
  if (kind == nullptr) fail_at(path, "expected a `kind`");
  const std::string name = decode_text(*kind, path + ".kind", {});
  const std::string_view* found = std::find(kinds, kinds + count, name);
  if (found == kinds + count) {
    const std::vector<std::string> known(kinds, kinds + count);
    fail_at(path + ".kind", "unknown kind `" + name + "`" + nearest(name, known));
  }
  return static_cast<std::size_t>(found - kinds);
}

Value value_of(bool value) { return {value}; }
Value value_of(std::int64_t value) { return {value}; }
Value value_of(double value) { return {value}; }
Value value_of(const std::string& value) { return {value}; }

void add_to_schema(Value::Dict& schema, std::string_view name, const char* type, Value fallback,
                   std::string_view meaning) {
  schema.emplace_back(std::string(name),
                      Value{Value::List{Value{std::string(type)}, std::move(fallback), Value{std::string(meaning)}}});
}

}  // namespace gridmill
