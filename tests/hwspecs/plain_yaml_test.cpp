// The reader of plain YAML gives the trees that yaml-cpp gives, to the last position, or none.
#include "hwspecs/base/plain_yaml.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hwspecs/base/file.h"

namespace tbdsim {
namespace {
namespace fs = std::filesystem;

bool same_place(const Mark& a, const Mark& b) { return a.line == b.line && a.column == b.column; }

bool same(const SpecTree& a, const SpecTree& b) {
  if (a.kind != b.kind || a.text != b.text || a.quoted != b.quoted || !same_place(a.mark, b.mark))
    return false;
  if (a.items.size() != b.items.size() || a.entries.size() != b.entries.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!same(a.items[i], b.items[i])) return false;
  }
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    const bool key = a.entries[i].key == b.entries[i].key && same_place(a.entries[i].mark, b.entries[i].mark);
    if (!key || !same(a.entries[i].value, b.entries[i].value)) return false;
  }
  return true;
}

enum class Outcome { not_plain, same, different };

Outcome outcome(const std::string& yaml) {
  const auto file = std::make_shared<const std::string>("f.yaml");
  const auto plain = parse_plain_yaml(yaml, file);
  if (!plain) return Outcome::not_plain;
  try {
    return same(*plain, parse_full_yaml(yaml, file)) ? Outcome::same : Outcome::different;
  } catch (const SpecError&) {
    return Outcome::different;
  }
}

std::vector<fs::path> yaml_files() {
  std::vector<fs::path> files;
  for (const char* top : {"hwspecs", "graphs", "simulate", "calibrate", "tests/bad_specs", "docs/examples"}) {
    for (const auto& file : fs::recursive_directory_iterator(fs::path(TBDSIM_SOURCE_DIR) / top)) {
      if (file.path().extension() == ".yaml") files.push_back(file.path());
    }
  }
  return files;
}

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (static_cast<unsigned char>(c) & 0x80U) == 0; });
}

constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 20U;

TEST(PlainYaml, ReadsTheCatalogueAsYamlCppDoes) {
  int plain = 0;
  int all = 0;
  for (const fs::path& file : yaml_files()) {
    if (file.string().find("bad_specs") != std::string::npos) continue;
    const Outcome got = outcome(read_file(file, kMostBytes));
    EXPECT_NE(got, Outcome::different) << file;
    plain += got == Outcome::same ? 1 : 0;
    ++all;
  }
  EXPECT_GT(plain, all * 9 / 10) << all;
}

TEST(PlainYaml, AgreesOnFilesWithAnyCharacterChanged) {
  const std::string characters = " :-#,[]{}'\"\n?|>&*!%@`~\\.a0$\t";
  std::mt19937 random(7);
  int plain = 0;
  for (const fs::path& file : yaml_files()) {
    const std::string yaml = read_file(file, kMostBytes);
    if (yaml.empty() || yaml.size() > 6'000 || !is_ascii(yaml)) continue;
    for (int i = 0; i < 40; ++i) {
      std::string changed = yaml;
      const std::size_t at = random() % changed.size();
      const char c = characters[random() % characters.size()];
      switch (random() % 3) {
        case 0:
          changed[at] = c;
          break;
        case 1:
          changed.insert(at, 1, c);
          break;
        default:
          changed.erase(at, 1);
      }
      const Outcome got = outcome(changed);
      ASSERT_NE(got, Outcome::different) << file << " at " << at << " '" << c << "'\n" << changed;
      plain += got == Outcome::same ? 1 : 0;
    }
  }
  EXPECT_GT(plain, 1'000);
}

TEST(PlainYaml, LeavesTheRestOfYamlToYamlCpp) {
  for (const char* yaml : {"",
                           "a:\n",
                           "a: |\n  x\n",
                           "a: x\n  y\n",
                           "a: &x 1\n",
                           "a: *x\n",
                           "a: !t 1\n",
                           "a: \"x\\n\"\n",
                           "a: 'it''s'\n",
                           "? a\n: b\n",
                           "---\na: 1\n",
                           "a: 1\na: 2\n",
                           "a: null\n",
                           "a: ~\n",
                           "a: [b: 1]\n",
                           "a: [1, ]\n",
                           "a: {b}\n",
                           "a: [1\n",
                           "a: 1\n b: 2\n",
                           "- a\n-\n",
                           "a\n",
                           "\ta: 1\n",
                           "a: 1\r\n",
                           "[a]\n",
                           " a: 1\n",
                           "a: b: c\n"}) {
    EXPECT_EQ(outcome(yaml), Outcome::not_plain) << yaml;
  }
}

// "..." ends a document at the beginning of a line, before a space too; elsewhere it begins a word.
TEST(PlainYaml, LeavesTheEndOfADocumentToYamlCpp) {
  for (const char* yaml : {"... a: 1\n", "a: 1\n...\n", "a: 1\n... b: 2\n", "a: 1\n..."})
    EXPECT_EQ(outcome(yaml), Outcome::not_plain) << yaml;
  for (const char* yaml : {"...a: 1\n", "a:\n  ... b: 1\n", "a: ... b\n"})
    EXPECT_EQ(outcome(yaml), Outcome::same) << yaml;
}

TEST(PlainYaml, ReadsItsPartOfYaml) {
  for (const char* yaml :
       {"a: 1\n", "a: 1", "- 1\n- -2 x\n", "# c\n\na: x y # c\n", "a:\n- 1\n- b: 2\n  c: [3, {d: 4}]\n",
        "a: {}\n", "a: {b: 'x: y',\n    c: [1, # c\n  2]}\nd: \"e\"\n", "\"a b\": x#y\n",
        "a:\n  b:\n    - - 1\n      - 2\nc: http://x\n"}) {
    EXPECT_EQ(outcome(yaml), Outcome::same) << yaml;
  }
}

}  // namespace
}  // namespace tbdsim
