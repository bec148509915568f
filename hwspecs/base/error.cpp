#include "hwspecs/base/error.h"

namespace tbdsim {

std::string to_text(const Mark& mark) {
  if (!mark.file) return "";
  if (mark.line == 0) return *mark.file;
  return *mark.file + ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column);
}

namespace {
std::string located(const Mark& where, const std::string& what) {
  const std::string place = to_text(where);
  return place.empty() ? what : place + ": " + what;
}
}  // namespace

SpecError::SpecError(const Mark& where, const std::string& what) : Error(located(where, what)) {}
ModelError::ModelError(const Mark& where, const std::string& what) : Error(located(where, what)) {}

}  // namespace tbdsim
