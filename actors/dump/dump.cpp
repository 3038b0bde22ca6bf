#include <plait/actors/dump/dump.hpp>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/timeout.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

namespace plait {

namespace {

/// Of a chain that is longer, the middle is left out.
constexpr std::size_t most_lines = 48;

void add_site(site where, std::string& to)
{
    to += where.file;
    to += ':';
    to += std::to_string(where.line);
}

void add_chain(detail::frame const& root, std::size_t indent, std::string& to)
{
    std::vector<detail::frame const*> chain;
    for (auto const* f = &root; f; f = f->awaited())
        chain.push_back(f);
    for (std::size_t i = 0; i < chain.size(); ++i) {
        if (i == most_lines / 2 && chain.size() > most_lines) {
            auto const left_out = chain.size() - most_lines;
            to.append(indent + i, ' ') += "(" + std::to_string(left_out) + " more)\n";
            i += left_out;
        }
        to.append(indent + std::min(i, most_lines), ' ');
        add_site(chain[i]->where(), to);
        if (i + 1 == chain.size()) {
            to += " waits for ";
            if (auto const* on = chain[i]->awaited_operation()) {
                to += on->kind().name;
                if (on->kind().describe) on->kind().describe(*on, to);
            } else {
                to += "something that is not plait's";
            }
        }
        to += '\n';
    }
}

void add_chains(detail::chain_list const& chains, std::string& to)
{
    for (auto const* root = chains.first(); root; root = detail::chain_list::next(*root))
        add_chain(*root, 4, to);
}

/// The answers of those who were asked, in their order.
class answers {
public:
    /// Makes room for an answer; `unanswered` stands there until it comes.
    std::size_t add(std::string unanswered)
    {
        std::lock_guard lock(mutex_);
        texts_.push_back(std::move(unanswered));
        ++left_;
        return texts_.size() - 1;
    }
    void set(std::size_t which, std::string text)
    {
        {
            std::lock_guard lock(mutex_);
            texts_[which] = std::move(text);
        }
        one_less();
    }
    /// Nobody is added any more.
    void all_asked() { one_less(); }
    std::string text()
    {
        std::lock_guard lock(mutex_);
        std::string sum;
        for (auto const& t : texts_)
            sum += t;
        return sum;
    }
    event& all() noexcept { return all_; }

private:
    void one_less()
    {
        std::unique_lock lock(mutex_);
        bool const last = --left_ == 0;
        lock.unlock();
        if (last) all_.set();
    }

    std::mutex mutex_;
    std::vector<std::string> texts_;
    std::size_t left_ = 1; ///< those who have not answered, and whoever asks
    event all_;
};

/// Asks a part of the runtime on its own executor. Deletes itself.
struct question : work, detail::pooled {
    question(std::shared_ptr<answers> t, std::size_t w)
        : to(std::move(t))
        , which(w)
    {
    }
    std::shared_ptr<answers> to;
    std::size_t which;
};

struct question_to_actor final : question {
    question_to_actor(std::shared_ptr<answers> t, std::size_t w, detail::actor_core& c)
        : question(std::move(t), w)
        , core(c)
    {
        core.add_weak();
        run = [](work& self) noexcept {
            std::unique_ptr<question_to_actor> q(&static_cast<question_to_actor&>(self));
            std::string text;
            q->core.describe(text);
            q->to->set(q->which, std::move(text));
            q->core.drop_weak();
        };
    }
    detail::actor_core& core;
};

struct question_to_task final : question {
    question_to_task(std::shared_ptr<answers> t, std::size_t w, detail::run_registry& a, std::uint64_t n)
        : question(std::move(t), w)
        , all(a)
        , number(n)
    {
        run = [](work& self) noexcept {
            std::unique_ptr<question_to_task> q(&static_cast<question_to_task&>(self));
            std::string text;
            q->all.with(q->number, [&](detail::run_entry& e) {
                text = "task #" + std::to_string(e.number) + "\n";
                add_chains(e.chains, text);
            });
            q->to->set(q->which, std::move(text));
        };
    }
    detail::run_registry& all;
    std::uint64_t number;
};

} // namespace

namespace detail {

void actor_core::describe(std::string& to) const
{
    to += "actor " + label() + ": ";
    to += gone_                                     ? "gone"
          : closed_.load(std::memory_order_relaxed) ? "stopping"
          : paused_                                 ? "paused by a failure"
          : holder_                                 ? "held exclusively"
          : running_.empty()                        ? "idle"
                                                    : "running";
    to += ", " + std::to_string(depth()) + " of " + std::to_string(capacity_) + " messages waiting\n";
    for (auto* m = running_.first(); m; m = message_list::next(*m)) {
        to += "  ";
        to += m->method();
        if (m == holder_) to += ", exclusively";
        if (m->sent_from().line != 0) {
            to += ", called at ";
            add_site(m->sent_from(), to);
        }
        to += '\n';
        add_chains(m->chains(), to);
    }
}

} // namespace detail

task<std::string> dump(runtime& home, duration patience)
{
    auto to = std::make_shared<answers>();
    std::vector<question_to_actor*> to_actors;
    auto const now = detail::in_seconds(home.clock().now().time_since_epoch());
    home.registry()->for_each([&](detail::actor_core& core) {
        auto const waiting = std::to_string(core.depth());
        auto which = to->add("actor " + core.label() + ": busy, " + waiting + " messages waiting\n");
        to_actors.push_back(new question_to_actor(to, which, core));
    });
    for (auto* q : to_actors)
        q->core.post(*q);
    home.runs().for_each([&](detail::run_entry& e) {
        // Within the registry's lock, since the place may go when the task has ended.
        auto which = to->add("task #" + std::to_string(e.number) + ": busy\n");
        e.place->post(*new question_to_task(to, which, home.runs(), e.number));
    });
    to->all_asked();
    auto const in_time = co_await as_result(timeout(home.clock(), patience, wait_for(to->all())));
    if (in_time.error() && in_time.error() != errc::deadline_exceeded) std::rethrow_exception(in_time.failure());
    co_return "at " + now + "\n" + to->text();
}

} // namespace plait
