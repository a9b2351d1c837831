#include "rma/jobs/reaching.hpp"

#include <cstdio>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "meshpost/base/error.hpp"
#include "net/wrapper.hpp"
#if MESHPOST_TEST_NETWORK
#include "net/ofi/ofi.hpp"
#endif

namespace meshpost::test {
namespace {

class Reaching : public net::Wrapper {
 public:
  enum class Reach { all, none_though_it_says_so, none };

  Reaching(std::unique_ptr<net::Engine> engine, Reach reach)
      : Wrapper(std::move(engine)), reach_(reach) {}
  ~Reaching() override {
    if (into_) std::printf("wrote into a box\n");
    if (out_of_) std::printf("wrote out of a box\n");
  }
  Reaching(Reaching const&) = delete;
  Reaching& operator=(Reaching const&) = delete;

  bool reaches(std::string_view kind) const override {
    return kind == "boxed" && reach_ != Reach::none;
  }
  std::string expose_device(void* memory, Bytes size, std::string_view kind, u32 index) override {
    if (reach_ != Reach::all) return Engine::expose_device(memory, size, kind, index);
    sources_[static_cast<char const*>(memory)] = size;
    return "box " + Wrapper::expose(memory, size);
  }
  net::RemoteMemory import(u32 peer, std::string const& exposed) override {
    bool const box = exposed.starts_with("box ");
    auto const memory = Wrapper::import(peer, box ? exposed.substr(4) : exposed);
    if (box) boxes_.emplace(peer, memory.key);
    return memory;
  }
  bool write(u32 peer, std::span<char const> source, net::RemoteMemory const& target, u64 offset,
             u32 data, u64 cookie) override {
    into_ |= boxes_.contains({peer, target.key});
    auto const after = sources_.upper_bound(source.data());
    if (after != sources_.begin()) {
      auto const& [begin, size] = *std::prev(after);
      out_of_ |= source.data() + source.size() <= begin + size;
    }
    return Wrapper::write(peer, source, target, offset, data, cookie);
  }

 private:
  Reach reach_;
  std::map<char const*, u64> sources_;
  std::set<std::pair<u32, u64>> boxes_;
  bool into_ = false, out_of_ = false;
};

}  // namespace

void register_reaching() {
  static std::once_flag once;
  std::call_once(once, [] {
    using enum Reaching::Reach;
    for (auto const& [name, reach] :
         {std::pair("reaching", all), {"unreaching", none_though_it_says_so}, {"blind", none}})
      net::register_engine(name,
                           [reach](std::string const& rest, std::string const& bind, net::Gpus) {
                             return std::make_unique<Reaching>(net::make_engine(rest, bind), reach);
                           });
#if MESHPOST_TEST_NETWORK
    net::register_engine("copying", [](std::string const& rest, std::string const& bind,
                                       net::Gpus gpus) {
      auto const wanted = gpus == net::Gpus::no ? gpus : net::Gpus::yes;
      return std::make_unique<net::ofi::Ofi>(rest, bind, wanted, net::ofi::Quirks{.copies = true});
    });
#endif
  });
}

}  // namespace meshpost::test
