#include "simulate/cli/commands/help_examples.h"

#include <array>

namespace tbdsim {
namespace {

struct Examples {
  std::string_view command;
  std::array<std::string_view, 5> lines;
};

constexpr Examples kExamples[] = {
    {"list", {"tbd-sim list gpus", "tbd-sim list models --format json", "tbd-sim list metrics"}},
    {"show",
     {"tbd-sim show resnet50 --variant v1.5", "tbd-sim show titanxp",
      "tbd-sim show dgx1_v100 --format json"}},
    {"kernels",
     {"tbd-sim kernels resnet50 --framework mxnet --gpu p4000 --batch 32 --by type",
      "tbd-sim kernels resnet50 --framework mxnet --gpu titanxp --batch 64 --below-average",
      "tbd-sim kernels all --batch 4,16,64 --unique --plan -o plan.csv"}},
    {"memory",
     {"tbd-sim memory resnet50 --framework mxnet --gpu p4000 --batch 32 --by layer",
      "tbd-sim memory transformer --framework pytorch --gpu titanxp --batch 64 --remedies",
      "tbd-sim memory resnet50 --framework pytorch --gpu titanxp --batch 32 --snapshot -o snapshot.pickle"}},
    {"max-batch",
     {"tbd-sim max-batch all --gpu p4000", "tbd-sim max-batch resnet50 --framework mxnet --gpu my_gpu.yaml",
      "tbd-sim max-batch bert_base --framework pytorch --gpu a100_sxm_40gb --precision amp"}},
    {"trace",
     {"tbd-sim trace resnet50 --framework mxnet --gpu titanxp --batch 64 -o trace.json",
      "tbd-sim trace seq2seq --framework tensorflow --gpu p4000 --batch 64 --seq-len 25 -o trace.json"}},
    {"scaling",
     {"tbd-sim scaling resnet50:mxnet --machine tbd_p4000 --batch 8,32 --gpus 1,2,4 --machines 1,2 "
      "--network ethernet_1g",
      "tbd-sim scaling resnet50:mxnet --gpu p4000 --batch 32 --machines 1,2,16 --network '25 Gbit/s'",
      "tbd-sim scaling bert_base:pytorch --gpu v100_sxm2_32gb --machine dgx1_v100 --batch 8 --gpus 8"}},
    {"predict",
     {"tbd-sim predict --scenarios runs.csv -o predicted.csv",
      "tbd-sim predict --scenarios runs.csv --format json"}},
    {"validate",
     {"tbd-sim validate", "tbd-sim validate --runs runs.csv --by gpu", "tbd-sim validate --worst 5"}},
    {"observations",
     {"tbd-sim observations", "tbd-sim observations --suite dawnbench",
      "tbd-sim observations --format json"}},
    {"report",
     {"tbd-sim report --gpu titanxp -o report.html",
      "tbd-sim report --gpu my_gpu.yaml --model resnet50 --against titanxp,p4000 -o report.html"}},
    {"serve",
     {"tbd-sim serve",
      "tbd-sim serve --model bert_base --framework pytorch --gpu a100_sxm_80gb --batch 16 --port 0",
      "tbd-sim serve --gpu my_gpu.yaml --port 0"}},
    {"sweep",
     {"tbd-sim sweep --model resnet50 --framework mxnet --gpu titanxp,p4000 --batch 1:64 -o sweep.csv",
      "tbd-sim sweep --model resnet50 --framework mxnet --gpu titanxp,t4 --batch 1:64 --best throughput "
      "--per gpu",
      "tbd-sim sweep --model resnet50 --framework mxnet --gpu titanxp --batch 32 --set "
      "gpu.sm_count=20:60:10",
      "tbd-sim sweep --model llama3_8b --gpu h100_sxm,h200 --gpus 16,32 --global-batch 128 --pareto "
      "step_time,cost_per_token"}},
    {"plan",
     {"tbd-sim plan llama3_70b --gpu h100_sxm --gpus 512 --global-batch 2048 --seq-len 8192",
      "tbd-sim plan llama3_8b --gpu a100_sxm_80gb --gpus 64 --global-batch 256 --tp 2 --pp 4 --zero 1 "
      "--recompute full --trace step.json",
      "tbd-sim plan mixtral_8x7b --gpu h100_sxm --gpus 64 --global-batch 256 --ep 8 --zero 1",
      "tbd-sim plan llama2_70b --gpu h100_sxm --gpus 8 --global-batch 8 --tp 4 --cp 2 --lora-rank 16",
      "tbd-sim plan llama3_8b --gpu h100_sxm --gpus 64 --global-batch 256 --set gpu.memory_bandwidth=+50%"}},
    {"whatif",
     {"tbd-sim whatif resnet50 --framework mxnet --gpu titanxp --batch 32",
      "tbd-sim whatif resnet50 --framework mxnet --gpu titanxp --batch 32 --set gpu.memory_bandwidth=+50%",
      "tbd-sim whatif resnet50 --framework pytorch --gpu v100_sxm2_16gb --batch 4 --set "
      "framework=pytorch_graphs"}},
    {"tta",
     {"tbd-sim tta resnet50 --framework mxnet_ngc --variant v1.5 --gpu a100_sxm_80gb --precision amp --gpus "
      "8",
      "tbd-sim tta resnet50 --framework pytorch --gpu v100_sxm2_16gb --precision amp --machine dgx1_v100 "
      "--gpus 8 "
      "--machines 1,2,4,8,16,32",
      "tbd-sim tta bert_large --variant pretraining_512 --framework pytorch --gpu h100_sxm --precision amp "
      "--gpus 8 --global-batch 448"}},
    {"import",
     {"tbd-sim import devicequery_v100.txt -o mine", "tbd-sim import topo_4090.txt --gpu rtx4090 -o mine",
      "tbd-sim import devicequery_quadro_rtx5000.txt --set tdp=230W -o mine"}},
    {"compare",
     {"tbd-sim compare trace.json --model resnet50 --framework pytorch_1_8 --batch 32",
      "tbd-sim compare trace.json --model resnet50 --framework pytorch_1_8 --batch 32 --on h100_sxm",
      "tbd-sim compare nvprof_summary.csv --model resnet50 --framework mxnet --gpu titanxp --batch 32 "
      "--steps 2"}},
    {"doctor", {"tbd-sim doctor", "tbd-sim doctor --format json"}},
    {"completion",
     {"tbd-sim completion bash -o tbd-sim.bash", "tbd-sim completion zsh -o _tbd-sim",
      "tbd-sim completion fish -o tbd-sim.fish"}},
};

}  // namespace

std::string examples_of(std::string_view command) {
  std::string text;
  for (const Examples& examples : kExamples) {
    if (examples.command != command) continue;
    text = "Examples:";
    for (const std::string_view line : examples.lines) {
      if (!line.empty()) text.append("\n  ").append(line);
    }
    text += '\n';
  }
  return text;
}

}  // namespace tbdsim
