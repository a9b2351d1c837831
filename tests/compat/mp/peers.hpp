#pragma once
// A LibMP program of a test: processes of a job, or one alone, each of which has all as peers.
#define MESHPOST_MP_WITHOUT_MPI
#include <meshpost/compat/mp.h>

#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace meshpost::test {

inline void check_mp(int status, char const* call) {
  if (status != MP_SUCCESS) throw std::runtime_error(std::string(call) + ": " + mp_last_error());
}
#define MESHPOST_MP(call) ::meshpost::test::check_mp(call, #call)

class Peers {
 public:
  explicit Peers(int most = 8) {
    // More are no processes; so it is called twice.
    MESHPOST_MP(mp_init_job(nullptr, 0, 0, 0, &own, &count));
    mp_finalize();
    std::vector<int> all(static_cast<std::size_t>(count < most ? count : most));
    std::iota(all.begin(), all.end(), 0);
    MESHPOST_MP(mp_init_job(all.data(), static_cast<int>(all.size()), 0, 0, nullptr, nullptr));
  }
  ~Peers() { mp_finalize(); }
  Peers(Peers const&) = delete;
  Peers& operator=(Peers const&) = delete;

  int next() const { return (own + 1) % count; }
  int previous() const { return (own + count - 1) % count; }

  /// Returns when all processes have called it.
  void meet() const {
    char word = 0;
    mp_reg_t reg;
    MESHPOST_MP(mp_register(&word, 1, &reg));
    std::vector<mp_request_t> requests;
    for (int peer = 0; peer < count; ++peer) {
      MESHPOST_MP(mp_irecv(&word, 1, peer, &reg, &requests.emplace_back()));
      MESHPOST_MP(mp_isend(&word, 1, peer, &reg, &requests.emplace_back()));
    }
    MESHPOST_MP(mp_wait_all(static_cast<uint32_t>(requests.size()), requests.data()));
    MESHPOST_MP(mp_deregister(&reg));
  }

  int own = 0, count = 1;
};

/// Registered memory of the host.
template <class T>
class Registered {
 public:
  explicit Registered(std::size_t size, T value = {}) : values(size, value) {
    MESHPOST_MP(mp_register(values.data(), size * sizeof(T), &reg));
  }
  ~Registered() { mp_deregister(&reg); }
  Registered(Registered const&) = delete;
  Registered& operator=(Registered const&) = delete;

  int bytes() const { return static_cast<int>(values.size() * sizeof(T)); }

  std::vector<T> values;
  mp_reg_t reg = nullptr;
};

}  // namespace meshpost::test
