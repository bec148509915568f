// Pages as text: what they carry is escaped, whole and in order. tests/browser looks at them as a reader
// does.
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/error.h"
#include "simulate/report/html/page.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::string page_text(const Page& page) {
  std::ostringstream out;
  write_page(out, page, {.style = "/* style */\n", .script = "/* script */\n", .plotly = "packed"});
  return out.str();
}

// The charts' JSON that the page's script reads.
json charts_of(const std::string& page) {
  const std::string begin = "id=\"charts\">";
  const std::size_t at = page.find(begin) + begin.size();
  return json::parse(page.substr(at, page.find("</script>", at) - at));
}

TEST(HtmlPage, Base64IsThatOfRfc4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

TEST(HtmlPage, TextIsEscaped) {
  EXPECT_EQ(html_text("a < b & \"c\" > 'd'"), "a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;");
}

TEST(HtmlPage, OnlyAPageWithControlsMayAskItsServer) {
  const std::string still = page_text({.title = "still"});
  EXPECT_THAT(still, Not(HasSubstr("connect-src")));
  EXPECT_THAT(still, Not(HasSubstr("id=\"controls\"")));
  const std::string live = page_text({.title = "live", .controls = R"({"name": "</script>"})"});
  EXPECT_THAT(live, HasSubstr("; connect-src 'self'\">"));
  EXPECT_THAT(live, HasSubstr(R"(id="controls">{"name": "\u003c/script>"}</script>)"));
}

// Names come from files of users.
TEST(HtmlPage, NothingThatIsSaidBecomesMarkup) {
  const std::string evil = "</script><script>alert(1)</script><!-- \"' ${x}";
  Chart chart{.title = evil};
  chart.series.push_back({.name = evil, .x = {1}, .y = {2}, .hover = {evil}});
  const Table table{.name = evil,
                    .preface = {evil},
                    .columns = {{evil, evil}},
                    .rows = {{text_cell(evil)}},
                    .totals = {},
                    .notes = {evil},
                    .counts = {},
                    .counts_name = ""};
  const std::string text =
      page_text({.title = evil,
                 .summary = {evil},
                 .sections = {{.title = evil,
                               .text = {evil},
                               .views = {{.name = evil, .charts = {chart}, .tables = {table}}}}}});
  EXPECT_THAT(text, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(text, Not(HasSubstr("<!--")));
  EXPECT_EQ(charts_of(text)[0]["series"][0]["name"], evil);
}

TEST(HtmlPage, ChartsAreInOrderWithTheirNumbers) {
  Chart first{.title = "first", .x = {.title = "batch", .logarithmic = true}};
  first.series.push_back({.name = "a",
                          .colour = 3,
                          .x = {1, 2},
                          .y = {1234567, 0.1234567},
                          .low = {1, 0.1},
                          .high = {2, 0.2},
                          .hover = {"same", "same"},
                          .dashed = true});
  Chart second{.title = "second", .stacked = true};
  second.series.push_back({.mark = ChartMark::span, .x = {1}, .categories = {"GPU"}, .start = {0.5}});
  const std::string text =
      page_text({.title = "t", .sections = {{.title = "s", .views = {{.charts = {first, second}}}}}});
  const json charts = charts_of(text);
  ASSERT_EQ(charts.size(), 2u);
  EXPECT_EQ(charts[0]["x"]["log"], true);
  const json& series = charts[0]["series"][0];
  EXPECT_EQ(series["mark"], "line");
  EXPECT_EQ(series["colour"], 3);
  EXPECT_EQ(series["y"], json::parse("[1234600.0, 0.12346]"));  // five digits
  EXPECT_EQ(series["hover"], json::parse(R"([["same"], [0, 0]])"));
  EXPECT_EQ(series["dashed"], true);
  EXPECT_EQ(charts[1]["stacked"], true);
  EXPECT_EQ(charts[1]["series"][0]["mark"], "span");
  EXPECT_EQ(charts[1]["series"][0]["start"], json::parse("[0.5]"));
  EXPECT_THAT(text, HasSubstr("data-chart=\"1\"><figcaption>second"));
}

TEST(HtmlPage, TablesShowWhatPeopleAreShown) {
  const Table table{.name = "t",
                    .preface = {},
                    .columns = {{"a", "for people"}, {"b", ""}, {"c", "ms", true}},
                    .rows = {{text_cell("x"), text_cell("only for programs"), number_cell(0.0125, "12.5")}},
                    .totals = {},
                    .notes = {"a note"},
                    .counts = {},
                    .counts_name = ""};
  const std::string text =
      page_text({.title = "t", .sections = {{.title = "s", .views = {{.name = "", .tables = {table}}}}}});
  EXPECT_THAT(text, HasSubstr("<th>for people</th><th class=\"right\">ms</th></tr>"));
  EXPECT_THAT(text, HasSubstr("<td>x</td><td class=\"right\" data-value=\"0.0125\">12.5</td></tr>"));
  EXPECT_THAT(text, Not(HasSubstr("only for programs")));
  EXPECT_THAT(text, HasSubstr("a note"));
}

// Its policy forbids to load anything, and it does not try.
TEST(HtmlPage, NeedsNothingElse) {
  const std::string text = page_text({.title = "t"});
  EXPECT_THAT(text, HasSubstr("default-src 'none'"));
  EXPECT_THAT(text, Not(HasSubstr("src=\"")));
  EXPECT_THAT(text, HasSubstr(base64("packed")));
}

TEST(HtmlPage, WithoutPlotlyItIsSaidWhereItComesFrom) {
  const test::TempDir directory;
  std::filesystem::create_directories(directory.path() / "simulate/report/html/assets");
  try {
    (void)read_page_assets(directory.path());
    FAIL() << "expected an error";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("plotly.min.js.gz is missing"));
    EXPECT_THAT(error.what(), HasSubstr("get_plotly.sh"));
  }
}

}  // namespace
}  // namespace tbdsim
