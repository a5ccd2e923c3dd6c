// See scripts.hpp.
#include "grid/scripts/scripts.hpp"

#include <string_view>

#include "grid/scripts/arena.hpp"
#include "grid/scripts/cogsguard.hpp"
#include "grid/scripts/extractor_hub.hpp"
#include "grid/scripts/navigation.hpp"

namespace gridmill::grid {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<GridScript> (*make)(const Vocabulary&, const Program&);  // nullptr: it cannot play this game
};
constexpr Entry kScripts[] = {{"arena", make_arena_script},
                              {"cogsguard", make_cogsguard_script},
                              {"extractor_hub", make_extractor_hub_script},
                              {"navigation", make_navigation_script}};

}  // namespace

std::vector<std::string> script_names(const Vocabulary& vocabulary, const Program& program) {
  std::vector<std::string> names;
  for (const Entry& entry : kScripts)
    if (entry.make(vocabulary, program)) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<GridScript> make_script(const std::string& name, const Vocabulary& vocabulary, const Program& program) {
  for (const Entry& entry : kScripts)
    if (entry.name == name) return entry.make(vocabulary, program);
  return nullptr;
}

}  // namespace gridmill::grid
