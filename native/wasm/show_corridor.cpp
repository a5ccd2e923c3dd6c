// Corridor: names of actions, and a world as a tree of numbers; the smallest of these files, to copy.
#include "wasm/show.hpp"

namespace gridmill::wasm {

std::vector<std::string> action_names(const CorridorBatch&) { return {"stay", "left", "right"}; }

void describe(const CorridorBatch& batch, Value::Dict& info) {
  info.push_back({"length", number(batch.worlds().program(0).length)});
}

void inspect(CorridorBatch& batch, Value::Dict& out) {
  batch.look(0, [&](auto& tick) {
    const corridor::State& s = corridor::Corridor::state(tick);
    out.push_back({"cell", number(s.cell)});
    out.push_back({"reached", {s.reached != 0}});
  });
}

}  // namespace gridmill::wasm
