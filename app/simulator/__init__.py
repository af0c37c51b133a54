"""Simulated assistants behind a real OpenAI-compatible HTTP server, for the demo and for tests."""

from app.simulator.completions import MODELS
from app.simulator.running import Simulator, SimulatorFailed, SimulatorProcess
from app.simulator.settings import FAULTS, SimulatorSettings

__all__ = ["FAULTS", "MODELS", "Simulator", "SimulatorFailed", "SimulatorProcess", "SimulatorSettings"]
