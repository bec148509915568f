#include "simulate/import/xml_tree.h"

#include <limits>
#include <memory>
#include <optional>

#include <expat.h>

#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kMostElements = 1'000'000;

// Builds the tree as the parser meets its parts. No exception may pass through the parser, which is C: what
// is wrong is kept, and the parser is told to stop.
struct Builder {
  XML_Parser parser;
  XmlElement root;
  std::vector<XmlElement*> open;
  std::size_t elements = 0;
  const char* wrong = nullptr;

  void stop(const char* why) {
    wrong = why;
    XML_StopParser(parser, XML_FALSE);
  }
};

void XMLCALL on_start(void* data, const XML_Char* name, const XML_Char** attributes) {
  auto& builder = *static_cast<Builder*>(data);
  if (builder.open.size() >= kDeepest) return builder.stop("nests deeper than 64");
  if (++builder.elements > kMostElements) return builder.stop("has more than 1000000 elements");
  XmlElement* element = &builder.root;
  if (!builder.open.empty()) element = &builder.open.back()->children.emplace_back();
  element->name = name;
  element->line = static_cast<int>(XML_GetCurrentLineNumber(builder.parser));
  for (; attributes[0] != nullptr; attributes += 2) element->attributes.emplace(attributes[0], attributes[1]);
  builder.open.push_back(element);
}

void XMLCALL on_end(void* data, const XML_Char*) { static_cast<Builder*>(data)->open.pop_back(); }

void XMLCALL on_text(void* data, const XML_Char* text, int length) {
  auto& builder = *static_cast<Builder*>(data);
  if (!builder.open.empty()) builder.open.back()->text.append(text, static_cast<std::size_t>(length));
}

void XMLCALL on_entity(void* data, const XML_Char*, int, const XML_Char*, int, const XML_Char*,
                       const XML_Char*, const XML_Char*, const XML_Char*) {
  static_cast<Builder*>(data)->stop("declares an entity");
}

}  // namespace

const XmlElement* XmlElement::child(std::string_view of) const {
  for (const XmlElement& element : children) {
    if (element.name == of) return &element;
  }
  return nullptr;
}

std::string_view XmlElement::text_at(std::string_view path) const {
  const std::size_t slash = path.find('/');
  const XmlElement* next = child(path.substr(0, slash));
  if (next == nullptr) return {};
  return slash == std::string_view::npos ? trimmed(next->text) : next->text_at(path.substr(slash + 1));
}

std::string_view XmlElement::attribute(const std::string& of) const {
  const auto found = attributes.find(of);
  return found == attributes.end() ? std::string_view{} : std::string_view(found->second);
}

XmlElement read_xml(std::string_view text, const std::string& file) {
  const std::unique_ptr<std::remove_pointer_t<XML_Parser>, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate("UTF-8"), &XML_ParserFree);
  Builder builder{.parser = parser.get(), .root = {}, .open = {}};
  XML_SetUserData(parser.get(), &builder);
  XML_SetElementHandler(parser.get(), on_start, on_end);
  XML_SetCharacterDataHandler(parser.get(), on_text);
  XML_SetEntityDeclHandler(parser.get(), on_entity);
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    fail_at(file, 0, "is too large");
  if (XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE) != XML_STATUS_OK) {
    const char* wrong =
        builder.wrong != nullptr ? builder.wrong : XML_ErrorString(XML_GetErrorCode(parser.get()));
    fail_at(file, static_cast<int>(XML_GetCurrentLineNumber(parser.get())),
            std::string(wrong) + "; expected XML of nvidia-smi or hwloc");
  }
  return std::move(builder.root);
}

}  // namespace tbdsim
