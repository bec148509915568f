// Networks of the suite's later page, of DAWNBench and of MLPerf against counts of a program that knows
// nothing of this project: later_models.csv has a row for each, counted from the original programs' layers.
//
//   parameters     trained ones, met exactly
//   forward_macs   multiply-adds of one sample forward, met within 0.1 %
//   training_macs  and of an iteration; empty where the table counts graphs of a training program apart
//
// Two rows are not the program's own. NVIDIA's EfficientDet has 54 scores of 64 weights and a bias more, at
// 5,456 pixels of five levels, which are added to the counts of 90 classes. RNN-T's first layer has no
// products of the state's gradient with that of the input there, which no layer needs; the 4 x 1024 x 1024 x
// 557 of the state are added to it here.
#include <fstream>

#include <gmock/gmock.h>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/csv.h"
#include "hwspecs/base/number.h"
#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

constexpr double kTolerance = 1e-3;

struct Counts {
  double parameters = 0, forward_macs = 0, training_macs = 0;
};

Counts counts_of(const Catalog& catalog, const std::string& name, const std::string& variant) {
  const ModelFile file = member_of_family(read_model_file(catalog.find(Kind::model, name)), name);
  const TrainingStep step = test::step_of(build_model(file, find_variant(file, variant, "")));
  Counts counts;
  for (const LayerSummary& layer : step.layers) {
    counts.parameters += static_cast<double>(layer.trained_parameters);
    counts.forward_macs += layer.forward_macs.at(1);
    counts.training_macs += layer.training_macs.at(1);
  }
  return counts;
}

TEST(LaterModels, MeetTheCountsOfTheirTables) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  const std::string path = TBDSIM_SOURCE_DIR "/tests/graphs/later_models.csv";
  std::ifstream in(path);
  CsvReader reader(in, path);
  int rows = 0;
  for (std::vector<std::string> row; reader.next(row); ++rows) {
    const auto text = [&](std::string_view column) { return row[reader.column(column)]; };
    SCOPED_TRACE(text("model") + " " + text("variant"));
    const Counts counts = counts_of(catalog, text("model"), text("variant"));
    const auto expected = [&](std::string_view column) { return parse_number(text(column)).value(); };
    EXPECT_EQ(counts.parameters, expected("parameters"));
    EXPECT_NEAR(counts.forward_macs / expected("forward_macs"), 1, kTolerance);
    if (!text("training_macs").empty()) {
      EXPECT_NEAR(counts.training_macs / expected("training_macs"), 1, kTolerance);
    }
  }
  EXPECT_GE(rows, 58);
}

// A size of a family is a model of its own: its name leads to the family's file and to that size alone.
TEST(LaterModels, SizesAreFoundByTheirNames) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  for (const char* name : {"efficientnet_b7", "EfficientNet-B7"}) {
    const ModelFile file = member_of_family(read_model_file(catalog.find(Kind::model, name)), name);
    ASSERT_EQ(file.variants.size(), 1u) << name;
    EXPECT_EQ(file.variants[0].name, "efficientnet_b7");
    EXPECT_EQ(file.variants[0].parameters.at("image_size").text, "600");
  }
}

}  // namespace
}  // namespace tbdsim
