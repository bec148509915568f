// A small XML document as a tree: what nvidia-smi and hwloc write.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tbdsim {

struct XmlElement {
  std::string name;
  int line = 0;
  std::map<std::string, std::string> attributes;
  std::string text;  // of the element itself, without its children's
  std::vector<XmlElement> children;

  // The first child of that name; null where there is none.
  [[nodiscard]] const XmlElement* child(std::string_view name) const;
  // The text at the end of a path of children, "pci/pci_gpu_link_info"; empty where there is none.
  [[nodiscard]] std::string_view text_at(std::string_view path) const;
  // An attribute; empty where there is none.
  [[nodiscard]] std::string_view attribute(const std::string& name) const;
};

// The root of the document. Throws SpecError with its line for text that is no XML, nests deeper than 64, has
// more than a million elements, or declares entities of its own.
[[nodiscard]] XmlElement read_xml(std::string_view text, const std::string& file);

}  // namespace tbdsim
