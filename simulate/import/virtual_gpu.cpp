#include "simulate/import/virtual_gpu.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "hwspecs/base/number.h"

namespace tbdsim {
namespace {

// Codes of cards: NVIDIA, Virtual GPU Software User Guide, "Virtual GPU Types for Supported GPUs".
constexpr std::pair<std::string_view, const char*> kCards[] = {
    {"M60", "m60"},
    {"P4", "p4"},
    {"P40", "p40"},
    {"P100", "p100_pcie"},
    {"P100X", "p100_sxm2"},
    {"V100", "v100_pcie_16gb"},
    {"V100X", "v100_sxm2_16gb"},
    {"V100D", "v100_pcie_32gb"},
    {"V100DX", "v100_sxm2_32gb"},
    {"V100S", "v100s_pcie_32gb"},
    {"T4", "t4"},
    {"RTX6000", "quadro_rtx6000"},
    {"RTX8000", "quadro_rtx8000"},
    {"A10", "a10"},
    {"A30", "a30"},
    {"A40", "a40"},
    {"RTXA5000", "rtxa5000"},
    {"RTXA6000", "rtxa6000"},
    {"A100", "a100_pcie_40gb"},
    {"A100X", "a100_sxm_40gb"},
    {"A100D", "a100_pcie_80gb"},
    {"A100DX", "a100_sxm_80gb"},
    {"A800D", "a800_pcie_80gb"},
    {"A800DX", "a800_sxm_80gb"},
    {"L4", "l4"},
    {"L20", "l20"},
    {"L40", "l40"},
    {"L40S", "l40s"},
    {"RTX6000-Ada", "rtx6000_ada"},
    {"H20", "h20"},
    {"H100", "h100_pcie"},
    {"H100L", "h100_nvl"},
    {"H100XM", "h100_sxm"},
    {"H800", "h800_pcie"},
    {"H800XM", "h800_sxm"},
    {"H200", "h200_nvl"},
    {"H200X", "h200"},
    {"RTX Pro 6000 Blackwell DC", "rtx_pro_6000_server"}};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Takes the text behind the last dash off `text`; empty where there is none.
std::string_view take_last_part(std::string_view& text) {
  const std::size_t dash = text.rfind('-');
  if (dash == std::string_view::npos) return {};
  const std::string_view part = text.substr(dash + 1);
  text = text.substr(0, dash);
  return part;
}

}  // namespace

std::vector<std::string> virtual_gpu_codes() {
  std::vector<std::string> codes;
  for (const auto& [code, card] : kCards) codes.emplace_back(code);
  return codes;
}

std::optional<VirtualGpu> virtual_gpu(std::string_view called) {
  for (const std::string_view maker : {"NVIDIA ", "GRID "}) {
    if (called.starts_with(maker)) called.remove_prefix(maker.size());
  }
  // "8Q", "20C", "5CME", "2B4": GiB, and a letter for the sort of work that it is licensed for.
  const std::string_view type = take_last_part(called);
  const auto letter = std::ranges::find_if_not(type, is_digit) - type.begin();
  constexpr std::ptrdiff_t kMostDigits = 3;
  const std::string_view sort = type.substr(static_cast<std::size_t>(letter));
  if (letter == 0 || letter > kMostDigits || sort.empty() || sort.size() > 3 ||
      std::string_view("ABCQ").find(sort[0]) == std::string_view::npos)
    return std::nullopt;
  VirtualGpu gpu{.card = {}, .memory = {}};
  const double gibibytes = *parse_number(std::string(type.substr(0, static_cast<std::size_t>(letter))));
  gpu.memory = Bytes((gibibytes > 0 ? gibibytes : 0.5) * kMebi * 1'024);  // "M60-0B" has 512 MiB
  if (called.size() > 2 && called[called.size() - 2] == '-' && is_digit(called.back()) &&
      called.back() != '0') {
    gpu.slices = called.back() - '0';
    called.remove_suffix(2);
  }
  const auto* const found =
      std::ranges::find(kCards, called, &std::pair<std::string_view, const char*>::first);
  if (found == std::end(kCards)) return std::nullopt;
  gpu.card = found->second;
  return gpu;
}

}  // namespace tbdsim
