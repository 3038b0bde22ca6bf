#include <plait/actors/gone.hpp>

namespace plait::detail {

std::shared_ptr<event> when_gone(actor_core* core)
{
    struct watch : work, pooled {
        actor_core* core;
        std::shared_ptr<event> end;
    };
    auto end = std::make_shared<event>();
    if (!core) {
        end->set();
        return end;
    }
    auto* w = new watch;
    w->core = core;
    w->end = end;
    w->run = [](work& self) noexcept {
        auto& w = static_cast<watch&>(self);
        w.run = [](work& self) noexcept {
            auto* w = static_cast<watch*>(&self);
            auto* core = w->core;
            w->end->set();
            delete w;
            core->drop_weak();
        };
        w.core->when_gone(w);
    };
    core->add_weak();
    core->post(*w);
    return end;
}

} // namespace plait::detail
