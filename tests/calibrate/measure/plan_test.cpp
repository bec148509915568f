#include "calibrate/measure/plan/plan.h"

#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "calibrate/measure/plan/builtin_plan.h"
#include "calibrate/measure/plan/op_table.h"
#include "hwspecs/base/error.h"

namespace tbdsim::measure {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Plan read(const std::string& text) {
  std::istringstream in(text);
  return read_plan(in, "p.csv");
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Plan, ReadsAPointWithDefaults) {
  const Plan plan = read("op,precision,m,n,k\ngemm,fp32,10,20,30\n");
  ASSERT_EQ(plan.points.size(), 1U);
  EXPECT_EQ(plan.points[0], (PlanPoint{.op = "gemm",
                                       .precision = "fp32",
                                       .layout = "NN",
                                       .cache = "cold",
                                       .shape = {.m = 10, .n = 20, .k = 30},
                                       .where = "p.csv:2"}));
}

TEST(Plan, FillsStridesDilationsAndGroupsWithOne) {
  const Plan plan = read(
      "op,precision,phase,batch,channels,height,width,filters,filter_h,filter_w\n"
      "conv,tf32,forward,1,4,8,8,16,3,3\n");
  ASSERT_EQ(plan.points.size(), 1U);
  EXPECT_EQ(to_text(plan.points[0]),
            "conv forward tf32 NCHW cold batch=1 channels=4 height=8 width=8 filters=16 "
            "filter_h=3 filter_w=3 stride_h=1 stride_w=1 dilation_h=1 dilation_w=1 groups=1");
}

TEST(Plan, BothCachesAreTwoPoints) {
  const Plan plan = read("op,precision,cache,m,n,k\ngemm,fp32,both,1,2,3\n");
  ASSERT_EQ(plan.points.size(), 2U);
  EXPECT_EQ(plan.points[0].cache, "cold");
  EXPECT_EQ(plan.points[1].cache, "hot");
}

TEST(Plan, UnitesEqualPointsAtTheHigherValue) {
  const Plan plan = read("op,precision,layout,value,m,n,k\ngemm,fp32,NN,2,1,2,3\ngemm,fp32,,7,1,2,3\n");
  ASSERT_EQ(plan.points.size(), 1U);
  EXPECT_EQ(plan.points[0].value, 7);
}

TEST(Plan, SkipsImpossibleShapesByNameAndLine) {
  const Plan plan = read(
      "op,precision,phase,m,n,k,batch,channels,height,width,filters,filter_h,filter_w\n"
      "gemm,fp32,,1,2,3,,,,,,,\n"
      "gemm,fp32,,1,0,3,,,,,,,\n"
      "conv,fp32,forward,,,,1,3,3,3,8,7,7\n"
      "gemm,fp32,,1,2,-3,,,,,,,\n"
      "gemm,fp32,,1,2,3,,,9,,,,\n"
      "gem,fp32,,1,2,3,,,,,,,\n"
      "gemm,fp64,,1,2,3,,,,,,,\n"
      "conv,fp32,wgrad,,,,1,3,9,9,8,7,7\n"
      "gemm,fp32,,4,5,6,,,,,,,\n");
  EXPECT_EQ(plan.points.size(), 2U);  // the first and the last row
  EXPECT_THAT(
      plan.skipped,
      ElementsAre("p.csv:3: gemm fp32 NN cold m=1 k=3: n is missing or 0; expected 1 or more; skipped",
                  AllOf(HasSubstr("p.csv:4: conv forward fp32"),
                        HasSubstr("filter 7x7 is larger than the padded input 3x3")),
                  HasSubstr("p.csv:5: gemm fp32 NN cold m=1 n=2 k=-3: k is negative"),
                  HasSubstr("p.csv:6: gemm fp32 NN cold m=1 n=2 k=3 height=9: height is given; gemm has no"),
                  HasSubstr("p.csv:7: gem fp32 m=1 n=2 k=3: unknown op 'gem'; did you mean 'gemm'?"),
                  HasSubstr("precision 'fp64'"),
                  HasSubstr("phase 'wgrad'; expected one of: forward, backward")));
}

TEST(Plan, SkipsGroupsThatDoNotDivideAndTensorsBeyond31Bits) {
  const Plan plan = read(
      "op,precision,phase,batch,channels,height,width,filters,filter_h,filter_w,groups\n"
      "conv,fp32,forward,1,6,8,8,8,1,1,4\n"
      "conv,fp32,forward,1024,2048,32,32,8,1,1,1\n");  // 2^31 inputs
  EXPECT_THAT(plan.points, IsEmpty());
  EXPECT_THAT(plan.skipped, ElementsAre(HasSubstr("4 groups do not divide 6 channels and 8 filters"),
                                        HasSubstr("a tensor has 2^31 elements or more")));
}

TEST(Plan, HugeSizesDoNotOverflow) {
  const Plan plan = read(
      "op,precision,phase,batch,channels,height,width,filters,filter_h,filter_w,pad_h,pad_w\n"
      "conv,fp32,forward,2147483647,2147483647,2147483647,2147483647,2147483647,2147483647,1,"
      "2147483647,2147483647\n"
      "conv,fp32,forward,9223372036854775807,1,1,1,1,1,1,9223372036854775807,1\n");
  EXPECT_THAT(plan.points, IsEmpty());
  EXPECT_EQ(plan.skipped.size(), 2U);
}

TEST(Plan, RefusesMalformedFiles) {
  EXPECT_THAT(error_of("op,precision,m,n,k\ngemm,fp32,1,2,x\n"),
              HasSubstr("p.csv:2:1: column 'k' holds 'x'"));
  EXPECT_THAT(error_of("op,precision,m,n,k\ngemm,fp32,1,2,3.5\n"), HasSubstr("column 'k' holds '3.5'"));
  EXPECT_THAT(error_of("op,precision,value\ngemm,fp32,nan\n"), HasSubstr("column 'value' holds 'nan'"));
  EXPECT_THAT(error_of("op,precision,widht\n"), HasSubstr("unknown column 'widht'; did you mean 'width'?"));
  EXPECT_THAT(error_of("precision,m\n"), HasSubstr("column 'op' is missing"));
  EXPECT_THAT(error_of(""), HasSubstr("the file is empty"));
}

TEST(Plan, ReadsBackWhatItWrites) {
  const Plan plan = make_plan(builtin_plan());
  std::ostringstream out;
  write_plan(out, plan.points);
  const Plan again = read(out.str());
  ASSERT_EQ(again.points.size(), plan.points.size());
  for (std::size_t i = 0; i < plan.points.size(); ++i) EXPECT_EQ(key(again.points[i]), key(plan.points[i]));
}

TEST(BuiltinPlan, IsPossibleThroughout) {
  const Plan plan = make_plan(builtin_plan());
  EXPECT_THAT(plan.skipped, IsEmpty());
  EXPECT_GT(plan.points.size(), 1000U);
}

TEST(BuiltinPlan, HoldsEveryOpInEveryPhaseAndPrecision) {
  std::set<std::string> held;
  for (const PlanPoint& p : make_plan(builtin_plan()).points)
    held.insert(p.op + ' ' + p.phase + ' ' + p.precision);
  for (const OpSpec& op : op_table()) {
    if (op.name == "all_reduce") continue;  // fp32 only: other types move the same bytes
    for (const std::string& phase : op.phases) {
      for (const std::string& precision : op.precisions) {
        EXPECT_TRUE(held.count(op.name + ' ' + phase + ' ' + precision))
            << op.name << ' ' << phase << ' ' << precision;
      }
    }
  }
}

TEST(BuiltinPlan, HoldsSkinnyProductsInThreeLayouts) {
  std::set<std::string> held;
  for (const PlanPoint& p : make_plan(builtin_plan()).points) {
    if (p.op == "gemm" && p.precision == "fp32" && p.shape.m == 1760 && p.shape.k == 1760) {
      held.insert(p.layout + std::to_string(p.shape.n));
    }
  }
  for (const char* layout : {"NN", "NT", "TN"}) {
    for (const char* n : {"8", "16", "32", "64", "128"})
      EXPECT_TRUE(held.count(std::string(layout) + n)) << layout << n;
  }
}

}  // namespace
}  // namespace tbdsim::measure
