"""Tests here read data folders, and so the cache."""

from tests.own_cache import own_cache as own_cache
