#include "world/mapping_trial.hpp"

#include <algorithm>
#include <map>

#include "meshpost/device/backend.hpp"
#include "world/wire.hpp"

namespace meshpost {
namespace {

constexpr char const* trial_operation = "find out who maps memory of devices";
constexpr u64 least_piece = u64{2} << 20;  // the heap's smallest growth

std::string pack(std::vector<Refusal> const& refusals) {
  wire::Packer packer;
  for (auto const& [process, owner, device, kind, error] : refusals)
    packer.value(process).value(owner).text(device).text(kind).text(wire::pack(error));
  return packer.take();
}

void unpack(std::string const& bytes, std::vector<Refusal>& refusals) {
  for (wire::Unpacker unpacker(bytes); !unpacker.at_end();) {
    auto const process = unpacker.value<u32>(), owner = unpacker.value<u32>();
    auto const device = unpacker.text(), kind = unpacker.text();
    refusals.push_back({process, owner, device, kind, wire::unpack_error(unpacker.text())});
  }
}

// True if a process other than the offer's has devices of its kind.
bool concerns_others(Offer const& offer, std::vector<Offer> const& offers) {
  return std::ranges::any_of(offers, [&](Offer const& other) {
    return other.kind == offer.kind && other.process != offer.process;
  });
}

// The pieces of a node's devices. For each kind of this process's devices there is a range of
// addresses, in which each offer has its place.
class Trial {
 public:
  Trial(u32 me, std::vector<Offer> offers) : me_(me), offers_(std::move(offers)) {}

  /// Makes the pieces for the other processes. Returns nothing if a piece can't be made or shared,
  /// so nobody maps any.
  std::vector<Descriptor> make(std::vector<std::shared_ptr<Device>> const& own) try {
    std::map<std::string, SpaceDevices> devices;
    for (u32 const place : places_of(me_)) {
      auto& of_kind = devices[offers_[place].kind];
      of_kind.own.push_back(*std::ranges::find(own, offers_[place].device, &Device::name));
      of_kind.numbers.push_back(place);
      of_kind.count = static_cast<u32>(offers_.size());
    }
    for (auto const& [kind, of_kind] : devices) {
      auto& space = spaces_[kind] = backend(kind).reserve(of_kind);
      space->extend({}, size_in(*space));
    }
    std::vector<Descriptor> files;
    for (u32 const place : places_of(me_)) {
      auto& space = *spaces_[offers_[place].kind];
      files.emplace_back(space.share(place, {}, size_in(space)));
    }
    return files;
  } catch (Error const& error) {
    for (u32 const place : places_of(me_))
      for (auto const& other : offers_)
        if (other.kind == offers_[place].kind && other.process != me_)
          refuse(other.process, offers_[place], error);
    return {};
  }

  void map(u32 process, u32 number, int file) {
    u32 const place = places_of(process).at(number);
    auto const space = spaces_.find(offers_[place].kind);
    if (space == spaces_.end()) return;  // no device of its kind here
    try {
      space->second->adopt(place, {}, size_in(*space->second), file);
    } catch (Error const& error) {
      refuse(me_, offers_[place], error);
    }
  }

  std::vector<Refusal> const& refused() const { return refused_; }

 private:
  static Bytes size_in(AddressSpace const& space) {
    return Bytes{std::max<u64>(least_piece, space.granularity())};
  }
  std::vector<u32> places_of(u32 process) const {
    std::vector<u32> places;
    for (u32 place = 0; place < offers_.size(); ++place)
      if (offers_[place].process == process) places.push_back(place);
    return places;
  }
  void refuse(u32 process, Offer const& offer, Error const& error) {
    auto const same = [&](Refusal const& known) {
      return known.process == process && known.owner == offer.process &&
             known.device == offer.device;
    };
    if (std::ranges::none_of(refused_, same))
      refused_.push_back({process, offer.process, offer.device, offer.kind, error});
  }

  u32 me_;
  std::vector<Offer> offers_;  // of the node: those that other processes there try to map
  std::map<std::string, std::unique_ptr<AddressSpace>> spaces_;
  std::vector<Refusal> refused_;
};

}  // namespace

std::vector<Refusal> try_to_map(ProcessGroup const& group, std::vector<Offer> const& all,
                                std::vector<std::shared_ptr<Device>> const& own) {
  auto const concerns = [](std::vector<Offer> const& offers) {
    return [&offers](Offer const& offer) { return concerns_others(offer, offers); };
  };
  if (std::ranges::none_of(all, concerns(all))) return {};
  std::vector<Offer> node, here;
  std::ranges::copy_if(all, std::back_inserter(node),
                       [&](Offer const& offer) { return !group.far(offer.process); });
  std::ranges::copy_if(node, std::back_inserter(here), concerns(node));
  Trial trial(group.number(), std::move(here));
  auto const files = trial.make(own);
  group.node().share(files,
                     [&](u32 process, u32 number, int file) { trial.map(process, number, file); });
  std::vector<Refusal> refusals;  // the pieces are freed when all have tried
  for (auto const& bytes : group.exchange(trial_operation, pack(trial.refused())))
    unpack(bytes, refusals);
  return refusals;
}

}  // namespace meshpost
