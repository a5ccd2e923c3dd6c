// The observation phase: refresh what changed, write the rows with the fast path (or the reference, if
// asked), and compare the two when shadow validation is on. The portable way to see is here; its bytes
// equal the vector ones'.
#include <cmath>

#include "core/phases.hpp"
#include "grid/grid.hpp"
#include "grid/observe/observe_rows.hpp"
#include "grid/observe/views.hpp"

namespace gridmill::grid {
namespace {

// Every x86-64, and every other CPU.
struct Portable {
  using Copy = PairCopy;
  using Boxes = TokenByToken;

  struct Run {
    static constexpr std::uint32_t kTokens = 1;
    static constexpr std::size_t kBytes = 4;
    explicit Run(const Window& window) { std::memcpy(&token, window.plain, sizeof token); }
    void store(const std::uint8_t* places, std::uint8_t* out) const {
      std::memcpy(out, &token, sizeof token);
      *out = *places;
    }
    std::uint32_t token;
  };

  static inline void see(const Window& window, const std::uint64_t* rows, std::uint32_t shift, std::uint64_t* seen) {
    std::uint64_t picture[4] = {0, 0, 0, 0};
    std::fill_n(seen, kWords, 0);
    for (std::int32_t i = 0; i < window.height; ++i) picture[i >> 2] |= ((rows[i] >> shift) & 0xFFFF) << (16 * (i & 3));
    for (std::uint32_t word = 0; word < 4; ++word)
      for (std::uint64_t left = picture[word] & window.inside[word]; left != 0; left &= left - 1) {
        const std::uint32_t rank = window.rank_of[64 * word + static_cast<std::uint32_t>(__builtin_ctzll(left))];
        seen[rank >> 6] |= std::uint64_t{1} << (rank & 63);
      }
  }

  static inline std::uint32_t gather(const std::uint8_t* table, const std::uint64_t* seen, std::uint32_t words,
                                     std::uint8_t* out) {
    std::uint32_t count = 0;
    for (std::uint32_t word = 0; word < words; ++word)
      for (std::uint64_t left = seen[word]; left != 0; left &= left - 1)
        out[count++] = table[64 * word + static_cast<std::uint32_t>(__builtin_ctzll(left))];
    return count;
  }
};

std::uint8_t progress_of(const Program& p, const WorldHeader& header) {
  const std::uint64_t scaled = std::uint64_t{256} * header.tick / static_cast<std::uint64_t>(p.config.max_steps);
  return static_cast<std::uint8_t>(std::min<std::uint64_t>(255, scaled));
}

std::uint32_t amount_shown(const Program& p, const World& w, const ShownValue& shown, std::uint32_t agent) {
  const std::uint32_t most = shown.digits == 2 ? 65'535 : 255;
  const double value = evaluate(shown.value, {p, w, static_cast<std::int32_t>(agent)});
  // What is no number, as the difference of two infinities, is 0.
  return static_cast<std::uint32_t>(rounded(value >= 0 ? value > most ? most : value : 0));
}

// Local position and game values: only games that show them pay for this.
void write_extra(const Program& p, const World& w, Worker& worker) {
  const std::size_t stride = worker.extra.size() / p.num_agents;
  // The tokens of values that a collective shares are those of the agent before, if it has the same one.
  const std::uint8_t* shared = nullptr;
  std::ptrdiff_t shared_bytes = 0;
  std::uint8_t team_before = kNeutral;
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    std::uint8_t* const begin = worker.extra.data() + agent * stride;
    std::uint8_t* out = begin;
    const auto put = [&](std::uint8_t feature, std::uint8_t value) {  // what is 0 is overwritten: no guess
      out[0] = kGlobalLocation;
      out[1] = feature;
      out[2] = value;
      out += value == 0 ? 0 : 3;
    };
    if (p.config.observation.local_position) {
      const int dr = w.row[agent] - w.spawn_row[agent], dc = w.column[agent] - w.spawn_column[agent];
      put(p.features.local_position[dr < 0 ? 0 : 1], static_cast<std::uint8_t>(std::min(255, std::abs(dr))));
      put(p.features.local_position[dc < 0 ? 2 : 3], static_cast<std::uint8_t>(std::min(255, std::abs(dc))));
    }
    const std::uint8_t team = w.collective_of(agent);
    if (p.features.shown_by_team && agent > 0 && team == team_before) {
      out = std::copy_n(shared, shared_bytes, out);
    } else {
      shared = out;
      team_before = team;
      for (const auto& shown : p.features.shown) {
        const std::uint32_t amount = amount_shown(p, w, shown, agent);
        put(shown.feature, static_cast<std::uint8_t>(amount));
        if (shown.digits == 2) put(shown.high_feature, static_cast<std::uint8_t>(amount >> 8));
      }
      shared_bytes = out - shared;
    }
    worker.extra_counts[agent] = static_cast<std::uint8_t>((out - begin) / 3);
  }
}

ObserveJob make_job(const Grid::T& tick, World& w) {
  const Program& p = tick.program;
  Worker& worker = tick.worker;
  ObserveJob job{};
  job.window = &p.window;
  job.grid = w.grid8;
  job.narrow_grid = p.layout.narrow_grid;
  job.occupied = w.occupied;
  job.token_cache = w.token_cache;
  job.token_counts = w.token_counts;
  job.cell = w.cell;
  job.row = w.row;
  job.column = w.column;
  job.last_action = w.last_action;
  job.reward_token = w.reward_token;
  const std::uint64_t global = kGlobalLocation;
  job.globals_low = global | std::uint64_t{p.features.progress} << 8 | global << 24 |
                    std::uint64_t{p.features.action} << 32 | global << 48 | std::uint64_t{p.features.reward} << 56;
  job.globals_high = ~std::uint64_t{0xFF};
  job.progress = progress_of(p, tick.header);
  if (p.config.observation.local_position || !p.features.shown.empty()) {
    write_extra(p, w, worker);
    job.extra = worker.extra.data();
    job.extra_counts = worker.extra_counts.data();
    job.extra_stride = static_cast<std::uint32_t>(worker.extra.size() / p.num_agents);
  }
  job.num_agents = p.num_agents;
  job.plane_rows = p.layout.plane_rows;
  if (p.codes.plain != 0) job.plain = w.plain() - w.occupied;
  job.token_at = p.token_cache.at.data();
  job.wide = p.token_cache.wide;
  job.num_tokens = static_cast<std::uint32_t>(p.config.observation.num_tokens);
  job.obs = tick.rows.obs;
  job.used = tick.rows.used;
  job.written = w.agent_counter(AgentCounter::written);
  job.dropped = w.agent_counter(AgentCounter::dropped);
  job.dense = dense_form(p);
  return job;
}

// The reference as primary: whole rows, then the same counters the fast path keeps.
void observe_slowly(const Grid::T& tick, World& w, std::uint8_t* obs, std::uint16_t* used, bool count) {
  const Program& p = tick.program;
  std::vector<std::uint32_t> needed(p.num_agents);
  observe_reference(p, w, tick.header, obs, needed.data());
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    const auto budget = static_cast<std::uint32_t>(p.config.observation.num_tokens);
    used[agent] = static_cast<std::uint16_t>(std::min(needed[agent], budget));
    if (!count) continue;
    w.agent_counter(AgentCounter::written)[agent] += used[agent];
    w.agent_counter(AgentCounter::dropped)[agent] += needed[agent] - used[agent];
  }
}

void compare_rows(const Grid::T& tick, const std::uint8_t* fast, const std::uint8_t* reference) {
  const Program& p = tick.program;
  Validation& v = tick.worker.validation;
  const std::size_t row = std::size_t{static_cast<std::uint32_t>(p.config.observation.num_tokens)} * 3;
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    ++v.comparisons;
    const std::uint8_t *a = fast + agent * row, *b = reference + agent * row;
    if (std::memcmp(a, b, row) == 0) continue;
    ++v.mismatches;
    if (!v.first)
      v.first = Mismatch{tick.header.key.world, tick.header.tick, agent,       tick.header.key.episode,
                         tick.header.program,   {a, a + row},     {b, b + row}};
  }
}

// The reference runs first: the fast path counts what it writes, and a game may show those counts.
void observe_both(const Grid::T& tick, World& w, const ObserveJob& job) {
  Worker& worker = tick.worker;
  const bool fast_first = worker.options.fast;
  std::uint8_t* const shadow_rows = worker.shadow.data();
  const std::int64_t start = steady_ns();
  observe_slowly(tick, w, fast_first ? shadow_rows : tick.rows.obs,
                 fast_first ? worker.shadow_used.data() : tick.rows.used, !fast_first);
  const std::int64_t middle = steady_ns();
  if (fast_first) {
    worker.fast(job);
  } else {
    ObserveJob shadow = job;
    std::vector<std::uint64_t> counters(std::size_t{job.num_agents} * 2);
    std::memset(shadow_rows, kNoToken, std::size_t{job.num_agents} * job.num_tokens * 3);
    std::fill(worker.shadow_used.begin(), worker.shadow_used.end(), std::uint16_t{0});
    shadow.obs = shadow_rows;
    shadow.used = worker.shadow_used.data();
    shadow.written = counters.data();
    shadow.dropped = counters.data() + job.num_agents;
    worker.fast(shadow);
  }
  worker.validation.reference_ns += middle - start;
  worker.validation.fast_ns += steady_ns() - middle;
  compare_rows(tick, fast_first ? tick.rows.obs : shadow_rows, fast_first ? shadow_rows : tick.rows.obs);
}

void refuse_overflow(const Grid::T& tick, const World& w) {
  const Program& p = tick.program;
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent)
    if (const std::uint64_t dropped = w.agent_counter(AgentCounter::dropped)[agent])
      throw std::runtime_error("agent " + std::to_string(agent) + " sees " + std::to_string(dropped) +
                               " tokens more than num_tokens = " + std::to_string(p.config.observation.num_tokens) +
                               "; raise observation.num_tokens or set observation.overflow to 'drop'");
}

}  // namespace

void observe_portable(const ObserveJob& job) { observe_rows<Portable>(job); }

void dense_portable(const DenseForm& form, const std::uint8_t* rows, std::size_t num_rows, std::uint32_t num_tokens,
                    std::uint8_t* out) {
  write_boxes<TokenByToken>(form, rows, num_rows, num_tokens, out);
}

void observe_world(Grid::T& tick, World& w) {
  const Program& p = tick.program;
  for (std::uint32_t word = 0; word < (p.num_objects + 63) / 64; ++word)
    for (; w.dirty[word] != 0; w.dirty[word] &= w.dirty[word] - 1)
      refresh_object(p, w, 64 * word + static_cast<std::uint32_t>(__builtin_ctzll(w.dirty[word])), tick.header.tick);
  if (p.codes.plain != 0 && !w.plain_known()) w.note_plain();
  Worker& worker = tick.worker;
  if (!worker.options.validate && worker.options.fast) {
    ObserveJob job = make_job(tick, w);
    job.boxes = tick.rows.dense;
    worker.fast(job);
  } else if (worker.options.validate) {
    observe_both(tick, w, make_job(tick, w));
  } else {
    observe_slowly(tick, w, tick.rows.obs, tick.rows.used, true);
  }
  if (!worker.options.fast || worker.options.validate) Grid::show_dense(tick);
  if (!p.drop_on_overflow) refuse_overflow(tick, w);
  if (tick.rows.masks != nullptr) write_masks(p, w, tick.header, worker.rules.trials, tick.rows.masks);
}

}  // namespace gridmill::grid
