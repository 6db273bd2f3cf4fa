%% The dirty I/O pool is full: see fairnif_watch_detect_pool.
-module(fairnif_watch_detect_dirty_io).

-behaviour(fairnif_watch_detector).

-export([name/0, describe/0, thresholds/0, remedy/0, init/0, observe/3]).

%% @private
-spec name() -> dirty_io_saturated.
name() -> dirty_io_saturated.

%% @private
-spec describe() -> binary().
describe() -> <<"All dirty I/O schedulers are busy and jobs wait for one.">>.

%% @private
-spec thresholds() -> [fairnif_watch_detector:threshold()].
thresholds() -> fairnif_watch_detect_pool:thresholds().

%% @private
-spec remedy() -> binary().
remedy() ->
    <<"Start more threads: +SDio (up to 1024). Or wait outside of dirty schedulers (fair_wait, "
      "FAIR_THREADED).">>.

%% @private
-spec init() -> none | integer().
init() -> fairnif_watch_detect_pool:init().

%% @private
-spec observe(fairnif_watch_detector:observation(), map(), none | integer()) ->
          {same | [fairnif_watch_finding:issue()], none | integer()}.
observe(Observation, Limits, State) ->
    Pool = #{kind => dirty_io, what => "dirty I/O", remedy => remedy()},
    fairnif_watch_detect_pool:observe(Pool, Observation, Limits, State).
