// The native words of maps: a map is a picture, a scattering, a canvas of layers, or several maps side by side.
// fields() is the only description here; tests/contracts/test_schema.py holds it equal to the Python models.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/value.hpp"

namespace gridmill::grid {

constexpr std::int64_t kMaxSide = 4096;
constexpr std::int64_t kMaxAgents = 4096;
constexpr std::int64_t kMaxObjects = 65'535;
constexpr std::int64_t kMaxCanvas = 250;  // a side of a canvas: all its cells may be walls, and walls are objects

struct AsciiMap {
  static constexpr std::string_view kind = "ascii";
  std::string text;
  Named<std::string> legend;
  static auto fields() {
    return std::tuple{field("text", &AsciiMap::text, "rows of characters, all of one length"),
                      field("legend", &AsciiMap::legend, "character -> object type")};
  }
};

struct ScatterMap {
  static constexpr std::string_view kind = "scatter";
  std::int32_t height = 40, width = 40, border = 1;
  Named<std::int64_t> objects;
  std::int32_t groups = 1;
  static auto fields() {
    return std::tuple{field("height", &ScatterMap::height, between(1, kMaxSide), "rows, border included"),
                      field("width", &ScatterMap::width, between(1, kMaxSide), "columns, border included"),
                      field("border", &ScatterMap::border, between(0, kMaxSide), "cells of wall around"),
                      field("objects", &ScatterMap::objects, between(0, kMaxObjects), "object type -> how many"),
                      field("groups", &ScatterMap::groups, between(1, 255), "agent i belongs to group i mod groups")};
  }
};

// ---- layers: what a canvas is made of. Each draws on the area it is given and knows nothing of the others.

struct LayerNode;

struct FillLayer {
  static constexpr std::string_view kind = "fill";
  std::string what = "wall";
  static auto fields() {
    return std::tuple{field("what", &FillLayer::what, one_of({"wall", "floor"}), "what every cell becomes")};
  }
};

struct RoomsLayer {
  static constexpr std::string_view kind = "rooms";
  std::int32_t rows = 3, columns = 3, wall = 1, door = 1;
  double extra_doors = 0.5;
  static auto fields() {
    return std::tuple{field("rows", &RoomsLayer::rows, between(1, 64), "rooms from north to south"),
                      field("columns", &RoomsLayer::columns, between(1, 64), "rooms from west to east"),
                      field("wall", &RoomsLayer::wall, between(1, 64), "cells of wall between rooms"),
                      field("door", &RoomsLayer::door, between(1, 64), "cells a door is wide"),
                      field("extra_doors", &RoomsLayer::extra_doors, between(0, 1),
                            "chance of a door where none is needed to reach every room")};
  }
};

struct MazeLayer {
  static constexpr std::string_view kind = "maze";
  std::string method = "dfs";
  std::int32_t corridor = 1, wall = 1;
  double loops = 0;
  static auto fields() {
    return std::tuple{field("method", &MazeLayer::method, one_of({"dfs", "kruskal", "prim"}), "how it is grown"),
                      field("corridor", &MazeLayer::corridor, between(1, 64), "cells a corridor is wide"),
                      field("wall", &MazeLayer::wall, between(1, 64), "cells a wall is thick"),
                      field("loops", &MazeLayer::loops, between(0, 1), "chance that a wall of the maze is opened")};
  }
};

struct CavesLayer {
  static constexpr std::string_view kind = "caves";
  double fill = 0.45;
  std::int32_t rounds = 4;
  static auto fields() {
    return std::tuple{field("fill", &CavesLayer::fill, between(0, 1), "share of walls before smoothing"),
                      field("rounds", &CavesLayer::rounds, between(0, 32), "rounds of smoothing")};
  }
};

struct BspLayer {
  static constexpr std::string_view kind = "bsp";
  std::int32_t rooms = 8, smallest = 3, corridor = 1;
  static auto fields() {
    return std::tuple{field("rooms", &BspLayer::rooms, between(1, 64), "at most this many rooms"),
                      field("smallest", &BspLayer::smallest, between(1, 64), "least cells on a side of a room"),
                      field("corridor", &BspLayer::corridor, between(1, 64), "cells a corridor is wide")};
  }
};

struct RadialLayer {
  static constexpr std::string_view kind = "radial";
  std::int32_t arms = 8, width = 1, hub = 1, wall = 0;
  static auto fields() {
    return std::tuple{field("arms", &RadialLayer::arms, between(1, 64), "ways from the centre to the edge"),
                      field("width", &RadialLayer::width, between(1, 64), "cells an arm is wide"),
                      field("hub", &RadialLayer::hub, between(0, 64), "cells of floor around the centre"),
                      field("wall", &RadialLayer::wall, between(0, 64), "cells of wall beside arms; 0: only carves")};
  }
};

struct ClumpsLayer {
  static constexpr std::string_view kind = "clumps";
  std::int32_t every = 7, jitter = 2;
  double chance = 0.8;
  std::int32_t smallest = 0, largest = 2;
  double fill = 0.7;
  static auto fields() {
    return std::tuple{field("every", &ClumpsLayer::every, between(1, 64), "cells from one anchor to the next"),
                      field("jitter", &ClumpsLayer::jitter, between(0, 64), "cells an anchor may be off"),
                      field("chance", &ClumpsLayer::chance, between(0, 1), "chance that an anchor is used"),
                      field("smallest", &ClumpsLayer::smallest, between(0, 64), "least radius of a clump"),
                      field("largest", &ClumpsLayer::largest, between(0, 64), "greatest radius of a clump"),
                      field("fill", &ClumpsLayer::fill, between(0, 1), "chance of a wall within the radius")};
  }
};

struct DunesLayer {
  static constexpr std::string_view kind = "dunes";
  std::int32_t every = 5;
  double drift = 0.35, gap = 0.3;
  static auto fields() {
    return std::tuple{field("every", &DunesLayer::every, between(2, 64), "rows from one ridge to the next"),
                      field("drift", &DunesLayer::drift, between(0, 1), "chance per cell that a ridge bends"),
                      field("gap", &DunesLayer::gap, between(0, 1), "share of a ridge that is open")};
  }
};

struct BlocksLayer {
  static constexpr std::string_view kind = "blocks";
  std::int32_t side = 4, road = 2;
  double chance = 0.8;
  static auto fields() {
    return std::tuple{field("side", &BlocksLayer::side, between(1, 64), "greatest side of a block"),
                      field("road", &BlocksLayer::road, between(1, 64), "cells between blocks"),
                      field("chance", &BlocksLayer::chance, between(0, 1), "chance that a block stands")};
  }
};

struct RimLayer {
  static constexpr std::string_view kind = "rim";
  std::int32_t every = 3;
  double share = 0.6;
  std::int32_t shallowest = 2, deepest = 8, narrowest = 2, widest = 6;
  static auto fields() {
    return std::tuple{field("every", &RimLayer::every, between(1, 64), "cells from one tooth to the next"),
                      field("share", &RimLayer::share, between(0, 1), "share of the places that have a tooth"),
                      field("shallowest", &RimLayer::shallowest, between(1, 64), "least depth of a tooth"),
                      field("deepest", &RimLayer::deepest, between(1, 64), "greatest depth of a tooth"),
                      field("narrowest", &RimLayer::narrowest, between(0, 64), "least half width at the edge"),
                      field("widest", &RimLayer::widest, between(0, 64), "greatest half width at the edge")};
  }
};

// One thing at an offset from the centre; the type `agent` is a place where an agent may start.
struct Standing {
  std::string type;
  std::int32_t row = 0, column = 0;
  static auto fields() {
    return std::tuple{field("type", &Standing::type, "object type, or `agent`: where one may start"),
                      field("row", &Standing::row, between(-kMaxSide, kMaxSide), "rows south of the centre"),
                      field("column", &Standing::column, between(-kMaxSide, kMaxSide), "columns east of the centre")};
  }
};

struct CompoundLayer {
  static constexpr std::string_view kind = "compound";
  std::int32_t side = 21, wall = 1, gate = 5, clear = 3;
  std::vector<Standing> things;
  static auto fields() {
    return std::tuple{
        field("side", &CompoundLayer::side, between(1, kMaxCanvas), "cells on a side, odd"),
        field("wall", &CompoundLayer::wall, between(0, 64), "cells the wall is thick"),
        field("gate", &CompoundLayer::gate, between(0, kMaxCanvas), "cells each of the four gates is wide"),
        field("clear", &CompoundLayer::clear, between(0, 64), "cells of floor around the wall"),
        field("things", &CompoundLayer::things, "what stands in it")};
  }
};

struct BuildingsLayer {
  static constexpr std::string_view kind = "buildings";
  std::int32_t draws = 0;
  Named<double> weights;
  std::int32_t margin = 1, apart = 1, clear = 1;
  static auto fields() {
    return std::tuple{
        field("draws", &BuildingsLayer::draws, between(0, kMaxObjects), "cells drawn; not every draw is kept"),
        field("weights", &BuildingsLayer::weights, at_least(0), "object type -> how often, relative to the others"),
        field("margin", &BuildingsLayer::margin, between(0, 64), "cells of the rim that are never drawn"),
        field("apart", &BuildingsLayer::apart, between(0, 64), "a draw this near an earlier object is dropped"),
        field("clear", &BuildingsLayer::clear, between(0, 64), "cells around a kept one that become floor")};
  }
};

struct ObjectsLayer {
  static constexpr std::string_view kind = "objects";
  Named<std::int64_t> counts;
  static auto fields() {
    return std::tuple{field("counts", &ObjectsLayer::counts, between(0, kMaxObjects),
                            "object type (or `agent`: where one may start) -> how many")};
  }
};

struct ConnectLayer {
  static constexpr std::string_view kind = "connect";
  std::int32_t wall_cost = 10;
  static auto fields() {
    return std::tuple{field("wall_cost", &ConnectLayer::wall_cost, between(1, 1000),
                            "what digging through a wall costs; a step on floor costs 1")};
  }
};

struct AreaLayer {
  static constexpr std::string_view kind = "area";
  std::int32_t top = 0, left = 0, height = 0, width = 0, border = 0;
  std::vector<LayerNode> layers;
  static auto fields() {
    return std::tuple{field("top", &AreaLayer::top, between(0, kMaxCanvas), "first row"),
                      field("left", &AreaLayer::left, between(0, kMaxCanvas), "first column"),
                      field("height", &AreaLayer::height, between(0, kMaxCanvas), "rows; 0: to the southern edge"),
                      field("width", &AreaLayer::width, between(0, kMaxCanvas), "columns; 0: to the eastern edge"),
                      field("border", &AreaLayer::border, between(0, kMaxCanvas), "cells of wall around it"),
                      field("layers", &AreaLayer::layers, "what is drawn inside")};
  }
};

struct ZonesLayer {
  static constexpr std::string_view kind = "zones";
  std::int32_t count = 4, smallest = 10, largest = 20;
  double share = 1;
  std::vector<LayerNode> layers;
  static auto fields() {
    return std::tuple{
        field("count", &ZonesLayer::count, between(1, 64), "parts the area is split into, at most"),
        field("smallest", &ZonesLayer::smallest, between(1, kMaxCanvas), "least side of a part"),
        field("largest", &ZonesLayer::largest, between(1, kMaxCanvas), "greatest side of the box in a part"),
        field("share", &ZonesLayer::share, between(0, 1), "share of the parts that are drawn, at least one"),
        field("layers", &ZonesLayer::layers, "dealt to the parts in a random order")};
  }
};

struct OneOfLayer {
  static constexpr std::string_view kind = "one_of";
  std::vector<LayerNode> layers;
  std::vector<double> weights;
  static auto fields() {
    return std::tuple{field("layers", &OneOfLayer::layers, "one of them is drawn"),
                      field("weights", &OneOfLayer::weights, at_least(0), "how often each; none: all alike")};
  }
};

struct MirrorLayer {
  static constexpr std::string_view kind = "mirror";
  std::string axis = "horizontal";
  std::vector<LayerNode> layers;
  static auto fields() {
    return std::tuple{field("axis", &MirrorLayer::axis, one_of({"horizontal", "vertical", "both"}),
                            "west onto east, north onto south, or both"),
                      field("layers", &MirrorLayer::layers, "drawn in the half or quarter that is mirrored")};
  }
};

struct LayerNode {
  Choice<FillLayer, RoomsLayer, MazeLayer, CavesLayer, BspLayer, RadialLayer, ClumpsLayer, DunesLayer, BlocksLayer,
         RimLayer, CompoundLayer, BuildingsLayer, ObjectsLayer, ConnectLayer, AreaLayer, ZonesLayer, OneOfLayer,
         MirrorLayer>
      data;
  static void decode(LayerNode& out, const Value& value, const std::string& path);
};

// Floor inside a border of walls, on which layers are drawn one over the other; agents start on the floor.
struct CanvasMap {
  static constexpr std::string_view kind = "canvas";
  std::int32_t height = 40, width = 40, border = 1;
  std::vector<LayerNode> layers;
  std::int32_t groups = 1;
  static auto fields() {
    return std::tuple{field("height", &CanvasMap::height, between(1, kMaxCanvas), "rows, border included"),
                      field("width", &CanvasMap::width, between(1, kMaxCanvas), "columns, border included"),
                      field("border", &CanvasMap::border, between(0, kMaxCanvas), "cells of wall around"),
                      field("layers", &CanvasMap::layers, "drawn in this order"),
                      field("groups", &CanvasMap::groups, between(1, 255), "agent i belongs to group i mod groups")};
  }
};

// ---- maps

struct MapNode;

// Maps side by side: `rows` x `columns` of them, taken in turn from the list, all of one size. Agents are dealt evenly.
struct InstancesMap {
  static constexpr std::string_view kind = "instances";
  std::vector<MapNode> maps;
  std::int32_t rows = 1, columns = 1, gap = 0, border = 0;
  static auto fields() {
    return std::tuple{field("maps", &InstancesMap::maps, "what stands in the places, taken in turn"),
                      field("rows", &InstancesMap::rows, between(1, 64), "places from north to south"),
                      field("columns", &InstancesMap::columns, between(1, 64), "places from west to east"),
                      field("gap", &InstancesMap::gap, between(0, kMaxSide), "cells of wall between places"),
                      field("border", &InstancesMap::border, between(0, kMaxSide), "cells of wall around all")};
  }
};

struct MapNode {
  Choice<AsciiMap, ScatterMap, InstancesMap, CanvasMap> data;
  static void decode(MapNode& out, const Value& value, const std::string& path);
};

}  // namespace gridmill::grid
