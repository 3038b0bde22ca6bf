#pragma once

#include <plait/actors/error.hpp>

#include <cassert>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace plait {

/// The error code inside an exception: that of a std::system_error, `errc::out_of_memory` for std::bad_alloc,
/// otherwise `errc::engine_failed`. No code for a null pointer.
std::error_code code_of(std::exception_ptr const& failure) noexcept;

/// Whether the exception is `error` with `errc::cancelled`.
bool is_cancelled(std::exception_ptr const& failure) noexcept;

namespace detail {

template<class T>
struct stored_value {
    using type = T;
};
template<class T>
struct stored_value<T&> {
    using type = T*;
};
template<>
struct stored_value<void> {
    struct type {};
};

} // namespace detail

/// What an operation ended with: a value or an exception. Empty before it has ended.
template<class T>
class [[nodiscard]] result {
    using stored = typename detail::stored_value<T>::type;

public:
    result() = default;

    bool has_value() const noexcept { return value_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }

    /// The value; throws what the operation threw. An rvalue gives its value away.
    T value() &&
    {
        if (error_) [[unlikely]]
            raise();
        assert(value_ && "the operation has not ended");
        if constexpr (std::is_reference_v<T>) {
            return static_cast<T>(**value_);
        } else if constexpr (!std::is_void_v<T>) {
            return std::move(*value_);
        }
    }
    std::add_lvalue_reference_t<T> value() &
    {
        if (error_) std::rethrow_exception(error_);
        assert(value_ && "the operation has not ended");
        if constexpr (std::is_reference_v<T>) {
            return **value_;
        } else if constexpr (!std::is_void_v<T>) {
            return *value_;
        }
    }

    /// The exception, or null.
    std::exception_ptr const& failure() const noexcept { return error_; }
    /// The exception's code (see `code_of`); no error when there is a value.
    std::error_code error() const noexcept { return code_of(error_); }

    template<class... Args>
    void emplace(Args&&... args)
    {
        if constexpr (std::is_reference_v<T>) {
            value_.emplace((&args)...);
        } else {
            value_.emplace(std::forward<Args>(args)...);
        }
    }
    void fail(std::exception_ptr failure) noexcept { error_ = std::move(failure); }
    /// `context` lives as long as the program.
    void fail(errc code, char const* context) { error_ = detail::shared_failure(code, context); }

private:
    /// Out of the way of the value.
    [[noreturn, gnu::cold, gnu::noinline]] void raise() { std::rethrow_exception(std::move(error_)); }

    std::exception_ptr error_; // first: in a frame it is cleared together with what stands before it
    std::optional<stored> value_;
};

} // namespace plait
