// Names of per-agent episode statistics. Names become slots when a program compiles; a finished episode
// leaves one row of numbers per agent. All games of a batch share one table (the union of their names).
#pragma once

#include <string>
#include <vector>

namespace gridmill {

struct Stat {
  std::string name;
  bool integer = true;  // delivered as int64, otherwise float64
  bool operator==(const Stat&) const = default;
};
using StatTable = std::vector<Stat>;

}  // namespace gridmill
