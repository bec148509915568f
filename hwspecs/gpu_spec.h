// Properties of a GPU for the cost model. One YAML file for each card in hwspecs/gpus/.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/math_type.h"
#include "hwspecs/base/quantity.h"
#include "hwspecs/base/sources.h"
#include "hwspecs/link_spec.h"

namespace tbdsim {

// The rate of one kind of arithmetic: peak = sm_count x flops_per_clock_per_sm x clock.
struct MathRate {
  double flops_per_clock_per_sm = 0;  // dense, a multiply-add is 2; tensor cores with fp32 accumulation
  Hertz clock;                        // the GPU's boost clock unless the vendor quotes this peak at another
  FlopsPerSecond peak;
  FlopsPerSecond quoted_peak;  // as the vendor prints it; within 1 % of peak, checked on reading
};

struct NvLinkPorts {
  LinkSpec link;  // e.g. nvlink2
  int count = 0;
  bool bridge = false;  // a bridge joins two cards; else boards or switches join them all
  std::string mesh{};   // machine with the wiring of such boards, unless another is given; empty: a switch
};

// The vendor's name of the range a card is sold in. NVIDIA's: GeForce and TITAN for consumers; workstation
// cards (Quadro, RTX A); data-centre cards (Tesla and its successors without a name). GeForce cards exceed
// the boost clock they are sold with: expected_clock() of costmodel/hardware.h.
enum class ProductLine { geforce, titan, workstation, datacenter };
inline constexpr std::array<std::string_view, 4> kProductLineNames = {"geforce", "titan", "workstation",
                                                                      "datacenter"};

struct GpuSpec {
  std::string name;                      // the file's stem
  std::string title;                     // "NVIDIA TITAN Xp"
  std::vector<std::string> also_called;  // names that drivers print where the title is another: gpu_names.h
  std::string architecture;
  ProductLine product_line = ProductLine::datacenter;
  double compute_capability = 0;  // 6.1
  int sm_count = 0;
  int fp32_lanes_per_sm = 0;
  Hertz boost_clock;
  // Rates by MathType; empty where the GPU lacks the type.
  std::array<std::optional<MathRate>, kMathTypeCount> math;
  // By MathType: the type in which libraries compute one that the card only stores (fp16 in fp32 on TITAN
  // Xp).
  std::array<std::optional<MathType>, kMathTypeCount> computes_in;
  Bytes memory_size;    // as sold
  Bytes usable_memory;  // as CUDA reports it: what a training run can have; usable_memory.h where not known
  bool ecc = false;     // on as delivered: data-centre cards, unless the file says otherwise
  BytesPerSecond memory_bandwidth;
  std::string memory_type;
  Bytes l2_size;
  Watts tdp;
  LinkSpec bus;  // to the host, e.g. pcie3
  std::optional<NvLinkPorts> nvlink;
  // Relative increase of kernel times while the other GPU of the same board runs: both share its power limit.
  // 0 for boards with one GPU.
  double board_slowdown = 0;
  // Share of the fp32 peak that a large GEMM reaches, where one was measured; else the cost model's rule
  // holds (costmodel/hardware.h, expected_clock).
  std::optional<double> sustained_share;
  std::optional<Dollars> price;
  std::optional<DollarsPerSecond> price_per_hour;  // of renting one, on demand
  Sources sources;
};

// Reads and checks a file and the links of its bus and NVLinks. Throws UsageError or SpecError (a missing
// source, a quoted peak more than 1 % off). Changes are those of "gpu" and of "link", its bus and NVLinks;
// the peak of a changed GPU is computed from its units and clock, without the check against the quoted one.
[[nodiscard]] GpuSpec read_gpu(const std::filesystem::path& file, const Catalog& catalog,
                               const SpecChanges& changes = {});

// The same card with the changes of "gpu" that mean it, none of them of its links, and without sources;
// faster, for many. `tree` is its file.
[[nodiscard]] GpuSpec changed_gpu(const SpecTree& tree, const GpuSpec& as_sold, const SpecChanges& changes);

// The rate at which kernels of a math type run, through `computes_in`. Throws UsageError when the card has
// neither.
[[nodiscard]] const MathRate& rate_of(const GpuSpec& gpu, MathType type);

// "14.58 GiB usable of 16 GiB": what a run can take of what the card is sold with.
[[nodiscard]] std::string memory_text(Bytes usable, Bytes memory_size);

// "fp32, fp16 (computed in fp32)" for messages.
[[nodiscard]] std::string math_text(const GpuSpec& gpu);

}  // namespace tbdsim
