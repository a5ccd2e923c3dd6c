// The rules of Corridor, and its batch, compiled here once.
#include "corridor/corridor.hpp"

#include <algorithm>

namespace gridmill::corridor {

// An action that is no index of ours is a stay.
void Corridor::act(T& tick) {
  State& s = state(tick);
  const std::int32_t last = tick.program.length - 1;
  const std::int32_t action = *tick.rows.actions;
  if (action == left) s.cell = std::max(s.cell - 1, 0);
  if (action == right) s.cell = std::min(s.cell + 1, last);
  s.reached = s.cell == last;
  ++tick.header.tick;
  *tick.rows.rewards = s.reached ? 1.0f : 0.0f;
  *tick.rows.terminals = s.reached != 0;
  *tick.rows.truncations = !s.reached && tick.header.tick >= tick.header.max_steps;
  tick.header.ended = *tick.rows.terminals || *tick.rows.truncations;
}

void Corridor::observe(T& tick) {
  const State& s = state(tick);
  const float way = static_cast<float>(s.cell) / static_cast<float>(tick.program.length - 1);
  const float time = static_cast<float>(tick.header.tick) / static_cast<float>(tick.header.max_steps);
  tick.rows.obs[0] = way;
  tick.rows.obs[1] = 1.0f - way;
  tick.rows.obs[2] = 1.0f - time;
  if (tick.rows.masks == nullptr) return;
  tick.rows.masks[stay] = 1;
  tick.rows.masks[left] = s.cell > 0;
  tick.rows.masks[right] = 1;
}

// A saved state comes from outside: whatever a tick takes for granted is asked here. An episode ends at the far end.
void Corridor::check_state(const Program& p, const WorldHeader&, std::byte* state, const Rows<Obs>&) {
  const State& s = *reinterpret_cast<const State*>(state);
  expect_state(s.cell >= 0 && s.cell < p.length, "its cell is not in the corridor");
  expect_state(s.reached == 0, "it has reached the end");
}

void Corridor::record(const T& tick, double* out) {
  const State& s = state(tick);
  out[0] = s.reached;  // the only reward there is
  out[1] = s.reached;
}

}  // namespace gridmill::corridor

GRIDMILL_COMPILE_BATCH(corridor::Corridor)
