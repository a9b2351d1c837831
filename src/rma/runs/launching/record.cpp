#include "rma/runs/launching/record.hpp"

#include <utility>

#include "rma/runs/launching/run.hpp"

namespace meshpost::detail {
namespace {

class RunEnd : public Event {
 public:
  explicit RunEnd(std::shared_ptr<RunRecord> record) : record_(std::move(record)) {}
  bool done() override {
    std::scoped_lock const lock(record_->mutex);
    return record_->ended;
  }
  void wait() override {
    std::unique_lock lock(record_->mutex);
    record_->changed.wait(lock, [this] { return record_->ended; });
  }
  void then(std::function<void()> action) override {
    {
      std::scoped_lock const lock(record_->mutex);
      if (!record_->ended) {
        record_->at_end.push_back(std::move(action));
        return;
      }
    }
    action();
  }

 private:
  std::shared_ptr<RunRecord> record_;
};

}  // namespace

std::shared_ptr<Event> end_of(std::shared_ptr<RunRecord> const& record) {
  return std::make_shared<RunEnd>(record);
}

void RunRecord::launch_is_done(std::vector<std::shared_ptr<Event>> of_kernels) {
  std::scoped_lock const lock(mutex);
  ends = std::move(of_kernels);
  launched = true;
  changed.notify_all();
}

void RunRecord::end() {
  std::vector<std::function<void()>> actions;
  {
    std::scoped_lock const lock(mutex);
    launched = ended = true;
    actions.swap(at_end);
    changed.notify_all();
  }
  for (auto const& action : actions) action();
}

bool RunRecord::try_to_drive() {
  std::scoped_lock const lock(mutex);
  if (!has_turn || driven || done) return false;
  return driven = true;
}

void KeepIfItHangs::operator()(RunSupervisor* run) const {
  if (run->must_be_kept()) net::keep_for_ever(run);
  else delete run;
}

}  // namespace meshpost::detail
