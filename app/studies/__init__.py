"""Blind human judging: studies drawn from runs, frozen, rated by judges, looked over, closed.

A judge's browser is only ever given what `ItemView` holds. Functions take a session and leave the commit to
their caller.
"""
