"""A series of runs: an estimate for each held-out domain, then the final model, trained on every domain."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ltds.core.errors import CheckpointError, ConfigError
from ltds.core.files import cut, write_json
from ltds.core.progress import SILENT, Progress, Say, say_nothing
from ltds.core.runs import FINAL_RUN, SERIES_FILE, RunDirectory, free_for_training
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig, resolve, with_ranks
from ltds.engine.own_code import warn_of_reused_runs
from ltds.engine.same_data import data_checksums, require_same_data
from ltds.engine.start import refuse_existing, resume_run, train_new_run

FORMAT = 1
ESTIMATES = ("full", "one", "none")
NEW_SERIES = "or train a new series in another folder."


def estimated_domains(estimate: str, held_out: str | None, manifest: Manifest) -> list[str]:
    """The domains to hold out in turn, before the final model is trained."""
    if estimate == "one":
        if held_out is None:
            raise ConfigError(
                "Expected a held-out domain for the estimate 'one', but got none. Name one, or choose 'full'.",
                arguments=["held_out"],  # with the estimate 'full' it would be refused
            )
        manifest.domain_index(held_out)
        return [held_out]
    if held_out is not None:
        raise ConfigError(
            f"Expected no held-out domain with the estimate 'full', which holds out each in turn, but got "
            f"'{held_out}'. Choose 'one' to hold out that domain alone.",
            arguments=["estimate=one"],
        )
    if len(manifest.domains) < 2:
        raise ConfigError(
            f"Expected at least two domains to hold one out, but '{manifest.name}' has only '{manifest.domains[0]}'. "
            "Choose the estimate 'none', or add images of another domain.",
            arguments=["estimate=none"],
        )
    return list(manifest.domains)


def check_estimate(estimate: str) -> None:
    if estimate not in ESTIMATES:
        raise ConfigError(
            f"Expected argument 'estimate' to be one of {', '.join(ESTIMATES)}, but got '{estimate}'. Choose one.",
            arguments=["estimate=full"],
        )


def series_locked(path: Path) -> AbstractContextManager[None]:
    """Keep other processes from beginning or continuing a run or a series in this folder.

    Runs inside it have locks of their own: somebody may be resuming one of them alone.
    """
    return free_for_training(path)


def require_new(path: Path) -> None:
    """Raise unless a run or a series of runs can begin in this folder."""
    if RunSeries.exists_in(path):
        raise ConfigError(
            f"Expected '{path}' to be a new folder, but it holds a series of runs. "
            "Resume it, or choose another folder.",
            resume=path,
        )
    refuse_existing(RunDirectory(path))


@dataclass(frozen=True)
class RunSeries:
    """The runs of a series by folder name, in their order: estimates first, the final model last.

    `plan`: which settings were chosen for the user, and why; each run keeps it. `data`: checksums of what it was
    started on; none in a series from before they were kept.
    """

    path: Path
    configs: dict[str, dict[str, Any]]
    plan: dict[str, Any] | None = None
    data: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def create(
        cls,
        path: Path,
        config: RunConfig,
        domains: Sequence[str],
        manifest: Manifest,
        plan: dict[str, Any] | None = None,
    ) -> RunSeries:
        """Write which runs there will be; their settings differ in the held-out domain alone.

        The folder must be locked: another command may have begun there since this one looked.
        """
        require_new(path)
        configs: dict[str, dict[str, Any]] = {}
        for domain in domains:
            name = "estimate-" + cut(re.sub(r"[^\w.-]+", "_", domain), 100)
            while name.casefold() in map(str.casefold, configs):  # Macs and Windows have one folder A and a
                name += "_"
            configs[name] = _holding_out(config, domain)
        configs[FINAL_RUN] = _holding_out(config, "")
        data = data_checksums(config, manifest)
        write_json(path / SERIES_FILE, {"format": FORMAT, "runs": configs, "plan": plan, "data": data})
        return cls(path, configs, plan, data)

    @classmethod
    def read(cls, path: Path) -> RunSeries:
        try:
            content = json.loads((path / SERIES_FILE).read_text(encoding="utf-8"))
            runs = {str(name): dict(config) for name, config in content["runs"].items()}
            plan = content.get("plan")  # series from before it was kept have none
            plan = None if plan is None else dict(plan)
            data = {str(name): str(checksum) for name, checksum in content.get("data", {}).items()}
            if content["format"] != FORMAT or any(Path(name).name != name for name in runs):
                raise ValueError("another format")
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise CheckpointError(
                f"Expected '{path / SERIES_FILE}' to list the runs of a series, but got: {error}. "
                "Train again in another folder."
            ) from error
        return cls(path, runs, plan, data)

    @staticmethod
    def exists_in(path: Path) -> bool:
        return (path / SERIES_FILE).is_file()

    def run(self, name: str) -> RunDirectory:
        return RunDirectory(self.path / name)

    @property
    def done(self) -> bool:
        return all(self.run(name).done for name in self.configs)

    def train(
        self,
        manifest: Manifest | None = None,
        *,
        progress: Progress = SILENT,
        say: Say = say_nothing,
        trust: Iterable[str] | None = None,
        ranks: int | None = None,
    ) -> RunDirectory:
        """Train what is not trained yet, run after run; returns the final run. `manifest`: None reads the dataset.

        The folder must be locked. `ranks`: another number of them than the settings say.
        """
        kept = [run for run in map(self.run, self.configs) if run.done]
        for number, (name, config) in enumerate(self.configs.items(), 1):
            run = self.run(name)
            if run.done:
                continue
            say(f"Run {number} of {len(self.configs)}: {run.path}")
            resolved = with_ranks(resolve(config, trust=trust), ranks)
            manifest = manifest or Manifest.read(Path(resolved.data.root))
            now = data_checksums(resolved, manifest)
            require_same_data(self.path, self.data, now, resolved, manifest, remedy=NEW_SERIES)
            warn_of_reused_runs(self.path, [(earlier, resolved) for earlier in kept])
            kept = []  # once is enough
            if run.exists:
                resume_run(run, progress, trust=trust or (), ranks=ranks)
                continue
            train_new_run(run, resolved, manifest, progress, plan=self.plan)
        return self.run(FINAL_RUN)


def _holding_out(config: RunConfig, domain: str) -> dict[str, Any]:
    tables = config.to_dict()
    tables["data"]["held_out"] = domain
    return tables
