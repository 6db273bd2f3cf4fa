%% Password hashes: Argon2 (RFC 9106) by libargon2.
%%
%% A hash is made to be expensive: with the default options it takes 64 MiB and a tenth of a second.
%% It is computed on a thread of fairnif's pool, at a lower priority than the schedulers', and the
%% caller waits meanwhile without a scheduler. Up to four are computed at once (ARGON2_MAX_TASKS in
%% argon2.c); others wait, and raise `error:overloaded' after `overload_ms' of fairnif.
%%
%% A hash that has begun runs to its end, also when its caller dies.
%%
%% Errors: `badarg' for a password or a salt that is no binary, options out of range, and a string
%% that is no hash; `enomem' where there is no memory for it.
-module(argon2).

-export([hash/1, hash/2, verify/2, needs_rehash/2]).
%% To be measured against: the same on a dirty CPU scheduler.
-export([hash_dirty/2]).

-export_type([options/0, phc/0]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

-nifs([nif_hash/8, nif_hash_dirty/8]).

%% Defaults: the second recommendation of RFC 9106, for machines without 2 GiB to spare for each
%% hash.
-type options() :: #{type => argon2d | argon2i | argon2id,  % default argon2id
                     passes => pos_integer(),               % default 3
                     memory_kib => pos_integer(),           % default 65536; at least 8 for a lane
                     lanes => pos_integer(),                % default 4
                     hash_size => pos_integer(),            % bytes, default 32; at least 4
                     salt => binary()}.                     % default 16 random bytes; at least 8
%% `$argon2id$v=19$m=65536,t=3,p=4$SALT$HASH', as other implementations write it and read it.
-type phc() :: binary().

%% Of what a stored string may ask: a forged one must not take all the node's memory.
-define(MAX_KIB, 4194304).
-define(VERSION, 19).
-define(TYPES, [{argon2d, 0}, {argon2i, 1}, {argon2id, 2}]).
-define(DEFAULTS, #{type => argon2id, passes => 3, memory_kib => 65536, lanes => 4,
                    hash_size => 32}).

init() -> ?FAIRNIF_LOAD.

%% @equiv hash(Password, #{})
-spec hash(Password :: binary()) -> phc().
hash(Password) ->
    hash(Password, #{}).

%% @doc The string to store for this password.
-spec hash(Password :: binary(), options()) -> phc().
hash(Password, Options) ->
    hashed(fun fair/8, Password, Options).

%% @private
-spec hash_dirty(Password :: binary(), options()) -> phc().
hash_dirty(Password, Options) ->
    hashed(fun nif_hash_dirty/8, Password, Options).

hashed(Hash, Password, Options) ->
    #{salt := Salt} = All = with_defaults(Options),
    written(All, Salt, run(Hash, All, ?VERSION, Password, Salt)).

%% @doc Whether that string was made of this password. Takes as long as it took to make it, whatever
%% the answer.
-spec verify(Password :: binary(), phc()) -> boolean().
verify(Password, Phc) ->
    {Options, Version, Salt, Hash} = parsed(Phc),
    crypto:hash_equals(run(fun fair/8, Options, Version, Password, Salt), Hash).

%% @doc Whether hash/2 would use other costs today: hash again, at the next login.
-spec needs_rehash(phc(), options()) -> boolean().
needs_rehash(Phc, Options) ->
    {Stored, Version, _, _} = parsed(Phc),
    Version =/= ?VERSION orelse Stored =/= maps:remove(salt, with_defaults(Options)).

with_defaults(#{} = Options) ->
    case maps:keys(Options) -- [salt | maps:keys(?DEFAULTS)] of
        [] ->
            maps:merge(?DEFAULTS, case Options of
                                      #{salt := _} -> Options;
                                      _ -> Options#{salt => crypto:strong_rand_bytes(16)}
                                  end);
        [_ | _] ->
            error(badarg)
    end;
with_defaults(_) ->
    error(badarg).

run(Hash, #{type := Type, passes := Passes, memory_kib := Kib, lanes := Lanes, hash_size := Size},
    Version, Password, Salt)
  when is_integer(Kib), Kib =< ?MAX_KIB, is_integer(Size), Size =< 1024,
       %% The library takes any other for the newest.
       Version =:= 16 orelse Version =:= ?VERSION ->
    case lists:keyfind(Type, 1, ?TYPES) of
        {_, Number} -> Hash(Number, Version, Passes, Kib, Lanes, Size, Password, Salt);
        false -> error(badarg)
    end;
run(_, _, _, _, _) ->
    error(badarg).

fair(Type, Version, Passes, Kib, Lanes, Size, Password, Salt) ->
    try
        fairnif:await(nif_hash(Type, Version, Passes, Kib, Lanes, Size, Password, Salt))
    catch
        %% The stack trace of the first has the password in it.
        error:Reason -> error(Reason)
    end.

%% ---- the string ----

written(#{type := Type, passes := Passes, memory_kib := Kib, lanes := Lanes}, Salt, Hash) ->
    iolist_to_binary(io_lib:format("$~s$v=~b$m=~b,t=~b,p=~b$~s$~s",
                                   [Type, ?VERSION, Kib, Passes, Lanes, base64(Salt),
                                    base64(Hash)])).

parsed(Phc) when is_binary(Phc) ->
    case re:run(Phc, ["^\\$(argon2(?:d|i|id))\\$(?:v=(\\d{1,3})\\$)?"
                      "m=(\\d{1,9}),t=(\\d{1,9}),p=(\\d{1,8})"
                      "\\$([A-Za-z0-9+/]+)\\$([A-Za-z0-9+/]+)\\z"],
                [{capture, all_but_first, binary}]) of
        {match, [Type, Version, Kib, Passes, Lanes, Salt, Hash64]} ->
            Hash = bytes(Hash64),
            {#{type => binary_to_existing_atom(Type), memory_kib => binary_to_integer(Kib),
               passes => binary_to_integer(Passes), lanes => binary_to_integer(Lanes),
               hash_size => byte_size(Hash)},
             %% The first version had no number.
             case Version of <<>> -> 16; _ -> binary_to_integer(Version) end,
             bytes(Salt), Hash};
        nomatch ->
            error(badarg)
    end;
parsed(_) ->
    error(badarg).

%% Without the padding.
base64(Bytes) ->
    string:trim(base64:encode(Bytes), trailing, "=").

bytes(Base64) ->
    Padding = binary:part(<<"===">>, 0, -byte_size(Base64) band 3),
    try base64:decode(<<Base64/binary, Padding/binary>>)
    catch error:_ -> error(badarg)
    end.

%% ---- the library ----

nif_hash(_Type, _Version, _Passes, _Kib, _Lanes, _Size, _Password, _Salt) ->
    erlang:nif_error(not_loaded).

nif_hash_dirty(_Type, _Version, _Passes, _Kib, _Lanes, _Size, _Password, _Salt) ->
    erlang:nif_error(not_loaded).
