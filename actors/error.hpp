#pragma once

#include <exception>
#include <string>
#include <system_error>

namespace plait {

/// What went wrong, as a caller can act on it. Conditions of one category, "plait"; the numbers may change.
enum class errc {
    cancelled = 1,     ///< the caller asked to stop
    receiver_gone,     ///< the actor stopped before it answered
    closed,            ///< the channel or engine takes nothing more
    deadline_exceeded, ///< the request's deadline passed
    overloaded,        ///< a bounded queue is full
    invalid_argument,  ///< a parameter is out of its range; the context names it
    never_fits,        ///< more memory or context than the plan can ever give; the context has the numbers
    not_found,         ///< a file or a name does not exist
    bad_file,          ///< a file's content contradicts its format; the context names the field
    unsupported,       ///< well-formed, but not something that plait runs
    template_failed,   ///< a chat template raised an error or passed a limit
    io,                ///< the operating system failed a read or a write
    out_of_memory,     ///< the system had less memory than the plan
    bad_plan,          ///< a policy's plan breaks a budget or names an unknown sequence
    engine_failed,     ///< the engine met an internal failure; its requests end with this
    device_lost,       ///< the device stopped answering
    deadlock,          ///< tasks wait for each other, or go on and get nowhere, as far as can be told
};

/// The category of `errc`.
std::error_category const& plait_category() noexcept;

/// Found by argument-dependent lookup when an `errc` becomes a `std::error_code`.
std::error_code make_error_code(errc code) noexcept;

/// A failure with its context: `what()` is "<context>: <meaning of the code>".
class error : public std::system_error {
public:
    error(errc code, std::string const& context);

    /// The code as the enumeration, for a `switch`.
    errc condition() const noexcept { return static_cast<errc>(code().value()); }
};

namespace detail {

/// The one exception that stands for all failures with this code and context, `before` and then `context`: texts that
/// live as long as the program. Where many waits are cancelled at once, making each one's own would cost more than all
/// the rest.
std::exception_ptr shared_failure(errc code, char const* context, char const* before = "");

} // namespace detail

} // namespace plait

template<>
struct std::is_error_code_enum<plait::errc> : std::true_type {};
