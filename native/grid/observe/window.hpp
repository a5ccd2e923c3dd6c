// What an agent sees, as tables. A cell of the window has a location byte (row nibble, column nibble), which
// is also its bit in a 256-bit occupancy picture of 16 rows x 16 columns; its rank is its place in the order
// of observation. Plain data without the standard library: the AVX-512 file includes it and must not
// instantiate shared templates.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridmill::grid {

struct alignas(64) Window {
  // Per rank: byte of the picture and bit in that byte (for the vector path), cell distance, location
  // patterns.
  std::uint8_t picture_byte[256];
  std::uint8_t picture_bit[256];
  std::uint8_t half_byte[2][256];  // in AVX2's order of rows: byte in one half of the picture; 0x80: it is in the other
  std::uint8_t numbers[256];       // 0, 1, 2, ...
  std::uint8_t location[256];
  std::uint8_t plain[64];         // tokens of the terrain that is written in runs, one behind the other, location 0
  std::uint8_t spread[64];        // per byte of many tokens: the token whose location stands there, or 0x80
  std::uint8_t rank_of[256];      // location -> rank
  std::uint64_t inside[4];        // picture of the cells that belong to the window
  std::uint64_t pattern[256][2];  // the location at bytes 0, 3, 6, 9, 12, 15 of a 16-byte store
  std::int32_t cell_delta[256];   // from the agent's cell in the padded grid
  std::uint32_t num_ranks, num_words;  // words of 64 ranks
  std::int32_t height, width, radius_rows, radius_columns;
};

// What a row looks like as a dense box: a plane for each feature, then one for each tag.
struct DenseForm {
  std::uint32_t features, tags, tag;  // tag: the feature whose values are tags
  std::uint32_t common;               // the tag that most tokens have; 256: there is none
  std::uint32_t height, width, plane;
  std::size_t bytes;
};

// One world's observation job for the fast path: raw pointers only.
struct ObserveJob {
  const Window* window;
  const void* grid;  // of uint8 or uint16 codes
  bool narrow_grid;
  const std::uint64_t* occupied;
  std::ptrdiff_t plain;  // words from there to the bitmap of the terrain that is written in runs; 0: none is
  const std::uint8_t* token_cache;
  const std::uint32_t* token_at;  // code -> where its tokens begin
  const std::uint8_t* token_counts;
  const std::uint32_t* cell;
  const std::uint16_t* row;
  const std::uint16_t* column;
  const std::uint8_t* last_action;
  const std::uint8_t* reward_token;
  std::uint64_t globals_low, globals_high;  // the three always-present tokens with zero values
  std::uint64_t progress;
  const std::uint8_t* extra;  // further global tokens, `extra_stride` bytes per agent, 16 of them unused, or nullptr
  const std::uint8_t* extra_counts;
  std::uint32_t extra_stride;
  std::uint32_t num_agents, plane_rows, num_tokens;
  bool wide;  // many objects have more than five tokens
  std::uint8_t* obs;
  std::uint16_t* used;
  std::uint64_t *written, *dropped;  // counters per agent
  DenseForm dense;
  std::uint8_t* boxes;  // of all agents; nullptr: nobody asked for them
};

void observe_portable(const ObserveJob& job);
void observe_avx2(const ObserveJob& job);  // the same bytes
void observe_avx512(const ObserveJob& job);

// Rows of `num_tokens` each as boxes, one behind the other.
void dense_portable(const DenseForm& form, const std::uint8_t* rows, std::size_t num_rows, std::uint32_t num_tokens,
                    std::uint8_t* out);
void dense_avx2(const DenseForm& form, const std::uint8_t* rows, std::size_t num_rows, std::uint32_t num_tokens,
                std::uint8_t* out);  // the same bytes
void dense_avx512(const DenseForm& form, const std::uint8_t* rows, std::size_t num_rows, std::uint32_t num_tokens,
                  std::uint8_t* out);

}  // namespace gridmill::grid
