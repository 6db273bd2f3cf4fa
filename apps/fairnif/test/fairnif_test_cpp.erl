%% The module of fairnif_test_cpp.cpp, where each function is explained.
-module(fairnif_test_cpp).

-compile([export_all, nowarn_export_all]).

-on_load(init/0).

-define(NIF, erlang:nif_error(not_loaded)).

init() ->
    fairnif:loaded(erlang:load_nif(fairnif_test:library(?MODULE), fairnif:load_info())).

int8(_) -> ?NIF.
uint8(_) -> ?NIF.
int16(_) -> ?NIF.
uint16(_) -> ?NIF.
int32(_) -> ?NIF.
uint32(_) -> ?NIF.
int64(_) -> ?NIF.
uint64(_) -> ?NIF.
long_long(_) -> ?NIF.
double(_) -> ?NIF.
float(_) -> ?NIF.
bool(_) -> ?NIF.
atom(_) -> ?NIF.
string(_) -> ?NIF.
view(_) -> ?NIF.
bytes(_) -> ?NIF.
iodata(_) -> ?NIF.
doubled(_) -> ?NIF.
ints(_) -> ?NIF.
bools(_) -> ?NIF.
strings(_) -> ?NIF.
nested(_) -> ?NIF.
tuple(_) -> ?NIF.
pair(_) -> ?NIF.
optional(_) -> ?NIF.
variant(_) -> ?NIF.
map(_) -> ?NIF.
unordered_map(_) -> ?NIF.
copied_strings(_) -> ?NIF.
sized_strings(_) -> ?NIF.
sized_map(_) -> ?NIF.
kept(_, _) -> ?NIF.
twice(_) -> ?NIF.
atom_name(_) -> ?NIF.
is_ok(_) -> ?NIF.
nothing() -> ?NIF.
returns_nothing() -> ?NIF.
by_hand(_) -> ?NIF.
count_down(_) -> ?NIF.
turned(_) -> ?NIF.
infinite() -> ?NIF.
throws(_) -> ?NIF.
counts() -> ?NIF.
reset() -> ?NIF.
endless_normal(_) -> ?NIF.
endless_dirty(_) -> ?NIF.
endless_threaded(_) -> ?NIF.
takes_lock() -> ?NIF.
twice_locked() -> ?NIF.
unwinds_to_lock() -> ?NIF.
keeper(_) -> ?NIF.
keeper_threaded(_) -> ?NIF.
receives(_) -> ?NIF.
receives_unawaited(_) -> ?NIF.
sends(_, _) -> ?NIF.
applies(_, _) -> ?NIF.
unwinds_to_receive() -> ?NIF.
was_guarded() -> ?NIF.
ends(_) -> ?NIF.
catches(_, _) -> ?NIF.
unwinds(_) -> ?NIF.
calls() -> ?NIF.
new_cell(_) -> ?NIF.
new_other() -> ?NIF.
new_tended(_) -> ?NIF.
tended_aligned(_) -> ?NIF.
add(_, _) -> ?NIF.
aligned(_) -> ?NIF.
deep(_) -> ?NIF.
