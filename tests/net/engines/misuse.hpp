#pragma once
#include "net/engines/group.hpp"
#include "support/errors.hpp"

namespace meshpost::net::test {

/// Errors of every engine; `engine` is number 0 of two that are connected.
inline void expect_misuse_refused(Engine& engine) {
  using meshpost::test::error_of, meshpost::test::says;
  EXPECT_TRUE(says(error_of([&] { engine.send(0, std::string("to myself"), {}, 0); }),
                   Kind::bad_argument, {"peer 0"}));
  EXPECT_TRUE(says(error_of([&] { engine.send(2, std::string("to nobody"), {}, 0); }),
                   Kind::bad_argument, {"peer 2"}));
  std::string const much(engine.most() + 1, 'm');
  EXPECT_TRUE(says(error_of([&] { engine.send(1, much, {}, 0); }), Kind::bad_argument,
                   {std::to_string(much.size()), std::to_string(engine.most())}));
  EXPECT_TRUE(says(error_of([&] { engine.connect({}); }), Kind::misuse, {"before"}));
  EXPECT_TRUE(
      says(error_of([&] { engine.expose(nullptr, Bytes{0}); }), Kind::bad_argument, {"0 bytes"}));
}

}  // namespace meshpost::net::test
