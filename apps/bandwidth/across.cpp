#include "across.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "common/gather.hpp"

namespace bandwidth {

using namespace meshpost;

namespace {

constexpr u64 border = 4096;  // before and after a target: no copy may touch it

u32 process_of(Place const& place) { return static_cast<u32>(std::stoul(place.kind)); }

template <class T, class Name>
void keep(std::vector<T>& all, std::vector<std::string> const& wanted, char const* option,
          Name const& name) {
  if (wanted.empty()) return;
  std::string there;
  for (auto const& one : all) there += (there.empty() ? "" : ", ") + name(one);
  for (auto const& one : wanted)
    if (std::ranges::find(all, one, name) == all.end())
      throw Error(Kind::bad_argument, std::string(option) + " " + one,
                  "this job has none of that name", "there are " + there);
  std::erase_if(all,
                [&](T const& one) { return std::ranges::find(wanted, name(one)) == wanted.end(); });
}

std::vector<u8> random_bytes(Plan const& plan, Place const& place, Bytes size) {
  std::mt19937_64 random(plan.seed + std::hash<std::string>{}(place.name()));
  std::vector<u8> bytes(size);
  for (u64 i = 0; i < size; i += sizeof(u64)) {
    u64 const word = random();
    std::memcpy(bytes.data() + i, &word, std::min<u64>(sizeof word, size - i));
  }
  return bytes;
}

// A place's memory, exposed: random bytes of its own, and room for the copied bytes.
struct Area {
  Allocation source_memory, target_memory;  // in its own process
  Exposed source, target;

  Area(JobMemory& job, Plan const& plan, Place const& place, Bytes size) {
    Bytes const room{size + 2 * border};
    if (process_of(place) == job.process()) {
      source_memory = allocate(job, plan, place, size);
      target_memory = allocate(job, plan, place, room);
      auto const bytes = random_bytes(plan, place, size);
      copy(source_memory.data(), bytes.data(), size);
    }
    source = job.expose(source_memory.data(), source_memory.size(), "source " + place.name());
    target = job.expose(target_memory.data(), target_memory.size(), "target " + place.name());
  }
  static Allocation allocate(JobMemory& job, Plan const& plan, Place const& place, Bytes size) {
    Place const here{place.kind.substr(place.kind.find('/') + 1), place.number};
    if (here.kind == "shared") return job.allocate(size);
    return allocate_at(here, plan.devices, size);
  }
};

// Copies of one process, between its own area and another's, in one variant.
class Pair {
 public:
  Pair(Area const& from, Area const& to, Place const& source, Place const& target, bool puts,
       Bytes size)
      : puts_(puts),
        own_source_(from.source_memory.as<char>()),
        own_target_(to.target_memory.as<char>()),
        from_(from.source.at(process_of(source), 0, size)),
        to_(to.target.at(process_of(target), border, size)),
        room_(to.target.at(process_of(target), 0, Bytes{size + 2 * border})) {
    auto const& there =
        puts ? to.target.part(process_of(target)) : from.source.part(process_of(source));
    path_ = to_string(there.path);
  }
  void make() const {
    if (puts_) copy(to_, own_source_);
    else copy(own_target_ + border, from_);
  }
  std::string const& path() const { return path_; }
  /// All bytes of the target and its borders are `poison`.
  void fill(u8 poison) const {
    std::vector<u8> const bytes(room_.size(), poison);
    if (puts_) copy(room_, bytes.data());
    else copy(own_target_, bytes.data(), room_.size());
  }
  std::vector<u8> read() const {
    std::vector<u8> bytes(room_.size());
    if (puts_) copy(bytes.data(), room_);
    else copy(bytes.data(), own_target_, room_.size());
    return bytes;
  }

 private:
  bool puts_;
  char *own_source_, *own_target_;
  RemoteBytes from_, to_, room_;
  std::string path_;
};

std::string check(Pair const& pair, std::vector<u8> const& expected, u8 poison) {
  pair.fill(poison);
  pair.make();
  auto const found = pair.read();
  auto const begin = found.begin() + border, end = found.end() - border;
  auto const wrong = std::mismatch(begin, end, expected.begin());
  if (wrong.first != end) return "byte " + std::to_string(wrong.first - begin) + " is wrong";
  auto const touched = [&](u8 byte) { return byte != poison; };
  if (std::any_of(found.begin(), begin, touched) || std::any_of(end, found.end(), touched))
    return "bytes beside the target were written";
  return "";
}

void measure_one(Result& result, Pair const& pair, Plan const& plan) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  pair.make();  // buffers of the way, page tables
  for (unsigned i = 0; i < plan.repetitions; ++i) {
    auto const begin = Clock::now();
    pair.make();
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::ranges::sort(times);
  result.seconds = times[times.size() / 2];
  result.least = times.front();
  result.path = pair.path();
  if (!plan.check) return;
  auto const expected = random_bytes(plan, result.from, result.size);
  result.problem = check(pair, expected, static_cast<u8>(0x3b + plan.seed));
  result.checked = true;
}

nlohmann::json pack(Result const& one) {
  return {one.from.kind, one.from.number, one.to.kind, one.to.number, one.variant, one.size.value,
          one.seconds,   one.least,       one.checked, one.problem,   one.path};
}
Result unpack(nlohmann::json const& one) {
  return {{one[0], one[1]}, {one[2], one[3]}, one[4], Bytes{one[5]}, one[6],
          one[7],           one[8],           one[9], one[10]};
}

bool staged(Variant const& variant) { return variant.name.ends_with("_staged"); }

}  // namespace

Plan plan_across(JobMemory& job, std::string const& devices, std::vector<std::string> const& places,
                 std::vector<std::string> const& variants, u64 seed) {
  Plan plan;
  plan.devices = open_devices(devices_in_job(devices, job.process()));
  use_devices_for_copies(plan.devices);
  plan.fingerprint = fingerprint(plan.devices);
  auto const prefix = std::to_string(job.process()) + "/";
  auto mine = nlohmann::json::array();  // not a list of pairs: that would be an object
  mine.push_back({prefix + "pageable", 0});
  mine.push_back({prefix + "shared", 0});
  if (!plan.devices[0]->in_host_memory()) mine.push_back({prefix + "pinned", 0});
  for (auto const& device : plan.devices)
    mine.push_back({prefix + std::string(device->kind()), device->index()});
  plan.seed = std::stoull(gather(job, std::to_string(seed)).front());
  for (auto const& text : gather(job, mine.dump()))
    for (auto const& place : nlohmann::json::parse(text))
      plan.places.push_back({place[0], place[1]});
  plan.variants = {{"put", "the source's process copies", {}},
                   {"get", "the target's process copies", {}}};
  bool far = false;
  auto const parts = job.expose(nullptr, Bytes{}, "nothing");
  for (u32 process = 0; process < job.processes(); ++process)
    far |= process != job.process() && !parts.part(process).same_node;
  if (!far) {
    plan.variants.push_back({"put_staged", "a put through a thread of the target's process", {}});
    plan.variants.push_back({"get_staged", "a get through a thread of the source's process", {}});
  }
  keep(plan.places, places, "--places", [](Place const& place) { return place.name(); });
  keep(plan.variants, variants, "--variants", [](Variant const& one) { return one.name; });
  return plan;
}

std::vector<Result> measure_across(JobMemory& job, Plan const& plan) {
  nlohmann::json mine = nlohmann::json::array();
  for (bool const through_owner : {false, true}) {
    if (std::ranges::none_of(plan.variants,
                             [&](auto const& one) { return staged(one) == through_owner; }))
      continue;
    std::optional<JobMemory> slow;  // collective: all processes have the same variants
    if (through_owner) slow.emplace(JobMemoryOptions{{}, CopyPath::staged});
    auto& paths = slow ? *slow : job;
    auto const largest = *std::ranges::max_element(plan.sizes);
    std::map<Place, Area> areas;
    for (auto const& place : plan.places) areas.try_emplace(place, paths, plan, place, largest);
    for (u32 process = 0; process < paths.processes(); ++process) {
      meet(paths);
      if (process != paths.process()) continue;
      for (auto const& from : plan.places)
        for (auto const& to : plan.places)
          for (auto const& variant : plan.variants) {
            bool const puts = variant.name.starts_with("put");
            bool const between = process_of(from) != process_of(to);
            if (staged(variant) != through_owner || !between ||
                process_of(puts ? from : to) != process)
              continue;
            for (auto const size : plan.sizes) {
              Result result{from, to, variant.name, size, 0, 0, false, "", ""};
              try {
                measure_one(result, Pair(areas.at(from), areas.at(to), from, to, puts, size), plan);
              } catch (
                  Error const& error) {  // of this pair only: the other pairs are still measured
                result.problem = error.what();
              }
              mine.push_back(pack(result));
            }
          }
    }
    meet(paths);
  }
  std::vector<Result> results;
  for (auto const& text : gather(job, mine.dump()))
    for (auto const& one : nlohmann::json::parse(text)) results.push_back(unpack(one));
  return results;
}

}  // namespace bandwidth
