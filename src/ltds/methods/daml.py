"""DAML, domain-augmented meta-learning (Shu et al., CVPR 2021): a network per source domain, which teach each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator
from torch import Tensor, nn

from ltds.core.config import Settings, refuse_idle
from ltds.core.distributions import dirichlet
from ltds.core.types import Batch, Clock, Prediction, StepLoss
from ltds.losses.criteria import Criterion, CriterionSettings, criterion_field
from ltds.losses.distillation import distillation_loss, mixed_teacher
from ltds.methods.base import Method, Phase, weighted_sum
from ltds.methods.problem import Problem
from ltds.nn.inner_step import call_with, fast_weights, gradients, submodule_weights
from ltds.nn.known_gradient import with_known_gradient
from ltds.nn.networks import DomainNetwork, new_domain_network


class DamlWeights(Settings):
    """Weights of the losses of DAML; 0 leaves a loss out."""

    mix: NonNegativeFloat = Field(3.0, description="w_1: mixed features in meta-train")
    distillation: NonNegativeFloat = Field(1.0, description="w_2: distillation from the other networks")
    meta_classification: NonNegativeFloat = Field(1.0, description="w_3: classification of other domains in meta-test")
    meta_mix: NonNegativeFloat = Field(3.0, description="w_4: mixed features in meta-test")


class DamlConfig(Settings):
    """Settings of DAML, with the values of the original where it states them."""

    criterion: CriterionSettings = criterion_field()
    weights: DamlWeights = Field(DamlWeights(), description="weights of the losses")
    temperature: PositiveFloat = Field(2.0, description="temperature of the distillation")
    own_concentration: PositiveFloat = Field(
        0.6, description="Dirichlet parameter of a network's own domain in mixed features; of the others in meta-test"
    )
    other_concentration: PositiveFloat = Field(
        0.2,
        description="Dirichlet parameter of the other domains in mixed features; of its own domain in meta-test",
    )
    gradient_order: Literal["first", "second"] = Field(
        "first", description="second: differentiate through the inner step, at a cost in time and memory"
    )
    inner_lr: NonNegativeFloat = Field(0.01, description="step size of the inner step to theta'")
    warmup: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0, description="share of the run that trains one network on all domains, which is then copied to all networks"
    )
    lr_scale_after_warmup: PositiveFloat = Field(
        0.1,
        description="factor on the learning rate after the warm-up; with a warm-up both phases have a constant rate, "
        "and schedule.decay, milestones and gamma have no effect",
    )
    joint_forward: bool = Field(False, description="all domains in one forward pass, so BatchNorm sees them mixed")
    only_known_classes: bool = Field(
        False, description="no outputs for classes without training images, as in the original (six for PACS-ODG)"
    )

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> DamlConfig:
        w = self.weights
        if not (w.meta_classification or w.meta_mix):
            raise ValueError(
                "weights.meta_classification and weights.meta_mix cannot both be 0: DAML meta-learns. Raise one"
            )
        if not w.distillation:
            refuse_idle(self, ["temperature"], "with weights.distillation=0")
        if not (w.mix or w.meta_mix):
            refuse_idle(self, ["own_concentration", "other_concentration"], "with weights.mix=0 and weights.meta_mix=0")
        if not self.warmup:
            refuse_idle(self, ["lr_scale_after_warmup"], "with warmup=0")
        return self


@dataclass(frozen=True)
class DomainFunctions:
    """f_n and h_n of one domain's network as functions, at theta or at theta'."""

    f: Callable[[Tensor], Tensor]
    h: Callable[[Tensor], Tensor]


class Daml(Method):
    """Train one network per source domain; they learn from each other by mixing features, distilling, meta-learning.

    Of the K networks f_n, h_n, `backbone` and `classifier` are the first, `other_networks` the rest.
    """

    Config = DamlConfig
    config: DamlConfig
    batches_per_step = 2  # one for meta-train, another for the meta-objective
    warming_up: Tensor  # () bool: only the first network has been trained so far
    known: Tensor  # (R,) the classes that have outputs
    output: Tensor  # (C,) the output of each class; R for a class without one

    def __init__(self, config: DamlConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        sources = self.task.sources
        self.mixes_domains = config.joint_forward
        self.second_order = config.gradient_order == "second"
        self.criterion = Criterion(config.criterion, self.task)
        self.other_networks = nn.ModuleList(new_domain_network(self.backbone, self.classifier) for _ in sources[1:])
        self.register_buffer("warming_up", torch.tensor(config.warmup > 0))
        counts = torch.tensor(self.task.class_counts)
        known = torch.arange(len(counts))[counts > 0] if config.only_known_classes else torch.arange(len(counts))
        self.register_buffer("known", known, persistent=False)
        output = torch.full((len(counts),), len(known)).index_copy(0, known, torch.arange(len(known)))
        self.register_buffer("output", output, persistent=False)

    @classmethod
    def min_sources(cls, config: DamlConfig) -> int:
        return 2  # the networks of different domains learn from each other

    def phases(self) -> tuple[Phase, ...]:
        share, scale = self.config.warmup, self.config.lr_scale_after_warmup
        if not share:
            return (Phase(),)
        return (
            Phase("warmup", share, trainable=("backbone.", "classifier."), decay="constant"),
            Phase("main", 1 - share, lr_scale=scale, decay="constant"),
        )

    def start_phase(self, phase: Phase) -> None:
        """After the warm-up: copy its network to all networks."""
        for network in self.other_networks:
            network.load_state_dict(DomainNetwork(self.backbone, self.classifier).state_dict())
        self.warming_up.fill_(False)

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        """L_mtr + L_mte(theta'), theta' = theta - inner_lr grad L_mtr; sums over domains, as in the original."""
        train, test = (self.by_domain(half) for half in batch.split(self.batches_per_step))
        if clock.phase == "warmup":
            return self._aggregate(train, clock)
        w = self.config.weights
        terms = self._meta_train(train, clock)
        total = weighted_sum(terms, {"classification": 1.0, "distillation": w.distillation, "mix": w.mix})

        theta = self.trainable_parameters()
        inner = gradients(total, theta, second_order=self.second_order)
        fast = fast_weights(theta, inner, self.config.inner_lr)
        if not self.second_order:
            total = with_known_gradient(total, list(theta.values()), inner)

        outer = self._meta_test(test, self._networks(fast), clock)
        total = total + weighted_sum(outer, {"meta_classification": w.meta_classification, "meta_mix": w.meta_mix})
        return StepLoss(total, {name: value.detach() for name, value in (terms | outer).items()})

    def predict(self, images: Tensor) -> Prediction:
        """Logits: log of the mean of the networks' softmax outputs. Features (N,K*D): concatenated over networks.

        Features are not averaged, because the axes of different networks have nothing in common. During the warm-up the
        first network predicts alone. A class without an output has the logit -inf.
        """
        nets = self._networks()[:1] if bool(self.warming_up) else self._networks()
        features = [net.f(images) for net in nets]
        outputs = [net.h(x)[:, self.known] for net, x in zip(nets, features, strict=True)]
        each = torch.stack([torch.log_softmax(z, dim=1) for z in outputs])
        highest = each.amax(dim=0)  # so that the mean of equal networks has no rounding error
        logits = highest + (each - highest).exp().mean(dim=0).log()
        if self.config.only_known_classes:
            logits = torch.cat([logits, torch.full_like(logits[:, :1], -torch.inf)], dim=1)[:, self.output]
        return Prediction(logits=logits, features=torch.cat(features, dim=1))

    def _aggregate(self, domains: Sequence[Batch], clock: Clock) -> StepLoss:
        """The warm-up: Agg with the first network, on one batch of each domain."""
        logits = [self.classifier(x) for x in self._features(self.backbone, domains)]
        losses = [self._classify(f"agg/{n}", z, domains[n], clock) for n, z in enumerate(logits)]
        total = torch.stack(losses).mean()
        return StepLoss(total, {"classification": total.detach()})

    def _meta_train(self, domains: Sequence[Batch], clock: Clock) -> dict[str, Tensor]:
        """sum_n CE(z_n(x_n)), sum_n KD_n, sum_n DirMix_n at theta; every network sees every domain once."""
        w, nets = self.config.weights, self._networks()
        features = [self._features(net.f, domains) for net in nets]  # [network][domain]: (N,D)
        logits = [net.h(features[n][n]) for n, net in enumerate(nets)]
        losses = [self._classify(f"own/{n}", z, domains[n], clock) for n, z in enumerate(logits)]
        terms = {"classification": torch.stack(losses).sum()}
        if w.distillation:
            losses = [self._distil(n, z, nets, features, clock) for n, z in enumerate(logits)]
            terms["distillation"] = torch.stack(losses).sum()
        if w.mix:
            concentration = self.config.own_concentration, self.config.other_concentration
            terms["mix"] = self._mix("mix", nets, features, domains, concentration, clock)
        return terms

    def _meta_test(self, domains: Sequence[Batch], nets: Sequence[DomainFunctions], clock: Clock) -> dict[str, Tensor]:
        """sum_n sum_{m != n} CE(z'_m(x_n)), sum_n DirMix'_n at theta', on images that meta-train did not use."""
        w, terms = self.config.weights, {}
        features = [self._features(net.f, domains) for net in nets]
        if w.meta_classification:
            pairs = [(m, n) for m in range(len(nets)) for n in range(len(domains)) if m != n]
            losses = [self._classify(f"meta/{m}/{n}", nets[m].h(features[m][n]), domains[n], clock) for m, n in pairs]
            terms["meta_classification"] = torch.stack(losses).sum()
        if w.meta_mix:
            concentration = self.config.other_concentration, self.config.own_concentration  # mostly other domains
            terms["meta_mix"] = self._mix("meta_mix", nets, features, domains, concentration, clock)
        return terms

    def _features(self, f: Callable[[Tensor], Tensor], domains: Sequence[Batch]) -> list[Tensor]:
        """f(x) of each domain, (N,D)."""
        return self.forward_domains([samples.images for samples in domains], f, joint=self.config.joint_forward)

    def _distil(
        self,
        n: int,
        student: Tensor,
        nets: Sequence[DomainFunctions],
        features: Sequence[Sequence[Tensor]],
        clock: Clock,
    ) -> Tensor:
        """KD_n: network n learns from the other networks, in shares that are random for each image of domain n."""
        with torch.no_grad():
            logits = torch.stack([net.h(features[m][n])[:, self.known] for m, net in enumerate(nets) if m != n])
        shares = dirichlet([1.0] * len(logits), len(student), clock.generator(f"teachers/{n}"))
        teacher = mixed_teacher(logits, shares, self.config.temperature)
        return distillation_loss(student[:, self.known], teacher, self.config.temperature).mean()

    def _mix(
        self,
        stream: str,
        nets: Sequence[DomainFunctions],
        features: Sequence[Sequence[Tensor]],
        domains: Sequence[Batch],
        concentration: tuple[float, float],
        clock: Clock,
    ) -> Tensor:
        """sum_n DirMix_n: h_n on mixtures of f_n(x) of one image of every domain, with mixed labels.

        `concentration`: the Dirichlet parameters of network n's own domain and of the other domains. Soft cross-entropy
        is linear in the labels, so it is computed as sum_m r_m CE(z, y_m), which works for every criterion.
        """
        losses, rows = [], min(len(samples) for samples in domains)
        for n, net in enumerate(nets):
            generator = clock.generator(f"{stream}/{n}")
            picks = [torch.randperm(len(samples), generator=generator)[:rows] for samples in domains]
            alpha = [concentration[0] if m == n else concentration[1] for m in range(len(domains))]
            shares = dirichlet(alpha, rows, generator).to(features[n][0])  # r (N,K)
            mixed = torch.stack([shares[:, m, None] * features[n][m][pick] for m, pick in enumerate(picks)]).sum(dim=0)
            logits = net.h(mixed)
            for m, (samples, pick) in enumerate(zip(domains, picks, strict=True)):
                noise = clock.generator(f"criterion/{stream}/{n}/{m}")
                loss = self.criterion(self._outputs(logits), samples.labels[pick], samples.domains[pick], noise)
                losses.append((shares[:, m] * loss).mean())
        return torch.stack(losses).sum()

    def _classify(self, stream: str, logits: Tensor, samples: Batch, clock: Clock) -> Tensor:
        generator = clock.generator(f"criterion/{stream}")
        losses: Tensor = self.criterion(self._outputs(logits), samples.labels, samples.domains, generator)
        return losses.mean()

    def _outputs(self, logits: Tensor) -> Tensor:
        """(N,C) the logits, those of classes without an output at -inf: they take no part and get no gradient."""
        if not self.config.only_known_classes:
            return logits
        return logits.masked_fill(self.output == len(self.known), -torch.inf)

    def _networks(self, fast: Mapping[str, Tensor] | None = None) -> list[DomainFunctions]:
        """The K networks at their weights theta, or at theta'."""
        modules = {"backbone": self.backbone, "classifier": self.classifier}
        for i, network in enumerate(self.other_networks):
            modules |= {f"other_networks.{i}.{name}": child for name, child in network.named_children()}

        def at(name: str) -> Callable[[Tensor], Tensor]:
            module = modules[name]
            if fast is None:
                return module
            weights = submodule_weights(fast, name)
            return lambda x: call_with(module, weights, x)

        prefixes = ["", *(f"other_networks.{i}." for i in range(len(self.other_networks)))]
        return [DomainFunctions(at(f"{prefix}backbone"), at(f"{prefix}classifier")) for prefix in prefixes]
