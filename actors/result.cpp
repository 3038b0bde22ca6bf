#include <plait/actors/result.hpp>

#include <new>

namespace plait {

std::error_code code_of(std::exception_ptr const& failure) noexcept
{
    if (!failure) return {};
    try {
        std::rethrow_exception(failure);
    } catch (std::system_error const& e) {
        return e.code();
    } catch (std::bad_alloc const&) {
        return errc::out_of_memory;
    } catch (...) {
        return errc::engine_failed;
    }
}

bool is_cancelled(std::exception_ptr const& failure) noexcept
{
    return code_of(failure) == errc::cancelled;
}

} // namespace plait
