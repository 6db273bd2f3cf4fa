%% The module of fairnif_test_cpp.cpp, where each function is explained.
-module(fairnif_test_cpp).

-compile([export_all, nowarn_export_all]).
-compile({parse_transform, fairnif_test_stubs}).
-nifs([int8/1, uint8/1, int16/1, uint16/1, int32/1, uint32/1, int64/1, uint64/1, long_long/1,
       double/1, float/1, bool/1, atom/1, string/1, view/1, bytes/1, iodata/1, doubled/1, ints/1,
       bools/1, strings/1, nested/1, tuple/1, pair/1, optional/1, variant/1, map/1, unordered_map/1,
       copied_strings/1, sized_strings/1, sized_map/1, kept/2, twice/1, atom_name/1, is_ok/1,
       nothing/0, returns_nothing/0, by_hand/1, count_down/1, turned/1, infinite/0, throws/1,
       counts/0, reset/0, endless_normal/1, endless_dirty/1, endless_threaded/1,
       twice_locked/0, unwinds_to_lock/0, keeper/1, keeper_threaded/1, applies/2,
       unwinds_to_receive/0, was_guarded/0, ends/1,
       catches/2, unwinds/1, calls/0, new_cell/1, new_other/0, new_tended/1, tended_aligned/1,
       add/2, aligned/1, deep/1]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

init() ->
    ?FAIRNIF_LOAD(fairnif_test:library(?MODULE)).
