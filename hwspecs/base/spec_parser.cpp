// yaml-cpp's event interface keeps what its node interface loses: the position of every key, duplicate keys,
// and whether a scalar was quoted.
#include "hwspecs/base/spec_parser.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "hwspecs/base/file.h"
#include "hwspecs/base/plain_yaml.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/base/utf8.h"

namespace tbdsim {
namespace {

// The number of a character of 1 to 4 bytes.
std::uint32_t code_point(std::string_view character) {
  constexpr std::uint32_t kFirstBits[] = {0x7f, 0x1f, 0x0f, 0x07};  // by length
  std::uint32_t code = static_cast<unsigned char>(character[0]) & kFirstBits[character.size() - 1];
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return code;
}

// True for code points that Unicode never assigns; yaml-cpp replaces them.
bool is_noncharacter(std::uint32_t code) {
  return (code & 0xfffe) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef);
}

// True if the text of a scalar has one, from an escape.
bool holds_noncharacter(std::string_view text) {
  const auto beyond_ascii = [](char c) { return (static_cast<unsigned char>(c) & 0x80U) != 0; };
  if (std::none_of(text.begin(), text.end(), beyond_ascii)) return false;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0 || is_noncharacter(code_point(text.substr(0, length)))) return true;
    text.remove_prefix(length);
  }
  return false;
}

constexpr std::uintmax_t kLargestFile = std::uintmax_t{1} << 20U;  // bytes
constexpr std::size_t kDeepest = 64;
constexpr std::size_t kLongestKey = 200;  // YAML's own limit is 1024 characters, escapes included

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::shared_ptr<const std::string> file) : file_(std::move(file)) {}

  [[nodiscard]] bool empty() const { return !have_root_; }
  [[nodiscard]] SpecTree take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (have_root_) throw SpecError(place(mark), "a second document; expected one per file");
  }
  void OnDocumentEnd() override {}
  // For "key:" without a value yaml-cpp reports the position of the next token; the key's is used instead.
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "", anchor);
    SpecTree nothing;
    nothing.mark = place(mark);
    if (!open_.empty() && open_.back().have_key && open_.back().key_mark.line < nothing.mark.line) {
      nothing.mark = open_.back().key_mark;
    }
    add(std::move(nothing));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw SpecError(place(mark), "an alias ('*name'); expected the value itself");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    add_scalar(mark, tag, anchor, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, SpecTree::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, SpecTree::Kind::map);
  }
  void OnMapEnd() override { close(); }

 private:
  // A list or map being filled; for a map `key` is set between a key and its value.
  struct Open {
    SpecTree tree;
    std::set<std::string> keys;
    bool have_key = false;
    std::string key;
    Mark key_mark;
  };

  [[nodiscard]] Mark place(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != 0) throw SpecError(place(mark), "an anchor ('&name'); expected plain YAML without anchors");
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw SpecError(place(mark), "the tag " + in_quotes(tag) + "; expected plain YAML without tags");
    }
  }

  void add_scalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) {
    check(mark, tag, anchor);
    if (holds_noncharacter(value))
      throw SpecError(place(mark), "a code point that is no character; expected text");
    SpecTree scalar;
    scalar.text = value;
    scalar.quoted = tag == "!";
    scalar.mark = place(mark);
    add(std::move(scalar));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, SpecTree::Kind kind) {
    check(mark, tag, anchor);
    if (open_.size() >= kDeepest) throw SpecError(place(mark), "nested more than 64 levels deep");
    Open opened;
    opened.tree.kind = kind;
    opened.tree.mark = place(mark);
    open_.push_back(std::move(opened));
  }

  void close() {
    SpecTree done = std::move(open_.back().tree);
    open_.pop_back();
    add(std::move(done));
  }

  void add(SpecTree value) {
    if (open_.empty()) {
      root_ = std::move(value);
      have_root_ = true;
      return;
    }
    Open& parent = open_.back();
    if (parent.tree.kind == SpecTree::Kind::list) {
      parent.tree.items.push_back(std::move(value));
    } else if (parent.have_key) {
      parent.tree.entries.push_back({std::move(parent.key), parent.key_mark, std::move(value)});
      parent.have_key = false;
    } else {
      set_key(parent, value);
    }
  }

  void set_key(Open& parent, const SpecTree& value) const {
    if (value.kind != SpecTree::Kind::scalar || value.text.empty()) {
      throw SpecError(value.mark, "a key that is no text; expected 'key: value'");
    }
    if (!parent.keys.insert(value.text).second) {
      throw SpecError(value.mark,
                      "key " + key_in_quotes(value.text) + " appears twice in one map; expected it once");
    }
    if (value.text.size() > kLongestKey) throw SpecError(value.mark, "a key longer than 200 characters");
    parent.key = value.text;
    parent.key_mark = value.mark;
    parent.have_key = true;
  }

  std::shared_ptr<const std::string> file_;
  std::vector<Open> open_;
  SpecTree root_;
  bool have_root_ = false;
};

constexpr std::uint32_t kByteOrderMark = 0xfeff;

// Throws SpecError unless the first character of `text`, of `length` bytes, is allowed in a file; `start`: it
// is the file's first character.
void require_character(std::string_view text, std::size_t length, bool start, const Mark& mark) {
  const char c = text.front();
  const bool line_end = c == '\n' || text.starts_with("\r\n");
  const bool control = length == 1 && ((c < 0x20 && c != '\t' && !line_end) || c == 0x7f);
  if (control) throw SpecError(mark, "a control character; expected text");
  const std::uint32_t code = code_point(text.substr(0, length));
  if (is_noncharacter(code)) throw SpecError(mark, "a code point that is no character; expected text");
  if (code == kByteOrderMark && !start)
    throw SpecError(mark, "a byte order mark; expected it at the start of a file only");
}

bool is_printable_ascii(char c) { return c >= 0x20 && c < 0x7f; }

// Throws SpecError for text that yaml-cpp takes or explains badly: bytes that are not UTF-8, control
// characters, noncharacters, byte order marks but at the start, and tabs as indentation, which it calls an
// "illegal map value". Printable ASCII, nearly all of every file, is passed over in runs.
void require_text(std::string_view yaml, const std::shared_ptr<const std::string>& file) {
  Mark mark{file, 1, 1};
  bool indentation = true;
  for (std::size_t at = 0; at < yaml.size();) {
    const std::size_t begin = at;
    while (at < yaml.size() && is_printable_ascii(yaml[at])) ++at;
    if (at == yaml.size()) return;
    const std::string_view run = yaml.substr(begin, at - begin);
    mark.column += static_cast<int>(run.size());
    indentation = indentation && run.find_first_not_of(' ') == std::string_view::npos;
    const std::string_view rest = yaml.substr(at);
    const std::size_t length = utf8_length(rest);
    if (length == 0) throw SpecError(mark, "bytes that are not UTF-8; expected text in UTF-8");
    require_character(rest, length, at == 0, mark);
    if (rest.front() == '\t' && indentation)
      throw SpecError(mark, "a tab in the indentation; expected spaces");
    at += length;
    ++mark.column;
    indentation = rest.front() == '\n';
    if (!indentation) continue;
    ++mark.line;
    mark.column = 1;
  }
}

}  // namespace

SpecTree parse_full_yaml(const std::string& yaml, const std::shared_ptr<const std::string>& name) {
  std::istringstream in(yaml);
  TreeBuilder builder(name);
  try {
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& failure) {
    Mark mark{name, failure.mark.line + 1, failure.mark.column + 1};
    if (failure.mark.is_null()) mark = {name, 0, 0};
    throw SpecError(mark, "not valid YAML: " + failure.msg);
  }
  if (builder.empty()) throw SpecError({name, 0, 0}, "the file holds no YAML; expected a map of keys");
  return builder.take();
}

SpecTree parse_spec(const std::string& yaml, const std::string& file) {
  const auto name = std::make_shared<const std::string>(file);
  require_text(yaml, name);
  if (auto tree = parse_plain_yaml(yaml, name)) return *std::move(tree);
  return parse_full_yaml(yaml, name);
}

SpecTree read_spec_file(const std::filesystem::path& path, const SpecChanges& changes) {
  SpecTree tree = parse_spec(read_file(path, kLargestFile), path.string());
  apply_changes(tree, changes);
  return tree;
}

}  // namespace tbdsim
