// See to_value.hpp. Depth is bounded so that no config can exhaust the stack.
#include "bind/to_value.hpp"

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace gridmill {
namespace {

std::string text_of(nb::handle object) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (text == nullptr) {
    PyErr_Clear();
    throw TypeMismatch("expected text that can be written as UTF-8, got a lone surrogate - at `$`");
  }
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace

Value to_value(nb::handle object, int depth) {
  if (depth > 64) fail_at("$", "expected a config at most 64 levels deep, got more");
  if (object.is_none()) return {};
  if (nb::isinstance<nb::bool_>(object)) return {nb::cast<bool>(object)};
  if (nb::isinstance<nb::int_>(object)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
    if (overflow != 0) fail_at("$", "expected an int of at most 64 bits, got a larger one");
    return {static_cast<std::int64_t>(number)};
  }
  if (nb::isinstance<nb::float_>(object)) return {nb::cast<double>(object)};
  if (nb::isinstance<nb::str>(object)) return {text_of(object)};
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    Value::List list;
    for (nb::handle item : nb::borrow<nb::sequence>(object)) list.push_back(to_value(item, depth + 1));
    return {std::move(list)};
  }
  if (nb::isinstance<nb::dict>(object)) {
    Value::Dict dict;
    for (auto [key, item] : nb::borrow<nb::dict>(object)) {
      if (!nb::isinstance<nb::str>(key))
        throw TypeMismatch("expected text as the key of a dict, got another type - at `$`");
      dict.emplace_back(text_of(key), to_value(item, depth + 1));
    }
    return {std::move(dict)};
  }
  throw TypeMismatch("expected None, bool, int, float, str, list or dict in a config, got " +
                     nb::cast<std::string>(nb::str(object.type())) + " - at `$`");
}

nb::object from_value(const Value& value) {
  struct {
    nb::object operator()(std::monostate) const { return nb::none(); }
    nb::object operator()(bool b) const { return nb::bool_(b); }
    nb::object operator()(std::int64_t i) const { return nb::int_(i); }
    nb::object operator()(double d) const { return nb::float_(d); }
    nb::object operator()(const std::string& s) const { return nb::str(s.c_str(), s.size()); }
    nb::object operator()(const Value::List& l) const {
      nb::list out;
      for (const auto& item : l) out.append(from_value(item));
      return out;
    }
    nb::object operator()(const Value::Dict& d) const {
      nb::dict out;
      for (const auto& [key, item] : d) out[key.c_str()] = from_value(item);
      return out;
    }
  } convert;
  return std::visit(convert, value.data);
}

}  // namespace gridmill
