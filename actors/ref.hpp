#pragma once

#include <plait/actors/actor_core.hpp>

#include <concepts>
#include <utility>

namespace plait {

template<class A>
class weak_ref;

namespace detail {
struct ref_access;
}

/// A handle to an actor that keeps it running: when the last one goes, the actor is stopped. Copied and used from any
/// thread. Messages hold one, so an actor outlives what it was sent; those that were told let go of theirs when the
/// actor's turn ends. Where the last one goes on the actor's own executor, its object is destroyed there and then, as
/// by a shared_ptr: so hold no lock that its destructor takes.
template<class A>
class ref {
public:
    ref() noexcept = default;
    ref(ref const& other) noexcept
        : core_(other.core_)
        , object_(other.object_)
    {
        if (core_) core_->add_strong();
    }
    ref(ref&& other) noexcept
        : core_(std::exchange(other.core_, nullptr))
        , object_(std::exchange(other.object_, nullptr))
    {
    }
    template<class D>
        requires std::derived_from<D, A>
    ref(ref<D> other) noexcept
        : core_(std::exchange(other.core_, nullptr))
        , object_(std::exchange(other.object_, nullptr))
    {
    }
    ref& operator=(ref other) noexcept
    {
        std::swap(core_, other.core_);
        std::swap(object_, other.object_);
        return *this;
    }
    ~ref()
    {
        if (core_) core_->drop_strong();
    }

    explicit operator bool() const noexcept { return core_ != nullptr; }
    friend bool operator==(ref const& a, ref const& b) noexcept { return a.core_ == b.core_; }

    /// Whether it takes no more messages. What was false may be true at once.
    bool stopped() const noexcept { return core_ && core_->closed(); }
    /// Messages sent and not yet taken.
    std::uint64_t depth() const noexcept { return core_ ? core_->depth() : 0; }

private:
    template<class>
    friend class ref;
    template<class>
    friend class weak_ref;
    friend detail::ref_access;
    ref(detail::actor_core* core, A* object) noexcept
        : core_(core)
        , object_(object)
    {
    }

    detail::actor_core* core_ = nullptr;
    A* object_ = nullptr;
};

/// A handle that does not keep the actor running.
template<class A>
class weak_ref {
public:
    weak_ref() noexcept = default;
    weak_ref(ref<A> const& r) noexcept
        : core_(r.core_)
        , object_(r.object_)
    {
        if (core_) core_->add_weak();
    }
    weak_ref(weak_ref const& other) noexcept
        : core_(other.core_)
        , object_(other.object_)
    {
        if (core_) core_->add_weak();
    }
    weak_ref(weak_ref&& other) noexcept
        : core_(std::exchange(other.core_, nullptr))
        , object_(std::exchange(other.object_, nullptr))
    {
    }
    weak_ref& operator=(weak_ref other) noexcept
    {
        std::swap(core_, other.core_);
        std::swap(object_, other.object_);
        return *this;
    }
    ~weak_ref()
    {
        if (core_) core_->drop_weak();
    }

    /// A strong handle; an empty one when no strong handle was left.
    ref<A> lock() const noexcept { return core_ && core_->try_add_strong() ? ref<A>(core_, object_) : ref<A>(); }

private:
    friend detail::ref_access;
    detail::actor_core* core_ = nullptr;
    A* object_ = nullptr;
};

namespace detail {

struct ref_access {
    /// Adopts one strong count.
    template<class A>
    static ref<A> adopt(actor_core& core, A& object) noexcept
    {
        return ref<A>(&core, &object);
    }
    /// Its count becomes the caller's.
    template<class A>
    static void release(ref<A>&& r) noexcept
    {
        r.core_ = nullptr;
        r.object_ = nullptr;
    }
    template<class A>
    static actor_core* core(ref<A> const& r) noexcept
    {
        return r.core_;
    }
    template<class A>
    static actor_core* core(weak_ref<A> const& r) noexcept
    {
        return r.core_;
    }
    template<class A>
    static A* object(ref<A> const& r) noexcept
    {
        return r.object_;
    }
};

} // namespace detail

} // namespace plait
