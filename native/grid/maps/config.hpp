// The settings of maps: a map is a picture, a scattering, a canvas of layers, or several maps side by side.
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
  OrderedDict<std::string> legend;
  template <class Self>
  static auto fields() {
    return std::tuple{field("text", &Self::text, "rows of characters, all of the same length"),
                      field("legend", &Self::legend, "character -> object type")};
  }
};

struct ScatterMap {
  static constexpr std::string_view kind = "scatter";
  std::int32_t height = 40, width = 40, border = 1;
  OrderedDict<std::int64_t> objects;
  std::int32_t groups = 1;
  template <class Self>
  static auto fields() {
    return std::tuple{field("height", &Self::height, between(1, kMaxSide), "rows, including the border"),
                      field("width", &Self::width, between(1, kMaxSide), "columns, including the border"),
                      field("border", &Self::border, between(0, kMaxSide), "thickness of the outer wall in cells"),
                      field("objects", &Self::objects, between(0, kMaxObjects), "object type -> number of objects"),
                      field("groups", &Self::groups, between(1, 255), "agent i belongs to group i mod groups")};
  }
};

// ---- layers: what a canvas is made of. Each draws on the area it is given and knows nothing of the others.

struct LayerNode;

struct FillLayer {
  static constexpr std::string_view kind = "fill";
  std::string what = "wall";
  template <class Self>
  static auto fields() {
    return std::tuple{field("what", &Self::what, one_of({"wall", "floor"}), "what every cell becomes")};
  }
};

struct RoomsLayer {
  static constexpr std::string_view kind = "rooms";
  std::int32_t rows = 3, columns = 3, wall = 1, door = 1;
  double extra_doors = 0.5;
  template <class Self>
  static auto fields() {
    return std::tuple{field("rows", &Self::rows, between(1, 64), "number of rooms from north to south"),
                      field("columns", &Self::columns, between(1, 64), "number of rooms from west to east"),
                      field("wall", &Self::wall, between(1, 64), "thickness of the walls between rooms in cells"),
                      field("door", &Self::door, between(1, 64), "width of a door in cells"),
                      field("extra_doors", &Self::extra_doors, between(0, 1),
                            "probability of an additional door in a wall where none is needed")};
  }
};

struct MazeLayer {
  static constexpr std::string_view kind = "maze";
  std::string method = "dfs";
  std::int32_t corridor = 1, wall = 1;
  double loops = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{field("method", &Self::method, one_of({"dfs", "kruskal", "prim"}), "the algorithm"),
                      field("corridor", &Self::corridor, between(1, 64), "width of a corridor in cells"),
                      field("wall", &Self::wall, between(1, 64), "thickness of a wall in cells"),
                      field("loops", &Self::loops, between(0, 1), "probability that a wall of the maze is opened")};
  }
};

struct CavesLayer {
  static constexpr std::string_view kind = "caves";
  double fill = 0.45;
  std::int32_t rounds = 4;
  template <class Self>
  static auto fields() {
    return std::tuple{field("fill", &Self::fill, between(0, 1), "share of wall cells before smoothing"),
                      field("rounds", &Self::rounds, between(0, 32), "number of smoothing rounds")};
  }
};

struct BspLayer {
  static constexpr std::string_view kind = "bsp";
  std::int32_t rooms = 8, smallest = 3, corridor = 1;
  template <class Self>
  static auto fields() {
    return std::tuple{field("rooms", &Self::rooms, between(1, 64), "maximum number of rooms"),
                      field("smallest", &Self::smallest, between(1, 64), "minimum side of a room in cells"),
                      field("corridor", &Self::corridor, between(1, 64), "width of a corridor in cells")};
  }
};

struct RadialLayer {
  static constexpr std::string_view kind = "radial";
  std::int32_t arms = 8, width = 1, hub = 1, wall = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{field("arms", &Self::arms, between(1, 64), "number of arms from the centre to the edge"),
                      field("width", &Self::width, between(1, 64), "width of an arm in cells"),
                      field("hub", &Self::hub, between(0, 64), "cells of floor on each side of the centre"),
                      field("wall", &Self::wall, between(0, 64),
                            "thickness of the walls along the arms in cells; 0: no walls are added")};
  }
};

struct ClumpsLayer {
  static constexpr std::string_view kind = "clumps";
  std::int32_t every = 7, jitter = 2;
  double chance = 0.8;
  std::int32_t smallest = 0, largest = 2;
  double fill = 0.7;
  template <class Self>
  static auto fields() {
    return std::tuple{field("every", &Self::every, between(1, 64), "distance between anchors in cells"),
                      field("jitter", &Self::jitter, between(0, 64), "maximum random offset of an anchor in cells"),
                      field("chance", &Self::chance, between(0, 1), "probability that an anchor is used"),
                      field("smallest", &Self::smallest, between(0, 64), "minimum radius of a clump"),
                      field("largest", &Self::largest, between(0, 64), "maximum radius of a clump"),
                      field("fill", &Self::fill, between(0, 1), "probability of a wall within the radius")};
  }
};

struct DunesLayer {
  static constexpr std::string_view kind = "dunes";
  std::int32_t every = 5;
  double drift = 0.35, gap = 0.3;
  template <class Self>
  static auto fields() {
    return std::tuple{field("every", &Self::every, between(2, 64), "distance between ridges in rows"),
                      field("drift", &Self::drift, between(0, 1), "probability per cell that a ridge bends"),
                      field("gap", &Self::gap, between(0, 1), "share of a ridge that is open")};
  }
};

struct BlocksLayer {
  static constexpr std::string_view kind = "blocks";
  std::int32_t side = 4, road = 2;
  double chance = 0.8;
  template <class Self>
  static auto fields() {
    return std::tuple{field("side", &Self::side, between(1, 64), "maximum side of a block"),
                      field("road", &Self::road, between(1, 64), "cells between blocks"),
                      field("chance", &Self::chance, between(0, 1), "probability of each block")};
  }
};

struct RimLayer {
  static constexpr std::string_view kind = "rim";
  std::int32_t every = 3;
  double share = 0.6;
  std::int32_t shallowest = 2, deepest = 8, narrowest = 2, widest = 6;
  template <class Self>
  static auto fields() {
    return std::tuple{field("every", &Self::every, between(1, 64), "distance between teeth in cells"),
                      field("share", &Self::share, between(0, 1), "share of the positions that have a tooth"),
                      field("shallowest", &Self::shallowest, between(1, 64), "minimum depth of a tooth"),
                      field("deepest", &Self::deepest, between(1, 64), "maximum depth of a tooth"),
                      field("narrowest", &Self::narrowest, between(0, 64), "minimum half width at the edge"),
                      field("widest", &Self::widest, between(0, 64), "maximum half width at the edge")};
  }
};

// One thing at an offset from the centre; the type `agent` is a place where an agent may start.
struct Standing {
  std::string type;
  std::int32_t row = 0, column = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{field("type", &Self::type, "object type, or `agent` for a cell where an agent may start"),
                      field("row", &Self::row, between(-kMaxSide, kMaxSide), "rows south of the centre"),
                      field("column", &Self::column, between(-kMaxSide, kMaxSide), "columns east of the centre")};
  }
};

struct CompoundLayer {
  static constexpr std::string_view kind = "compound";
  std::int32_t side = 21, wall = 1, gate = 5, clear = 3;
  std::vector<Standing> things;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("side", &Self::side, between(1, kMaxCanvas), "cells per side; an odd number"),
        field("wall", &Self::wall, between(0, 64), "thickness of the wall in cells"),
        field("gate", &Self::gate, between(0, kMaxCanvas), "width of each of the four gates in cells"),
        field("clear", &Self::clear, between(0, 64), "width of the cleared floor around the wall in cells"),
        field("things", &Self::things, "the objects in it")};
  }
};

struct BuildingsLayer {
  static constexpr std::string_view kind = "buildings";
  std::int32_t draws = 0;
  OrderedDict<double> weights;
  std::int32_t margin = 1, apart = 1, clear = 1;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("draws", &Self::draws, between(0, kMaxObjects),
              "number of random cells to try; not all of them are kept"),
        field("weights", &Self::weights, at_least(0), "object type -> relative frequency"),
        field("margin", &Self::margin, between(0, 64), "width of the margin without objects in cells"),
        field("apart", &Self::apart, between(0, 64), "a cell within this distance of an earlier object is dropped"),
        field("clear", &Self::clear, between(0, 64), "distance around a new object in which cells become floor")};
  }
};

struct ObjectsLayer {
  static constexpr std::string_view kind = "objects";
  OrderedDict<std::int64_t> counts;
  template <class Self>
  static auto fields() {
    return std::tuple{field("counts", &Self::counts, between(0, kMaxObjects),
                            "object type (or `agent` for starting cells) -> number")};
  }
};

struct ConnectLayer {
  static constexpr std::string_view kind = "connect";
  std::int32_t wall_cost = 10;
  template <class Self>
  static auto fields() {
    return std::tuple{field("wall_cost", &Self::wall_cost, between(1, 1000),
                            "cost of digging through a wall cell; a floor cell costs 1")};
  }
};

struct AreaLayer {
  static constexpr std::string_view kind = "area";
  std::int32_t top = 0, left = 0, height = 0, width = 0, border = 0;
  std::vector<LayerNode> layers;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("top", &Self::top, between(0, kMaxCanvas), "first row"),
        field("left", &Self::left, between(0, kMaxCanvas), "first column"),
        field("height", &Self::height, between(0, kMaxCanvas), "rows; 0: to the southern edge"),
        field("width", &Self::width, between(0, kMaxCanvas), "columns; 0: to the eastern edge"),
        field("border", &Self::border, between(0, kMaxCanvas), "thickness of the wall around it in cells"),
        field("layers", &Self::layers, "layers to draw inside")};
  }
};

struct ZonesLayer {
  static constexpr std::string_view kind = "zones";
  std::int32_t count = 4, smallest = 10, largest = 20;
  double share = 1;
  std::vector<LayerNode> layers;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("count", &Self::count, between(1, 64), "maximum number of parts"),
        field("smallest", &Self::smallest, between(1, kMaxCanvas), "minimum side of a part"),
        field("largest", &Self::largest, between(1, kMaxCanvas), "maximum side of the box in a part"),
        field("share", &Self::share, between(0, 1), "share of the parts that get a layer; at least one part does"),
        field("layers", &Self::layers, "layers, assigned to the parts in random order")};
  }
};

struct OneOfLayer {
  static constexpr std::string_view kind = "one_of";
  std::vector<LayerNode> layers;
  std::vector<double> weights;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("layers", &Self::layers, "layers, one of which is drawn"),
        field("weights", &Self::weights, at_least(0), "relative frequency of each layer; empty: all equal")};
  }
};

struct MirrorLayer {
  static constexpr std::string_view kind = "mirror";
  std::string axis = "horizontal";
  std::vector<LayerNode> layers;
  template <class Self>
  static auto fields() {
    return std::tuple{field("axis", &Self::axis, one_of({"horizontal", "vertical", "both"}),
                            "west onto east, north onto south, or both"),
                      field("layers", &Self::layers, "layers to draw in the half or quarter that is mirrored")};
  }
};

struct LayerNode {
  OneOf<FillLayer, RoomsLayer, MazeLayer, CavesLayer, BspLayer, RadialLayer, ClumpsLayer, DunesLayer, BlocksLayer,
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
  template <class Self>
  static auto fields() {
    return std::tuple{field("height", &Self::height, between(1, kMaxCanvas), "rows, including the border"),
                      field("width", &Self::width, between(1, kMaxCanvas), "columns, including the border"),
                      field("border", &Self::border, between(0, kMaxCanvas), "thickness of the outer wall in cells"),
                      field("layers", &Self::layers, "layers, drawn in this order"),
                      field("groups", &Self::groups, between(1, 255), "agent i belongs to group i mod groups")};
  }
};

// ---- maps

struct MapNode;

// Maps side by side: `rows` x `columns` of them, taken in turn from the list, all of one size. Agents are dealt evenly.
struct InstancesMap {
  static constexpr std::string_view kind = "instances";
  std::vector<MapNode> maps;
  std::int32_t rows = 1, columns = 1, gap = 0, border = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{field("maps", &Self::maps, "maps, used in turn for the places"),
                      field("rows", &Self::rows, between(1, 64), "number of places from north to south"),
                      field("columns", &Self::columns, between(1, 64), "number of places from west to east"),
                      field("gap", &Self::gap, between(0, kMaxSide), "thickness of the walls between places in cells"),
                      field("border", &Self::border, between(0, kMaxSide), "thickness of the outer wall in cells")};
  }
};

struct MapNode {
  OneOf<AsciiMap, ScatterMap, InstancesMap, CanvasMap> data;
  static void decode(MapNode& out, const Value& value, const std::string& path);
};

}  // namespace gridmill::grid
