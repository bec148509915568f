#include "calibrate/measure/plan/op_table.h"

#include <set>

#include <gtest/gtest.h>

namespace tbdsim::measure {
namespace {

TEST(OpTable, NamesOnlyShapeColumnsThatExist) {
  std::set<std::string> columns;
  for (const ShapeColumn& column : shape_columns()) columns.emplace(column.name);
  for (const OpSpec& op : op_table()) {
    for (const std::string& size : op.sizes) EXPECT_TRUE(columns.count(size)) << op.name << ' ' << size;
    for (const std::string& size : op.sizes_from_one)
      EXPECT_TRUE(columns.count(size)) << op.name << ' ' << size;
  }
}

TEST(OpTable, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const OpSpec& op : op_table()) {
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    EXPECT_EQ(find_op(op.name), &op);
  }
  EXPECT_EQ(find_op("gem"), nullptr);
}

TEST(OpTable, EachOpHasAtLeastOneOfEachChoice) {
  for (const OpSpec& op : op_table()) {
    EXPECT_FALSE(op.phases.empty() || op.precisions.empty() || op.layouts.empty() || op.caches.empty())
        << op.name;
    EXPECT_FALSE(op.what.empty()) << op.name;
  }
}

TEST(OpTable, PoolingPaddingMustBeSmallerThanItsWindow) {
  PlanPoint point{
      .op = "max_pool",
      .precision = "fp32",
      .phase = "forward",
      .shape = {
          .batch = 1, .channels = 1, .height = 8, .width = 8, .filter_h = 2, .filter_w = 2, .pad_h = 2}};
  EXPECT_EQ(complete(point), "padding 2x0 is not smaller than the window 2x2");
  point.shape.pad_h = 1;
  EXPECT_EQ(complete(point), std::nullopt);
}

TEST(OpTable, HostCopiesHaveNoColdCache) {
  PlanPoint point{.op = "copy_h2d", .precision = "fp32", .cache = "cold", .shape = {.bytes = 1024}};
  EXPECT_EQ(complete(point), "cache 'cold'; expected one of: hot");
}

}  // namespace
}  // namespace tbdsim::measure
