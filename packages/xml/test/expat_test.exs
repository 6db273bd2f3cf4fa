defmodule ExpatTest do
  use ExUnit.Case
  doctest Expat
end
