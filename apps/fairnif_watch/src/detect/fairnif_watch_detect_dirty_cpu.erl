%% The dirty CPU pool is full: see fairnif_watch_detect_pool.
-module(fairnif_watch_detect_dirty_cpu).

-behaviour(fairnif_watch_detector).

-export([name/0, describe/0, thresholds/0, remedy/0, init/0, observe/3]).

%% @private
-spec name() -> dirty_cpu_saturated.
name() -> dirty_cpu_saturated.

%% @private
-spec describe() -> binary().
describe() -> <<"All dirty CPU schedulers are busy and jobs wait for one.">>.

%% @private
-spec thresholds() -> [fairnif_watch_detector:threshold()].
thresholds() -> fairnif_watch_detect_pool:thresholds().

%% @private
-spec remedy() -> binary().
remedy() ->
    <<"Let dirty jobs yield (fair_tick in a dirty mode), limit how many run at once, or start more "
      "threads: +SDcpu, up to the number of schedulers.">>.

%% @private
-spec init() -> none | integer().
init() -> fairnif_watch_detect_pool:init().

%% @private
-spec observe(fairnif_watch_detector:observation(), map(), none | integer()) ->
          {same | [fairnif_watch_finding:issue()], none | integer()}.
observe(Observation, Limits, State) ->
    Pool = #{kind => dirty_cpu, what => "dirty CPU", remedy => remedy()},
    fairnif_watch_detect_pool:observe(Pool, Observation, Limits, State).
