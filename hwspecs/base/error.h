// The three kinds of errors that a user can cause. main() catches all of them; bugs are asserts, and expected
// outcomes ("does not fit in memory") are fields of the result.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

namespace tbdsim {

// A place in a file the user gave. Lines and columns count from 1; 0 means "the whole file".
struct Mark {
  std::shared_ptr<const std::string> file;
  int line = 0;
  int column = 0;
};

// "titanxp.yaml:12:3"; without line "titanxp.yaml"; empty without a file.
[[nodiscard]] std::string to_text(const Mark& mark);

// Base class of these errors. The message reads `where: what; what was expected`.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A file's content is wrong: misspelt key, missing unit, malformed CSV.
class SpecError : public Error {
 public:
  SpecError(const Mark& where, const std::string& what);
};

// The command line or a file it names is wrong: unknown GPU, unreadable file, batch 0.
class UsageError : public Error {
 public:
  using Error::Error;
};

// A model is well-formed but impossible: a cycle, shapes that do not match, sizes beyond 64 bits.
class ModelError : public Error {
 public:
  explicit ModelError(const std::string& what) : Error(what) {}
  ModelError(const Mark& where, const std::string& what);
};

}  // namespace tbdsim
