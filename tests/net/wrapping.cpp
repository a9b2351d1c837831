// Sequence numbers of channels have 32 bits: messages whose numbers wrap.
#include "net/ends.hpp"

namespace meshpost::test {
namespace {

using net::Channel;

struct WrappingChannels : Channels {
  WrappingChannels() {
    for (auto& end : ends) end->channel.begin_at(end->first = ~u32{0} - 2000);
  }
};
TEST_F(WrappingChannels, bring_all_in_order_both_ways) {
  talk(8000);
  settle();
  for (auto const& end : ends) {
    EXPECT_LT(end->channel.next(1 - end->self), 20'000u);  // it has wrapped
    EXPECT_EQ(end->received, 8000u);
    EXPECT_EQ(end->wrong, 0u);
    EXPECT_EQ(end->losses, 0u) << end->lost_by;
    EXPECT_EQ(end->read, end->to_read);
    EXPECT_GT(end->channel.writes_begun(1 - end->self), 20u);
  }
}
TEST_F(WrappingChannels, hold_a_sender_up_at_its_credit) {
  ends[0]->may_write = false;
  for (int tries = 0; tries < 100'000; ++tries) ends[0]->send();
  EXPECT_EQ(ends[0]->sent, Channel::most_unheard);
  settle();
  EXPECT_EQ(ends[1]->received, Channel::most_unheard);
}

}  // namespace
}  // namespace meshpost::test
