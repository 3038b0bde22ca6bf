#pragma once

#include <plait/actors/actor_core.hpp>

#include <cstddef>
#include <mutex>

namespace plait {

class runtime;

namespace detail {

class machine;

/// All actors of a runtime.
class actor_registry {
public:
    explicit actor_registry(runtime& r) noexcept
        : owner(r)
    {
    }

    /// Hears of failures that no caller waits for.
    virtual void unhandled(failure const& f) noexcept = 0;

    /// `owned`: what the core runs on ends with the runtime.
    void add(actor_core& core, bool owned) noexcept;
    /// The object of `core` has been destroyed.
    void gone(actor_core& core) noexcept;
    /// `core` is about to be deleted.
    void remove(actor_core& core) noexcept;

    /// Stops every actor, youngest first, and waits for each until its object has been destroyed.
    void stop_all(machine& below) noexcept;
    /// The same without waiting: `then` runs when none is left, on the executor of the last.
    void stop_all(work& then) noexcept;
    /// Makes the cores that handles still point to independent of the runtime's executors, which have ended.
    void orphan_all() noexcept;
    std::size_t living() const noexcept;

    runtime& owner;

protected:
    ~actor_registry() = default;

private:
    struct list {
        actor_core* youngest = nullptr;
        std::size_t size = 0;
        void add(actor_core& core) noexcept;
        void remove(actor_core& core) noexcept;
    };

    struct stopping;
    bool stop_youngest(stopping& s) noexcept;
    void stop_next(stopping& s) noexcept;

    mutable std::mutex mutex_;
    list living_;
    list gone_;
};

} // namespace detail

} // namespace plait
