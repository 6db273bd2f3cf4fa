defmodule Fairnif.Nif do
  # What `use Fairnif` and `defnif` expand to. What is wrong in them is a CompileError at the
  # author's line: a library that does not load says much less.
  @moduledoc false

  @options [:otp_app, :path, :load_info]

  @doc false
  def use(options, env) do
    options = literal(options, env)
    {load_info, options} = Keyword.pop(options, :load_info, :undefined)
    otp_app = options[:otp_app]
    path = Keyword.get(options, :path, Macro.underscore(env.module))

    # Now, and not when the body is evaluated: defnif is expanded before that.
    Module.register_attribute(env.module, :fairnif_nifs, accumulate: true)

    quote do
      import Fairnif, only: [defnif: 1]

      @before_compile Fairnif.Nif
      @on_load :__fairnif_load__
      @fairnif_otp_app Fairnif.Nif.otp_app(unquote(otp_app), __ENV__)
      @fairnif_path Fairnif.Nif.path(unquote(path), __ENV__)

      @doc false
      def __fairnif_load__,
        do: Fairnif.load(@fairnif_otp_app, @fairnif_path, unquote(load_info))
    end
  end

  # Called in the author's module: the values may be attributes.
  @doc false
  def otp_app(nil, env),
    do:
      wrong("use Fairnif needs the application whose priv has the library: otp_app: :my_app", env)

  def otp_app(name, _) when is_atom(name) and not is_boolean(name), do: name

  def otp_app(other, env),
    do: wrong("otp_app: #{inspect(other)} is not the name of an application", env)

  @doc false
  def path(path, env) when is_binary(path) do
    cond do
      path == "" or Path.type(path) != :relative or ".." in Path.split(path) ->
        wrong("path: #{inspect(path)} is not a path within priv", env)

      Path.extname(path) in [".so", ".dll", ".dylib"] ->
        wrong("path: #{inspect(path)} stands without its extension: the VM adds it", env)

      true ->
        path
    end
  end

  def path(other, env), do: wrong("path: #{inspect(other)} is not a text", env)

  @doc false
  defmacro __before_compile__(env) do
    if Module.get_attribute(env.module, :fairnif_nifs) == [] do
      wrong(
        "#{inspect(env.module)} uses Fairnif and declares no NIF: defnif name(argument, ...)",
        %{
          env
          | line: 1
        }
      )
    end
  end

  @doc false
  def define(head, env) do
    {name, arguments} = head(head, env)

    unless Module.has_attribute?(env.module, :fairnif_nifs) do
      wrong("defnif needs `use Fairnif, otp_app: ...` in #{inspect(env.module)}", env)
    end

    quote do
      @fairnif_nifs {unquote(name), unquote(length(arguments))}
      def unquote(name)(unquote_splicing(arguments)) do
        unquote_splicing(for argument <- arguments, do: quote(do: _ = unquote(argument)))
        # The compiler takes nothing for granted of what nif_error returns.
        :erlang.nif_error(:not_loaded)
      end
    end
  end

  defp head({:when, _, _}, env), do: wrong("a NIF has no guard: defnif name(argument, ...)", env)

  defp head({name, _, arguments} = head, env) when is_atom(name) and is_list(arguments) do
    for argument <- arguments, not variable?(argument) do
      wrong(
        "`#{Macro.to_string(argument)}` in defnif #{Macro.to_string(head)}: the arguments are " <>
          "variables, without patterns and defaults",
        env
      )
    end

    {name, arguments}
  end

  defp head(other, env),
    do: wrong("`defnif #{Macro.to_string(other)}`: write defnif name(argument, ...)", env)

  defp variable?({name, _, context}), do: is_atom(name) and name != :_ and is_atom(context)
  defp variable?(_), do: false

  defp literal(options, env) do
    unless Keyword.keyword?(options) do
      wrong("use Fairnif takes a list of options: use Fairnif, otp_app: :my_app", env)
    end

    case Keyword.keys(options) -- @options do
      [] -> options
      [key | _] -> wrong(unknown(key, options), env)
    end
  end

  defp unknown(key, options) do
    if key in @options do
      "#{inspect(key)} stands twice in use Fairnif, #{Macro.to_string(options)}"
    else
      "#{inspect(key)} is not an option of use Fairnif; the options are " <>
        Enum.map_join(@options, ", ", &inspect/1)
    end
  end

  defp wrong(text, env) do
    raise CompileError, file: env.file, line: env.line, description: text
  end
end
