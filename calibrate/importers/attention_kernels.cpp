// Attention in one kernel, forward and backward, of three sets:
//
//   cudnn_sdpa    cuDNN 9 (NVIDIA/cudnn-frontend, MIT) on B200 and GB200, with FlashAttention 2 beside it
//   simumax_sdp   Transformer Engine's attention (MooreThreads/SimuMax, Apache-2.0): FlashAttention 2 on an A100,
//                 cuDNN on a B200; times follow from stored efficiencies and hold launches
//   aic_context   forward kernels of inference frameworks (ai-dynamo/aiconfigurator, Apache-2.0)
//
// Left out: PyTorch's composite attention; calls through PyTorch below 1 ms, which hold its launches; mxfp8;
// rows without a time; aic_context on the B200, whose time does not grow with the sequence (one head of
// 10,240 queries in 16.6 us: its 80 blocks would run at 1.3 of the peak of the 80 SMs that can hold them,
// launch included).
#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "calibrate/importers/importers.h"

namespace tbdsim {
namespace {

constexpr std::array kGpus{TableName{"H100-SXM5-80GB", "h100_sxm"},
                           TableName{"H200", "h200"},
                           TableName{"H200-SXM-141GB", "h200"},
                           TableName{"A100-SXM4-80GB", "a100_sxm_80gb"},
                           TableName{"A100-PCIe-80GB", "a100_pcie_80gb"},
                           TableName{"B200", "b200"},
                           TableName{"B200-SXM-180GB", "b200"},
                           TableName{"GB200", "gb200"},
                           TableName{"B300", "b300"},
                           TableName{"GB300", "gb300"},
                           TableName{"L40S", "l40s"},
                           TableName{"L40S-48GB", "l40s"},
                           TableName{"RTX4090-24GB", "rtx4090"},
                           TableName{"RTX PRO 6000 Server", "rtx_pro_6000_server"}};

// The catalogue's name of the row's GPU, or the name as it stands, which load_records() looks up.
std::string gpu_of(const TableRow& row) {
  const std::string& name = row.text("gpu");
  const auto* const found =
      std::find_if(kGpus.begin(), kGpus.end(), [&](const TableName& each) { return each.in_table == name; });
  return found == kGpus.end() ? name : std::string(found->in_record);
}

// The library whose kernels ran; empty: no kernel of its own.
std::string library_of(const TableRow& row, const std::string& gpu) {
  const std::string& set = row.text("set");
  const std::string& backend = row.text("backend");
  const bool hopper = gpu == "h100_sxm" || gpu == "h200";
  const bool ampere = gpu == "a100_sxm_80gb" || gpu == "a100_pcie_80gb";
  if (set == "simumax_sdp") return ampere ? "flash2" : "cudnn9";
  if (backend == "pyt_math") return "";
  if (backend.starts_with("cudnn") || backend == "pyt_cudnn") return "cudnn9";
  if (backend == "torch_flow") return "trtllm1";
  if (backend == "trtllm_mha") return "trtllm_gen1";
  if (backend == "triton") return "triton3";
  if (backend == "flash_attention" && hopper) return "flash3";
  if (backend == "flash_attention" || backend == "pyt_flash_attention" || backend == "flash2")
    return "flash2";
  row.fail("backend", "cudnn, pyt_cudnn, flash_attention, torch_flow, trtllm_mha or triton");
}

// "gpt_oss; sliding window 128" -> 128; 0: none.
std::int64_t window_of(const TableRow& row) {
  constexpr std::string_view kWindow = "sliding window ";
  const std::string& note = row.text("note");
  const std::size_t at = note.find(kWindow);
  return at == std::string::npos ? 0 : std::atoll(note.c_str() + at + kWindow.size());
}

std::optional<std::string> why_left_out(const TableRow& row, const std::string& gpu,
                                        const std::string& library) {
  constexpr double kHoldsLaunches = 1'000;  // us
  const std::string& backend = row.text("backend");
  if (library.empty()) return "attention by products and softmax: " + backend;
  if (row.text("dtype") == "mxfp8") return "no such precision: mxfp8";
  if (row.text("time_us").empty()) return "without a time";
  const bool aic = row.text("set") == "aic_context";
  if (aic && gpu == "b200") return "times that do not grow with the sequence";
  const bool by_pytorch = !aic && (backend.starts_with("pyt_") || backend == "flash_attention");
  if (by_pytorch && row.number("time_us") < kHoldsLaunches) return "below 1 ms with PyTorch's launches";
  return std::nullopt;
}

}  // namespace

ImportedRow import_attention_kernels(const TableRow& row) {
  Record record;
  record.gpu = gpu_of(row);
  record.generation = library_of(row, record.gpu);
  if (const auto why = why_left_out(row, record.gpu, record.generation)) return left_out(*why);
  const std::string& backend = row.text("backend");
  record.precision = backend == "cudnn_fe_fp8" ? "fp8" : row.text("dtype");
  record.op = "attention";
  record.phase = row.text("pass") == "fwd" ? "forward" : "backward_data";
  record.shape.batch = row.size("batch");
  record.shape.heads = row.size("q_heads");
  record.shape.kv_heads = row.size("kv_heads");
  record.shape.queries = row.size("q_len");
  record.shape.keys = row.size("kv_len");
  record.shape.head_dim = row.size("head_dim_qk");
  record.shape.value_dim = row.size("head_dim_v");
  record.shape.window = window_of(row);
  record.layout = row.text("causal") == "y" ? "causal" : "full";
  if (row.text("deterministic") == "True" && record.phase != "forward") record.layout += " ordered";
  record.cache = "unknown";
  record.algorithm = backend;
  record.time_s = row.seconds("time_us", kMicrosecond_s);
  record.timer = row.text("set") == "simumax_sdp" ? "event" : "host";
  record.source = file_before_revision(row.text("source"));
  if (!record.source.starts_with("ai-dynamo/") && record.source.starts_with("aiconfigurator"))
    record.source = "ai-dynamo/" + record.source;
  return {.records = {record}, .left_out = ""};
}

}  // namespace tbdsim
