defmodule SimdjsonTest do
  use ExUnit.Case
  doctest Simdjson
end
