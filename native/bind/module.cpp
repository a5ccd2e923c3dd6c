// The extension module gridmill._native: the folders' bindings and facts about the build.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include "bind/allocations.hpp"
#include "bind/bind_batch.hpp"
#include "bind/bindings.hpp"
#include "bind/gil.hpp"
#include "core/batch.hpp"
#include "core/isa.hpp"
#include "core/memory.hpp"
#include "core/random.hpp"
#include "corridor/corridor.hpp"

namespace nb = nanobind;
using namespace gridmill;

namespace {

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// How many rows of `bytes` one core can write in a second of CPU time when it does nothing but memcpy.
double memcpy_limit(std::size_t rows, std::size_t bytes, double seconds) {
  if (rows == 0 || bytes == 0 || !(seconds > 0))
    throw std::invalid_argument("rows, bytes and seconds must be positive");
  std::vector<unsigned char> from(bytes, 0xAB), to(rows * bytes);
  const double start = cpu_seconds();
  double done = 0, spent = 0;
  do {
    for (std::size_t row = 0; row < rows; ++row) {
      std::memcpy(to.data() + row * bytes, from.data(), bytes);
      asm volatile("" : : "r"(to.data()) : "memory");  // the copy must really happen
    }
    done += static_cast<double>(rows);
    spent = cpu_seconds() - start;
  } while (spent < seconds);
  return done / spent;
}

// A module that was built for other Python files would fail somewhere, with a missing argument. One that is loaded
// without its package, as `gridmill gate` does, has no such files.
void refuse_other_sources() {
  if (!nb::module_::import_("sys").attr("modules").attr("__contains__")("gridmill").equal(nb::bool_(true))) return;
  const auto wanted = nb::cast<std::string>(nb::module_::import_("gridmill._interface").attr("INTERFACE"));
  if (wanted == GRIDMILL_INTERFACE) return;
  const std::string text =
      "the compiled engine does not fit the Python sources: it was built for interface " GRIDMILL_INTERFACE
      ", they expect " +
      wanted + "; run `make build` in a checkout, or install the package again";
  throw nb::import_error(text.c_str());
}

}  // namespace

NB_MODULE(_native, m) {
  refuse_other_sources();
  cap_isa(std::getenv("GRIDMILL_ISA"));  // first: kernels are chosen from here on
  nb::set_leak_warnings(false);  // arrays may outlive the interpreter's teardown order; tests look for leaks themselves
  nb::exception<WorldFault>(m, "WorldFault", PyExc_RuntimeError);
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const TypeMismatch& error) {
      PyErr_SetString(PyExc_TypeError, error.what());
    }
  });
  bind_grid(m);
  bind_prospector(m);
  bind_batch<corridor::Corridor>(m, "CorridorBatch");
  bind_learn(m);
  bind_stop(m);
  m.def("shutdown", &shutdown);
  nb::module_::import_("atexit").attr("register")(m.attr("shutdown"));
  m.def("allocations", &allocation_count, "heap allocations made by the engine since it was loaded");
  m.def("keep_freed_memory", &keep_freed_memory, "from now on freed memory stays with this process");
  m.def("memcpy_limit", &memcpy_limit, nb::arg("rows"), nb::arg("bytes"), nb::arg("seconds"),
        nb::call_guard<nb::gil_scoped_release>());
  m.def(
      "seed_alone",
      [](std::uint64_t seed, std::uint32_t world, std::uint32_t episode) { return seed_alone({seed, world, episode}); },
      nb::arg("seed"), nb::arg("world"), nb::arg("episode"),
      "the seed with which a single world draws in its first episode what an episode of a batch draws");
  m.def("build_info", [] {
    nb::dict info;
    info["compiler"] = __VERSION__;
    info["build_type"] = GRIDMILL_BUILD_TYPE;
    info["isa"] = name_of(isa());
    info["isa_of_cpu"] = name_of(isa_of_cpu());
    return info;
  });
}
