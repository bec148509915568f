#include "hwspecs/gpu_names.h"

#include "hwspecs/base/error.h"
#include "hwspecs/base/other_names.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/gpu_spec.h"

namespace tbdsim {
namespace {
void add(GpuNames& names, const std::string& device, const std::string& gpu) {
  const auto [at, is_new] = names.name_of.try_emplace(plain_name(device), gpu);
  if (!is_new && at->second != gpu) {
    throw UsageError("the GPUs " + at->second + " and " + gpu + " are both called " + in_quotes(device) +
                     "; expected one GPU for a name");
  }
}
}  // namespace

GpuNames read_gpu_names(const Catalog& catalog) {
  GpuNames names;
  for (const std::string& name : catalog.names(Kind::gpu)) {
    const GpuSpec gpu = read_gpu(catalog.find(Kind::gpu, name), catalog);
    add(names, name, name);
    names.known.push_back(name);
    names.known.push_back(gpu.title);
    names.known.insert(names.known.end(), gpu.also_called.begin(), gpu.also_called.end());
    add(names, gpu.title, name);
    for (const std::string& device : gpu.also_called) add(names, device, name);
  }
  return names;
}

const std::string& gpu_name(std::string_view device, const GpuNames& names) {
  const auto found = names.name_of.find(plain_name(device));
  if (found != names.name_of.end()) return found->second;
  throw UsageError("unknown GPU " + in_quotes(device) + did_you_mean(device, names.known) +
                   " ('tbd-sim list gpus' names them; 'also_called' of a GPU's file adds a name)");
}

}  // namespace tbdsim
