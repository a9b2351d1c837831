#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <deque>
#include <iterator>
#include <mutex>

#include "base/fork.hpp"
#include "device/backends.hpp"
#include "device/logical.hpp"
#include "meshpost/base/config.hpp"
#include "meshpost/device/backend.hpp"
#include "meshpost/device/cpu/block.hpp"
#include "meshpost/device/stream_exchange.hpp"

namespace meshpost {
namespace {

class Registry {
 public:
  Registry() {
    add(make_cpu_backend());
    if (auto cuda = make_cuda_backend()) add(std::move(cuda));
  }
  void add(std::unique_ptr<Backend> one) {
    std::scoped_lock const lock(mutex_);
    if (find(one->kind()))
      throw Error(Kind::bad_argument, "register_backend",
                  fmt::format("'{}' is registered already", one->kind()), "choose another name");
    auto more = all();
    more.push_back(one.get());
    owned_.push_back(std::move(one));
    all_ = &lists_.emplace_back(std::move(more));
  }
  /// The host's kind is the first.
  std::vector<Backend*> const& all() const {
    static std::vector<Backend*> const none;
    auto const* const list = all_.load(std::memory_order_acquire);
    return list ? *list : none;
  }
  Backend* find(std::string_view kind) const {
    auto const at = std::ranges::find(all(), kind, &Backend::kind);
    return at == all().end() ? nullptr : *at;
  }
  std::string names() const {
    std::string text;
    for (auto const* const one : all())
      text += (text.empty() ? "" : ", ") + std::string(one->kind());
    return text;
  }

 private:
  std::mutex mutex_;  // for add()
  std::vector<std::unique_ptr<Backend>> owned_;
  std::deque<std::vector<Backend*>> lists_;  // each was once the current one: read without a lock
  std::atomic<std::vector<Backend*> const*> all_{nullptr};  // the last of the lists
};

Registry& registry() {
  static auto* const one = new Registry;  // worlds may be destroyed after main
  return *one;
}

[[noreturn]] void refuse(std::string const& spec, std::string cause, std::string remedy) {
  throw Error(Kind::bad_argument, fmt::format("devices '{}'", spec), std::move(cause),
              std::move(remedy));
}

constexpr char const* forms =
    "cpu:4 is four CPU devices, cuda:0,2 two GPUs, cuda all of them; *9 at the end splits each of "
    "them into 9; cuda,cpu:2 is devices of both kinds";
constexpr unsigned long most_devices = 1024;

// "cuda" or "cuda:0,2"
std::vector<u32> chosen_indices(std::string const& spec, std::string_view list, Backend& kind) {
  std::vector<u32> indices;
  u32 const count = kind.count();
  if (list.empty())
    for (u32 i = 0; i < count; ++i) indices.push_back(i);
  for (std::size_t from = 0; from < list.size() || (from == list.size() && from > 0);) {
    auto const comma = std::min(list.find(',', from), list.size());
    auto const index = parse_number(list.substr(from, comma - from));
    if (!index)
      refuse(spec, fmt::format("'{}' is not a device number", list.substr(from, comma - from)),
             forms);
    if (*index >= count)
      refuse(spec,
             count == 0 ? fmt::format("there is no {} device: {}", kind.kind(), kind.why_none())
                        : fmt::format("there is no {}:{}; this process has {} such devices",
                                      kind.kind(), *index, count),
             count == 0 ? "use cpu:N" : fmt::format("use numbers from 0 to {}", count - 1));
    if (std::ranges::find(indices, *index) != indices.end())
      refuse(spec, fmt::format("{}:{} is named twice", kind.kind(), *index),
             "name each device once");
    indices.push_back(static_cast<u32>(*index));
    from = comma + 1;
    if (comma == list.size()) break;
  }
  if (indices.empty())
    refuse(spec, fmt::format("there is no {} device: {}", kind.kind(), kind.why_none()),
           "use cpu:N");
  return indices;
}

// "cpu" or "cpu:4": CPU devices are made, not found.
std::vector<u32> first_indices(std::string const& spec, std::string_view count) {
  auto const number = count.empty() ? std::optional(2ul) : parse_number(count);
  if (!number) refuse(spec, fmt::format("'{}' is not a number of CPU devices", count), forms);
  if (*number == 0 || *number > most_devices)
    refuse(spec,
           fmt::format("it asks for {} CPU devices; there may be 1 to {}", *number, most_devices),
           forms);
  std::vector<u32> indices(*number);
  for (u32 i = 0; i < indices.size(); ++i) indices[i] = i;
  return indices;
}

// The text after '*': the number of logical devices of each device.
u32 parts_of(std::string const& spec, std::string_view parts) {
  if (parts.empty()) refuse(spec, "nothing follows the '*'", forms);
  auto const number = parse_number(parts);
  if (!number)
    refuse(
        spec, fmt::format("'{}' is not a number of logical devices", parts),
        fmt::format("write '*' and one number at the end, for all devices of a kind: {}", forms));
  if (*number == 0 || *number > most_devices)
    refuse(
        spec,
        fmt::format("it splits each device into {}; there may be 1 to {}", *number, most_devices),
        forms);
  return static_cast<u32>(*number);
}

std::string no_kind(std::string_view kind) {
  return fmt::format("there is no kind of device called '{}'", kind);
}
// Where the kind was not found.
std::string built(std::string_view kind) {
  return fmt::format("this build has {}{}", registry().names(),
                     kind == "cuda"   ? "; build it where nvcc is found to have cuda"
                     : kind == "none" ? "; none is for one of several processes of a job"
                                      : "");
}

}  // namespace

void register_backend(std::unique_ptr<Backend> one) { registry().add(std::move(one)); }

Backend& backend(std::string_view kind) {
  auto* const found = registry().find(kind);
  if (!found) throw Error(Kind::bad_argument, "devices", no_kind(kind), built(kind));
  return *found;
}

Backend& host_backend() { return *registry().all().front(); }

Backend& default_backend() {
  for (auto* const one : registry().all())
    if (one->preferred() && one->count() > 0) return *one;
  return host_backend();
}

DeviceTraits traits_of(std::string_view kind) {
  auto const* const found = registry().find(kind);
  return found ? found->traits() : DeviceTraits{};
}

namespace {

// The part of `spec` for each kind. A name behind a comma begins the next kind.
std::vector<std::string> by_kind(std::string const& spec) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < spec.size(); ++i) {
    bool const next = spec[i] == ',' && i + 1 < spec.size() &&
                      std::isalpha(static_cast<unsigned char>(spec[i + 1])) != 0;
    if (next) parts.emplace_back();
    else parts.back() += spec[i];
  }
  return parts;
}

// Opens the devices of one kind; `spec` is for messages.
void open_kind(std::string const& spec, std::string wanted,
               std::vector<std::shared_ptr<Device>>& devices) {
  auto const star = wanted.find('*');
  u32 const parts =
      star == std::string::npos ? 1 : parts_of(spec, std::string_view(wanted).substr(star + 1));
  wanted.resize(std::min(star, wanted.size()));
  auto const colon = wanted.find(':');
  auto const name = wanted.substr(0, colon);
  auto const list = colon == std::string::npos ? std::string() : wanted.substr(colon + 1);
  if (colon != std::string::npos && list.empty()) refuse(spec, "nothing follows the colon", forms);
  auto* const found = registry().find(name);
  if (!found) refuse(spec, no_kind(name), fmt::format("{}; {}", built(name), forms));
  Backend& kind = *found;
  if (std::ranges::any_of(devices, [&](auto const& device) { return device->kind() == name; }))
    refuse(spec, fmt::format("it names {} devices in two places", name),
           fmt::format("name all of a kind together: {}", forms));
  auto const indices =
      kind.count() == ~0u ? first_indices(spec, list) : chosen_indices(spec, list, kind);
  if (devices.size() + indices.size() * parts > most_devices)
    refuse(spec,
           fmt::format("it splits each of {} devices into {}, which makes {}; there may be 1 to {}",
                       indices.size(), parts, indices.size() * parts, most_devices),
           "name fewer devices, or split them into fewer");
  for (u32 const index : indices) {
    auto device = kind.open(index);
    if (parts == 1) devices.push_back(std::move(device));
    else std::ranges::move(split_device(device, parts), std::back_inserter(devices));
  }
}

[[noreturn]] void refuse_counters(std::string_view operation) {
  throw Error(Kind::bad_environment, std::string(operation),
              "this kind of device can't do it in a stream's order",
              "override Stream::put, await, post, gather and scatter");
}

}  // namespace

namespace {

struct NotedEntries {
  std::mutex mutex;
  std::vector<void const*> all;
};
NotedEntries& noted_entries() {
  static auto* const one = new NotedEntries;
  return *one;
}

}  // namespace

void note_gpu_entry(void const* entry) {
  std::scoped_lock const lock(noted_entries().mutex);
  noted_entries().all.push_back(entry);
}

std::vector<void const*> noted_gpu_entries(std::size_t known) {
  std::scoped_lock const lock(noted_entries().mutex);
  auto const& all = noted_entries().all;
  return {all.begin() + static_cast<std::ptrdiff_t>(std::min(known, all.size())), all.end()};
}

void Stream::put(StreamWords const& /*words*/, StreamPut const& /*put*/) {
  refuse_counters("raise a counter");
}
void Stream::await(StreamWords const& /*words*/, std::span<AwaitedCounter const> /*counters*/) {
  refuse_counters("await a counter");
}
void Stream::await_word(u32 const* /*word*/, u32 /*value*/) { refuse_counters("await a word"); }
void Stream::post(StreamWords const& /*words*/, StreamRing const& /*ring*/, u32 /*operation*/,
                  StreamPut const& /*put*/, bool /*until_taken*/) {
  refuse_counters("post a message");
}
void Stream::send(StreamWords const& /*words*/, StreamChannel const& /*to*/,
                  StreamPut const& /*put*/, StreamPost const* /*far*/) {
  refuse_counters("send a message");
}
void Stream::receive(StreamWords const& /*words*/, StreamChannel const& /*from*/,
                     StreamReceive const& /*into*/, StreamPost const* /*far*/) {
  refuse_counters("receive a message");
}
void Stream::gather(StreamWords const& /*words*/, StreamGather const& /*gather*/) {
  refuse_counters("gather elements");
}
void Stream::scatter(StreamWords const& /*words*/, StreamScatter const& /*scatter*/) {
  refuse_counters("scatter elements");
}
StreamWay Stream::way_of(StreamPut const& /*put*/) const { return {}; }
StreamExchangeWay Stream::way_of(StreamGather const& /*gather*/) const { return {}; }
StreamExchangeWay Stream::way_of(StreamScatter const& /*scatter*/) const { return {}; }
void Device::raise(u32* counter, u32 value, u32* origin_word, u32 origin) {
  if (in_host_memory()) {
    if (origin_word) memory::store_relaxed(origin_word, origin);
    memory::add(counter, value, Order::system);
    return;
  }
  u32 now = 0;
  read(&now, counter, Bytes{sizeof now});
  now += value;
  if (origin_word) write(origin_word, &origin, Bytes{sizeof origin});
  write(counter, &now, Bytes{sizeof now});
}

std::vector<std::shared_ptr<Device>> open_devices(std::string const& spec) {
  refuse_after_fork("open_devices");
  std::string wanted = spec;
  if (wanted.empty()) wanted = default_backend().kind();
  std::vector<std::shared_ptr<Device>> devices;
  for (auto const& part : by_kind(wanted)) open_kind(spec, part, devices);
  return devices;
}

bool reaches(std::shared_ptr<Device> const& from, std::shared_ptr<Device> const& to) {
  return from->kind() == to->kind() &&
         (physical(from) == physical(to) || backend(from->kind()).reaches(*from, *to));
}

void refuse_after_fork(std::string_view operation) {
  if (!begin_use())
    throw Error(
        Kind::misuse, std::string(operation), "this process was forked from one that uses meshpost",
        "start a new program (exec) or create the World after the fork, in the child alone");
}

bool inside_kernel() { return cpu::current_fiber() != nullptr; }

}  // namespace meshpost
