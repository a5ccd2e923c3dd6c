// Random changes of plain trees, for a fuzzer: what comes out is still a tree, mostly near what went in.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "core/value.hpp"

namespace gridmill {

// A number below a bound, again and again.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::size_t operator()(std::size_t bound) {
    state_ += 0x9E37'79B9'7F4A'7C15ull;
    std::uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58'476D'1CE4'E5B9ull;
    z = (z ^ z >> 27) * 0x94D0'49BB'1331'11EBull;
    return static_cast<std::size_t>((z ^ z >> 31) % bound);
  }

 private:
  std::uint64_t state_;
};

inline void collect(Value& tree, std::vector<Value*>& nodes) {
  nodes.push_back(&tree);
  if (auto* list = std::get_if<Value::List>(&tree.data))
    for (Value& item : *list) collect(item, nodes);
  if (auto* dict = std::get_if<Value::Dict>(&tree.data))
    for (auto& entry : *dict) collect(entry.second, nodes);
}

inline Value junk(Draw& draw) {
  constexpr std::int64_t kNumbers[] = {
      -1,  0,   1,     2,     3,     4,      7,      8,      63,     64,     127,        128,        250,         251,
      255, 256, 4'095, 4'096, 4'097, 32'767, 65'534, 65'535, 65'536, 70'000, 2147483647, 2147483648, 4294967296ll};
  constexpr double kReals[] = {0.5, -0.5, 1e-9, 1e9, 1e30, 1e38, 1e39, -1e308, 5e-324};
  constexpr const char* kWords[] = {"",          "wall", "agent", "crate", "ore",  "heart",
                                    "type:wall", "all",  "@",     "\n",    "north"};
  switch (draw(8)) {
    case 0:
      return {draw(2) == 0};
    case 1:
      return {kReals[draw(std::size(kReals))]};
    case 2:
      return {std::string(kWords[draw(std::size(kWords))])};
    case 3:
      return {Value::List{}};
    case 4:
      return {Value::Dict{}};
    case 5:
      return {};
    default:
      return {kNumbers[draw(std::size(kNumbers))]};
  }
}

inline void change_text(std::string& text, Draw& draw) {
  constexpr std::string_view kCells = "@.#0123XZ\n %abm";
  if (text.empty() || draw(4) == 0) text.insert(draw(text.size() + 1), 1, kCells[draw(kCells.size())]);
  else if (draw(4) == 0) text.erase(draw(text.size()), 1 + draw(8));
  else if (draw(8) == 0) text += text.substr(draw(text.size()));
  else text[draw(text.size())] = kCells[draw(kCells.size())];
}

inline void change_number(Value& node, Draw& draw) {
  if (auto* whole = std::get_if<std::int64_t>(&node.data)) {
    const std::int64_t by = static_cast<std::int64_t>(draw(9)) - 4;
    if (*whole < std::numeric_limits<std::int64_t>::max() / 2 && *whole > std::numeric_limits<std::int64_t>::min() / 2)
      *whole = draw(4) == 0 ? *whole * 2 : *whole + by;
  } else if (auto* real = std::get_if<double>(&node.data)) {
    *real = draw(2) == 0 ? -*real : *real * 0.5;
  }
}

// Entries taken away, doubled, put elsewhere or, in a dict, called by another name of the tree.
inline void change_list(Value::List& list, Draw& draw) {
  if (list.empty()) return list.push_back(junk(draw));
  const std::size_t at = draw(list.size());
  if (draw(3) == 0) list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
  else list.insert(list.begin() + static_cast<std::ptrdiff_t>(draw(list.size() + 1)), Value(list[at]));
}
inline void change_dict(Value::Dict& dict, const std::vector<std::string>& names, Draw& draw) {
  const std::string& name = names[draw(names.size())];
  if (dict.empty() || draw(3) == 0) {
    dict.push_back({name, dict.empty() ? junk(draw) : Value(dict[draw(dict.size())].second)});
    return;
  }
  const std::size_t at = draw(dict.size());
  if (draw(2) == 0) dict.erase(dict.begin() + static_cast<std::ptrdiff_t>(at));
  else dict[at].first = name;
}

inline std::vector<std::string> names_of(const std::vector<Value*>& nodes) {
  std::vector<std::string> names{"kind"};
  for (const Value* node : nodes)
    if (const auto* dict = std::get_if<Value::Dict>(&node->data))
      for (const auto& entry : *dict) names.push_back(entry.first);
  return names;
}

// One change somewhere in a tree; the root stays what it is.
inline void change(Value& tree, Draw& draw) {
  std::vector<Value*> nodes;
  collect(tree, nodes);
  Value& node = *nodes[draw(nodes.size())];
  const std::size_t how = draw(10);
  if (auto* dict = std::get_if<Value::Dict>(&node.data); dict != nullptr && (how < 7 || &node == &tree))
    return change_dict(*dict, names_of(nodes), draw);
  if (auto* list = std::get_if<Value::List>(&node.data); list != nullptr && how < 7) return change_list(*list, draw);
  if (auto* text = std::get_if<std::string>(&node.data); text != nullptr && how < 5) return change_text(*text, draw);
  if (how < 6) return change_number(node, draw);
  if (&node != &tree) node = how < 8 ? Value(*nodes[draw(nodes.size())]) : junk(draw);
}

inline void cross(Value& tree, Value& other, Draw& draw) {
  std::vector<Value*> mine, theirs;
  collect(tree, mine);
  collect(other, theirs);
  if (mine.size() > 1) *mine[1 + draw(mine.size() - 1)] = Value(*theirs[draw(theirs.size())]);
}

}  // namespace gridmill
