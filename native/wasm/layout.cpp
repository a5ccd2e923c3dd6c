#include "wasm/layout.hpp"

#include <cmath>
#include <map>
#include <optional>

#include "core/tokens.hpp"

namespace gridmill::wasm {
namespace {

constexpr double kEnumerated = 16;              // features with fewer values have a slot for each
constexpr const char* kSigned = "last_reward";  // 128 means zero
constexpr std::size_t kMostSlots = 32'767;

using Words = std::vector<std::string>;

// The names of a feature's values, or nothing if its value is an amount.
std::optional<Words> values_of(const std::string& feature, double normalizer, const Words& tags, const Words& vibes,
                               const Words& actions) {
  if (feature == "tag") return tags;
  if (feature == "vibe") return vibes;
  if (feature == "last_action") return actions;
  if (!(normalizer < kEnumerated)) return std::nullopt;
  Words values;
  for (int value = 0; value <= static_cast<int>(normalizer); ++value) values.push_back(std::to_string(value));
  return values;
}
std::optional<Words> values_of(const Spec& own, std::size_t i) {
  return values_of(own.features[i], own.normalizers[i], own.tags, own.vibes, own.actions);
}

// What a byte of an amount counts: small numbers matter most, 15 is about one.
float amount_of(const std::string& feature, int value) {
  if (feature == kSigned) return (static_cast<float>(value) - 128.0f) / 32.0f;
  return static_cast<float>(std::log2(1.0 + value)) / 4.0f;
}

// Windows of two sizes share their centre.
std::vector<std::int32_t> places_of(std::int32_t own_height, std::int32_t own_width, const Seen& seen) {
  std::vector<std::int32_t> place(256, -1);
  const std::int32_t down = own_height / 2 - seen.window_height / 2, right = own_width / 2 - seen.window_width / 2;
  for (std::int32_t row = 0; row < seen.window_height; ++row)
    for (std::int32_t column = 0; column < seen.window_width; ++column) {
      const std::int32_t r = row + down, c = column + right;
      if (r >= 0 && r < own_height && c >= 0 && c < own_width)
        place[static_cast<std::size_t>(row << 4 | column)] = r * own_width + c;
    }
  place[kGlobalLocation] = own_height * own_width;
  return place;
}

}  // namespace

void Spec::check(const std::string& path) const {
  if (actions.empty()) fail_at(path + ".actions", "expected at least one action, got none");
  if (kind != "tokens") {
    if (obs_size == 0) fail_at(path + ".obs_size", "expected at least one number, got none");
    return;
  }
  if (window.size() != 2 || window[0] == 0 || window[1] == 0)
    fail_at(path + ".window", "expected rows and columns, got a list of " + std::to_string(window.size()));
  if (normalizers.size() != features.size())
    fail_at(path + ".normalizers", "expected one for each of " + std::to_string(features.size()) + " features, got " +
                                       std::to_string(normalizers.size()));
  if (features.empty() || features.size() > 255)
    fail_at(path + ".features", "expected 1 to 255 features, got " + std::to_string(features.size()));
  for (std::size_t i = 0; i < normalizers.size(); ++i)
    if (!(normalizers[i] >= 0)) fail_at(path + ".normalizers", "expected non-negative numbers");
  if (const std::size_t slots = TableSizes(*this).slots; slots == 0 || slots > kMostSlots)
    fail_at(path, "expected 1 to 32767 words, got " + std::to_string(slots));
}

TableSizes::TableSizes(const Spec& own) : places(1), slots(0) {
  places += static_cast<std::size_t>(own.window[0] * own.window[1]);
  for (std::size_t i = 0; i < own.features.size(); ++i) {
    const auto values = values_of(own, i);
    slots += values ? values->size() : 2;  // an amount has a slot for being there and one for how much
  }
}

Layout::Layout(const Spec& own, const Seen& seen)
    : slot(seen.features.size() * 256, -1), amount(seen.features.size() * 256, 0.0f) {
  std::map<std::pair<std::string, std::string>, std::int32_t> first;
  std::map<std::string, std::size_t> place_of;
  for (std::size_t i = 0; i < own.features.size(); ++i) {
    const auto values = values_of(own, i);
    place_of[own.features[i]] = i;
    for (const auto& value : values.value_or(Words{"", "amount"}))
      first[{own.features[i], value}] = slots++;  // the last of two words that are the same, as in Python
  }
  for (std::size_t i = 0; i < seen.features.size(); ++i) {
    const std::string& feature = seen.features[i];
    const auto known = place_of.find(feature);
    if (known == place_of.end()) continue;
    const auto values = values_of(own, known->second);
    if (!values) {  // whether a number is an amount is the policy's to say, whatever its range is elsewhere
      for (std::size_t value = 0; value < 256; ++value) {
        slot[i * 256 + value] = first[{feature, ""}];
        amount[i * 256 + value] = amount_of(feature, static_cast<int>(value));
      }
      continue;
    }
    const auto theirs = values_of(feature, seen.normalizers[i], seen.tags, seen.vibes, seen.actions);
    const Words& shown = theirs && !theirs->empty() ? *theirs : *values;
    for (std::size_t value = 0; value < shown.size() && value < 256; ++value) {
      const auto found = first.find({feature, shown[value]});
      slot[i * 256 + value] = found == first.end() ? -1 : found->second;
    }
  }
  const auto height = static_cast<std::int32_t>(own.window[0]), width = static_cast<std::int32_t>(own.window[1]);
  place = places_of(height, width, seen);
  places = height * width + 1;
}

}  // namespace gridmill::wasm
