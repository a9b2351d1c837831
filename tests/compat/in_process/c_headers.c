/* The C interfaces are C. */
#include <meshpost/compat/coaccel.h>
#include <meshpost/compat/dscuda.h>
#define MESHPOST_MP_WITHOUT_MPI
#include <meshpost/compat/mp.h>

int uses_c_headers(void) { return coaccel_last_error() == 0 && dscudaLastError()[0] == 0 && mp_last_error()[0] == 0; }
