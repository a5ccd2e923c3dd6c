// The golden files of tests/golden/ as trees, and names as Python's json writes them: as much of JSON as those need.
#pragma once

#include <charconv>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "core/value.hpp"

namespace golden {

using gridmill::Value;

class Reader {
 public:
  explicit Reader(std::string text) : text_(std::move(text)) {}

  Value whole() {
    Value value = next();
    if (peek() != '\0') fail("nothing more");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw std::invalid_argument("expected " + expected + " at byte " + std::to_string(at_));
  }
  char peek() {
    while (at_ < text_.size() && std::string_view(" \n\r\t").find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool takes(std::string_view word) {
    peek();
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view word) {
    if (!takes(word)) fail(std::string(word));
  }

  Value next() {
    switch (peek()) {
      case '{':
        return {dict()};
      case '[':
        return {list()};
      case '"':
        return {string()};
      default:
        break;
    }
    if (takes("null")) return {};
    if (takes("true")) return {true};
    if (takes("false")) return {false};
    return number();
  }
  Value::Dict dict() {
    Value::Dict items;
    expect("{");
    if (takes("}")) return items;
    do {
      peek();
      std::string key = string();
      expect(":");
      items.emplace_back(std::move(key), next());
    } while (takes(","));
    expect("}");
    return items;
  }
  Value::List list() {
    Value::List items;
    expect("[");
    if (takes("]")) return items;
    do items.push_back(next());
    while (takes(","));
    expect("]");
    return items;
  }
  std::string string() {
    std::string out;
    expect("\"");
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c == '\\') {
        const char escaped = at_ < text_.size() ? text_[at_++] : '\0';
        if (escaped == 'n') c = '\n';
        else if (escaped == '"' || escaped == '\\' || escaped == '/') c = escaped;
        else fail("an escape that golden files have");
      }
      out += c;
    }
    expect("\"");
    return out;
  }
  // With a point or an exponent it is a double, as in Python.
  Value number() {
    const std::size_t end = std::min(text_.find_first_not_of("+-.0123456789eE", at_), text_.size());
    const char *first = text_.data() + at_, *last = text_.data() + end;
    if (std::string_view(first, last).find_first_of(".eE") == std::string_view::npos)
      return read<std::int64_t>(first, last);
    return read<double>(first, last);
  }
  template <class Number>
  Value read(const char* first, const char* last) {
    Number found{};
    const auto [stop, error] = std::from_chars(first, last, found);
    if (error != std::errc{} || stop != last) fail("a number");
    at_ += static_cast<std::size_t>(last - first);
    return {found};
  }

  std::string text_;
  std::size_t at_ = 0;
};

inline Value read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return Reader({std::istreambuf_iterator<char>(file), {}}).whole();
}

// ---- as json.dumps writes them

inline std::string quoted(const std::string& text) {
  for (const char c : text)
    if (c < ' ' || c > '~' || c == '"' || c == '\\') throw std::invalid_argument("expected a plain name, got " + text);
  std::string out = "\"";
  return out.append(text).append("\"");
}
inline std::string repr(double number) {
  char text[32];
  std::string out(text, std::to_chars(text, text + sizeof text, number).ptr);
  return out.find_first_of(".en") == std::string::npos ? out + ".0" : out;
}
template <class Items, class Each>
std::string listed(const Items& items, Each each) {
  std::string out = "[";
  for (const auto& item : items) out.append(out.size() > 1 ? ", " : "").append(each(item));
  return out.append("]");
}
inline std::string written(const std::vector<std::string>& parts) {
  return listed(parts, [](const std::string& part) { return part; });
}

}  // namespace golden
