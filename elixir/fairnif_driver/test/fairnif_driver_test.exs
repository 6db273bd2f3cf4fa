defmodule FairnifDriverTest do
  use ExUnit.Case

  test "its library is handed fairnif's runtime" do
    assert %{jobs: 0, ports: 0, requests: 0, libraries: 0} = :fairnif_driver.counts()
  end

  test "a driver finds its header" do
    assert File.exists?(Path.join(:fairnif_driver.include_dir(), "fairdrv.h"))
  end

  test "it is the application that rebar3 builds" do
    assert Application.spec(:fairnif_driver, :modules) == [:fairnif_driver]

    {:ok, [{:application, :fairnif_driver, resource}]} =
      :file.consult('src/fairnif_driver.app.src')

    for key <- [:vsn, :registered, :applications] do
      assert Application.spec(:fairnif_driver, key) == resource[key]
    end
  end
end
