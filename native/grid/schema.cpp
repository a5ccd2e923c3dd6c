#include "grid/schema.hpp"

#include <type_traits>

#include "grid/config.hpp"

namespace gridmill::grid {

Value game_schema() { return schema_of(GameConfig{}); }

Value kinds_schema() {
  Value::Dict out;
  const auto add = [&out]<class... Ts>(std::type_identity<OneOf<Ts...>>) {
    (out.emplace_back(std::string(Ts::kind), schema_of(Ts{})), ...);
  };
  add(std::type_identity<decltype(GameValue::data)>{});
  add(std::type_identity<decltype(Condition::data)>{});
  add(std::type_identity<decltype(Effect::data)>{});
  add(std::type_identity<decltype(MapNode::data)>{});
  add(std::type_identity<decltype(LayerNode::data)>{});
  return {std::move(out)};
}

Value parts_schema() {
  return {Value::Dict{{"Limit", schema_of(Limit{})},
                      {"Recipe", schema_of(Recipe{})},
                      {"Collective", schema_of(Collective{})},
                      {"Rule", schema_of(Rule{})},
                      {"Area", schema_of(Area{})},
                      {"Event", schema_of(Event{})},
                      {"ObjectType", schema_of(ObjectType{})},
                      {"RewardTerm", schema_of(RewardTerm{})},
                      {"Standing", schema_of(Standing{})},
                      {"ObservedValue", schema_of(ObservedValue{})}}};
}

}  // namespace gridmill::grid
