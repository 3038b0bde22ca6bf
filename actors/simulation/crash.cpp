#include <plait/actors/simulation/crash.hpp>

#include <plait/actors/tasks/frame_pool.hpp>
#include <plait/actors/tell.hpp>

#include <stdexcept>

namespace plait::detail {

namespace {

/// A told method that does nothing but throw. Deletes itself.
class crash_message final : public tell_message_base, public pooled {
public:
    crash_message(actor_core& core, std::string why, site where) noexcept
        : tell_message_base(core)
        , why_(std::move(why))
    {
        sent_from_ = where;
        core.add_strong();
    }
    std::string_view method() const noexcept override { return "crash"; }

private:
    ~crash_message() { core().drop_strong(); }

    void start() noexcept override
    {
        report({}, std::make_exception_ptr(std::runtime_error(why_)));
        core().ended(*this);
        delete this;
    }
    void refuse(errc) noexcept override { delete this; }

    std::string why_;
};

} // namespace

bool post_crash(actor_core& core, std::string why, site where)
{
    if (core.closed()) return false;
    auto* m = new crash_message(core, std::move(why), where);
    static_cast<void>(core.reserve(*m));
    core.post(*m);
    return true;
}

} // namespace plait::detail
