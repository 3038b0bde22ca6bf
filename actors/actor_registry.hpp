#pragma once

#include <plait/actors/actor_core.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

namespace plait {

class runtime;

namespace detail {

class ask_cycles;
class machine;

/// All actors of a runtime.
class actor_registry {
public:
    actor_registry(runtime& r, bool find_ask_cycles);

    /// The runtime's; it lives as long as this, if the runtime made it.
    virtual plait::clock& clock() noexcept = 0;
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
    /// Calls `f` with every living core, oldest first; it is short and takes no lock of the registry.
    void for_each(std::function<void(actor_core&)> const& f) const;

    runtime& owner;
    std::shared_ptr<lifecycle_hub> const lifecycle = std::make_shared<lifecycle_hub>();
    std::unique_ptr<ask_cycles> const cycles; ///< null when nobody looks for them

protected:
    ~actor_registry();

private:
    struct list {
        actor_core* youngest = nullptr;
        actor_core* oldest = nullptr;
        std::size_t size = 0;
        void add(actor_core& core) noexcept;
        void remove(actor_core& core) noexcept;
    };

    struct stopping;
    bool stop_youngest(stopping& s) noexcept;
    void stop_next(stopping& s) noexcept;

    mutable std::mutex mutex_;
    std::uint64_t added_ = 0;
    list living_;
    list gone_;
};

} // namespace detail

} // namespace plait
