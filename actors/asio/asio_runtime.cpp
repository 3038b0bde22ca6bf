#include <plait/actors/asio/asio_runtime.hpp>

#include <plait/actors/asio/asio_machine.hpp>

namespace plait {

asio_runtime::asio_runtime(std::unique_ptr<detail::asio_machine> below, runtime_hooks hooks)
    : below_(below.get())
    , home_(std::make_unique<runtime>(std::move(below), std::move(hooks)))
{
}

asio_runtime::asio_runtime(asio::io_context& context, asio_runtime_options const& options)
    : asio_runtime(std::make_unique<detail::asio_machine>(context, options.clock), options)
{
}

asio_runtime::asio_runtime(asio::any_io_executor where, asio_runtime_options const& options)
    : asio_runtime(std::make_unique<detail::asio_machine>(std::move(where), options.clock), options)
{
}

asio_runtime::~asio_runtime() = default;

/// Deletes itself.
struct asio_runtime::ending : work {
    asio_runtime* self = nullptr;
    std::function<void()> then;

    /// When its last turns are over.
    void finish()
    {
        auto const next = std::move(then);
        self->home_.reset();
        delete this;
        next();
    }
};

void asio_runtime::end(std::function<void()> then)
{
    auto* e = new ending;
    e->self = this;
    e->then = std::move(then);
    e->run = [](work& self) noexcept {
        auto& e = static_cast<ending&>(self);
        e.self->below_->when_quiet([&e] { e.finish(); });
    };
    home_->wind_down(*e);
}

} // namespace plait
