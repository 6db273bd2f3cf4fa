%% Who is named, by frames as the watchdog sends them (innermost first).
-module(fairnif_watch_culprit_tests).

-include_lib("eunit/include/eunit.hrl").

frame(In, Library, Symbol) ->
    #{address => 4096, library => Library, offset => 16#12f0, function_offset => none,
      symbol => Symbol, symbol_offset => 4, in => In, nif => none, by => none,
      destructor => none, driver => none, callback => none}.

libc() -> frame(libc, <<"/lib/libc.so.6">>, <<"memcpy">>).
helper() -> frame(library, <<"/app/priv/my.so">>, <<"inner_loop">>).
nif() -> (frame(library, <<"/app/priv/my.so">>, <<"work">>))#{nif := {my, work, 2}}.
emulator(Symbol) -> frame(emulator, <<"/usr/lib/erlang/erts/bin/beam.smp">>, Symbol).
jit() -> frame(jit, none, none).

event(Stack) ->
    #{event => blocked, fairnif => none, process => none, syscall => none, stack => Stack}.

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
    Frame = (helper())#{destructor := {my, statement}},
    Event = (event([libc(), Frame, emulator(none), emulator(<<"erts_schedule">>), jit()]))
        #{process := self()},
    ?assertMatch(#{kind := destructor, name := <<"destructor of my:statement (my.so)">>,
                   module := my, mfa := none, pid := none, symbol := <<"inner_loop">>},
                 fairnif_watch_culprit:of_event(Event)),
    ?assertMatch(#{kind := nif}, of_stack([Frame#{destructor := none}, jit()])).

%% Of the VM's exported functions as 10 cases showed them, each with who is to be named.
what_the_emulator_does_is_named_as_what_it_is_test_() ->
    Call = <<"beam_jit_call_bif(process*, unsigned long*, void const*)">>,
    Zlib = frame(library, <<"/lib/libz.so.1">>, <<"deflate">>),
    [{lists:flatten(io_lib:format("~ts", [Name])),
      ?_assertMatch(#{kind := Kind, name := Name, pid := Pid}, named(Stack))}
     || {Kind, Name, Pid, Stack} <-
            [{driver, <<"output of ram_file_drv (emulator)">>, self(),
              [libc(), (emulator(none))#{driver := <<"ram_file_drv">>, callback := output},
               emulator(<<"erts_port_output">>), emulator(<<"erts_internal_port_command_3">>),
               jit()]},
             {driver, <<"control of ram_file_drv (emulator)">>, self(),
              [Zlib, (emulator(none))#{driver := <<"ram_file_drv">>, callback := control},
               emulator(<<"erts_internal_port_control_3">>), jit()]},
             {nif, <<"zlib:deflate_nif/4">>, self(),
              [Zlib, (emulator(none))#{nif := {zlib, deflate_nif, 4}}, jit()]},
             {exit, <<"the end of a process">>, self(),
              [emulator(<<"erts_alcu_free_thr_pref">>), emulator(none),
               emulator(<<"erts_continue_exit_process">>), emulator(<<"handle_error">>), jit()]},
             {gc, <<"garbage collection">>, self(),
              [libc(), emulator(none), emulator(<<"erts_garbage_collect_nobump">>), jit()]},
             {gc, <<"garbage collection">>, self(),
              [emulator(none), emulator(<<"erts_garbage_collect_nobump">>), emulator(none),
               emulator(<<"beam_jit_bs_init(process*, unsigned long*)">>), jit()]},
             {bif, <<"a BIF: emulator+0x12f0">>, self(),
              [Zlib, emulator(<<"erl_zlib_deflate_chunk">>), emulator(none), emulator(Call),
               jit()]},
             {bif, <<"erlang:md5/1">>, self(),
              [emulator(<<"MD5Update">>), emulator(<<"md5_1">>), emulator(Call), jit()]},
             {emulator, <<"beam_jit_bs_init (emulator)">>, self(),
              [emulator(<<"beam_jit_bs_init(process*, unsigned long*)">>), jit()]},
             {emulator, <<"erts_proc_sig_handle_incoming (emulator)">>, none,
              [emulator(<<"erts_process_info">>), emulator(<<"erts_proc_sig_handle_incoming">>),
               emulator(<<"erts_schedule">>), jit()]}]].

named(Stack) ->
    fairnif_watch_culprit:of_event((event(Stack))#{process := self()}).

a_callback_of_a_library_is_named_with_its_module_test() ->
    Load = (frame(library, <<"/app/priv/slow.so">>, <<"fair__load_0">>))
        #{nif := {slow}, callback := load},
    ?assertMatch(#{kind := load, name := <<"load of slow (slow.so)">>, module := slow},
                 of_stack([libc(), Load, emulator(<<"erlang_load_nif_2">>), jit()])),
    Output = (frame(library, <<"/app/priv/my.so">>, none))#{driver := <<"my">>, callback := output},
    ?assertMatch(#{kind := driver, name := <<"output of my (my.so)">>}, of_stack([Output, jit()])).

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

the_schedulers_own_loop_is_no_culprit_test() ->
    ?assertMatch(#{name := <<"copy_struct_x (emulator)">>},
                 of_stack([emulator(none), emulator(<<"copy_struct_x">>),
                           emulator(<<"erts_dirty_process_main">>)])).

no_culprit_is_named_where_there_is_no_stack_test() ->
    ?assertMatch(#{kind := none, name := <<"unknown">>}, of_stack([])).

the_system_call_is_kept_by_its_name_test() ->
    Event = (event([libc(), nif(), jit()]))#{syscall := {35, nanosleep}},
    ?assertMatch(#{syscall := nanosleep}, fairnif_watch_culprit:of_event(Event)),
    ?assertMatch(#{syscall := undefined},
                 fairnif_watch_culprit:of_event(Event#{syscall := {999, undefined}})).

complete(Stack, Facts) -> fairnif_watch_culprit:complete(of_stack(Stack), Facts).

a_loaded_driver_differs_from_a_nif_by_its_library_test() ->
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
