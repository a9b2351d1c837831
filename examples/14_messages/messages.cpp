// Messages between streams: the receiver says where they go, and may not know how long they are.
// Numbers go round all devices; each device passes on half of what it got.
#include <meshpost/meshpost.hpp>

#include <cstdio>
#include <span>
#include <vector>

namespace mp = meshpost;

constexpr mp::u64 most = 100'000;
constexpr mp::u32 rounds = 10;
constexpr mp::Tag numbers{0};

// One of a device of this process.
struct Place {
  mp::Device& device;
  mp::StreamEndpoint stream;
  mp::Allocation out = device.allocate(mp::Bytes{most * sizeof(mp::u32)}, mp::MemoryKind::device);
  mp::Allocation in = device.allocate(mp::Bytes{most * sizeof(mp::u32)}, mp::MemoryKind::device);
  mp::Allocation count = device.allocate(mp::Bytes{sizeof(mp::u64)}, mp::MemoryKind::device);

  std::span<mp::u32> sent(mp::u64 size) const { return {out.as<mp::u32>(), size}; }
  std::span<mp::u32> received() const { return {in.as<mp::u32>(), most}; }
};

// A device sends these in each round.
std::vector<mp::u32> numbers_of(mp::u32 device, mp::u64 size) {
  std::vector<mp::u32> values(size);
  for (mp::u64 i = 0; i < size; ++i) values[i] = 1000 * device + static_cast<mp::u32>(i);
  return values;
}

int main() try {
  mp::World world;
  mp::u32 const devices = world.device_count();
  mp::u32 const first = world.first_rank() / world.ranks_per_device();
  // [messages]
  mp::MessageWindow const mail(world, {.slots = 16, .name = "mail"});
  std::vector<Place> places;
  for (mp::u32 own = 0; own < world.devices().size(); ++own)
    places.push_back({*world.devices()[own], mp::StreamEndpoint(world, own)});  // stream 0 of each
  // [/messages]
  for (mp::u32 own = 0; own < places.size(); ++own) {
    auto const values = numbers_of(first + own, most);
    places[own].device.write(places[own].out.data(), values.data(), places[own].out.size());
  }
  // [requests]
  struct Requests {
    mp::StreamRequest send, receive;
  };
  std::vector<Requests> requests;
  for (mp::u32 own = 0; own < places.size(); ++own) {
    auto& place = places[own];
    mp::StreamId const next{(first + own + 1) % devices},
        previous{(first + own + devices - 1) % devices};
    mp::u64 const size = most / (1 + first + own);
    requests.push_back({place.stream.prepare().send(mail, next, place.sent(size), numbers),
                        place.stream.prepare().receive(mail, previous, place.received(), numbers,
                                                       place.count.as<mp::u64>())});
    if (own == 0)
      std::printf("%s\n",
                  place.stream.explain().send(mail, next, place.sent(size), numbers).c_str());
  }
  for (mp::u32 round = 0; round < rounds; ++round)
    for (mp::u32 own = 0; own < places.size(); ++own) {
      bool const sends_first = (first + own) % 2 == 0;  // if all did, all might wait for room
      if (sends_first) requests[own].send.post();
      requests[own].receive.post();
      if (!sends_first) requests[own].send.post();
    }
  for (auto& place : places) place.stream.synchronize();
  // [/requests]
  bool right = true;
  for (mp::u32 own = 0; own < places.size(); ++own) {
    auto const& place = places[own];
    mp::u32 const previous = (first + own + devices - 1) % devices;
    auto const expected = numbers_of(previous, most / (1 + previous));
    mp::u64 size = 0;
    place.device.read(&size, place.count.data(), mp::Bytes{sizeof size});
    std::vector<mp::u32> got(size);
    place.device.read(got.data(), place.in.data(), mp::Bytes{size * sizeof(mp::u32)});
    right &= got == expected;
  }
  std::printf("process %u: %zu devices received %u messages each%s\n", world.process(),
              places.size(), rounds, right ? "" : ", not all of them right");
  return right ? 0 : 1;
} catch (mp::Error const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
