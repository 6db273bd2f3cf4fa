%% Who is named, by frames as the watchdog sends them (innermost first).
-module(fairnif_watch_culprit_tests).

-include_lib("eunit/include/eunit.hrl").

frame(In, Library, Symbol) ->
    #{address => 4096, library => Library, offset => 16#12f0, function_offset => none,
      symbol => Symbol, symbol_offset => 4, in => In, nif => none, by => none}.

libc() -> frame(libc, <<"/lib/libc.so.6">>, <<"memcpy">>).
helper() -> frame(library, <<"/app/priv/my.so">>, <<"inner_loop">>).
nif() -> (frame(library, <<"/app/priv/my.so">>, <<"work">>))#{nif := {my, work, 2}}.
emulator(Symbol) -> frame(emulator, <<"/usr/lib/erlang/erts/bin/beam.smp">>, Symbol).
jit() -> frame(jit, none, none).

event(Stack) -> #{event => held, fairnif => none, process => none, syscall => none, stack => Stack}.

of_stack(Stack) -> fairnif_watch_culprit:of_event(event(Stack)).

the_library_function_that_the_emulator_called_is_named_test() ->
    ?assertMatch(#{kind := nif, name := <<"my:work/2">>, mfa := {my, work, 2}, module := my,
                   symbol := <<"work">>, library := <<"/app/priv/my.so">>},
                 of_stack([libc(), helper(), nif(), jit()])).

an_emulator_function_that_the_nif_called_is_not_the_culprit_test() ->
    ?assertMatch(#{kind := nif, mfa := {my, work, 2}},
                 of_stack([emulator(<<"enif_make_copy">>), nif(), emulator(none), jit()])).

a_library_without_a_table_is_named_by_symbol_or_offset_test() ->
    ?assertMatch(#{kind := nif, mfa := none, name := <<"inner_loop (my.so)">>},
                 of_stack([helper(), jit()])),
    ?assertMatch(#{name := <<"my.so+0x12f0">>, offset := 16#12f0, symbol := none},
                 of_stack([(helper())#{symbol := none}, jit()])).

a_known_module_stands_before_the_place_test() ->
    ?assertMatch(#{module := my, mfa := none, name := <<"my (my.so+0x12f0)">>},
                 of_stack([(helper())#{symbol := none, nif := {my}}])).

%% The process is the one that the thread ran before.
a_destructor_is_named_with_its_type_and_has_no_process_test() ->
    Frame = (helper())#{destructor => {my, statement}},
    Event = (event([libc(), Frame, emulator(none), emulator(<<"erts_schedule">>), jit()]))
        #{process := self()},
    ?assertMatch(#{kind := destructor, name := <<"destructor of my:statement (my.so)">>,
                   module := my, mfa := none, pid := none, symbol := <<"inner_loop">>},
                 fairnif_watch_culprit:of_event(Event)),
    ?assertMatch(#{kind := nif}, of_stack([Frame#{destructor := none}, jit()])).

fairnif_names_its_own_functions_exactly_test() ->
    Owner = self(),
    Event = (event([helper(), jit()]))
        #{fairnif := #{function => {fair, body, 1}, owner => Owner, since => 0, yields => 3}},
    ?assertMatch(#{kind := fairnif, name := <<"fair:body/1">>, mfa := {fair, body, 1},
                   pid := Owner, module := fair},
                 fairnif_watch_culprit:of_event(Event)).

a_bif_is_the_outermost_function_of_the_emulator_above_the_code_test() ->
    ?assertMatch(#{kind := bif, mfa := {binary, split, 3}, name := <<"binary:split/3">>},
                 of_stack([libc(), emulator(<<"search">>), emulator(<<"binary_split_3">>), jit(),
                           emulator(<<"process_main">>)])).

a_function_of_the_emulator_that_is_no_bif_is_named_as_it_is_test() ->
    ?assertMatch(#{kind := emulator, mfa := none, name := <<"no_such_bif_3 (emulator)">>},
                 of_stack([emulator(<<"no_such_bif_3">>), jit()])).

without_a_symbol_it_is_emulator_and_offset_test() ->
    ?assertMatch(#{kind := emulator, name := <<"emulator+0x12f0">>},
                 of_stack([emulator(none), jit()])).

the_schedulers_own_loop_is_nobody_test() ->
    ?assertMatch(#{name := <<"erts_garbage_collect (emulator)">>},
                 of_stack([emulator(none), emulator(<<"erts_garbage_collect">>),
                           emulator(<<"erts_dirty_process_main">>)])).

nobody_is_named_where_there_is_no_stack_test() ->
    ?assertMatch(#{kind := none, name := <<"unknown">>}, of_stack([])).

the_system_call_is_kept_by_its_name_test() ->
    Event = (event([libc(), nif(), jit()]))#{syscall := {35, nanosleep}},
    ?assertMatch(#{syscall := nanosleep}, fairnif_watch_culprit:of_event(Event)),
    ?assertMatch(#{syscall := undefined},
                 fairnif_watch_culprit:of_event(Event#{syscall := {999, undefined}})).

complete(Stack, Facts) -> fairnif_watch_culprit:complete(of_stack(Stack), Facts).

a_loaded_driver_is_told_from_a_nif_by_its_library_test() ->
    Facts = #{drivers => [<<"my">>, <<"tcp_inet">>]},
    ?assertMatch(#{kind := driver, name := <<"my: inner_loop (my.so)">>, module := none},
                 complete([helper(), jit()], Facts)),
    ?assertMatch(#{kind := nif}, complete([helper(), jit()], #{drivers => [<<"other">>]})),
    %% What the nif table named is a NIF whatever drivers are called.
    ?assertMatch(#{kind := nif, mfa := {my, work, 2}}, complete([nif(), jit()], Facts)).

the_module_that_loaded_the_library_is_added_test() ->
    ?assertMatch(#{module := my, name := <<"my: inner_loop (my.so)">>},
                 complete([helper(), jit()], #{module => my})).

a_collection_is_named_only_where_the_emulator_ran_test() ->
    ?assertMatch(#{kind := gc, name := <<"garbage collection">>},
                 complete([emulator(none), jit()], #{gc => true})),
    ?assertMatch(#{kind := nif}, complete([nif(), jit()], #{gc => true})).

what_the_process_says_of_itself_is_kept_test() ->
    ?assertMatch(#{registered := server, current_function := {m, f, 1}},
                 complete([nif(), jit()],
                          #{registered => server, current_function => {m, f, 1}})).
