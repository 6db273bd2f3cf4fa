-module(fairnif_check_fault_tests).

-include_lib("eunit/include/eunit.hrl").

-define(F, fairnif_check_fault).

%% {What a node said, what that is called, whose stack was used up}. Functions are named in the
%% files of true libraries only: fairnif_check_run_tests.
last_words_are_reported_test_() ->
    [{Words, [?_assertEqual(Report, unicode:characters_to_list(?F:report(list_to_binary(Words)))),
              ?_assertEqual(Stack, ?F:overflow(list_to_binary(Words)))]}
     || {Words, Report, Stack} <-
            [{"fairnif_check_fault 4 0 1\t/a/b.so+1f\t/c/libc.so.6+3", "SIGILL in b.so+0x1f", no},
             {"fairnif_check_fault 11 0 1\t/c/libc.so.6+1f\t/c/ld-2.36.so+3\t/a dir/b.so+2",
              "SIGSEGV in libc.so.6+0x1f, called by b.so+0x2", no},
             {"fairnif_check_fault 8 0 2\t/o/beam.smp+1f\t/c/libc.so.6+3",
              "SIGFPE in beam.smp+0x1f", no},
             {"fairnif_check_fault 7 1 3\t/a/b+c.so+0", "SIGBUS in b+c.so+0x0", dirty_io},
             {"fairnif_check_fault 11 1 2\t/a/b.so+0", "SIGSEGV in b.so+0x0", dirty_cpu},
             {"fairnif_check_fault 11 1 1\t/a/b.so+0", "SIGSEGV in b.so+0x0", normal},
             {"fairnif_check_fault 11 1 0\t/a/b.so+0", "SIGSEGV in b.so+0x0", no},
             {"fairnif_check_fault 31 0 1", "signal 31 outside of any library", no},
             {"Cannot allocate 8 bytes", "Cannot allocate 8 bytes", no},
             {"", "", unknown}]].
