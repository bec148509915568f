// Models layer by layer against tables counted from the original programs by scripts that know nothing of
// this project: one row here for each model, variant and table.
//
// A table has a row for every layer with parameters or multiply-adds, and may have others:
//
//   name           in the words of the program counted
//   output         shape, without the rows; empty: not compared
//   parameters     trained ones
//   forward_macs   multiply-adds of one sample forward
//   training_macs  and in all passes of an iteration: mostly three times that, for gradients by the input and
//   by
//                  the weights, but twice where nothing before the layer is trained
//   layers         optional: the layers here that this is, separated by spaces; empty: the one of that name.
//                  Rows of the same layers are summed, so several rows may be one layer.
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>

#include "hwspecs/base/csv.h"
#include "hwspecs/base/number.h"
#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

struct Case {
  const char* model;
  const char* variant;
  const char* table;
};

constexpr Case kCases[] = {
    {"resnet50", "slim_v2", "resnet50_layers/slim_v2.csv"},
    {"resnet50", "mxnet_v2", "resnet50_layers/mxnet_v2.csv"},
    {"resnet50", "v1.5", "resnet50_layers/v1.5.csv"},
    {"inception_v3", "slim", "inception_v3_layers/slim.csv"},
    {"inception_v3", "mxnet", "inception_v3_layers/mxnet.csv"},
    {"inception_v3", "cntk", "inception_v3_layers/cntk.csv"},
    {"inception_v3", "torchvision", "inception_v3_layers/cntk.csv"},  // but for a pooling of one pixel
    {"resnet18", "v1", "resnet18_layers/v1.csv"},
    {"resnext50_32x4d", "v1", "resnext50_32x4d_layers/torchvision.csv"},
    {"mobilenet_v2", "v1", "mobilenet_v2_layers/torchvision.csv"},
    {"mobilenet_v3_large", "v1", "mobilenet_v3_large_layers/torchvision.csv"},
    {"efficientnet_b0", "v1", "efficientnet_b0_layers/torchvision.csv"},
    {"alexnet", "torchvision", "alexnet_layers/torchvision.csv"},
    {"alexnet", "mxnet", "alexnet_layers/mxnet.csv"},
    {"alexnet", "tf_cnn_benchmarks", "alexnet_layers/tf_cnn_benchmarks.csv"},
    {"vgg13", "torchvision", "vgg13_layers/torchvision.csv"},
    {"vgg16", "torchvision_momentum", "vgg16_layers/torchvision.csv"},
    {"vgg16", "slim_sgd", "vgg16_layers/slim.csv"},
    {"faster_rcnn", "slim_v1", "faster_rcnn_layers/slim_v1.csv"},
    {"faster_rcnn", "mxnet_v2", "faster_rcnn_layers/mxnet_v2.csv"},
    {"faster_rcnn", "v1.5", "faster_rcnn_layers/v1.5.csv"},
    {"transformer", "tensor2tensor", "transformer_layers/tensor2tensor.csv"},  // 25 + 25 words
    {"transformer", "pytorch", "transformer_layers/pytorch.csv"},              // 32 + 32
    {"bert_base", "squad", "bert_base_layers/squad.csv"},
    {"bert_base", "pretraining_128", "bert_base_layers/pretraining_128.csv"},
    {"bert_large", "squad", "bert_large_layers/squad.csv"},
    {"wgan_gp", "improved_wgan", "wgan_gp_layers/improved_wgan.csv"},
    {"a3c", "paper", "a3c_layers/paper.csv"},
    {"a3c", "pytorch", "a3c_layers/paper.csv"},
    {"a3c", "suite_mxnet", "a3c_layers/suite_mxnet.csv"},
    {"a3c", "suite_tf", "a3c_layers/suite_tf.csv"},
    {"seq2seq", "nmt", "seq2seq_layers/nmt.csv"},
    {"seq2seq", "sockeye", "seq2seq_layers/sockeye.csv"},
    {"seq2seq", "sockeye_echo", "seq2seq_layers/sockeye.csv"},
    {"deep_speech2", "mxnet", "deep_speech2_layers/mxnet.csv"},
    {"deep_speech2", "mxnet_7", "deep_speech2_layers/mxnet_7.csv"},
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.model << ' ' << c.variant; }

struct Counts {
  std::int64_t parameters = 0;
  std::int64_t forward_macs = 0;
  std::int64_t training_macs = 0;

  Counts& operator+=(const Counts& other) {
    parameters += other.parameters;
    forward_macs += other.forward_macs;
    training_macs += other.training_macs;
    return *this;
  }
  friend bool operator==(const Counts&, const Counts&) = default;
};

void PrintTo(const Counts& c, std::ostream* out) {
  *out << c.parameters << " parameters, " << c.forward_macs << " and " << c.training_macs << " MAC";
}

struct Entry {
  std::string output;
  Counts counts;
};
using Table = std::map<std::string, Entry>;  // layers, separated by spaces -> what the table says of them

std::int64_t whole_number(const std::string& text) {
  const auto number = parse_whole_number(text);
  EXPECT_TRUE(number) << text;
  return number.value_or(0);
}

Table read_table(const std::string& file) {
  std::ifstream in(file);
  CsvReader reader(in, file);
  const auto layers = reader.find_column("layers");
  Table table;
  for (std::vector<std::string> row; reader.next(row);) {
    const auto field = [&](std::string_view name) { return row[reader.column(name)]; };
    Entry& entry = table[layers && !row[*layers].empty() ? row[*layers] : field("name")];
    entry.output = field("output");
    entry.counts += {whole_number(field("parameters")), whole_number(field("forward_macs")),
                     whole_number(field("training_macs"))};
  }
  return table;
}

Counts counts_of(const LayerSummary& layer) {
  return {layer.trained_parameters, static_cast<std::int64_t>(layer.forward_macs.at(1)),
          static_cast<std::int64_t>(layer.training_macs.at(1))};
}

class ModelLayers : public testing::TestWithParam<Case> {
 protected:
  ModelLayers()
      : file_(read_model_file(std::string(TBDSIM_SOURCE_DIR "/graphs/models/") + GetParam().model + ".yaml")),
        variant_(find_variant(file_, GetParam().variant, "")),
        table_(read_table(std::string(TBDSIM_SOURCE_DIR "/tests/graphs/") + GetParam().table)) {}

  ModelFile file_;
  Variant variant_;
  Table table_;
};

TEST_P(ModelLayers, MatchTheTable) {
  const TrainingStep step = test::step_of(build_model(file_, variant_));
  std::map<std::string, LayerSummary> left;
  for (const LayerSummary& layer : step.layers)
    ASSERT_TRUE(left.emplace(layer.name, layer).second) << layer.name << " appears twice";
  for (const auto& [names, expected] : table_) {
    SCOPED_TRACE(names);
    Entry sum;
    std::istringstream words(names);
    for (std::string name; words >> name;) {
      const auto layer = left.find(name);
      ASSERT_TRUE(layer != left.end()) << "there is no layer " << name << ", or two rows name it";
      sum.output = to_text(layer->second.output);
      sum.counts += counts_of(layer->second);
      left.erase(layer);
    }
    EXPECT_EQ(sum.counts, expected.counts);
    if (!expected.output.empty()) {
      EXPECT_EQ(sum.output, expected.output);
    }
  }
  for (const auto& [name, layer] : left) EXPECT_EQ(counts_of(layer), Counts{}) << name << " is in no row";
}

TEST_P(ModelLayers, TableAddsUpToThePublishedCounts) {
  Counts sum;
  for (const auto& [names, entry] : table_) sum += entry.counts;
  ASSERT_TRUE(variant_.expected);
  EXPECT_EQ(sum, (Counts{variant_.expected->parameters.value(), variant_.expected->forward_macs.value(),
                         variant_.expected->training_macs.value()}));
}

INSTANTIATE_TEST_SUITE_P(Tables, ModelLayers, testing::ValuesIn(kCases));

}  // namespace
}  // namespace tbdsim
