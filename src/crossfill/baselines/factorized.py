"""PF, parameter space factorization: the method of the paper, with a low-rank or a diagonal covariance."""

from crossfill.baselines.method import Method, Plan
from crossfill.config import Config
from crossfill.grid import Cell, Grid
from crossfill.model import FactorizedHeads
from crossfill.typology import load_typology, place


def plan(grid: Grid, seen: frozenset[Cell], config: Config) -> Plan:
    """Train on the seen cells, with the priors of languages where the config wants them."""
    if config.latents.prior == "standard":
        return Plan(grid, seen, seen)
    latents, typology = config.latents, load_typology(config.sources.vectors)
    placed = place(
        grid.inventory.languages,
        lambda a, b: typology.similarity(a, b, latents.typology),
        latents.size,
        latents.typology_power,
    )
    unknown = [language for language, vector in placed.items() if not vector.any()]
    notes = (f"without typological vectors, so that the prior is N(0, I): {', '.join(unknown)}",) if unknown else ()
    anchors = {language: latents.typology_scale * vector for language, vector in placed.items()}
    return Plan(grid, seen, seen, anchors=anchors, notes=notes)


METHODS = (
    Method("pf-lr", "factorised, low-rank covariance", FactorizedHeads, plan),
    Method("pf-d", "factorised, diagonal covariance", FactorizedHeads, plan),
)
