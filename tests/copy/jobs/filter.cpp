// Processes as in a container that refuses process_vm_readv: with a seccomp filter from the start.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "copy/jobs/jobs.hpp"

namespace meshpost::test {
namespace {

int const filtered = [] {
  if (!std::getenv(without_other_memory)) return 0;
  constexpr auto refuse = SECCOMP_RET_ERRNO | EPERM;
  std::array program{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, refuse),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog const filter{program.size(), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    std::perror("no filter");
  return 1;
}();

}  // namespace
}  // namespace meshpost::test
