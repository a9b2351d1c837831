// Secrets as text, and files that only their owner may read.
#include "world/secret.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/errors.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

TEST(Secret, goes_through_hexadecimal_digits_and_back) {
  for (int round = 0; round < 100; ++round) {
    Secret const secret(random_bytes());
    auto hex = secret.hex();
    ASSERT_EQ(hex.size(), 64u);
    auto const again = Secret::from_hex(hex);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->hex(), hex);
    EXPECT_EQ(again->bytes(), secret.bytes());
    for (char& c : hex) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    EXPECT_EQ(Secret::from_hex(hex)->hex(), secret.hex());
  }
}

TEST(Secret, is_64_hexadecimal_digits_and_nothing_else) {
  std::string const right(64, 'a');
  for (auto const& wrong : {std::string(), right.substr(1), right + 'a', right.substr(1) + 'g',
                            right.substr(1) + '\0', ' ' + right.substr(1), right.substr(1) + '\n',
                            "0x" + right.substr(2), std::string("-") + right.substr(1)})
    EXPECT_FALSE(Secret::from_hex(wrong)) << wrong;
}

TEST(Secret, random_ones_differ) { EXPECT_NE(random_bytes(), random_bytes()); }

class PrivateFile : public testing::Test {
 protected:
  PrivateFile() {
    std::string name = testing::TempDir() + "meshpost-XXXXXX";
    folder_ = mkdtemp(name.data());
    path_ = (folder_ / "file").string();
  }
  ~PrivateFile() override {
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
    std::filesystem::remove_all(folder_);
  }
  Error reading() const {
    return error_of([this] { read_private_file(path_); });
  }
  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(PrivateFile, is_written_for_its_owner_alone_and_replaces_another) {
  auto const before = umask(0);
  EXPECT_FALSE(find_private_file(path_));
  write_private_file(path_, "a longer text");
  write_private_file(path_, "text");
  umask(before);
  EXPECT_EQ(read_private_file(path_), "text");
  struct stat status{};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  using Files = std::filesystem::directory_iterator;
  EXPECT_EQ(std::distance(Files(folder_), Files()), 1);  // and no draft
}

TEST_F(PrivateFile, replaces_a_link_not_what_it_names) {
  auto const other = (folder_ / "other").string();
  std::ofstream(other) << "kept";
  std::filesystem::create_symlink(other, path_);
  write_private_file(path_, "text");
  EXPECT_EQ(read_private_file(path_), "text");
  std::string kept;
  std::ifstream(other) >> kept;
  EXPECT_EQ(kept, "kept");
}

TEST_F(PrivateFile, that_others_may_use_is_refused) {
  write_private_file(path_, "text");
  for (mode_t const mode : {0640u, 0604u, 0620u, 0602u, 0601u, 0666u}) {
    chmod(path_.c_str(), mode);
    EXPECT_TRUE(says(reading(), Kind::bad_environment, {path_, "others may use it", "chmod 600"}));
  }
  chmod(path_.c_str(), 0400);
  EXPECT_EQ(read_private_file(path_), "text");
}

TEST_F(PrivateFile, that_is_none_is_refused_and_never_waited_for) {
  EXPECT_TRUE(says(reading(), Kind::bad_environment,
                   {"use the file " + path_, "there is no such file on this host"}));
  mkfifo(path_.c_str(), 0600);
  EXPECT_TRUE(says(reading(), Kind::bad_environment, {path_, "no plain file"}));
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  chmod(path_.c_str(), 0700);
  EXPECT_TRUE(says(reading(), Kind::bad_environment, {path_, "no plain file"}));
  std::filesystem::remove(path_);
  std::filesystem::create_symlink("/dev/null", path_);
  EXPECT_TRUE(says(reading(), Kind::bad_environment, {path_, "symbolic link"}));
}

TEST_F(PrivateFile, in_a_folder_that_may_not_be_written_to_is_refused) {
  if (geteuid() == 0) path_ = "/proc/meshpost";  // root may write everywhere else
  std::filesystem::permissions(folder_, std::filesystem::perms::owner_read);
  EXPECT_TRUE(says(error_of([this] { write_private_file(path_, "text"); }), Kind::bad_environment,
                   {path_, "can't be written", "folder that you may write to"}));
}

}  // namespace
}  // namespace meshpost
