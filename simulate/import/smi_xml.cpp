#include "simulate/import/fact_setter.h"
#include "simulate/import/gpu_facts.h"
#include "simulate/import/text_lines.h"
#include "simulate/import/xml_tree.h"

namespace tbdsim {

std::vector<GpuFacts> read_smi_xml(std::string_view text, const std::string& file) {
  const XmlElement log = read_xml(text, file);
  std::vector<GpuFacts> all;
  for (const XmlElement& gpu : log.children) {
    if (gpu.name != "gpu") continue;
    GpuFacts facts{.name = {}, .tool = "nvidia-smi -q -x"};
    const FactSetter set(facts, file, gpu.line);
    set.name(gpu.text_at("product_name"));
    if (facts.name.empty())
      fail_at(file, gpu.line, "a gpu without a product_name; expected nvidia-smi -q -x");
    set.pcie_generation(gpu.text_at("pci/pci_gpu_link_info/pcie_gen/max_link_gen"));
    set.usable_memory(gpu.text_at("fb_memory_usage/total"), "MiB");
    set.reserved_memory(gpu.text_at("fb_memory_usage/reserved"));
    set.divided(gpu.text_at("mig_mode/current_mig"));
    set.ecc(gpu.text_at("ecc_mode/current_ecc"));
    set.power_limit(gpu.text_at("power_readings/default_power_limit"));
    set.power_limit(gpu.text_at("gpu_power_readings/default_power_limit"));
    set.clock(gpu.text_at("max_clocks/sm_clock"));
    all.push_back(std::move(facts));
  }
  if (all.empty()) fail_at(file, 0, "names no GPU; expected a gpu in nvidia_smi_log");
  return all;
}

}  // namespace tbdsim
