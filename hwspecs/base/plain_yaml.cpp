#include "hwspecs/base/plain_yaml.h"

#include <algorithm>
#include <exception>
#include <vector>

namespace tbdsim {
namespace {

constexpr std::size_t kDeepest = 60;      // levels; parse_full_yaml() refuses 64
constexpr std::size_t kLongestKey = 200;  // characters, as in parse_full_yaml()

// Thrown where the text is not plain; the reader of all YAML then says what it is.
class NotPlain : public std::exception {};

bool ends_word(char c) { return c == ' ' || c == '\n'; }

// Characters that begin a plain scalar and mean nothing else in YAML.
bool begins_scalar(char c, char next) {
  if (c == '-') return !ends_word(next) && next != '-';
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '/' ||
         c == '+' || c == '(' || c == '$' || c == '_' || c == '<' || c == '=';
}

bool is_null(std::string_view word) {
  return word == "null" || word == "Null" || word == "NULL" || word.empty();
}

bool ends_flow_scalar(char c) { return c == ',' || c == '[' || c == ']' || c == '{' || c == '}'; }

class PlainYaml {
 public:
  PlainYaml(std::string_view text, const std::shared_ptr<const std::string>& file)
      : text_(text), file_(file) {}

  SpecTree read() {
    const std::size_t indent = next_line();
    if (indent != 0 || at_ == text_.size()) throw NotPlain();
    SpecTree tree = block(0, 0);
    if (at_ != text_.size()) throw NotPlain();
    return tree;
  }

 private:
  [[nodiscard]] char here() const { return at_ < text_.size() ? text_[at_] : '\n'; }
  [[nodiscard]] char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\n'; }
  [[nodiscard]] std::size_t column() const { return at_ - line_start_; }  // from 0, in bytes
  [[nodiscard]] Mark mark() const { return {file_, line_, static_cast<int>(column()) + 1}; }
  [[nodiscard]] bool at_item() const { return here() == '-' && ends_word(next()); }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  void skip_line() {
    at_ = std::min(text_.find('\n', at_), text_.size());
    if (at_ == text_.size()) return;
    line_start_ = ++at_;
    ++line_;
  }

  // True at the end of a line's content; a '#' must follow a space or begin the line.
  [[nodiscard]] bool at_line_end() const {
    if (here() == '\n') return true;
    return here() == '#' && (column() == 0 || text_[at_ - 1] == ' ');
  }

  // Goes from the end of a line's content to the next line with any; returns its indentation.
  std::size_t next_line() {
    if (!at_line_end() && column() != 0) throw NotPlain();
    if (at_line_end()) skip_line();
    while (at_ < text_.size()) {
      skip_spaces();
      if (at_document_end()) throw NotPlain();
      if (!at_line_end()) return column();
      skip_line();
    }
    return 0;
  }

  // "..." alone or before a space, at the beginning of a line.
  [[nodiscard]] bool at_document_end() const {
    const std::string_view rest = text_.substr(at_);
    return column() == 0 && rest.starts_with("...") && (rest.size() == 3 || ends_word(rest[3]));
  }

  SpecTree block(std::size_t indent, std::size_t depth) {
    if (depth > kDeepest) throw NotPlain();
    return at_item() ? block_list(indent, depth) : block_map(indent, depth);
  }

  SpecTree block_list(std::size_t indent, std::size_t depth) {
    SpecTree list = collection(SpecTree::Kind::list);
    while (at_ < text_.size() && column() == indent && at_item()) {
      ++at_;
      skip_spaces();
      if (at_line_end()) throw NotPlain();
      const std::size_t inner = column();
      if (at_item() || at_key()) {
        list.items.push_back(block(inner, depth + 1));
      } else {
        list.items.push_back(value_on_line(indent, depth + 1));
      }
    }
    if (at_ < text_.size() && column() > indent) throw NotPlain();
    return list;
  }

  // True where a plain scalar begins that is a key of a block map.
  [[nodiscard]] bool at_key() const {
    if (!begins_scalar(here(), next())) return false;
    for (std::size_t i = at_; i < text_.size() && text_[i] != '\n'; ++i) {
      if (text_[i] == ':' && (i + 1 == text_.size() || ends_word(text_[i + 1]))) return true;
      if (text_[i] == '#' && text_[i - 1] == ' ') return false;
    }
    return false;
  }

  SpecTree block_map(std::size_t indent, std::size_t depth) {
    SpecTree map = collection(SpecTree::Kind::map);
    while (at_ < text_.size() && column() == indent && !at_item()) {
      SpecEntry& entry = key(map);
      skip_spaces();
      if (!at_line_end()) {
        entry.value = value_on_line(indent, depth + 1);
        continue;
      }
      const std::size_t inner = next_line();
      const bool nested = at_ < text_.size() && (inner > indent || (inner == indent && at_item()));
      if (!nested) throw NotPlain();
      entry.value = block(inner, depth + 1);
    }
    if (at_ < text_.size() && column() > indent) throw NotPlain();
    require_unique(map);
    return map;
  }

  // A value that begins on the line of its key or dash, which stands at `indent`; goes on to the next line.
  SpecTree value_on_line(std::size_t indent, std::size_t depth) {
    SpecTree tree = here() == '[' || here() == '{' ? flow(depth) : scalar(false);
    skip_spaces();
    const std::size_t following = next_line();
    if (at_ < text_.size() && following > indent) throw NotPlain();  // a scalar that goes on
    return tree;
  }

  // Reads "key:" into a new entry of the map.
  SpecEntry& key(SpecTree& map, bool in_flow = false) {
    SpecTree name = scalar(in_flow);
    if (name.text.empty() || name.text.size() > kLongestKey || here() != ':' || !ends_word(next()))
      throw NotPlain();
    ++at_;
    map.entries.push_back({std::move(name.text), std::move(name.mark), {}});
    return map.entries.back();
  }

  SpecTree flow(std::size_t depth) {
    if (depth > kDeepest) throw NotPlain();
    const bool is_map = here() == '{';
    const char end = is_map ? '}' : ']';
    SpecTree tree = collection(is_map ? SpecTree::Kind::map : SpecTree::Kind::list);
    ++at_;
    skip_space_in_flow();
    while (here() != end) {
      if (is_map) {
        SpecEntry& entry = key(tree, true);
        skip_space_in_flow();
        entry.value = flow_value(depth);
      } else {
        tree.items.push_back(flow_value(depth));
      }
      skip_space_in_flow();
      if (here() != ',' && here() != end) throw NotPlain();
      if (here() != ',') continue;
      ++at_;
      skip_space_in_flow();
      if (here() == end) throw NotPlain();  // ", ]"
    }
    ++at_;
    if (is_map) require_unique(tree);
    return tree;
  }

  SpecTree flow_value(std::size_t depth) {
    return here() == '[' || here() == '{' ? flow(depth + 1) : scalar(true);
  }

  // Goes over line ends and comments, too. A line of a flow collection must be indented.
  void skip_space_in_flow() {
    skip_spaces();
    while (at_ < text_.size() && at_line_end()) {
      skip_line();
      skip_spaces();
      if (at_ < text_.size() && !at_line_end() && column() == 0) throw NotPlain();
    }
    if (at_ == text_.size()) throw NotPlain();
  }

  SpecTree scalar(bool in_flow) {
    SpecTree result;
    result.mark = mark();
    if (here() == '"' || here() == '\'') {
      result.quoted = true;
      result.text = in_quotes();
    } else {
      result.text = plain(in_flow);
    }
    return result;
  }

  std::string in_quotes() {
    const char quote = here();
    const std::size_t begin = ++at_;
    while (here() != quote) {
      if (here() == '\n' || here() == '\\') throw NotPlain();
      ++at_;
    }
    const std::string_view inside = text_.substr(begin, at_ - begin);
    ++at_;
    const bool ends = ends_word(here()) || here() == ':' || ends_flow_scalar(here());
    if (!ends) throw NotPlain();
    return std::string(inside);
  }

  std::string plain(bool in_flow) {
    if (!begins_scalar(here(), next())) throw NotPlain();
    const std::size_t begin = at_;
    for (; here() != '\n'; ++at_) {
      const char c = here();
      if (c == '#' && text_[at_ - 1] == ' ') break;
      if (c == ':' && ends_word(next())) break;
      if (!in_flow) continue;
      if (ends_flow_scalar(c)) break;
      if (c == '?' || (c == ':' && ends_flow_scalar(next()))) throw NotPlain();
    }
    if (in_flow && at_line_end()) throw NotPlain();  // it may go on
    std::string_view word = text_.substr(begin, at_ - begin);
    word = word.substr(0, word.find_last_not_of(' ') + 1);
    if (is_null(word)) throw NotPlain();
    return std::string(word);
  }

  [[nodiscard]] SpecTree collection(SpecTree::Kind kind) const {
    SpecTree tree;
    tree.kind = kind;
    tree.mark = mark();
    return tree;
  }

  static void require_unique(const SpecTree& map) {
    std::vector<std::string_view> keys;
    keys.reserve(map.entries.size());
    for (const SpecEntry& entry : map.entries) keys.push_back(entry.key);
    std::sort(keys.begin(), keys.end());
    if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) throw NotPlain();
  }

  std::string_view text_;
  const std::shared_ptr<const std::string>& file_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

}  // namespace

std::optional<SpecTree> parse_plain_yaml(std::string_view yaml,
                                         const std::shared_ptr<const std::string>& file) {
  const auto holds = [yaml](char c) { return yaml.find(c) != std::string_view::npos; };
  if (holds('\t') || holds('\r') || holds('\0') || yaml.starts_with("\xef\xbb\xbf")) return std::nullopt;
  try {
    return PlainYaml(yaml, file).read();
  } catch (const NotPlain&) {
    return std::nullopt;
  }
}

}  // namespace tbdsim
