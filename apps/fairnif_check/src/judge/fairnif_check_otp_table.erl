%% Functions of OTP (and three packages) that many nodes call with large input: data, and nothing
%% else. fairnif_check_manners checks each and writes the page about them.
-module(fairnif_check_otp_table).

-export([rows/0]).

-export_type([row/0]).

-type row() :: #{expression := string(),        % of Bin, N and Init, as in bin/fairnif check
                 init := string() | undefined,
                 sizes := [pos_integer(), ...], % N, and bytes of Bin
                 unit := bytes | elements | iterations | bits | characters | digits,    % N counts
                 needs := module() | undefined}.% left out, with a word, where that is missing

-define(MIB, 1048576).

%% @doc The rows, in the order of the page.
-spec rows() -> [row(), ...].
rows() ->
    [#{expression => Expression, init => Init, sizes => Sizes, unit => Unit, needs => needs(Module)}
     || {Module, Expression, Init, Sizes, Unit} <- crypto() ++ binaries() ++ terms() ++ packages()].

%% What every node has.
needs(erlang) -> undefined;
needs(Module) -> Module.

crypto() ->
    [{crypto, "crypto:hash(sha256, Bin)", undefined, [?MIB, 64 * ?MIB], bytes},
     {crypto, "crypto:hash_update(Init, Bin)", "crypto:hash_init(md5)",
      [?MIB, 64 * ?MIB], bytes},
     {crypto, "crypto:pbkdf2_hmac(sha256, <<\"password\">>, <<\"salt\">>, N, 32)", undefined,
      [10000, 500000], iterations},
     {crypto, "crypto:crypto_one_time_aead(aes_256_gcm, <<0:256>>, <<0:96>>, Bin, <<>>, true)",
      undefined, [?MIB, 64 * ?MIB], bytes},
     {crypto, "crypto:crypto_one_time_aead(chacha20_poly1305, <<0:256>>, <<0:96>>, Bin, <<>>, "
      "true)", undefined, [?MIB, 64 * ?MIB], bytes},
     {crypto, "crypto:mod_pow(3, 1 bsl N - 1, 1 bsl 4096 - 1)", undefined, [256, 4096], bits},
     {crypto, "crypto:exor(Bin, Bin)", undefined, [?MIB, 256 * ?MIB], bytes},
     {crypto, "crypto:generate_key(rsa, {N, 65537})", undefined, [1024, 2048], bits}].

binaries() ->
    [{erlang, "erlang:md5(Bin)", undefined, [?MIB, 64 * ?MIB], bytes},
     {erlang, "erlang:crc32(Bin)", undefined, [?MIB, 64 * ?MIB], bytes},
     {erlang, "binary:match(Bin, <<\"not in it, or hardly\">>)", undefined,
      [?MIB, 64 * ?MIB], bytes},
     {erlang, "binary:matches(Bin, <<0>>)", undefined, [?MIB, 64 * ?MIB], bytes},
     {erlang, "binary:split(Bin, <<0>>, [global])", undefined, [?MIB, 64 * ?MIB], bytes},
     %% Exponential in N, until PCRE's own limit ends it.
     {erlang, "re:run(Init, \"^(a+)+$\")", "<<(binary:copy(<<$a>>, N))/binary, $b>>", [15, 40],
      characters},
     {erlang, "zlib:compress(Bin)", undefined, [?MIB, 32 * ?MIB], bytes},
     %% OTP 28 and newer.
     {zstd, "zstd:compress(Bin)", undefined, [?MIB, 32 * ?MIB], bytes},
     {erlang, "binary_to_integer(Init)", "binary:copy(<<\"7\">>, N)", [1000, 100000], digits}].

terms() ->
    [{erlang, Expression, Init, [10000, 5000000], elements}
     || {Expression, Init} <-
            [{"term_to_binary(Init)", "[{I, integer_to_binary(I)} || I <- lists:seq(1, N div 5)]"},
             {"binary_to_term(Init)", "term_to_binary(lists:seq(1, N))"},
             {"iolist_to_binary(Init)", "lists:duplicate(N, <<\"twenty bytes, or less\">>)"},
             {"erlang:phash2(Init)", "lists:seq(1, N)"},
             {"lists:reverse(Init)", "lists:seq(1, N)"},
             {"length(Init)", "lists:seq(1, N)"},
             {"lists:member(not_in_it, Init)", "lists:seq(1, N)"},
             {"list_to_tuple(Init)", "lists:seq(1, N)"}]]
        ++ [{erlang, Expression, Init, [10000, 1000000], elements}
            || {Expression, Init} <-
                   [{"term_to_binary(Init, [compressed])", "lists:seq(1, N)"},
                    {"T = ets:new(t, []), ets:insert(T, Init), ets:delete(T)",
                     "[{I, I} || I <- lists:seq(1, N)]"}]].

%% N bytes of text, about, and what a package starts before.
-define(TEXT(App, Start, Each, End),
        "{ok, _} = application:ensure_all_started(" App "), "
        "iolist_to_binary([\"" Start "\", lists:duplicate(N div 40, \"" Each "\"), \"" End "\"])").
-define(JSON, "iolist_to_binary([$[, lists:join($,, lists:duplicate(N div 40, "
        "<<\"{\\\"id\\\":12345678,\\\"name\\\":\\\"somebody\\\"}\">>)), $]])").

packages() ->
    [{fxml_stream, "fxml_stream:parse_element(Init)",
      ?TEXT("fast_xml", "<all>", "<person id='12345678'>somebody</person>", "</all>"),
      [100000, 20000000], bytes},
     {fast_yaml, "fast_yaml:decode(Init)",
      ?TEXT("fast_yaml", "", "- id: 12345678\\n  name: somebody or other\\n", ""),
      [100000, 5000000], bytes},
     {jiffy, "jiffy:decode(Init)", ?JSON, [100000, 20000000], bytes},
     {jiffy, "jiffy:encode(Init)", "jiffy:decode(" ?JSON ")", [100000, 20000000], bytes}].
