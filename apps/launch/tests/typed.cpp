#include "typed.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace meshpost::launch {
namespace {

// A job's standard input, and what is handed on in a round of waiting.
class TypedText : public testing::Test {
 protected:
  TypedText() {
    EXPECT_EQ(::pipe(ends_.data()), 0);
    EXPECT_EQ(::dup2(ends_[0], 0), 0);
    typed_.to([this](std::string bytes) { given_.push_back(std::move(bytes)); });
  }
  ~TypedText() override { ::close(ends_[0]), ::close(ends_[1]), ::dup2(own_, 0), ::close(own_); }

  void type(std::string const& text) {
    EXPECT_EQ(::write(ends_[1], text.data(), text.size()), std::ssize(text));
  }
  std::vector<std::string> given() {
    Poller poller;
    typed_.watch(poller);
    poller.wait(Clock::now());
    return std::exchange(given_, {});
  }

  Typed typed_;

 private:
  int own_ = ::dup(0);
  std::array<int, 2> ends_{};
  std::vector<std::string> given_;
};

using Texts = std::vector<std::string>;

TEST_F(TypedText, waits_until_somebody_can_take_it) {
  type("a");
  EXPECT_EQ(given(), Texts());
  typed_.taken();
  EXPECT_EQ(given(), Texts{"a"});
}

TEST_F(TypedText, is_under_way_once_at_a_time) {
  typed_.taken();
  type("a");
  EXPECT_EQ(given(), Texts{"a"});
  type("b");
  EXPECT_EQ(given(), Texts());
  typed_.taken();
  EXPECT_EQ(given(), Texts{"b"});
}

}  // namespace
}  // namespace meshpost::launch
