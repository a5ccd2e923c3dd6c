#include "wasm/json.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace gridmill::wasm {
namespace {

constexpr std::size_t kDepth = 64;  // as deep as a config may be that comes from Python

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Value whole() {
    Value value = item();
    space();
    if (at_ < text_.size()) fail("expected nothing after the value");
    return value;
  }

 private:
  Value item() {
    space();
    if (path_.size() > kDepth) fail_at("$", "expected a config at most 64 levels deep, got more");
    switch (peek()) {
      case '{':
        return dict();
      case '[':
        return list();
      case '"':
        return {text()};
      case 't':
        return word("true", {true});
      case 'f':
        return word("false", {false});
      case 'n':
        return word("null", {});
      default:
        return number();
    }
  }

  Value dict() {
    Value::Dict entries;
    ++at_;
    space();
    if (take('}')) return {std::move(entries)};
    do {
      space();
      if (peek() != '"') fail("expected a key in quotes");
      std::string key = text();
      space();
      if (!take(':')) fail("expected `:` after a key");
      path_.push_back("." + key);
      Value value = item();
      path_.pop_back();
      entries.push_back({std::move(key), std::move(value)});
      space();
    } while (take(','));
    if (!take('}')) fail("expected `,` or `}`");
    refuse_twins(entries);
    return {std::move(entries)};
  }

  void refuse_twins(const Value::Dict& entries) const {
    std::vector<std::string_view> keys;
    for (const auto& entry : entries) keys.push_back(entry.first);
    std::sort(keys.begin(), keys.end());
    const auto twin = std::adjacent_find(keys.begin(), keys.end());
    if (twin != keys.end()) fail_at(path(), "expected every key once, got `" + std::string(*twin) + "` twice");
  }

  Value list() {
    Value::List items;
    ++at_;
    space();
    if (take(']')) return {std::move(items)};
    do {
      std::string place = "[";  // piece by piece: g++ 12 at -O3 warns of a plain sum of the three
      place += std::to_string(items.size());
      path_.push_back(std::move(place += ']'));
      items.push_back(item());
      path_.pop_back();
      space();
    } while (take(','));
    if (!take(']')) fail("expected `,` or `]`");
    return {std::move(items)};
  }

  std::string text() {
    std::string out;
    ++at_;
    while (true) {
      const std::size_t from = at_;
      while (at_ < text_.size() && plain(text_[at_])) ++at_;
      out += text_.substr(from, at_ - from);
      if (take('"')) return out;
      if (!take('\\')) fail("expected text without control characters and a closing quote");
      escape(out);
    }
  }
  static bool plain(char c) { return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= ' '; }

  void escape(std::string& out) {
    constexpr std::string_view kShort = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    const char c = peek();
    ++at_;
    if (const std::size_t which = kShort.find(c); c != '\0' && which != std::string_view::npos) out += kMeant[which];
    else if (c == 'u') append_utf8(out, code_point());
    else fail("expected a JSON escape after a backslash");
  }

  std::uint32_t code_point() {
    const std::uint32_t first = four_digits();
    if (first < 0xD800 || first > 0xDFFF) return first;
    if (first < 0xDC00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const std::uint32_t second = four_digits();
      if (second >= 0xDC00 && second <= 0xDFFF) return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    }
    fail("expected both halves of a surrogate pair");
  }
  std::uint32_t four_digits() {
    std::uint32_t code = 0;
    const std::string_view digits = text_.substr(std::min(at_, text_.size()), 4);
    const auto found = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() != 4 || found.ptr != digits.data() + 4) fail("expected four hexadecimal digits");
    at_ += 4;
    return code;
  }
  static void append_utf8(std::string& out, std::uint32_t code) {
    const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
    if (code < 0x80) return put(code);
    if (code < 0x800) {
      put(0xC0 | code >> 6);
    } else {
      if (code < 0x10000) {
        put(0xE0 | code >> 12);
      } else {
        put(0xF0 | code >> 18);
        put(0x80 | (code >> 12 & 63));
      }
      put(0x80 | (code >> 6 & 63));
    }
    put(0x80 | (code & 63));
  }

  Value number() {
    const std::size_t from = at_;
    take('-');
    if (!take('0') && !digits()) fail("expected a value");
    bool whole = true;
    if (take('.')) {
      whole = false;
      if (!digits()) fail("expected a digit after the decimal point");
    }
    if (take('e') || take('E')) {
      whole = false;
      if (!take('+')) take('-');
      if (!digits()) fail("expected a digit in the exponent");
    }
    const std::string digits_of(text_.substr(from, at_ - from));
    if (whole) {
      std::int64_t value = 0;
      const auto found = std::from_chars(digits_of.data(), digits_of.data() + digits_of.size(), value);
      if (found.ec != std::errc()) fail_at(path(), "expected an int of at most 64 bits, got a larger one");
      return {value};
    }
    const double value = std::strtod(digits_of.c_str(), nullptr);
    if (!std::isfinite(value)) fail_at(path(), "expected a finite number, got one that is too large");
    return {value};
  }
  bool digits() {
    const std::size_t from = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ > from;
  }

  Value word(std::string_view expected, Value meant) {
    if (text_.substr(at_, expected.size()) != expected) fail("expected a value");
    at_ += expected.size();
    return meant;
  }

  void space() {
    constexpr std::string_view kSpace = " \t\n\r";
    while (at_ < text_.size() && kSpace.find(text_[at_]) != std::string_view::npos) ++at_;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string path() const {
    std::string whole = "$";
    for (const auto& part : path_) whole += part;
    return whole;
  }
  [[noreturn]] void fail(const std::string& expected) const {
    const std::string got = at_ < text_.size() ? "`" + std::string(1, text_[at_]) + "`" : "the end";
    fail_at(path(), "JSON: " + expected + ", got " + got + " at byte " + std::to_string(at_));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> path_;
};

void write(const Value& value, std::string& out);

void write_text(const std::string& text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= ' ') {
      out += c;
      continue;
    }
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
    out += escaped;
  }
  out += '"';
}

// Enough digits to be read back as the same number; what is not finite has no JSON.
void write_number(double value, std::string& out) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  out += std::isfinite(value) ? text : "null";
}

struct Writer {
  std::string& out;
  void operator()(std::monostate) const { out += "null"; }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(std::int64_t value) const { out += std::to_string(value); }
  void operator()(double value) const { write_number(value, out); }
  void operator()(const std::string& value) const { write_text(value, out); }
  void operator()(const Value::List& items) const {
    char before = '[';
    for (const auto& item : items) {
      out += before;
      write(item, out);
      before = ',';
    }
    out += items.empty() ? "[]" : "]";
  }
  void operator()(const Value::Dict& entries) const {
    char before = '{';
    for (const auto& [key, item] : entries) {
      out += before;
      write_text(key, out);
      out += ':';
      write(item, out);
      before = ',';
    }
    out += entries.empty() ? "{}" : "}";
  }
};

void write(const Value& value, std::string& out) { std::visit(Writer{out}, value.data); }

}  // namespace

Value parse_json(std::string_view text) { return Parser(text).whole(); }

std::string to_json(const Value& value) {
  std::string out;
  write(value, out);
  return out;
}

}  // namespace gridmill::wasm
