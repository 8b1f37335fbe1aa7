"""The results of experiment.yaml: both variants are done, they learn, and the router's choices are all counted."""

import sys

import h5py
import numpy as np

STEPS, BATCH, TOP_K, EXPERTS = 40, 64, 2, 4

with h5py.File(sys.argv[1]) as file:
    assert sorted(file["runs"]) == ["dense-s0", "own_kinds-s0"], list(file["runs"])
    for name, run in file["runs"].items():
        assert run.attrs["status"] == "done", (name, run.attrs["status"])
        loss = run["train/loss"][:]
        assert len(loss) == STEPS and np.isfinite(loss).all(), (name, loss)
        assert loss[-5:].mean() < 0.9 * loss[:5].mean(), (name, loss)
    own = file["runs/own_kinds-s0"]
    tokens = own["routing/expert_tokens"][:]
    assert tokens.shape[1:] == (2, EXPERTS), tokens.shape
    assert (tokens.sum(axis=2) == TOP_K * BATCH).all(), tokens
    assert (own["train/aux_load_balance"][:] >= 0.5).all() and (own["train/aux_z"][:] > 0).all()
    assert "kind: nearest" in own["config_resolved"].asstr()[()]
