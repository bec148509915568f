#include "hwspecs/base/file.h"

#include <cstdio>
#include <sstream>

#include <gtest/gtest.h>

#include "hwspecs/base/error.h"
#include "tests/hwspecs/message_of.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {
namespace fs = std::filesystem;
using test::TempDir;

template <class Call>
std::string refusal(Call call) {
  return test::message_of<UsageError>(call);
}

std::size_t files_in(const fs::path& directory) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory), {}));
}

TEST(ReadFile, ReturnsAllBytes) {
  const TempDir directory;
  const std::string content("a\0b\r\n\xff", 6);
  EXPECT_EQ(read_file(directory.write("f", content), 100), content);
  EXPECT_EQ(read_file(directory.write("empty", ""), 100), "");
}

TEST(ReadFile, StopsAtItsLimit) {
  const TempDir directory;
  const fs::path file = directory.write("f", std::string(10, 'x'));
  EXPECT_EQ(read_file(file, 10).size(), 10U);
  EXPECT_EQ(refusal([&] { (void)read_file(file, 9); }),
            file.string() + ": is larger than 9 bytes; expected a file written by hand");
}

// An endless file has no size.
TEST(ReadFile, StopsInAnEndlessFile) {
  EXPECT_EQ(refusal([] { (void)read_file("/dev/zero", 1000); }),
            "/dev/zero: is larger than 1000 bytes; expected a file written by hand");
}

TEST(ReadFile, SaysWhyItCannot) {
  const TempDir directory;
  const fs::path missing = directory.path() / "missing";
  EXPECT_EQ(refusal([&] { (void)read_file(missing, 10); }),
            missing.string() + ": cannot be read: No such file or directory");
  EXPECT_EQ(refusal([&] { (void)read_file(directory.path(), 10); }),
            directory.path().string() + ": is a directory; expected a file");
}

TEST(AtomicFile, AppearsWholeOnCommit) {
  const TempDir directory;
  const fs::path target = directory.write("out", "old");
  AtomicFile file(target);
  file.stream() << "new content";
  EXPECT_EQ(read_file(target, 100), "old");
  file.commit();
  EXPECT_EQ(read_file(target, 100), "new content");
  EXPECT_EQ(files_in(directory.path()), 1U);
}

TEST(AtomicFile, FollowsALinkThatStays) {
  const TempDir directory;
  const fs::path target = directory.write("out", "old"), link = directory.path() / "link";
  fs::create_symlink("out", link);
  AtomicFile file(link);
  file.stream() << "new";
  EXPECT_EQ(read_file(target, 100), "old");
  file.commit();
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_file(target, 100), "new");
}

// /dev/stdout leads to a plain file where a shell redirects it.
TEST(AtomicFile, WritesBehindWhatAnOpenFileHolds) {
  const TempDir directory;
  const fs::path target = directory.write("out", "before ");
  std::FILE* open = std::fopen(target.c_str(), "a");
  ASSERT_NE(open, nullptr);
  {
    AtomicFile file("/proc/self/fd/" + std::to_string(fileno(open)));
    file.stream() << "behind";
    file.commit();
  }
  std::fclose(open);
  EXPECT_EQ(read_file(target, 100), "before behind");
  EXPECT_EQ(files_in(directory.path()), 1U);
}

TEST(AtomicFile, TellsDevicesFromFilesInMemory) {
  EXPECT_TRUE(is_device("/dev/stdout"));
  EXPECT_TRUE(is_device("/dev/shm/../null"));
  EXPECT_TRUE(is_device("/proc/self/fd/1"));
  EXPECT_FALSE(is_device("/dev/shm/out.csv"));  // else a second run would write behind the first's
  EXPECT_FALSE(is_device("dev/out.csv"));
}

TEST(AtomicFile, CreatesItsTarget) {
  const TempDir directory;
  AtomicFile file(directory.path() / "out");
  file.stream() << "x";
  file.commit();
  EXPECT_EQ(read_file(directory.path() / "out", 100), "x");
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const TempDir directory;
  const fs::path target = directory.write("out", "old");
  {
    AtomicFile file(target);
    file.stream() << "half";
    file.stream().flush();
    EXPECT_EQ(files_in(directory.path()), 2U);
    AtomicFile never(directory.path() / "never");
  }
  EXPECT_EQ(read_file(target, 100), "old");
  EXPECT_EQ(files_in(directory.path()), 1U);
}

TEST(AtomicFile, SaysWhyItCannotBeCreated) {
  const TempDir directory;
  const fs::path inside = directory.path() / "no" / "out";
  EXPECT_EQ(refusal([&] { const AtomicFile file(inside); }),
            inside.string() + ": cannot be written: No such file or directory");
  EXPECT_EQ(refusal([&] { const AtomicFile file(directory.path()); }),
            directory.path().string() + ": cannot be written: Is a directory");
}

TEST(AtomicFile, SaysThatTheDiskIsFull) {
  AtomicFile file("/dev/full");
  file.stream() << "x";
  EXPECT_EQ(refusal([&] { file.commit(); }), "/dev/full: cannot be written: No space left on device");
}

TEST(AtomicFile, WritesIntoDevicesInsteadOfReplacingThem) {
  AtomicFile file("/dev/null");
  file.stream() << "x";
  file.commit();
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(OpenInput, GivesTheBytes) {
  const TempDir directory;
  std::ifstream in = open_input(directory.write("f", "a\r\nb"));
  std::ostringstream content;
  content << in.rdbuf();
  EXPECT_EQ(content.str(), "a\r\nb");
}

}  // namespace
}  // namespace tbdsim
