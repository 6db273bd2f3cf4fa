defmodule Fairnif.MixTasksTest do
  # The tasks as a user runs them: in a VM of their own, by text and exit code.
  use ExUnit.Case, async: true

  @moduletag timeout: 300_000

  defp mix(args) do
    System.cmd("mix", args, stderr_to_stdout: true, env: [{"MIX_ENV", "test"}])
  end

  test "fairnif.check lists the options of bin/fairnif check" do
    {output, 0} = mix(["fairnif.check", "--help"])
    %{before: before, options: options} = :fairnif_check_command.command()
    assert output =~ to_string(before)

    for {name, _, _, _, _} <- options do
      assert output =~ "\n  #{name}"
    end
  end

  test "a wrong use ends with 2 and says what is wrong" do
    assert {output, 2} = mix(["fairnif.check"])
    assert output =~ "check needs an expression"
    assert {output, 2} = mix(["fairnif.check", "lists:sum("])
    assert output =~ "syntax error"
    assert {output, 2} = mix(["fairnif.check", "ok", "--colour"])
    assert output =~ "`--colour' is not an option of this command"
  end

  test "a function that crashes its node ends with 1" do
    assert {output, 1} =
             mix(["fairnif.check", "erlang:halt(abort)", "--size", "1k", "--time", "50ms"])

    assert output =~ "Not well-behaved"
  end

  test "a function of Elixir is measured in a node that finds it" do
    expression = "'Elixir.Base':encode16(Bin)"
    {output, code} = mix(["fairnif.check", expression, "--size", "1k", "--time", "50ms"])
    assert output =~ expression
    assert output =~ ~r/ok +crash +every call returned/
    # Whether it is well-behaved, the machine of the moment says.
    assert code in [0, 1, 3]
  end

  test "a check inside of a project without this one leaves the schedulers as they were" do
    before = :erlang.system_info(:schedulers_online)
    assert catch_exit(Fairnif.CommandLine.run("check", ["lists:sum("])) == {:shutdown, 2}
    assert :erlang.system_info(:schedulers_online) == before
  end
end
