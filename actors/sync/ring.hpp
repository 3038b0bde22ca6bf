#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace plait::detail {

/// A first-in, first-out queue in a ring that doubles when it is full and never shrinks: a queue that stays below some
/// length allocates nothing once it has been that long. Nothing at all before the first value. For one thread at a
/// time.
template<class T>
class ring {
public:
    ring() = default;
    ring(ring const&) = delete;
    ring& operator=(ring const&) = delete;
    ~ring()
    {
        while (!empty())
            pop_front();
        release(values_, room_);
    }

    bool empty() const noexcept { return size_ == 0; }
    std::size_t size() const noexcept { return size_; }

    T& front() noexcept { return values_[first_]; }

    /// Leaves `value` alone when there is no memory.
    void push_back(T&& value)
    {
        if (size_ == room_) grow();
        std::construct_at(&values_[(first_ + size_) & (room_ - 1)], std::move(value));
        ++size_;
    }

    void pop_front() noexcept
    {
        std::destroy_at(&values_[first_]);
        first_ = (first_ + 1) & (room_ - 1);
        --size_;
    }

private:
    static void release(T* values, std::size_t room) noexcept
    {
        if (values) std::allocator<T>().deallocate(values, room);
    }

    void grow()
    {
        auto const room = room_ == 0 ? 4 : 2 * room_;
        struct memory {
            T* values;
            std::size_t room;
            std::size_t made = 0;
            ~memory()
            {
                std::destroy_n(values, made);
                release(values, room);
            }
        } larger{std::allocator<T>().allocate(room), room};
        for (; larger.made < size_; ++larger.made)
            std::construct_at(&larger.values[larger.made],
                              std::move_if_noexcept(values_[(first_ + larger.made) & (room_ - 1)]));
        for (std::size_t i = 0; i < size_; ++i)
            std::destroy_at(&values_[(first_ + i) & (room_ - 1)]);
        // What was here before goes with `larger`; its values have gone already.
        std::swap(values_, larger.values);
        std::swap(room_, larger.room);
        larger.made = 0;
        first_ = 0;
    }

    T* values_ = nullptr;
    std::size_t room_ = 0; ///< 0 or a power of two
    std::size_t first_ = 0;
    std::size_t size_ = 0;
};

} // namespace plait::detail
