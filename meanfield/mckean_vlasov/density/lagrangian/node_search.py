"""Nodes in u: more of them until they change little, on panels that follow the solution where that takes long.

Levels of more points are those of the fewest nodes to which the others are a small correction.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.mckean_vlasov.closures import values_at_time
from meanfield.mckean_vlasov.density.lagrangian.estimate import (
    LARGEST_CORRECTION,
    MIXED_SHARE,
    NODES_SAFETY,
    Correction,
    Rule,
    change,
    fewest_nodes,
    mixed_change,
    without_correction,
)
from meanfield.mckean_vlasov.density.lagrangian.levels import FACTORS, NODES_WORK, Levels
from meanfield.mckean_vlasov.density.lagrangian.panels import Panels
from meanfield.mckean_vlasov.density.lagrangian.preparation import continued
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.start import Nodes
from meanfield.typing import FloatArray

MORE_NODES, MANY_MORE_NODES = 1.35, 1.9
"""Factor on nodes per feature from one trial to the next, and on all nodes where there should be panels but are not."""

SLOW_TRIALS = 2
"""Number of such trials after which averages given u seem to have kinks, and nodes lie on panels."""

PANELS_AT_ONCE = 100.0
"""Change by more nodes, in units of the tolerance, after which panels are taken at once."""

NODES_SHARE = 0.5
"""Share of the tolerance that is left to the error of the nodes in u."""

ORDER, ACROSS = 8, 7
"""Nodes of a panel, and of smooth pieces of lines across the panels of two features."""

SHARE_OF_NODES = 0.8
"""Share of the nodes of a rule that others must not exceed to be worth a correction."""

MOST_GROWTH = (4.0, 1.5)
"""Largest ratio of the first nodes on panels to those before them, where one or two coordinates are continuous."""

SECOND_WORK = 4.0 / 3.0
"""Work of the second level of a rule, in units of that of the first one."""


class NodeSearch:
    """Search for the nodes of one problem.

    Parameters
    ----------
    levels : Levels
    settings : DensitySettings
    tolerance : float
        Largest error of q and r.

    Attributes
    ----------
    product : Rule or None
        Where panels were looked for, the last rule before them, a product of nodes in every feature.
    """

    def __init__(self, levels: Levels, settings: DensitySettings, tolerance: float) -> None:
        self._levels, self._settings, self._tolerance = levels, settings, tolerance
        self.product: Rule | None = None
        self._tried_panels = bool(settings.feature_nodes)

    def nodes_of(self, scale: float) -> Nodes:
        """Nodes of the default rule, with a factor on their number per feature."""
        return Nodes.of_limit(self._levels.limit, self._settings.feature_nodes, scale)

    def choose(self, start: Rule) -> tuple[Rule, Correction]:
        """Rule of finer levels, and the correction of these; more nodes are taken until still more change little.

        The change of the first level may be that of its points, which vary from node to node; then the change of two
        levels decides.
        """
        rules = [start]
        changed, enough = np.zeros(self._levels.limit.judged), True
        falls = False
        while True:
            rule = rules[-1]
            slow = len(rules) > SLOW_TRIALS or changed.max() > PANELS_AT_ONCE * self._tolerance
            if slow and not self._tried_panels:
                found = self._on_panels(rules)
                if found:
                    return found
            many = MANY_MORE_NODES ** (1.0 / len(self._levels.limit.coordinates))
            scale = rule.scale * (MORE_NODES if self.product is None else max(MORE_NODES, many))
            more = self.nodes_of(scale)
            growth = len(more.u_weight) / rule.size
            if growth == 1.0 or not (enough or self._affords(growth, rules)):
                break  # laws of finitely many values and rules that have no more nodes, or no work left
            rules.append(self._with_more(rule, scale, more))
            before, (changed, enough) = changed, self._change(rules)
            falls = bool(NODES_SAFETY * changed.max() <= before.max())
            if enough or rules[-1].size > 4000:  # larger rules take too long
                break
        found = fewest_nodes(rules, changed, self._tolerance)
        if found:
            return found
        if enough and len(rules) > 1 and NODES_SAFETY * changed.max() <= NODES_SHARE * self._tolerance:
            return self._uncorrected(rules, rules[-2], changed)
        # Where changes fall as that factor presumes, the last rule is nearer than the one before it by the change.
        left = (1.0 - 1.0 / NODES_SAFETY) if falls else 1.0
        return self._uncorrected(rules, rules[-1], left * changed)

    def _on_panels(self, rules: list[Rule]) -> tuple[Rule, Correction] | None:
        """The same with panels after some rules, or None if there are none or their work is too much."""
        limit, known = self._levels.limit, rules[-1]
        arguments = limit.arguments_of(known.first.moments[-1])
        pull = values_at_time(limit.phases[-1], float(limit.times[-1]), arguments)[: len(limit.coordinates)]
        panels = Panels.start(limit.coordinates, pull, ORDER, ACROSS, limit.spectrum)
        # The errors of all panels by their coefficients may have a quarter of the tolerance.
        allowed = 0.25 * self._tolerance
        self.product = known
        if panels is not None and not self._affordable(panels, known):
            return None  # they may be once there are more nodes without panels
        self._tried_panels = True
        if panels is None:
            return None
        if len(limit.coordinates) > 1 and not self.second_levels(known):
            return None  # of several features, densities of w are shown at products of nodes, by two levels
        tried = [self._on(panels, known)]
        # The next rule on panels takes up to 1.8 of the work of the last, and must leave enough for levels.
        while self._affords(1.8, [*rules, *tried]) and len(tried) <= 12:  # cuts of panels
            errors = panels.errors(tried[-1].first)
            cut = panels.halved(errors, allowed)
            # More cuts would change a tenth of the tolerance, or less.
            steady = len(tried) > 1 and change(tried[-2], tried[-1], 1).max() <= 0.1 * self._tolerance
            if steady or cut is panels or sum(each.sum() for each in errors) <= allowed:
                wider = panels.with_more_nodes()
                tried.append(self._on(wider, known))
                changed, enough = self._change([*rules, *tried])
                if enough:
                    return self._corrected([*rules, *tried], changed)
                cut = panels.halved(panels.changes(tried[-2].first, wider, tried[-1].first), allowed)
                if cut is panels:  # what changes is spread over all panels, or comes from the second levels
                    panels, allowed = wider, 0.1 * allowed  # more nodes on them change too much
                    continue
            panels = cut
            tried.append(self._on(panels, known))
        return self._corrected([*rules, *tried], change(tried[-2], tried[-1], 1)) if len(tried) > 1 else None

    def _affordable(self, panels: Panels, known: Rule) -> bool:
        """Whether panels have few enough nodes to begin with."""
        growth = len(panels.nodes(self._levels.limit).u_weight) / known.size
        return growth <= MOST_GROWTH[len(panels.lines[0].axes) - 1] and self._levels.allows(growth, known.first)

    def _corrected(self, rules: list[Rule], changed: FloatArray) -> tuple[Rule, Correction]:
        """The rule of fewest nodes to which those on the last panels are a small correction."""
        rule, better = rules[-2:]
        bases = [each for each in self._bases(rules[:-2], better) if each.size <= SHARE_OF_NODES * rule.size]
        for base in bases[:2]:  # two rules are tried
            if not self._leaves_levels(SECOND_WORK * (rule.first.work + base.first.work), base):
                break
            self.second_levels(rule, base)
            found = fewest_nodes([base, rule, better], changed, self._tolerance)
            if found and found[0] is base:
                return found
        return self._uncorrected(rules, rule, changed)

    def _uncorrected(self, rules: list[Rule], rule: Rule, changed: FloatArray) -> tuple[Rule, Correction]:
        """One of the rules as it is, or the last one whose finer levels are not too much work."""
        affordable = [each for each in rules if self._levels.allows(1.0, each.first)] or rules[:1]
        if rule in affordable:
            return rule, without_correction(rule, changed)
        fewer = affordable[-1]
        return fewer, without_correction(fewer, np.maximum(changed, change(fewer, rules[-1], 1)))

    def _bases(self, rules: list[Rule], better: Rule) -> list[Rule]:
        """Rules to which a better one is a small correction, as far as first levels tell."""
        most = LARGEST_CORRECTION * self._tolerance
        return [each for each in rules if np.abs(each.first.moments - better.first.moments)[:, :-1].max() <= most]

    def _leaves_levels(self, work: float, base: Rule) -> bool:
        """Whether the budget allows some work and, after it, the finer levels of a rule."""
        return self._levels.budget.allows(work + NODES_WORK * base.first.work)

    def _affords(self, growth: float, rules: list[Rule]) -> bool:
        """Whether the budget allows a rule of so many times the nodes of the last one, and finer levels after it.

        These are of fewer nodes where there are some to which the last rule is a small correction.
        """
        last = rules[-1]
        bases = [each for each in self._bases(rules[:-1], last) if each.size <= SHARE_OF_NODES * last.size]
        if not bases:
            return self._levels.allows(growth, last.first)
        return self._leaves_levels((1.0 + SECOND_WORK) * growth * last.first.work, bases[0])

    def _on(self, panels: Panels, known: Rule) -> Rule:
        """First level of the rule on panels."""
        frames = continued(known.frames, panels.nodes(self._levels.limit))
        return Rule(known.scale, frames, None, self._levels.coarsest(frames, known.first.tolerance), on_panels=True)

    def _with_more(self, rule: Rule, scale: float, nodes: Nodes) -> Rule:
        """First level of a rule with more nodes."""
        tolerance = rule.first.tolerance
        if any(each.size for each in rule.frames.jumps):
            known = None if rule.frames.grading.terms.size else rule.frames
            frames, trial = self._levels.prepared(nodes, tolerance, known)
        else:
            frames, trial = continued(rule.frames, nodes), None
        return Rule(scale, frames, trial, self._levels.coarsest(frames, tolerance))

    def _change(self, rules: list[Rule]) -> tuple[FloatArray, bool]:
        """Change of q and r by the last rule, and whether it is small; of two levels if the change before needed it."""
        rule, better = rules[-2:]
        by_first, mixed = change(rule, better, 1), mixed_change(rules[:-1])
        mixes = bool(mixed.max() > MIXED_SHARE * self._tolerance)
        safety = NODES_SAFETY if mixes or rule.second is None else 1.0  # what is left of a correction is less
        allowed = math.inf if self._settings.feature_nodes else NODES_SHARE * self._tolerance / safety
        if by_first.max() <= allowed and not mixes:
            return by_first, True
        if by_first.max() > PANELS_AT_ONCE * self._tolerance:
            return by_first, False
        second = SECOND_WORK * (better.first.work + (rule.first.work if rule.second is None else 0.0))
        base = next(iter(self._bases(rules[:-1], better)), better)
        if not self._leaves_levels(second, base) or not self.second_levels(rule, better):
            return by_first + mixed[: by_first.size], False
        by_both = change(rule, better, 2)
        return by_both, bool(by_both.max() <= allowed)

    def second_levels(self, *rules: Rule) -> bool:
        """Solve second levels where there are none; whether all are there."""
        for rule in rules:
            if rule.second is None:
                factor = FACTORS[1] * rule.first.points / rule.frames.first_points(self._levels.limit)
                rule.second = self._levels.solved(rule.frames, factor, rule.first.tolerance)
        return all(rule.second is not None for rule in rules)
