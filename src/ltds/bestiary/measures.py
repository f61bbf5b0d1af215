"""The lengths of one creature: attributes in 0..1 times the pose's factors, in the units of the drawing."""

from __future__ import annotations

from dataclasses import dataclass

from ltds.bestiary.kinds import Kind
from ltds.bestiary.pose import Pose


@dataclass(frozen=True)
class Measures:
    """Half length, radius and the rest. A middling body is about one unit long."""

    kind: Kind
    pose: Pose
    half: float
    radius: float
    leg: float
    limb: float
    neck: float
    head: float
    snout: float

    @classmethod
    def of(cls, kind: Kind, pose: Pose) -> Measures:
        head = (0.1 + 0.18 * kind.head) * pose.head_size
        return cls(
            kind=kind,
            pose=pose,
            half=(0.15 + 0.34 * kind.length) * pose.length,
            radius=(0.07 + 0.27 * kind.depth) * pose.depth,
            leg=(0.10 + 0.72 * kind.leg) * pose.leg,
            limb=(0.018 + 0.085 * kind.limb) * pose.limb,
            neck=0.95 * kind.neck * pose.neck_length,
            head=head,
            snout=head * (0.3 + 1.7 * kind.snout) * pose.extras,
        )
