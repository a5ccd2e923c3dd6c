// The version and commit that the module was built from; alone in its file, since a new commit changes nothing else.
#ifndef GRIDMILL_VERSION
#define GRIDMILL_VERSION "unknown"
#endif

namespace gridmill::wasm {

const char* version();
const char* version() { return GRIDMILL_VERSION; }

}  // namespace gridmill::wasm
