// The settings of a game of Prospector: every constant a field. fields() is the only description here;
// tests/contracts/test_prospector_schema.py holds it equal to the Python model.
#pragma once

#include <cstdint>
#include <tuple>

#include "core/value.hpp"

namespace gridmill::prospector {

constexpr int kNodes = 32, kSlots = 6, kAsteroids = 16, kGoods = 6;
constexpr int kObs = 260, kActions = 69;
constexpr int kHold = 6, kWideScan = 8, kDeepScan = 10, kSelect = 12, kMine = 28, kStandard = 29, kAggressive = 30,
              kStabilize = 31, kCooldown = 33, kJettison = 36, kDock = 42, kSell = 43, kBuyFuel = 61, kMediumFuel = 62,
              kLargeFuel = 63, kBuyKit = 64, kOverhaul = 67, kCashOut = 68;  // actions, or the first of several
constexpr int kMaxDt = 255;  // the longest step: travel_time_max allows no more

struct Commodity {
  double base = 0, low = 0, high = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{field("base", &Self::base, between(0.01, 10000), "mean price in credits per unit"),
                      field("low", &Self::low, between(0.01, 10000), "minimum price"),
                      field("high", &Self::high, between(0.01, 10000), "maximum price")};
  }
};

struct Commodities {
  Commodity iron{45, 12, 180}, nickel{55, 15, 200}, water_ice{85, 20, 240}, pge{145, 50, 320},
      rare_isotopes{210, 80, 420}, volatiles{120, 30, 300};
  template <class Self>
  static auto fields() {
    return std::tuple{field("iron", &Self::iron, "price of iron"),
                      field("nickel", &Self::nickel, "price of nickel"),
                      field("water_ice", &Self::water_ice, "price of water ice"),
                      field("pge", &Self::pge, "price of platinum-group elements"),
                      field("rare_isotopes", &Self::rare_isotopes, "price of rare isotopes"),
                      field("volatiles", &Self::volatiles, "price of volatiles")};
  }
};

struct Config {
  double time_max = 20000;
  Commodities commodities;
  double credits_cap = 1e7;
  std::int32_t repair_kits_cap = 12, stabilizers_cap = 12, decoys_cap = 12;
  std::int32_t travel_time_max = 8;
  double travel_fuel_cost_max = 160, price_scale = 100, inventory_scale = 500;
  double heat_dissipation_per_tick = 2.5, overheat_damage = 1.25;
  double hazard_damage_per_tick = 0.7, hazard_heat_per_tick = 0.5, hazard_alert_per_tick = 0.8, hold_alert_decay = 3;
  std::int32_t escape_buff_ticks = 4, stabilize_buff_ticks = 6;
  double depletion_per_unit = 0.01;
  double pirate_bias = -4, pirate_intensity_weight = 3, pirate_alert_weight = 2.2, pirate_cargo_weight = 0.8,
         pirate_escape_weight = 2.8;
  double slippage_linear = 0.25, slippage_root = 0.2, inventory_pressure = 0.04, sales_pressure = 0.05,
         market_noise = 0.03, sales_decay_ticks = 14, inventory_decay = 0.998;
  double credit_scale = 1000, alpha_extract = 0.02, beta_fuel = 0.10, gamma_time = 0.001, delta_wear = 0.05,
         epsilon_heat = 0.20, zeta_damage = 1, kappa_pirate = 1, scan_cost = 0.005, invalid_pen = 0.01,
         heat_safe_frac = 0.70, stranded_pen = 50, destroyed_pen = 100, terminal_bonus = 0.002, spend_again = 0;

  template <class Self>
  static auto fields() {
    const Allowed share = between(0, 1), rate = between(0, 1000), factor = between(0, 100), weight = between(-100, 100),
                  reward = between(-1e6, 1e6), scale = between(0.001, 1e6), cap = between(1, 1000),
                  ticks = between(0, 10000);
    using C = Config;
    return std::tuple{
        field("time_max", &C::time_max, between(1, 1e9), "maximum ticks of an episode"),
        field("commodities", &C::commodities, "the prices of each commodity"),
        field("credits_cap", &C::credits_cap, between(1, 1e15), "credits that are shown as 1"),
        field("repair_kits_cap", &C::repair_kits_cap, cap, "maximum number of repair kits"),
        field("stabilizers_cap", &C::stabilizers_cap, cap, "maximum number of stabilizers"),
        field("decoys_cap", &C::decoys_cap, cap, "maximum number of decoys"),
        field("travel_time_max", &C::travel_time_max, between(1, kMaxDt), "ticks of the longest edge"),
        field("travel_fuel_cost_max", &C::travel_fuel_cost_max, between(1, 10000),
              "fuel of an edge that is shown as 1"),
        field("price_scale", &C::price_scale, scale, "price change that is shown as 1"),
        field("inventory_scale", &C::inventory_scale, scale, "stock that is shown as 1"),
        field("heat_dissipation_per_tick", &C::heat_dissipation_per_tick, rate, "heat lost per tick"),
        field("overheat_damage", &C::overheat_damage, rate, "hull lost per unit of heat above 100"),
        field("hazard_damage_per_tick", &C::hazard_damage_per_tick, rate, "hull lost per tick of full hazard"),
        field("hazard_heat_per_tick", &C::hazard_heat_per_tick, rate, "heat gained per tick of full hazard"),
        field("hazard_alert_per_tick", &C::hazard_alert_per_tick, rate, "alert gained per tick of full hazard"),
        field("hold_alert_decay", &C::hold_alert_decay, rate, "alert lost by holding"),
        field("escape_buff_ticks", &C::escape_buff_ticks, ticks, "ticks for which an emergency burn helps"),
        field("stabilize_buff_ticks", &C::stabilize_buff_ticks, ticks, "ticks for which a stabilizer works"),
        field("depletion_per_unit", &C::depletion_per_unit, rate, "share of an asteroid used up per unit mined"),
        field("pirate_bias", &C::pirate_bias, weight, "base logit of an encounter with pirates"),
        field("pirate_intensity_weight", &C::pirate_intensity_weight, weight, "logit added per pirate level"),
        field("pirate_alert_weight", &C::pirate_alert_weight, weight, "logit added at full alert"),
        field("pirate_cargo_weight", &C::pirate_cargo_weight, weight, "logit added per log of cargo value"),
        field("pirate_escape_weight", &C::pirate_escape_weight, weight, "logit subtracted while escaping"),
        field("slippage_linear", &C::slippage_linear, factor, "price lost per share sold"),
        field("slippage_root", &C::slippage_root, factor, "price lost per square root of the share sold"),
        field("inventory_pressure", &C::inventory_pressure, factor, "price lost per unit in stock"),
        field("sales_pressure", &C::sales_pressure, factor, "price lost per unit sold recently"),
        field("market_noise", &C::market_noise, factor, "spread of prices, as a share of the base"),
        field("sales_decay_ticks", &C::sales_decay_ticks, scale,
              "time constant in ticks with which sales are forgotten"),
        field("inventory_decay", &C::inventory_decay, share, "share of the stock kept per step"),
        field("credit_scale", &C::credit_scale, scale, "credits per unit of reward"),
        field("alpha_extract", &C::alpha_extract, reward, "reward per scaled credit of cargo gained"),
        field("beta_fuel", &C::beta_fuel, reward, "penalty per 100 fuel"),
        field("gamma_time", &C::gamma_time, reward, "penalty per tick"),
        field("delta_wear", &C::delta_wear, reward, "penalty per 10 of tool wear"),
        field("epsilon_heat", &C::epsilon_heat, reward, "penalty for squared heat above the safe share"),
        field("zeta_damage", &C::zeta_damage, reward, "penalty per 10 hull"),
        field("kappa_pirate", &C::kappa_pirate, reward, "penalty per scaled credit lost to pirates"),
        field("scan_cost", &C::scan_cost, reward, "penalty per scan"),
        field("invalid_pen", &C::invalid_pen, reward, "penalty per invalid action"),
        field("heat_safe_frac", &C::heat_safe_frac, share, "heat up to this share has no penalty"),
        field("stranded_pen", &C::stranded_pen, reward, "penalty for running out of fuel"),
        field("destroyed_pen", &C::destroyed_pen, reward, "penalty for losing the ship"),
        field("terminal_bonus", &C::terminal_bonus, reward, "reward per scaled credit brought home"),
        field("spend_again", &C::spend_again, reward,
              "penalty per scaled credit spent, in addition to the credit itself")};
  }
};

}  // namespace gridmill::prospector
