#pragma once

namespace plait {

class engine;
class engine_core;
class generation;
class rank;
struct engine_options;
struct piece;
struct policy;
struct request;
struct snapshot;
struct step_plan;
struct summary;

} // namespace plait
