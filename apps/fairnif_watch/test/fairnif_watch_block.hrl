%% What Erlang sees of c_src/block_nif.c, whichever library it is built as.

-define(NIF(Ms), erlang:nif_error({not_loaded, Ms})).

%% The ways to block a scheduler for that many ms; with _dirty_cpu and _dirty_io behind them, on
%% those schedulers.
spin(Ms) -> ?NIF(Ms).
spin_dirty_cpu(Ms) -> ?NIF(Ms).
spin_dirty_io(Ms) -> ?NIF(Ms).
libc(Ms) -> ?NIF(Ms).
libc_dirty_cpu(Ms) -> ?NIF(Ms).
libc_dirty_io(Ms) -> ?NIF(Ms).
deep(Ms) -> ?NIF(Ms).
deep_dirty_cpu(Ms) -> ?NIF(Ms).
deep_dirty_io(Ms) -> ?NIF(Ms).
sleep(Ms) -> ?NIF(Ms).
sleep_dirty_cpu(Ms) -> ?NIF(Ms).
sleep_dirty_io(Ms) -> ?NIF(Ms).
poll(Ms) -> ?NIF(Ms).
poll_dirty_cpu(Ms) -> ?NIF(Ms).
poll_dirty_io(Ms) -> ?NIF(Ms).
lock(Ms) -> ?NIF(Ms).
lock_dirty_cpu(Ms) -> ?NIF(Ms).
lock_dirty_io(Ms) -> ?NIF(Ms).
read(Ms) -> ?NIF(Ms).
read_dirty_cpu(Ms) -> ?NIF(Ms).
read_dirty_io(Ms) -> ?NIF(Ms).
disk(Ms) -> ?NIF(Ms).
disk_dirty_cpu(Ms) -> ?NIF(Ms).
disk_dirty_io(Ms) -> ?NIF(Ms).
vfork(Ms) -> ?NIF(Ms).
vfork_dirty_cpu(Ms) -> ?NIF(Ms).
vfork_dirty_io(Ms) -> ?NIF(Ms).
kernel(Ms) -> ?NIF(Ms).
kernel_dirty_cpu(Ms) -> ?NIF(Ms).
kernel_dirty_io(Ms) -> ?NIF(Ms).
machine(Ms) -> ?NIF(Ms).
machine_dirty_cpu(Ms) -> ?NIF(Ms).
machine_dirty_io(Ms) -> ?NIF(Ms).
machine_named(Ms) -> ?NIF(Ms).
machine_named_dirty_cpu(Ms) -> ?NIF(Ms).
machine_named_dirty_io(Ms) -> ?NIF(Ms).

%% @doc Spins for that many us.
burst(Us) -> ?NIF(Us).

%% @doc Sleeps for that many us; answers how often a signal broke that off.
nap(Us) -> ?NIF(Us).

%% @doc An object whose destructor spins for that many ms.
object(Ms) -> ?NIF(Ms).

%% @doc Writes to that address, and so ends the node with SIGSEGV.
fault(Address) -> ?NIF(Address).
fault_dirty_io(Address) -> ?NIF(Address).

version() -> erlang:nif_error(not_loaded).

%% @doc The number of the caller's thread in the operating system.
tid() -> erlang:nif_error(not_loaded).
