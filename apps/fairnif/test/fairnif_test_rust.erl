%% The module of rust/tests/nif, where each function is explained.
-module(fairnif_test_rust).

-compile([export_all, nowarn_export_all]).

-on_load(init/0).

-define(NIF, erlang:nif_error(not_loaded)).

init() ->
    fairnif:loaded(erlang:load_nif(fairnif_test:library(?MODULE), fairnif:load_info())).

count(_, _) -> ?NIF.
count_normal(_, _) -> ?NIF.
count_dirty_cpu(_, _) -> ?NIF.
count_dirty_io(_, _) -> ?NIF.
count_threaded(_, _) -> ?NIF.
count_awaited(_, _) -> ?NIF.
count_no_yield(_, _) -> ?NIF.
count_small(_, _) -> ?NIF.
'count another'(_, _) -> ?NIF.
exor(_, _) -> ?NIF.
echo(_) -> ?NIF.
turned(_, _, _) -> ?NIF.
nothing() -> ?NIF.
rewritten(_) -> ?NIF.
lines(_) -> ?NIF.
sorted(_) -> ?NIF.
threads_of(_) -> ?NIF.
plain(_, _) -> ?NIF.
nif_counter(_) -> ?NIF.
keeper(_) -> ?NIF.
keeper_threaded(_) -> ?NIF.
receives(_, _) -> ?NIF.
receives_unawaited() -> ?NIF.
sends_unawaited() -> ?NIF.
sends(_, _) -> ?NIF.
applies(_, _) -> ?NIF.
first_of(_) -> ?NIF.
joins(_) -> ?NIF.
ticks_beside() -> ?NIF.
drops_one() -> ?NIF.
fails(_) -> ?NIF.
fails_as_theirs(_) -> ?NIF.
fails_as_a_term(_) -> ?NIF.
panics(_) -> ?NIF.
plain_panics() -> ?NIF.
guards() -> ?NIF.
reset_guards() -> ?NIF.
ends() -> ?NIF.
lasts(_) -> ?NIF.
lasts_dirty(_) -> ?NIF.
lasts_threaded(_) -> ?NIF.
ticks_by_a_static(_) -> ?NIF.
forgets(_) -> ?NIF.
keeps(_) -> ?NIF.
kept() -> ?NIF.
begins() -> ?NIF.
goes_on() -> ?NIF.
loads_again(_) -> ?NIF.
sleeps(_) -> ?NIF.
sleeps_unawaited(_) -> ?NIF.
sleeps_threaded(_) -> ?NIF.
pumps(_) -> ?NIF.
first(_, _) -> ?NIF.
hears(_) -> ?NIF.
sleeps_many(_) -> ?NIF.
runs_on(_) -> ?NIF.
offloads_a_panic() -> ?NIF.
body(_) -> ?NIF.
enter(_) -> ?NIF.
task(_, _) -> ?NIF.
args(_) -> ?NIF.
resource_counts() -> ?NIF.
reset_resource_counts() -> ?NIF.
short(_) -> ?NIF.
number_of(_) -> ?NIF.
short_fair(_) -> ?NIF.
all_of(_) -> ?NIF.
holds(_) -> ?NIF.
short_of_threads(_, _) -> ?NIF.
keep_short(_) -> ?NIF.
let_go_of_shorts() -> ?NIF.
theirs(_) -> ?NIF.
aligned(_) -> ?NIF.
nothing_at_all() -> ?NIF.
slow(_) -> ?NIF.
steps(_) -> ?NIF.
bad() -> ?NIF.
kind_of(_) -> ?NIF.
