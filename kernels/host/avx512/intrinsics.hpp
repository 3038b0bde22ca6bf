#pragma once

// g++ 12 takes the undefined vectors inside its own AVX-512 header for uninitialised variables
// (gcc.gnu.org/bugzilla, 105593). The warning is located in that header, so it is silenced there and nowhere else.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
