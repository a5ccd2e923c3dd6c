// What the extractor hub's script reads in the rules of its game: what is paid for, how it is made, who gives what that
// takes, and which vibes do it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grid/program.hpp"

namespace gridmill::grid {

// A station that gives something for at most one other thing and is used without a vibe.
struct HubSource {
  std::string type;
  std::uint32_t gives = 0;            // resource
  std::vector<std::uint16_t> inputs;  // per resource
  std::uint32_t cooldown = 0;
  bool partial = false, limited = false;  // works in part while it rests; can be used so many times
};

struct HubRecipe {
  std::string maker, chest;           // object types
  std::uint32_t product = 0;          // resource
  std::vector<std::uint16_t> inputs;  // per resource: what a product costs
  std::string make_vibe, deposit_vibe;
  std::uint32_t most_products = 0;  // an agent can hold
  std::vector<HubSource> sources;
};

// Nothing, if the game does not pay for a product that one assembler makes and a chest takes.
std::optional<HubRecipe> read_hub_recipe(const Program& program);

}  // namespace gridmill::grid
