"""DAML: a network for each source domain, which learn from each other by mixing and distilling (METHODS 2.8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator
from torch import Tensor, nn

from ltds.core.config import Settings
from ltds.core.distributions import dirichlet
from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock, Prediction, StepLoss
from ltds.losses.criteria import Criterion, CriterionSettings
from ltds.losses.distillation import distillation_loss, mixed_teacher
from ltds.methods.base import Method, Phase, seen_by, weighted
from ltds.nn.inner_step import call_with, fast_weights, gradients, submodule_weights
from ltds.nn.known_gradient import with_known_gradient
from ltds.nn.networks import DomainNetwork, new_domain_network
from ltds.semantics.embeddings import ClassEmbeddings


class DamlWeights(Settings):
    """w_1 .. w_4. A weight of 0 leaves its term out altogether."""

    mix: NonNegativeFloat = 3.0
    distillation: NonNegativeFloat = 1.0
    meta_classification: NonNegativeFloat = 1.0
    meta_mix: NonNegativeFloat = 3.0


class DamlConfig(Settings):
    """Settings of DAML, the original's where it has them.

    `own`, `others`: the Dirichlet law of the mixed features, the other way round in the meta-objective. `warmup`: the
    share of the run that trains one network on all domains, which then becomes every network; `lr_after`: the factor on
    the learning rate from then on. `joint_forward`: each network takes all domains in one pass.
    """

    criterion: CriterionSettings = CriterionSettings()
    weights: DamlWeights = DamlWeights()
    temperature: PositiveFloat = 2.0
    own: PositiveFloat = 0.6
    others: PositiveFloat = 0.2
    order: Literal["first", "second"] = "first"
    inner_lr: NonNegativeFloat = 0.01
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.0
    lr_after: PositiveFloat = 0.1
    joint_forward: bool = False

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> DamlConfig:
        w, fields = self.weights, type(self).model_fields
        if not (w.meta_classification or w.meta_mix):
            raise ValueError("weights.meta_classification and weights.meta_mix cannot both be 0: DAML meta-learns")
        idle = [] if w.distillation else ["temperature"]
        idle += [] if w.mix or w.meta_mix else ["own", "others"]
        idle += [] if self.warmup else ["lr_after"]
        changed = [name for name in idle if getattr(self, name) != fields[name].default]
        if changed:
            raise ValueError(f"{changed[0]} has no effect beside the other settings: leave it out")
        return self


@dataclass(frozen=True)
class Net:
    """f_n and h_n as functions, at theta or at theta'."""

    f: Callable[[Tensor], Tensor]
    h: Callable[[Tensor], Tensor]


class Daml(Method):
    """K networks f_n, h_n; `backbone` and `classifier` are the first of them, `others` the rest."""

    Config = DamlConfig
    config: DamlConfig
    batches = 2  # one for meta-train, a new one for the meta-objective
    warming: Tensor  # () bool: only the first network has learned anything yet

    def __init__(
        self,
        config: DamlConfig,
        *,
        task: Task,
        embeddings: ClassEmbeddings | None = None,
        backbone: nn.Module,
        features: int,
    ) -> None:
        super().__init__(config, task=task, embeddings=embeddings, backbone=backbone, features=features)
        if len(task.sources) < 2:
            raise ConfigError(
                f"Expected two source domains or more for DAML, whose networks learn from each other, but got "
                f"{len(task.sources)}. Use another method (ltds methods), or a dataset with more domains."
            )
        self.channels_last = config.order == "first"
        self.criterion = Criterion(config.criterion, task)
        self.others = nn.ModuleList(new_domain_network(backbone, self.classifier) for _ in task.sources[1:])
        self.register_buffer("warming", torch.tensor(config.warmup > 0))

    def phases(self) -> tuple[Phase, ...]:
        share, lr = self.config.warmup, self.config.lr_after
        if not share:
            return (Phase(),)
        return (
            Phase("warmup", share, trainable=("backbone.", "classifier."), decay="constant"),
            Phase("main", 1 - share, lr_scale=lr, decay="constant"),
        )

    def enter(self, phase: Phase) -> None:
        """After the warm-up: its network becomes every network."""
        for network in self.others:
            network.load_state_dict(DomainNetwork(self.backbone, self.classifier).state_dict())
        self.warming.fill_(False)

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        """L_mtr + L_mte(theta'), theta' = theta - inner_lr grad L_mtr; sums over domains, as in the original."""
        train, test = (self._by_domain(half) for half in batch.split(self.batches))
        if clock.phase == "warmup":
            return self._aggregate(train, clock)
        second, w = self.config.order == "second", self.config.weights
        terms = self._meta_train(train, clock)
        total = weighted(terms, {"classification": 1.0, "distillation": w.distillation, "mix": w.mix})

        theta = {name: p for name, p in self.named_parameters() if p.requires_grad}
        inner = gradients(total, theta, second_order=second)
        fast = fast_weights(theta, inner, self.config.inner_lr)
        if not second:
            total = with_known_gradient(total, list(theta.values()), inner)

        outer = self._meta_test(test, self._nets(fast), clock)
        total = total + weighted(outer, {"meta_classification": w.meta_classification, "meta_mix": w.meta_mix})
        return StepLoss(total, {name: value.detach() for name, value in (terms | outer).items()})

    def predict(self, images: Tensor) -> Prediction:
        """Logits: log of the mean of the networks' softmax outputs. Features (N,K*D): the networks' side by side.

        Each network has axes of its own, so that a mean of their features would be of unlike things. During the warm-up
        the first network speaks alone.
        """
        nets = self._nets()[:1] if bool(self.warming) else self._nets()
        features = [net.f(images) for net in nets]
        each = torch.stack([torch.log_softmax(net.h(x), dim=1) for net, x in zip(nets, features, strict=True)])
        highest = each.amax(dim=0)  # networks that agree are averaged without any rounding
        logits = highest + (each - highest).exp().mean(dim=0).log()
        return Prediction(logits=logits, features=torch.cat(features, dim=1))

    def _aggregate(self, parts: Sequence[Batch], clock: Clock) -> StepLoss:
        """The warm-up: Agg with the first network, on one batch of each domain, as Agg itself."""
        logits = [self.classifier(x) for x in seen_by(self.backbone, parts, joint=self.config.joint_forward)]
        losses = [self._classify(f"agg/{n}", z, parts[n], clock) for n, z in enumerate(logits)]
        total = torch.stack(losses).mean()
        return StepLoss(total, {"classification": total.detach()})

    def _meta_train(self, parts: Sequence[Batch], clock: Clock) -> dict[str, Tensor]:
        """sum_n CE(z_n(x_n)), sum_n KD_n, sum_n DirMix_n at theta; every network sees every domain, once."""
        w, nets = self.config.weights, self._nets()
        joint = self.config.joint_forward
        features = [seen_by(net.f, parts, joint=joint) for net in nets]  # [network][domain]: (N,D)
        logits = [net.h(features[n][n]) for n, net in enumerate(nets)]
        losses = [self._classify(f"own/{n}", z, parts[n], clock) for n, z in enumerate(logits)]
        terms = {"classification": torch.stack(losses).sum()}
        if w.distillation:
            losses = [self._distil(n, z, nets, features, clock) for n, z in enumerate(logits)]
            terms["distillation"] = torch.stack(losses).sum()
        if w.mix:
            terms["mix"] = self._mix("mix", nets, features, parts, (self.config.own, self.config.others), clock)
        return terms

    def _meta_test(self, parts: Sequence[Batch], nets: Sequence[Net], clock: Clock) -> dict[str, Tensor]:
        """sum_n sum_{m != n} CE(z'_m(x_n)), sum_n DirMix'_n at theta', on images that meta-train did not see."""
        w, terms = self.config.weights, {}
        features = [seen_by(net.f, parts, joint=self.config.joint_forward) for net in nets]
        if w.meta_classification:
            pairs = [(m, n) for m in range(len(nets)) for n in range(len(parts)) if m != n]
            losses = [self._classify(f"meta/{m}/{n}", nets[m].h(features[m][n]), parts[n], clock) for m, n in pairs]
            terms["meta_classification"] = torch.stack(losses).sum()
        if w.meta_mix:
            law = self.config.others, self.config.own  # the other way round: mostly of other domains
            terms["meta_mix"] = self._mix("meta_mix", nets, features, parts, law, clock)
        return terms

    def _distil(
        self, n: int, student: Tensor, nets: Sequence[Net], features: Sequence[Sequence[Tensor]], clock: Clock
    ) -> Tensor:
        """KD_n: the other networks on the images of domain n, in shares drawn for each image, teach network n."""
        with torch.no_grad():
            logits = torch.stack([net.h(features[m][n]) for m, net in enumerate(nets) if m != n])
        shares = dirichlet([1.0] * len(logits), len(student), clock.generator(f"teachers/{n}"))
        teacher = mixed_teacher(logits, shares, self.config.temperature)
        return distillation_loss(student, teacher, self.config.temperature).mean()

    def _mix(
        self,
        stream: str,
        nets: Sequence[Net],
        features: Sequence[Sequence[Tensor]],
        parts: Sequence[Batch],
        law: tuple[float, float],
        clock: Clock,
    ) -> Tensor:
        """sum_n DirMix_n: h_n on mixtures of f_n(x) of one image of every domain, with mixed labels.

        `law`: the Dirichlet parameters of network n's own domain and of the others; drawn for each row. Soft
        cross-entropy is linear in the labels: sum_m r_m CE(z, y_m), which makes sense for every criterion.
        """
        losses, rows = [], min(len(own) for own in parts)
        for n, net in enumerate(nets):
            drawn = clock.generator(f"{stream}/{n}")
            picks = [torch.randperm(len(own), generator=drawn)[:rows] for own in parts]
            alpha = [law[0] if m == n else law[1] for m in range(len(parts))]
            shares = dirichlet(alpha, rows, drawn).to(features[n][0])  # r (N,K)
            mixed = torch.stack([shares[:, m, None] * features[n][m][pick] for m, pick in enumerate(picks)]).sum(dim=0)
            logits = net.h(mixed)
            for m, (own, pick) in enumerate(zip(parts, picks, strict=True)):
                noise = clock.generator(f"criterion/{stream}/{n}/{m}")
                loss = self.criterion(logits, own.labels[pick], own.domains[pick], noise)
                losses.append((shares[:, m] * loss).mean())
        return torch.stack(losses).sum()

    def _classify(self, name: str, logits: Tensor, own: Batch, clock: Clock) -> Tensor:
        each: Tensor = self.criterion(logits, own.labels, own.domains, clock.generator(f"criterion/{name}"))
        return each.mean()

    def _by_domain(self, batch: Batch) -> list[Batch]:
        return [batch.of(domain) for domain in range(len(self.task.sources))]

    def _nets(self, fast: Mapping[str, Tensor] | None = None) -> list[Net]:
        """The K networks at their own weights theta, or at theta'."""
        modules = {"backbone": self.backbone, "classifier": self.classifier}
        for i, network in enumerate(self.others):
            modules |= {f"others.{i}.{name}": child for name, child in network.named_children()}

        def at(name: str) -> Callable[[Tensor], Tensor]:
            module = modules[name]
            if fast is None:
                return module
            weights = submodule_weights(fast, name)
            return lambda x: call_with(module, weights, x)

        prefixes = ["", *(f"others.{i}." for i in range(len(self.others)))]
        return [Net(at(f"{prefix}backbone"), at(f"{prefix}classifier")) for prefix in prefixes]
