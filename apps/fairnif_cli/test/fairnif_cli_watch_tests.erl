-module(fairnif_cli_watch_tests).

-include_lib("eunit/include/eunit.hrl").

%% ---- usage: exit 2, before anything is connected to ----

what_cannot_be_understood_is_exit_2_and_says_why_test_() ->
    [{string:join(Args, " "), fairnif_check_said:says(fairnif_cli, 2, ["watch" | Args], Part)}
     || {Args, Part} <-
            [{[], "watch needs the name of a node"},
             {["a@b@c"], "`a@b@c' is not the name of a node"},
             {["a@b", "c@d.e"], "some of these names are long and some are short"},
             {["a@b", "--colour"], "`--colour' is not an option"},
             {["a@b", "--json", "x.json"], "`--json' needs `--once'"},
             {["a@b", "--token", "0123456789abcdef"], "`--token' needs `--http'"},
             {["a@b", "--once", "--http", "127.0.0.1:80"], "`--once' contradicts `--http'"},
             {["a@b", "--once", "--self-test"], "`--self-test' contradicts `--once'"},
             {["a@b", "--self-test", "--erlang-only"],
              "`--self-test' contradicts `--erlang-only'"},
             {["a@b", "--once", "--plain"], "`--once' contradicts `--plain'"},
             {["a@b", "--warn", "50ms", "--error", "20ms"], "`--error' must be at least warn_ms"},
             {["a@b", "--warn", "90s"], "`--warn' must be an integer from 1 to 60000 (ms)"},
             {["a@b", "--http", "0.0.0.0:80"], "that needs a token (http_token, or --token)"},
             {["a@b", "--http", "80", "--token", "short"], "a token is 16 to 256 letters"},
             {["a@b", "--cookie", "c", "--cookie-file", "f"],
              "`--cookie' contradicts `--cookie-file'"},
             {["a@b", "--cookie-file", "/nowhere/at/all"], "cannot read /nowhere/at/all"},
             {["a@b", "--cookie", ""], "the cookie is empty"},
             {["a@b", "--seconds", "0"], "at least 1"},
             {["a@b", "--warn", "10"], "`10' is not a time"},
             {["a@b", "--http", "localhost:80"], "is not an address and port"},
             {["a@b", "--http", "127.0.0.1:70000"], "is not an address and port"},
             {["a@b", "--tls", "/nowhere/at/all"], "there is no file /nowhere/at/all"},
             {["a@b", "--cookie", "c", "--name", "x@y.z"], "must have the form of the nodes'"},
             {["a@b", "--once", "--json", "/nowhere/at/all.json"], "cannot write"}]].

an_address_may_be_a_port_alone_or_of_either_family_test_() ->
    [?_assertEqual(Address, fairnif_cli_watch:address(Text))
     || {Text, Address} <- [{"8080", {{127, 0, 0, 1}, 8080}},
                            {"0.0.0.0:0", {{0, 0, 0, 0}, 0}},
                            {"[::1]:8080", {{0, 0, 0, 0, 0, 0, 0, 1}, 8080}}]].
