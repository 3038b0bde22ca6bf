#pragma once

#include <plait/actors/tasks/task.hpp>
#include <plait/actors/tasks/task_group.hpp>

#include <functional>
#include <iterator>
#include <variant>
#include <vector>

namespace plait::detail {

class member_base;

/// A group whose members live in the frame that joins it. One of them decides the outcome, the first to fail or the
/// first to end at all, and the rest are asked to stop then.
class deciding_group : public task_group {
public:
    enum class decides { first_failure, first_end };

    deciding_group(task_context& parent, decides by)
        : task_group(parent)
        , by_(by)
    {
    }

    /// Who decided; null when nobody did.
    member_base const* decider() const noexcept { return decider_; }
    /// What the decider threw, or null.
    std::exception_ptr const& failure() const noexcept { return failure_; }

    void ended(member_base const& m, std::exception_ptr const& failure) noexcept;

private:
    decides by_;
    member_base const* decider_ = nullptr;
    std::exception_ptr failure_;
};

/// The part of a member that does not depend on its type.
class member_base : public work {
protected:
    member_base() = default;
    ~member_base() = default;

    deciding_group* group_ = nullptr;
};

/// One task of a group, and then its outcome. Can be moved until it is started.
template<class T>
class member final : public member_base {
public:
    explicit member(task<T> t) noexcept
        : body_(std::move(t))
    {
    }
    member(member&& other) noexcept
        : body_(std::move(other.body_))
    {
    }

    void start_in(deciding_group& g) noexcept
    {
        group_ = &g;
        run = [](work& self) noexcept { static_cast<member&>(self).begin(); };
        g.start_now(*this);
    }

    /// When it has ended.
    result<T>& outcome() noexcept { return outcome_; }

private:
    void begin() noexcept
    {
        if (!body_) {
            outcome_.fail(errc::invalid_argument, "started a task that is empty or was awaited before");
            group_->ended(*this, outcome_.failure());
            return;
        }
        auto ended = [](void* owner) noexcept {
            auto& self = *static_cast<member*>(owner);
            self.outcome_ = task_access::take(self.body_);
            // What the frame holds goes when its task has ended, not when all have.
            self.body_ = {};
            self.group_->ended(self, self.outcome_.failure());
        };
        task_access::start(body_, group_->context(), ended, this);
    }

    task<T> body_;
    result<T> outcome_;
};

template<class T>
struct value_in {
    using type = T;
};
template<class T>
struct value_in<T&> {
    using type = std::reference_wrapper<T>;
};
template<>
struct value_in<void> {
    using type = std::monostate;
};
/// What stands for a task's value in a tuple, a vector or a variant.
template<class T>
using value_of = typename value_in<T>::type;

/// The value of a member that has ended with one.
template<class T>
value_of<T> take_value(member<T>& m)
{
    if constexpr (std::is_void_v<T>) {
        return {};
    } else {
        return std::move(m.outcome()).value();
    }
}

template<class R>
using range_element = std::remove_cvref_t<decltype(*std::begin(std::declval<R&>()))>;

/// Tasks that may be moved out: a container that is given away, or a view that makes them.
template<class R>
concept task_range = taskable<range_element<R>> && (!std::is_lvalue_reference_v<R> ||
                                                    !std::is_reference_v<decltype(*std::begin(std::declval<R&>()))>);

template<class R>
using range_value = typename range_element<R>::value_type;

template<class R>
std::vector<member<range_value<R>>> members_of(R& tasks)
{
    std::vector<member<range_value<R>>> members;
    if constexpr (requires { tasks.size(); }) members.reserve(tasks.size());
    for (auto&& t : tasks) {
        members.emplace_back(task<range_value<R>>(std::move(t)));
    }
    return members;
}

} // namespace plait::detail
