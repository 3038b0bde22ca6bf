#pragma once

namespace plait {

class actor;
class chooser;
class clock;
class event;
class event_loop;
class executor;
class gate;
class latch; // NOLINT(bugprone-forward-declaration-namespace): std has one as well
class manual_clock;
class resumption;
class runtime;
class scope;
class simulation;
class semaphore;
class stop_source;
class stop_token;
class supervisor;
struct failure;
struct runtime_options;
struct site;
struct task_context;
struct work;
template<class T = void>
class task;
template<class T>
class channel;
template<class T>
class generator;
template<class T>
class ref;
template<class T>
class result;
template<class F>
class stop_callback;
template<class T>
class weak_ref;

} // namespace plait
