%% What the checker must ask the operating system or the VM from C: c_src/fairnif_check_nif.c.
%%
%% A peer node loads it at the first call of load/0, outside of whatever is measured.
-module(fairnif_check_nif).

-export([load/0, thread_times/0, cpu_time/0, now/0, now_dirty_cpu/0, now_dirty_io/0,
         malloc_used/0, sentinel/2]).
-nifs([thread_times/0, cpu_time/0, now/0, now_dirty_cpu/0, now_dirty_io/0, malloc_used/0,
       sentinel/2]).

-on_load(init/0).

-export_type([thread_times/0]).

%% Nanoseconds: the VM's monotonic time, the CPU time of the calling thread, how long it was ready
%% to run while another thread had its processor (0 where the kernel does not say); its number.
-type thread_times() :: {Monotonic :: integer(), Cpu :: integer(), Waited :: integer(),
                         Thread :: integer()}.

init() ->
    erlang:load_nif(filename:join(code:priv_dir(fairnif_check), "fairnif_check_nif"), 0).

%% @doc Loads the library, if it is not loaded yet.
-spec load() -> ok.
load() ->
    _ = ?MODULE:now(),
    ok.

%% @doc The times of the thread that calls. Costs about a microsecond.
-spec thread_times() -> thread_times().
thread_times() -> erlang:nif_error(not_loaded).

%% @doc Ns for which this node has had processors. statistics(runtime) leaves out what the kernel
%% computed for it.
-spec cpu_time() -> non_neg_integer().
cpu_time() -> erlang:nif_error(not_loaded).

%% @doc Monotonic time in ns, taken in a plain NIF.
-spec now() -> integer().
now() -> erlang:nif_error(not_loaded).

%% @doc The same on a dirty CPU scheduler.
-spec now_dirty_cpu() -> integer().
now_dirty_cpu() -> erlang:nif_error(not_loaded).

%% @doc The same on a dirty I/O scheduler.
-spec now_dirty_io() -> integer().
now_dirty_io() -> erlang:nif_error(not_loaded).

%% @doc Bytes that malloc(3) has given out in this node: to native code, and to the VM for some of
%% its carriers. Some 10 us; `undefined' with a C library that does not say.
-spec malloc_used() -> non_neg_integer() | undefined.
malloc_used() -> erlang:nif_error(not_loaded).

%% @doc A term that says when it is gone: `To' gets `{sentinel, Key, MonotonicNs}' when no process
%% holds it any more. What a process that was killed in a dirty NIF holds stays until the NIF has
%% returned, so this tells when native code really stopped; a DOWN message does not.
-spec sentinel(To :: pid(), Key :: term()) -> term().
sentinel(_To, _Key) -> erlang:nif_error(not_loaded).
