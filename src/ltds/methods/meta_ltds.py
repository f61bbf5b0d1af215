"""LT-DS, the paper's method: Algorithm 1 on the losses of sections 3.2 and 3.3.

`MetaLtds.loss` reads like the algorithm box. Each setting is one reading of the paper where print, text and released
code differ; docs/paper-notes.md lists them, with the default and why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from ltds.core.devices import to_device
from ltds.core.errors import ConfigError
from ltds.core.types import Batch, Clock, StepLoss
from ltds.losses.class_sample import ClassSample, draw_classes
from ltds.losses.criteria import Criterion, CriterionSettings
from ltds.losses.semantic_alignment import semantic_alignment_loss
from ltds.losses.semantic_to_visual import semantic_to_visual_loss
from ltds.losses.visual_to_semantic import visual_to_semantic_loss
from ltds.methods.base import Method, host_labels_and_domains, labels_and_domains, weighted_sum
from ltds.methods.meta_ltds_augmentation import GuidedAugmentation
from ltds.methods.meta_ltds_config import MetaLtdsConfig
from ltds.methods.meta_ltds_outputs import ModelFunctions, Outputs
from ltds.methods.meta_ltds_semantics import ClassSemantics
from ltds.methods.problem import Problem
from ltds.nn.inner_step import call_with, fast_weights, gradients, submodule_weights
from ltds.nn.known_gradient import with_known_gradient
from ltds.nn.projector import Projector
from ltds.stats.covariance import CovarianceEstimate, covariance_distances
from ltds.stats.prototypes import BlendedPrototypes, Prototypes, completed_prototypes


class MetaLtds(Method):
    """The paper's method: meta-learning with calibrated, semantic and augmentation losses (Gu et al., Algorithm 1).

    The losses are classification calibrated by class counts, a mapping between visual and semantic space, and
    augmentation guided by semantically similar classes.
    """

    Config = MetaLtdsConfig
    config: MetaLtdsConfig

    def __init__(self, config: MetaLtdsConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        domains, classes, feature_dim = len(self.task.sources), len(self.task.classes), problem.feature_dim
        self.mixes_domains = config.joint_forward
        self.second_order = config.gradient_order == "second" and config.meta_test_domains > 0
        self.criterion = Criterion(config.criterion, self.task)
        log_n = Criterion(CriterionSettings(name="dc" if config.calibrated else "ce"), self.task).log_n
        self.semantics = ClassSemantics(config, problem, log_n)
        semantic_dim = self.semantics.vectors.shape[1]
        self.to_semantic = Projector(feature_dim, semantic_dim) if config.semantic else nn.Identity()
        self.to_visual = Projector(semantic_dim, feature_dim) if config.weights.s2z else nn.Identity()
        self.prototypes = Prototypes(
            domains,
            classes,
            feature_dim,
            momentum=config.prototype_momentum,
            start=config.prototype_start,
            in_graph=config.prototype_gradient,
            epsilon=config.prototype_epsilon,
            shared=config.single_prototype,
        )
        self.augmentation = GuidedAugmentation(config, problem, self.semantics.neighbours, log_n)

    @classmethod
    def min_sources(cls, config: MetaLtdsConfig) -> int:
        return config.meta_test_domains + 1  # one is left for meta-train

    @classmethod
    def require_sources(cls, config: MetaLtdsConfig, sources: Sequence[str], name: str = "") -> None:
        """With too few domains, change a setting, not the method: without meta-test domains, one is enough."""
        if len(sources) < cls.min_sources(config):
            raise ConfigError(
                f"Expected method.meta_test_domains to be less than the {len(sources)} source domains, but got "
                f"{config.meta_test_domains}: one must be left for meta-train. "
                + ("Set method.meta_test_domains=1 or 0." if len(sources) > 1 else "Set method.meta_test_domains=0.")
            )

    @classmethod
    def uses_embeddings(cls, config: MetaLtdsConfig) -> bool:
        return config.uses_embeddings

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        """L_mtr + w_mte L_mte. Alg. 1, lines 2 to 17; the engine takes the step of line 17."""
        w = self.config.weights
        train, test = self._split(clock)  # line 2
        strength = self.augmentation.strength(clock)

        net = self._functions()
        outputs = self._forward(net, batch, train)  # lines 4 to 10
        prototypes = self.prototypes.blended(outputs.features, outputs.host_labels, outputs.host_domains)
        terms, covariance, sigma = self._meta_train(outputs, net, prototypes, strength, train, clock)
        weights = {"cls": 1.0, "z2s": w.z2s, "s2s": w.s2s, "s2z": w.s2z, "aug": w.augmentation}
        total = weighted_sum(terms, weights) * (len(train) if self.config.sum_domains else 1)
        if test:
            theta = self.trainable_parameters()  # line 11
            inner = gradients(total, theta, second_order=self.second_order)
            clip, norm = self.config.inner_clip, self.config.inner_clip_norm
            fast = fast_weights(theta, inner, self.config.inner_lr, clip=clip, clip_norm=norm)
            if not self.second_order:
                total = with_known_gradient(total, list(theta.values()), inner)

            net = self._functions(fast)
            outputs = self._forward(net, batch, test)  # lines 13 to 16
            outer = self._meta_test(outputs, net, prototypes.detach(), sigma, strength, clock)
            total = total + w.meta_test * weighted_sum(outer, weights)  # line 17
            terms |= {f"meta_{name}": value for name, value in outer.items()}
        self.prototypes.commit(prototypes)
        if covariance is not None:
            self.augmentation.covariance.commit(covariance)
        return StepLoss(total, {name: value.detach() for name, value in terms.items()})

    def _meta_train(
        self,
        outputs: Outputs,
        net: ModelFunctions,
        prototypes: BlendedPrototypes,
        strength: float | None,
        drawn: Sequence[int],
        clock: Clock,
    ) -> tuple[dict[str, Tensor], CovarianceEstimate | None, Tensor | None]:
        """L_Cls, L_Z2S, L_S2S, L_S2Z, L_Aug at theta, and the updated Sigma and Sigma'. Alg. 1, lines 5 to 9."""
        w = self.config.weights
        terms = {"cls": self._classify(outputs, clock.generator("criterion/train"))}
        if w.z2s:
            terms["z2s"] = self._visual_to_semantic(outputs, self.semantics.vectors)
        if w.s2s or w.s2z:
            sample = self._sample(outputs.host_labels, clock)
            selected = self.semantics.select(prototypes, sample)
            tables = completed_prototypes(selected, self.semantics.vectors_of(sample), net.e)
            if w.s2s:
                terms["s2s"] = self._align(tables, selected.projected, drawn, sample)
            if w.s2z:
                terms["s2z"] = self._semantic_to_visual(tables, net, sample)
        covariance, sigma = None, None
        if w.augmentation and strength is not None:
            augmented = self.augmentation.loss_with_update(outputs, net.weight, strength, drawn)
            terms["aug"], covariance, sigma = augmented
        return terms, covariance, sigma

    def _meta_test(
        self,
        outputs: Outputs,
        net: ModelFunctions,
        prototypes: BlendedPrototypes,
        sigma: Tensor | None,
        strength: float | None,
        clock: Clock,
    ) -> dict[str, Tensor]:
        """L_MCls, L_MZ2S, L_MAug at theta'. Alg. 1, lines 14 to 16.

        L_MZ2S = L_z2s(s) + mean over n in D_mtr of L_z2s(s^n'), s^n' the prototypes re-projected by e'.
        """
        terms = {"cls": self._classify(outputs, clock.generator("criterion/test"))}
        if self.config.weights.z2s:
            vectors = self.semantics.vectors
            tables = completed_prototypes(self.semantics.select(prototypes), vectors, net.e)
            terms["z2s"] = self._visual_to_semantic(outputs, vectors) + self._visual_to_semantic(outputs, tables)
        if sigma is not None and strength is not None:
            slow = self.config.slow_weights_in_meta_test
            weight, true_weight = (self.classifier.weight, net.weight) if slow else (net.weight, None)
            terms["aug"] = self.augmentation.loss(outputs, weight, sigma, strength, true_weight)
        return terms

    def project(self, features: Tensor) -> Tensor | None:
        return self.to_semantic(features) if self.config.semantic else None

    def diagnostics(self, features: Tensor) -> dict[str, Tensor]:
        projected = self.project(features)
        result = {} if projected is None else {"projected": projected}
        if self.config.uses_embeddings:
            result["embeddings"] = self.semantics.cosines()
        covariance = self.augmentation.covariance
        if covariance.count.any():
            result["covariances"] = covariance_distances(covariance.sigma)
            result["updated"] = covariance_distances(self.augmentation.neighbour_covariance(covariance.estimate))
        return result

    def _split(self, clock: Clock) -> tuple[list[int], list[int]]:
        """D_mtr and D_mte of this step, at random, in the order in which they were drawn."""
        order = torch.randperm(len(self.task.sources), generator=clock.generator("split")).tolist()
        kept = len(order) - self.config.meta_test_domains
        return order[:kept], order[kept:]

    def _functions(self, fast: Mapping[str, Tensor] | None = None) -> ModelFunctions:
        """The model at its weights theta, or at theta'."""
        if fast is None:
            classifier = self.classifier
            return ModelFunctions(self.backbone, classifier, self.to_semantic, classifier.weight, classifier.bias)

        def at(name: str, module: nn.Module) -> Callable[[Tensor], Tensor]:
            weights, update = submodule_weights(fast, name), self.config.meta_test_statistics
            return lambda x: call_with(module, weights, x, update_statistics=update)

        return ModelFunctions(
            f=at("backbone", self.backbone),
            h=at("classifier", self.classifier),
            e=at("to_semantic", self.to_semantic),
            weight=fast.get("classifier.weight", self.classifier.weight),
            bias=fast.get("classifier.bias", self.classifier.bias),
        )

    def _forward(self, net: ModelFunctions, batch: Batch, domains: Sequence[int]) -> Outputs:
        """f, h and e of these domains; e has BatchNorm, and sees one domain at a time (or all in one), as f does."""
        batches = [batch.of(*domains)] if self.config.joint_forward else [batch.of(d) for d in sorted(domains)]
        per_batch = self.forward_domains([b.images for b in batches], net.f)
        features = torch.cat(per_batch)
        projected = torch.cat([net.e(x) for x in per_batch]) if self.config.weights.z2s else features
        columns = (*labels_and_domains(batches), *host_labels_and_domains(batches))
        return Outputs(features, net.h(features), projected, *columns)

    def _classify(self, outputs: Outputs, generator: torch.Generator) -> Tensor:
        """L_Cls, the mean of Eq. (2) or of another criterion."""
        losses: Tensor = self.criterion(outputs.logits, outputs.labels, outputs.domains, generator)
        return losses.mean()

    def _visual_to_semantic(self, outputs: Outputs, table: Tensor) -> Tensor:
        """L_Z2S, the mean of Eq. (3), against s (R,S) or against the tables of several domains (T,R,S)."""
        log_n = self.semantics.log_n[outputs.domains] if self.config.calibrated_z2s else None
        return visual_to_semantic_loss(
            outputs.projected,
            self.semantics.row[outputs.labels],
            table,
            log_n=log_n,
            margin=self.config.margin,
            temperature=self.config.temperature,
        ).mean()

    def _sample(self, host_labels: Tensor, clock: Clock) -> ClassSample | None:
        """The rows of s that stand for all in L_S2S and L_S2Z; None: all of them."""
        rows = len(self.semantics.classes)
        size = self.config.contrasted(rows)
        if size == rows:
            return None
        batch, device = self.semantics.host_row[host_labels], self.semantics.vectors.device
        return draw_classes(batch, rows, size, clock.generator("contrast"), device)

    def _align(
        self, tables: Tensor, projected: Tensor, drawn: Sequence[int], sample: ClassSample | None = None
    ) -> Tensor:
        """L_S2S, Eq. (4). The mistake in the released code depends on which domain of a pair was drawn first."""
        if self.config.s2s_negatives == "released" and not self.config.single_prototype:
            order = torch.tensor([sorted(drawn).index(d) for d in drawn])
            tables, projected = tables[to_device(order, tables.device)], projected[order]
        return semantic_alignment_loss(
            tables,
            self.semantics.vectors_of(sample),
            negatives=self.config.s2s_negatives,
            to_semantics=self.config.align_to_semantics,
            projected=projected,
            fused=self._fused,
            sample=sample,
            margin=self.config.margin,
            temperature=self.config.temperature,
        )

    def _semantic_to_visual(self, tables: Tensor, net: ModelFunctions, sample: ClassSample | None = None) -> Tensor:
        """L_S2Z, Eq. (5): the completed prototypes s^ through d and back through e."""
        classes = self.semantics.classes_of(sample)
        everyone = len(classes) == len(net.weight)
        visual = torch.stack([self.to_visual(table) for table in tables])
        cycled = torch.stack([net.e(v) for v in visual])
        return semantic_to_visual_loss(
            visual,
            net.weight if everyone else net.weight[classes],
            net.bias if everyone else net.bias[classes],
            cycled,
            self.semantics.vectors_of(sample),
            weights=self.config.s2z_weights,
            cycle=self.config.cycle_form,
            fused=self._fused,
            sample=sample,
            margin=self.config.margin,
            temperature=self.config.temperature,
        )

    @property
    def _fused(self) -> bool | None:
        """Fused losses can be differentiated only once; otherwise (None) the number of classes decides."""
        return False if self.second_order else None
