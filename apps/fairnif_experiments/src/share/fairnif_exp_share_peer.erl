%% The part of the experiment `share' that runs inside its peer nodes: a native
%% function in each mode and with slices of each length, beside a busy neighbour
%% and beside a sleeper.
-module(fairnif_exp_share_peer).

-export([shares/3, delay/2, slice_us/1]).

-export_type([mode/0]).

%% `idle': nothing; `erlang': ordinary Erlang work; `by_hand': sliced by its
%% author, each slice charged in full, whatever its length (us); `yielding': a
%% fair function with slices of that length, charged for its time; the others as
%% the forms of the example.
-type mode() :: idle | erlang | plain | dirty | {by_hand, pos_integer()} | by_hand_dirty
              | {yielding, pos_integer()} | auto | yielding_dirty.

%% One call.
-define(CALL_US, 50000).

%% @doc What the mode leaves to a neighbour of each mix, see fairnif_lab_share;
%% in a node of its flags.
-spec shares(mode(), [fairnif_lab_share:mix()], fairnif_lab_share:options()) ->
          [fairnif_lab_share:result()] | {error, {error | exit | throw, term()}}.
shares(Mode, Mixes, Opts) ->
    prepare(Mode),
    shares(fun() -> call(Mode) end, Mixes, Opts, []).

shares(_, [], _, Results) ->
    lists:reverse(Results);
shares(Call, [Mix | Mixes], Opts, Results) ->
    case fairnif_lab_share:measure(Call, Opts#{mix => Mix}) of
        {ok, Result} -> shares(Call, Mixes, Opts, [Result | Results]);
        {error, _} = Error -> Error
    end.

%% @doc How late a sleeper is beside endless callers, as many as there are
%% schedulers.  Does not return where they leave no scheduler to anybody.
-spec delay(mode(), fairnif_lab_delay:options()) -> fairnif_lab_delay:result().
delay(idle, Opts) ->
    fairnif_lab_delay:measure(Opts);
delay(Mode, Opts) ->
    prepare(Mode),
    fairnif_lab_delay:beside(lists:duplicate(erlang:system_info(schedulers_online),
                                             fun() -> forever(Mode) end), Opts).

%% @doc How long the slices of this mode are to be here, us; `undefined' where
%% it has none, or the VM makes them.
-spec slice_us(mode()) -> float() | undefined.
slice_us({_, Us}) ->
    float(Us);
slice_us(auto) ->
    #{slice_ns := Ns} = fairnif:info(),
    Ns / 1000;
slice_us(yielding_dirty) ->
    #{dirty_slice_ns := Ns} = fairnif:info(),
    Ns / 1000;
slice_us(by_hand_dirty) ->
    1000.0;
slice_us(_) ->
    undefined.

%% Everything is loaded, and set, before anything is measured.
prepare({yielding, Us}) ->
    _ = code:ensure_loaded(fairnif_exp:spinsleep()),
    _ = fairnif:calibrate(),
    ok = application:set_env(fairnif, slice_us, Us),
    ok = fairnif:configure();
prepare(_) ->
    _ = code:ensure_loaded(fairnif_exp:spinsleep()),
    _ = fairnif:calibrate(),
    ok = fairnif_exp_nif:sliced(1, 1).

-spec forever(mode()) -> no_return().
forever(Mode) ->
    _ = call(Mode),
    forever(Mode).

call(erlang) -> fairnif_lab_share:work(sort);
call(plain) -> spin(spinwork);
call(dirty) -> spin(spinwork_dirty);
call({by_hand, Us}) -> fairnif_exp_nif:sliced(Us, max(1, ?CALL_US div Us));
call(by_hand_dirty) -> spin(spinwork_timeslice_dirty);
call({yielding, _}) -> spin(spinwork_fair_yield);
call(auto) -> spin(spinwork_fair);
call(yielding_dirty) -> spin(spinwork_fair_dirty_yield).

spin(Form) ->
    Example = fairnif_exp:spinsleep(),
    Example:Form(?CALL_US).
