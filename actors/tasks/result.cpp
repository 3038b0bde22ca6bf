#include <plait/actors/tasks/result.hpp>

#include <cstring>
#include <new>
#include <typeinfo>

namespace plait {

namespace {

/// plait's own error in an exception, found without throwing it again, which would cost a thousand times as much. Null
/// when there is another one, or where the standard library does not tell.
error const* own_error([[maybe_unused]] std::exception_ptr const& failure) noexcept
{
#ifdef __GLIBCXX__
    if (*failure.__cxa_exception_type() == typeid(error)) {
        // All that an exception_ptr is there: the address of the exception.
        static_assert(sizeof(std::exception_ptr) == sizeof(void*));
        void* found = nullptr;
        std::memcpy(static_cast<void*>(&found), static_cast<void const*>(&failure), sizeof(void*));
        return static_cast<error const*>(found);
    }
#endif
    return nullptr;
}

} // namespace

std::error_code code_of(std::exception_ptr const& failure) noexcept
{
    if (!failure) return {};
    if (auto const* own = own_error(failure)) return own->code();
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
