#include "hwspecs/base/text_list.h"

#include <gmock/gmock.h>

#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {
using testing::ElementsAre;

TEST(TextList, PartsStandBetweenCommas) {
  EXPECT_THAT(list_of("8,16,32"), ElementsAre("8", "16", "32"));
  EXPECT_THAT(list_of("a"), ElementsAre("a"));
  EXPECT_THAT(list_of(""), ElementsAre(""));
  EXPECT_THAT(list_of("a,"), ElementsAre("a", ""));
}

TEST(TextList, BracketsAndQuotesHoldTheirCommas) {
  EXPECT_THAT(list_of("[a, b],{c: 1, d: 2}"), ElementsAre("[a, b]", "{c: 1, d: 2}"));
  EXPECT_THAT(list_of("\"my,model.yaml\",resnet50"), ElementsAre("my,model.yaml", "resnet50"));
  EXPECT_THAT(list_of("x,\"a \"\"b\"\"\""), ElementsAre("x", "a \"b\""));
  EXPECT_THAT(list_of("it\"s"), ElementsAre("it\"s"));  // within a part they mean nothing
}

TEST(TextList, QuotesMustEndThePart) {
  EXPECT_THROW((void)list_of("\"a,b"), UsageError);
  EXPECT_THROW((void)list_of("\"a\"b,c"), UsageError);
}

TEST(TextList, AWrittenPartIsReadBack) {
  for (const char* part : {"a", "a,b", "\"a\"", "[a,b]", "[a", "a]b,c", "", "a \"b\", c"}) {
    EXPECT_THAT(list_of(list_part(part) + ",next"), ElementsAre(part, "next")) << part;
  }
  EXPECT_EQ(list_part("[a,b]"), "[a,b]");
}

}  // namespace
}  // namespace tbdsim
