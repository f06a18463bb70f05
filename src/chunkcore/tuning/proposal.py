"""`propose`: the next configuration, by Optuna, as a function of earlier trials and a seed and of nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from chunkcore.errors import MissingExtraError
from chunkcore.tuning.space import Parameter, Space, Values

if TYPE_CHECKING:
    import optuna

__all__ = ["Proposal", "Seen", "propose", "require_optuna"]

_REDRAWS = 30
_BRANCH = "branch"


class Proposal(NamedTuple):
    """A configuration of the space: a branch, and what is drawn for each of its parameters."""

    branch: str
    drawn: dict[str, Any]


class Seen(NamedTuple):
    """A trial that may be learnt from.

    Attributes:
        proposal: its configuration.
        values: quality first, which is to be high, then what is to be low; None where it failed.
    """

    proposal: Proposal
    values: tuple[float, ...] | None


def propose(space: Space, seen: Sequence[Seen], *, seed: int, blind: bool) -> Proposal:
    """A configuration that is not among those seen, unless thirty draws at random find none.

    Args:
        space: what may be drawn.
        seen: earlier trials, all with as many values.
        seed: equal seeds and trials give the same proposal, with one version of Optuna.
        blind: draw at random; else by Optuna's `TPESampler`, for all values at once.

    Raises:
        MissingExtraError: Optuna is not installed.

    Source: Bergstra et al., Algorithms for Hyper-Parameter Optimization, NIPS 2011; Ozaki et al., Multiobjective
    Tree-structured Parzen Estimator, JAIR 73 (2022).
    """
    optuna = require_optuna()
    known = {_spec(space, each.proposal) for each in seen}
    with _quiet(optuna):
        if not blind:
            values = max((len(each.values) for each in seen if each.values), default=1)
            study = optuna.create_study(
                directions=["maximize", *["minimize"] * (values - 1)], sampler=optuna.samplers.TPESampler(seed=seed)
            )
            study.add_trials([_trial(optuna, space, each) for each in seen])
            found = _ask(optuna, study, space, known)
            if _spec(space, found) not in known:
                return found
        return _ask(optuna, optuna.create_study(sampler=optuna.samplers.RandomSampler(seed)), space, known)


def _ask(optuna: Any, study: optuna.Study, space: Space, known: set[str]) -> Proposal:
    """A proposal that is not known, unless thirty are."""
    for _ in range(_REDRAWS):
        trial = study.ask()
        found = _draw(trial, space)
        if _spec(space, found) not in known:
            break
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return found


def require_optuna() -> Any:
    """The package.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise MissingExtraError.of("optuna", "tune", "search for a configuration") from error
    return optuna


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """No line a study on standard error; whoever uses Optuna beside us keeps their setting."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _draw(trial: optuna.Trial, space: Space) -> Proposal:
    branch = trial.suggest_categorical(_BRANCH, [each.name for each in space.branches])
    drawn = {}
    for option, parameter in space.branch(branch).parameters.items():
        name = f"{branch}.{option}"
        if not isinstance(parameter, Values):
            suggest: Any = trial.suggest_int if parameter.whole else trial.suggest_float
            drawn[option] = suggest(name, parameter.low, parameter.high, log=parameter.log)
        elif parameter.ordered:
            drawn[option] = trial.suggest_int(name, 0, len(parameter.values) - 1)
        else:
            drawn[option] = trial.suggest_categorical(name, range(len(parameter.values)))
    return Proposal(branch, drawn)


def _trial(optuna: Any, space: Space, seen: Seen) -> optuna.trial.FrozenTrial:
    """What `_draw` would have left in a study."""
    branch = space.branch(seen.proposal.branch)
    names = [each.name for each in space.branches]
    params: dict[str, Any] = {_BRANCH: branch.name}
    distributions: dict[str, Any] = {_BRANCH: optuna.distributions.CategoricalDistribution(names)}
    for option, parameter in branch.parameters.items():
        params[f"{branch.name}.{option}"] = seen.proposal.drawn[option]
        distributions[f"{branch.name}.{option}"] = _distribution(optuna, parameter)
    if seen.values is None:
        return optuna.trial.create_trial(  # type: ignore[no-any-return]
            state=optuna.trial.TrialState.FAIL, params=params, distributions=distributions
        )
    return optuna.trial.create_trial(  # type: ignore[no-any-return]
        values=list(seen.values), params=params, distributions=distributions
    )


def _distribution(optuna: Any, parameter: Parameter) -> Any:
    kinds = optuna.distributions
    if not isinstance(parameter, Values):
        kind = kinds.IntDistribution if parameter.whole else kinds.FloatDistribution
        return kind(parameter.low, parameter.high, log=parameter.log)
    if parameter.ordered:
        return kinds.IntDistribution(0, len(parameter.values) - 1)
    return kinds.CategoricalDistribution(range(len(parameter.values)))


def _spec(space: Space, proposal: Proposal) -> str:
    return space.branch(proposal.branch).spec(proposal.drawn)
