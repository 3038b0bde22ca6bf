#include <plait/actors/error.hpp>

#include <map>
#include <mutex>
#include <tuple>

namespace plait {

namespace {

class category final : public std::error_category {
public:
    char const* name() const noexcept override { return "plait"; }

    std::string message(int code) const override
    {
        switch (static_cast<errc>(code)) {
        case errc::cancelled:
            return "cancelled";
        case errc::receiver_gone:
            return "the receiver is gone";
        case errc::closed:
            return "closed";
        case errc::deadline_exceeded:
            return "the deadline has passed";
        case errc::overloaded:
            return "overloaded";
        case errc::invalid_argument:
            return "invalid argument";
        case errc::never_fits:
            return "can never fit";
        case errc::not_found:
            return "not found";
        case errc::bad_file:
            return "malformed file";
        case errc::unsupported:
            return "not supported";
        case errc::template_failed:
            return "the chat template failed";
        case errc::io:
            return "input or output failed";
        case errc::out_of_memory:
            return "out of memory";
        case errc::bad_plan:
            return "the plan breaks a rule";
        case errc::engine_failed:
            return "the engine failed";
        case errc::device_lost:
            return "the device is lost";
        case errc::deadlock:
            return "no progress is possible";
        }
        return "unknown error";
    }

    /// So that `ec == std::errc::operation_canceled` holds for a cancelled operation, as Asio users expect.
    std::error_condition default_error_condition(int code) const noexcept override
    {
        switch (static_cast<errc>(code)) {
        case errc::cancelled:
            return std::errc::operation_canceled;
        case errc::invalid_argument:
            return std::errc::invalid_argument;
        case errc::deadline_exceeded:
            return std::errc::timed_out;
        case errc::not_found:
            return std::errc::no_such_file_or_directory;
        case errc::out_of_memory:
            return std::errc::not_enough_memory;
        case errc::deadlock:
            return std::errc::resource_deadlock_would_occur;
        default:
            return {code, *this};
        }
    }
};

} // namespace

std::error_category const& plait_category() noexcept
{
    static category const instance;
    return instance;
}

std::error_code make_error_code(errc code) noexcept
{
    return {static_cast<int>(code), plait_category()};
}

namespace detail {

std::exception_ptr shared_failure(errc code, char const* context, char const* before)
{
    static std::mutex mutex;
    static auto& all =
        *new std::map<std::tuple<errc, char const*, char const*>, std::exception_ptr>; // outlives every thread
    std::lock_guard lock(mutex);
    auto& e = all[{code, before, context}];
    if (!e) e = std::make_exception_ptr(error(code, std::string(before) + context));
    return e;
}

} // namespace detail

error::error(errc code, std::string const& context)
    : std::system_error(make_error_code(code), context)
{
}

} // namespace plait
