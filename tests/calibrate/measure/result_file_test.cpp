#include "calibrate/measure/run/result_file.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <sys/resource.h>

namespace tbdsim::measure {
namespace {
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Record row(std::int64_t m, const std::string& algorithm = "a") {
  Record r;
  r.gpu = "card";
  r.generation = "cublas13";
  r.precision = "fp32";
  r.op = "gemm";
  r.shape = {.m = m, .n = 1, .k = 1};
  r.layout = "NN";
  r.cache = "hot";
  r.algorithm = algorithm;
  r.time_s = 1e-5;
  r.source = "test";
  return r;
}

class ResultFileTest : public testing::Test {
 protected:
  ResultFileTest()
      : path_(testing::TempDir() + "result_" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove(path_);
  }
  ~ResultFileTest() override { std::filesystem::remove(path_); }

  [[nodiscard]] std::string content() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  [[nodiscard]] bool holds(const ResultFile& file, const Record& r) const {
    return file.has(r.gpu, r.generation, point_key(r));
  }
  // A file of three points, the second with two rows.
  void write_three() const {
    ResultFile file(path_);
    file.append(std::vector<Record>{row(1)});
    file.append(std::vector<Record>{row(2, "a"), row(2, "b")});
    file.append(std::vector<Record>{row(3)});
  }
  [[nodiscard]] std::string error_of_opening() const {
    try {
      const ResultFile file(path_);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::string path_;
};

TEST_F(ResultFileTest, StartsWithAHeaderAndGrows) {
  write_three();
  EXPECT_THAT(read_records(path_).records, SizeIs(4));
}

TEST_F(ResultFileTest, ContinuesWithWhatIsThere) {
  write_three();
  ResultFile file(path_);
  EXPECT_EQ(file.rows(), 4U);
  EXPECT_THAT(file.notes(), IsEmpty());
  EXPECT_TRUE(holds(file, row(2)));
  EXPECT_FALSE(holds(file, row(4)));
  EXPECT_FALSE(file.has("another card", "cublas13", point_key(row(2))));
  EXPECT_FALSE(file.has("card", "cublas12", point_key(row(2))));
  file.append(std::vector<Record>{row(4)});
  EXPECT_TRUE(holds(file, row(4)));
  EXPECT_THAT(read_records(path_).records, SizeIs(5));
}

TEST_F(ResultFileTest, DropsAnUnfinishedLineAndItsPointWhereverItWasCut) {
  write_three();
  const std::string whole = content();
  const std::size_t third = whole.find(",3,1,1,");
  ASSERT_NE(third, std::string::npos);
  const std::size_t second_b = whole.rfind('\n', whole.find(",b,")) + 1;
  // Within the second point's second row: its first row goes too, because the point is measured again as a
  // whole.
  for (std::size_t length = second_b + 1; length < whole.find('\n', second_b); ++length) {
    write(whole.substr(0, length));
    ResultFile file(path_);
    ASSERT_THAT(file.notes(), SizeIs(1)) << length;
    EXPECT_TRUE(holds(file, row(1))) << length;
    EXPECT_FALSE(holds(file, row(2))) << length;
    EXPECT_EQ(content(), whole.substr(0, whole.rfind('\n', whole.find(",a,", whole.find(",2,1,1,"))) + 1))
        << length;
  }
}

TEST_F(ResultFileTest, AResumedFileEqualsAnUninterruptedOne) {
  write_three();
  const std::string whole = content();
  write(whole.substr(0, whole.size() - 5));
  {
    ResultFile file(path_);
    // The cut may have hit the point before as well (its rows end where the cut line began): measure what is
    // missing.
    for (const auto& rows : {std::vector<Record>{row(1)}, {row(2, "a"), row(2, "b")}, {row(3)}}) {
      if (!holds(file, rows[0])) file.append(rows);
    }
  }
  EXPECT_EQ(content(), whole);
}

TEST_F(ResultFileTest, StartsAnewAfterAHalfWrittenHeader) {
  write("gpu,generat");
  ResultFile file(path_);
  EXPECT_THAT(file.notes(), SizeIs(1));
  file.append(std::vector<Record>{row(1)});
  EXPECT_THAT(read_records(path_).records, SizeIs(1));
}

TEST_F(ResultFileTest, RefusesToTouchAFileOfAnotherKind) {
  write("name,price\nx,1\n");
  EXPECT_THAT(error_of_opening(), HasSubstr("is no record file"));
  EXPECT_EQ(content(), "name,price\nx,1\n");
}

TEST_F(ResultFileTest, RefusesDirectoriesPipesAndPathsThatCannotBeMade) {
  path_ = testing::TempDir();
  EXPECT_THAT(error_of_opening(), HasSubstr("cannot be written"));
  path_ = "/dev/null";
  EXPECT_THAT(error_of_opening(), HasSubstr("no regular file"));
  path_ = testing::TempDir() + "absent/r.csv";
  EXPECT_THAT(error_of_opening(), HasSubstr("No such file"));
  path_ = testing::TempDir() + "nothing_to_remove";
}

TEST_F(ResultFileTest, RefusesASecondWriter) {
  const ResultFile file(path_);
  EXPECT_THAT(error_of_opening(), HasSubstr("another run is writing it"));
}

// A file size limit stands in for a full disk: write() then fails with a reason in the middle of a row.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    previous_action_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &previous_);
    const rlimit limit{bytes, previous_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &previous_);
    std::signal(SIGXFSZ, previous_action_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit previous_{};
  void (*previous_action_)(int) = nullptr;
};

TEST_F(ResultFileTest, AFullDiskLosesNothing) {
  write_three();
  const std::string before = content();
  std::string message;
  {
    ResultFile file(path_);
    const FileLimit limit(before.size() + 20);
    try {
      file.append(std::vector<Record>{row(4)});
    } catch (const UsageError& error) {
      message = error.what();
    }
  }
  EXPECT_THAT(message, HasSubstr("cannot be written: File too large; the 4 rows before are safe"));
  EXPECT_EQ(content(), before);
}

}  // namespace
}  // namespace tbdsim::measure
