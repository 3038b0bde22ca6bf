#include <plait/actors/actor_registry.hpp>

#include <plait/actors/ask_cycles.hpp>
#include <plait/actors/runtime/condition.hpp>
#include <plait/actors/runtime/machine.hpp>

namespace plait::detail {

actor_registry::actor_registry(runtime& r, bool find_ask_cycles)
    : owner(r)
    , cycles(find_ask_cycles ? std::make_unique<ask_cycles>() : nullptr)
{
}

actor_registry::~actor_registry() = default;

void actor_registry::list::add(actor_core& core) noexcept
{
    core.registry_next_ = nullptr;
    core.registry_previous_ = youngest;
    (youngest ? youngest->registry_next_ : oldest) = &core;
    youngest = &core;
    ++size;
}

void actor_registry::list::remove(actor_core& core) noexcept
{
    (core.registry_previous_ ? core.registry_previous_->registry_next_ : oldest) = core.registry_next_;
    (core.registry_next_ ? core.registry_next_->registry_previous_ : youngest) = core.registry_previous_;
    --size;
}

void actor_registry::add(actor_core& core, bool owned) noexcept
{
    {
        std::lock_guard lock(mutex_);
        core.owned_ = owned;
        core.id_ = ++added_;
        living_.add(core);
    }
    core.happened(lifecycle_event::kind::spawned);
}

void actor_registry::gone(actor_core& core) noexcept
{
    std::lock_guard lock(mutex_);
    living_.remove(core);
    gone_.add(core);
}

void actor_registry::remove(actor_core& core) noexcept
{
    std::lock_guard lock(mutex_);
    gone_.remove(core);
}

std::size_t actor_registry::living() const noexcept
{
    std::lock_guard lock(mutex_);
    return living_.size;
}

void actor_registry::for_each(std::function<void(actor_core&)> const& f) const
{
    std::lock_guard lock(mutex_);
    for (auto* core = living_.oldest; core; core = core->registry_next_) {
        f(*core);
    }
}

/// Stops one actor, on its executor.
struct actor_registry::stopping : work {
    actor_core* core = nullptr;
    void (*gone)(stopping&) noexcept = nullptr; ///< called there when its object has been destroyed
    actor_registry* all = nullptr;
    work* then = nullptr;
};

bool actor_registry::stop_youngest(stopping& s) noexcept
{
    {
        std::lock_guard lock(mutex_);
        s.core = living_.youngest;
        if (!s.core) return false;
        // A living core has at least the strong handles' weak one, so this revives nothing.
        s.core->add_weak();
    }
    s.run = [](work& self) noexcept {
        auto& s = static_cast<stopping&>(self);
        s.run = [](work& self) noexcept {
            auto& s = static_cast<stopping&>(self);
            s.gone(s);
        };
        s.core->close();
        s.core->when_gone(s);
    };
    s.core->post(s);
    return true;
}

void actor_registry::stop_all(machine& below) noexcept
{
    struct awaited : stopping {
        std::mutex mutex;
        condition changed;
        bool done = false;
    };
    for (;;) {
        awaited s;
        s.gone = [](stopping& self) noexcept {
            auto& s = static_cast<awaited&>(self);
            std::lock_guard lock(s.mutex);
            s.done = true;
            s.changed.notify_one();
        };
        if (!stop_youngest(s)) return;
        below.wait(s.mutex, s.changed, [&] { return s.done; });
        s.core->drop_weak();
    }
}

void actor_registry::stop_all(work& then) noexcept
{
    auto* s = new stopping;
    s->all = this;
    s->then = &then;
    s->gone = [](stopping& s) noexcept {
        s.core->drop_weak();
        s.all->stop_next(s);
    };
    stop_next(*s);
}

void actor_registry::stop_next(stopping& s) noexcept
{
    if (stop_youngest(s)) return;
    auto* then = s.then;
    delete &s;
    then->run(*then);
}

void actor_registry::orphan_all() noexcept
{
    std::lock_guard lock(mutex_);
    for (auto* core = gone_.youngest; core; core = core->registry_previous_) {
        if (core->owned_) core->underlying_ = nullptr;
    }
}

} // namespace plait::detail
