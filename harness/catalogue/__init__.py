"""Scenario files to cases.

In: `scenarios/**/*.toml`. Out: frozen cases with what may come back, and load plans.
May use: model, http.
"""
