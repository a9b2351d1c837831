#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

namespace bandwidth {

using namespace meshpost;

Areas::Areas(Plan const& plan, Place const& place, Bytes size) {
  for (auto const& device : plan.devices)
    if (device->name() == place.name()) device_ = device.get();
  source_ = allocate_at(place, plan.devices, size);
  target_ = allocate_at(place, plan.devices, Bytes{size + 2 * border});
  if (!plan.check) return;
  std::mt19937_64 random(plan.seed + std::hash<std::string>{}(place.name()));
  expected_.resize(size);
  for (u64 i = 0; i < size; i += sizeof(u64)) {
    u64 const word = random();
    std::memcpy(expected_.data() + i, &word, std::min<u64>(sizeof word, size - i));
  }
  if (device_) device_->write(source_.data(), expected_.data(), size);
  else std::memcpy(source_.data(), expected_.data(), size);
}

void Areas::fill(void* memory, unsigned char value, Bytes size) {
  if (device_) device_->fill(memory, value, size);
  else std::memset(memory, value, size);
}

std::vector<unsigned char> Areas::read(void const* memory, Bytes size) {
  std::vector<unsigned char> bytes(size);
  if (device_) device_->read(bytes.data(), memory, size);
  else std::memcpy(bytes.data(), memory, size);
  return bytes;
}

void Areas::poison(Bytes size) {
  poison_ = static_cast<unsigned char>(poison_ + 0x3b);
  fill(target_.data(), poison_, Bytes{size + 2 * border});
}

std::string Areas::compare(Areas const& from, Bytes size) {
  auto const found = read(target_.data(), Bytes{size + 2 * border});
  auto const* const bytes = found.data() + border;
  auto const wrong = std::mismatch(bytes, bytes + size.value, from.expected_.data());
  if (wrong.first != bytes + size.value)
    return "byte " + std::to_string(wrong.first - bytes) + " is wrong" +
           (*wrong.first == poison_ ? ": it did not arrive" : "");
  auto const touched = [&](unsigned char byte) { return byte != poison_; };
  if (std::any_of(found.data(), bytes, touched)) return "bytes before the target were written";
  if (std::any_of(bytes + size.value, found.data() + found.size(), touched))
    return "bytes after the target were written";
  return "";
}

namespace {

double timed(Variant::Copier const& copy, void* target, void const* source, Bytes size) {
  auto const begin = std::chrono::steady_clock::now();
  copy(target, source, size);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void measure_one(Result& result, Variant::Copier const& copy, Areas& from, Areas& to,
                 Plan const& plan) {
  std::vector<double> times;
  copy(to.target(), from.source(), result.size);  // buffers of the way, page tables
  for (unsigned i = 0; i < plan.repetitions; ++i)
    times.push_back(timed(copy, to.target(), from.source(), result.size));
  std::ranges::sort(times);
  result.seconds = times[times.size() / 2];
  result.least = times.front();
  if (!plan.check) return;
  to.poison(result.size);
  copy(to.target(), from.source(), result.size);
  result.problem = to.compare(from, result.size);
  result.checked = true;
}

}  // namespace

std::vector<Result> measure(Plan const& plan,
                            std::function<void(unsigned, unsigned)> const& progress) {
  auto const largest = *std::ranges::max_element(plan.sizes);
  std::map<Place, Areas> areas;
  for (auto const& place : plan.places) areas.try_emplace(place, plan, place, largest);
  auto const all = static_cast<unsigned>(plan.places.size() * plan.places.size());
  unsigned done = 0;
  std::vector<Result> results;
  for (auto const& from : plan.places)
    for (auto const& to : plan.places) {
      for (auto const& variant : plan.variants) {
        try {
          auto const copy = variant.make(from, to);
          if (!copy) continue;
          for (auto const size : plan.sizes) {
            results.push_back({from, to, variant.name, size, 0, 0, false, ""});
            measure_one(results.back(), copy, areas.at(from), areas.at(to), plan);
          }
        } catch (Error const& error) {  // of this pair only: the other pairs are still measured
          if (results.empty() || results.back().seconds > 0 ||
              results.back().variant != variant.name)
            results.push_back({from, to, variant.name, largest, 0, 0, false, ""});
          results.back().problem = error.what();
        }
      }
      progress(++done, all);
    }
  return results;
}

}  // namespace bandwidth
