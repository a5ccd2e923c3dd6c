// JSON text <-> Value: how a game's tree comes into the module, and how what a world shows goes out. Strict (RFC 8259,
// no key twice, finite numbers), bounded in depth, refusals in one line with the `$.path` they are at.
#pragma once

#include <string>
#include <string_view>

#include "core/value.hpp"

namespace gridmill::wasm {

Value parse_json(std::string_view text);
std::string to_json(const Value& value);

}  // namespace gridmill::wasm
