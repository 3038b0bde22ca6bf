#pragma once

#include <plait/actors/runtime/machine_atomics.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <source_location>
#include <span>

#include <relacy/relacy.hpp>

// What Relacy defines for programs that are written against it; plait's protocols are not.
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert
#undef errno
#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst

namespace plait::model {

/// A memory order in the source of a protocol.
struct order_site {
    std::source_location where;
    bool on_failure = false; ///< the second order of a compare-exchange
    std::memory_order order{};

    bool same_place(std::source_location other, bool failure) const noexcept
    {
        return where.line() == other.line() && where.column() == other.column() && on_failure == failure &&
               std::strcmp(where.file_name(), other.file_name()) == 0;
    }
};

/// Notes every order that a protocol uses, and gives one of them a weaker value: what a checker that is any good finds.
class orders {
public:
    enum class mode : std::uint8_t { as_written, noting, weakened };

    static rl::memory_order use(std::memory_order order, std::source_location where, bool on_failure = false)
    {
        if (mode_ == mode::noting) note({where, on_failure, order});
        if (mode_ == mode::weakened && weak_.same_place(where, on_failure)) order = weak_.order;
        switch (order) {
        case std::memory_order_relaxed:
            return rl::mo_relaxed;
        case std::memory_order_consume:
            return rl::mo_consume;
        case std::memory_order_acquire:
            return rl::mo_acquire;
        case std::memory_order_release:
            return rl::mo_release;
        case std::memory_order_acq_rel:
            return rl::mo_acq_rel;
        case std::memory_order_seq_cst:
            break;
        }
        return rl::mo_seq_cst;
    }

    static void as_written() noexcept { mode_ = mode::as_written; }
    static void note_all() noexcept
    {
        mode_ = mode::noting;
        count_ = 0; // another test uses the same source with other types, which are other places
    }
    /// From now on the order at that place is the site's.
    static void weaken(order_site const& site) noexcept
    {
        mode_ = mode::weakened;
        weak_ = site;
    }
    /// What was noted since.
    static std::span<order_site const> noted() noexcept { return {noted_.data(), count_}; }

private:
    static void note(order_site const& site)
    {
        for (auto const& known : noted()) {
            if (known.same_place(site.where, site.on_failure)) return;
        }
        noted_.at(count_++) = site;
    }

    static inline mode mode_ = mode::as_written;
    static inline order_site weak_;
    // Not a vector: Relacy takes what is allocated in a scenario for a part of it.
    static inline std::array<order_site, 256> noted_;
    static inline std::size_t count_ = 0;
};

inline rl::debug_info place(std::source_location where) noexcept
{
    return {where.function_name(), where.file_name(), where.line()};
}

/// A variable without an order of its own: two accesses that nothing orders, one of them a write, are an error.
template<class T>
class plain {
public:
    plain() = default;
    plain(T value) // as a T would be
        : variable_(value)
    {
    }
    plain(plain const& other)
        : variable_(T(other))
    {
    }
    plain& operator=(plain const& other) { return *this = T(other); }
    plain& operator=(T value)
    {
        variable_(RL_INFO).store(value);
        return *this;
    }
    operator T() const { return variable_(RL_INFO).load(); } // as a T would be
    T operator->() const { return variable_(RL_INFO).load(); }

private:
    rl::var<T> variable_;
};

/// std::atomic, as the C++ memory model allows it to behave. Its end is a write that every use must precede.
template<class T>
class atomic {
    using here = std::source_location;

public:
    atomic(T value) // as std::atomic's
        : word_(value)
    {
    }
    atomic(atomic const&) = delete;
    atomic& operator=(atomic const&) = delete;
    ~atomic() { life_ = 0; }

    T load(std::memory_order order, here where = here::current()) const
    {
        return used().load(orders::use(order, where), place(where));
    }
    void store(T value, std::memory_order order, here where = here::current())
    {
        used().store(value, orders::use(order, where), place(where));
    }
    T exchange(T value, std::memory_order order, here where = here::current())
    {
        return used().exchange(value, orders::use(order, where), place(where));
    }
    T fetch_add(T value, std::memory_order order, here where = here::current())
    {
        return used().fetch_add(value, orders::use(order, where), place(where));
    }
    T fetch_sub(T value, std::memory_order order, here where = here::current())
    {
        return used().fetch_sub(value, orders::use(order, where), place(where));
    }
    T fetch_or(T value, std::memory_order order, here where = here::current())
    {
        return used().fetch_or(value, orders::use(order, where), place(where));
    }
    bool compare_exchange_weak(T& expected, T value, std::memory_order success, std::memory_order failure,
                               here where = here::current())
    {
        return used().compare_exchange(rl::bool_t<true>(), expected, value, orders::use(success, where),
                                       orders::use(failure, where, true), place(where));
    }
    bool compare_exchange_weak(T& expected, T value, std::memory_order order, here where = here::current())
    {
        return compare_exchange_weak(expected, value, order, std::memory_order_relaxed, where);
    }
    bool compare_exchange_strong(T& expected, T value, std::memory_order success, std::memory_order failure,
                                 here where = here::current())
    {
        return used().compare_exchange(rl::bool_t<false>(), expected, value, orders::use(success, where),
                                       orders::use(failure, where, true), place(where));
    }

    /// The system compares the newest value with `seen` and puts the thread to sleep in one step.
    void sleep_while(T seen) const
    {
        auto& word = used();
        auto newest = seen;
        if (word.compare_exchange(rl::bool_t<false>(), newest, seen, rl::mo_relaxed, RL_INFO))
            word.wait(rl::ctx(), false, false, RL_INFO);
    }
    void wake(rl::thread_id_t count)
    {
        rl::ctx().sched();
        used().wake(rl::ctx(), count, RL_INFO);
    }

private:
    rl::atomic<T>& used() const
    {
        static_cast<void>(static_cast<int>(life_));
        return word_;
    }

    mutable rl::atomic<T> word_;
    plain<int> life_{1};
};

/// The atomics of a protocol under the model checker; see plait::detail::machine_atomics.
struct model_atomics {
    template<class T>
    using atomic = model::atomic<T>;
    template<class T>
    using plain = model::plain<T>;

    static void sleep_while(atomic<std::uint32_t> const& word, std::uint32_t seen, std::memory_order)
    {
        word.sleep_while(seen);
    }
    static constexpr unsigned looks_before_sleep = 1;
    static void pause() {}
    static void sleep_at_once(atomic<std::uint32_t> const& word, std::uint32_t seen) { word.sleep_while(seen); }
    static void wake_sleeper(atomic<std::uint32_t>& word) { word.wake(1); }
    static void wake_one(atomic<std::uint32_t>& word) { word.wake(1); }
    static void wake_all(atomic<std::uint32_t>& word) { word.wake(rl::ctx().get_thread_count()); }
    static void yield() { rl::yield(1, RL_INFO); }

    static void const* this_thread() noexcept
    {
        static std::array<char, 8> const marks{};
        return &marks[static_cast<std::size_t>(rl::thread_index())];
    }
};

} // namespace plait::model
