"""Settings that have a new name: an old name in a config is answered with the new one."""

from __future__ import annotations

RENAMED: dict[str, str] = {
    "data.batch": "data.batch_size",
    "method.back_weights": "method.s2z_weights",
    "method.cycle": "method.cycle_form",
    "method.lr_after": "method.lr_scale_after_warmup",
    "method.negatives": "method.s2s_negatives",
    "method.order": "method.gradient_order",
    "method.others": "method.other_concentration",
    "method.own": "method.own_concentration",
    "method.statistics": "method.second_phase_batchnorm",
    "method.strict": "method.hide_open_names",
}
