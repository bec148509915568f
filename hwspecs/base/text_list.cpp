#include "hwspecs/base/text_list.h"

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

// The part in quotes that begins at text[at]; goes on behind them.
std::string quoted_part(const std::string& text, std::size_t& at) {
  std::string part;
  for (++at; at < text.size(); ++at) {
    if (text[at] != '"') {
      part += text[at];
      continue;
    }
    ++at;
    if (at == text.size() || text[at] == ',') return part;
    if (text[at] != '"') break;
    part += '"';
  }
  throw UsageError(in_quotes(text) + ": a part in double quotes does not end with them; expected as " +
                   "\"my,model.yaml\",resnet50");
}

std::string bare_part(const std::string& text, std::size_t& at) {
  std::string part;
  int depth = 0;
  for (; at < text.size() && (depth > 0 || text[at] != ','); ++at) {
    const char c = text[at];
    depth += c == '[' || c == '{' ? 1 : (c == ']' || c == '}' ? -1 : 0);
    part += c;
  }
  return part;
}

}  // namespace

std::vector<std::string> list_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size(); ++at)
    parts.push_back(at < text.size() && text[at] == '"' ? quoted_part(text, at) : bare_part(text, at));
  return parts;
}

std::string list_part(const std::string& text) {
  const bool bare = !text.starts_with('"') && list_of(text + ",next").size() == 2;
  if (bare) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') quoted += '"';
  }
  return quoted + '"';
}

}  // namespace tbdsim
