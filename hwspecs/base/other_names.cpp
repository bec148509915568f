#include "hwspecs/base/other_names.h"

#include "hwspecs/base/error.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

std::string plain_name(std::string_view name) {
  constexpr std::string_view kSeparators = " -_";
  std::string text(name);
  for (char& c : text) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  for (const std::string_view brand : {"nvidia", "tesla", "geforce"}) {
    const bool apart = text.size() > brand.size() && kSeparators.find(text[brand.size()]) != kSeparators.npos;
    if (apart && text.starts_with(brand)) text.erase(0, brand.size() + 1);
  }
  std::erase_if(text, [&](char c) { return kSeparators.find(c) != kSeparators.npos; });
  return text;
}

namespace {

void add_texts(const SpecTree& list, std::vector<std::string>& texts) {
  for (const SpecTree& text : list.items) texts.push_back(text.text);
}

}  // namespace

std::vector<std::string> other_names(const std::filesystem::path& file) {
  std::vector<std::string> names{file.stem().string()};
  try {
    const SpecTree tree = read_spec_file(file);
    for (const SpecEntry& entry : tree.entries) {
      if (entry.key == "title") names.push_back(entry.value.text);
      if (entry.key == "also_called") add_texts(entry.value, names);
      if (entry.key != "family") continue;
      for (const SpecEntry& member : entry.value.entries) {
        names.push_back(member.key);
        for (const SpecEntry& key : member.value.entries) {
          if (key.key == "also_called") add_texts(key.value, names);
        }
      }
    }
  } catch (const Error&) {  // of no matter before the file itself is asked for
  }
  return names;
}

}  // namespace tbdsim
