#include "simulate/import/imported_file.h"

#include "hwspecs/base/spec_writer.h"

namespace tbdsim {

const SpecTree* entry_of(const SpecTree& map, std::string_view key) {
  for (const SpecEntry& entry : map.entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

void set_entry(SpecTree& map, const std::string& key, SpecTree value) {
  for (SpecEntry& entry : map.entries) {
    if (entry.key != key) continue;
    entry.value = std::move(value);
    return;
  }
  add_entry(map, key, std::move(value));
}

std::string file_name_of(std::string_view name, std::string_view otherwise) {
  constexpr std::size_t kLongest = 60;
  std::string plain;
  for (const char c : name) {
    const bool capital = c >= 'A' && c <= 'Z';
    const bool kept = capital || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (kept) plain += capital ? static_cast<char>(c - 'A' + 'a') : c;
    if (!kept && !plain.empty() && plain.back() != '_') plain += '_';
    if (plain.size() == kLongest) break;
  }
  while (!plain.empty() && plain.back() == '_') plain.pop_back();
  return plain.empty() ? std::string(otherwise) : plain;
}

}  // namespace tbdsim
