// What each folder gives to the module beside a plain batch; a file for each, so that they compile side by side.
#pragma once

#include <nanobind/nanobind.h>

namespace gridmill {

void bind_grid(nanobind::module_& m);
void bind_learn(nanobind::module_& m);
void bind_prospector(nanobind::module_& m);
void bind_stop(nanobind::module_& m);

}  // namespace gridmill
