"""Tests of the implementation."""
