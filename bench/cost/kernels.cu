// One operation in each kernel, for tools/kernel_cost.py, which prints the resources of a
// multiprocessor that each takes.
#include <meshpost/rma/kernel.hpp>
#include <meshpost/rma/rank.hpp>

#define ENTRY(lanes, name)                                                              \
  template __global__ void detail::gpu_entry<lanes, name>(__grid_constant__ name const, \
                                                          __grid_constant__ RunState const);
#define OPERATION(name, ...)                                       \
  namespace cost {                                                 \
  struct name {                                                    \
    Window<double> window;                                         \
    Communicator all;                                              \
    MESHPOST_FN void operator()(Rank& self) const { __VA_ARGS__; } \
  };                                                               \
  }                                                                \
  ENTRY(false, cost::name)                                         \
  ENTRY(true, cost::name)

namespace meshpost {

OPERATION(nothing, (void)self)
OPERATION(wait, self.wait(window, Tag{0}))
OPERATION(notify, self.notify(window, RankId{1}, Tag{0}))
OPERATION(put, self.put(window.at(RankId{1}), window.local(self)))
OPERATION(put_notify, self.put_notify(window.at(RankId{1}), window.local(self), Tag{0}))
OPERATION(put_notify_and_wait, self.put_notify(window.at(RankId{1}), window.local(self), Tag{0});
          self.wait(window, Tag{0}))
OPERATION(
    prepared_put_and_wait,
    auto const put = self.prepare_put_notify(window.at(RankId{1}), window.local(self), Tag{0});
    auto const wait = self.prepare_wait(window, Tag{0}); for (u32 i = 0; i < 100; ++i) {
      self.put_notify(put);
      self.wait(wait);
    })
OPERATION(get, self.get(window.local(self), window.at(RankId{1})))
OPERATION(wait_until, self.wait_until(window.local(self), Compare::greater, 1.0))
OPERATION(barrier, self.barrier())
OPERATION(broadcast, self.broadcast(all, window.local(self), RankId{0}))
OPERATION(all_gather, self.all_gather(all, window.local(self), window.local(self)))
OPERATION(all_reduce, self.all_reduce(all, window.local(self), Sum{}))

}  // namespace meshpost
