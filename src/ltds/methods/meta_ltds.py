"""LT-DS, the paper's method: Algorithm 1 on the losses of sections 3.2 and 3.3.

`MetaLtds.loss` reads like the algorithm box. Each setting is one reading of the paper where print, text and released
code differ; docs/paper-notes.md lists them, with the default and why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock, StepLoss
from ltds.losses.augmentation import augmentation_loss, strength_at
from ltds.losses.criteria import Criterion, CriterionSettings
from ltds.losses.semantic_alignment import semantic_alignment_loss
from ltds.losses.semantic_to_visual import semantic_to_visual_loss
from ltds.losses.visual_to_semantic import visual_to_semantic_loss
from ltds.methods.base import Method, weighted
from ltds.methods.meta_ltds_config import MetaLtdsConfig
from ltds.nn.inner_step import call_with, fast_weights, gradients, submodule_weights
from ltds.nn.known_gradient import with_known_gradient
from ltds.nn.projector import Projector
from ltds.semantics.embeddings import ClassEmbeddings
from ltds.stats.covariance import CovarianceEstimate, OnlineCovariance, covariance_distances
from ltds.stats.neighbours import neighbour_covariance, semantic_neighbours
from ltds.stats.prototypes import BlendedPrototypes, Prototypes, completed_prototypes


@dataclass(frozen=True)
class Net:
    """f, h and e as functions, at theta or at theta', and the matrices of h."""

    f: Callable[[Tensor], Tensor]
    h: Callable[[Tensor], Tensor]
    e: Callable[[Tensor], Tensor]
    weight: Tensor
    bias: Tensor


@dataclass(frozen=True)
class View:
    """What a net sees in some domains: features f(x) (N,D), logits h(f(x)) (N,C), projected e(f(x)) (N,S)."""

    features: Tensor
    logits: Tensor
    projected: Tensor
    labels: Tensor
    domains: Tensor


class MetaLtds(Method):
    """Meta-learning with a calibrated loss, visual-semantic mapping and semantic-similarity guided augmentation."""

    Config = MetaLtdsConfig
    config: MetaLtdsConfig
    semantics: Tensor  # s (R,S), unit rows: of all classes, or of those that some source trains on
    named: Tensor  # (R,) the classes of those rows
    position: Tensor  # (C,) their inverse
    similar: Tensor  # (C,k) neighbours of each class
    class_sizes: Tensor  # (C,)
    log_n_named: Tensor  # (K,R) log counts of the classes that have rows

    def __init__(
        self,
        config: MetaLtdsConfig,
        *,
        task: Task,
        embeddings: ClassEmbeddings | None = None,
        backbone: nn.Module,
        features: int,
    ) -> None:
        super().__init__(config, task=task, embeddings=embeddings, backbone=backbone, features=features)
        domains, classes = len(task.sources), len(task.classes)
        if config.meta_test_domains >= domains:
            raise ConfigError(
                f"Expected method.meta_test_domains to be less than the {domains} source domains, but got "
                f"{config.meta_test_domains}: one must be left for meta-train. Set method.meta_test_domains=1 or 0."
            )
        self.channels_last = not (config.order == "second" and config.meta_test_domains)
        self.criterion = Criterion(config.criterion, task)
        self.calibration = Criterion(CriterionSettings(name="dc" if config.calibrated else "ce"), task)
        self._name_classes(embeddings)
        width = self.semantics.shape[1]
        self.to_semantic = Projector(features, width) if config.semantic else nn.Identity()
        self.to_visual = Projector(width, features) if config.weights.s2z else nn.Identity()
        self.prototypes = Prototypes(
            domains,
            classes,
            features,
            momentum=config.prototype_momentum,
            start=config.prototype_start,
            in_graph=config.prototype_gradient,
            epsilon=config.prototype_epsilon,
            shared=config.single_prototype,
        )
        self.spread = OnlineCovariance(
            classes,
            features,
            full=config.covariance == "full",
            initial_count=1.0 if config.covariance_pseudo_sample else 0.0,
        )

    @classmethod
    def uses_embeddings(cls, config: MetaLtdsConfig) -> bool:
        """Only with a semantic loss, or covariances borrowed from semantic neighbours."""
        return config.semantic or config.borrows

    def _name_classes(self, embeddings: ClassEmbeddings | None) -> None:
        """Facts of the task, in buffers that move with the method but are not saved: nothing here is learned."""
        classes = len(self.task.classes)
        open_classes = self.task.open_classes if self.config.strict else ()
        named = torch.tensor([c for c in range(classes) if c not in open_classes])
        table = self._table([self.task.classes[c] for c in named], embeddings)
        k = self.config.neighbours
        if k > len(named) and self.config.weights.augmentation:
            raise ConfigError(
                f"Expected method.neighbours to be at most the {len(named)} classes that have names here, but got {k}. "
                f"Add --set method.neighbours={len(named)}."
            )
        similar = torch.arange(classes)[:, None].repeat(1, k)
        if self.config.borrows:
            similar[named] = named[semantic_neighbours(table, k)]
        position = torch.zeros(classes, dtype=torch.long).index_copy(0, named, torch.arange(len(named)))
        facts = {"semantics": table, "named": named, "position": position, "similar": similar}
        facts["class_sizes"] = torch.tensor(self.task.class_counts)
        facts["log_n_named"] = self.calibration.log_n[:, named]
        for name, fact in facts.items():
            self.register_buffer(name, fact, persistent=False)

    def _table(self, names: Sequence[str], embeddings: ClassEmbeddings | None) -> Tensor:
        """s (R,S) of these classes; without columns where no setting asks for them."""
        if not self.uses_embeddings(self.config):
            return torch.empty(len(names), 0)
        if embeddings is None:
            raise ConfigError(
                "Expected class embeddings for these settings, but got none. Pass embeddings=..., or set the weights "
                "z2s, s2s and s2z to 0 and neighbours=1."
            )
        return embeddings.aligned_to(names).vectors

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        """L_mtr + w_mte L_mte. Alg. 1, lines 2 to 17; the engine takes the step of line 17."""
        w, second = self.config.weights, self.config.order == "second"
        train, test = self._split(clock)  # line 2
        strength = self._strength(clock)

        view = self._look(self._net(), batch, train)  # lines 4 to 10
        prototypes = self.prototypes.blended(view.features, view.labels, view.domains)
        terms, covariance, sigma = self._meta_train(view, prototypes, strength, train, clock)
        weights = {"cls": 1.0, "z2s": w.z2s, "s2s": w.s2s, "s2z": w.s2z, "aug": w.augmentation}
        total = weighted(terms, weights) * (len(train) if self.config.sum_domains else 1)
        if test:
            theta = {name: p for name, p in self.named_parameters() if p.requires_grad}  # line 11
            inner = gradients(total, theta, second_order=second)
            clip, norm = self.config.inner_clip, self.config.inner_clip_norm
            fast = fast_weights(theta, inner, self.config.inner_lr, clip=clip, clip_norm=norm)
            if not second:
                total = with_known_gradient(total, list(theta.values()), inner)

            view = self._look(self._net(fast), batch, test)  # lines 13 to 16
            outer = self._meta_test(view, self._net(fast), prototypes.detach(), sigma, strength, clock)
            total = total + w.meta_test * weighted(outer, weights)  # line 17
            terms |= {f"meta_{name}": value for name, value in outer.items()}
        self.prototypes.commit(prototypes)
        if covariance is not None:
            self.spread.commit(covariance)
        return StepLoss(total, {name: value.detach() for name, value in terms.items()})

    def _meta_train(
        self, view: View, prototypes: BlendedPrototypes, strength: float | None, drawn: Sequence[int], clock: Clock
    ) -> tuple[dict[str, Tensor], CovarianceEstimate | None, Tensor | None]:
        """L_Cls, L_Z2S, L_S2S, L_S2Z, L_Aug at theta, and the updated Sigma and Sigma'. Alg. 1, lines 5 to 9."""
        w, net = self.config.weights, self._net()
        terms = {"cls": self._classify(view, clock.generator("criterion/train"))}
        if w.z2s:
            terms["z2s"] = self._to_semantics(view, self.semantics)
        if w.s2s or w.s2z:
            named = self._of_named(prototypes)
            tables = completed_prototypes(named, self.semantics, net.e)
            if w.s2s:
                terms["s2s"] = self._align(tables, named.projected, drawn)
            if w.s2z:
                terms["s2z"] = self._back(tables, net)
        covariance, sigma = None, None
        if w.augmentation and strength is not None:
            terms["aug"], covariance, sigma = self._update_and_augment(view, net, strength, drawn)
        return terms, covariance, sigma

    def _meta_test(
        self,
        view: View,
        net: Net,
        prototypes: BlendedPrototypes,
        sigma: Tensor | None,
        strength: float | None,
        clock: Clock,
    ) -> dict[str, Tensor]:
        """L_MCls, L_MZ2S, L_MAug at theta'. Alg. 1, lines 14 to 16.

        L_MZ2S = L_z2s(s) + mean over n in D_mtr of L_z2s(s^n'), s^n' the prototypes re-projected by e'.
        """
        terms = {"cls": self._classify(view, clock.generator("criterion/test"))}
        if self.config.weights.z2s:
            tables = completed_prototypes(self._of_named(prototypes), self.semantics, net.e)
            terms["z2s"] = self._to_semantics(view, self.semantics) + self._to_semantics(view, tables)
        if sigma is not None and strength is not None:
            terms["aug"] = self._augment(view, net, sigma, strength, meta_test=True)
        return terms

    def views(self, features: Tensor) -> dict[str, Tensor]:
        found = {"projected": self.to_semantic(features)} if self.config.semantic else {}
        if self.uses_embeddings(self.config):
            classes = len(self.task.classes)
            cosine = self.semantics.new_full((classes, classes), torch.nan)
            cosine[self.named[:, None], self.named] = self.semantics @ self.semantics.T
            found["embeddings"] = cosine
        if self.spread.count.any():
            found["covariances"] = covariance_distances(self.spread.sigma)
            found["updated"] = covariance_distances(self._borrowed(self.spread.estimate))
        return found

    def _split(self, clock: Clock) -> tuple[list[int], list[int]]:
        """D_mtr and D_mte, drawn anew each step, in the order in which they were drawn."""
        order = torch.randperm(len(self.task.sources), generator=clock.generator("split")).tolist()
        kept = len(order) - self.config.meta_test_domains
        return order[:kept], order[kept:]

    def _strength(self, clock: Clock) -> float | None:
        """lambda of this epoch; None before T_Sigma."""
        epochs = clock.total / clock.steps_per_epoch
        start = round(self.config.covariance_start * epochs, 9)  # .55 x 100 is 55, whatever floats make of it
        schedule = self.config.strength_schedule
        return strength_at(clock.epoch, start=start, end=epochs, peak=self.config.strength, schedule=schedule)

    def _net(self, fast: Mapping[str, Tensor] | None = None) -> Net:
        """The network at its own weights theta, or at theta'."""
        if fast is None:
            classifier = self.classifier
            return Net(self.backbone, classifier, self.to_semantic, classifier.weight, classifier.bias)

        def at(name: str, module: nn.Module) -> Callable[[Tensor], Tensor]:
            weights, moves = submodule_weights(fast, name), self.config.meta_test_statistics
            return lambda x: call_with(module, weights, x, update_statistics=moves)

        return Net(
            f=at("backbone", self.backbone),
            h=at("classifier", self.classifier),
            e=at("to_semantic", self.to_semantic),
            weight=fast.get("classifier.weight", self.classifier.weight),
            bias=fast.get("classifier.bias", self.classifier.bias),
        )

    def _look(self, net: Net, batch: Batch, domains: Sequence[int]) -> View:
        """Each domain in its own forward pass, so that BatchNorm sees one domain at a time (or all in one)."""
        parts = [batch.of(*domains)] if self.config.joint_forward else [batch.of(d) for d in sorted(domains)]
        per_part = [net.f(p.images) for p in parts]
        features = torch.cat(per_part)
        projected = torch.cat([net.e(x) for x in per_part]) if self.config.weights.z2s else features
        labels, origins = torch.cat([p.labels for p in parts]), torch.cat([p.domains for p in parts])
        return View(features, net.h(features), projected, labels, origins)

    def _classify(self, view: View, draws: torch.Generator) -> Tensor:
        """L_Cls, the mean of Eq. (2) or of another criterion."""
        losses: Tensor = self.criterion(view.logits, view.labels, view.domains, draws)
        return losses.mean()

    def _to_semantics(self, view: View, table: Tensor) -> Tensor:
        """L_Z2S, the mean of Eq. (3), against s (R,S) or against the tables of several domains (T,R,S)."""
        log_n = self.log_n_named[view.domains] if self.config.calibrated_z2s else None
        return visual_to_semantic_loss(
            view.projected,
            self.position[view.labels],
            table,
            log_n=log_n,
            margin=self.config.margin,
            temperature=self.config.temperature,
        ).mean()

    def _align(self, tables: Tensor, projected: Tensor, drawn: Sequence[int]) -> Tensor:
        """L_S2S, Eq. (4). The released slip depends on which domain of a pair was drawn first."""
        if self.config.negatives == "released" and not self.config.single_prototype:
            order = [sorted(drawn).index(d) for d in drawn]
            tables, projected = tables[order], projected[order]
        return semantic_alignment_loss(
            tables,
            self.semantics,
            negatives=self.config.negatives,
            to_semantics=self.config.align_to_semantics,
            projected=projected,
            fused=self._fused,
            margin=self.config.margin,
            temperature=self.config.temperature,
        )

    def _back(self, tables: Tensor, net: Net) -> Tensor:
        """L_S2Z, Eq. (5): the completed prototypes s^ through d and back through e."""
        visual = torch.stack([self.to_visual(table) for table in tables])
        cycled = torch.stack([net.e(v) for v in visual])
        return semantic_to_visual_loss(
            visual,
            net.weight[self.named] if self.config.strict else net.weight,
            net.bias[self.named] if self.config.strict else net.bias,
            cycled,
            self.semantics,
            weights=self.config.back_weights,
            cycle=self.config.cycle,
            fused=self._fused,
            margin=self.config.margin,
            temperature=self.config.temperature,
        )

    def _update_and_augment(
        self, view: View, net: Net, strength: float, drawn: Sequence[int]
    ) -> tuple[Tensor, CovarianceEstimate, Tensor]:
        """L_Aug, Eq. (8), with the Sigma and Sigma' that include the meta-train features; those two are not stored yet.

        "interleaved" repeats the released code, in which a domain's loss does not see the domains after it.
        """
        if self.config.covariance_order == "together":
            covariance = self.spread.updated(view.features, view.labels)
            sigma = self._borrowed(covariance)
            return self._augment(view, net, sigma, strength), covariance, sigma
        covariance, losses = self.spread.estimate, []
        for domain in drawn:
            mask = view.domains == domain
            own = View(*(t[mask] for t in (view.features, view.logits, view.projected, view.labels, view.domains)))
            covariance = covariance.updated(own.features, own.labels)
            losses.append(self._augment(own, net, self._borrowed(covariance), strength))
        return torch.stack(losses).mean(), covariance, self._borrowed(covariance)

    def _borrowed(self, covariance: CovarianceEstimate) -> Tensor:
        """Sigma', Eq. (7)."""
        sizes = {"class_size": self.class_sizes, "running": covariance.count, "none": None}
        return neighbour_covariance(covariance.sigma, self.similar, sizes[self.config.neighbour_weights])

    def _augment(self, view: View, net: Net, sigma: Tensor, strength: float, meta_test: bool = False) -> Tensor:
        """The mean of L_aug, Eq. (8)."""
        log_n = self.calibration.log_n[view.domains] if self.config.calibrated_augmentation else None
        weight, true_weight = net.weight, None
        if meta_test and self.config.slow_weights_in_meta_test:
            weight, true_weight = self.classifier.weight, net.weight
        return augmentation_loss(
            view.logits, view.labels, weight, sigma, strength, log_n=log_n, true_weight=true_weight
        ).mean()

    def _of_named(self, prototypes: BlendedPrototypes) -> BlendedPrototypes:
        if len(self.named) == len(self.task.classes):
            return prototypes
        return replace(prototypes, value=prototypes.value[:, self.named], present=prototypes.present[:, self.named])

    @property
    def _fused(self) -> bool | None:
        """Fused losses can be differentiated once; otherwise let the number of classes decide."""
        return False if self.config.order == "second" and self.config.meta_test_domains else None
