#include "net/engines/misuse.hpp"

namespace meshpost::net::test {
namespace {

using meshpost::test::error_of;
using meshpost::test::says;

TEST(OfiRefuses, a_provider_that_does_not_exist_and_names_those_that_do) {
  auto const error = error_of([] { make_engine("ofi:carrier_pigeon", ""); });
  EXPECT_TRUE(says(error, Kind::bad_environment, {"carrier_pigeon", "there are", "tcp"}));
}

TEST(OfiRefuses, an_address_that_this_host_does_not_have) {
  auto const error = error_of([] { make_engine("ofi:tcp", "203.0.113.77"); });
  EXPECT_TRUE(says(error, Kind::bad_environment, {"203.0.113.77"}));
}

TEST(OfiRefuses, texts_that_are_no_addresses) {
  auto const one = make_engine("ofi:tcp", ""), two = make_engine("ofi:tcp", "");
  auto const good = two->address();
  for (std::string const& bad :
       {std::string("nonsense"), std::string("ofi1///"), std::string("ofi1/tcp;ofi_rxm/12/zz"),
        std::string("ofi1/tcp;ofi_rxm/12/00"), good + "0", good + "00",
        good.substr(0, good.size() - 2), "x" + good,
        good.substr(0, good.rfind('/') + 1) + std::string(32, 'f')}) {
    auto const error = error_of([&] { make_engine("ofi:tcp", "")->connect({"", bad}); });
    EXPECT_TRUE(says(error, Kind::bad_environment, {"connect to peer 1"})) << bad;
  }
  auto const mine = error_of([&] { one->connect({one->address()}); });
  EXPECT_TRUE(says(mine, Kind::bad_environment, {"one number"}));
  auto const other = error_of([&] { make_engine("ofi:sockets", "")->connect({good}); });
  EXPECT_TRUE(says(other, Kind::bad_environment,
                   {"it uses tcp;ofi_rxm", "sockets", "the same MESHPOST_NET"}));
}

// The name of an endpoint over shm holds its process's number and its own.
TEST(Ofi, knows_peers_whose_names_are_longer_or_shorter) {
  std::vector<std::unique_ptr<Engine>> engines;
  for (int i = 0; i < 11; ++i) engines.push_back(make_engine("ofi:shm", ""));
  auto const first = engines.front()->address(), last = engines.back()->address();
  engines.front()->connect({"", last});
  engines.back()->connect({first, ""});
  Recorder seen;
  auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  bool sent = false;
  while (seen.messages.empty() && std::chrono::steady_clock::now() < until) {
    sent = sent || engines.front()->send(1, std::string("hello"), {}, 1);
    for (auto const* const one : {&engines.front(), &engines.back()}) (*one)->poll(seen);
  }
  EXPECT_EQ(seen.messages.size(), 1u);

  auto const endless = first.substr(0, first.size() - 2) + "30";
  auto const error = error_of([&] { make_engine("ofi:shm", "")->connect({endless}); });
  EXPECT_TRUE(says(error, Kind::bad_environment, {"connect to peer 0", "another kind of address"}));
}

TEST(OfiRefuses, texts_that_are_no_memory) {
  Group two(2, variants()[0]);
  char memory[8];
  auto const good = two.engines[1]->expose(memory, Bytes{8});
  for (std::string const& bad : {std::string(), std::string("ofimem1//"), good + "/", "x" + good,
                                 good + "z", std::string("ofimem1/123456789abcdef01/1")}) {
    auto const error = error_of([&] { two.engines[0]->import(1, bad); });
    EXPECT_TRUE(says(error, Kind::bad_environment, {"import of peer 1"})) << bad;
  }
}

TEST(OfiRefuses, what_is_not_allowed) {
  Group two(2, variants()[0]);
  auto& engine = *two.engines[0];
  expect_misuse_refused(engine);
  EXPECT_EQ(engine.most().value + 1, 16369u);  // what was refused above
}

TEST(Ofi, refuses_to_reach_gpus_where_it_cannot) {
  for (auto const* name : {"direct", "direct:ofi:tcp", "direct:ofi:shm"})
    EXPECT_TRUE(says(error_of([&] { make_engine(name, "", Gpus::if_faster); }),
                     Kind::bad_environment,
                     {"direct:ofi:", "memory of GPUs by itself", "built with CUDA", "staged:"}));
  EXPECT_FALSE(make_engine("direct:ofi:tcp", "", Gpus::no)->reaches("cuda"));  // it has none
  auto const staged = make_engine("staged:ofi:tcp", "", Gpus::yes);
  EXPECT_FALSE(staged->reaches("cuda"));
  int word = 0;
  EXPECT_TRUE(says(error_of([&] { staged->expose_device(&word, Bytes{sizeof word}, "cuda", 3); }),
                   Kind::bad_environment, {"cuda:3", "tcp"}));
}

}  // namespace
}  // namespace meshpost::net::test
