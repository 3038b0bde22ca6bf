#pragma once

#include <plait/actors/time/clock.hpp>

#include <cstdint>
#include <string>

/// What the system says about this process, and how to speak to its shell.
namespace plait::bench {

/// Processor time that the process has used, of all threads, in user and kernel mode.
duration processor_time() noexcept;

/// Bytes of memory that the process has resident, the pages of mapped files included. 0 where the system doesn't tell.
std::int64_t resident_bytes();

/// The most that was resident at once since the process began or `forget_peak`. 0 where the system doesn't tell.
std::int64_t peak_resident_bytes();
void forget_peak();

/// A word of a shell command that means `text`.
std::string quoted(std::string const& text);

} // namespace plait::bench
