defmodule ZstandardTest do
  use ExUnit.Case
  doctest Zstandard
end
