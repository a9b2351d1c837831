#include "on_stream/streams.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/thread.hpp"
#include "on_stream/endpoint.hpp"

namespace meshpost::detail {

std::shared_ptr<Streams> Streams::of(u32 world) {
  auto const state = world_of(world, "make a stream");
  auto const client =
      state->client([&] { return std::make_shared<Streams>(*state); });  // the only client there is
  return std::static_pointer_cast<Streams>(client);
}

Streams::Use Streams::use(std::string const& operation) {
  Use use(*this);
  if (!use.world_ || ends_)
    throw Error(Kind::misuse, operation, "the World of this stream does not exist any more",
                "keep the World alive while its streams are used");
  return use;
}

std::optional<Streams::Use> Streams::use_if_there() {
  Use use(*this);
  if (!use.world_) return std::nullopt;
  return use;
}

void Streams::add(u32 device, std::shared_ptr<EndpointState> const& endpoint) {
  std::scoped_lock const lock(mutex_);
  for (u32 number = 0; number < StreamId::most; ++number) {
    auto const has_it = [&](Entry const& entry) {
      return entry.id.device == device && entry.id.number == number;
    };
    if (std::ranges::any_of(entries_, has_it)) continue;
    if (!supervisor_.joinable() && !closing_)
      supervisor_ = start_thread("supervise streams", [this] { supervise(); });
    StreamId const id{device, number};
    endpoint->know_id(id);
    entries_.push_back({id, endpoint});
    return;
  }
  throw Error(Kind::bad_argument, "make a stream",
              fmt::format("{} has {} streams, which is the most", world_->layout().names[device],
                          StreamId::most),
              "destroy some, or let several kinds of work share a stream");
}

void Streams::remove(StreamId stream) {
  std::scoped_lock const lock(mutex_);
  std::erase_if(entries_, [&](Entry const& entry) {
    return entry.id.device == stream.device && entry.id.number == stream.number;
  });
}

std::string Streams::name_of(StreamId stream) {
  std::shared_ptr<EndpointState> endpoint;  // its destructor calls remove()
  std::scoped_lock const lock(mutex_);
  for (auto const& entry : entries_)
    if (entry.id == stream) endpoint = entry.endpoint.lock();
  return endpoint ? endpoint->name() : std::string{};
}

void Streams::tear(StreamId stream, std::set<u32> const& windows) {
  std::scoped_lock const lock(mutex_);
  for (u32 const window : windows) torn_.emplace(stream.device, stream.number, window);
}

bool Streams::torn(StreamId stream, u32 window) {
  std::scoped_lock const lock(mutex_);
  return torn_.contains({stream.device, stream.number, window});
}

std::vector<std::shared_ptr<EndpointState>> Streams::all() {
  std::vector<std::shared_ptr<EndpointState>> found;
  std::scoped_lock const lock(mutex_);
  for (auto const& entry : entries_)
    if (auto endpoint = entry.endpoint.lock()) found.push_back(std::move(endpoint));
  return found;
}

void Streams::release(u32 window) {
  auto const world = use_if_there();
  if (!world) return;
  for (auto const& endpoint : all()) endpoint->release(window);
  std::scoped_lock const lock(mutex_);
  std::erase_if(torn_, [&](auto const& one) { return std::get<2>(one) == window; });
}

std::vector<std::string> Streams::waiting() {
  std::vector<std::string> lines;
  for (auto const& endpoint : all())
    if (auto line = endpoint->waits()) lines.push_back(std::move(*line));
  return lines;
}

void Streams::close() {
  {
    std::unique_lock const lock(using_);
    ends_ = true;
  }
  if (auto const world = use_if_there())
    for (auto const& endpoint : all()) {
      endpoint->close();
      endpoint->give_times(world->world());
    }
  {
    std::scoped_lock const lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (supervisor_.joinable()) supervisor_.join();
  std::unique_lock const lock(using_);
  world_ = nullptr;
}

void Streams::supervise() {
  constexpr std::chrono::milliseconds pause{10};
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, pause, [&] { return closing_; })) return;
    }
    auto const use = use_if_there();
    if (!use) continue;
    auto& world = use->world();
    std::optional<Loss> loss;
    if (!world.group().alone()) loss = world.group().processes().lost();
    for (auto const& endpoint : all()) endpoint->look(world, loss);
  }
}

}  // namespace meshpost::detail
